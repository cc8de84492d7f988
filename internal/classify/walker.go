package classify

import (
	"math"

	"github.com/sqlreplicated/replicated/internal/lex"
)

// walker goes through one text, once, under one mode of the lexer. Nothing in it
// recurses: nesting is a counter and two stacks of bits.
type walker struct {
	lx  lex.Lexer
	d   Dialect
	my  bool // MySQL's rules for words; PostgreSQL's otherwise
	gen bool // both sets of rules, the stricter of the two everywhere

	names *Definitions // of the database's own functions; nil: none is known

	*grammar // the dialect's tables

	// k and kw are the current token; kw is none if a dot stands before it.
	k  lex.Kind
	kw lex.Keyword

	// facts are what the current statement was seen to hold.
	facts fact
	// alternate: the text is read in a mode that is only possible; see text.
	alternate bool
	// stopAtComma makes body return at a comma outside parentheses.
	stopAtComma bool
	// selects: a SELECT, TABLE or VALUES was met.
	selects bool
	// configSeen: the arguments of one set_config were looked at.
	configSeen bool
}

// result is what one statement is; a Verdict without what belongs to the text as
// a whole.
type result struct {
	class     Class
	effect    Effect
	vars      Vars
	keyword   lex.Keyword
	reason    string
	cacheable bool
}

// proven reports whether the statement may run on a replica. Whatever is more, or
// has an effect, has a reason.
func (r result) proven() bool { return r.reason == "" }

func (w *walker) next() {
	w.k = w.lx.Next()
	w.kw = lex.NoKeyword
	if w.k == lex.Word && !w.lx.Dotted {
		w.kw = w.lx.Kw
	}
}

// atEnd reports whether the current token ends the statement.
func (w *walker) atEnd() bool { return w.k == lex.EOF || w.k == lex.Semicolon }

// name returns the keyword that the current token is, be it quoted or not: for
// names that mean the same in quotes.
func (w *walker) name() lex.Keyword {
	if w.k == lex.Name || w.k == lex.Quoted {
		return lex.LookupKeyword(w.lx.Text())
	}
	return w.kw
}

// isName reports whether the current token may be a name.
func (w *walker) isName() bool {
	return w.k == lex.Word || w.k == lex.Name || w.k == lex.Quoted || w.k == lex.Number
}

// skip moves on if the current token is kw, and reports whether it was.
func (w *walker) skip(kw lex.Keyword) bool {
	if w.kw != kw {
		return false
	}
	w.next()
	return true
}

// peek returns the token behind the current one.
func (w *walker) peek() (lex.Kind, lex.Keyword) {
	ahead := w.lx
	k := ahead.Next()
	if k != lex.Word {
		return k, lex.NoKeyword
	}
	return k, ahead.Kw
}

// text goes through all statements and puts them together in v, which is zero. With alternate,
// the text is being read in a mode that is only possible, and a statement that no
// server could run in that mode does not count.
func (w *walker) text(v *Verdict) {
	n := 0
	clean := true
	w.next()
	for w.k != lex.EOF {
		if w.k == lex.Semicolon {
			w.next()
			continue
		}
		w.facts, w.configSeen = 0, false
		ru := &w.tbl[w.kw]
		if n > 0 || ru.parse != parseQuery && ru.parse != parseWrite {
			r := w.statement()
			if !w.put(v, r, n) {
				break
			}
			clean = clean && r.reason == "" && w.lx.Notes&lex.Unfinished == 0
			n++
			continue
		}
		// Nearly all texts are one such statement, with nothing remarkable in it.
		kw := w.kw
		w.body(0)
		facts := w.facts
		if ru.parse == parseWrite {
			facts &^= idleInWrites
		}
		if facts != 0 || w.lx.Notes&lex.Unfinished != 0 {
			r := w.bodyResult(ru)
			r.keyword = kw
			if !w.put(v, r, n) {
				break
			}
		} else {
			*v = w.words.plain[kw]
		}
		clean = v.Reason == ""
		n++
	}
	switch {
	case n == 0:
		v.Class = Empty
	case n > 1:
		v.Effect = pinsWin(v.Effect)
		v.Cacheable = false
		if !clean {
			v.Class = Multi
		}
	}
	if n := w.params(); n != 0 {
		v.Params = n
	}
	notes := w.lx.Notes
	if notes == 0 {
		return
	}
	if notes&(lex.HintPrimary|lex.HintReplica) != 0 {
		v.Hint = hintOf(notes)
	}
	if notes&lex.DateWord != 0 {
		v.Cacheable = false
	}
	if notes&lex.Strange != 0 || n == 0 && notes&lex.Unfinished != 0 && !w.alternate {
		v.strange()
	}
}

// put writes the n-th statement of the text into v. It returns false if that does
// not count, and nothing behind it.
func (w *walker) put(v *Verdict, r result, n int) bool {
	if w.lx.Notes&lex.Unfinished != 0 {
		if w.alternate {
			return false
		}
		r = unfinished(r)
	}
	if n > 0 {
		v.add(r)
		return true
	}
	v.Class, v.Effect, v.Vars, v.Reason, v.Cacheable = r.class, r.effect, r.vars, r.reason, r.cacheable
	v.Keyword = "?"
	if r.keyword != lex.NoKeyword {
		v.Keyword = r.keyword.String()
	}
	return true
}

// params returns the number of placeholders. A question mark is one, but in
// PostgreSQL; names of placeholders are, where the database is not known.
func (w *walker) params() int32 {
	marks := w.lx.Marks
	if !w.my && !w.gen {
		marks = 0
	}
	if w.gen && w.lx.Named > 0 || marks > 0 && w.lx.Dollar > 0 {
		return -1
	}
	return int32(min(max(marks, w.lx.Dollar), math.MaxInt32))
}

func unfinished(r result) result {
	if r.reason == "" {
		r.class, r.effect = Unknown, Stamps
	}
	r.cacheable = false
	r.reason = "a literal or comment that does not end, or a stray character"
	return r
}

// add puts another statement behind those that v tells of.
func (v *Verdict) add(r result) {
	if r.class == Read && v.Class == Show {
		v.Class = Read
	}
	if v.Reason == "" {
		v.Reason = r.reason
	}
	v.Effect |= r.effect
	v.Vars |= r.vars
}

// pinsWin drops what is unpinned by one statement of a text and pinned by another:
// their order is not kept.
func pinsWin(e Effect) Effect {
	if e&PinsRole != 0 {
		e &^= UnpinsRole
	}
	if e&PinsAuth != 0 {
		e &^= UnpinsAuth
	}
	if e&PinsCustom != 0 {
		e &^= UnpinsCustom
	}
	return e
}

// strange takes the proof from a text with bytes of which servers make different
// things.
func (v *Verdict) strange() {
	if v.Reason != "" {
		return
	}
	v.Class, v.Effect, v.Cacheable = Unknown, v.Effect|Stamps, false
	v.Reason = "bytes or names that cannot be read for certain"
	if v.Keyword == "" {
		v.Keyword = "?"
	}
}

func hintOf(n lex.Note) Hint {
	switch {
	case n&lex.HintPrimary != 0:
		return HintPrimary
	case n&lex.HintReplica != 0:
		return HintReplica
	}
	return NoHint
}
