package replicatedtest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

// A failover that leaves a replica behind which has more than the new primary:
// it answers, and never gets what is written from then on, until it is made
// anew.
func TestReplicaAheadOfTheNewPrimaryIsLeftBehind(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Log: testLog{t}})
		first, second, third := c.Nodes()[0], c.Nodes()[1], c.Nodes()[2]
		execSQL(t, first.DB(t), "CREATE TABLE t (id int PRIMARY KEY)")
		caughtUp(t, c)
		must(t, second.StopReceiving())
		for id := range 50 {
			execSQL(t, first.DB(t), fmt.Sprintf("INSERT INTO t VALUES (%d)", id))
		}
		must(t, third.WaitCaughtUp(within(t, 10*time.Second)))
		must(t, first.Kill())
		must(t, second.Promote())
		must(t, third.Repoint(second))
		execSQL(t, second.DB(t), "INSERT INTO t VALUES (1000)")
		if got := query(t, third.DB(t), "SELECT count(*) FROM t WHERE id < 1000"); got != "50" {
			t.Errorf("%s rows of the former primary, want 50", got)
		}
		if e == replicatedtest.Postgres {
			lags(t, third)
			if got := query(t, third.DB(t), "SELECT count(*) FROM t WHERE id = 1000"); got != "0" {
				t.Error("a standby on another timeline has the new row")
			}
		}
		must(t, third.Rebuild())
		caughtUp(t, c)
		if got := query(t, third.DB(t), "SELECT min(id) FROM t"); got != "1000" {
			t.Errorf("after the rebuilding there is row %s", got)
		}
	})
}

// A replica with rows of its own.
func TestDivergedReplica(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1, Log: testLog{t}})
		primary, n := c.Nodes()[0], c.Nodes()[1]
		execSQL(t, primary.DB(t), "CREATE TABLE t (id int PRIMARY KEY)")
		caughtUp(t, c)
		if e == replicatedtest.Postgres {
			// It takes a promotion to write there.
			must(t, n.Promote())
			execSQL(t, n.DB(t), "INSERT INTO t VALUES (-1)")
			must(t, n.Repoint(primary))
			if !n.IsReplica() || query(t, n.DB(t), "SELECT pg_is_in_recovery()") != "true" {
				t.Error("not a standby")
			}
		} else {
			// The administrator bypasses read_only.
			execSQL(t, n.AdminDB(t), "INSERT INTO t VALUES (-1)")
		}
		execSQL(t, primary.DB(t), "INSERT INTO t VALUES (1)")
		if e == replicatedtest.Postgres {
			lags(t, n)
		} else {
			caughtUp(t, c)
		}
		want := map[replicatedtest.Engine]string{replicatedtest.Postgres: "1", replicatedtest.MariaDB: "2", replicatedtest.MySQL: "2"}[e]
		if got := query(t, n.DB(t), "SELECT count(*) FROM t"); got != want {
			t.Errorf("%s rows, want %s", got, want)
		}
		if got := query(t, n.DB(t), "SELECT min(id) FROM t"); got != "-1" {
			t.Errorf("its own row is not there: %s", got)
		}
		must(t, n.Rebuild())
		caughtUp(t, c)
		if got := query(t, n.DB(t), "SELECT sum(id) FROM t"); got != "1" {
			t.Errorf("after the rebuilding the sum is %s", got)
		}
	})
}

// A former primary that is pointed to the new one with what it has: it refuses
// writes and follows, as it lacked nothing.
func TestFormerPrimaryIsRepointed(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1, Log: testLog{t}})
		first, second := c.Nodes()[0], c.Nodes()[1]
		execSQL(t, first.DB(t), "CREATE TABLE t (id int PRIMARY KEY)")
		must(t, first.Stop()) // in order, so that the replica has all
		must(t, second.Promote())
		execSQL(t, second.DB(t), "INSERT INTO t VALUES (1)")
		must(t, first.Repoint(second))
		caughtUp(t, c)
		if got := query(t, first.DB(t), "SELECT count(*) FROM t"); got != "1" {
			t.Errorf("%s rows", got)
		}
		if _, err := first.DB(t).Exec("INSERT INTO t VALUES (2)"); err == nil {
			t.Error("it takes writes")
		}
	})
}

