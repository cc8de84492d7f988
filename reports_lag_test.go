package replicated_test

import (
	"database/sql"
	"slices"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

// A28: while nothing is written, the time since the last transaction grows, and a lag
// that is told by it with it.
//
// Verdict: replicas of an idle primary serve for as long as it is idle, though it is
// for longer than max_lag, and also if they receive nothing any more, which they would
// not notice; not once something has been written that they lack for max_lag.
func TestReportA28IdlePrimaryOnServers(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		r := newReadback(t, c)
		db := open(t, c, "replicated.max_lag=1s", locating, evenly, ownFloors(t))
		r.until(t.Context(), db, 0, c.Replicas()...)
		idle := func() {
			t.Helper()
			for began := time.Now(); time.Since(began) < 2500*time.Millisecond; {
				node, err := r.read(t.Context(), db, 0)
				must(t, err)
				if node == c.Primary().Name() {
					t.Fatalf("the primary served, %v after the last write", time.Since(began))
				}
			}
		}
		idle()
		for _, n := range c.Replicas() {
			must(t, n.StopReceiving())
			defer func() { must(t, n.ResumeReceiving()) }()
		}
		idle()
		r.mustWrite(t.Context(), bare(t, c.Primary()), 0)
		servesNoMore(t, r, db, c.Replicas()...)
	})
}

// A29: a replica whose replication has stopped tells no lag at all.
//
// Verdict: it serves nothing from max_lag after the first write on, while the other
// one does, and again when it has caught up.
func TestReportA29ReplicationStoppedOnServers(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		r := newReadback(t, c)
		db := open(t, c, "replicated.max_lag=1s", locating, evenly, ownFloors(t))
		r.until(t.Context(), db, 0, c.Replicas()...)
		stopped, other := c.Replicas()[0], c.Replicas()[1]
		pauseReplica(t, stopped, func() {
			r.mustWrite(t.Context(), bare(t, c.Primary()), 0)
			servesNoMore(t, r, db, stopped)
			r.until(t.Context(), db, 0, other)
		})
		r.until(t.Context(), db, 0, stopped, other)
	})
}

// servesNoMore waits until none of the nodes serves reads, which has to stay so.
func servesNoMore(t *testing.T, r *readback, db *sql.DB, nodes ...*replicatedtest.Node) {
	t.Helper()
	served := func(reads int) string {
		for range reads {
			name, err := r.read(t.Context(), db, 1)
			must(t, err)
			if slices.ContainsFunc(nodes, func(n *replicatedtest.Node) bool { return n.Name() == name }) {
				return name + " serves a read, and lacks a write for longer than max_lag"
			}
		}
		return ""
	}
	eventually(t, 10*time.Second, func() string { return served(50) })
	if complaint := served(200); complaint != "" {
		t.Error(complaint)
	}
}
