package dialect_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/dialect"
	"github.com/sqlreplicated/replicated/internal/position"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

func makeHeartbeat(tb testing.TB, d *dialect.Dialect, conn driver.Conn, table string) {
	tb.Helper()
	ddl, err := d.HeartbeatDDL(table)
	if err != nil {
		tb.Fatal(err)
	}
	mustRun(tb, conn, ddl...)
}

func beat(tb testing.TB, read func(context.Context, driver.Conn, string) (position.Position, error), conn driver.Conn, table string) position.Position {
	tb.Helper()
	p, err := read(testContext(tb), conn, table)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func TestHeartbeatArrives(t *testing.T) {
	eachEngine(t, func(t *testing.T, c *replicatedtest.Cluster, d *dialect.Dialect) {
		table := "Beats_1"
		if d.Kind == classify.Postgres {
			table = "public.Beats_1"
		}
		p, r := open(t, c.DriverName(), c.Primary().DSN()), open(t, c.DriverName(), c.Replicas()[0].DSN())
		makeHeartbeat(t, d, p, table)
		mustRun(t, p, "CREATE TABLE t (a int)")
		first := beat(t, d.Beat, p, table)
		caughtUp(t, c)
		if got := beat(t, d.ReadBeat, r, table); !got.Contains(first) || got.Exceeds(first) || first.Kind() != position.Beat || first.IsEmpty() {
			t.Errorf("the replica has %v, want %v", got, first)
		}
		if err := c.Replicas()[0].PauseReplication(); err != nil {
			t.Fatal(err)
		}
		mustRun(t, p, "INSERT INTO t VALUES (1)")
		second := beat(t, d.Beat, p, table)
		if !second.Contains(first) || first.Contains(second) {
			t.Errorf("%v is followed by %v", first, second)
		}
		if got := beat(t, d.ReadBeat, r, table); got.Contains(second) {
			t.Errorf("the replica, paused, has %v, which contains %v", got, second)
		}
		if got := beat(t, d.ReadBeat, p, table); !got.Equal(second) {
			t.Errorf("the primary has %v, want %v", got, second)
		}
		if err := c.Replicas()[0].ResumeReplication(); err != nil {
			t.Fatal(err)
		}
		caughtUp(t, c)
		if got := beat(t, d.ReadBeat, r, table); !got.Contains(second) {
			t.Errorf("the replica has %v, which does not contain %v", got, second)
		}
		ok, why, err := d.InOrderApply(testContext(t), r)
		if !ok || why != "" || err != nil {
			t.Errorf("InOrderApply on the replica = %v, %q, %v", ok, why, err)
		}
		if _, err := d.Beat(testContext(t), r, table); d.Class(err) != dialect.Fence {
			t.Errorf("Beat on a replica: %v (class %v)", err, d.Class(err))
		}

		// The DDL again changes nothing; a table that is made anew has other beats.
		makeHeartbeat(t, d, p, table)
		if got := beat(t, d.ReadBeat, p, table); !got.Equal(second) {
			t.Errorf("after the DDL again: %v, want %v", got, second)
		}
		quoted := map[bool]string{true: `public."Beats_1"`, false: "Beats_1"}[d.Kind == classify.Postgres]
		mustRun(t, p, "DELETE FROM "+quoted)
		if _, err := d.Beat(testContext(t), p, table); !errors.Is(err, dialect.ErrNoHeartbeat) {
			t.Errorf("Beat of no row: %v", err)
		}
		mustRun(t, p, "DROP TABLE "+quoted)
		if _, err := d.Beat(testContext(t), p, table); d.Class(err) != dialect.Missing {
			t.Errorf("Beat of no table: %v (class %v)", err, d.Class(err))
		}
		makeHeartbeat(t, d, p, table)
		if got := beat(t, d.Beat, p, table); got.Contains(first) || first.Contains(got) {
			t.Errorf("of another table %v, of the former one %v", got, first)
		}
	})
}

// TestBeatsOfSeveralProcesses: what Beat returns is committed, and no less than its
// own count.
func TestBeatsOfSeveralProcesses(t *testing.T) {
	eachEngine(t, func(t *testing.T, c *replicatedtest.Cluster, d *dialect.Dialect) {
		makeHeartbeat(t, d, open(t, c.DriverName(), c.Primary().DSN()), "beats")
		var wg sync.WaitGroup
		for range 4 {
			conn, other := open(t, c.DriverName(), c.Primary().DSN()), open(t, c.DriverName(), c.Primary().DSN())
			wg.Go(func() {
				last := position.Position{}
				for range 50 {
					before, err1 := d.ReadBeat(testContext(t), other, "beats")
					now, err2 := d.Beat(testContext(t), conn, "beats")
					after, err3 := d.ReadBeat(testContext(t), other, "beats")
					if err := errors.Join(err1, err2, err3); err != nil {
						t.Error(err)
						return
					}
					if before.Contains(now) || !after.Contains(now) || last.Contains(now) {
						t.Errorf("%v, then Beat %v (last %v), then %v", before, now, last, after)
					}
					last = now
				}
			})
		}
		wg.Wait()
	})
}

func TestHeartbeatRefusesATransactionThatStaysOpen(t *testing.T) {
	for _, engine := range []replicatedtest.Engine{replicatedtest.MariaDB, replicatedtest.MySQL} {
		t.Run(engine.String(), func(t *testing.T) {
			c := replicatedtest.Start(t, engine, replicatedtest.Options{Replicas: -1, NoStatementLog: true})
			d := dialect.For(engines[engine])
			makeHeartbeat(t, d, open(t, c.DriverName(), c.Primary().DSN()), "beats")
			conn := open(t, c.DriverName(), c.Primary().DSN("autocommit=0"))
			for name, call := range map[string]func(context.Context, driver.Conn, string) (position.Position, error){"Beat": d.Beat, "ReadBeat": d.ReadBeat} {
				if p, err := call(testContext(t), conn, "beats"); err == nil || !p.IsZero() {
					t.Errorf("%s = %v, %v", name, p, err)
				}
			}
		})
	}
}

func TestHeartbeatTableNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"beat": true, "Beat_2$": true, "app.beat": true, "2": true,
		"": false, "a.b.c": false, ".beat": false, "app.": false, "a b": false, `a"b`: false, "a`b": false, "a;b": false, "a\x00": false, "é": false, "a-b": false,
		strings.Repeat("x", 63): true, strings.Repeat("x", 65): false,
	} {
		for _, kind := range []classify.Dialect{classify.Postgres, classify.MySQL, classify.MariaDB, classify.AnyMySQL} {
			d := dialect.For(kind)
			ddl, err := d.HeartbeatDDL(name)
			if (err == nil) != ok || ok && len(ddl) == 0 {
				t.Errorf("%v: HeartbeatDDL(%q) = %q, %v", kind, name, ddl, err)
			}
			if !ok {
				if _, err := d.Beat(t.Context(), nil, name); err == nil {
					t.Errorf("%v: Beat(%q) is tried", kind, name)
				}
				if _, err := d.ReadBeat(t.Context(), nil, name); err == nil {
					t.Errorf("%v: ReadBeat(%q) is tried", kind, name)
				}
			}
		}
	}
	ddl := func(d classify.Dialect) string {
		s, _ := dialect.For(d).HeartbeatDDL("app.Beat")
		return strings.Join(s, ";\n")
	}
	if s := ddl(classify.Postgres); !strings.Contains(s, `"app"."Beat"`) || strings.Contains(s, "@") || s == ddl(classify.Postgres) {
		t.Errorf("%s", s)
	}
	if s := ddl(classify.MySQL); !strings.Contains(s, "`app`.`Beat`") || strings.Contains(s, "@") || s == ddl(classify.MySQL) {
		t.Errorf("%s", s)
	}
}

