package replicated_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// The real clusters of this package's tests: one of each engine, shared by the
// tests that leave it as they found it. Tests that kill, stop or delay servers
// start clusters of their own.
var shared struct {
	sync.Mutex
	clusters map[replicatedtest.Engine]*replicatedtest.Cluster
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, c := range shared.clusters {
		if err := c.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// sharedCluster returns the engine's cluster, all replicas caught up, statement
// logs empty.
func sharedCluster(t *testing.T, e replicatedtest.Engine) *replicatedtest.Cluster {
	t.Helper()
	replicatedtest.Require(t, e)
	shared.Lock()
	defer shared.Unlock()
	c := shared.clusters[e]
	if c == nil {
		var err error
		if c, err = replicatedtest.StartContext(t.Context(), e, replicatedtest.Options{}); err != nil {
			t.Fatal(err)
		}
		if shared.clusters == nil {
			shared.clusters = make(map[replicatedtest.Engine]*replicatedtest.Cluster)
		}
		shared.clusters[e] = c
	}
	caughtUp(t, c)
	c.ResetStatements()
	return c
}

func caughtUp(t *testing.T, c *replicatedtest.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := c.WaitCaughtUp(ctx); err != nil {
		t.Fatal(err)
	}
}

// eachEngine runs a test on every engine.
func eachEngine(t *testing.T, test func(t *testing.T, e replicatedtest.Engine)) {
	for _, e := range replicatedtest.Engines() {
		t.Run(e.String(), func(t *testing.T) { test(t, e) })
	}
}

// eachDriver runs a test that takes long with one engine for each driver: what it is
// about does not depend on the server.
func eachDriver(t *testing.T, test func(t *testing.T, e replicatedtest.Engine)) {
	for _, e := range []replicatedtest.Engine{replicatedtest.Postgres, replicatedtest.MariaDB} {
		t.Run(e.String(), func(t *testing.T) { test(t, e) })
	}
}

// eachShared runs a test on the shared cluster of every engine.
func eachShared(t *testing.T, test func(t *testing.T, c *replicatedtest.Cluster)) {
	eachEngine(t, func(t *testing.T, e replicatedtest.Engine) { test(t, sharedCluster(t, e)) })
}

// open opens a handle on a cluster and sees to it that nothing of it is left. The
// handle has floors of its test's own: what earlier tests wrote on a shared cluster
// holds none of its reads.
func open(t *testing.T, c *replicatedtest.Cluster, keys ...string) *sql.DB {
	t.Helper()
	named := slices.ContainsFunc(keys, func(k string) bool { return strings.HasPrefix(k, clusterKey) })
	if !named {
		keys = append(keys, ownFloors(t))
	}
	db := openDSN(t, c.DSN(keys...))
	measured(t, c, db)
	return db
}

// begun sees to it that the cluster's log is not empty: an empty position proves
// nothing.
func begun(t *testing.T, c *replicatedtest.Cluster) {
	t.Helper()
	if c.Engine() != replicatedtest.MariaDB {
		return
	}
	db := bare(t, c.Primary())
	var position string
	if err := db.QueryRowContext(t.Context(), "SELECT @@gtid_binlog_pos").Scan(&position); err != nil {
		t.Fatal(err)
	}
	if position == "" {
		mustExec(t, db, "CREATE TABLE begun (n int)")
	}
}

// measured waits until something is proven of every replica that answers, so that
// reads run on replicas from the first one on. Without a primary nothing can be.
func measured(t *testing.T, c *replicatedtest.Cluster, db *sql.DB) {
	t.Helper()
	if !c.Primary().Running() || c.Primary().Hung() {
		return
	}
	begun(t, c)
	conn, err := db.Conn(t.Context()) // nothing is asked before the first one
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	eventually(t, 20*time.Second, func() string {
		for _, n := range stats(t, db).Nodes[1:] {
			if n.Freshness == replicated.FreshnessUnknown && n.Breaker == replicated.BreakerClosed && !n.TurnedAway {
				return fmt.Sprintf("nothing is known of a replica: %+v", n)
			}
		}
		return ""
	})
}

// proven waits until every replica that answers is proven to have what had been
// written before the call, by whomever.
func proven(t *testing.T, db *sql.DB) {
	t.Helper()
	cluster, err := replicated.ClusterOf(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	awaitProof(t, cluster, true)
}

func awaitProof(t *testing.T, c *replicated.Cluster, whole bool) {
	t.Helper()
	had := c.Proof(whole)
	eventually(t, 20*time.Second, func() string {
		if !had() {
			return fmt.Sprintf("not enough is proven of the replicas: %+v", c.Stats().Nodes[1:])
		}
		return ""
	})
}

// pauseReplicas has the replicas apply nothing more, until resume is called or the
// test ends.
func pauseReplicas(t *testing.T, c *replicatedtest.Cluster) (resume func()) {
	t.Helper()
	resume = sync.OnceFunc(func() {
		for _, n := range c.Replicas() {
			if err := n.ResumeReplication(); err != nil {
				t.Error(err)
			}
		}
	})
	t.Cleanup(resume)
	for _, n := range c.Replicas() {
		if err := n.PauseReplication(); err != nil {
			t.Fatal(err)
		}
	}
	return resume
}

const clusterKey = "replicated.cluster="

func ownFloors(t *testing.T) string { return clusterKey + tableName(t) }

func openDSN(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("replicated", dsn)
	if err != nil {
		t.Fatal(err)
	}
	return closing(t, db)
}

func openConfig(t *testing.T, cfg replicated.Config) *sql.DB {
	t.Helper()
	connector, err := replicated.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return closing(t, sql.OpenDB(connector))
}

func closing(t *testing.T, db *sql.DB) *sql.DB {
	t.Helper()
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("closing the handle: %v", err)
		}
	})
	return db
}

