package classify

import (
	"strings"

	"github.com/sqlreplicated/replicated/internal/lex"
)

// plan makes the result of an EXPLAIN that does not run the statement r.
func (w *walker) plan(r result) result {
	if r.proven() {
		return result{class: Show, keyword: r.keyword}
	}
	if r.reason == reasonUnknown {
		return r
	}
	p := result{class: Show, keyword: r.keyword, reason: "plan of a statement that is not a proven read"}
	if r.class == Session {
		p.class = Session
	}
	if w.my || w.gen {
		// MySQL runs subqueries and functions while it plans.
		p.effect = r.effect & (Stamps | lasting | Silent)
	}
	return p
}

// explainPostgres takes EXPLAIN and its options up to the statement, and says
// whether that is run.
func (w *walker) explainPostgres() wrap {
	around := wrapPlan
	w.next()
	for {
		switch {
		case w.kw == lex.KwAnalyze || w.kw == lex.KwAnalyse:
			around = wrapRun
			w.next()
		case w.kw == lex.KwVerbose:
			w.next()
		case w.gen && w.k == lex.Word && w.tbl[w.kw].parse == parseNone:
			w.next() // SQLite's QUERY PLAN, MySQL's EXTENDED
		case w.k == lex.LParen:
			if k, kw := w.peek(); k == lex.LParen || w.tbl[kw].parse == parseQuery {
				return around
			}
			return w.explainOptions(around)
		default:
			return around
		}
	}
}

// explainOptions takes the options in parentheses. When one is given twice, the
// last one counts.
func (w *walker) explainOptions(around wrap) wrap {
	for depth := 0; !w.atEnd(); w.next() {
		switch w.k {
		case lex.LParen:
			depth++
		case lex.RParen:
			depth--
			if depth == 0 {
				w.next()
				return around
			}
		}
		if w.kw != lex.KwAnalyze && w.kw != lex.KwAnalyse {
			continue
		}
		around = wrapRun
		ahead := w.lx
		switch ahead.Next() {
		case lex.Word, lex.String, lex.Number, lex.Name:
			if t := ahead.Text(); strings.EqualFold(t, "off") || strings.EqualFold(t, "false") || t == "0" {
				around = wrapPlan
			}
		}
	}
	return around
}

// explainMySQL takes EXPLAIN, DESCRIBE and DESC up to the statement. If there is
// none, because a table or another connection is explained, done is true.
func (w *walker) explainMySQL() (r result, around wrap, done bool) {
	around = wrapPlan
	w.next()
	for {
		switch w.kw {
		case lex.KwExtended, lex.KwPartitions:
			if k, _ := w.peek(); k == lex.EOF || k == lex.Semicolon {
				return w.describe(), 0, true
			}
			w.next()
			continue
		case lex.KwAnalyze:
			around = wrapRun
			w.next()
			continue
		case lex.KwFormat:
			if k, _ := w.peek(); k != lex.Op {
				return w.describe(), 0, true
			}
			w.next()
			w.next()
			w.next()
			continue
		case lex.KwInto:
			w.body(0)
			return result{class: Session, effect: Pins | Silent, reason: "assigns a user variable"}, 0, true
		case lex.KwFor:
			w.next()
			if w.kw == lex.KwConnection {
				w.body(0)
				return result{class: Show, reason: reasonLocal}, 0, true
			}
			w.next() // SCHEMA or DATABASE
			w.next() // its name
			continue
		case lex.KwSelect, lex.KwTable, lex.KwValues, lex.KwWith, lex.KwInsert, lex.KwReplace,
			lex.KwUpdate, lex.KwDelete, lex.KwAlter, lex.KwCall, lex.KwSet:
			return r, around, false
		}
		if w.k == lex.LParen {
			return r, around, false
		}
		return w.describe(), 0, true
	}
}

// describe takes the rest of a DESCRIBE of a table.
func (w *walker) describe() result {
	w.body(0)
	r := query(w.facts)
	if r.proven() {
		r.class = Show
	}
	return r
}

// analyzeMySQL takes ANALYZE TABLE, or MariaDB's ANALYZE up to the statement that
// it runs; done is false for that.
func (w *walker) analyzeMySQL() (r result, done bool) {
	w.next()
	switch w.kw {
	case lex.KwFormat:
		w.next()
		w.next()
		w.next()
		return r, w.k != lex.LParen && !w.explainable() && w.admin(&r)
	}
	if w.k == lex.LParen || w.explainable() {
		return r, false
	}
	return r, w.admin(&r)
}

func (w *walker) explainable() bool {
	switch w.kw {
	case lex.KwSelect, lex.KwValues, lex.KwWith, lex.KwInsert, lex.KwReplace, lex.KwUpdate, lex.KwDelete:
		return true
	}
	return false
}

// admin takes the rest of a statement that acts on the server. It returns true.
func (w *walker) admin(r *result) bool {
	w.body(0)
	*r = result{class: Admin, effect: adminMySQL, reason: "acts on the server"}
	return true
}
