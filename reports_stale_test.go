package replicated_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// Stale reads that users of other libraries have reported, by the numbers of the list
// that they were taken from. Replicas stand still in these tests, so that a read that
// one of them serves is a stale one.

// process opens a handle as another process would: it shares nothing with the others,
// and knows its replicas.
func process(t *testing.T, c *replicatedtest.Cluster, keys ...string) (*sql.DB, *replicated.Cluster) {
	t.Helper()
	db, cluster, _ := apart(t, c, append(keys, lagless)...)
	measured(t, c, db)
	return db, cluster
}

// intOf reads a number with a context of its own; sql.ErrNoRows counts as -1.
func intOf(ctx context.Context, t *testing.T, q querier, query string, args ...any) (n int) {
	t.Helper()
	err := q.QueryRowContext(ctx, query, args...).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return -1
	}
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// wantInt reads a number and compares it.
func wantInt(ctx context.Context, t *testing.T, q querier, want int, query string, args ...any) {
	t.Helper()
	if got := intOf(ctx, t, q, query, args...); got != want {
		t.Errorf("%s: %d, want %d", query, got, want)
	}
}

func inSession(t *testing.T) context.Context {
	t.Helper()
	ctx, _ := replicated.WithSession(t.Context())
	return ctx
}

// writePath is a way in which a program may add one to the row of a table.
type writePath struct {
	name    string
	engines []replicatedtest.Engine // nil: all
	setup   string
	drop    string
	session bool // only in one
	write   func(ctx context.Context, db *sql.DB, table string) error
}

func (p writePath) scopes() []string {
	if p.session {
		return []string{"session"}
	}
	return []string{"session", "process"}
}

// toTheEndOf reads the rows of a write, and closes them.
func toTheEndOf(rows *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}

