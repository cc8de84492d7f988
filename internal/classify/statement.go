package classify

import "github.com/sqlreplicated/replicated/internal/lex"

// wrap is what stands around a statement.
type wrap uint8

const (
	wrapPlan wrap = 1 << iota // EXPLAIN: the statement is planned, not run
	wrapRun                   // EXPLAIN ANALYZE, ANALYZE: it is run
)

// statement goes through one statement, up to the semicolon or the end behind it.
// The current token is its first. A statement inside a statement (EXPLAIN, SET
// STATEMENT … FOR) is reached by going round the loop.
func (w *walker) statement() result {
	var around wrap
	outer := lex.NoKeyword
	for {
		if w.k == lex.LParen {
			return w.finish(w.parenthesised(), around, outer)
		}
		kw := w.kw
		ru := &w.tbl[kw]
		if outer == lex.NoKeyword {
			outer = kw
		}
		switch ru.parse {
		case parseExplainPostgres:
			if around&(wrapPlan|wrapRun) != 0 {
				return w.finish(w.unknown(), around, outer)
			}
			around |= w.explainPostgres()
		case parseExplainMySQL:
			if around&(wrapPlan|wrapRun) != 0 {
				return w.finish(w.unknown(), around, outer)
			}
			r, a, done := w.explainMySQL()
			if done {
				r.keyword = outer
				return r
			}
			around |= a
		case parseAnalyze:
			r, done := w.analyzeMySQL()
			if done {
				r.keyword = outer
				return r
			}
			around |= wrapRun
		case parseSetMySQL:
			r, done := w.setMySQL()
			if done {
				return w.finish(r, around, outer)
			}
		default:
			return w.finish(w.plain(ru), around, outer)
		}
	}
}

// finish makes the result of a statement out of that of the one inside.
func (w *walker) finish(r result, around wrap, outer lex.Keyword) result {
	if outer == lex.NoKeyword {
		outer = r.keyword
	}
	if outer != r.keyword || around != 0 {
		r.cacheable = false
	}
	r.keyword = outer
	switch {
	case around&wrapRun != 0:
		if r.proven() {
			r.class = Show
		}
	case around&wrapPlan != 0:
		r = w.plan(r)
	}
	return r
}

// plain looks at a statement of the given rule that has no other around it.
func (w *walker) plain(ru *rule) result {
	kw := w.kw
	var r result
	switch ru.parse {
	case parseNone:
		return w.unknown()
	case parseQuery, parseWrite:
		w.body(0)
		r = w.bodyResult(ru)
	case parseFixed:
		w.body(0)
		r = w.fixed(ru)
	case parseRest:
		w.takeRest()
		r = w.fixed(ru)
	case parseCreate:
		r = w.create(ru)
	case parseAlter:
		r = w.alter(ru)
	case parseBegin:
		r = w.begin(ru)
	case parseEnd:
		r = w.end(ru)
	case parsePrepare:
		r = w.prepare(ru)
	case parseCopy:
		r = w.copy(ru)
	case parseDeclare:
		r = w.declare(ru)
	case parseDiscard:
		r = w.discard(ru)
	case parseReset:
		r = w.reset(ru)
	case parseSetPostgres:
		r = w.setPostgres()
	case parseXA:
		r = w.xa(ru)
	case parseStart:
		r = w.start(ru)
	case parseDropMySQL:
		r = w.dropMySQL(ru)
	case parseLoad:
		r = w.load(ru)
	case parseFlush:
		r = w.flush(ru)
	case parseUse:
		w.body(0)
		r = w.fixed(ru)
		r.vars = Database
	case parseShow:
		r = w.show(ru)
	default:
		return w.unknown()
	}
	r.keyword = kw
	return r
}

// bodyResult returns what a query or a write is, the body of which was seen.
func (w *walker) bodyResult(ru *rule) result {
	if ru.parse == parseWrite {
		r := w.fixed(ru)
		r.cacheable = w.facts&(factUserVar|factUnbalanced) == 0
		return r
	}
	r := query(w.facts)
	r.cacheable = w.facts&(factInto|factIntoTemp|factUserVar|factUnbalanced) == 0
	return r
}

// fixed returns what the rule says, with the effects of what the body holds.
func (w *walker) fixed(ru *rule) result {
	return result{class: ru.class, effect: ru.effect | sideEffects(w.facts), reason: ru.reason}
}

const reasonUnknown = "statement not known"

// unknownEffects are those of a statement of which nothing is known.
const unknownEffects = Stamps | Pins | OpensTx | EndsTx | EmptiesCache

// unknown takes a statement that no table knows.
func (w *walker) unknown() result {
	w.body(0)
	return result{
		class:  Unknown,
		effect: unknownEffects | sideEffects(w.facts),
		reason: reasonUnknown,
	}
}

// parenthesised takes a statement that begins with a parenthesis: only queries do.
func (w *walker) parenthesised() result {
	depth := 0
	for w.k == lex.LParen {
		depth++
		w.next()
	}
	kw := w.kw
	if w.tbl[kw].parse != parseQuery {
		r := w.unknown()
		r.keyword = kw
		return r
	}
	w.body(depth)
	r := w.bodyResult(&w.tbl[kw])
	r.keyword = kw
	return r
}

// takeRest goes to the end of the text, semicolons included: they may belong to a
// compound statement. It reports whether anything stood behind one: other statements
// may be among it.
func (w *walker) takeRest() (more bool) {
	for {
		w.body(0)
		for w.k == lex.Semicolon {
			w.next()
		}
		if w.k == lex.EOF {
			return more
		}
		more = true
	}
}
