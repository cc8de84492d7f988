package replicatedtest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

// writer inserts rows one after the other wherever the primary is, and takes
// notes of those that were acknowledged.
type writer struct {
	stop         context.CancelFunc
	writing      sync.WaitGroup
	mu           sync.Mutex
	acknowledged []int
}

func startWriter(t *testing.T, c *replicatedtest.Cluster) *writer {
	ctx, stop := context.WithCancel(context.Background())
	w := &writer{stop: stop}
	t.Cleanup(stop)
	for worker := range 4 {
		w.writing.Go(func() {
			for id := worker; ctx.Err() == nil; id += 4 {
				n := c.Primary()
				db := openBare(t, c.DriverName(), n.DSN())
				for ; ctx.Err() == nil && n == c.Primary(); id += 4 {
					time.Sleep(2 * time.Millisecond) // no more than the replicas can take
					// Not repeated by the pool, as a DB's would be.
					conn, err := db.Conn(ctx)
					if err != nil {
						break
					}
					_, err = conn.ExecContext(context.Background(), fmt.Sprintf("INSERT INTO t VALUES (%d)", id))
					conn.Close()
					if err != nil {
						break
					}
					w.mu.Lock()
					w.acknowledged = append(w.acknowledged, id)
					w.mu.Unlock()
				}
				db.Close()
			}
		})
	}
	return w
}

func (w *writer) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acknowledged)
}

// more waits until further rows have been acknowledged.
func (w *writer) more(t *testing.T) {
	t.Helper()
	before, begin := w.count(), time.Now()
	for w.count() < before+50 {
		if time.Since(begin) > 20*time.Second {
			t.Fatal("nothing is acknowledged any more")
		}
		time.Sleep(time.Millisecond)
	}
}

// check ends the writing and looks for each acknowledged row on the node.
func (w *writer) check(t *testing.T, nodes ...*replicatedtest.Node) {
	t.Helper()
	w.stop()
	w.writing.Wait()
	for _, n := range nodes {
		must(t, n.WaitCaughtUp(within(t, 20*time.Second)))
		rows, err := n.DB(t).Query("SELECT id FROM t")
		must(t, err)
		defer rows.Close()
		var has []int
		for rows.Next() {
			var id int
			must(t, rows.Scan(&id))
			has = append(has, id)
		}
		must(t, rows.Err())
		slices.Sort(has)
		lost := 0
		for _, id := range w.acknowledged {
			if _, found := slices.BinarySearch(has, id); !found {
				lost++
			}
		}
		if lost > 0 {
			t.Errorf("%s lacks %d of %d acknowledged rows", n, lost, len(w.acknowledged))
		}
	}
	t.Logf("%d acknowledged", len(w.acknowledged))
}

// following fails the test unless all nodes but one follow that.
func following(t *testing.T, c *replicatedtest.Cluster, primary *replicatedtest.Node, replicas int) {
	t.Helper()
	if c.Primary() != primary || primary.IsReplica() {
		t.Fatalf("the primary is %s, want %s", c.Primary(), primary)
	}
	if got := len(c.Replicas()); got != replicas {
		t.Fatalf("%d replicas, want %d", got, replicas)
	}
}

func TestSwitchoverLosesNothing(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Log: testLog{t}})
		first, second, third := c.Nodes()[0], c.Nodes()[1], c.Nodes()[2]
		execSQL(t, first.DB(t), "CREATE TABLE t (id int PRIMARY KEY)")
		caughtUp(t, c)
		// A transaction that is open does not stand in the way.
		open := openConn(t, first.DB(t))
		_, err := open.ExecContext(context.Background(), "BEGIN")
		must(t, err)
		_, err = open.ExecContext(context.Background(), "INSERT INTO t VALUES (-1)")
		must(t, err)
		w := startWriter(t, c)
		w.more(t)
		// Neither does what holds the replica back.
		must(t, second.PauseReplication())
		must(t, second.Delay(time.Hour))
		begin := time.Now()
		must(t, c.Switchover(within(t, 30*time.Second), second))
		t.Logf("switchover: %v", time.Since(begin).Round(time.Millisecond))
		following(t, c, second, 2)
		if _, err := open.ExecContext(context.Background(), "COMMIT"); err == nil {
			t.Error("the open transaction was committed on the former primary")
		}
		if _, err := first.DB(t).Exec("INSERT INTO t VALUES (-2)"); err == nil {
			t.Error("the former primary takes writes")
		}
		w.more(t)
		// One node that is down is passed over.
		must(t, third.Kill())
		must(t, c.Switchover(within(t, 30*time.Second), first))
		w.more(t)
		must(t, third.Rejoin(first))
		following(t, c, first, 2)
		w.check(t, c.Nodes()...)
		if got := query(t, second.DB(t), "SELECT count(*) FROM t WHERE id < 0"); got != "0" {
			t.Errorf("%s rows that were never committed", got)
		}
	})
}

