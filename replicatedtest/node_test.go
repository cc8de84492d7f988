package replicatedtest_test

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

// The rows that a killed server had acknowledged are there when it comes back.
func TestKillLosesNoAcknowledgedRow(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1, Log: testLog{t}})
		n := c.Primary()
		db := n.DB(t)
		execSQL(t, db, "CREATE TABLE t (id int PRIMARY KEY)")
		var acknowledged atomic.Int64
		enough, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for i := 1; ; i++ {
				if _, err := db.Exec(fmt.Sprintf("INSERT INTO t VALUES (%d)", i)); err != nil {
					return
				}
				if acknowledged.Store(int64(i)); i == 300 {
					close(enough)
				}
			}
		}()
		<-enough
		pid := n.Pid()
		must(t, n.Kill())
		<-done
		if syscall.Kill(pid, 0) == nil {
			t.Errorf("process %d still runs", pid)
		}
		if n.Running() || n.Pid() != 0 {
			t.Error("the node says that it runs")
		}
		if conn, err := net.Dial("tcp", n.Addr()); err == nil {
			conn.Close()
			t.Error("somebody still listens")
		}
		must(t, n.Kill()) // nothing to do
		must(t, n.Start())
		must(t, n.Start()) // nothing to do
		if got := query(t, n.DB(t), fmt.Sprintf("SELECT count(*) FROM t WHERE id <= %d", acknowledged.Load())); got != fmt.Sprint(acknowledged.Load()) {
			t.Errorf("%s rows of %d acknowledged", got, acknowledged.Load())
		}
		// The replica finds its source again.
		execSQL(t, n.DB(t), "INSERT INTO t VALUES (-1)")
		caughtUp(t, c)
	})
}

func TestReplicaCatchesUpAfterStopAndKill(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1, Log: testLog{t}})
		db, replica := c.Primary().DB(t), c.Replicas()[0]
		execSQL(t, db, "CREATE TABLE t (id int PRIMARY KEY)")
		for i, end := range []func() error{replica.Stop, replica.Kill, replica.Stop} {
			must(t, end())
			execSQL(t, db, fmt.Sprintf("INSERT INTO t VALUES (%d)", i))
			caughtUp(t, c) // passes over a node that is down
			must(t, replica.Start())
			caughtUp(t, c)
			if got := query(t, replica.DB(t), "SELECT count(*) FROM t"); got != fmt.Sprint(i+1) {
				t.Errorf("the replica has %s rows, want %d", got, i+1)
			}
			if !replica.IsReplica() {
				t.Error("no replica any more")
			}
		}
	})
}

func TestHungServerAnswersNothingUntilResumed(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1, Log: testLog{t}})
		n := c.Replicas()[0]
		conn, err := n.DB(t).Conn(context.Background())
		must(t, err)
		defer conn.Close()
		must(t, conn.PingContext(context.Background()))
		must(t, n.Hang())
		if !n.Hung() || !n.Running() {
			t.Errorf("hung %v, running %v", n.Hung(), n.Running())
		}
		// The existing session, which has a process of its own in PostgreSQL.
		answered := make(chan error, 1)
		go func() {
			var one int
			answered <- conn.QueryRowContext(context.Background(), "SELECT 1").Scan(&one)
		}()
		select {
		case err := <-answered:
			t.Fatalf("a hung server answered (%v)", err)
		case <-time.After(300 * time.Millisecond):
		}
		if err := n.Delay(time.Millisecond); err == nil {
			t.Error("a hung server can be asked to delay")
		}
		must(t, n.Resume())
		must(t, <-answered)
		if n.Hung() {
			t.Error("still hung")
		}
		// Hung servers can be ended, too.
		must(t, n.Hang())
		must(t, n.Kill())
		must(t, n.Start())
		must(t, n.Hang())
		must(t, n.Stop())
		must(t, n.Start())
		must(t, n.DB(t).Ping())
		must(t, n.Hang()) // and so can a cluster with a hung server
	})
}

var sessionID = map[replicatedtest.Engine]string{
	replicatedtest.Postgres: "SELECT pg_backend_pid()",
	replicatedtest.MariaDB:  "SELECT CONNECTION_ID()",
	replicatedtest.MySQL:    "SELECT CONNECTION_ID()",
}

func TestKillBackendEndsOneSession(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: -1})
		n := c.Primary()
		db := n.DB(t)
		var conns [3]*sql.Conn
		var ids [3]int64
		for i := range conns {
			conn, err := db.Conn(context.Background())
			must(t, err)
			defer conn.Close()
			must(t, conn.QueryRowContext(context.Background(), sessionID[e]).Scan(&ids[i]))
			conns[i] = conn
		}
		count := func(want int) {
			t.Helper()
			got, err := n.Connections()
			must(t, err)
			if got != want {
				t.Errorf("%d connections, want %d", got, want)
			}
		}
		count(3)
		must(t, n.KillBackend(ids[1]))
		count(2)
		if err := conns[1].PingContext(context.Background()); err == nil {
			t.Error("the killed session lives")
		}
		if err := conns[0].PingContext(context.Background()); err != nil {
			t.Errorf("another session is dead: %v", err)
		}
		if err := n.KillBackend(ids[1]); err == nil {
			t.Error("a session that is not there was killed")
		}
		killed, err := n.KillBackends()
		must(t, err)
		if killed != 2 {
			t.Errorf("%d sessions killed, want 2", killed)
		}
		count(0)
	})
}

// Clusters on one machine must not meet.
func TestClustersSideBySide(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		replicatedtest.Require(t, e)
		seen := map[string]bool{}
		for range 2 {
			c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1, Log: testLog{t}})
			for _, n := range c.Nodes() {
				host, _, err := net.SplitHostPort(n.Addr())
				must(t, err)
				if host != "127.0.0.1" || seen[n.Addr()] {
					t.Errorf("address %s", n.Addr())
				}
				seen[n.Addr()] = true
				if c.Node(n.Name()) != n || c.Node(n.Addr()) != n {
					t.Errorf("Node(%s) is another", n.Name())
				}
			}
		}
	})
}
