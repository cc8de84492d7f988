package replicated_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"
	"github.com/sqlreplicated/replicated/internal/faketime"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// Pins that users of other libraries have reported: those that were missing, those that
// stayed, and those that reached others. By the numbers of the list that they were taken
// from.

// lockTexts take and release a lock by name; both answer with 1.
func lockTexts(e replicatedtest.Engine, n int) (take, try, release string) {
	if e == replicatedtest.Postgres {
		return fmt.Sprintf("SELECT 1 FROM pg_advisory_lock(%d)", n),
			fmt.Sprintf("SELECT pg_try_advisory_lock(%d)::int", n),
			fmt.Sprintf("SELECT pg_advisory_unlock(%d)::int", n)
	}
	return fmt.Sprintf("SELECT GET_LOCK('report %d', 60)", n),
		fmt.Sprintf("SELECT GET_LOCK('report %d', 0)", n),
		fmt.Sprintf("SELECT RELEASE_LOCK('report %d')", n)
}

// A migration took its lock on a replica and released it on the primary, which did not
// have it. All that it runs on its connection is the primary's, the lock is one that
// others meet, and who gets it next sees what the migration has written.
// https://github.com/instacart/makara/pull/198
func TestReportA2MigrationLockOnServers(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		name := table(t, c, "version int")
		take, try, release := lockTexts(c.Engine(), 198)
		first, _ := process(t, c)
		second, _ := process(t, c)
		version := "SELECT COALESCE(MAX(version), 0) FROM " + name
		wantInt(t.Context(), t, first, 0, version)
		wantInt(t.Context(), t, second, 0, version)
		resume := pauseReplicas(t, c)
		c.ResetStatements()

		conn, err := first.Conn(t.Context())
		must(t, err)
		defer conn.Close()
		wantInt(t.Context(), t, conn, 1, take)
		wantInt(t.Context(), t, conn, 0, version)
		waiter, err := second.Conn(t.Context())
		must(t, err)
		defer waiter.Close()
		wantInt(t.Context(), t, waiter, 0, try)
		type outcome struct {
			locked, version int
			err             error
		}
		got := make(chan outcome, 1)
		go func() {
			var o outcome
			if o.err = waiter.QueryRowContext(t.Context(), take).Scan(&o.locked); o.err == nil {
				o.err = waiter.QueryRowContext(t.Context(), version).Scan(&o.version)
			}
			got <- o
		}()
		mustExec(t, conn, "CREATE INDEX report_a2 ON "+name+" (version)")
		mustExec(t, conn, "INSERT INTO "+name+" (version) VALUES (1)")
		wantInt(t.Context(), t, conn, 1, version)
		wantInt(t.Context(), t, conn, 1, release)
		if o := <-got; o != (outcome{1, 1, nil}) {
			t.Errorf("who got the lock next: %+v, want it to see version 1", o)
		}
		wantInt(t.Context(), t, waiter, 1, release)
		for _, part := range []string{name, take, try, release} {
			onlyPrimary(t, c, part)
		}
		must(t, conn.Close())
		must(t, waiter.Close())

		// And nothing of that stays.
		resume()
		proven(t, first)
		c.ResetStatements()
		wantInt(t.Context(), t, first, 1, version)
		onlyReplicas(t, c, version)
	})
}

// leaver does something on a pooled connection that has to keep that check-out's reads
// on the primary, and no others'.
type leaver struct {
	name string
	do   []string
}

func leavers(e replicatedtest.Engine, table string) []leaver {
	take, _, release := lockTexts(e, 224)
	all := []leaver{
		{"a write", []string{"INSERT INTO " + table + " (id) VALUES (1)"}},
		{"a lock", []string{take, release}},
		{"a transaction", []string{"BEGIN", "INSERT INTO " + table + " (id) VALUES (2)", "COMMIT"}},
		{"a transaction that is rolled back", []string{"BEGIN", "INSERT INTO " + table + " (id) VALUES (3)", "ROLLBACK"}},
		{"a locking read", []string{"SELECT id FROM " + table + " FOR UPDATE"}},
	}
	if e == replicatedtest.Postgres {
		return append(all, leaver{"a temporary table", []string{"CREATE TEMPORARY TABLE report_tmp (id int)", "DROP TABLE report_tmp"}},
			leaver{"a setting", []string{"SET extra_float_digits = 2"}}, leaver{"a channel", []string{"LISTEN report", "UNLISTEN *"}})
	}
	return append(all, leaver{"a temporary table", []string{"CREATE TEMPORARY TABLE report_tmp (id int)", "DROP TEMPORARY TABLE report_tmp"}},
		leaver{"a user variable", []string{"SET @report = 1"}})
}

// What one request had done kept the reads of others on the primary, by a thread that
// both used. Whatever a session does on a connection, the next one's reads on the same
// connection run on replicas at once; its own do not.
// https://github.com/instacart/makara/issues/224
func TestReportA4PinsReachNobodyElseOnServers(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		name := table(t, c, "id int")
		db, _ := process(t, c)
		db.SetMaxOpenConns(1) // all use it in turn
		read := "SELECT count(*) FROM " + name
		wantInt(t.Context(), t, db, 0, read)
		pauseReplicas(t, c)
		for _, l := range leavers(c.Engine(), name) {
			t.Run(l.name, func(t *testing.T) {
				ctx := inSession(t)
				conn, err := db.Conn(ctx)
				must(t, err)
				for _, text := range l.do {
					if _, err := conn.ExecContext(ctx, text); err != nil {
						t.Fatalf("%s: %v", text, err)
					}
				}
				must(t, conn.Close())
				c.ResetStatements()
				wantInt(inSession(t), t, db, 0, read)
				onlyReplicas(t, c, read)
			})
		}
		ctx := inSession(t)
		mustExecIn(ctx, t, db, "INSERT INTO "+name+" (id) VALUES (4)")
		c.ResetStatements()
		if got := intOf(ctx, t, db, read); got < 1 {
			t.Errorf("the session that wrote reads %d rows", got)
		}
		onlyPrimary(t, c, read)
	})
}

