package replicated_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"
	"github.com/sqlreplicated/replicated/internal/faketime"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// A job reads its own writes, those around it read them too, and other jobs do not have
// to.
func TestRun(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 2, fakedb.Full)
		db := f.open()
		outer, outside := replicated.WithSession(t.Context())
		var inside, nested *replicated.Session
		err := replicated.Run(outer, func(ctx context.Context) error {
			inside = replicated.SessionFromContext(ctx)
			wantOn(ctx, t, db, "replica")
			err := replicated.Run(ctx, func(ctx context.Context) error {
				nested = replicated.SessionFromContext(ctx)
				run(ctx, t, db, "INSERT INTO t VALUES (1)")
				wantOn(ctx, t, db, "primary")
				return nil
			})
			wantOn(ctx, t, db, "primary")
			return err
		})
		if err != nil {
			t.Error(err)
		}
		if inside == nil || inside == outside || nested == nil || nested == inside {
			t.Error("a job has no session of its own")
		}
		if !inside.Wrote() || !nested.Wrote() || !outside.Wrote() {
			t.Error("a job's write is not one of those around it")
		}
		wantOn(outer, t, db, "primary")
		if err := replicated.Run(t.Context(), func(ctx context.Context) error {
			wantOn(ctx, t, db, "replica")
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
}

// What a job ends in is its caller's.
func TestRunEndsAsItsFunction(t *testing.T) {
	failed := errors.New("failed")
	for name, run := range map[string]func(context.Context, func(context.Context) error) error{
		"Run": replicated.Run, "RunReadOnly": replicated.RunReadOnly,
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(t.Context(), func(context.Context) error { return failed }); err != failed {
				t.Errorf("error %v", err)
			}
			if err := run(t.Context(), func(context.Context) error { return nil }); err != nil {
				t.Errorf("error %v", err)
			}
			defer func() {
				if p := recover(); p != failed {
					t.Errorf("panic %v", p)
				}
			}()
			_ = run(t.Context(), func(context.Context) error { panic(failed) })
		})
	}
	t.Run("its context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), failed, "kept"))
		if err := replicated.RunReadOnly(ctx, func(ctx context.Context) error {
			if ctx.Value(failed) != "kept" {
				t.Error("the values are lost")
			}
			cancel()
			return ctx.Err()
		}); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
}

// Nothing that may write leaves the process, in whatever is nested inside; reads do, and
// the caller's own context is as it was.
func TestRunReadOnly(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 2, fakedb.Full)
		db := f.open()
		f.primary.Forget()
		job := func(ctx context.Context) error {
			wantOn(ctx, t, db, "replica")
			for _, text := range []string{"INSERT INTO t VALUES (1)", "SELECT id FROM jobs FOR UPDATE SKIP LOCKED", "SELECT f(1)", "BEGIN"} {
				if _, err := db.ExecContext(ctx, text); !readOnlyErr(err) {
					t.Errorf("%s: %v, want ErrReadOnly", text, err)
				}
			}
			if _, err := db.BeginTx(ctx, nil); !readOnlyErr(err) {
				t.Errorf("a read-write transaction: %v, want ErrReadOnly", err)
			}
			tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
			if err != nil {
				return err
			}
			wantOn(ctx, t, tx, "replica")
			return tx.Commit()
		}
		if err := replicated.RunReadOnly(t.Context(), job); err != nil {
			t.Error(err)
		}
		if err := replicated.RunReadOnly(t.Context(), func(ctx context.Context) error { return replicated.Run(ctx, job) }); err != nil {
			t.Error(err)
		}
		if got := f.primary.Texts(); len(got) != 0 {
			t.Errorf("%q has reached the primary", got)
		}
		run(t.Context(), t, db, "INSERT INTO t VALUES (1)")
	})
}

// Jobs at the same time: each follows its own writes.
func TestRunConcurrently(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 2, fakedb.Full)
		db := f.open()
		db.SetMaxOpenConns(4)
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				err := replicated.Run(t.Context(), func(ctx context.Context) error {
					role := "replica"
					if i%2 == 0 {
						run(ctx, t, db, "INSERT INTO t VALUES (1)")
						role = "primary"
					}
					for range 5 {
						var node string
						if err := db.QueryRowContext(ctx, plainSelect).Scan(&node); err != nil {
							return err
						}
						if !strings.HasPrefix(node, role) {
							t.Errorf("job %d reads from %s, want %s", i, node, role)
						}
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}

// By the servers' word: a job that must not write reads on replicas, and what it tries
// to write reaches nobody; the one after it writes.
func TestRunOnServers(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		name := table(t, c, "id int")
		db, _ := process(t, c)
		count := "SELECT count(*) FROM " + name
		insert := "INSERT INTO " + name + " (id) VALUES (1)"
		pauseReplicas(t, c)
		c.ResetStatements()
		must(t, replicated.RunReadOnly(t.Context(), func(ctx context.Context) error {
			wantInt(ctx, t, db, 0, count)
			if _, err := db.ExecContext(ctx, insert); !readOnlyErr(err) {
				t.Errorf("a write in a job that must not: %v", err)
			}
			return nil
		}))
		onlyReplicas(t, c, count)
		if got := ranOn(c, "INSERT INTO "+name); len(got) > 0 {
			t.Errorf("the write has reached %v", got)
		}
		must(t, replicated.Run(t.Context(), func(ctx context.Context) error {
			if _, err := db.ExecContext(ctx, insert); err != nil {
				return err
			}
			wantInt(ctx, t, db, 1, count)
			return nil
		}))
		must(t, replicated.Run(t.Context(), func(ctx context.Context) error {
			wantInt(ctx, t, db, 0, count)
			return nil
		}))
	})
}
