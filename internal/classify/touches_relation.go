package classify

import "github.com/sqlreplicated/replicated/internal/lex"

// relation takes the current word or name, where a relation is due.
func (r *relationReader) relation(f *frame) {
	f.head = false
	if r.cur.dotted || r.cur.kind == lex.Word && neverRelations[r.cur.kw]&r.side() != 0 {
		r.fail()
		return
	}
	if r.cur.kind == lex.Word && r.before(f) {
		return
	}
	schema, name, parts := lexeme{}, r.cur, 1
	next := r.peek()
	for ; next.dotted && next.names(); next = r.peek() {
		r.step()
		r.callsByDot()
		schema, name = name, r.cur
		parts++
	}
	switch {
	case next.kind == lex.Number, parts > 3, parts > 2 && !r.pg:
		r.fail() // db.1t is cut behind the dot
		return
	case next.kind == lex.LParen && !f.target:
		// A function, which is looked at with its parenthesis.
		if !r.pg && name.kw != lex.KwJsonTable {
			r.fail()
		}
		f.expect, f.called = false, true
		return
	}
	n := Name{Table: r.part(name)}
	if parts > 1 {
		n.Schema = r.part(schema)
	}
	hidden := n.Schema == "" && !f.write && !f.only && r.ctes.hides(r.cteName(name))
	f.expect, f.behind, f.only = false, true, false
	switch {
	case hidden:
	case n.Table == "", n.system(r.d):
		r.fail()
	case f.write:
		r.writes.add(n)
	default:
		r.reads.add(n)
	}
}

// before takes a word that may stand before a relation, or in place of one. It
// returns false if the current word is none there.
func (r *relationReader) before(f *frame) bool {
	switch r.cur.kw {
	case lex.KwInto:
		return f.target || f.verb == lex.KwMerge
	case lex.KwTable:
		return f.verb == lex.KwTruncate || f.verb == lex.KwLoad
	case lex.KwOnly:
		f.only = r.pg
		return r.pg
	case lex.KwLateral:
		// Older servers do not reserve it; then it may be a table.
		return r.pg || r.peek().kind == lex.LParen
	case lex.KwBinary:
		return f.verb == lex.KwCopy
	case lex.KwRows:
		if !r.pg || r.peek().kw != lex.KwFrom {
			return false
		}
		r.step() // ROWS FROM (f(), g())
		f.expect, f.called = false, true
		return true
	}
	if r.pg {
		return false
	}
	switch {
	case r.is("dual"):
		f.expect, f.behind = false, false
		return true
	case r.is("low_priority"), r.is("delayed"), r.is("high_priority"), r.is("ignore"):
		return f.verb == lex.KwInsert || f.verb == lex.KwReplace || f.verb == lex.KwUpdate
	}
	return false
}

// Sides of neverRelations.
const (
	sidePostgres uint8 = 1 << iota
	sideMySQL
)

func (r *relationReader) side() uint8 {
	if r.pg {
		return sidePostgres
	}
	return sideMySQL
}

// neverRelations are words that are no names of relations unless quoted, and that
// do not lead to one from where it is due. Where one stands nevertheless, the
// reader is not where it believes to be. It need not hold all such words: others
// are taken for names.
var neverRelations = func() (t [lex.NumKeywords]uint8) {
	for _, kw := range []lex.Keyword{
		lex.KwSelect, lex.KwFrom, lex.KwWhere, lex.KwJoin, lex.KwOn, lex.KwGroup, lex.KwHaving, lex.KwOrder, lex.KwLimit,
		lex.KwUnion, lex.KwAs, lex.KwUsing, lex.KwInner, lex.KwLeft, lex.KwRight, lex.KwCross, lex.KwNatural,
		lex.KwAnd, lex.KwOr, lex.KwNot, lex.KwNull, lex.KwTrue, lex.KwFalse, lex.KwCase, lex.KwWhen, lex.KwThen, lex.KwElse,
		lex.KwDistinct, lex.KwAll, lex.KwWith, lex.KwFor, lex.KwIn, lex.KwIs, lex.KwLike, lex.KwTo, lex.KwDefault,
	} {
		t[kw] = sidePostgres | sideMySQL
	}
	for _, kw := range []lex.Keyword{lex.KwDo, lex.KwReturning, lex.KwWindow, lex.KwOffset, lex.KwFetch, lex.KwEnd, lex.KwExcept, lex.KwIntersect} {
		t[kw] |= sidePostgres
	}
	for _, kw := range []lex.Keyword{lex.KwSet, lex.KwValues, lex.KwInsert, lex.KwUpdate, lex.KwDelete, lex.KwReplace, lex.KwExists, lex.KwStraightJoin} {
		t[kw] |= sideMySQL
	}
	return t
}()