func mustExecIn(ctx context.Context, t *testing.T, db execer, text string) {
	t.Helper()
	if _, err := db.ExecContext(ctx, text); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// Many at a time: each goroutine's reads follow its own writes, and nobody else's.
func TestReportA4GoroutinesAreApart(t *testing.T) {
	eachShape(t, func(t *testing.T, shape fakedb.Shape) {
		f := newFakes(t, 2, shape)
		db := f.open(func(c *replicated.Config) { c.Consistency = replicated.ConsistencySession })
		db.SetMaxOpenConns(3)
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				ctx, _ := replicated.WithSession(t.Context())
				role := "replica"
				for j := range 10 {
					if i%2 == 0 && j == 5 {
						run(ctx, t, db, "INSERT INTO t VALUES (1)")
						role = "primary"
					}
					var node string
					if err := db.QueryRowContext(ctx, plainSelect).Scan(&node); err != nil {
						t.Error(err)
					} else if !strings.HasPrefix(node, role) {
						t.Errorf("goroutine %d reads from %s, want %s", i, node, role)
					}
				}
			})
		}
		wg.Wait()
	})
}

// A word inside an identifier kept every page on the primary, and filled it with
// connections. Words count where they are statements.
// https://github.com/stuttter/ludicrousdb/issues/94
func TestReportA9WordsInIdentifiersOnServers(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		name := table(t, c, "id int, autoload varchar(10), for_update int, lock_in_share_mode int, last_insert int, updated int")
		db := open(t, c)
		for _, where := range []string{
			"autoload = 'yes'", "autoload = 'no; DELETE FROM x'", "for_update = 1", "lock_in_share_mode = 0 OR last_insert > 1",
			"updated > 0 -- update", "id = 1 /* insert into x */", "autoload = 'for update'", "autoload LIKE '%replace into%'",
		} {
			text := "SELECT id FROM " + name + " WHERE " + where
			c.ResetStatements()
			var readers sync.WaitGroup
			for range 10 {
				readers.Go(func() {
					for range 5 {
						if err := toTheEndOf(db.QueryContext(t.Context(), text)); err != nil {
							t.Errorf("%s: %v", text, err)
						}
					}
				})
			}
			readers.Wait()
			onlyReplicas(t, c, "FROM "+name)
		}
		for why, n := range stats(t, db).Primary {
			if n > 0 {
				t.Errorf("%d statements on the primary (%v)", n, why)
			}
		}
	})
}

// A server in worker mode did not come back to the replicas after the first request that
// wrote. A scope ends with its request: the next one's reads run on replicas while those
// of the one that wrote must not yet, and, without scopes, once there is proof.
// https://github.com/doctrine/DoctrineBundle/issues/2154
func TestReportA24WorkerModeServerOnServers(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		name := table(t, c, "id int")
		read := "SELECT count(*) FROM " + name
		for _, sessions := range []bool{true, false} {
			t.Run(fmt.Sprintf("sessions=%v", sessions), func(t *testing.T) {
				db, _ := process(t, c)
				before := intOf(t.Context(), t, db, read)
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					ctx := r.Context()
					if sessions {
						ctx, _ = replicated.WithSession(ctx)
					}
					if r.Method == http.MethodPost {
						if _, err := db.ExecContext(ctx, "INSERT INTO "+name+" (id) VALUES (1)"); err != nil {
							http.Error(w, err.Error(), http.StatusInternalServerError)
							return
						}
					}
					var n int
					if err := db.QueryRowContext(ctx, read).Scan(&n); err != nil {
						http.Error(w, err.Error(), http.StatusInternalServerError)
						return
					}
					fmt.Fprint(w, n)
				}))
				defer server.Close()
				do := func(method string, want int) {
					t.Helper()
					req, err := http.NewRequestWithContext(t.Context(), method, server.URL, nil)
					must(t, err)
					res, err := server.Client().Do(req)
					must(t, err)
					defer res.Body.Close()
					var got int
					if _, err := fmt.Fscan(res.Body, &got); err != nil || got != want {
						t.Errorf("%s: %d (status %d, %v), want %d", method, got, res.StatusCode, err, want)
					}
				}
				proven(t, db)
				do("GET", before)
				resume := pauseReplicas(t, c)
				do("POST", before+1)
				c.ResetStatements()
				if sessions {
					do("GET", before) // by somebody else
					onlyReplicas(t, c, read)
				} else {
					do("GET", before+1)
					onlyPrimary(t, c, read)
				}
				resume()
				proven(t, db)
				c.ResetStatements()
				for range 10 {
					do("GET", before+1)
				}
				onlyReplicas(t, c, read)
			})
		}
	})
}

// The same where freshness is a matter of time: the window ends, for whoever wrote too.
func TestReportA24WindowEnds(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 2, fakedb.Full)
		db := f.open()
		request := func(text string) context.Context {
			ctx, _ := replicated.WithSession(t.Context())
			if text != "" {
				run(ctx, t, db, text)
			}
			return ctx
		}
		writer := request("INSERT INTO t VALUES (1)")
		wantOn(writer, t, db, "primary")
		wantOn(request(""), t, db, "replica")
		time.Sleep(5 * time.Second) // the default
		wantOn(writer, t, db, "replica")
		wantOn(request(""), t, db, "replica")
	})
}
