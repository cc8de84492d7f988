package replicated_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// Failovers that users of other libraries have reported. See reports_faults_test.go.

// held takes so many connections out of the pool, each with its own to the primary.
func held(t *testing.T, db *sql.DB, n int, touch string) []*sql.Conn {
	t.Helper()
	conns := make([]*sql.Conn, n)
	for i := range conns {
		var err error
		if conns[i], err = db.Conn(t.Context()); err != nil {
			t.Fatal(err)
		}
		mustExec(t, conns[i], touch)
	}
	return conns
}

func letGo(t *testing.T, conns []*sql.Conn) {
	t.Helper()
	for _, conn := range conns {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The pool kept its connections to a demoted primary, which refused every write. A
// refused connection is not kept, and a single write outside a transaction, which had no
// effect, runs once, on the new primary: sent as text, with arguments, or prepared.
func TestReportA30RefusedByADemotedPrimary(t *testing.T) {
	for _, e := range []replicatedtest.Engine{replicatedtest.MariaDB, replicatedtest.MySQL} {
		t.Run(e.String(), func(t *testing.T) {
			c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1})
			name := table(t, c, "id int PRIMARY KEY")
			db := openDSN(t, reversed(c))
			const idle = 6
			db.SetMaxIdleConns(idle)
			insert := "INSERT INTO " + name + " (id) VALUES (?)"
			stmt, err := db.PrepareContext(t.Context(), insert)
			must(t, err)
			defer stmt.Close()
			conns := held(t, db, idle, "DELETE FROM "+name)
			var ids []string
			for _, conn := range conns {
				ids = append(ids, fmt.Sprint(backend(t, c, conn)))
			}
			letGo(t, conns)
			caughtUp(t, c)

			a, b := c.Nodes()[0], c.Nodes()[1]
			must(t, b.Promote())
			mustExec(t, a.AdminDB(t), "SET GLOBAL read_only = ON")
			var writers sync.WaitGroup
			for id := range idle {
				writers.Go(func() {
					var err error
					switch id % 3 {
					case 0:
						_, err = db.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO %s (id) VALUES (%d)", name, id))
					case 1:
						_, err = db.ExecContext(t.Context(), insert, id)
					default:
						_, err = stmt.ExecContext(t.Context(), id)
					}
					if err != nil {
						t.Errorf("write %d: %v", id, err)
					}
				})
			}
			writers.Wait()
			for node, want := range map[*replicatedtest.Node]int{a: 0, b: idle} {
				if n := queryInt(t, bare(t, node), "SELECT count(*) FROM "+name); n != want {
					t.Errorf("%v has %d rows, want %d", node, n, want)
				}
			}
			// Those that were not used look before they are: no write is refused any more.
			roles(t, db, b)
			mark := a.Mark()
			for id := range 3 * idle {
				mustExec(t, db, insert, 100+id)
			}
			wroteNothing(t, a, mark)
			conns = held(t, db, idle, "UPDATE "+name+" SET id = id WHERE id < 0")
			letGo(t, conns)
			eventually(t, 10*time.Second, func() string {
				list := "SELECT count(*) FROM information_schema.processlist WHERE id IN (" + strings.Join(ids, ", ") + ")"
				if n := queryInt(t, a.AdminDB(t), list); n > 0 {
					return fmt.Sprintf("%d of %d connections to the demoted primary are kept", n, idle)
				}
				return ""
			})
		})
	}
}

func wroteNothing(t *testing.T, n *replicatedtest.Node, since replicatedtest.Mark) {
	t.Helper()
	for _, s := range n.StatementsSince(since) {
		if s.User == replicatedtest.AppUser && (strings.HasPrefix(s.Text, "INSERT") || strings.HasPrefix(s.Text, "UPDATE")) {
			t.Errorf("%v was written to: %v", n, s)
		}
	}
}

