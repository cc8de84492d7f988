package classify

import "github.com/sqlreplicated/replicated/internal/lex"

// withState is how far the list of a WITH is read.
type withState uint8

const (
	withNone    withState = iota
	withName              // the name of an expression comes next
	withColumns           // the name was there: its columns, or AS
	withAs                // its columns were there: AS
	withBody              // AS was there: the expression
	withDone              // the expression was there: a comma, or the statement
)

// withList is the list of WITH of one frame.
type withList struct {
	state     withState
	recursive bool
	// name is that of the last expression in the list.
	name string
	// shown: the names hide relations. Where the WITH stands inside a statement,
	// how far they do is another thing in each server, and they hide nothing.
	shown bool
	// visible is how many names were visible before the frame.
	visible int
}

// cteScope are the names of common table expressions that hide relations.
type cteScope struct {
	names []string
	count map[string]int // of each among names
}

func (s *cteScope) depth() int { return len(s.names) }

func (s *cteScope) enter(name string) {
	if s.count == nil {
		s.count = make(map[string]int)
	}
	s.names = append(s.names, name)
	s.count[name]++
}

// leave forgets all but the first n names.
func (s *cteScope) leave(n int) {
	for ; len(s.names) > n; s.names = s.names[:len(s.names)-1] {
		s.count[s.names[len(s.names)-1]]--
	}
}

func (s *cteScope) hides(name string) bool { return s.count[name] > 0 }

// cteName returns the name by which the current lexeme defines an expression or
// refers to one. MySQL compares these names as it does those of tables, with or
// without regard to case, so they hide only what is spelled as they are.
func (r *relationReader) cteName(t lexeme) string {
	if r.pg {
		return r.part(t)
	}
	return r.lx.Slice(t.start, t.end)
}

// beginWith takes WITH.
func (r *relationReader) beginWith(f *frame, shown bool) {
	f.with = withList{state: withName, shown: shown, visible: f.with.visible}
	f.head, f.behind = true, false
	if r.peek().kw == lex.KwRecursive {
		f.with.recursive = true
		r.step()
	}
}

// cteWord takes a word in the list of a WITH. It returns false behind the list,
// where the word belongs to the statement.
func (r *relationReader) cteWord(f *frame) bool {
	kw := r.cur.kw
	switch f.with.state {
	case withName:
		f.with.name, f.with.state = r.cteName(r.cur), withColumns
	case withColumns, withAs:
		if kw != lex.KwAs {
			r.fail()
		}
		f.with.state = withBody
	case withBody:
		if kw != lex.KwNot && kw != lex.KwMaterialized {
			r.fail()
		}
	case withDone:
		switch kw {
		case lex.KwSelect, lex.KwValues, lex.KwTable, lex.KwInsert, lex.KwReplace, lex.KwUpdate, lex.KwDelete, lex.KwMerge:
			f.with.state, f.head = withNone, true
			return false
		}
		r.fail() // SEARCH and CYCLE have lists of their own
	}
	return true
}

func (r *relationReader) cteComma(f *frame) {
	if f.with.state != withDone {
		r.fail()
	}
	f.with.state = withName
}

// enterCTE is at the parenthesis of an expression, which knows itself only behind
// RECURSIVE, and those before it.
func (r *relationReader) enterCTE(f *frame) {
	if f.with.recursive && f.with.shown {
		r.ctes.enter(f.with.name)
	}
}

func (r *relationReader) leaveCTE(f *frame) {
	f.with.state = withDone
	if !f.with.recursive && f.with.shown {
		r.ctes.enter(f.with.name)
	}
}