func TestSwitchoverThatCannotBe(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Log: testLog{t}})
		first, second := c.Nodes()[0], c.Nodes()[1]
		execSQL(t, first.DB(t), "CREATE TABLE t (id int PRIMARY KEY)")
		caughtUp(t, c)
		must(t, second.StopReceiving())
		execSQL(t, first.DB(t), "INSERT INTO t VALUES (1)")
		if err := c.Switchover(within(t, 500*time.Millisecond), second); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("to a replica that does not receive: %v", err)
		}
		following(t, c, first, 2)
		execSQL(t, first.DB(t), "INSERT INTO t VALUES (2)")
		if err := c.Switchover(within(t, 5*time.Second), first); err == nil {
			t.Error("to the primary itself")
		}
		must(t, second.Kill())
		if err := c.Switchover(within(t, 5*time.Second), second); err == nil {
			t.Error("to a replica that is down")
		}
		execSQL(t, first.DB(t), "INSERT INTO t VALUES (3)")
	})
}

// The replica that has received most is not the first one, and is promoted with
// all that was acknowledged.
func TestFailoverPromotesTheMostAdvanced(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		options := replicatedtest.Options{Synchronous: true, Log: testLog{t}}
		synchronous := options.Available(e) == nil
		options.Synchronous = synchronous
		c := replicatedtest.Start(t, e, options)
		first, second, third := c.Nodes()[0], c.Nodes()[1], c.Nodes()[2]
		execSQL(t, first.DB(t), "CREATE TABLE t (id int PRIMARY KEY)")
		caughtUp(t, c)
		must(t, second.StopReceiving())
		w := startWriter(t, c)
		w.more(t)
		if !synchronous {
			// Only what has arrived can be asked for.
			w.stop()
			w.writing.Wait()
			must(t, third.WaitCaughtUp(within(t, 20*time.Second)))
		}
		begin := time.Now()
		got, err := c.Failover(within(t, 30*time.Second))
		must(t, err)
		t.Logf("failover: %v", time.Since(begin).Round(time.Millisecond))
		if got != third {
			t.Fatalf("%s was promoted, want %s", got, third)
		}
		following(t, c, third, 1)
		if first.Running() {
			t.Error("the former primary runs")
		}
		if synchronous {
			w.more(t)
		}
		must(t, first.Rejoin(third))
		following(t, c, third, 2)
		if synchronous {
			w.more(t)
			// Both are as good, and it is dead already.
			must(t, third.Kill())
			_, err := c.Failover(within(t, 30*time.Second))
			must(t, err)
			w.more(t)
			must(t, third.Rejoin(c.Primary()))
		}
		w.check(t, c.Nodes()...)
		for _, n := range c.Replicas() {
			must(t, n.Kill())
		}
		if n, err := c.MostAdvanced(within(t, 5*time.Second)); err == nil {
			t.Errorf("of no running replica %s is the most advanced", n)
		}
	})
}

// A primary that is killed while it sends a large transaction leaves a part of
// it behind.
func TestFailoverWithAPartOfATransaction(t *testing.T) {
	for _, e := range []replicatedtest.Engine{replicatedtest.MariaDB, replicatedtest.MySQL} {
		t.Run(e.String(), func(t *testing.T) {
			c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1, NoStatementLog: true, Log: testLog{t}})
			conn := openConn(t, c.Primary().DB(t))
			run := func(text string, args ...any) {
				t.Helper()
				_, err := conn.ExecContext(context.Background(), text, args...)
				must(t, err)
			}
			run("CREATE TABLE t (id int PRIMARY KEY, large longblob)")
			caughtUp(t, c)
			run("BEGIN")
			large := make([]byte, 1<<20)
			for id := range 32 {
				run("INSERT INTO t VALUES (?, ?)", id, large)
			}
			run("COMMIT")
			n, err := c.Failover(within(t, 60*time.Second))
			must(t, err)
			got := query(t, n.DB(t), "SELECT count(*) FROM t")
			if got != "0" && got != "32" {
				t.Errorf("%s rows of 32 in one transaction", got)
			}
			t.Logf("%s rows", got)
			execSQL(t, n.DB(t), "INSERT INTO t VALUES (100, '')")
		})
	}
}

func TestDemotedPrimaryTakesNoWrites(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: -1, Log: testLog{t}})
		n := c.Primary()
		execSQL(t, n.DB(t), "CREATE TABLE t (id int PRIMARY KEY)")
		err := n.Demote()
		if e == replicatedtest.Postgres {
			if !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("error %v", err)
			}
			return
		}
		must(t, err)
		if _, err := n.DB(t).Exec("INSERT INTO t VALUES (1)"); err == nil {
			t.Error("it takes a write")
		}
		if n.IsReplica() || c.Primary() != n {
			t.Error("the role is another one")
		}
	})
}

func TestTransactionsOfAGTIDSet(t *testing.T) {
	const a, b = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "4f22fb58-71ca-11e1-9e33-c80aa9429562"
	for set, want := range map[string]int64{
		"":                               0,
		a + ":1":                         1,
		a + ":1-5:7,\n" + b + ":1-3:9-9": 10,
	} {
		if got, err := replicatedtest.CountTransactions(set); err != nil || got != want {
			t.Errorf("%q: %d (%v), want %d", set, got, err, want)
		}
	}
	if _, err := replicatedtest.CountTransactions(a + ":x"); err == nil {
		t.Error("a number that is none was counted")
	}
	for _, c := range []struct {
		received, applied string
		want              int64
	}{{"", "", 0}, {"0-1-7", "0-2-9", 9}, {"0-1-7,1-1-3", "0-1-6", 10}} {
		if got, err := replicatedtest.LastTransactions(c.received, c.applied); err != nil || got != c.want {
			t.Errorf("%v: %d (%v), want %d", c, got, err, c.want)
		}
	}
}
