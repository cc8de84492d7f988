package classify

import (
	"strings"

	"github.com/sqlreplicated/replicated/internal/lex"
)

// leads takes the word that leads a statement or a query. It returns false if the
// current one does not, and the frame is a list of expressions or a join.
func (r *relationReader) leads(f *frame) bool {
	kw := r.cur.kw
	switch {
	case kw == lex.KwWith:
		f.expect, f.list = false, false
		r.beginWith(f, true)
		return true
	case kw == lex.KwSelect, kw == lex.KwValues && r.beginsQuery():
		f.query()
		return true
	case kw == lex.KwTable:
		f.query()
		f.expect = true
		return true
	case !f.verbs:
		return false
	}
	f.head, f.verb, f.expect, f.write = false, kw, true, true
	switch {
	case kw == lex.KwInsert, kw == lex.KwReplace && !r.pg:
		f.inserts, f.target = true, true
	case kw == lex.KwUpdate:
		f.list = !r.pg
	case kw == lex.KwDelete:
		f.expect = false // until FROM
		if r.pg && r.peek().kw != lex.KwFrom {
			r.fail()
		}
	case kw == lex.KwMerge && r.pg:
	case kw == lex.KwTruncate && r.outermost():
		f.list = true
	case kw == lex.KwCopy && r.pg && r.outermost():
		f.target, f.write = true, false // until FROM
		f.expect = r.peek().kind != lex.LParen
	case kw == lex.KwLoad && !r.pg && r.outermost():
		f.expect = false // until INTO
	default:
		r.fail()
	}
	return true
}

// beginsQuery reports whether the current word begins a query, where a relation
// might be as well. PostgreSQL takes VALUES for the name of a table too.
func (r *relationReader) beginsQuery() bool {
	switch r.cur.kw {
	case lex.KwSelect, lex.KwWith, lex.KwTable:
		return true
	case lex.KwValues:
		next := r.peek()
		return next.kind == lex.LParen || next.kw == lex.KwRow
	}
	return false
}

// query begins a query in the frame, which may hold another before it (UNION) or
// be that of an INSERT.
func (f *frame) query() {
	*f = frame{verb: lex.KwSelect, inserts: f.inserts, with: f.with}
}

// ends notes that the list of relations is over, or that it is not known to be, and
// that an expression may follow.
func (f *frame) ends(list bool) {
	f.behind = false
	f.list = f.list && !list
}

// word takes a word, a keyword or a quoted name that is no relation.
func (r *relationReader) word(f *frame) {
	if f.head && r.leads(f) {
		return
	}
	f.head = false
	kw := r.cur.kw
	if r.prev.kw == lex.KwAs {
		return // a label, which may be any word, or a type
	}
	switch kw {
	case lex.NoKeyword:
		if f.verb == lex.KwTruncate && r.is("cascade") {
			r.fail()
		}
	case lex.KwSelect:
		f.query()
	case lex.KwFrom:
		r.from(f)
	case lex.KwTo:
		if f.verb == lex.KwCopy && r.runsProgram() {
			r.fail()
		}
	case lex.KwJoin, lex.KwStraightJoin:
		r.join(f)
	case lex.KwNatural, lex.KwCross:
		f.natural = true
	case lex.KwOn:
		r.on(f)
	case lex.KwUsing:
		f.behind = false
		if (f.verb == lex.KwDelete || f.verb == lex.KwMerge) && !f.joined {
			// The statement's, and the next one will be a join's.
			f.expect, f.list, f.joined = true, true, true
			f.write = f.verb == lex.KwDelete && !r.pg
		}
	case lex.KwWhere, lex.KwHaving, lex.KwLimit, lex.KwUnion:
		f.ends(true)
	case lex.KwGroup, lex.KwOrder:
		// MySQL's hints for indexes: USE INDEX FOR ORDER BY (i), another_table; and
		// PostgreSQL's f() WITHIN GROUP (ORDER BY x).
		f.ends(r.prev.kw != lex.KwFor && r.prev.kw != lex.KwWithin)
	case lex.KwExcept, lex.KwIntersect, lex.KwWindow, lex.KwOffset, lex.KwFetch, lex.KwDo:
		f.ends(r.pg)
	case lex.KwReturning:
		f.ends(r.pg || r.d == MariaDB)
	case lex.KwSet, lex.KwValues:
		f.ends(!r.pg)
	case lex.KwWhen:
		f.ends(f.verb == lex.KwMerge)
	case lex.KwFor:
		switch r.peek().kw {
		case lex.KwUpdate, lex.KwShare, lex.KwNo, lex.KwKey:
			f.ends(true)
		default:
			f.ends(false)
		}
	case lex.KwInto:
		r.into(f)
	case lex.KwTable:
		r.table(f)
	case lex.KwWith:
		if f.inserts && f.verb != lex.KwSelect {
			r.beginWith(f, false)
		}
	case lex.KwInsert, lex.KwMerge, lex.KwDelete:
		if next := r.peek().kw; next == lex.KwInto || next == lex.KwFrom {
			r.fail() // a write where none is known to stand
		}
	}
}

