package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// sqliteCluster is a running one, with tables and a lag of its own.
func sqliteCluster(t *testing.T, lag time.Duration) *sqliteServers {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	s, err := startSQLite(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.prepare(t.Context(), s.bank().schema, lag); err != nil {
		t.Fatal(err)
	}
	return s.(*sqliteServers)
}

func openBare(t *testing.T, n server) *sql.DB {
	t.Helper()
	db, err := n.bare()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// dump is a table as text.
func dump(t *testing.T, db *sql.DB, table string) string {
	t.Helper()
	rows, err := db.Query("SELECT id, account, amount FROM " + table + " ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var b strings.Builder
	for rows.Next() {
		var id, account, amount int
		if err := rows.Scan(&id, &account, &amount); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%d:%d:%d ", id, account, amount)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for !holds() {
		if pause(ctx, time.Millisecond) != nil {
			t.Fatalf("%s: not within 10 s", what)
		}
	}
}

func TestReplicasFollowWithTheirLag(t *testing.T) {
	const lag = 100 * time.Millisecond
	s := sqliteCluster(t, lag)
	primary, replica := openBare(t, s.nodes()[0]), openBare(t, s.nodes()[2])
	steps := []struct {
		text string
		want string // the table payments afterwards
	}{
		{text: "INSERT INTO payments VALUES (1, 1, 10), (2, 1, 20)", want: "1:1:10 2:1:20 "},
		{text: "UPDATE payments SET amount = amount + 1", want: "1:1:11 2:1:21 "},
		{text: "UPDATE payments SET id = 3 WHERE id = 1", want: "2:1:21 3:1:11 "},
		{text: "INSERT OR REPLACE INTO payments VALUES (2, 5, 5)", want: "2:5:5 3:1:11 "},
		{text: "BEGIN; INSERT INTO payments VALUES (9, 9, 9); ROLLBACK; DELETE FROM payments WHERE id = 2", want: "3:1:11 "},
		{text: "CREATE TEMPORARY TABLE scratch (id INTEGER PRIMARY KEY); INSERT INTO scratch VALUES (7); DELETE FROM payments WHERE id = 3", want: ""},
	}
	for _, step := range steps {
		began := time.Now()
		if _, err := primary.Exec(step.text); err != nil {
			t.Fatalf("%s: %v", step.text, err)
		}
		eventually(t, step.text, func() bool { return dump(t, replica, "payments") == step.want })
		if took := time.Since(began); took < lag {
			t.Errorf("%s: on the replica after %v, which is less than its lag", step.text, took)
		}
	}
}

func TestReplicasAreReadOnly(t *testing.T) {
	s := sqliteCluster(t, 0)
	if _, err := openBare(t, s.nodes()[1]).Exec("DELETE FROM accounts"); err == nil {
		t.Error("a write on a replica succeeds")
	}
}

func TestKilledNode(t *testing.T) {
	s := sqliteCluster(t, 0)
	node := s.nodes()[1]
	db := openBare(t, node)
	if err := db.Ping(); err != nil {
		t.Fatal(err)
	}
	if err := node.kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("SELECT 1"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a statement on a killed node: %v", err)
	}
	if err := db.Ping(); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a ping of a killed node: %v", err)
	}
	if _, err := openBare(t, s.nodes()[0]).Exec("INSERT INTO payments VALUES (1, 1, 1)"); err != nil {
		t.Errorf("the others: %v", err)
	}
	if err := node.start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a node that is back catches up", func() bool { return dump(t, db, "payments") == "1:1:1 " })
}

func TestConnectionsAreLostForGood(t *testing.T) {
	s := sqliteCluster(t, 0)
	node := s.nodes()[0]
	db := openBare(t, node)
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("INSERT INTO payments VALUES (1, 1, 1)"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(node.kill(), node.start()); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err == nil {
		t.Error("a transaction of a connection from before the crash is committed")
	}
	if got := dump(t, db, "payments"); got != "" {
		t.Errorf("it has left %q behind", got)
	}
}

func TestNodesKeepALogAndCountConnections(t *testing.T) {
	s := sqliteCluster(t, 0)
	node := s.nodes()[0]
	db := openBare(t, node)
	ran := node.watch()
	stmt, err := db.Prepare("SELECT owner FROM accounts WHERE id = ?")
	if err != nil {
		t.Fatal(err)
	}
	var owner string
	if err := stmt.QueryRow(1).Scan(&owner); err != nil || owner != "Ben" {
		t.Errorf("%q, %v", owner, err)
	}
	if err := stmt.Close(); err != nil {
		t.Fatal(err)
	}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(ran(), "; "), "SELECT owner FROM accounts WHERE id = ?; BEGIN; COMMIT"; got != want {
		t.Errorf("the log has %q, want %q", got, want)
	}
	if n, _ := node.connections(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if n, _ := node.connections(); n != 0 {
		t.Errorf("%d connections after Close", n)
	}
}