// A replica that follows a replica, and on MariaDB writes in the middle whose
// numbers are used twice.
func TestChain(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Log: testLog{t}})
		first, middle, last := c.Nodes()[0], c.Nodes()[1], c.Nodes()[2]
		execSQL(t, first.DB(t), "CREATE TABLE t (id int PRIMARY KEY)")
		caughtUp(t, c)
		must(t, last.Follow(middle))
		execSQL(t, first.DB(t), "INSERT INTO t VALUES (1)")
		all := func() {
			t.Helper()
			// One after the other: the last one can be at most where the middle is.
			must(t, middle.WaitCaughtUp(within(t, 10*time.Second)))
			must(t, last.WaitCaughtUp(within(t, 10*time.Second)))
		}
		all()
		if got := query(t, last.DB(t), "SELECT count(*) FROM t"); got != "1" {
			t.Errorf("%s rows at the end of the chain", got)
		}
		want := "2"
		if e != replicatedtest.Postgres {
			for id := range 3 {
				execSQL(t, middle.AdminDB(t), fmt.Sprintf("INSERT INTO t VALUES (%d)", 100+id))
			}
			want = "5"
		}
		must(t, last.WaitCaughtUp(within(t, 10*time.Second)))
		must(t, last.Delay(300*time.Millisecond))
		execSQL(t, first.DB(t), "INSERT INTO t VALUES (2)")
		// The number of this row is that of a row of the middle, which the last
		// one has.
		all()
		if got := query(t, last.DB(t), "SELECT count(*) FROM t"); got != want {
			t.Errorf("%s rows at the end of the chain, want %s", got, want)
		}
		if got := query(t, last.DB(t), "SELECT count(*) FROM t WHERE id = 2"); got != "1" {
			t.Error("the row of the first is not at the end of the chain")
		}
		if e != replicatedtest.Postgres {
			if got := query(t, first.DB(t), "SELECT count(*) FROM t"); got != "2" {
				t.Errorf("%s rows on the first: those of the middle went up", got)
			}
		}
		// The middle's copy is as good as the middle.
		must(t, last.Rebuild())
		execSQL(t, first.DB(t), "INSERT INTO t VALUES (3)")
		all()
		if got := query(t, last.DB(t), "SELECT count(*) FROM t WHERE id IN (1, 2, 3)"); got != "3" {
			t.Errorf("%s rows of the first at the rebuilt end of the chain", got)
		}
		must(t, last.Follow(first))
		caughtUp(t, c)
	})
}

// Without a receiver and with no source at all a replica can be repointed.
func TestRepointEndsStopReceiving(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Log: testLog{t}})
		first, second, third := c.Nodes()[0], c.Nodes()[1], c.Nodes()[2]
		execSQL(t, first.DB(t), "CREATE TABLE t (id int PRIMARY KEY)")
		caughtUp(t, c)
		must(t, third.StopReceiving())
		must(t, third.Repoint(second))
		execSQL(t, first.DB(t), "INSERT INTO t VALUES (1)")
		must(t, second.WaitCaughtUp(within(t, 10*time.Second)))
		must(t, third.WaitCaughtUp(within(t, 10*time.Second)))
		must(t, third.Stop())
		if e != replicatedtest.Postgres {
			// It gets nothing more of whom it followed.
			execSQL(t, second.AdminDB(t), "INSERT INTO t VALUES (100)")
		}
		must(t, third.Repoint(first)) // starts it
		must(t, second.Stop())
		execSQL(t, first.DB(t), "INSERT INTO t VALUES (2)")
		caughtUp(t, c)
		if got := query(t, third.DB(t), "SELECT count(*) FROM t"); got != "2" {
			t.Errorf("%s rows", got)
		}
		if err := third.Repoint(third); err == nil {
			t.Error("a node follows itself")
		}
	})
}
