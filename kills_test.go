package replicated_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// wide makes a table of the test's own with 1024 rows of a thousand bytes. Joined
// with itself it has a million of them, which fit in no buffer between a server and
// us.
func wide(t *testing.T, c *replicatedtest.Cluster) (name, million string) {
	t.Helper()
	name = table(t, c, "id int PRIMARY KEY, n int, filler varchar(1000)")
	db := bare(t, c.Primary())
	mustExec(t, db, fmt.Sprintf("INSERT INTO %s (id, n, filler) VALUES (0, 0, '%0990d')", name, 0))
	for n := 1; n < 1024; n *= 2 {
		mustExec(t, db, fmt.Sprintf("INSERT INTO %s (id, n, filler) SELECT id + %d, n, filler FROM %[1]s", name, n))
	}
	caughtUp(t, c)
	return name, fmt.Sprintf("SELECT a.id, a.filler FROM %s a CROSS JOIN %[1]s b", name)
}

// backend returns the server's number for the primary connection of a Conn.
func backend(t *testing.T, c *replicatedtest.Cluster, conn *sql.Conn) int {
	t.Helper()
	query := "SELECT CONNECTION_ID()"
	if c.Engine() == replicatedtest.Postgres {
		query = "SELECT pg_backend_pid()"
	}
	var id int
	if err := conn.QueryRowContext(replicated.WithPrimary(t.Context()), query).Scan(&id); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return id
}

// A replica that dies while rows are read ends these rows, with an error that says
// which node it was, and nothing else: the connection that they were asked for on goes
// on, over the same connection to the primary.
func TestReplicaKillsAmidRowsCostNoPrimaryConnection(t *testing.T) {
	eachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		t.Parallel()
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1, NoStatementLog: true})
		name, query := wide(t, c)
		db := open(t, c)
		conns := make([]*sql.Conn, len(amidRows))
		before := make([]int, len(conns))
		for i := range conns {
			var err error
			if conns[i], err = db.Conn(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer conns[i].Close()
			before[i] = backend(t, c, conns[i])
		}
		for kill := range 5 {
			proven(t, db)
			ends := make([]func() error, len(conns))
			for i, begin := range amidRows {
				rows, end := begin(t, conns[i], query)
				for range 10 {
					if !rows.Next() {
						t.Fatalf("kill %d, reader %d: no row: %v", kill, i, rows.Err())
					}
				}
				ends[i] = func() error { return end(rows) }
			}
			if n := stats(t, db).Nodes[1].InFlight; n != int64(len(conns)) {
				t.Fatalf("%d reads are in flight on the replica, want %d", n, len(conns))
			}
			replica := c.Replicas()[0]
			if err := replica.Kill(); err != nil {
				t.Fatal(err)
			}
			for i, end := range ends {
				err := end()
				var ne *replicated.NodeError
				switch {
				case isBadConn(err):
					t.Errorf("kill %d, reader %d: %v has driver.ErrBadConn in its chain", kill, i, err)
				case i < 2 && (!errors.As(err, &ne) || ne.Role != replicated.RoleReplica || ne.Node != replica.Addr()):
					t.Errorf("kill %d, reader %d: error %v, want a NodeError of the replica", kill, i, err)
				}
				// The replica is down: all that follows is the primary's.
				queryInt(t, conns[i], "SELECT count(*) FROM "+name)
				mustExec(t, conns[i], "UPDATE "+name+" SET n = n + 1 WHERE id = 0")
				if id := backend(t, c, conns[i]); id != before[i] {
					t.Errorf("kill %d, reader %d: the primary connection is %d, and was %d", kill, i, id, before[i])
				}
			}
			if err := replica.Start(); err != nil {
				t.Fatal(err)
			}
			backAgain(t, c, db)
		}
		if n := queryInt(t, bare(t, c.Primary()), "SELECT n FROM "+name+" WHERE id = 0"); n != 5*len(conns) {
			t.Errorf("%d updates took effect, want %d", n, 5*len(conns))
		}
	})
}