func writePaths() []writePath {
	postgres := []replicatedtest.Engine{replicatedtest.Postgres}
	mysql := []replicatedtest.Engine{replicatedtest.MariaDB, replicatedtest.MySQL}
	update := func(table string) string { return "UPDATE " + table + " SET v = v + 1 WHERE id = 1" }
	returning := func(table string) string { return update(table) + " RETURNING v" }
	upsert := func(table string) string {
		return "INSERT INTO " + table + " (id, v) VALUES (1, 0) ON DUPLICATE KEY UPDATE v = v + 1 RETURNING v"
	}
	exec := func(text func(string) string) func(context.Context, *sql.DB, string) error {
		return func(ctx context.Context, db *sql.DB, table string) error {
			_, err := db.ExecContext(ctx, text(table))
			return err
		}
	}
	query := func(text func(string) string) func(context.Context, *sql.DB, string) error {
		return func(ctx context.Context, db *sql.DB, table string) error {
			return toTheEndOf(db.QueryContext(ctx, text(table)))
		}
	}
	queryRow := func(text func(string) string) func(context.Context, *sql.DB, string) error {
		return func(ctx context.Context, db *sql.DB, table string) error {
			return db.QueryRowContext(ctx, text(table)).Scan(new(int))
		}
	}
	preparedQuery := func(text func(string) string) func(context.Context, *sql.DB, string) error {
		return func(ctx context.Context, db *sql.DB, table string) error {
			stmt, err := db.PrepareContext(ctx, text(table))
			if err != nil {
				return err
			}
			defer stmt.Close()
			return toTheEndOf(stmt.QueryContext(ctx))
		}
	}
	tx := func(opts *sql.TxOptions, work func(ctx context.Context, tx *sql.Tx, table string) error) func(context.Context, *sql.DB, string) error {
		return func(ctx context.Context, db *sql.DB, table string) error {
			tx, err := db.BeginTx(ctx, opts)
			if err != nil {
				return err
			}
			if err := work(ctx, tx, table); err != nil {
				return errors.Join(err, tx.Rollback())
			}
			return tx.Commit()
		}
	}
	onConn := func(work func(ctx context.Context, conn *sql.Conn, table string) error) func(context.Context, *sql.DB, string) error {
		return func(ctx context.Context, db *sql.DB, table string) error {
			conn, err := db.Conn(ctx)
			if err != nil {
				return err
			}
			return errors.Join(work(ctx, conn, table), conn.Close())
		}
	}
	return []writePath{
		{name: "exec", write: exec(update)},
		{name: "query of an update", write: query(update)},
		{name: "prepared exec", write: func(ctx context.Context, db *sql.DB, table string) error {
			stmt, err := db.PrepareContext(ctx, update(table))
			if err != nil {
				return err
			}
			defer stmt.Close()
			_, err = stmt.ExecContext(ctx)
			return err
		}},
		{name: "query returning", engines: postgres, write: query(returning)},
		{name: "row returning", engines: postgres, write: queryRow(returning)},
		{name: "prepared query returning", engines: postgres, write: preparedQuery(returning)},
		{name: "row returning", engines: mysql[:1], write: queryRow(upsert)},
		{name: "prepared query returning", engines: mysql[:1], write: preparedQuery(upsert)},
		{name: "with", engines: postgres, write: queryRow(func(table string) string {
			return "WITH u AS (" + returning(table) + ") SELECT v FROM u"
		})},
		{name: "behind a read", engines: postgres, write: exec(func(table string) string { return "SELECT 1; " + update(table) })},
		{
			name: "a function", engines: postgres,
			setup: "CREATE FUNCTION report_bump() RETURNS int LANGUAGE sql VOLATILE AS 'UPDATE %s SET v = v + 1 WHERE id = 1 RETURNING v'",
			drop:  "DROP FUNCTION report_bump()",
			write: queryRow(func(string) string { return "SELECT report_bump()" }),
		},
		{name: "a block", engines: postgres, write: exec(func(table string) string {
			return "DO $$ BEGIN " + update(table) + "; END $$"
		})},
		{
			name: "a procedure", engines: mysql,
			setup: "CREATE PROCEDURE report_bump() UPDATE %s SET v = v + 1 WHERE id = 1",
			drop:  "DROP PROCEDURE report_bump",
			write: exec(func(string) string { return "CALL report_bump()" }),
		},
		{name: "a transaction", write: tx(nil, func(ctx context.Context, tx *sql.Tx, table string) error {
			_, err := tx.ExecContext(ctx, update(table))
			return err
		})},
		{name: "a prepared statement in a transaction", write: tx(nil, func(ctx context.Context, tx *sql.Tx, table string) error {
			stmt, err := tx.PrepareContext(ctx, update(table))
			if err != nil {
				return err
			}
			defer stmt.Close()
			_, err = stmt.ExecContext(ctx)
			return err
		})},
		{name: "a transaction in texts", write: onConn(func(ctx context.Context, conn *sql.Conn, table string) error {
			for _, text := range []string{"BEGIN", update(table), "COMMIT"} {
				if _, err := conn.ExecContext(ctx, text); err != nil {
					return err
				}
			}
			return nil
		})},
		{name: "the driver's own connection", write: onConn(func(ctx context.Context, conn *sql.Conn, table string) error {
			return conn.Raw(func(dc any) error {
				return dc.(*replicated.Conn).Primary(ctx, func(dc any) error {
					_, err := dc.(driver.ExecerContext).ExecContext(ctx, update(table), nil)
					return err
				})
			})
		})},
		// Outside a session it would hold for all clusters of the process, and reads in
		// bubbles of other tests, whose clock stands in the past.
		{name: "told of", session: true, write: func(ctx context.Context, db *sql.DB, table string) error {
			// By a program that this one waits for.
			other, err := sql.Open("replicated", ctx.Value(elsewhere{}).(string))
			if err != nil {
				return err
			}
			defer other.Close()
			if _, err := other.ExecContext(context.Background(), update(table)); err != nil {
				return err
			}
			replicated.Wrote(ctx)
			return nil
		}},
	}
}

// elsewhere is the key of a DSN that leads to the cluster by another primary address.
type elsewhere struct{}

