package replicated_test

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"
	"github.com/sqlreplicated/replicated/internal/faketime"
)

// Faults that users of other libraries have reported, by the numbers of the list that
// they were taken from. The same with real servers is in reports_servers_test.go.

// Prepared reads always used the writer. They run where others do: on the replicas, on
// the primary while a write obliges them to, and on the replicas again; each server
// prepares the text when it first runs it.
func TestReportA20PreparedReads(t *testing.T) {
	eachShape(t, func(t *testing.T, shape fakedb.Shape) {
		f := newFakes(t, 2, shape)
		db := f.open()
		db.SetMaxOpenConns(1)
		stmt := prepare(t, db, selectOne)
		defer stmt.Close()
		if n := f.prepares(); n > 1 {
			t.Errorf("Prepare has asked %d servers", n)
		}
		run100 := func(role string) {
			t.Helper()
			for range 100 {
				wantStmtOn(t, stmt, role)
			}
		}
		prepared := func(want ...int) {
			t.Helper()
			if shape == fakedb.Minimal { // its drivers prepare for everything
				return
			}
			for i, s := range f.servers() {
				if n := s.Stats().Prepares; n != want[i] {
					t.Errorf("%s has prepared it %d times, want %d", s.Name(), n, want[i])
				}
			}
		}
		run100("replica")
		prepared(0, 1, 1)
		run(t.Context(), t, db, "INSERT INTO t VALUES (1)")
		run100("primary")
		prepared(1, 1, 1)
		time.Sleep(time.Minute)
		run100("replica")
		wantStmtOn(t, stmt, "replica")
		if r := f.replicas[0]; shape != fakedb.Minimal && r.Stats().Prepares > 2 { // idle for a minute, its connection was closed
			t.Errorf("%s has prepared it %d times", r.Name(), r.Stats().Prepares)
		}
	})
}

// wantStmtOn runs a prepared read and fails the test unless the primary, or a replica,
// answered.
func wantStmtOn(t *testing.T, stmt *sql.Stmt, role string, args ...any) {
	t.Helper()
	if len(args) == 0 {
		args = []any{1}
	}
	var node string
	if err := stmt.QueryRowContext(t.Context(), args...).Scan(&node); err != nil {
		t.Fatal(err)
	}
	if role == "replica" == (node == "primary") {
		t.Errorf("the prepared read was served by %s, want %s", node, role)
	}
}

// … in transactions too: those that write have their reads on the primary, those that
// are read-only on a replica.
func TestReportA20PreparedReadsInTransactions(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 2, fakedb.Full)
		db := f.open()
		stmt := prepare(t, db, selectOne)
		defer stmt.Close()
		for opts, role := range map[*sql.TxOptions]string{nil: "primary", readOnlyTx: "replica"} {
			tx := begin(t, db, opts)
			for range 3 {
				wantStmtOn(t, tx.StmtContext(t.Context(), stmt), role)
			}
			if err := tx.Commit(); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute) // a transaction that may have written
			wantStmtOn(t, stmt, "replica")
		}
	})
}

// A replica that goes away takes its prepared statements with it, and no execution.
func TestReportA20PreparedReadsOutliveReplicas(t *testing.T) {
	eachShape(t, func(t *testing.T, shape fakedb.Shape) {
		f := newFakes(t, 2, shape)
		db := f.open(func(c *replicated.Config) { c.BreakerFailures = 100 })
		stmt := prepare(t, db, selectOne)
		defer stmt.Close()
		for i := range 20 {
			f.replicas[i%2].Kill()
			wantStmtOn(t, stmt, "replica")
		}
		for _, r := range f.replicas {
			r.Down(errors.New("refused"))
		}
		wantStmtOn(t, stmt, "primary")
		for _, r := range f.replicas {
			r.Heal()
		}
		wantStmtOn(t, stmt, "replica")
	})
}

// unreachable are the ways in which a dial fails.
var unreachable = map[string]func(context.Context) error{
	"port closed": func(context.Context) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	},
	"no such host": func(context.Context) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "db2", IsNotFound: true}}
	},
	"no name server": func(context.Context) error {
		return &net.DNSError{Err: "i/o timeout", Name: "db2", IsTimeout: true, IsTemporary: true}
	},
	"no route": func(context.Context) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}
	},
	"black hole": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	"hangs up":   func(context.Context) error { return io.EOF },
	"starts up":  func(context.Context) error { return pgError("57P03") },
}

