package replicated_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"
	"github.com/sqlreplicated/replicated/internal/faketime"
)

// What raises the floor of later reads, and what does not: after it, a read in
// the same process goes to the primary, or to a replica.
func TestWhatStamps(t *testing.T) {
	inTx := func(end func(*sql.Tx) error, texts ...string) func(context.Context, *testing.T, *sql.DB) {
		return func(ctx context.Context, t *testing.T, db *sql.DB) {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range texts {
				run(ctx, t, tx, text)
			}
			time.Sleep(time.Minute) // what was stamped before the end has passed
			if err := end(tx); err != nil {
				t.Fatal(err)
			}
		}
	}
	exec := func(text string) func(context.Context, *testing.T, *sql.DB) {
		return func(ctx context.Context, t *testing.T, db *sql.DB) { run(ctx, t, db, text) }
	}
	for _, tt := range []struct {
		name string
		do   func(context.Context, *testing.T, *sql.DB)
		on   string
	}{
		{"a write", exec("INSERT INTO t VALUES (1)"), "primary"},
		{"DDL", exec("CREATE TABLE x (a int)"), "primary"},
		{"a function that is not known", exec("SELECT f(a) FROM t"), "primary"},
		{"an error", func(ctx context.Context, t *testing.T, db *sql.DB) {
			if _, err := db.ExecContext(ctx, "INSERT INTO broken VALUES (1)"); err == nil {
				t.Error("no error")
			}
		}, "primary"},
		{"a read", exec("SELECT a FROM t"), "replica"},
		{"a read on the primary", exec("SELECT /* replicated:primary */ a FROM t"), "replica"},
		{"a locking read", exec("SELECT a FROM t FOR UPDATE"), "replica"},
		{"a commit after a write", inTx((*sql.Tx).Commit, "INSERT INTO t VALUES (1)"), "primary"},
		{"a rollback after a write", inTx((*sql.Tx).Rollback, "INSERT INTO t VALUES (1)"), "primary"},
		{"a commit after reads", inTx((*sql.Tx).Commit, "SELECT a FROM t"), "replica"},
		{"a rollback after reads", inTx((*sql.Tx).Rollback, "SELECT a FROM t"), "replica"},
		{"a commit after locking reads", inTx((*sql.Tx).Commit, "SELECT a FROM t FOR UPDATE"), "replica"},
		{"an untracked write", func(ctx context.Context, t *testing.T, db *sql.DB) {
			run(replicated.WithUntracked(ctx), t, db, "INSERT INTO t VALUES (1)")
		}, "replica"},
		{"an untracked write in a transaction", func(ctx context.Context, t *testing.T, db *sql.DB) {
			inTx((*sql.Tx).Commit, "INSERT INTO t VALUES (1)")(replicated.WithUntracked(ctx), t, db)
		}, "replica"},
		{"a read-only transaction", func(ctx context.Context, t *testing.T, db *sql.DB) {
			tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			wantOn(ctx, t, tx, "replica")
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
		}, "replica"},
		{"a transaction whose context ends", func(ctx context.Context, t *testing.T, db *sql.DB) {
			ctx, cancel := context.WithCancel(ctx)
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			run(ctx, t, tx, "INSERT INTO t VALUES (1)")
			time.Sleep(time.Minute)
			cancel()
			synctest.Wait()
		}, "primary"},
		{"raw access", func(ctx context.Context, t *testing.T, db *sql.DB) {
			conn, err := db.Conn(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			err = conn.Raw(func(dc any) error {
				return dc.(*replicated.Conn).Primary(ctx, func(any) error { return nil })
			})
			if err != nil {
				t.Error(err)
			}
		}, "primary"},
		{"Wrote", func(ctx context.Context, _ *testing.T, _ *sql.DB) { replicated.Wrote(ctx) }, "primary"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) {
				f := newFakes(t, 2, fakedb.Full)
				db := f.open()
				f.primary.Reply("INSERT INTO broken VALUES (1)", fakedb.Error(pgError("23505")))
				ctx, session := replicated.WithSession(t.Context())
				tt.do(ctx, t, db)
				wantOn(ctx, t, db, tt.on)
				if wrote := session.Wrote(); wrote != (tt.on == "primary") {
					t.Errorf("the session wrote: %v", wrote)
				}
				time.Sleep(time.Minute)
				wantOn(ctx, t, db, "replica")
			})
		})
	}
}

// The end of a transaction stamps for the session of BeginTx and for every one
// that wrote inside, for Commit has no context.
func TestEndOfATransactionStampsForAllItsSessions(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		db := f.open()
		begins, _ := replicated.WithSession(t.Context())
		writes, _ := replicated.WithSession(t.Context())
		reads, _ := replicated.WithSession(t.Context())
		other, _ := replicated.WithSession(t.Context())
		tx, err := db.BeginTx(begins, nil)
		if err != nil {
			t.Fatal(err)
		}
		run(writes, t, tx, "INSERT INTO t VALUES (1)")
		run(reads, t, tx, "SELECT a FROM t")
		time.Sleep(time.Minute)
		wantOn(writes, t, db, "replica") // what it wrote is not committed
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		wantOn(begins, t, db, "primary")
		wantOn(writes, t, db, "primary")
		wantOn(reads, t, db, "replica")
		wantOn(other, t, db, "replica")
		wantOn(t.Context(), t, db, "primary") // outside sessions: every write of the process
	})
}

func TestConsistencyLevels(t *testing.T) {
	for _, tt := range []struct {
		level                           replicated.Consistency
		session, other, outside, onConn string
	}{
		{replicated.ConsistencyProcess, "primary", "replica", "primary", "primary"},
		{replicated.ConsistencySession, "primary", "replica", "replica", "primary"},
		{replicated.ConsistencyEventual, "replica", "replica", "replica", "primary"},
	} {
		t.Run(tt.level.String(), func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) {
				f := newFakes(t, 1, fakedb.Full)
				db := f.open(func(c *replicated.Config) { c.Consistency = tt.level })
				session, _ := replicated.WithSession(t.Context())
				nested, _ := replicated.WithSession(session)
				other, _ := replicated.WithSession(t.Context())
				conn, err := db.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				run(session, t, conn, "INSERT INTO t VALUES (1)")
				wantOn(session, t, db, tt.session)
				wantOn(nested, t, db, tt.session)
				wantOn(other, t, db, tt.other)
				wantOn(t.Context(), t, db, tt.outside)
				wantOn(other, t, conn, tt.onConn) // a connection sees its own, whoever asks
				wantOn(replicated.WithStaleReads(session, time.Hour), t, db, "replica")
				wantOn(replicated.WithFresh(other), t, db, "primary")
			})
		})
	}
}

func TestTwoHandlesOnOneClusterSeeEachOthersWrites(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		name := fmt.Sprintf("two-handles-%d", clusterNumber.Add(1))
		cluster := func(c *replicated.Config) { c.ClusterName = name }
		a, b := f.open(cluster), f.open(cluster)
		wantOn(t.Context(), t, b, "replica")
		run(t.Context(), t, a, "INSERT INTO t VALUES (1)")
		wantOn(t.Context(), t, b, "primary")
		time.Sleep(time.Minute)
		wantOn(t.Context(), t, b, "replica")
	})
}
