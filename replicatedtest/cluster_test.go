package replicatedtest_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

// onEachEngine runs the test on every kind of server.
func onEachEngine(t *testing.T, f func(t *testing.T, e replicatedtest.Engine)) {
	for _, e := range replicatedtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel() // servers mostly wait
			f(t, e)
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func execSQL(t testing.TB, db *sql.DB, text string, args ...any) {
	t.Helper()
	if _, err := db.Exec(text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// query returns the one value that the query yields.
func query(t testing.TB, db *sql.DB, text string, args ...any) string {
	t.Helper()
	var value sql.NullString
	if err := db.QueryRow(text, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value.String
}

func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// caughtUp waits for all replicas.
func caughtUp(t testing.TB, c *replicatedtest.Cluster) {
	t.Helper()
	must(t, c.WaitCaughtUp(within(t, 20*time.Second)))
}

func TestClusterReplicates(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		begin := time.Now()
		c := replicatedtest.Start(t, e, replicatedtest.Options{Log: testLog{t}})
		t.Logf("%s with 2 replicas: %v", c.Version(), time.Since(begin).Round(time.Millisecond))
		if got := len(c.Nodes()); got != 3 {
			t.Fatalf("%d nodes, want 3", got)
		}
		if got := len(c.Replicas()); got != 2 {
			t.Fatalf("%d replicas, want 2", got)
		}
		db := c.Primary().DB(t)
		execSQL(t, db, "CREATE TABLE words (id int PRIMARY KEY, word varchar(50))")
		for i := range 20 {
			execSQL(t, db, fmt.Sprintf("INSERT INTO words VALUES (%d, 'Grüße 🐘')", i))
			caughtUp(t, c)
			for _, n := range c.Replicas() {
				if got := query(t, n.DB(t), fmt.Sprintf("SELECT word FROM words WHERE id = %d", i)); got != "Grüße 🐘" {
					t.Fatalf("%s has %q", n, got)
				}
			}
		}
	})
}

func TestClusterWithoutReplicas(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: -1})
		if len(c.Nodes()) != 1 || len(c.Replicas()) != 0 || c.Primary() != c.Nodes()[0] {
			t.Errorf("nodes %v, replicas %v", c.Nodes(), c.Replicas())
		}
		caughtUp(t, c)
	})
}

func TestClusterDSNListsThePrimaryFirst(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Log: testLog{t}})
		nodes := c.Nodes()
		hosts := nodes[0].Addr() + "," + nodes[1].Addr() + "," + nodes[2].Addr()
		want := fmt.Sprintf("app:%s@tcp(%s)/app?replicated.max_lag=1s", replicatedtest.AppPassword, hosts)
		if e == replicatedtest.Postgres {
			want = fmt.Sprintf("postgres://app:%s@%s/app?sslmode=disable&replicated.max_lag=1s", url.QueryEscape(replicatedtest.AppPassword), hosts)
		}
		if got := c.DSN("replicated.max_lag=1s"); got != want {
			t.Errorf("DSN %q, want %q", got, want)
		}
		must(t, nodes[0].Kill())
		must(t, nodes[2].Promote())
		if got := c.DSN(); !strings.Contains(got, nodes[2].Addr()+","+nodes[0].Addr()+","+nodes[1].Addr()) {
			t.Errorf("after a promotion: %q", got)
		}
	})
}

// The application's user owns its database and nothing else.
func TestAppUserHasNoPowerOutsideItsDatabase(t *testing.T) {
	create := map[replicatedtest.Engine][]string{
		replicatedtest.Postgres: {
			"CREATE TABLE t (id int)",
			"CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN INSERT INTO t VALUES (1); RETURN 1; END $$",
			"CREATE SCHEMA s", "CREATE SEQUENCE q",
		},
		replicatedtest.MariaDB: {
			"CREATE TABLE t (id int)",
			"CREATE FUNCTION f() RETURNS int BEGIN INSERT INTO t VALUES (1); RETURN 1; END",
			"CREATE PROCEDURE p() INSERT INTO t VALUES (2)", "CREATE SEQUENCE q",
		},
	}
	create[replicatedtest.MySQL] = create[replicatedtest.MariaDB][:3]
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1, Log: testLog{t}})
		db, replica := c.Primary().DB(t), c.Replicas()[0]
		for _, text := range create[e] {
			execSQL(t, db, text)
		}
		query(t, db, "SELECT f()")
		caughtUp(t, c)
		if got := query(t, replica.DB(t), "SELECT count(*) FROM t"); got != "1" {
			t.Errorf("the replica has %s rows, want 1", got)
		}
		if _, err := replica.DB(t).Exec("INSERT INTO t VALUES (3)"); err == nil {
			t.Error("the replica takes a write of the application's user")
		}
		if _, err := db.Exec("CREATE DATABASE other"); err == nil {
			t.Error("the application's user may create databases")
		}
		_, err := replica.AdminDB(t).Exec("INSERT INTO t VALUES (4)")
		if e == replicatedtest.Postgres && err == nil {
			t.Error("a standby takes a write")
		}
		if e != replicatedtest.Postgres && err != nil {
			t.Errorf("the administrator does not bypass read_only: %v", err)
		}
	})
}

