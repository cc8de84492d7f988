package replicated

import (
	"github.com/sqlreplicated/replicated/internal/token"
)

// Adopt makes the later reads of the session, and of those around it, see what the
// tokens tell of: what others have written on its behalf, such as the server of a
// call whose response brought a token. [Session.Token] then includes it. It does not
// count as a write of the session ([Session.Wrote]).
//
// Where the session is nil there is nothing that could keep them: the process's
// later reads then see everything that anybody has committed before the call.
//
// An error says that a token is malformed. Its place is taken by everything that
// anybody has committed before the call, which whatever was written in it is part of.
func (s *Session) Adopt(tokens ...string) error {
	var all token.Token
	var failed error
	for _, text := range tokens {
		t, err := token.Parse(text)
		if err != nil {
			failed = err
			t = token.Token{{Cluster: token.Any}}
		}
		all = token.Merge(all, t)
	}
	if len(all) == 0 {
		return nil
	}
	if s == nil {
		behindUs.raise(now())
		return failed
	}
	for ; s != nil; s = s.parent {
		s.adoptOwn(all)
	}
	return failed
}

// adoptOwn merges t into what the session has adopted, so that it stays small
// however many responses come. What is found of an entry already is kept.
func (s *Session) adoptOwn(t token.Token) {
	at := now()
	for {
		old := s.adopted.Load()
		var before []*tokenFloor
		if old != nil {
			before = *old
		}
		var after []*tokenFloor
		for _, e := range token.Merge(entriesOf(before), t) {
			f := &tokenFloor{entry: e, from: at}
			for _, b := range before {
				if b.entry.Cluster == e.Cluster && b.entry.Lineage == e.Lineage &&
					!e.Position.IsZero() && b.entry.Position.Equal(e.Position) {
					f = b
				}
			}
			after = append(after, f)
		}
		if s.adopted.CompareAndSwap(old, &after) {
			s.heard.raise(at)
			s.changes.Add(1)
			return
		}
	}
}

func entriesOf(floors []*tokenFloor) token.Token {
	var t token.Token
	for _, f := range floors {
		t = token.Merge(t, token.Token{f.entry})
	}
	return t
}

// tokensOf returns the tokens that a read has to honour: those that its context came
// with, and those that its session and the ones around it have adopted.
func (w *wishes) tokensOf() []*tokenFloor {
	all := w.tokens[:len(w.tokens):len(w.tokens)]
	for s := w.session; s != nil; s = s.parent {
		if a := s.adopted.Load(); a != nil {
			all = append(all, *a...)
		}
	}
	return all
}