func TestInOrderApplyOnServers(t *testing.T) {
	inOrder := func(t *testing.T, d *dialect.Dialect, conn driver.Conn, want bool, part string) {
		t.Helper()
		ok, why, err := d.InOrderApply(testContext(t), conn)
		if ok != want || !says(why, part) || err != nil {
			t.Errorf("InOrderApply = %v, %q, %v; want %v, %q", ok, why, err, want, part)
		}
	}
	t.Run("mysql", func(t *testing.T) {
		c := replicatedtest.Start(t, replicatedtest.MySQL, replicatedtest.Options{Replicas: 1, NoStatementLog: true,
			ReplicaSettings: map[string]string{"slave-parallel-workers": "4"}})
		d, conn := dialect.For(classify.MySQL), open(t, c.DriverName(), c.Replicas()[0].DSN())
		if identify(t, d, conn).VersionNum >= 50700 {
			t.Skip("this MySQL may keep the order")
		}
		inOrder(t, d, conn, false, "slave_parallel_workers > 1")
		inOrder(t, d, open(t, c.DriverName(), c.Primary().DSN()), true, "")
	})
	t.Run("mariadb", func(t *testing.T) {
		c := replicatedtest.Start(t, replicatedtest.MariaDB, replicatedtest.Options{Replicas: 1, NoStatementLog: true,
			ReplicaSettings: map[string]string{"slave-parallel-threads": "4", "slave-parallel-mode": "aggressive"}})
		d, conn := dialect.For(classify.MariaDB), open(t, c.DriverName(), c.Replicas()[0].DSN())
		admin := open(t, c.DriverName(), c.Primary().AdminDSN())
		mustRun(t, admin, "USE "+replicatedtest.Database, "CREATE TABLE t (a int)")
		caughtUp(t, c)
		inOrder(t, d, conn, true, "")
		mustRun(t, admin, "SET gtid_domain_id = 5", "INSERT INTO t VALUES (1)")
		caughtUp(t, c)
		inOrder(t, d, conn, false, "several GTID domains")
	})
	t.Run("postgres", func(t *testing.T) {
		c := replicatedtest.Start(t, replicatedtest.Postgres, replicatedtest.Options{Replicas: -1, NoStatementLog: true,
			Settings: map[string]string{"wal_level": "logical"}})
		d, admin := dialect.For(classify.Postgres), open(t, c.DriverName(), c.Primary().AdminDSN())
		app := open(t, c.DriverName(), c.Primary().DSN())
		inOrder(t, d, app, false, "neither in recovery")
		subscribe := func(name string) {
			mustRun(t, admin, "CREATE SUBSCRIPTION "+name+" CONNECTION 'dbname=nowhere' PUBLICATION p WITH (connect = false)",
				"ALTER SUBSCRIPTION "+name+" SET (slot_name = NONE)",
				"UPDATE pg_subscription SET subenabled = true, subslotname = 'x' WHERE subname = '"+name+"'")
		}
		subscribe("one")
		inOrder(t, d, app, true, "")
		mustRun(t, app, "CREATE TABLE t (a int)")
		mustRun(t, admin, "INSERT INTO pg_subscription_rel SELECT oid, 't'::regclass, 'd', NULL FROM pg_subscription")
		inOrder(t, d, app, false, "copying tables")
		mustRun(t, admin, "UPDATE pg_subscription_rel SET srsubstate = 'r', srsublsn = '0/1'")
		inOrder(t, d, app, true, "")
		subscribe("two")
		inOrder(t, d, app, false, "several subscriptions")
		mustRun(t, admin, "REVOKE SELECT ON pg_subscription_rel FROM public")
		inOrder(t, d, app, false, "does not tell")
	})
}

