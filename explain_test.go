package replicated_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated"
)

func TestExplain(t *testing.T) {
	const primary, replica = replicated.RolePrimary, replicated.RoleReplica
	tests := []struct {
		name, dialect, sql string
		want               replicated.Explanation
	}{
		{"a read", "postgres", "SELECT 1", replicated.Explanation{Route: replica, Why: replicated.ReasonRead, Reason: "proven read", Class: "read", Keyword: "SELECT"}},
		{"metadata", "mysql", "SHOW TABLES", replicated.Explanation{Route: replica, Why: replicated.ReasonRead, Reason: "proven read", Class: "show", Keyword: "SHOW"}},
		{"a write", "", "INSERT INTO t VALUES (1)", replicated.Explanation{Route: primary, Why: replicated.ReasonWrite, Reason: "writes rows", Class: "write", Keyword: "INSERT", Write: true}},
		{"a locking read", "mariadb", "(SELECT a FROM t LOCK IN SHARE MODE)", replicated.Explanation{Route: primary, Why: replicated.ReasonLock, Reason: "locking clause", Class: "lock", Keyword: "SELECT"}},
		{"a role", "postgres", "SET ROLE app", replicated.Explanation{Route: primary, Why: replicated.ReasonSession, Reason: "sets the role", Class: "session", Keyword: "SET", Pins: true}},
		{"a temporary table", "postgres", "CREATE TEMP TABLE t (a int)", replicated.Explanation{Route: primary, Why: replicated.ReasonDDL, Reason: "changes definitions", Class: "ddl", Keyword: "CREATE", Pins: true, Write: true}},
		{"an unknown function", "generic", "SELECT f(1)", replicated.Explanation{Route: primary, Why: replicated.ReasonUnproven, Reason: "function not known to be harmless", Class: "unknown", Keyword: "SELECT", Write: true}},
		{"nothing", "mysql", " -- nothing", replicated.Explanation{Route: primary, Why: replicated.ReasonEmpty, Reason: "nothing but blanks and comments", Class: "empty"}},
		{"a read and a write", "postgres", "SELECT 1; DELETE FROM t", replicated.Explanation{Route: primary, Why: replicated.ReasonMulti, Reason: "writes rows", Class: "multi", Keyword: "SELECT", Write: true}},
		{"a hint for the primary", "postgres", "/* replicated:primary */ SELECT 1", replicated.Explanation{Route: primary, Why: replicated.ReasonAsked, Reason: "hinted replicated:primary", Class: "read", Keyword: "SELECT"}},
		{"a hint that is refused", "postgres", "/* replicated:replica */ DELETE FROM t", replicated.Explanation{Route: primary, Why: replicated.ReasonWrite, Reason: "hinted replicated:replica, and refused: writes rows", Class: "write", Keyword: "DELETE", Write: true, Refused: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := replicated.Explain(tt.dialect, tt.sql)
			if err != nil {
				t.Fatal(err)
			}
			tt.want.SQL = tt.sql
			// The whole of it in words, so that the unexported dialect is left out.
			if g, w := exported(got), exported(tt.want); g != w {
				t.Errorf("got\n%s, want\n%s", g, w)
			}
		})
	}
}

func exported(e replicated.Explanation) string {
	return fmt.Sprintf("%q: %v (%v, %q), %s %s, pins %t, write %t, refused %t", e.SQL, e.Route, e.Why, e.Reason, e.Class, e.Keyword, e.Pins, e.Write, e.Refused)
}

func TestExplainKnowsItsDialects(t *testing.T) {
	if _, err := replicated.Explain("oracle", "SELECT 1"); err == nil || !strings.Contains(err.Error(), `"oracle"`) {
		t.Errorf("the error is %v, want one that names the dialect", err)
	}
	for _, d := range []string{"", "generic", "postgres", "mysql", "mariadb"} {
		if e, err := replicated.Explain(d, "SELECT 1"); err != nil || e.Route != replicated.RoleReplica {
			t.Errorf("%q: %v, %v", d, e.Route, err)
		}
	}
}

func TestExplainTellsTheStatementsApart(t *testing.T) {
	e, err := replicated.Explain("postgres", "SELECT ';' ; ; -- nothing\n DELETE FROM t;SET ROLE x")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for s := range e.Statements() {
		got = append(got, fmt.Sprintf("%v %s %q", s.Route, s.Class, s.SQL))
	}
	want := []string{`replica read "SELECT ';'"`, `primary write "-- nothing\n DELETE FROM t"`, `primary session "SET ROLE x"`}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", got, want)
	}
	for range e.Statements() {
		break
	}
}

func TestExplainTellsRelations(t *testing.T) {
	type relation = replicated.Relation
	tests := []struct {
		dialect, sql string
		want         []relation
		complete     bool
	}{
		{"postgres", "SELECT 1", nil, true},
		{"postgres", `SELECT a FROM S.T JOIN "U" ON true`, []relation{{"s", "t", false}, {"", "U", false}}, true},
		{"mysql", "INSERT INTO T SELECT a FROM u, t", []relation{{"", "u", false}, {"", "t", true}}, true},
		{"mariadb", "DELETE FROM d.t", []relation{{"d", "t", true}}, true},
		{"postgres", "SELECT f() FROM t", nil, false},
		{"postgres", "SELECT a FROM t; SELECT b FROM u", nil, false},
		{"generic", "SELECT a FROM t", nil, false},
	}
	for _, tt := range tests {
		e, err := replicated.Explain(tt.dialect, tt.sql)
		if err != nil {
			t.Fatal(err)
		}
		if got, complete := e.Relations(); !slices.Equal(got, tt.want) || complete != tt.complete || !complete && got != nil {
			t.Errorf("%s: %v, %t, want %v, %t", tt.sql, got, complete, tt.want, tt.complete)
		}
	}
}

// Every row of the corpus has a reason in words, and no row that has to run on
// the primary is sent to a replica.
func TestExplainOfTheCorpus(t *testing.T) {
	for _, row := range corpus(t) {
		e, err := replicated.Explain(row.dialect, row.sql)
		if err != nil {
			t.Fatal(err)
		}
		if e.Reason == "" || row.label == "primary" && e.Route != replicated.RolePrimary {
			t.Errorf("%s (%s): %s", row.id, row.why, exported(e))
		}
	}
}

func ExampleExplain() {
	for _, sql := range []string{
		"SELECT title FROM books WHERE id = 1",
		"SELECT title FROM books WHERE id = 1 FOR UPDATE",
		"WITH gone AS (DELETE FROM loans RETURNING id) SELECT count(*) FROM gone",
	} {
		e, err := replicated.Explain("postgres", sql)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%v: %s, %s\n", e.Route, e.Class, e.Reason)
	}
	// Output:
	// replica: read, proven read
	// primary: lock, locking clause
	// primary: write, data-modifying WITH
}
