package replicatedtest_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

// A standby that crashes and recovers under the same start time shows less than
// it did.
func TestCrashedBackendTakesAStandbyBack(t *testing.T) {
	c := replicatedtest.Start(t, replicatedtest.Postgres, replicatedtest.Options{Replicas: 1, Log: testLog{t}})
	db, n := c.Primary().DB(t), c.Replicas()[0]
	execSQL(t, db, "CREATE TABLE t (id int PRIMARY KEY)")
	caughtUp(t, c)
	execSQL(t, n.AdminDB(t), "CHECKPOINT") // a restartpoint, if it comes to one
	execSQL(t, db, "INSERT INTO t VALUES (1)")
	caughtUp(t, c)
	replica := n.DB(t)
	const started, rows = "SELECT pg_postmaster_start_time()", "SELECT count(*) FROM t"
	before := query(t, replica, started)
	pid := n.Pid()
	if got := query(t, replica, rows); got != "1" {
		t.Fatalf("%s rows before", got)
	}
	must(t, n.Delay(time.Hour))
	victim, bystander := openConn(t, replica), openConn(t, replica)
	must(t, bystander.PingContext(context.Background()))
	id, err := strconv.ParseInt(queryConn(t, victim, "SELECT pg_backend_pid()"), 10, 64)
	must(t, err)
	must(t, n.CrashBackend(id))
	for _, conn := range []interface{ PingContext(context.Context) error }{victim, bystander} {
		if err := conn.PingContext(context.Background()); err == nil {
			t.Error("a session has outlived the crash")
		}
	}
	if got := query(t, replica, started); got != before {
		t.Errorf("start time %s, before %s", got, before)
	}
	if n.Pid() != pid || !n.IsReplica() {
		t.Error("another server")
	}
	if got := query(t, replica, rows); got != "0" {
		t.Errorf("%s rows after the crash", got)
	}
	must(t, n.Delay(0))
	caughtUp(t, c)
	if got := query(t, replica, rows); got != "1" {
		t.Errorf("%s rows at last", got)
	}
	if err := n.CrashBackend(id); err == nil {
		t.Error("a session that is not there was killed")
	}
}

func TestCrashedBackendOfAPrimary(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1, Log: testLog{t}})
		n := c.Primary()
		db := n.DB(t)
		execSQL(t, db, "CREATE TABLE t (id int PRIMARY KEY)")
		execSQL(t, db, "INSERT INTO t VALUES (1)")
		id, err := strconv.ParseInt(query(t, db, sessionID[e]), 10, 64)
		must(t, err)
		err = n.CrashBackend(id)
		if e != replicatedtest.Postgres {
			if !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("error %v", err)
			}
			return
		}
		must(t, err)
		execSQL(t, n.DB(t), "INSERT INTO t VALUES (2)")
		caughtUp(t, c)
		if got := query(t, c.Replicas()[0].DB(t), "SELECT count(*) FROM t"); got != "2" {
			t.Errorf("%s rows", got)
		}
	})
}
