package replicated_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/lib/pq"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// disguise is a statement that writes although it does not look like it: it fails,
// or it ends a transaction by the way.
type disguise struct {
	name    string
	keys    []string // of the DSN
	engines []replicatedtest.Engine
	// prepare does what comes before, and returns what does the statement.
	prepare func(t *testing.T, db *sql.DB, table string) (run func() error)
	code    string // of the statement's error
}

// onOneConn is a disguise by its texts, in which %[1]s is the table: what comes
// before, and at the end the statement.
func onOneConn(texts ...string) func(*testing.T, *sql.DB, string) func() error {
	return func(t *testing.T, db *sql.DB, table string) func() error {
		conn, err := db.Conn(t.Context())
		must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		last := len(texts) - 1
		for _, text := range texts[:last] {
			mustExec(t, conn, strings.ReplaceAll(text, "%[1]s", table))
		}
		return func() error {
			_, err := conn.ExecContext(t.Context(), strings.ReplaceAll(texts[last], "%[1]s", table))
			return err
		}
	}
}

// inOneTx is a disguise that ends a transaction in which a row was written.
func inOneTx(end func(tx *sql.Tx, table string) error) func(*testing.T, *sql.DB, string) func() error {
	return func(t *testing.T, db *sql.DB, table string) func() error {
		tx, err := db.BeginTx(t.Context(), nil)
		must(t, err)
		t.Cleanup(func() { _ = tx.Rollback() })
		mustExec(t, tx, "INSERT INTO "+table+" VALUES (1)")
		return func() error { return end(tx, table) }
	}
}

func disguises() []disguise {
	const insert = "INSERT INTO %[1]s VALUES (1)"
	postgres := []replicatedtest.Engine{replicatedtest.Postgres}
	both := []replicatedtest.Engine{replicatedtest.MariaDB, replicatedtest.MySQL}
	return []disguise{
		{name: "failing DDL in a transaction", engines: both, code: "1050", prepare: inOneTx(func(tx *sql.Tx, table string) error {
			_, err := tx.Exec("CREATE TABLE " + table + " (n int)")
			return err
		})},
		{name: "failing DDL after BEGIN as text", engines: both, code: "1050", prepare: onOneConn("START TRANSACTION", insert, "CREATE TABLE %[1]s (n int)")},
		{name: "failing second statement", engines: both, code: "1062", prepare: onOneConn(insert + "; " + insert)},
		{name: "failing third statement behind a result", engines: both, prepare: func(t *testing.T, db *sql.DB, table string) func() error {
			return func() error {
				rows, err := db.QueryContext(t.Context(), strings.ReplaceAll("SELECT 1; "+insert+"; "+insert, "%[1]s", table))
				must(t, err)
				for rows.NextResultSet() { //nolint:revive // what they hold does not matter
				}
				return rows.Close()
			}
		}},
		{name: "failing statement after COMMIT", engines: postgres, code: "23505", prepare: onOneConn(insert + "; COMMIT; " + insert)},
		{name: "procedure that writes and fails", engines: both, code: "1644", prepare: onOneConn("CALL %[1]s_fails()")},
		{name: "procedure that commits and fails", engines: postgres, code: "P0001", prepare: onOneConn("CALL %[1]s_fails()")},
		{name: "second BEGIN", engines: both, prepare: onOneConn("BEGIN", insert, "BEGIN")},
		{name: "LOCK TABLES in a transaction", engines: both, prepare: onOneConn("BEGIN", insert, "LOCK TABLES %[1]s READ")},
		{name: "autocommit turned on", engines: both, prepare: onOneConn("SET autocommit = 0", insert, "SET autocommit = 1")},
		{name: "COMMIT AND CHAIN", prepare: onOneConn("BEGIN", insert, "COMMIT AND CHAIN")},
		{name: "COMMIT AND CHAIN behind a transaction that was begun", prepare: inOneTx(func(tx *sql.Tx, _ string) error {
			_, err := tx.Exec("COMMIT AND CHAIN")
			return err
		})},
		{name: "COMMIT with autocommit=0 in the DSN", engines: both, keys: []string{"autocommit=0"}, prepare: onOneConn(insert, "COMMIT")},
		{name: "DDL with autocommit=0 in the DSN", engines: both, keys: []string{"autocommit=0"}, code: "1050", prepare: onOneConn(insert, "CREATE TABLE %[1]s (n int)")},
		{name: "Commit with completion_type=CHAIN in the DSN", engines: both, keys: []string{"completion_type=CHAIN"}, prepare: inOneTx(func(tx *sql.Tx, _ string) error {
			return tx.Commit()
		})},
	}
}

