package replicated_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// heartbeatTable makes the table of a heartbeat, on the primary and by now on all
// replicas, and returns the keys of a handle that uses it.
func heartbeatTable(t *testing.T, c *replicatedtest.Cluster) (table string, keys []string) {
	t.Helper()
	table = tableName(t) + "_hb"
	db := bare(t, c.Primary())
	drop := "DROP TABLE IF EXISTS " + table
	mustExec(t, db, drop)
	ddl, err := replicated.HeartbeatDDL(c.Engine().String(), table)
	must(t, err)
	for _, text := range append(ddl, ddl...) { // what is there stays
		mustExec(t, db, text)
	}
	t.Cleanup(func() { _, _ = db.Exec(drop) }) //nolint:noctx // the test's has ended
	caughtUp(t, c)
	return table, []string{"replicated.tracker=heartbeat", "replicated.heartbeat_table=" + table, lagless, locating}
}

// With a heartbeat in place of positions no read is stale, however the replicas lag, and
// they serve what is proven. A process counts the row up twice a second at most.
func TestHeartbeat(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		r := newReadback(t, c)
		table, keys := heartbeatTable(t, c)
		db := openDSN(t, c.DSN(append(keys, ownFloors(t), evenly)...))
		counter := func() int {
			return queryInt(t, bare(t, c.Primary()), "SELECT counter FROM "+table)
		}
		began := time.Now()
		r.mustWrite(t.Context(), db, 0)
		r.until(t.Context(), db, 0, c.Replicas()...)
		r.while(db, func() {
			for range 2 {
				for _, n := range c.Replicas() {
					pauseReplica(t, n, func() {
						for range 20 {
							r.mustWrite(t.Context(), db, 0) // always the same row
							r.reads(t.Context(), db, 0, 3)
						}
					})
				}
			}
		})
		resume := pauseReplicas(t, c)
		ctx, _ := replicated.WithSession(t.Context())
		r.mustWrite(ctx, db, 1)
		r.only(ctx, db, 1, c.Primary())
		resume()
		r.until(ctx, db, 1, c.Replicas()...)
		must(t, db.Close())
		beats, took := counter(), time.Since(began)
		if most := int(took/(500*time.Millisecond)) + 1; beats < 1 || beats > most {
			t.Errorf("%d beats in %v, want 1 to %d", beats, took, most)
		}
	})
}

// The beats of several processes are of one row, and each makes use of the others'.
func TestHeartbeatOfSeveralProcesses(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		r := newReadback(t, c)
		_, keys := heartbeatTable(t, c)
		writer, _, _ := apart(t, c, keys...)
		reader, _, _ := apart(t, c, keys...)
		stop := make(chan struct{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				select {
				case <-stop:
					return
				default:
					_ = r.write(t.Context(), writer, 1)
					_, _ = r.read(t.Context(), writer, 1)
				}
			}
		}()
		defer func() { close(stop); <-done }()
		r.mustWrite(t.Context(), reader, 0)
		r.until(t.Context(), reader, 0, c.Replicas()...)
	})
}

// Where changes are applied out of their order, a beat proves nothing: the replica is
// unknown, and a notice names the setting.
func TestHeartbeatIsRefusedUnderParallelApply(t *testing.T) {
	c := sharedCluster(t, replicatedtest.MySQL)
	r := newReadback(t, c)
	_, keys := heartbeatTable(t, c)
	parallel, inOrder := c.Replicas()[0], c.Replicas()[1]
	admin := parallel.AdminDB(t)
	workers := func(n int) {
		if _, err := admin.Exec(fmt.Sprintf("SET GLOBAL slave_parallel_workers = %d", n)); err != nil { //nolint:noctx // also when the test has ended
			t.Fatal(err)
		}
		pauseReplica(t, parallel, func() {}) // the appliers begin anew
	}
	workers(4)
	t.Cleanup(func() { workers(0) })
	db, told := listening(t, c.DSN(append(keys, ownFloors(t), evenly)...))
	r.mustWrite(t.Context(), db, 0)
	r.until(t.Context(), db, 0, inOrder)
	told.hears(t, replicated.NoticeLagUnmeasured)
	for _, n := range told.all() {
		if n.Node != parallel.Addr() || n.Err == nil || !strings.Contains(n.Err.Error(), "slave_parallel_workers") {
			t.Errorf("notice %v of %s: %v", n.Kind, n.Node, n.Err)
		}
	}
	unknown(t, db, parallel.Addr())
	r.while(db, func() {})
	if got := r.reads(t.Context(), db, 0, 50); slices.Contains(got, parallel.Name()) {
		t.Errorf("reads were served by %v", got)
	}
}

// Without the table nothing is proven: the primary serves all reads, and it is told once
// why. When the table is there, replicas serve.
func TestHeartbeatWithoutItsTable(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		r := newReadback(t, c)
		table, keys := heartbeatTable(t, c)
		mustExec(t, bare(t, c.Primary()), "DROP TABLE "+table)
		caughtUp(t, c)
		db, told := listening(t, c.DSN(append(keys, ownFloors(t), evenly)...))
		r.mustWrite(t.Context(), db, 0)
		r.only(t.Context(), db, 0, c.Primary())
		told.hears(t, replicated.NoticeLagUnmeasured)
		cluster, err := replicated.ClusterOf(t.Context(), db)
		must(t, err)
		_, err = cluster.Token(t.Context())
		texts := []string{fmt.Sprint(err)}
		for _, n := range told.all() {
			texts = append(texts, fmt.Sprint(n.Err))
		}
		for _, text := range texts {
			if !strings.Contains(text, table) {
				t.Errorf("%q does not name the table", text)
			}
		}
		if got := told.count(replicated.NoticeLagUnmeasured); got > 3 {
			t.Errorf("it was told %d times of three nodes", got)
		}
		r.only(t.Context(), db, 0, c.Primary())
		ddl, err := replicated.HeartbeatDDL(c.Engine().String(), table)
		must(t, err)
		for _, text := range ddl {
			mustExec(t, bare(t, c.Primary()), text)
		}
		r.until(t.Context(), db, 0, c.Replicas()...)
	})
}
