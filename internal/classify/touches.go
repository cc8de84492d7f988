package classify

import "github.com/sqlreplicated/replicated/internal/lex"

// Relations are the relations that a text names as things to read and to write.
//
// Unless All is set, Reads and Writes together hold at least every relation that
// the text itself reads or writes; what the database does besides (views,
// triggers, partitions, cascades) is for a [Schema] to add. They may hold more:
// what is not certain is in. A relation that is written may be read as well, and
// need not be among Reads. Each name is there once in each of the two.
//
// The zero value is a text that touches no relation.
type Relations struct {
	Reads, Writes []Name
	// All: the text may touch any relation. Reads and Writes are nil then.
	All bool
}

// everything is what is known of a text of which nothing is.
var everything = Relations{All: true}

// Sees reports whether a read of r may see what a write of w has done, or w
// write what a write of r has: it is false only if no relation that w writes is
// one that r touches.
func (r Relations) Sees(w Relations) bool {
	if r.All || w.All {
		return r.touchesAny() && w.writesAny()
	}
	for _, n := range w.Writes {
		if overlaps(r.Reads, n) || overlaps(r.Writes, n) {
			return true
		}
	}
	return false
}

func (r Relations) touchesAny() bool { return r.All || len(r.Reads)+len(r.Writes) > 0 }
func (r Relations) writesAny() bool  { return r.All || len(r.Writes) > 0 }

// Touches says which relations text touches by itself. n tells of the database's
// own functions, as in [ClassifyWith]; without it functions of the tables count as
// what they are there, and all others as unknown.
//
// All is the answer wherever the text does not tell: with Generic, of which no
// grammar is known; for several statements; for definitions, CALL, DO, EXECUTE,
// cursors, SET, SHOW and whatever else is neither a query, a plain write, the plan
// of one, nor the beginning or end of a transaction; for SELECT INTO a table and
// TRUNCATE … CASCADE; for every function that is not built in, or that looks at
// relations which it is given by name or value (pg_relation_size, query_to_xml,
// nextval); for system catalogs and variables; and for texts that another mode or
// version of the server would cut differently.
//
// Touches is a pure function, takes time linear in the length of text, and never
// panics. Comments, hints and the case of keywords change nothing.
func Touches(d Dialect, text string, n *Definitions) Relations {
	if d == Generic || int(d) >= len(modes) {
		return everything
	}
	m := modes[d].first
	var w walker
	w.names = n
	st, ok := w.shown(d, text, m)
	switch {
	case !ok:
		return everything
	case st == statementEmpty:
		return Relations{}
	}
	if n != nil && n.scans && n.scan(text)&unseenFacts != 0 {
		return everything
	}
	r := relationReader{d: d, pg: d == Postgres, own: n}
	if !r.read(text, m) || st == statementModifies && len(r.writes.names) == 0 {
		return everything
	}
	return Relations{Reads: r.reads.names, Writes: r.writes.names}
}

// unseenFacts are those behind which relations may be that the text does not
// name, or whose content is not only that of relations. factUnknown is not among
// them: in a write the walker takes more for functions than there are, and the
// reader looks at each of them itself.
const unseenFacts = factSequence | factWrites | factText | factOperator | factUnbalanced | factAdvisory | factConfig |
	factConfigKeep | factPins | factServer | factSysVar | factSysVarOwn | factLocal | factPgTemp | factView

// statementKind is what the gate makes of the one statement of a text.
type statementKind uint8

const (
	statementEmpty    statementKind = iota // it touches no relation
	statementReads                         // it may write none
	statementModifies                      // it writes at least one
)

// shown makes a pass over the text by the classifier's own rules. It reports
// whether the text is one statement of a kind that shows what it touches, and
// holds nothing that would hide it.
func (w *walker) shown(d Dialect, text string, m lex.Mode) (kind statementKind, ok bool) {
	w.open(d, text, m)
	w.next()
	for seen := false; w.k != lex.EOF; {
		if w.k == lex.Semicolon {
			w.next()
			continue
		}
		if seen {
			return 0, false
		}
		seen = true
		r := w.statement()
		if w.facts&unseenFacts != 0 || r.reason == reasonUnknown {
			return 0, false
		}
		switch r.class {
		case Read, Write, Lock, Unknown, Show, Session, DDL:
			kind = statementReads // the reader looks at the word that leads
			if w.facts&factModifies != 0 || r.class == Write && w.facts&factOutfile == 0 && r.keyword != lex.KwCopy {
				kind = statementModifies
			}
		case Transaction:
			switch r.keyword {
			case lex.KwBegin, lex.KwStart, lex.KwCommit, lex.KwRollback, lex.KwEnd, lex.KwAbort, lex.KwSavepoint, lex.KwRelease:
				if hasWord(text, otherTransactions) {
					return 0, false
				}
			default:
				return 0, false
			}
		default:
			return 0, false
		}
	}
	return kind, w.lx.Notes&(openNotes|lex.Unfinished|lex.Strange) == 0
}

// otherTransactions: COMMIT PREPARED ends a transaction of some other session, of
// which nothing is known.
var otherTransactions = wordSet("prepared")