// A primary connection that dies amid the rows of a read ends these rows, and no other
// read of the connection that they were asked for on.
func TestPrimaryKillAmidRowsCostsNoOtherRead(t *testing.T) {
	eachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := sharedCluster(t, e)
		name, query := wide(t, c)
		db := open(t, c)
		for what, ctx := range map[string]context.Context{"a context that may end": t.Context(), "one that never does": context.Background()} {
			t.Run(what, func(t *testing.T) {
				ctx := replicated.WithPrimary(ctx)
				conn, give := checkOut(t, db)
				defer give()
				id := backend(t, c, conn)
				give()
				conn, give = checkOut(t, db)
				defer give()
				rows, err := conn.QueryContext(ctx, query)
				if err != nil {
					t.Fatal(err)
				}
				if !rows.Next() {
					t.Fatalf("no row: %v", rows.Err())
				}
				if err := c.Primary().KillBackend(int64(id)); err != nil {
					t.Fatal(err)
				}
				t.Log(toTheEnd(rows))
				var n int
				if err := conn.QueryRowContext(ctx, "SELECT count(*) FROM "+name).Scan(&n); err != nil {
					t.Errorf("the next read: %v", err)
				}
			})
		}
	})
}

// amidRows are the ways in which rows are being read when a replica dies. The first
// two see its end.
var amidRows = []func(*testing.T, *sql.Conn, string) (rows *sql.Rows, end func(*sql.Rows) error){
	func(t *testing.T, conn *sql.Conn, query string) (*sql.Rows, func(*sql.Rows) error) {
		return queried(t, conn, query), toTheEnd
	},
	func(t *testing.T, conn *sql.Conn, query string) (*sql.Rows, func(*sql.Rows) error) {
		stmt, err := conn.PrepareContext(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := stmt.QueryContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return rows, func(rows *sql.Rows) error {
			defer stmt.Close()
			return toTheEnd(rows)
		}
	},
	// One that has seen enough.
	func(t *testing.T, conn *sql.Conn, query string) (*sql.Rows, func(*sql.Rows) error) {
		return queried(t, conn, query), (*sql.Rows).Close
	},
	// One whose context ends when the replica does.
	func(t *testing.T, conn *sql.Conn, query string) (*sql.Rows, func(*sql.Rows) error) {
		ctx, cancel := context.WithCancel(t.Context())
		rows, err := conn.QueryContext(ctx, query)
		if err != nil {
			t.Fatal(err)
		}
		return rows, func(rows *sql.Rows) error {
			cancel()
			return toTheEnd(rows)
		}
	},
	// A transaction that runs on the replica.
	func(t *testing.T, conn *sql.Conn, query string) (*sql.Rows, func(*sql.Rows) error) {
		tx, err := conn.BeginTx(t.Context(), readOnlyTx)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := tx.QueryContext(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		return rows, func(rows *sql.Rows) error {
			err := toTheEnd(rows)
			if err := tx.Commit(); err == nil {
				t.Error("a transaction was committed whose replica is dead")
			}
			return err
		}
	},
}

func queried(t *testing.T, q querier, query string) *sql.Rows {
	t.Helper()
	rows, err := q.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// toTheEnd reads on until the rows end, closes them, and returns why they ended.
func toTheEnd(rows *sql.Rows) error {
	for rows.Next() {
	}
	err := rows.Err()
	if err == nil {
		err = errors.New("the rows have come to a good end")
	}
	if cerr := rows.Close(); isBadConn(cerr) {
		return cerr
	}
	return err
}

// backAgain waits until reads run on replicas again.
func backAgain(t *testing.T, c *replicatedtest.Cluster, db *sql.DB) {
	t.Helper()
	eventually(t, 60*time.Second, func() string {
		for _, n := range stats(t, db).Nodes[1:] {
			if n.Breaker != replicated.BreakerClosed || n.Freshness != replicated.FreshnessProven {
				return fmt.Sprintf("%s is not back: %+v", n.Name, n)
			}
		}
		return ""
	})
	caughtUp(t, c)
	proven(t, db)
}