// One way of writing bypassed the hook that began the window, so that the next read was
// an old one. Every way counts: in a session and without one, a read at once shows it.
// https://github.com/Nasdaq/active_record_proxy_adapters/issues/201
func TestReportA7EveryWriteCounts(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		name := table(t, c, "id int PRIMARY KEY, v int NOT NULL")
		mustExec(t, bare(t, c.Primary()), "INSERT INTO "+name+" (id, v) VALUES (1, 0)")
		caughtUp(t, c)
		db, _ := process(t, c)
		read := "SELECT v FROM " + name + " WHERE id = 1"
		other := c.DSNAt([]string{c.Primary().Proxy(t).Addr()})
		base := context.WithValue(t.Context(), elsewhere{}, other)
		written := 0
		for _, p := range writePaths() {
			if p.engines != nil && !slices.Contains(p.engines, c.Engine()) {
				continue
			}
			if p.setup != "" {
				admin := bare(t, c.Primary())
				mustExec(t, admin, fmt.Sprintf(p.setup, name))
				defer mustExec(t, admin, p.drop)
			}
			t.Run(p.name, func(t *testing.T) {
				for _, scope := range p.scopes() {
					caughtUp(t, c)
					proven(t, db)
					resume := pauseReplicas(t, c)
					ctx := base
					if scope == "session" {
						ctx, _ = replicated.WithSession(base)
					}
					if err := p.write(ctx, db, name); err != nil {
						t.Fatal(err)
					}
					written++
					wantInt(ctx, t, db, written, read)
					if scope == "session" { // which others are not in
						wantInt(inSession(t), t, db, written-1, read)
					}
					resume()
				}
			})
		}
	})
}

// A row that is written and not committed did not exist for the reads of the same
// transaction, which went to a replica. All that a transaction runs is the primary's,
// whatever its contexts ask for.
// https://github.com/goauthentik/authentik/pull/19086
func TestReportA21ReadsInATransaction(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		parents := table(t, c, "id int PRIMARY KEY")
		children := parents + "_c"
		primary := bare(t, c.Primary())
		mustExec(t, primary, "CREATE TABLE "+children+" (id int PRIMARY KEY, parent int NOT NULL, FOREIGN KEY (parent) REFERENCES "+parents+" (id))")
		defer mustExec(t, primary, "DROP TABLE "+children)
		caughtUp(t, c)
		db, _ := process(t, c)
		text := "SELECT count(*) FROM " + parents + " WHERE id = " + placeholder(c.Engine(), 1)
		stmt := prepare(t, db, text)
		defer stmt.Close()
		wantInt(t.Context(), t, db, 0, text, 1)
		resume := pauseReplicas(t, c)

		stories := map[string]func(ctx context.Context, t *testing.T, id int){
			"BeginTx": func(ctx context.Context, t *testing.T, id int) {
				tx, err := db.BeginTx(ctx, nil)
				must(t, err)
				mustExec(t, tx, fmt.Sprintf("INSERT INTO %s (id) VALUES (%d)", parents, id))
				for what, ctx := range map[string]context.Context{
					"own": ctx, "another session": inSession(t), "a replica": replicated.WithReplica(ctx),
					"stale": replicated.WithStaleReads(ctx, 0), "none": context.Background(),
				} {
					if got := intOf(ctx, t, tx, text, id); got != 1 {
						t.Errorf("with the context of %s a transaction has %d of the row that it inserted", what, got)
					}
				}
				wantInt(ctx, t, tx, 1, "SELECT /* replicated:replica */ count(*) FROM "+parents+" WHERE id = "+placeholder(c.Engine(), 1), id)
				var n int
				if err := tx.StmtContext(ctx, stmt).QueryRowContext(ctx, id).Scan(&n); err != nil || n != 1 {
					t.Errorf("a prepared read in the transaction: %d, %v", n, err)
				}
				mustExec(t, tx, fmt.Sprintf("INSERT INTO %s (id, parent) VALUES (%[2]d, %[2]d)", children, id))
				must(t, tx.Commit())
			},
			"BEGIN": func(ctx context.Context, t *testing.T, id int) {
				conn, err := db.Conn(ctx)
				must(t, err)
				defer conn.Close()
				mustExec(t, conn, "BEGIN")
				mustExec(t, conn, fmt.Sprintf("INSERT INTO %s (id) VALUES (%d)", parents, id))
				wantInt(ctx, t, conn, 1, text, id)
				wantInt(replicated.WithStaleReads(ctx, 0), t, conn, 1, text, id)
				mustExec(t, conn, fmt.Sprintf("INSERT INTO %s (id, parent) VALUES (%[2]d, %[2]d)", children, id))
				mustExec(t, conn, "COMMIT")
			},
		}
		id := 0
		for name, story := range stories {
			t.Run(name, func(t *testing.T) {
				for _, ctx := range []context.Context{inSession(t), t.Context()} {
					id++
					c.ResetStatements()
					story(ctx, t, id)
					onlyPrimary(t, c, parents)
				}
			})
		}
		resume()
	})
}