func TestInOrderApplyOfMySQLByVersion(t *testing.T) {
	unknown := &mysql.MySQLError{Number: 1193}
	tests := []struct {
		version string
		asked   string // part of the question
		answer  []driver.Value
		err     error
		ok      bool
		why     string
	}{
		{version: "5.6.51", asked: "@@global.slave_parallel_workers", answer: []driver.Value{int64(0)}, ok: true},
		{version: "5.6.51", asked: "@@global.slave_parallel_workers", answer: []driver.Value{int64(2)}, why: "before MySQL 5.7"},
		{version: "5.7.44", asked: "@@global.slave_parallel_workers, @@global.slave_preserve_commit_order", answer: []driver.Value{int64(4), int64(0)}, why: "without slave_preserve_commit_order=ON"},
		{version: "5.7.44", asked: "@@global.slave_parallel_workers, @@global.slave_preserve_commit_order", answer: []driver.Value{int64(4), int64(1)}, ok: true},
		{version: "8.0.25", asked: "@@global.slave_parallel_workers, @@global.slave_preserve_commit_order", answer: []driver.Value{int64(1), int64(0)}, ok: true},
		{version: "8.0.26", asked: "@@global.replica_parallel_workers, @@global.replica_preserve_commit_order", answer: []driver.Value{int64(4), int64(1)}, ok: true},
		{version: "8.4.2", asked: "@@global.replica_parallel_workers, @@global.replica_preserve_commit_order", answer: []driver.Value{int64(4), "OFF"}, why: "without replica_preserve_commit_order=ON"},
		{version: "8.4.2", asked: "@@global.replica_parallel_workers", err: unknown, why: "does not tell"},
		{version: "5.5.68-MariaDB", asked: "@@global.slave_parallel_threads", err: unknown, why: "does not tell"},
		{version: "10.11.19-MariaDB", asked: "@@global.slave_parallel_threads, @@global.gtid_slave_pos", answer: []driver.Value{int64(4), ""}, ok: true},
		{version: "10.11.19-MariaDB", asked: "@@global.slave_parallel_threads, @@global.gtid_slave_pos", answer: []driver.Value{int64(4), "1-2-3,1-4-5"}, ok: true},
		{version: "10.11.19-MariaDB", asked: "@@global.slave_parallel_threads, @@global.gtid_slave_pos", answer: []driver.Value{int64(4), "1-2-3,11-2-3"}, why: "several GTID domains"},
		{version: "10.11.19-MariaDB", asked: "@@global.slave_parallel_threads, @@global.gtid_slave_pos", answer: []driver.Value{int64(0), "1-2-3,11-2-3"}, ok: true},
	}
	for _, tt := range tests {
		conn := &canned{answers: []answer{
			{part: "@@version", row: []driver.Value{tt.version, ""}},
			{part: tt.asked, row: tt.answer, err: tt.err},
		}}
		ok, why, err := dialect.For(classify.AnyMySQL).InOrderApply(t.Context(), conn)
		if ok != tt.ok || !says(why, tt.why) || err != nil {
			t.Errorf("%s, %v: %v, %q, %v", tt.version, tt.answer, ok, why, err)
		}
	}
	boom := errors.New("boom")
	for _, kind := range []classify.Dialect{classify.MySQL, classify.Postgres} {
		if ok, _, err := dialect.For(kind).InOrderApply(t.Context(), &canned{answers: []answer{{part: "", err: boom}}}); ok || !errors.Is(err, boom) {
			t.Errorf("%v: %v, %v", kind, ok, err)
		}
	}
}
