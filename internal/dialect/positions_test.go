package dialect_test

import (
	"database/sql/driver"
	"strings"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/dialect"
	"github.com/sqlreplicated/replicated/internal/position"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

func sample(tb testing.TB, d *dialect.Dialect, conn driver.Conn) dialect.Identity {
	tb.Helper()
	id, err := d.Sample(testContext(tb), conn)
	if err != nil {
		tb.Fatalf("Sample: %v", err)
	}
	return id
}

// sampler opens the connections that samples are taken over. On MySQL 5.6 they
// take a privilege that the application's user has not.
func sampler(tb testing.TB, c *replicatedtest.Cluster, n *replicatedtest.Node) driver.Conn {
	tb.Helper()
	if c.Engine() == replicatedtest.MySQL {
		return open(tb, c.DriverName(), n.AdminDSN())
	}
	return open(tb, c.DriverName(), n.DSN())
}

func caughtUp(tb testing.TB, c *replicatedtest.Cluster) {
	tb.Helper()
	if err := c.WaitCaughtUp(testContext(tb)); err != nil {
		tb.Fatal(err)
	}
}

// TestSamplesTellWhatHasArrived has a replica stand still before and after a write.
func TestSamplesTellWhatHasArrived(t *testing.T) {
	eachEngine(t, func(t *testing.T, c *replicatedtest.Cluster, d *dialect.Dialect) {
		replica := c.Replicas()[0]
		app := open(t, c.DriverName(), c.Primary().DSN())
		p, r := sampler(t, c, c.Primary()), sampler(t, c, replica)
		mustRun(t, app, "CREATE TABLE t (a int PRIMARY KEY)")
		caughtUp(t, c)
		if err := replica.PauseReplication(); err != nil {
			t.Fatal(err)
		}
		behind := sample(t, d, r)
		mustRun(t, app, "INSERT INTO t VALUES (1)")
		primary := sample(t, d, p)
		for name, id := range map[string]dialect.Identity{"primary": primary, "replica": behind} {
			if id.NoPosition != "" {
				t.Errorf("%s: NoPosition %q", name, id.NoPosition)
			}
		}
		if why := primary.NoWritten(); why != "" || primary.Written.IsZero() || primary.ReadOnly {
			t.Fatalf("the primary's sample %+v: %q", primary, why)
		}
		if why := behind.NoApplied(primary.Server); why != "" || !behind.ReadOnly {
			t.Fatalf("the replica's sample %+v: %q", behind, why)
		}
		for _, q := range wrote(primary) {
			if behind.AppliedFrom(primary.Server).Contains(q) {
				t.Errorf("replica at %v contains %v, which it has not applied", behind.AppliedFrom(primary.Server), q)
			}
		}
		if still := sample(t, d, r); wrote(primary)[0].IsEmpty() || still.AppliedFrom(primary.Server).Contains(primary.Written) {
			t.Errorf("replica at %v contains %v, which it has not applied", still.AppliedFrom(primary.Server), primary.Written)
		}

		if err := replica.ResumeReplication(); err != nil {
			t.Fatal(err)
		}
		caughtUp(t, c)
		arrived := sample(t, d, r)
		if !arrived.AppliedFrom(primary.Server).Contains(primary.Written) {
			t.Errorf("replica at %v does not contain %v, which it has applied", arrived.AppliedFrom(primary.Server), primary.Written)
		}
		later := sample(t, d, p)
		if !later.Written.Includes(primary.Written) || arrived.AppliedFrom(primary.Server).Exceeds(later.Written) {
			t.Errorf("primary at %v, then %v; replica at %v", primary.Written, later.Written, arrived.AppliedFrom(primary.Server))
		}
		// The roles are not to be confused.
		if d.Kind == classify.Postgres {
			if !primary.Applied.IsZero() || primary.NoApplied(primary.Server) == "" || !behind.Written.IsZero() || behind.NoWritten() == "" {
				t.Errorf("a position for the other role: primary %+v, replica %+v", primary, behind)
			}
		}
		// Over the application's connection, with no privilege, Identify tells the
		// same or says that Sample has to be asked.
		id := identify(t, d, app)
		if id.FilePositions != (d.Kind == classify.MySQL && id.VersionNum < 50700) || id.NoPosition != "" {
			t.Errorf("Identify: FilePositions %v, NoPosition %q", id.FilePositions, id.NoPosition)
		}
		if id.FilePositions == (id.NoWritten() == "") || id.FilePositions != id.Written.IsZero() {
			t.Errorf("Identify: FilePositions %v, Written %v, NoWritten %q", id.FilePositions, id.Written, id.NoWritten())
		}
	})
}

// wrote are the positions of a primary.
func wrote(id dialect.Identity) []position.Position {
	all := []position.Position{id.Written}
	if !id.Inserted.IsZero() {
		all = append(all, id.Inserted)
	}
	return all
}

// TestInsertPositionIsReached fills a page of the log to its end, where the
// function's answer is past anything that a replica ever reaches.
func TestInsertPositionIsReached(t *testing.T) {
	c := replicatedtest.Start(t, replicatedtest.Postgres, replicatedtest.Options{Replicas: 1, NoStatementLog: true})
	d := dialect.For(classify.Postgres)
	admin, r := open(t, c.DriverName(), c.Primary().AdminDSN()), open(t, c.DriverName(), c.Replicas()[0].DSN())
	// After the switch the next record begins behind the header of a segment.
	mustRun(t, admin, "SELECT pg_switch_wal()")
	corrected := false
	for end := time.Now().Add(20 * time.Second); !corrected; {
		raw := ask(t, admin, "SELECT pg_current_wal_insert_lsn()")
		id := sample(t, d, admin)
		if again := ask(t, admin, "SELECT pg_current_wal_insert_lsn()"); again != raw {
			continue // the server has written something on its own account
		}
		if corrected = raw != id.Inserted.String(); !corrected {
			mustRun(t, admin, "SELECT pg_switch_wal()")
		}
		caughtUp(t, c)
		for !sample(t, d, r).Applied.Contains(id.Inserted) {
			if time.Now().After(end) {
				t.Fatalf("the replica at %v has not reached %v (insert LSN %s)", sample(t, d, r).Applied, id.Inserted, raw)
			}
		}
		if time.Now().After(end) {
			t.Fatal("no insert LSN at the beginning of a segment has been seen")
		}
	}
}

// TestInsertPositionIsPastAnAsynchronousCommit holds why there are two.
func TestInsertPositionIsPastAnAsynchronousCommit(t *testing.T) {
	c := replicatedtest.Start(t, replicatedtest.Postgres, replicatedtest.Options{
		Replicas: -1, NoStatementLog: true, Settings: map[string]string{"wal_writer_delay": "10s", "wal_writer_flush_after": "0"}})
	d := dialect.For(classify.Postgres)
	conn := open(t, c.DriverName(), c.Primary().DSN("synchronous_commit=off"))
	mustRun(t, conn, "CREATE TABLE t (a int)")
	for end := time.Now().Add(20 * time.Second); ; {
		mustRun(t, conn, "INSERT INTO t VALUES (1)")
		id := sample(t, d, conn)
		if id.Inserted.Exceeds(id.Written) {
			if !id.AsyncCommit || id.Written.Contains(id.Inserted) {
				t.Errorf("%+v", id)
			}
			return
		}
		if time.Now().After(end) {
			t.Fatalf("insert %v is never past flush %v", id.Inserted, id.Written)
		}
	}
}

func TestSampleOfAPromotedStandby(t *testing.T) {
	c := replicatedtest.Start(t, replicatedtest.Postgres, replicatedtest.Options{Replicas: 1, NoStatementLog: true})
	d := dialect.For(classify.Postgres)
	conn := open(t, c.DriverName(), c.Replicas()[0].DSN())
	before := sample(t, d, conn)
	if err := c.Replicas()[0].Promote(); err != nil {
		t.Fatal(err)
	}
	// pg_last_wal_replay_lsn() still answers what it was.
	after := sample(t, d, conn)
	if after.ReadOnly || !after.Applied.IsZero() || after.Written.IsZero() || after.Server != before.Server ||
		before.Lineage != before.Cluster+"/1" || after.Lineage != after.Cluster+"/2" || !after.LineageExact {
		t.Errorf("before %+v, after the promotion %+v", before, after)
	}
}

// TestSampleShowsResetMaster: a history that was thrown away is seen.
func TestSampleShowsResetMaster(t *testing.T) {
	for _, engine := range []replicatedtest.Engine{replicatedtest.MariaDB, replicatedtest.MySQL} {
		t.Run(engine.String(), func(t *testing.T) {
			c := replicatedtest.Start(t, engine, replicatedtest.Options{Replicas: -1, NoStatementLog: true})
			d := dialect.For(engines[engine])
			admin := open(t, c.DriverName(), c.Primary().AdminDSN())
			mustRun(t, admin, "USE "+replicatedtest.Database, "CREATE TABLE t (a int)", "INSERT INTO t VALUES (1)")
			before := sample(t, d, admin)
			mustRun(t, admin, "RESET MASTER")
			after := sample(t, d, admin)
			if after.Written.Includes(before.Written) || after.NoPosition != "" || engine == replicatedtest.MariaDB && !after.Written.IsEmpty() {
				t.Errorf("%v, after RESET MASTER %v: %q", before.Written, after.Written, after.NoPosition)
			}
			mustRun(t, admin, "INSERT INTO t VALUES (2)")
			if again := sample(t, d, admin); again.Written.Includes(before.Written) || again.Written.IsEmpty() {
				t.Errorf("%v, after RESET MASTER and a write %v", before.Written, again.Written)
			}
		})
	}
}

func TestSampleWithoutBinaryLog(t *testing.T) {
	for _, engine := range []replicatedtest.Engine{replicatedtest.MariaDB, replicatedtest.MySQL} {
		t.Run(engine.String(), func(t *testing.T) {
			settings := map[string]string{"skip-log-bin": "1"}
			if engine == replicatedtest.MySQL {
				settings = map[string]string{"skip-log-bin": "1", "skip-log-slave-updates": "1", "gtid-mode": "OFF", "enforce-gtid-consistency": "OFF"}
			}
			c := replicatedtest.Start(t, engine, replicatedtest.Options{Replicas: -1, NoStatementLog: true, Settings: settings})
			id := sample(t, dialect.For(engines[engine]), open(t, c.DriverName(), c.Primary().AdminDSN()))
			if !id.Written.IsZero() || !strings.Contains(id.NoPosition, "log_bin is OFF") || id.NoWritten() != id.NoPosition {
				t.Errorf("Written %v, NoPosition %q, NoWritten %q", id.Written, id.NoPosition, id.NoWritten())
			}
		})
	}
}

// A middle server of a chain that writes too: its numbers, and those of a server
// behind it, are past the primary's, and both lack the row.
func TestSampleOfAChainWithLocalWrites(t *testing.T) {
	c := replicatedtest.Start(t, replicatedtest.MariaDB, replicatedtest.Options{Replicas: 1, WritableReplicas: true, NoStatementLog: true})
	d := dialect.For(classify.MariaDB)
	replica := c.Replicas()[0]
	p, local := open(t, c.DriverName(), c.Primary().DSN()), open(t, c.DriverName(), replica.DSN())
	mustRun(t, p, "CREATE TABLE t (a int)")
	caughtUp(t, c)
	if err := replica.PauseReplication(); err != nil {
		t.Fatal(err)
	}
	mustRun(t, p, "INSERT INTO t VALUES (1)")
	mustRun(t, local, "CREATE TABLE l (a int)", "INSERT INTO l VALUES (1)", "INSERT INTO l VALUES (2)")
	primary, middle := sample(t, d, p), sample(t, d, local)
	if middle.Applied.Contains(primary.Written) {
		t.Errorf("applied %v contains %v", middle.Applied, primary.Written)
	}
	// What a server that follows the middle one would have.
	chained, err := position.ParseGTIDList(middle.Written.String())
	if err != nil {
		t.Fatal(err)
	}
	if chained.Contains(primary.Written) {
		t.Errorf("applied %v contains %v", chained, primary.Written)
	}
	// What the middle one writes itself does not hide what it has applied.
	if err := replica.ResumeReplication(); err != nil {
		t.Fatal(err)
	}
	caughtUp(t, c)
	mustRun(t, local, "INSERT INTO l VALUES (3)")
	if middle = sample(t, d, local); !middle.Applied.Contains(primary.Written) {
		t.Errorf("applied %v does not contain %v", middle.Applied, primary.Written)
	}
}
