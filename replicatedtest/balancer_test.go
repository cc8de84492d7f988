package replicatedtest_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

// whoami is a query that tells servers of one cluster apart.
var whoami = map[replicatedtest.Engine]string{
	replicatedtest.Postgres: "SELECT current_setting('port')",
	replicatedtest.MariaDB:  "SELECT @@port",
	replicatedtest.MySQL:    "SELECT @@port",
}

func openConn(t *testing.T, db *sql.DB) *sql.Conn {
	t.Helper()
	conn, err := db.Conn(context.Background())
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

func queryConn(t *testing.T, conn *sql.Conn, text string) string {
	t.Helper()
	var value sql.NullString
	if err := conn.QueryRowContext(context.Background(), text).Scan(&value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value.String
}

func TestBalancerIsOneAddressForSeveralServers(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1, Log: testLog{t}})
		nodes := c.Nodes()
		b := c.Balancer(t, nodes...)
		db := openBare(t, c.DriverName(), b.DSN())
		var met []string
		for range 4 {
			met = append(met, queryConn(t, openConn(t, db), whoami[e]))
		}
		if met[0] == met[1] || met[0] != met[2] || met[1] != met[3] {
			t.Errorf("connections went to %v", met)
		}
		must(t, nodes[1].Kill())
		for range 3 {
			if got := queryConn(t, openConn(t, openBare(t, c.DriverName(), b.DSN())), whoami[e]); got == "" || got != queryConn(t, openConn(t, nodes[0].DB(t)), whoami[e]) {
				t.Errorf("with one server dead a connection went to %s", got)
			}
		}
	})
}

func TestBalancerNeedsAServer(t *testing.T) {
	if _, err := replicatedtest.NewBalancer(); err == nil {
		t.Error("no error")
	}
}

// A name that means another server from now on: whoever is connected goes on
// with the former one.
func TestRedirectLeavesConnectionsWhereTheyAre(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1, Log: testLog{t}})
		former, next := c.Nodes()[0], c.Nodes()[1]
		execSQL(t, former.DB(t), "CREATE TABLE t (id int PRIMARY KEY)")
		caughtUp(t, c)
		name := former.Proxy(t)
		db := openBare(t, c.DriverName(), name.DSN())
		old := openConn(t, db)
		before := queryConn(t, old, whoami[e])

		must(t, next.Promote())
		name.Redirect(next.Addr())
		fresh := openConn(t, db)
		if got := queryConn(t, fresh, whoami[e]); got == before {
			t.Errorf("a new connection still goes to %s", got)
		}
		_, err := fresh.ExecContext(context.Background(), "INSERT INTO t VALUES (1)")
		must(t, err)
		if got := queryConn(t, old, whoami[e]); got != before {
			t.Errorf("the old connection has moved from %s to %s", before, got)
		}
		// It answers, and knows nothing of the new primary's rows.
		if got := queryConn(t, old, "SELECT count(*) FROM t"); got != "0" {
			t.Errorf("%s rows on the old connection", got)
		}
		if got := name.Open(); got != 2 {
			t.Errorf("%d connections open", got)
		}
		name.SetTarget(next.Addr())
		if err := old.PingContext(context.Background()); err == nil {
			t.Error("SetTarget has left a connection open")
		}
	})
}