// stats returns the counters of a handle's cluster.
func stats(t *testing.T, db *sql.DB) replicated.Stats {
	t.Helper()
	c, err := replicated.ClusterOf(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return c.Stats()
}

func mustExec(t *testing.T, db interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func queryInt(t *testing.T, db interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}, query string, args ...any) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// table makes an empty table of the test's own, on the primary and by now on all
// replicas, and returns its name.
func table(t *testing.T, c *replicatedtest.Cluster, columns string) string {
	t.Helper()
	name := tableName(t)
	db := bare(t, c.Primary())
	mustExec(t, db, "DROP TABLE IF EXISTS "+name)
	mustExec(t, db, "CREATE TABLE "+name+" ("+columns+")")
	t.Cleanup(func() { _, _ = db.ExecContext(context.WithoutCancel(t.Context()), "DROP TABLE IF EXISTS "+name) })
	caughtUp(t, c)
	return name
}

// tableName is the test's name, as a name that every server takes.
func tableName(t *testing.T) string {
	name := "t_" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToLower(t.Name()))
	if len(name) > 55 { // identifiers end at 63 or 64
		name = name[:55]
	}
	return name
}

// bare returns a handle of the node's own driver that keeps no idle connection,
// so that it does not show in counts.
func bare(t *testing.T, n *replicatedtest.Node) *sql.DB {
	t.Helper()
	db := n.DB(t)
	db.SetMaxIdleConns(-1)
	return db
}

// ranOn returns the names of the nodes whose own log has a statement with this
// text in it, executed since the logs were last reset.
func ranOn(c *replicatedtest.Cluster, part string) []string {
	var nodes []string
	for _, n := range c.Nodes() {
		if slices.ContainsFunc(n.Statements(), func(s replicatedtest.Statement) bool {
			return s.Kind != replicatedtest.Prepare && strings.Contains(s.Text, part)
		}) {
			nodes = append(nodes, n.Name())
		}
	}
	return nodes
}

// onlyPrimary fails the test unless the statement ran on the primary alone.
func onlyPrimary(t *testing.T, c *replicatedtest.Cluster, part string) {
	t.Helper()
	if got := ranOn(c, part); len(got) != 1 || got[0] != c.Primary().Name() {
		t.Errorf("%q ran on %v, want the primary alone", part, got)
	}
}

// onlyReplicas fails the test unless the statement ran, and on replicas alone.
func onlyReplicas(t *testing.T, c *replicatedtest.Cluster, part string) {
	t.Helper()
	if got := ranOn(c, part); len(got) == 0 || slices.Contains(got, c.Primary().Name()) {
		t.Errorf("%q ran on %v, want replicas alone", part, got)
	}
}

// placeholder returns the engine's n-th placeholder.
func placeholder(e replicatedtest.Engine, n int) string {
	if e == replicatedtest.Postgres {
		return fmt.Sprintf("$%d", n)
	}
	return "?"
}

// noGoroutineLeak fails the test if it ends with more goroutines than it began
// with, after all its clean-ups that were registered later have run.
func noGoroutineLeak(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		eventually(t, 10*time.Second, func() string {
			if after := runtime.NumGoroutine(); after > before {
				buf := make([]byte, 1<<20)
				return fmt.Sprintf("%d goroutines at the beginning, %d at the end:\n%s", before, after, buf[:runtime.Stack(buf, true)])
			}
			return ""
		})
	})
}

// eventually waits until complaint returns "", and fails the test with its last
// word if that takes too long.
func eventually(t *testing.T, within time.Duration, complaint func() string) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		last := complaint()
		if last == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Error(last)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