// A migration at start-up wrote by one handle, read back by another, from a replica, and
// gave up. All handles of a process on one cluster count each other's writes, whatever
// else they differ in, and also those of handles that are closed.
// https://github.com/mattermost/mattermost/pull/38084
func TestReportA35MigrationThroughTwoHandles(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		name := table(t, c, "version int")
		keys := []string{ownFloors(t), lagless}
		app := openDSN(t, c.DSN(keys...))
		measured(t, c, app)
		read := "SELECT count(*) FROM " + name
		wantInt(t.Context(), t, app, 0, read)
		proven(t, app)
		resume := pauseReplicas(t, c)

		named := map[bool]string{true: "postgres-replicated", false: "mysql-replicated"}[c.Engine() == replicatedtest.Postgres]
		tool, err := sql.Open(named, c.DSN(append(keys, "replicated.consistency=eventual", "replicated.stmt_cache=0")...))
		must(t, err)
		wantInt(inSession(t), t, app, 0, read) // of a replica, as long as nobody has written
		mustExec(t, tool, "INSERT INTO "+name+" (version) VALUES (1)")
		wantInt(t.Context(), t, app, 1, read)
		wantInt(inSession(t), t, app, 1, read)
		made := name + "_2"
		mustExec(t, tool, "CREATE TABLE "+made+" (version int)")
		defer mustExec(t, bare(t, c.Primary()), "DROP TABLE "+made)
		wantInt(t.Context(), t, app, 0, "SELECT count(*) FROM "+made)
		must(t, tool.Close())
		wantInt(t.Context(), t, app, 1, read)
		late := openDSN(t, c.DSN(keys...))
		wantInt(t.Context(), t, late, 1, read)

		// By a program of its own, with the bare driver: nobody can know but who started it.
		resume()
		proven(t, app)
		resume = pauseReplicas(t, c)
		defer resume()
		mustExec(t, bare(t, c.Primary()), "INSERT INTO "+name+" (version) VALUES (2)")
		wantInt(t.Context(), t, app, 1, read)
		wantInt(replicated.WithPrimary(t.Context()), t, app, 2, read)
		wantInt(replicated.WithFresh(t.Context()), t, app, 2, read)
		ctx := inSession(t)
		replicated.Wrote(ctx)
		wantInt(ctx, t, app, 2, read)
	})
}

// A cache that was filled again after an invalidation, from a replica that did not have
// the deletion yet, kept what was deleted for ever. WithFresh has the refill read what
// everybody has committed, and does not hold it on the primary once replicas have that.
// https://github.com/chobbledotcom/tickets/pull/1859
func TestReportA39CacheRefilledAfterADeletion(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		name := table(t, c, "id int PRIMARY KEY")
		mustExec(t, bare(t, c.Primary()), "INSERT INTO "+name+" (id) VALUES (1)")
		caughtUp(t, c)
		editor, _ := process(t, c)
		viewer, _ := process(t, c)
		query := "SELECT count(*) FROM " + name
		wantInt(t.Context(), t, viewer, 1, query)
		cache := map[string]int{}
		get := func(ctx context.Context, db *sql.DB) int {
			if _, ok := cache["items"]; !ok {
				cache["items"] = intOf(ctx, t, db, query)
			}
			return cache["items"]
		}
		resume := pauseReplicas(t, c)
		mustExec(t, editor, "DELETE FROM "+name+" WHERE id = 1")

		// What was reported, so that it is known that the rest can fail.
		if got := get(inSession(t), viewer); got != 1 {
			t.Fatalf("a refill without WithFresh has %d items: the replicas do not stand still", got)
		}
		for range 3 {
			delete(cache, "items")
			if got := get(replicated.WithFresh(inSession(t)), viewer); got != 0 {
				t.Errorf("the cache was filled with %d items, where the last one is deleted", got)
			}
		}
		resume()
		caughtUp(t, c)
		proven(t, viewer)
		c.ResetStatements()
		for range 20 {
			ctx := replicated.WithFresh(t.Context())
			proven(t, viewer)
			wantInt(ctx, t, viewer, 0, query)
		}
		onlyReplicas(t, c, query)
	})
}
