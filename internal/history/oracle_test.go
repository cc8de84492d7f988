package history_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/internal/history"
)

// The definition of the promise, read off it word by word: each read against each
// write of its key. Check must come to the same.
type oracle struct {
	h *history.History
	o history.Options
}

func (c oracle) check() map[string]bool {
	found := make(map[string]bool)
	for i := range c.h.Events {
		r := &c.h.Events[i]
		if r.Kind != history.Read || r.Outcome != history.Acked {
			continue
		}
		for j := range c.h.Events {
			w := &c.h.Events[j]
			if w.Kind != history.Write && w.Kind != history.Delete || w.Key != r.Key || w.Version == 0 || w.Version <= c.shown(r) {
				continue
			}
			for clause, missed := range map[history.Clause]bool{
				history.ReadYourWrites:   c.ownTx(r, w) || !r.Claim.Stale && c.own(r, w),
				history.Tokens:           !r.Claim.Stale && c.token(r, w),
				history.Fresh:            !r.Claim.Stale && r.Claim.Fresh != 0 && c.returnedBefore(w, r.Claim.Fresh),
				history.BoundedStaleness: c.lagging(r, w),
				history.MonotonicReads:   !r.Claim.Stale && c.lost(r, w),
			} {
				if missed {
					found[fmt.Sprint(i, " ", clause)] = true
				}
			}
		}
	}
	return found
}

func (c oracle) end(tx int64) *history.Event {
	for i := range c.h.Events {
		if e := &c.h.Events[i]; e.Kind == history.TxEnd && e.Tx == tx {
			return e
		}
	}
	return nil
}

// returnedBefore tells whether the write took effect and had returned.
func (c oracle) returnedBefore(w *history.Event, at history.Moment) bool {
	if w.Outcome == history.Unknown {
		return false
	}
	if w.Tx == 0 {
		return w.Returned < at
	}
	end := c.end(w.Tx)
	return end != nil && end.Outcome == history.Acked && end.Returned < at
}

func (c oracle) undone(w *history.Event) bool {
	if w.Outcome == history.Failed && w.Version == 0 {
		return true
	}
	end := c.end(w.Tx)
	return w.Tx != 0 && end != nil && end.Outcome == history.Failed
}

func (c oracle) shown(r *history.Event) int64 {
	v := r.Version
	if v != 0 {
		return v
	}
	for i := range c.h.Events {
		d := &c.h.Events[i]
		if d.Kind != history.Delete || d.Key != r.Key || d.Called >= r.Returned {
			continue
		}
		if c.undone(d) && (d.Tx == 0 || d.Tx != r.Tx) {
			continue
		}
		if d.Version == 0 {
			return 1 << 62
		}
		v = max(v, d.Version)
	}
	return v
}

func (c oracle) due(r *history.Event) history.Moment {
	if r.Claim.Since != 0 {
		return r.Claim.Since
	}
	return r.Called
}

func (c oracle) ownTx(r, w *history.Event) bool {
	return r.Tx != 0 && r.Tx == w.Tx && w.Outcome == history.Acked && w.Returned < r.Called
}

func (c oracle) within(s, outer history.SessionID) bool {
	for ; s != 0; s = c.h.Parents[s] {
		if s == outer {
			return true
		}
	}
	return false
}

// contexts are the sessions of the write: with a transaction, of all in it.
func (c oracle) contexts(w *history.Event) []history.SessionID {
	all := []history.SessionID{w.Session}
	for i := range c.h.Events {
		if e := &c.h.Events[i]; w.Tx != 0 && e.Tx == w.Tx {
			all = append(all, e.Session)
		}
	}
	return all
}

// inSession tells whether the write belongs to session s or to one around it.
func (c oracle) inSession(w *history.Event, s history.SessionID) bool {
	for ; s != 0; s = c.h.Parents[s] {
		for _, in := range c.contexts(w) {
			if c.within(in, s) {
				return true
			}
		}
	}
	return false
}

func (c oracle) own(r, w *history.Event) bool {
	if w.Untracked || !c.returnedBefore(w, c.due(r)) {
		return false
	}
	process := w.Process == r.Process && (r.Session == 0 || slices.Contains(c.contexts(w), 0))
	switch {
	case r.Conn != 0 && r.Conn == w.Conn:
		return true
	case c.o.Level == history.LevelEventual:
		return false
	default:
		return c.inSession(w, r.Session) || process && c.o.Level == history.LevelProcess
	}
}

func (c oracle) token(r, w *history.Event) bool {
	return slices.ContainsFunc(r.Claim.Tokens, func(t history.Token) bool {
		if w.Untracked || !c.returnedBefore(w, t.Taken) {
			return false
		}
		return t.Session == 0 && t.Process == w.Process || t.Session != 0 && c.inSession(w, t.Session)
	})
}

func (c oracle) lagging(r, w *history.Event) bool {
	bound := c.o.MaxLag
	if r.Claim.MaxLag != 0 {
		bound = r.Claim.MaxLag
	}
	from := c.due(r)
	for _, s := range c.o.Unreachable {
		if s.From <= from && from <= s.To {
			from = s.From
		}
	}
	return bound != 0 && c.returnedBefore(w, from-bound)
}