// The replicas stand still since just before the statement, so that a floor that was
// not raised shows as a row that is missing.
//
// Verdict: all of these raise the floor when they return, for every handle of the
// process.
func TestWritesInDisguise(t *testing.T) {
	eachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		for _, d := range disguises() {
			if len(d.engines) == 0 || slices.Contains(d.engines, e) {
				t.Run(d.name, func(t *testing.T) { d.test(t, sharedCluster(t, e)) })
			}
		}
	})
}

func (d *disguise) test(t *testing.T, c *replicatedtest.Cluster) {
	table := table(t, c, "n int PRIMARY KEY")
	keys := []string{lagless}
	body := " BEGIN INSERT INTO " + table + " VALUES (1); SIGNAL SQLSTATE '45000'; END"
	if c.Engine() == replicatedtest.Postgres {
		body = " LANGUAGE plpgsql AS $$ BEGIN INSERT INTO " + table + " VALUES (1); COMMIT; RAISE EXCEPTION 'no'; END $$"
	} else {
		keys = append(keys, "multiStatements=true")
	}
	setup := bare(t, c.Primary())
	mustExec(t, setup, "CREATE PROCEDURE "+table+"_fails()"+body)
	t.Cleanup(func() { _, _ = setup.ExecContext(context.WithoutCancel(t.Context()), "DROP PROCEDURE "+table+"_fails") })
	caughtUp(t, c)
	db, reader := open(t, c, append(keys, d.keys...)...), open(t, c, lagless)
	run := d.prepare(t, db, table)
	if c.Engine() == replicatedtest.Postgres {
		// Nothing else makes the server flush what an open transaction has written,
		// for a quarter of a minute.
		mustExec(t, setup, "SELECT pg_current_xact_id()")
	}
	proven(t, reader)
	pauseReplicas(t, c)
	if n := queryInt(t, reader, "SELECT count(*) FROM "+table+" /* before */"); n != 0 {
		t.Fatalf("%d rows before", n)
	}
	onlyReplicas(t, c, "/* before */")
	if err := run(); codeOf(err) != d.code || (err == nil) != (d.code == "") {
		t.Fatalf("error %v, want one of code %q", err, d.code)
	}
	if n := queryInt(t, reader, "SELECT count(*) FROM "+table+" /* after */"); n != 1 {
		t.Errorf("the next read shows %d rows, want 1", n)
	}
	onlyPrimary(t, c, "/* after */")
}

// codeOf returns the code that a server has given an error, "" if none has.
func codeOf(err error) string {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return fmt.Sprint(e.Number)
	}
	if e, ok := errors.AsType[*pq.Error](err); ok {
		return string(e.Code)
	}
	return ""
}

// Connections to replicas commit each statement by itself and begin no transaction
// when one ends, whatever the DSN says for those to the primary, or one read would
// leave its snapshot behind for all later ones.
//
// Verdict: with autocommit=0 and with completion_type=CHAIN each read on a replica
// shows what had been acknowledged. What such a connection shows on the primary is
// what it shows of any transaction that is open.
func TestReplicaConnectionsKeepNoSnapshot(t *testing.T) {
	eachMySQL(t, func(t *testing.T, e replicatedtest.Engine) {
		for _, key := range []string{"autocommit=0", "completion_type=CHAIN"} {
			t.Run(key, func(t *testing.T) {
				c := sharedCluster(t, e)
				r := newReadback(t, c)
				writer := open(t, c, locating)
				reader := open(t, c, key, locating, lagless, "replicated.wait=30s")
				ctx := t.Context()
				for range 30 {
					r.mustWrite(ctx, writer, 0)
					for _, node := range r.reads(ctx, reader, 0, 3) {
						if node == c.Primary().Name() {
							t.Fatal("a read has not waited for a replica")
						}
					}
				}
				tx, err := reader.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
				must(t, err)
				r.reads(ctx, tx, 0, 1)
				must(t, tx.Commit())
				r.mustWrite(ctx, writer, 0)
				r.reads(ctx, reader, 0, 10)
			})
		}
	})
}

// inSessions has each of some rows written and read back, in as many sessions as
// there are rounds, all rows at once. It returns how many reads replicas served.
func (r *readback) inSessions(db *sql.DB, rows, rounds int) (onReplicas int) {
	r.t.Helper()
	sessions := make(chan int, rows)
	for row := range rows {
		go func() {
			served := 0
			defer func() { sessions <- served }()
			for range rounds {
				ctx, _ := replicated.WithSession(r.t.Context())
				if r.write(ctx, db, row) != nil {
					return
				}
				for range 40 {
					node, err := r.read(ctx, db, row)
					if err != nil {
						return
					}
					if node != r.c.Primary().Name() {
						served++
						break
					}
				}
			}
		}()
	}
	for range rows {
		onReplicas += <-sessions
	}
	return onReplicas
}
