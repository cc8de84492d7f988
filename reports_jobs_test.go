package replicated_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"
	"github.com/sqlreplicated/replicated/internal/faketime"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// Jobs that users of other libraries have reported: claimed by several workers, started
// before their row was there, and ending the replicas' part in a worker's life. By the
// numbers of the list that they were taken from.

// skipsLocked tells whether the server knows SKIP LOCKED: PostgreSQL since 9.5, MariaDB
// since 10.6, MySQL since 8.0.
func skipsLocked(c *replicatedtest.Cluster) bool {
	return c.Engine() == replicatedtest.Postgres || c.Engine() == replicatedtest.MariaDB && !strings.Contains(c.Version(), "10.5")
}

// Workers claimed their jobs on a replica, where a lock is nobody else's: every worker
// got the same one. Claims run on the primary however they lock, and each job has one
// worker.
// https://github.com/OLIOEX/janus-ar/pull/177
func TestReportA11ClaimsOfQueueWorkersOnServers(t *testing.T) {
	const jobs, workers = 40, 5
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		name := table(t, c, "id int PRIMARY KEY, worker int NULL")
		primary := bare(t, c.Primary())
		for id := range jobs {
			mustExec(t, primary, fmt.Sprintf("INSERT INTO %s (id) VALUES (%d)", name, id))
		}
		caughtUp(t, c)
		db := open(t, c)
		claim := "SELECT id FROM " + name + " WHERE worker IS NULL ORDER BY id LIMIT 1 FOR UPDATE"
		locking := []string{claim, "SELECT id FROM " + name + " WHERE id = 1\nLOCK IN SHARE MODE"}
		switch {
		case c.Engine() == replicatedtest.Postgres:
			claim += " SKIP LOCKED"
			locking = []string{claim, "SELECT id FROM " + name + " FOR UPDATE NOWAIT", "SELECT id FROM " + name + " FOR SHARE",
				"SELECT id FROM " + name + " FOR NO KEY UPDATE", "SELECT id FROM " + name + " AS j FOR KEY SHARE OF j SKIP LOCKED"}
		case skipsLocked(c):
			claim += " SKIP LOCKED"
			locking = append(locking, claim, "SELECT id FROM "+name+" FOR UPDATE NOWAIT", "SELECT id FROM "+name+" FOR UPDATE WAIT 1")
		}
		c.ResetStatements()
		for _, text := range locking { // outside a transaction too
			if err := toTheEndOf(db.QueryContext(t.Context(), text)); err != nil {
				t.Errorf("%s: %v", text, err)
			}
			onlyPrimary(t, c, text)
		}

		var mu sync.Mutex
		var claimed []int
		var wg sync.WaitGroup
		for worker := range workers {
			wg.Go(func() {
				for {
					id, err := claimOne(t.Context(), db, claim, name, worker)
					if errors.Is(err, sql.ErrNoRows) {
						return
					}
					if err != nil {
						t.Errorf("worker %d: %v", worker, err)
						return
					}
					mu.Lock()
					claimed = append(claimed, id)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		slices.Sort(claimed)
		for id := range jobs {
			if !slices.Contains(claimed, id) {
				t.Errorf("job %d was claimed by nobody", id)
			}
		}
		if len(claimed) != jobs {
			t.Errorf("%d jobs were claimed %d times: %v", jobs, len(claimed), claimed)
		}
		onlyPrimary(t, c, claim)
	})
}

// claimOne claims a job in a transaction, as most queues do.
func claimOne(ctx context.Context, db *sql.DB, claim, table string, worker int) (id int, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	if err := tx.QueryRowContext(ctx, claim).Scan(&id); err != nil {
		return 0, errors.Join(err, tx.Rollback())
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("UPDATE %s SET worker = %d WHERE id = %d", table, worker, id)); err != nil {
		return 0, errors.Join(err, tx.Rollback())
	}
	return id, tx.Commit()
}

// After one job that wrote, all later jobs of a long-lived worker used the writer. A
// job's scope ends with it, however it ends, and whatever it leaves on the connection
// that all of them use.
// https://github.com/laravel/framework/issues/37646
func TestReportA23JobsAfterOneThatWroteOnServers(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		name := table(t, c, "id int")
		db, _ := process(t, c)
		db.SetMaxOpenConns(1)
		count := "SELECT count(*) FROM " + name
		insert := "INSERT INTO " + name + " (id) VALUES (1)"
		reading := func(ctx context.Context) error {
			var n int
			if err := db.QueryRowContext(ctx, count).Scan(&n); err != nil {
				return err
			}
			if n != 0 {
				return fmt.Errorf("%d rows, where replicas have none", n)
			}
			return nil
		}
		failed := errors.New("the job failed")
		writing := map[string]func(ctx context.Context) error{
			"writes": func(ctx context.Context) error {
				if _, err := db.ExecContext(ctx, insert); err != nil {
					return err
				}
				var n int
				if err := db.QueryRowContext(ctx, count).Scan(&n); err != nil || n == 0 {
					t.Errorf("the job that wrote reads %d rows: %v", n, err)
				}
				return nil
			},
			"fails": func(ctx context.Context) error {
				if _, err := db.ExecContext(ctx, insert); err != nil {
					t.Error(err)
				}
				return failed
			},
			"panics in a transaction": func(ctx context.Context) error {
				tx, err := db.BeginTx(ctx, nil)
				if err != nil {
					t.Error(err)
				}
				defer func() { _ = tx.Rollback() }()
				if _, err := tx.ExecContext(ctx, insert); err != nil {
					t.Error(err)
				}
				panic(failed)
			},
			"is called off in a transaction": func(ctx context.Context) error {
				ctx, cancel := context.WithCancel(ctx)
				tx, err := db.BeginTx(ctx, nil)
				if err != nil {
					t.Error(err)
				}
				if _, err := tx.ExecContext(ctx, insert); err != nil {
					t.Error(err)
				}
				cancel()
				if err := tx.Commit(); err == nil {
					return errors.New("it has committed")
				}
				return failed // by the context, or since database/sql has rolled it back already
			},
			"calls a job": func(ctx context.Context) error {
				return replicated.Run(ctx, func(ctx context.Context) error {
					_, err := db.ExecContext(ctx, insert)
					return err
				})
			},
		}
		run := func(job func(context.Context) error) (err error) {
			defer func() {
				if p := recover(); p != nil {
					err = p.(error)
				}
			}()
			return replicated.Run(t.Context(), job)
		}
		must(t, run(reading))
		pauseReplicas(t, c)
		for what, job := range writing {
			t.Run(what, func(t *testing.T) {
				if err := run(job); err != nil && !errors.Is(err, failed) && !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				c.ResetStatements()
				must(t, run(reading))
				must(t, replicated.RunReadOnly(t.Context(), reading))
				onlyReplicas(t, c, count)
			})
		}
	})
}

