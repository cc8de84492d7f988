package replicatedtest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

// texts returns the texts of one kind that hold the part.
func texts(list []replicatedtest.Statement, kind replicatedtest.Kind, part string) []string {
	var found []string
	for _, s := range list {
		if s.Kind == kind && strings.Contains(s.Text, part) {
			found = append(found, s.Text)
		}
	}
	return found
}

// awkward are texts that a log must give back as they are.
var awkward = []string{
	"SELECT 'plain'",
	"SELECT 'two\nlines' /* and\n\t\ttabs,\n\n blank lines */",
	"/* a comment */ SELECT 'a \"quote\", a ''quote'', a | bar, a \\ backslash'",
	"SELECT 'LOG:  statement: SELECT 1 STATEMENT:  x 5 Query\tx'",
	"SELECT 'Grüße 🐘 \u2028'",
	"SELECT 'carriage\r\nreturns\r'",
	"SELECT '" + strings.Repeat("long ", 20000) + "'",
	"SELECT '" + strings.Repeat("long\n", 20000) + "'",
}

func TestStatementsAreExact(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1})
		caughtUp(t, c)
		for _, n := range c.Nodes() {
			if list := n.Statements(); len(list) != 0 {
				t.Errorf("%s has run %+v before anybody asked it anything", n, list)
			}
			db := n.DB(t)
			for _, text := range awkward {
				mark := n.Mark()
				query(t, db, text)
				list := n.StatementsSince(mark)
				if len(list) != 1 || list[0].Text != text || list[0].Kind != replicatedtest.Query || list[0].User != "app" || list[0].Code != "" {
					t.Errorf("%s ran %.200q, reported %.300q", n, text, fmt.Sprintf("%+v", list))
				}
			}
			if got := len(n.Statements()); got != len(awkward) {
				t.Errorf("%d statements in all, want %d", got, len(awkward))
			}
			n.ResetStatements()
			if list := n.Statements(); len(list) != 0 {
				t.Errorf("after a reset: %+v", list)
			}
		}
	})
}

func TestStatementsTellWhoRanThem(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: -1})
		n := c.Primary()
		conn, err := n.DB(t).Conn(context.Background())
		must(t, err)
		defer conn.Close()
		var id int64
		must(t, conn.QueryRowContext(context.Background(), sessionID[e]).Scan(&id))
		query(t, n.AdminDB(t), "SELECT 'admin'")
		list := n.Statements()
		if len(list) != 2 || list[0].User != replicatedtest.AppUser || list[1].User != replicatedtest.AdminUser {
			t.Fatalf("statements %+v", list)
		}
		if list[0].Session != id {
			t.Errorf("session %d, want %d", list[0].Session, id)
		}
		if list[0].Time.IsZero() || list[1].Time.Before(list[0].Time) {
			t.Errorf("times %v, %v", list[0].Time, list[1].Time)
		}
	})
}

func TestStatementsTellPreparedOnes(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		settings := map[string]string{}
		text, executed := "SELECT ?,\n'x'", "SELECT 'v',\n'x'"
		if e == replicatedtest.Postgres {
			settings["log_min_duration_statement"] = "0"
			text, executed = "SELECT $1::text,\n'x'", "SELECT $1::text,\n'x'"
		}
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: -1, Settings: settings})
		n := c.Primary()
		db := n.DB(t)
		db.SetMaxOpenConns(1)
		stmt, err := db.Prepare(text)
		must(t, err)
		for range 2 {
			var v, x string
			must(t, stmt.QueryRow("v").Scan(&v, &x))
		}
		must(t, stmt.Close())
		list := n.Statements()
		if got := texts(list, replicatedtest.Prepare, "x"); !slices.Equal(got, []string{text}) {
			t.Errorf("prepared %q", got)
		}
		if got := texts(list, replicatedtest.Execute, "x"); !slices.Equal(got, []string{executed, executed}) {
			t.Errorf("executed %q", got)
		}
		if got := texts(list, replicatedtest.Query, ""); len(got) != 0 {
			t.Errorf("queries %q", got)
		}

		// Arguments without a statement that is kept.
		n.ResetStatements()
		query(t, db, strings.Replace(text, ",\n'x'", "", 1), "w")
		if got := len(texts(n.Statements(), replicatedtest.Execute, "SELECT")); got != 1 {
			t.Errorf("%d executions of %+v", got, n.Statements())
		}
	})
}