// What is not a single statement on a connection without state is not run again: the
// server's refusal is the application's, and nothing of it reaches the new primary.
func TestReportA30NotRunAgain(t *testing.T) {
	for _, e := range []replicatedtest.Engine{replicatedtest.MariaDB, replicatedtest.MySQL} {
		t.Run(e.String(), func(t *testing.T) {
			for kind, prepare := range map[string]func(context.Context, *sql.Conn, string) error{
				"transaction":    func(ctx context.Context, conn *sql.Conn, _ string) error { return execOn(ctx, conn, "BEGIN") },
				"user variable":  func(ctx context.Context, conn *sql.Conn, _ string) error { return execOn(ctx, conn, "SET @a = 1") },
				"several in one": func(context.Context, *sql.Conn, string) error { return nil },
			} {
				t.Run(strings.ReplaceAll(kind, " ", "_"), func(t *testing.T) {
					c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1})
					name := table(t, c, "id int PRIMARY KEY")
					db := openDSN(t, reversed(c, "multiStatements=true"))
					conn := held(t, db, 1, "DELETE FROM "+name)[0]
					defer conn.Close()
					must(t, prepare(t.Context(), conn, name))
					a, b := c.Nodes()[0], c.Nodes()[1]
					caughtUp(t, c)
					must(t, b.Promote())
					mustExec(t, a.AdminDB(t), "SET GLOBAL read_only = ON")
					text := "INSERT INTO " + name + " (id) VALUES (1)"
					if kind == "several in one" {
						text += "; INSERT INTO " + name + " (id) VALUES (2)"
					}
					if _, err := conn.ExecContext(t.Context(), text); err == nil {
						t.Error("it has succeeded")
					}
					for _, n := range c.Nodes() {
						if rows := queryInt(t, bare(t, n), "SELECT count(*) FROM "+name); rows != 0 {
							t.Errorf("%v has %d rows", n, rows)
						}
					}
					_ = conn.Close() // it is lost, where the new primary was known before
					mustExec(t, db, "INSERT INTO "+name+" (id) VALUES (3)")
					if n := queryInt(t, bare(t, b), "SELECT count(*) FROM "+name); n != 1 {
						t.Errorf("the new primary has %d rows, want 1", n)
					}
				})
			}
		})
	}
}

func execOn(ctx context.Context, conn *sql.Conn, text string) error {
	_, err := conn.ExecContext(ctx, text)
	return err
}

// Idle connections stayed on a demoted node for days, and now and then one of them was
// taken for a write. Whatever becomes of the node, once the new primary is known none of
// them is used for one again.
func TestReportA31IdleConnectionsOfADemotedPrimary(t *testing.T) {
	eachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{})
		if e == replicatedtest.Postgres { // so that the user sees a standby's timeline at once
			mustExec(t, c.Primary().AdminDB(t), "GRANT pg_read_all_stats TO "+replicatedtest.AppUser)
		}
		name := table(t, c, "id int PRIMARY KEY")
		db := openDSN(t, reversed(c))
		const idle = 4
		db.SetMaxIdleConns(idle)
		letGo(t, held(t, db, idle, "UPDATE "+name+" SET id = id"))
		caughtUp(t, c)
		a, b, other := c.Nodes()[0], c.Nodes()[1], c.Nodes()[2]
		if e == replicatedtest.Postgres { // cannot be demoted without a restart
			must(t, a.Stop())
			must(t, b.Promote())
			must(t, a.Follow(b))
		} else {
			mustExec(t, a.AdminDB(t), "SET GLOBAL read_only = ON")
			must(t, b.Promote())
			must(t, a.Repoint(b)) // its connections live on
		}
		must(t, other.Follow(b))
		roles(t, db, b, a, other)

		mark := a.Mark()
		conns := make([]*sql.Conn, idle)
		for i := range conns { // each of them, and not one for all
			var err error
			conns[i], err = db.Conn(t.Context())
			must(t, err)
			mustExec(t, conns[i], fmt.Sprintf("INSERT INTO %s (id) VALUES (%d)", name, i))
			if id := backend(t, c, conns[i]); id == 0 {
				t.Error("no backend")
			}
		}
		letGo(t, conns)
		wroteNothing(t, a, mark)
		if n := queryInt(t, bare(t, b), "SELECT count(*) FROM "+name); n != idle {
			t.Errorf("the new primary has %d rows, want %d", n, idle)
		}
		for _, n := range stats(t, db).Nodes {
			if n.Address == a.Addr() && n.Role == replicated.RolePrimary {
				t.Errorf("%s counts as the primary", n.Name)
			}
		}
	})
}
