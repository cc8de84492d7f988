package bench_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// measureFor is how long each figure is measured: what REPLICATED_MEASURE says.
// Without it the tests only show that the measurement works: thorough is false, and
// no goal is asked for, since machines that run tests are busy.
func measureFor(tb testing.TB) (d time.Duration, thorough bool) {
	tb.Helper()
	s := os.Getenv("REPLICATED_MEASURE")
	if s == "" {
		return time.Second, false
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		tb.Fatalf("REPLICATED_MEASURE: %v", err)
	}
	return d, true
}

// eachEngine runs a test on a cluster of its own of every engine: one after the other
// where figures are asked for.
func eachEngine(t *testing.T, o replicatedtest.Options, test func(t *testing.T, c *replicatedtest.Cluster)) {
	_, thorough := measureFor(t)
	for _, e := range replicatedtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			if !thorough {
				t.Parallel()
			}
			c := replicatedtest.Start(t, e, o)
			t.Logf("%s; load %s", c.Version(), load())
			test(t, c)
		})
	}
}

// load tells how busy the machine is, which the figures depend on: how many want its
// processors, on average over the last minute. It is "?" where nobody counts.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	one, _, _ := strings.Cut(string(text), " ")
	return one
}

// handle is a process's handle on a cluster, with floors and a sampler of its own.
type handle struct {
	*sql.DB
	cluster *replicated.Cluster
}

var handles atomic.Int64

// openHandle opens the cluster as a process would that knows nothing of the others, with
// a pool of so many connections.
func openHandle(tb testing.TB, c *replicatedtest.Cluster, conns int, keys ...string) handle {
	tb.Helper()
	keys = append(keys, fmt.Sprintf("replicated.cluster=bench-handle-%d", handles.Add(1)))
	if c.Engine() != replicatedtest.Postgres {
		keys = append(keys, "interpolateParams=true") // arguments in one round trip
	}
	db, err := sql.Open(replicated.DriverName, c.DSN(keys...))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Error(err)
		}
	})
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	h := handle{DB: db}
	if h.cluster, err = replicated.ClusterOf(tb.Context(), db); err != nil {
		tb.Fatal(err)
	}
	if err := db.PingContext(tb.Context()); err != nil { // nothing runs before the first connection
		tb.Fatal(err)
	}
	return h
}

// ready waits until reads may run on all replicas.
func (h handle) ready(tb testing.TB) {
	tb.Helper()
	wait(tb, func() bool {
		for _, n := range h.cluster.Stats().Nodes[1:] {
			if n.Freshness == replicated.FreshnessUnknown {
				return false
			}
		}
		return true
	})
}

// wait waits until something is so.
func wait(tb testing.TB, so func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(30 * time.Second); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatal("it does not come to pass")
		}
	}
}

// where counts the reads of a handle by where they ran.
type where struct {
	replica uint64
	primary map[replicated.Reason]uint64 // by what kept them there
}

func (h handle) where() where {
	s := h.cluster.Stats()
	w := where{primary: s.Primary}
	for _, n := range s.Replica {
		w.replica += n
	}
	delete(w.primary, replicated.ReasonWrite)
	delete(w.primary, replicated.ReasonDDL)
	return w
}

// since returns what has come to w since before.
func (w where) since(before where) where {
	d := where{replica: w.replica - before.replica, primary: make(map[replicated.Reason]uint64)}
	for why, n := range w.primary {
		if n -= before.primary[why]; n > 0 {
			d.primary[why] = n
		}
	}
	return d
}

func (w where) reads() uint64 {
	n := w.replica
	for _, m := range w.primary {
		n += m
	}
	return n
}

// share is the part of the reads that replicas served.
func (w where) share() float64 {
	if n := w.reads(); n > 0 {
		return float64(w.replica) / float64(n)
	}
	return 0
}

// makeRows makes a table with n rows, numbered from 0, on all nodes.
func makeRows(tb testing.TB, c *replicatedtest.Cluster, table string, n int) {
	tb.Helper()
	db := c.Primary().DB(tb)
	queries := []string{"CREATE TABLE " + table + " (id INT PRIMARY KEY, v BIGINT NOT NULL)"}
	var values []string
	for i := range n {
		values = append(values, fmt.Sprintf("(%d, 0)", i))
	}
	if n > 0 {
		queries = append(queries, "INSERT INTO "+table+" VALUES "+strings.Join(values, ","))
	}
	for _, query := range queries {
		if _, err := db.ExecContext(tb.Context(), query); err != nil {
			tb.Fatal(err)
		}
	}
	caughtUp(tb, c)
}

func caughtUp(tb testing.TB, c *replicatedtest.Cluster) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 30*time.Second)
	defer cancel()
	if err := c.WaitCaughtUp(ctx); err != nil {
		tb.Fatal(err)
	}
}

// placeholder returns the engine's n-th placeholder.
func placeholder(c *replicatedtest.Cluster, n int) string {
	if c.Engine() == replicatedtest.Postgres {
		return fmt.Sprintf("$%d", n)
	}
	return "?"
}