// is reports whether the current lexeme is the word, which is no keyword of the
// lexer's.
func (r *relationReader) is(word string) bool { return r.spells(r.cur, word) }

func (r *relationReader) spells(t lexeme, word string) bool {
	return t.kind == lex.Word && !t.dotted && strings.EqualFold(r.lx.Slice(t.start, t.end), word)
}

func (r *relationReader) from(f *frame) {
	switch {
	case f.arguments && f.verb == lex.NoKeyword:
		return // extract(year FROM x)
	case r.prev.kw == lex.KwDistinct && (r.prev2.kw == lex.KwIs || r.prev2.kw == lex.KwNot):
		return // x IS NOT DISTINCT FROM y
	}
	f.behind, f.natural, f.on = false, false, 0
	switch {
	case f.verb == lex.KwSelect, f.verb == lex.KwUpdate && r.pg:
		f.expect, f.list, f.write = true, true, false
	case f.verb == lex.KwDelete:
		f.expect, f.list, f.write = true, true, true
	case f.verb == lex.KwCopy && !r.runsProgram():
		r.reads, r.writes = nameSet{}, r.reads
	default:
		r.fail()
	}
}

// runsProgram reports whether COPY, at FROM or TO, goes on with PROGRAM.
func (r *relationReader) runsProgram() bool { return r.peek().kw == lex.KwProgram }

func (r *relationReader) join(f *frame) {
	if r.cur.kw == lex.KwStraightJoin && (r.pg || !f.list) || r.prev.kw == lex.KwFor {
		return // SELECT STRAIGHT_JOIN; USE INDEX FOR JOIN (i)
	}
	if !f.natural {
		f.on++
	}
	f.expect, f.joined, f.behind, f.natural, f.only = true, true, false, false, false
}

// on takes ON: a join's, or that of an upsert, behind which nothing but
// expressions follows.
func (r *relationReader) on(f *frame) {
	f.behind = false
	switch {
	case !f.inserts:
	case !r.pg:
		ahead := r.lx
		if r.spells(next(&ahead), "duplicate") && next(&ahead).kw == lex.KwKey {
			f.list = false
		}
		return // of joins without ON MySQL knows more than NATURAL and CROSS
	case f.on == 0 && r.spells(r.peek(), "conflict"):
		f.list, f.conflict = false, true
	}
	f.on = max(f.on-1, 0)
}

func (r *relationReader) into(f *frame) {
	next := r.peek()
	switch {
	case f.verb == lex.KwLoad:
		f.expect, f.write, f.target = true, true, true
	case f.verb == lex.KwSelect && !r.pg && (next.kind == lex.UserVar || next.kw == lex.KwOutfile || next.kw == lex.KwDumpfile):
		f.ends(true)
	default:
		r.fail()
	}
}

// table takes TABLE behind another query, or in an INSERT.
func (r *relationReader) table(f *frame) {
	switch r.prev.kw {
	case lex.KwUnion, lex.KwExcept, lex.KwIntersect, lex.KwAll, lex.KwDistinct:
	default:
		if !f.inserts || f.verb == lex.KwSelect {
			r.fail()
		}
	}
	f.query()
	f.expect = true
}
