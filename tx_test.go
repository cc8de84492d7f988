package replicated_test

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"
	"github.com/sqlreplicated/replicated/internal/faketime"
)

func begin(t *testing.T, db interface {
	BeginTx(context.Context, *sql.TxOptions) (*sql.Tx, error)
}, opts *sql.TxOptions) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

var readOnlyTx = &sql.TxOptions{ReadOnly: true}

// A statement that went on elsewhere would be committed there at once.
func TestTransactionNeverContinuesOnAnotherConnection(t *testing.T) {
	eachShape(t, func(t *testing.T, shape fakedb.Shape) {
		f := newFakes(t, 1, shape)
		db := f.open()
		tx := begin(t, db, nil)
		run(t.Context(), t, tx, "INSERT INTO t VALUES (1)")
		f.primary.Kill()
		for range 3 {
			if _, err := tx.ExecContext(t.Context(), "INSERT INTO t VALUES (2)"); err == nil {
				t.Error("a statement of the dead transaction ran")
			}
			if err := tx.QueryRowContext(t.Context(), plainSelect).Scan(new(string)); err == nil {
				t.Error("a read of the dead transaction ran")
			}
		}
		if err := tx.Commit(); err == nil {
			t.Error("it was committed")
		}
		if n := sent(f.primary, "INSERT INTO t VALUES (2)") + sent(f.replicas[0], plainSelect); n != 0 {
			t.Errorf("%d of its statements were sent elsewhere", n)
		}
		run(t.Context(), t, db, "INSERT INTO t VALUES (3)")
	})
}

// The connection is lost before the first statement, where a Conn outside a
// transaction would open it anew.
func TestTransactionLostRightAfterBegin(t *testing.T) {
	eachShape(t, func(t *testing.T, shape fakedb.Shape) {
		f := newFakes(t, 0, shape)
		db := f.open()
		tx := begin(t, db, nil)
		f.primary.Kill()
		if _, err := tx.ExecContext(t.Context(), "INSERT INTO t VALUES (1)"); err == nil {
			t.Error("the statement ran outside its transaction")
		}
		if err := tx.Rollback(); err == nil {
			t.Error("the rollback did not tell")
		}
		if n := sent(f.primary, "INSERT INTO t VALUES (1)"); n != 0 {
			t.Errorf("it was sent %d times", n)
		}
	})
}

func TestReadWriteTransactionRunsOnThePrimary(t *testing.T) {
	eachShape(t, func(t *testing.T, shape fakedb.Shape) {
		f := newFakes(t, 2, shape)
		db := f.open()
		tx := begin(t, db, nil)
		ctx := replicated.WithStaleReads(replicated.WithReplica(t.Context()), time.Hour)
		for range 3 {
			wantOn(ctx, t, tx, "primary")
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if n := f.primary.Stats().Commits; n != 1 {
			t.Errorf("%d commits", n)
		}
		wantOn(t.Context(), t, db, "replica")
	})
}

func TestReadOnlyTransactionRunsOnOneReplica(t *testing.T) {
	for _, shape := range []fakedb.Shape{fakedb.Full, fakedb.MySQLLike, fakedb.PQLike, fakedb.PgxLike} {
		t.Run(shape.String(), func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) {
				f := newFakes(t, 2, shape)
				db := f.open()
				tx := begin(t, db, readOnlyTx)
				node := servedBy(t.Context(), t, tx)
				for range 4 {
					if got := servedBy(replicated.WithPrimary(t.Context()), t, tx); got != node {
						t.Errorf("a statement of it ran on %s, the first on %s", got, node)
					}
				}
				stmt, err := tx.PrepareContext(t.Context(), plainSelect)
				if err != nil {
					t.Fatal(err)
				}
				var got string
				if err := stmt.QueryRowContext(t.Context()).Scan(&got); err != nil || got != node {
					t.Errorf("a prepared one: %s, %v", got, err)
				}
				if err := tx.Commit(); err != nil {
					t.Fatal(err)
				}
				for _, s := range f.servers() {
					want := 0
					if s.Name() == node {
						want = 1
					}
					if st := s.Stats(); st.Begins != want || st.Commits != want {
						t.Errorf("%s: %d begun, %d committed, want %d", s.Name(), st.Begins, st.Commits, want)
					}
					if s.Name() == node && !slices.ContainsFunc(s.Calls(), func(c fakedb.Call) bool { return c.Op == fakedb.OpBegin && c.TxOpts.ReadOnly }) {
						t.Error("the replica was not told that it is read-only")
					}
				}
			})
		})
	}
}