// Statements that fail are there: they reached the server.
func TestStatementsThatFail(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1})
		execSQL(t, c.Primary().DB(t), "CREATE TABLE t (id int)")
		caughtUp(t, c)
		n := c.Replicas()[0]
		db := n.DB(t)
		placeholder := map[bool]string{true: "$1", false: "?"}[e == replicatedtest.Postgres]
		n.ResetStatements()
		_, err := db.Exec("INSERT INTO t\nVALUES (1)")
		if err == nil {
			t.Error("a replica takes a write")
		}
		_, _ = db.Exec("SELECT * FROM nowhere")
		_, _ = db.Exec("SELECT * FROM nowhere WHERE id = "+placeholder, 1)
		_, _ = db.Exec("SELECT FROM WHERE this is wrong")
		list := n.Statements()
		if len(list) == 0 || list[0].Text != "INSERT INTO t\nVALUES (1)" || list[0].Kind != replicatedtest.Query {
			t.Fatalf("statements %+v", list)
		}
		if e != replicatedtest.Postgres {
			return
		}
		want := []replicatedtest.Statement{
			{Kind: replicatedtest.Query, Text: "INSERT INTO t\nVALUES (1)", Code: "25006"},
			{Kind: replicatedtest.Query, Text: "SELECT * FROM nowhere", Code: "42P01"},
			{Kind: replicatedtest.Refused, Text: "SELECT * FROM nowhere WHERE id = $1", Code: "42P01"},
			{Kind: replicatedtest.Refused, Text: "SELECT FROM WHERE this is wrong", Code: "42601"},
		}
		if len(list) != len(want) {
			t.Fatalf("statements %+v", list)
		}
		for i, w := range want {
			if got := list[i]; got.Kind != w.Kind || got.Text != w.Text || got.Code != w.Code {
				t.Errorf("statement %d is %+v, want %+v", i, got, w)
			}
		}
	})
}

// What a replica applies is no statement of its clients.
func TestStatementsLeaveOutReplication(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		// Statement by statement, so that there is something to leave out.
		settings := map[string]string{"binlog_format": "STATEMENT"}
		if e == replicatedtest.Postgres {
			settings = nil
		}
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1, Settings: settings})
		n := c.Replicas()[0]
		execSQL(t, c.Primary().DB(t), "CREATE TABLE t (id int PRIMARY KEY)")
		execSQL(t, c.Primary().DB(t), "INSERT INTO t VALUES (1)")
		caughtUp(t, c)
		must(t, n.PauseReplication())
		must(t, n.ResumeReplication())
		if list := n.Statements(); len(list) != 0 {
			t.Errorf("statements %+v", list)
		}
		if list := c.Primary().Statements(); len(list) != 2 {
			t.Errorf("on the primary: %+v", list)
		}
		c.ResetStatements()
		if list := c.Primary().Statements(); len(list) != 0 {
			t.Errorf("after a reset: %+v", list)
		}
	})
}

func TestStatementsOutliveTheServer(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: -1})
		n := c.Primary()
		query(t, n.DB(t), "SELECT 'before'")
		must(t, n.Kill())
		if got := texts(n.Statements(), replicatedtest.Query, "before"); len(got) != 1 {
			t.Errorf("of a killed server: %q", got)
		}
		must(t, n.Start())
		query(t, n.DB(t), "SELECT 'after'")
		list := n.Statements()
		if len(texts(list, replicatedtest.Query, "before")) != 1 || len(texts(list, replicatedtest.Query, "after")) != 1 || len(list) != 2 {
			t.Errorf("statements %+v", list)
		}
	})
}

func TestStatementsPanicsWithoutLog(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: -1, NoStatementLog: true})
		query(t, c.Primary().DB(t), "SELECT 'quiet'")
		c.ResetStatements()
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		c.Primary().Statements()
	})
}