func (c oracle) lost(r, w *history.Event) bool {
	if !r.Claim.Monotonic {
		return false
	}
	for i := range c.h.Events {
		e := &c.h.Events[i]
		if e.Kind != history.Read || e.Outcome != history.Acked || e.Key != r.Key || !e.Claim.Monotonic || e.Claim.Stale || e.Returned >= c.due(r) {
			continue
		}
		if !c.related(e.Session, r.Session) || !c.returnedBefore(w, e.Called) || w.Version > e.Version {
			continue
		}
		return true
	}
	return false
}

// related tells whether the sessions are the same, or have one around both.
func (c oracle) related(a, b history.SessionID) bool {
	for ; b != 0; b = c.h.Parents[b] {
		if c.within(a, b) {
			return true
		}
	}
	return false
}

// anything makes a history of a few keys, sessions and connections in which reads
// show whatever they like.
func anything(rng *rand.Rand) (*history.History, history.Options) {
	h := &history.History{Parents: []history.SessionID{0, 0, 1, 1, 2, 0}}
	o := history.Options{Level: history.Level(rng.IntN(3)), MaxLag: time.Duration(rng.IntN(30))}
	for range rng.IntN(3) {
		at := moment(rng, 60)
		o.Unreachable = append(o.Unreachable, history.Span{From: at, To: at + moment(rng, 20)})
	}
	versions := make(map[int64]int64)
	for range rng.IntN(60) {
		h.Events = append(h.Events, anyEvent(rng, versions))
	}
	for tx := int64(1); tx <= 3; tx++ {
		if rng.IntN(4) > 0 {
			e := history.Event{Kind: history.TxEnd, Tx: tx, Session: history.SessionID(rng.IntN(6)), Outcome: history.Outcome(rng.IntN(3))}
			e.Called = moment(rng, 90)
			e.Returned = e.Called + moment(rng, 10)
			h.Events = append(h.Events, e)
		}
	}
	return h, o
}

func moment(rng *rand.Rand, n int) history.Moment { return history.Moment(1 + rng.IntN(n)) }

// chance returns a number from 1 to n, or 0 four times in five.
func chance(rng *rand.Rand, n int) int64 {
	if rng.IntN(5) > 0 {
		return 0
	}
	return 1 + rng.Int64N(int64(n))
}

func anyEvent(rng *rand.Rand, versions map[int64]int64) history.Event {
	e := history.Event{
		Kind: history.Read, Outcome: history.Outcome(rng.IntN(3)), Key: 1 + rng.Int64N(3), Process: rng.Int32N(2),
		Session: history.SessionID(rng.IntN(6)), Conn: chance(rng, 3), Tx: chance(rng, 3), Called: moment(rng, 80),
	}
	e.Returned = e.Called + moment(rng, 20)
	if rng.IntN(2) == 0 {
		e.Kind = history.Write
		if rng.IntN(4) == 0 {
			e.Kind = history.Delete
		}
		e.Untracked = rng.IntN(6) == 0
		if rng.IntN(8) > 0 {
			versions[e.Key]++
			e.Version = versions[e.Key]
		}
		return e
	}
	e.Outcome = history.Acked
	e.Version = rng.Int64N(versions[e.Key] + 1)
	e.Claim = history.Claim{
		Since: history.Moment(chance(rng, int(e.Called))), Fresh: history.Moment(chance(rng, int(e.Called))),
		MaxLag: time.Duration(chance(rng, 30)), Stale: rng.IntN(6) == 0, Monotonic: rng.IntN(2) == 0,
	}
	for range rng.IntN(3) {
		e.Claim.Tokens = append(e.Claim.Tokens, history.Token{Process: rng.Int32N(2), Session: history.SessionID(rng.IntN(6)), Taken: moment(rng, 80)})
	}
	return e
}

// agree compares Check with the definition, on what reads are entitled to.
func agree(t *testing.T, seed uint64) (violations int) {
	t.Helper()
	h, o := anything(rand.New(rand.NewPCG(seed, 0)))
	want := oracle{h, o}.check()
	got := make(map[string]bool)
	for _, v := range history.Check(h, o) {
		if v.Clause == history.Integrity || v.Clause == history.AtMostOnce {
			continue
		}
		for i := range h.Events {
			if v.Read == &h.Events[i] {
				got[fmt.Sprint(i, " ", v.Clause)] = true
			}
		}
		if v.String() == "" {
			t.Error("a violation without words")
		}
	}
	for what := range want {
		if !got[what] {
			t.Errorf("seed %d: not found: event %s", seed, what)
		}
	}
	for what := range got {
		if !want[what] {
			t.Errorf("seed %d: found, and there is none: event %s", seed, what)
		}
	}
	return len(want)
}

func TestCheckAgreesWithTheDefinition(t *testing.T) {
	found := 0
	for seed := range uint64(1500) {
		found += agree(t, seed)
		if t.Failed() {
			return
		}
	}
	if found < 1500 {
		t.Errorf("%d violations in 1500 histories: these do not test much", found)
	}
}

func FuzzCheckAgreesWithTheDefinition(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { agree(t, seed) })
}
