package replicatedtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

func TestPausedReplicaAppliesNothingUntilResumed(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Log: testLog{t}})
		db, paused, other := c.Primary().DB(t), c.Replicas()[0], c.Replicas()[1]
		execSQL(t, db, "CREATE TABLE t (id int)")
		caughtUp(t, c)
		must(t, paused.PauseReplication())
		execSQL(t, db, "INSERT INTO t VALUES (1)")
		must(t, other.WaitCaughtUp(within(t, 10*time.Second)))
		if err := paused.WaitCaughtUp(within(t, 300*time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the paused replica has caught up: %v", err)
		}
		if got := query(t, paused.DB(t), "SELECT count(*) FROM t"); got != "0" {
			t.Errorf("the paused replica has %s rows", got)
		}
		must(t, paused.ResumeReplication())
		caughtUp(t, c)
		if got := query(t, paused.DB(t), "SELECT count(*) FROM t"); got != "1" {
			t.Errorf("after resuming: %s rows", got)
		}
		if err := c.Primary().PauseReplication(); err == nil {
			t.Error("a primary can be paused")
		}
	})
}

func TestDelayHoldsBackWhatIsApplied(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1, Log: testLog{t}})
		db, n := c.Primary().DB(t), c.Replicas()[0]
		execSQL(t, db, "CREATE TABLE t (id int PRIMARY KEY)")
		caughtUp(t, c)
		replica := n.DB(t)
		id := 0
		// lag is how long a row takes to be seen, from its acknowledgement.
		lag := func() time.Duration {
			id++
			execSQL(t, db, fmt.Sprintf("INSERT INTO t VALUES (%d)", id))
			begin := time.Now()
			for query(t, replica, fmt.Sprintf("SELECT count(*) FROM t WHERE id = %d", id)) == "0" {
				if time.Since(begin) > 20*time.Second {
					t.Fatal("the row does not arrive")
				}
			}
			return time.Since(begin)
		}
		for _, d := range []time.Duration{150 * time.Millisecond, 30 * time.Millisecond, 1200 * time.Millisecond} {
			must(t, n.Delay(d))
			for range 2 {
				// The commit is a moment before its acknowledgement.
				if got := lag(); got < d-20*time.Millisecond {
					t.Errorf("delay %v, row seen after %v", d, got)
				}
			}
		}
		must(t, n.Delay(100*time.Millisecond))
		must(t, n.Kill())
		must(t, n.Start())
		caughtUp(t, c)
		if got := lag(); got < 80*time.Millisecond {
			t.Errorf("after a restart the row was seen after %v", got)
		}
		must(t, n.Delay(0))
		caughtUp(t, c)
		shortest := lag()
		for range 4 {
			shortest = min(shortest, lag())
		}
		if shortest > 80*time.Millisecond {
			t.Errorf("without delay the row was seen after %v", shortest)
		}
	})
}

func TestPromoteAndFollow(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Log: testLog{t}})
		first, second, third := c.Nodes()[0], c.Nodes()[1], c.Nodes()[2]
		execSQL(t, first.DB(t), "CREATE TABLE t (id int PRIMARY KEY)")
		execSQL(t, first.DB(t), "INSERT INTO t VALUES (1)")
		caughtUp(t, c)
		must(t, first.Kill())

		must(t, second.Promote())
		if c.Primary() != second || second.IsReplica() {
			t.Fatalf("primary is %s", c.Primary())
		}
		execSQL(t, second.DB(t), "INSERT INTO t VALUES (2)")
		must(t, third.Follow(second))
		caughtUp(t, c)
		if got := query(t, third.DB(t), "SELECT count(*) FROM t"); got != "2" {
			t.Errorf("%s has %s rows, want 2", third, got)
		}

		// The former primary comes back with a row that the others lack.
		must(t, first.Start())
		execSQL(t, first.DB(t), "INSERT INTO t VALUES (100)")
		must(t, first.Follow(second))
		execSQL(t, second.DB(t), "INSERT INTO t VALUES (3)")
		caughtUp(t, c)
		if got := query(t, first.DB(t), "SELECT sum(id) FROM t"); got != "6" {
			t.Errorf("the former primary has the sum %s, want 6", got)
		}
		if _, err := first.DB(t).Exec("INSERT INTO t VALUES (4)"); err == nil {
			t.Error("the former primary takes writes")
		}
		if got := len(c.Replicas()); got != 2 {
			t.Errorf("%d replicas, want 2", got)
		}

		// Roles outlive restarts.
		must(t, second.Stop())
		must(t, second.Start())
		execSQL(t, second.DB(t), "INSERT INTO t VALUES (4)")
		must(t, first.Kill())
		must(t, first.Start())
		caughtUp(t, c)

		// And back again.
		must(t, second.Stop())
		must(t, first.Promote())
		must(t, third.Follow(first))
		must(t, second.Follow(first))
		execSQL(t, first.DB(t), "INSERT INTO t VALUES (5)")
		caughtUp(t, c)
		for _, n := range c.Nodes() {
			if got := query(t, n.DB(t), "SELECT count(*) FROM t"); got != "5" {
				t.Errorf("%s has %s rows, want 5", n, got)
			}
		}
	})
}

// A replica that follows on through its delaying proxy.
func TestDelayedReplicaFollowsTheNewPrimary(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Log: testLog{t}})
		first, second, third := c.Nodes()[0], c.Nodes()[1], c.Nodes()[2]
		execSQL(t, first.DB(t), "CREATE TABLE t (id int PRIMARY KEY)")
		must(t, third.Delay(50*time.Millisecond))
		must(t, second.Delay(10*time.Millisecond))
		caughtUp(t, c)
		must(t, first.Stop())
		must(t, second.Promote())
		must(t, third.Follow(second))
		execSQL(t, second.DB(t), "INSERT INTO t VALUES (1)")
		begin := time.Now()
		caughtUp(t, c)
		if got := time.Since(begin); got < 30*time.Millisecond {
			t.Errorf("caught up after %v, with a delay of 50ms", got)
		}
	})
}
