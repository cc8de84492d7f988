// Package lagging starts what the examples run on: a PostgreSQL primary whose only
// replica is 300 ms behind.
package lagging

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// Delay is how much later the replica has what the primary has committed.
const Delay = 300 * time.Millisecond

// Start starts the servers and runs the statements of a schema. The replica has what
// they made when it returns.
func Start(t *testing.T, schema ...string) *replicatedtest.Cluster {
	t.Helper()
	c := replicatedtest.Start(t, replicatedtest.Postgres, replicatedtest.Options{Replicas: 1})
	db := c.Primary().DB(t)
	for _, text := range schema {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := c.WaitCaughtUp(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.Replicas()[0].Delay(Delay); err != nil {
		t.Fatal(err)
	}
	return c
}

// Stop has the replica stand still until the end of the test, so that what is written
// from now on it does not have, however slow the machine is.
func Stop(t *testing.T, c *replicatedtest.Cluster) {
	t.Helper()
	if err := c.Replicas()[0].Delay(time.Hour); err != nil {
		t.Fatal(err)
	}
}

// Process opens a handle as a process of its own would: what other handles write binds
// none of its reads, since it reaches the primary by an address that no other one uses.
// Something is known of the replica when it returns, so that it serves reads.
func Process(t *testing.T, c *replicatedtest.Cluster, keys ...string) *sql.DB {
	t.Helper()
	addrs := []string{c.Primary().Proxy(t).Addr(), c.Replicas()[0].Addr()}
	db, err := sql.Open("replicated", c.DSNAt(addrs, append(keys, "replicated.max_lag=1m")...)) // however slow the machine is
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := db.PingContext(t.Context()); err != nil { // nothing is asked before the first connection
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if s := stats(t, db); s.Nodes[1].Freshness != replicated.FreshnessUnknown {
			return db
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing is known of the replica: %+v", stats(t, db).Nodes[1])
		}
	}
}

// OnReplica counts the reads that the replica has served for a handle.
func OnReplica(t *testing.T, db *sql.DB) (n uint64) {
	t.Helper()
	for _, served := range stats(t, db).Replica {
		n += served
	}
	return n
}

func stats(t *testing.T, db *sql.DB) replicated.Stats {
	t.Helper()
	cluster, err := replicated.ClusterOf(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return cluster.Stats()
}
