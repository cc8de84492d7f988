package replicated

import (
	"fmt"
	"iter"
	"strings"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// Explanation tells what a text is, and where it would run. It is a plain value.
type Explanation struct {
	// SQL is the text.
	SQL string
	// Route is RoleReplica or RolePrimary: where the text would run as the first
	// statement of a fresh connection, in autocommit mode, with the default
	// [Config] and a replica that is up and fresh.
	//
	// What a connection has done before keeps more on the primary, and nothing
	// sends more to a replica: transactions, session state, writes that the
	// replicas have not caught up with.
	Route Role
	// Why is the reason of that decision, as in events and [Stats].
	Why Reason
	// Reason says it in words: what about the text is not a proven read. It is
	// never empty.
	Reason string
	// Class is what the text is, one of the stable names "read", "write", "ddl",
	// "lock", "session", "transaction", "call", "admin", "show", "multi" (several
	// statements, not all of them reads), "empty" and "unknown" (not proven to be
	// anything).
	Class string
	// Keyword is the word that leads the text, in upper case ("SELECT"); "" if
	// the text is empty and "?" if no word that could lead a statement does.
	Keyword string
	// Pins tells that reads stay on the primary afterwards, because the text may
	// leave something in the session that replicas lack.
	Pins bool
	// Write tells that the text counts as a write: later reads wait for replicas
	// that have caught up with it.
	Write bool
	// Refused tells that the driver would run the text nowhere and return an
	// error: its hint asks for a replica, and it is not a proven read.
	Refused bool

	dialect classify.Dialect
}

// Explain says what the driver makes of a text that is sent in one piece. The
// dialect is "postgres", "mysql", "mariadb" or "generic"; the empty string is
// "generic", which holds for any database and trusts the fewest statements. Any
// other name is an error. A text is never one: what cannot be read is class
// "unknown" and runs on the primary.
//
// Nothing is asked of a database: functions of the application count as unknown.
func Explain(dialect, sql string) (Explanation, error) {
	d, ok := classify.ParseDialect(dialect)
	if !ok && dialect != "" {
		return Explanation{}, fmt.Errorf("replicated: there is no dialect %q: want postgres, mysql, mariadb or generic", dialect)
	}
	return explain(d, sql), nil
}

// Statements yields the statements of the text, cut at semicolons, each as if it
// were sent alone; empty ones are left out. The text as a whole goes to a replica
// only if each of them does.
func (e Explanation) Statements() iter.Seq[Explanation] {
	return func(yield func(Explanation) bool) {
		for text := e.SQL; text != ""; {
			n, _ := classify.Cut(e.dialect, text)
			part := explain(e.dialect, strings.TrimSpace(strings.TrimSuffix(text[:n], ";")))
			if part.Why != ReasonEmpty && !yield(part) {
				return
			}
			text = text[n:]
		}
	}
}

// Relation is a table, view or the like that a text names.
type Relation struct {
	// Schema is the schema, or MySQL's database; "" where the text names none.
	Schema string
	// Name is without quotes. As Schema, it is as PostgreSQL's catalog has it; of
	// MySQL and MariaDB it is in small letters.
	Name string
	// Written tells that the text writes it, or may; otherwise it only reads it.
	Written bool
}

// Relations tells which relations the text reads and writes by itself, each once:
// those that are read first, in the order of the text. What the database does
// besides is not among them: views, triggers, foreign keys, partitions. A few may
// be more than the text touches, such as aliases in MySQL's DELETE of several
// tables.
//
// If complete is false, the text may touch any relation, and the list is nil. That
// is so for definitions, calls, functions that are not built in, several
// statements (see [Explanation.Statements]), and in the dialect "generic".
func (e Explanation) Relations() (list []Relation, complete bool) {
	touched := classify.Touches(e.dialect, e.SQL, nil)
	if touched.All {
		return nil, false
	}
	list = make([]Relation, 0, len(touched.Reads)+len(touched.Writes))
	at := make(map[classify.Name]int, cap(list))
	for _, n := range touched.Reads {
		at[n] = len(list)
		list = append(list, Relation{Schema: n.Schema, Name: n.Table})
	}
	for _, n := range touched.Writes {
		i, ok := at[n]
		if !ok {
			i = len(list)
			list = append(list, Relation{Schema: n.Schema, Name: n.Table})
		}
		list[i].Written = true
	}
	return list, true
}

// pinning are the effects that keep later reads on the primary.
const pinning = classify.Pins | classify.TempObject | heldEffects

func explain(d classify.Dialect, sql string) Explanation {
	v := classify.Classify(d, sql)
	e := Explanation{
		SQL:     sql,
		Route:   RolePrimary,
		Class:   v.Class.String(),
		Keyword: v.Keyword,
		Pins:    v.Effect&pinning != 0,
		Write:   v.Effect&classify.Stamps != 0,
		dialect: d,
	}
	a, err := route(&question{verdict: v, replicas: 1, eligible: 1, near: 1, past: 1})
	if err != nil {
		// Of the errors of a decision only the one about hints needs no wish.
		e.Refused, e.Why = true, reasonOfClass(v.Class)
		e.Reason = "hinted replicated:replica, and refused: " + v.Reason
		return e
	}
	e.Why = a.reason
	if a.replicas != 0 {
		e.Route = RoleReplica
	}
	switch {
	case a.reason == ReasonRead:
		e.Reason = "proven read"
	case a.reason == ReasonAsked:
		e.Reason = "hinted replicated:primary"
	case a.reason == ReasonEmpty:
		e.Reason = "nothing but blanks and comments"
	case v.Reason != "":
		e.Reason = v.Reason
	default:
		e.Reason = "effects on the session: " + v.Effect.String()
	}
	return e
}