func TestReadOnlyTransactionOfADriverThatHasNone(t *testing.T) {
	for _, shape := range []fakedb.Shape{fakedb.Legacy, fakedb.Minimal} {
		faketime.Test(t, func(t *testing.T) {
			f := newFakes(t, 1, shape)
			db := f.open()
			bare := sql.OpenDB(f.primary.Connector(shape))
			defer bare.Close()
			_, want := bare.BeginTx(t.Context(), readOnlyTx)
			_, got := db.BeginTx(t.Context(), readOnlyTx)
			if got == nil || got.Error() != want.Error() {
				t.Errorf("error %v, the bare driver's %v", got, want)
			}
		})
	}
}

func TestReadOnlyTransactionsThatGoToThePrimary(t *testing.T) {
	setUp := func(exec ...string) func(context.Context, *testing.T, *sql.Conn) {
		return func(ctx context.Context, t *testing.T, c *sql.Conn) {
			for _, text := range exec {
				run(ctx, t, c, text)
			}
		}
	}
	for _, tt := range []struct {
		name   string
		config func(*replicated.Config)
		before func(context.Context, *testing.T, *sql.Conn)
		opts   sql.TxOptions
		reason string
	}{
		{"asked for", func(c *replicated.Config) { c.ReadOnlyTx = replicated.ReadOnlyTxPrimary }, setUp(), sql.TxOptions{}, "tx-control"},
		{"serializable", func(*replicated.Config) {}, setUp(), sql.TxOptions{Isolation: sql.LevelSerializable}, "serializable"},
		{"pinned", func(*replicated.Config) {}, setUp("LISTEN jobs"), sql.TxOptions{}, "pinned"},
		{"after a write", func(*replicated.Config) {}, setUp("INSERT INTO t VALUES (1)"), sql.TxOptions{}, "own-write"},
		{"reads are off", func(c *replicated.Config) { c.Reads = replicated.ReadsOff }, setUp(), sql.TxOptions{}, "reads-off"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) {
				f := newFakes(t, 1, fakedb.PQLike)
				db := f.open(f.asPostgres(), tt.config)
				conn, err := db.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				tt.before(t.Context(), t, conn)
				f.routes()
				tt.opts.ReadOnly = true
				tx := begin(t, conn, &tt.opts)
				f.wantRoutes("primary " + tt.reason)
				wantOn(t.Context(), t, tx, "primary")
				if err := tx.Commit(); err != nil {
					t.Fatal(err)
				}
				if n := f.replicas[0].Stats().Begins; n != 0 {
					t.Errorf("%d begun on the replica", n)
				}
			})
		})
	}
}

// What is not a proven read does not run in a transaction on a replica, nor
// anywhere else; a function that is not known may, for the server lets it write
// nothing, but its connection is not used again.
func TestStatementsInAReadOnlyTransaction(t *testing.T) {
	for _, tt := range []struct {
		text    string
		refused bool
		pooled  bool // the connection goes back to the pool
	}{
		{"SELECT a FROM t", false, true},
		{"SELECT f(a) FROM t", false, false},
		{"INSERT INTO t VALUES (1)", true, true},
		{"SELECT a FROM t FOR UPDATE", true, true},
		{"CREATE TABLE x (a int)", true, true},
		{"CALL p()", true, true},
		{"SET work_mem = '1GB'", true, true},
		{"COMMIT", true, true},
	} {
		t.Run(tt.text, func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) {
				f := newFakes(t, 1, fakedb.PQLike)
				db := f.open(f.asPostgres())
				tx := begin(t, db, readOnlyTx)
				rows, err := tx.QueryContext(t.Context(), tt.text)
				if err == nil {
					err = rows.Close()
				}
				if readOnlyErr(err) != tt.refused || !tt.refused && err != nil {
					t.Errorf("error %v, want ErrReadOnly: %v", err, tt.refused)
				}
				if err != nil && !strings.Contains(err.Error(), "replicated.readonly_tx=primary") {
					t.Errorf("error %q does not name the setting", err)
				}
				if n := sent(f.replicas[0], tt.text); (n == 0) != tt.refused {
					t.Errorf("the replica got it %d times", n)
				}
				if n := sent(f.primary, tt.text); n != 0 {
					t.Errorf("the primary got it %d times", n)
				}
				if err := tx.Commit(); err != nil {
					t.Error(err)
				}
				want := 1 // the prober's
				if tt.pooled {
					want++
				}
				if n := f.replicas[0].Stats().OpenConns; n != want {
					t.Errorf("the replica has %d connections, want %d", n, want)
				}
			})
		})
	}
}

func TestUnprovenFunctionWhereOnlyReadsAreAllowed(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		db := f.open()
		tx := begin(t, db, readOnlyTx)
		_, err := tx.QueryContext(replicated.WithReadOnly(t.Context()), "SELECT f(a) FROM t")
		if !readOnlyErr(err) {
			t.Errorf("error %v, want ErrReadOnly", err)
		}
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	})
}

