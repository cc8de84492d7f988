package replicatedtest_test

import (
	"errors"
	"testing"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

// position is a query for how far a writable server is.
var position = map[replicatedtest.Engine]string{
	replicatedtest.Postgres: "SELECT pg_current_wal_flush_lsn()",
	replicatedtest.MariaDB:  "SELECT @@gtid_binlog_pos",
	replicatedtest.MySQL:    "SELECT @@global.gtid_executed",
}

// A primary that was put back to an older copy: its replica has what it lacks.
func TestRestoredPrimaryHasForgotten(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1, Log: testLog{t}})
		primary, replica := c.Primary(), c.Replicas()[0]
		identity := map[replicatedtest.Engine]string{
			replicatedtest.Postgres: "SELECT system_identifier || '/' || timeline_id FROM pg_control_system(), pg_control_checkpoint()",
			replicatedtest.MariaDB:  "SELECT @@server_id",
			replicatedtest.MySQL:    "SELECT @@server_uuid",
		}[e]
		execSQL(t, primary.DB(t), "CREATE TABLE t (id int PRIMARY KEY)")
		execSQL(t, primary.DB(t), "INSERT INTO t VALUES (1)")
		if _, err := primary.Snapshot(); err == nil {
			t.Fatal("a running server was copied")
		}
		must(t, primary.Stop())
		s, err := primary.Snapshot()
		must(t, err)
		must(t, primary.Start())
		if err := primary.Restore(s); err == nil {
			t.Fatal("a running server was restored")
		}
		was, whoever := query(t, primary.DB(t), position[e]), query(t, primary.AdminDB(t), identity)
		execSQL(t, primary.DB(t), "INSERT INTO t VALUES (2)")
		execSQL(t, primary.DB(t), "INSERT INTO t VALUES (3)")
		caughtUp(t, c)
		if err := replica.Restore(s); err == nil {
			t.Fatal("a snapshot of another node was restored")
		}
		for _, end := range []func() error{primary.Stop, primary.Kill} { // as often as wanted
			must(t, end())
			must(t, primary.Restore(s))
			must(t, primary.Start())
			if got := query(t, primary.DB(t), "SELECT max(id) FROM t"); got != "1" {
				t.Errorf("the restored primary has row %s", got)
			}
			if got := query(t, primary.DB(t), position[e]); e != replicatedtest.Postgres && got != was {
				t.Errorf("it is at %s, the copy was at %s", got, was)
			}
			if got := query(t, primary.AdminDB(t), identity); got != whoever {
				t.Errorf("it is %s, the copy was %s", got, whoever)
			}
		}
		if got := query(t, replica.DB(t), "SELECT max(id) FROM t"); got != "3" {
			t.Errorf("the replica has row %s", got)
		}
		execSQL(t, primary.DB(t), "INSERT INTO t VALUES (10)")
		must(t, replica.Rebuild())
		caughtUp(t, c)
		if got := query(t, replica.DB(t), "SELECT sum(id) FROM t"); got != "11" {
			t.Errorf("the rebuilt replica has the sum %s, want 11", got)
		}
	})
}

// A replica that was put back follows again.
func TestRestoredReplicaCatchesUp(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1, Log: testLog{t}})
		primary, replica := c.Primary(), c.Replicas()[0]
		execSQL(t, primary.DB(t), "CREATE TABLE t (id int PRIMARY KEY)")
		caughtUp(t, c)
		must(t, replica.Stop())
		s, err := replica.Snapshot()
		must(t, err)
		must(t, replica.Start())
		execSQL(t, primary.DB(t), "INSERT INTO t VALUES (1)")
		caughtUp(t, c)
		must(t, replica.Kill())
		must(t, replica.Restore(s))
		must(t, replica.Start())
		caughtUp(t, c)
		if got := query(t, replica.DB(t), "SELECT count(*) FROM t"); got != "1" {
			t.Errorf("%s rows", got)
		}
		must(t, replica.Promote())
		must(t, replica.Stop())
		if err := replica.Restore(s); err == nil {
			t.Error("a primary was restored to what it was as a replica")
		}
	})
}

// The history that a primary has forgotten, its replica remembers.
func TestResetBinaryLog(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1, Log: testLog{t}})
		primary, replica := c.Primary(), c.Replicas()[0]
		execSQL(t, primary.DB(t), "CREATE TABLE t (id int PRIMARY KEY)")
		execSQL(t, primary.DB(t), "INSERT INTO t VALUES (1)")
		caughtUp(t, c)
		if e == replicatedtest.Postgres {
			if err := primary.ResetBinaryLog(); !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("error %v", err)
			}
			return
		}
		applied := map[replicatedtest.Engine]string{
			replicatedtest.MariaDB: "SELECT @@gtid_slave_pos",
			replicatedtest.MySQL:   "SELECT @@global.gtid_executed",
		}[e]
		before := query(t, replica.DB(t), applied)
		must(t, primary.ResetBinaryLog())
		if got := query(t, primary.DB(t), position[e]); got != "" {
			t.Errorf("position %q", got)
		}
		execSQL(t, primary.DB(t), "INSERT INTO t VALUES (2)")
		if got := query(t, primary.DB(t), position[e]); got == "" || got == before {
			t.Errorf("position %q after a write, the replica's was %q", got, before)
		}
		if got := query(t, primary.DB(t), "SELECT count(*) FROM t"); got != "2" {
			t.Errorf("the primary has %s rows", got)
		}
		must(t, replica.Rebuild())
		caughtUp(t, c)
		if got := query(t, replica.DB(t), "SELECT count(*) FROM t"); got != "2" {
			t.Errorf("the rebuilt replica has %s rows", got)
		}
	})
}
