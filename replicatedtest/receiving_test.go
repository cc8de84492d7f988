package replicatedtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

// receiving is a query on a replica that counts what receives for it.
var receiving = map[replicatedtest.Engine]string{
	replicatedtest.Postgres: "SELECT count(*) FROM pg_stat_wal_receiver",
	replicatedtest.MariaDB:  "SELECT count(*) FROM information_schema.processlist WHERE command = 'Slave_IO'",
	replicatedtest.MySQL:    "SELECT count(*) FROM information_schema.processlist WHERE user = 'system user' AND state LIKE '%master%'",
}

// lags asserts that the replica does not catch up within a while.
func lags(t *testing.T, n *replicatedtest.Node) {
	t.Helper()
	if err := n.WaitCaughtUp(within(t, 400*time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%s has caught up: %v", n, err)
	}
}

func TestReplicaReceivesNothingUntilResumed(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Log: testLog{t}})
		db, deaf, other := c.Primary().DB(t), c.Replicas()[0], c.Replicas()[1]
		admin := deaf.AdminDB(t)
		execSQL(t, db, "CREATE TABLE t (id int PRIMARY KEY)")
		caughtUp(t, c)
		if got := query(t, admin, receiving[e]); got != "1" {
			t.Fatalf("%s receivers before", got)
		}
		must(t, deaf.StopReceiving())
		must(t, deaf.StopReceiving()) // nothing to do
		if got := query(t, admin, receiving[e]); got != "0" {
			t.Errorf("%s receivers", got)
		}
		// It is as fresh as the primary until that writes.
		must(t, deaf.WaitCaughtUp(within(t, 10*time.Second)))
		execSQL(t, db, "INSERT INTO t VALUES (1)")
		must(t, other.WaitCaughtUp(within(t, 10*time.Second)))
		lags(t, deaf)
		if got := query(t, admin, receiving[e]); got != "0" {
			t.Errorf("%s receivers after a while", got)
		}
		if got := query(t, deaf.DB(t), "SELECT count(*) FROM t"); got != "0" {
			t.Errorf("%s rows", got)
		}
		must(t, deaf.ResumeReceiving())
		caughtUp(t, c)

		// A restart ends it, too.
		must(t, deaf.StopReceiving())
		execSQL(t, db, "INSERT INTO t VALUES (2)")
		must(t, deaf.Stop())
		must(t, deaf.Start())
		caughtUp(t, c)
		if got := query(t, deaf.DB(t), "SELECT count(*) FROM t"); got != "2" {
			t.Errorf("after a restart: %s rows", got)
		}
		if err := c.Primary().StopReceiving(); err == nil {
			t.Error("a primary can stop receiving")
		}
	})
}

// What has been received is applied all the same, and what holds back applying
// does not keep the receiver alive.
func TestReplicaAppliesWhatItHasReceived(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1, Log: testLog{t}})
		db, n := c.Primary().DB(t), c.Replicas()[0]
		execSQL(t, db, "CREATE TABLE t (id int PRIMARY KEY)")
		caughtUp(t, c)
		must(t, n.PauseReplication())
		execSQL(t, db, "INSERT INTO t VALUES (1)")
		waitReceived(t, c, n)
		must(t, n.StopReceiving())
		if got := query(t, n.AdminDB(t), receiving[e]); got != "0" {
			t.Errorf("%s receivers", got)
		}
		execSQL(t, db, "INSERT INTO t VALUES (2)")
		must(t, n.ResumeReplication())
		replica := n.DB(t)
		if e == replicatedtest.MariaDB {
			lags(t, n)
			if got := query(t, replica, "SELECT count(*) FROM t"); got != "0" {
				t.Errorf("%s rows: MariaDB remembers what it has received", got)
			}
			must(t, n.ResumeReceiving())
			caughtUp(t, c)
			return
		}
		for deadline := time.Now().Add(10 * time.Second); query(t, replica, "SELECT count(*) FROM t") != "1"; {
			if time.Now().After(deadline) {
				t.Fatal("the row that was received is not applied")
			}
		}
		lags(t, n)
		if got := query(t, replica, "SELECT max(id) FROM t"); got != "1" {
			t.Errorf("row %s is there", got)
		}
		must(t, n.ResumeReceiving())
		caughtUp(t, c)
	})
}

// waitReceived waits until the replica, which need not apply, has received what
// its primary has.
func waitReceived(t *testing.T, c *replicatedtest.Cluster, n *replicatedtest.Node) {
	t.Helper()
	received := func() bool {
		primary, replica := c.Primary().AdminDB(t), n.AdminDB(t)
		if c.Engine() == replicatedtest.Postgres {
			at := query(t, primary, "SELECT pg_current_wal_flush_lsn()")
			return query(t, replica, "SELECT coalesce(pg_last_wal_receive_lsn() >= '"+at+"', false)") == "true"
		}
		at, has := queryRow(t, primary, "SHOW MASTER STATUS"), queryRow(t, replica, "SHOW SLAVE STATUS")
		return has["Master_Log_File"] == at["File"] && has["Read_Master_Log_Pos"] == at["Position"]
	}
	for deadline := time.Now().Add(10 * time.Second); !received(); {
		if time.Now().After(deadline) {
			t.Fatal("it does not arrive")
		}
	}
}

// What a replica had received is there when it is promoted, also if it was
// paused.
func TestPromotedReplicaHasWhatItHadReceived(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1, Log: testLog{t}})
		db, n := c.Primary().DB(t), c.Replicas()[0]
		execSQL(t, db, "CREATE TABLE t (id int PRIMARY KEY)")
		caughtUp(t, c)
		must(t, n.PauseReplication())
		execSQL(t, db, "INSERT INTO t VALUES (1)")
		waitReceived(t, c, n)
		must(t, c.Primary().Kill())
		must(t, n.Promote())
		if got := query(t, n.DB(t), "SELECT count(*) FROM t"); got != "1" {
			t.Errorf("%s rows", got)
		}
	})
}

// A replica that stops receiving after a failover has caught up all the same,
// though little tells of the new timeline then.
func TestCaughtUpAfterAFailoverWithoutAReceiver(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Log: testLog{t}})
		first, second, third := c.Nodes()[0], c.Nodes()[1], c.Nodes()[2]
		execSQL(t, first.DB(t), "CREATE TABLE t (id int PRIMARY KEY)")
		caughtUp(t, c)
		must(t, first.Kill())
		must(t, second.Promote())
		must(t, third.Follow(second))
		execSQL(t, second.DB(t), "INSERT INTO t VALUES (1)")
		caughtUp(t, c)
		must(t, third.StopReceiving())
		caughtUp(t, c)
		execSQL(t, second.DB(t), "INSERT INTO t VALUES (2)")
		lags(t, third)
	})
}