// COPY is sent when it is prepared, past the router: it must be refused all the
// same.
func TestCopyInAReadOnlyTransaction(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.PQLike)
		db := f.open(f.asPostgres())
		const text = "COPY t (a) FROM STDIN"
		tx := begin(t, db, readOnlyTx)
		stmt, err := tx.PrepareContext(t.Context(), text)
		if !readOnlyErr(err) {
			t.Errorf("error %v, want ErrReadOnly", err)
		}
		if err == nil {
			_ = stmt.Close()
		}
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
		stmt, err = db.PrepareContext(replicated.WithReadOnly(t.Context()), text)
		if !readOnlyErr(err) {
			t.Errorf("with WithReadOnly: error %v, want ErrReadOnly", err)
		}
		if err == nil {
			_ = stmt.Close()
		}
		if n := f.primary.Stats().Prepares; n != 0 {
			t.Errorf("the primary prepared it %d times", n)
		}
	})
}

// The replica's connection dies: that costs the transaction, and nothing else.
func TestReadOnlyTransactionLosesItsReplica(t *testing.T) {
	for _, shape := range []fakedb.Shape{fakedb.Full, fakedb.MySQLLike, fakedb.PQLike, fakedb.PgxLike} {
		t.Run(shape.String(), func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) {
				f := newFakes(t, 1, shape)
				db := f.open()
				db.SetMaxOpenConns(1)
				tx := begin(t, db, readOnlyTx)
				wantOn(t.Context(), t, tx, "replica")
				f.replicas[0].Kill()
				var ne *replicated.NodeError
				for range 2 {
					err := tx.QueryRowContext(t.Context(), plainSelect).Scan(new(string))
					if !errors.As(err, &ne) || ne.Node != "replica1" || isBadConn(err) {
						t.Errorf("error %v, want a NodeError of the replica", err)
					}
				}
				if err := tx.Commit(); err == nil || isBadConn(err) {
					t.Errorf("Commit: %v", err)
				}
				if n := sent(f.primary, plainSelect); n != 0 {
					t.Error("it went on on the primary, whose snapshot is another")
				}
				wantOn(t.Context(), t, db, "replica")
				if n := f.primary.Stats().Connects; n != 1 {
					t.Errorf("the primary was connected to %d times", n)
				}
			})
		})
	}
}

// The replica fails at BEGIN, before anything was read: another begins it.
func TestReadOnlyTransactionBeginsElsewhere(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 2, fakedb.Full)
		db := f.open()
		for _, r := range f.replicas {
			r.Fail(fakedb.OpBegin, -1, io.ErrUnexpectedEOF)
		}
		tx := begin(t, db, readOnlyTx)
		f.wantRoutes("replica read failed", "replica read failed", "primary no-replica")
		wantOn(t.Context(), t, tx, "primary")
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	})
}

func TestReadOnlyTransactionIsCancelled(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		db := f.open()
		ctx, cancel := context.WithCancel(t.Context())
		tx, err := db.BeginTx(ctx, readOnlyTx)
		if err != nil {
			t.Fatal(err)
		}
		wantOn(t.Context(), t, tx, "replica")
		cancel()
		synctest.Wait()
		r := f.replicas[0].Stats()
		if r.Rollbacks != 1 || r.OpenConns != 1 {
			t.Errorf("rolled back %d times, %d connections open, want one each: the prober's is left", r.Rollbacks, r.OpenConns)
		}
		if n := f.primary.Stats().Connects; n != 1 {
			t.Errorf("the primary was connected to %d times", n)
		}
	})
}

func TestCommitWhoseAnswerIsLost(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		unknown    bool
	}{
		{"after a write", "INSERT INTO t VALUES (1)", true},
		{"after reads", "SELECT a FROM t", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) {
				f := newFakes(t, 1, fakedb.Full)
				db := f.open()
				tx := begin(t, db, nil)
				run(t.Context(), t, tx, tt.text)
				f.primary.Fail(fakedb.OpCommit, 1, io.ErrUnexpectedEOF)
				err := tx.Commit()
				if err == nil || isBadConn(err) || errors.Is(err, replicated.ErrOutcomeUnknown) != tt.unknown {
					t.Errorf("error %v, want ErrOutcomeUnknown: %v", err, tt.unknown)
				}
				if n := f.primary.Stats().OpenConns; n != 0 {
					t.Errorf("%d connections are left", n)
				}
				if tt.unknown {
					wantOn(t.Context(), t, db, "primary")
				} else {
					wantOn(t.Context(), t, db, "replica")
				}
			})
		})
	}
}

func TestBeginOnAPrimaryThatDiedWhileIdle(t *testing.T) {
	eachShape(t, func(t *testing.T, shape fakedb.Shape) {
		f := newFakes(t, 0, shape)
		db := f.open()
		f.primary.Kill()
		tx := begin(t, db, nil)
		run(t.Context(), t, tx, "INSERT INTO t VALUES (1)")
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
	})
}