// The same by time, and without sessions: the next job waits for the window at most.
func TestReportA23JobsWithoutSessions(t *testing.T) {
	eachShape(t, func(t *testing.T, shape fakedb.Shape) {
		f := newFakes(t, 2, shape)
		db := f.open()
		db.SetMaxOpenConns(1)
		wantOn(t.Context(), t, db, "replica")
		run(t.Context(), t, db, "INSERT INTO t VALUES (1)")
		wantOn(t.Context(), t, db, "primary")
		time.Sleep(5 * time.Second) // the default window
		wantOn(t.Context(), t, db, "replica")
	})
}

// A job that was started right after a commit did not find its row. With the token in
// its payload it does, and so it does where it asks for what is fresh, for the primary,
// or for the row by its key; not where it does nothing.
// https://github.com/ankane/distribute_reads/issues/9
func TestReportA34JobFindsItsRowOnServers(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		name := table(t, c, "id int PRIMARY KEY")
		app, _ := process(t, c)
		worker, _ := process(t, c)
		find := "SELECT id FROM " + name + " WHERE id = " + placeholder(c.Engine(), 1)
		wantInt(t.Context(), t, app, -1, find, 7)
		wantInt(t.Context(), t, worker, -1, find, 7)
		resume := pauseReplicas(t, c)

		payload := map[string]string{}
		must(t, replicated.Run(t.Context(), func(ctx context.Context) error {
			tx, err := app.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			mustExec(t, tx, "INSERT INTO "+name+" (id) VALUES (7)")
			if err := tx.Commit(); err != nil {
				return err
			}
			return replicated.Inject(ctx, textMap(payload))
		}))
		if payload[replicated.TokenKey] == "" {
			t.Fatal("the payload has no token")
		}
		for what, scope := range map[string]func(context.Context) (context.Context, error){
			"extracted": func(ctx context.Context) (context.Context, error) { return replicated.Extract(ctx, textMap(payload)) },
			"token": func(ctx context.Context) (context.Context, error) {
				return replicated.WithToken(ctx, payload[replicated.TokenKey])
			},
			"fresh":   func(ctx context.Context) (context.Context, error) { return replicated.WithFresh(ctx), nil },
			"primary": func(ctx context.Context) (context.Context, error) { return replicated.WithPrimary(ctx), nil },
		} {
			must(t, replicated.RunReadOnly(t.Context(), func(ctx context.Context) error {
				ctx, err := scope(ctx)
				if err != nil {
					return err
				}
				if got := intOf(ctx, t, worker, find, 7); got != 7 {
					t.Errorf("a job with what is %s does not find its row", what)
				}
				return nil
			}))
		}
		must(t, replicated.Run(t.Context(), func(ctx context.Context) error {
			wantInt(ctx, t, worker, -1, find, 7) // what was reported
			var id int
			return replicated.QueryRowByKey(ctx, worker, find, 7).Scan(&id)
		}))
		// A job that was handed to another one by a worker that wrote nothing.
		must(t, replicated.Run(t.Context(), func(ctx context.Context) error {
			ctx, err := replicated.Extract(ctx, textMap(payload))
			if err != nil {
				return err
			}
			next := map[string]string{}
			if err := replicated.Inject(ctx, textMap(next)); err != nil {
				return err
			}
			if next[replicated.TokenKey] != payload[replicated.TokenKey] {
				t.Errorf("the token %q is passed on as %q", payload[replicated.TokenKey], next[replicated.TokenKey])
			}
			return nil
		}))
		resume()
		proven(t, worker)
		c.ResetStatements()
		ctx, err := replicated.Extract(t.Context(), textMap(payload))
		must(t, err)
		wantInt(ctx, t, worker, 7, find, 7)
		onlyReplicas(t, c, "FROM "+name+" WHERE id")
	})
}

// textMap is a carrier as OpenTelemetry's propagation.MapCarrier is one.
type textMap map[string]string

func (m textMap) Get(key string) string { return m[key] }
func (m textMap) Set(key, value string) { m[key] = value }
func (m textMap) Keys() (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}

var _ replicated.Carrier = textMap(nil)

// Locking reads that a replica would run are no reads for the driver in fake time
// either: no server has to refuse them.
func TestReportA11LockingReadsReachNoReplica(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 2, fakedb.Full)
		db := f.open()
		for _, text := range []string{
			"SELECT id FROM jobs ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED", "SELECT id FROM jobs FOR SHARE NOWAIT",
			"SELECT id FROM jobs FOR UPDATE OF jobs", "SELECT id FROM jobs LOCK IN SHARE MODE",
		} {
			if err := toTheEndOf(db.QueryContext(t.Context(), text)); err != nil {
				t.Errorf("%s: %v", text, err)
			}
			if n := sent(f.primary, text); n != 1 {
				t.Errorf("%s has reached the primary %d times", text, n)
			}
		}
	})
}