// Reads failed while a replica could not be reached. They go on, on the next one and
// then on the primary; once it is known, nobody pays for the dial.
func TestReportA25UnreachableReplica(t *testing.T) {
	for name, dial := range unreachable {
		t.Run(name, func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) {
				f := newFakes(t, 2, fakedb.Full)
				db := f.open()
				const timeout = 2 * time.Second // replicated.connect_timeout
				for i, role := range []string{"replica", "primary"} {
					r := f.replicas[i]
					gauge := gaugeDials(r, dial)
					r.Kill()
					began := time.Now()
					for range 100 {
						once := time.Now()
						wantOn(t.Context(), t, db, role)
						if took := time.Since(once); took > timeout {
							t.Errorf("a read took %v", took)
						}
					}
					if took := time.Since(began); took > 3*timeout {
						t.Errorf("a hundred reads took %v, want three dials at most", took)
					}
					if n := gauge.total.Load(); n > 5 { // and what the probe asks
						t.Errorf("a hundred reads have dialled %s %d times", r.Name(), n)
					}
					began = time.Now()
					for range 100 {
						wantOn(t.Context(), t, db, role)
					}
					if took := time.Since(began); took > 0 {
						t.Errorf("with %s taken out a hundred reads took %v", r.Name(), took)
					}
				}
			})
		})
	}
}

// The policy to fail instead: beyond a limit the primary serves no reads for want of a
// replica. What belongs to it is served all the same.
func TestReportA25LimitOfThePrimary(t *testing.T) {
	for name, dial := range unreachable {
		t.Run(name, func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) {
				f := newFakes(t, 1, fakedb.Full)
				db := f.open(limit(1))
				gaugeDials(f.replicas[0], dial)
				f.replicas[0].Kill()
				rows, err := db.QueryContext(t.Context(), plainSelect)
				if err != nil {
					t.Fatal(err)
				}
				for range 10 {
					_, err := db.QueryContext(t.Context(), plainSelect)
					if !errors.Is(err, replicated.ErrNoReplica) || isBadConn(err) {
						t.Errorf("error %v, want ErrNoReplica", err)
					}
				}
				run(replicated.WithUntracked(t.Context()), t, db, "INSERT INTO t VALUES (1)")
				if err := rows.Close(); err != nil {
					t.Error(err)
				}
				wantOn(t.Context(), t, db, "primary")
			})
		})
	}
}

// A pure read opened a connection to the primary as well, so that reads died with it
// and idle connections flooded it. No kind of read does.
func TestReportA26PureReadsOpenNoPrimaryConnection(t *testing.T) {
	eachShape(t, func(t *testing.T, shape fakedb.Shape) {
		for _, down := range []bool{false, true} {
			f := newFakes(t, 2, shape)
			if down {
				f.primary.Down(errors.New("refused"))
			}
			db := sql.OpenDB(f.connector())
			db.SetMaxIdleConns(50)
			hold := f.replicas[0].Hold(fakedb.OpQuery) // so that there are many at a time
			other := f.replicas[1].Hold(fakedb.OpQuery)
			done := make(chan error)
			for range 50 {
				go func() { done <- db.QueryRowContext(t.Context(), plainSelect).Scan(new(string)) }()
			}
			synctest.Wait()
			hold.Release()
			other.Release()
			for range 50 {
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
			for name, read := range pureReads {
				if err := read(t.Context(), db); err != nil && !refusesReadOnlyTx(err) {
					t.Errorf("%s: %v", name, err)
				}
			}
			if n := db.Stats().OpenConnections; n < 50 {
				t.Errorf("%d connections are in the pool", n)
			}
			// One asks who the primary is, and there may be as many attempts as it is down.
			if n := f.primary.Stats().OpenConns; n > 1 || down && n > 0 {
				t.Errorf("the primary has %d connections (down: %v)", n, down)
			}
			if !down {
				run(t.Context(), t, db, "INSERT INTO t VALUES (1)")
				if n := f.primary.Stats().OpenConns; n > 2 {
					t.Errorf("one write has opened %d connections", n)
				}
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

func refusesReadOnlyTx(err error) bool {
	return err.Error() == "sql: driver does not support read-only transactions"
}

var pureReads = map[string]func(context.Context, *sql.DB) error{
	"query": func(ctx context.Context, db *sql.DB) error {
		rows, err := db.QueryContext(ctx, plainSelect)
		if err != nil {
			return err
		}
		return rows.Close()
	},
	"with arguments": func(ctx context.Context, db *sql.DB) error {
		return db.QueryRowContext(ctx, selectOne, 1).Scan(new(string))
	},
	"prepared": func(ctx context.Context, db *sql.DB) error {
		stmt, err := db.PrepareContext(ctx, selectOne)
		if err != nil {
			return err
		}
		defer stmt.Close()
		return stmt.QueryRowContext(ctx, 1).Scan(new(string))
	},
	"on a connection": func(ctx context.Context, db *sql.DB) error {
		conn, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		return conn.QueryRowContext(ctx, plainSelect).Scan(new(string))
	},
	"in a transaction": func(ctx context.Context, db *sql.DB) error {
		tx, err := db.BeginTx(ctx, readOnlyTx)
		if err != nil {
			return err
		}
		defer tx.Rollback() //nolint:errcheck // over already, mostly
		if err := tx.QueryRowContext(ctx, plainSelect).Scan(new(string)); err != nil {
			return err
		}
		return tx.Commit()
	},
}