func TestWritableReplicasTakeWrites(t *testing.T) {
	for _, e := range []replicatedtest.Engine{replicatedtest.MariaDB, replicatedtest.MySQL} {
		t.Run(e.String(), func(t *testing.T) {
			c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1, WritableReplicas: true})
			execSQL(t, c.Primary().DB(t), "CREATE TABLE t (id int)")
			caughtUp(t, c)
			execSQL(t, c.Replicas()[0].DB(t), "INSERT INTO t VALUES (1)")
			if got := query(t, c.Primary().DB(t), "SELECT count(*) FROM t"); got != "0" {
				t.Errorf("the write went to the primary: %s rows", got)
			}
		})
	}
}

func TestSettingsReachTheServers(t *testing.T) {
	settings := map[replicatedtest.Engine][3]string{
		replicatedtest.Postgres: {"work_mem", "SHOW work_mem", "5MB"},
		replicatedtest.MariaDB:  {"sort_buffer_size", "SELECT @@global.sort_buffer_size", "300000"},
		replicatedtest.MySQL:    {"sort_buffer_size", "SELECT @@global.sort_buffer_size", "300000"},
	}
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		s := settings[e]
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1, ReplicaSettings: map[string]string{s[0]: s[2]}})
		if got := query(t, c.Replicas()[0].DB(t), s[1]); got != s[2] {
			t.Errorf("replica: %s = %s, want %s", s[0], got, s[2])
		}
		if got := query(t, c.Primary().DB(t), s[1]); got == s[2] {
			t.Errorf("primary: %s = %s too", s[0], got)
		}
		must(t, c.Close())
		c = replicatedtest.Start(t, e, replicatedtest.Options{Replicas: -1, Settings: map[string]string{s[0]: s[2]}})
		if got := query(t, c.Primary().DB(t), s[1]); got != s[2] {
			t.Errorf("primary: %s = %s, want %s", s[0], got, s[2])
		}
	})
}

// Copies of one template must not look like one cluster.
func TestClustersHaveIdentitiesOfTheirOwn(t *testing.T) {
	identity := map[replicatedtest.Engine]string{
		replicatedtest.Postgres: "SELECT system_identifier FROM pg_control_system()",
		replicatedtest.MariaDB:  "SELECT @@server_id",
		replicatedtest.MySQL:    "SELECT @@server_uuid",
	}
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		seen := map[string]bool{}
		for range 2 {
			c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1, Log: testLog{t}})
			for _, n := range c.Nodes() {
				seen[query(t, n.AdminDB(t), identity[e])] = true
			}
		}
		// A PostgreSQL standby shares its primary's; the others do not.
		want := 4
		if e == replicatedtest.Postgres {
			want = 2
		}
		if len(seen) != want {
			t.Errorf("identities %v, want %d", seen, want)
		}
	})
}

func TestClosedClusterDoesNotStartAgain(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		replicatedtest.Require(t, e)
		c, err := replicatedtest.StartContext(context.Background(), e, replicatedtest.Options{Replicas: -1})
		must(t, err)
		must(t, c.Close())
		must(t, c.Close())
		if err := c.Primary().Start(); err == nil {
			t.Error("a node of a closed cluster starts")
		}
		if c.Primary().Running() || c.Primary().Pid() != 0 {
			t.Error("a node of a closed cluster runs")
		}
	})
}

func TestStartFailsWithTheServersWords(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		replicatedtest.Require(t, e)
		_, err := replicatedtest.StartContext(context.Background(), e, replicatedtest.Options{Settings: map[string]string{"no_such_setting": "1"}})
		if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "-", "_"), "no_such_setting") {
			t.Errorf("error %v does not tell what the server complained of", err)
		}
	})
}

// testLog shows what the package does to servers beside what a test says.
type testLog struct{ testing.TB }

func (l testLog) Write(line []byte) (int, error) {
	l.Log(strings.TrimSpace(string(line)))
	return len(line), nil
}

func openBare(t testing.TB, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	must(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

// queryRow returns the one row that the query yields, by column.
func queryRow(t testing.TB, db *sql.DB, text string) map[string]string {
	t.Helper()
	rows, err := db.Query(text)
	must(t, err)
	defer rows.Close()
	columns, err := rows.Columns()
	must(t, err)
	if !rows.Next() {
		t.Fatalf("%s: no row (%v)", text, rows.Err())
	}
	values := make([]sql.NullString, len(columns))
	targets := make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	must(t, rows.Scan(targets...))
	row := map[string]string{}
	for i, name := range columns {
		row[name] = values[i].String
	}
	return row
}
