package replicated_test

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"
	"github.com/sqlreplicated/replicated/internal/faketime"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// spreadQuery is a read that the servers' logs show.
const spreadQuery = "SELECT 4711"

// readMany has so many clients share so many reads, and returns how many the log of
// each node has.
func readMany(t *testing.T, c *replicatedtest.Cluster, db *sql.DB, clients, reads int) map[string]int {
	t.Helper()
	db.SetMaxIdleConns(clients)
	c.ResetStatements()
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for range reads / clients {
				var n int
				if err := db.QueryRowContext(t.Context(), spreadQuery).Scan(&n); err != nil {
					t.Errorf("a read failed: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	return loggedReads(c)
}

func loggedReads(c *replicatedtest.Cluster) map[string]int {
	got := make(map[string]int)
	for _, n := range c.Nodes() {
		for _, s := range n.Statements() {
			if s.Kind != replicatedtest.Prepare && strings.Contains(s.Text, spreadQuery) {
				got[n.Name()]++
			}
		}
	}
	return got
}

// A server that the machine starves for a moment is slower, and rightly gets less. So
// one of five goes has to be even; to a balancer that leans none is.
func TestServersGetEqualShares(t *testing.T) {
	eachDriver(t, func(t *testing.T, e replicatedtest.Engine) {
		c := sharedCluster(t, e)
		for _, mode := range []string{"p2c", "round-robin"} {
			for _, clients := range []int{1, 16} {
				const reads = 6400
				db := open(t, c, "replicated.balance="+mode)
				even := false
				for tries := 5; tries > 0 && !even; tries-- {
					got := readMany(t, c, db, clients, reads)
					t.Logf("%s, %d at a time: %v", mode, clients, got)
					even = true
					for _, r := range c.Replicas() {
						even = even && math.Abs(float64(got[r.Name()])/(reads/2)-1) <= 0.05
					}
				}
				if !even {
					t.Errorf("%s, %d at a time: more than 5 %% off in every go", mode, clients)
				}
			}
		}
	})
}

func TestLateServerGetsLess(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		late, other := c.Replicas()[0], c.Replicas()[1]
		proxy := late.Proxy(t)
		db := openDSN(t, c.DSNAt([]string{c.Primary().Addr(), proxy.Addr(), other.Addr()}, ownFloors(t)))
		measured(t, c, db)
		proxy.Delay(10 * time.Millisecond) // each way
		for _, clients := range []int{1, 16} {
			const reads = 1600
			got := readMany(t, c, db, clients, reads)
			if n := got[late.Name()]; n == 0 || n > reads/5 || got[c.Primary().Name()] > 0 {
				t.Errorf("%d at a time: %v of %d reads, want few on %s", clients, got, reads, late.Name())
			}
			t.Logf("%d at a time: %v", clients, got)
		}
	})
}

func TestServersOfTheZoneArePreferred(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		near, far := c.Replicas()[0], c.Replicas()[1]
		proxy := near.Proxy(t)
		cfg, err := replicated.ParseDSN(c.DSNAt([]string{c.Primary().Addr(), far.Addr(), proxy.Addr()}, "replicated.zone=b", ownFloors(t)))
		if err != nil {
			t.Fatal(err)
		}
		for i, zone := range []string{"b", "a", "b"} {
			cfg.Nodes[i].Zone = zone
		}
		db := openConfig(t, cfg)
		measured(t, c, db)
		if got := readMany(t, c, db, 4, 400); got[near.Name()] != 400 {
			t.Errorf("%v, want all on %s", got, near.Name())
		}
		proxy.Refuse()
		if got := readMany(t, c, db, 4, 400); got[far.Name()] != 400 {
			t.Errorf("%v with the zone's replica out, want all on %s", got, far.Name())
		}
		if n := stats(t, db).Nodes[2]; n.Zone != "b" || n.Weight != 1 {
			t.Errorf("Stats show zone %q, weight %d", n.Zone, n.Weight)
		}
	})
}

// A server that is killed and started again takes reads gradually, and in the end its
// full share. It takes long, and is the same on every engine.
func TestReturningServerTakesReadsGradually(t *testing.T) {
	t.Run("postgres", func(t *testing.T) {
		const e = replicatedtest.Postgres
		c := replicatedtest.Start(t, e, replicatedtest.Options{})
		db := open(t, c)
		r := c.Replicas()[0]
		if err := r.Kill(); err != nil {
			t.Fatal(err)
		}
		readMany(t, c, db, 4, 400)
		breaker := func(want replicated.BreakerState, fresh bool) {
			t.Helper()
			eventually(t, 40*time.Second, func() string {
				n := stats(t, db).Nodes[1]
				if n.Breaker != want || fresh && n.Freshness != replicated.FreshnessProven {
					return fmt.Sprintf("the replica that was killed: %+v", n)
				}
				return ""
			})
		}
		breaker(replicated.BreakerOpen, false)
		if err := r.Start(); err != nil {
			t.Fatal(err)
		}
		breaker(replicated.BreakerClosed, true)
		share := func() float64 {
			const reads = 1000
			return float64(readMany(t, c, db, 1, reads)[r.Name()]) / reads
		}
		started := time.Now()
		first := share()
		if took := time.Since(started); took < 3*time.Second && (first == 0 || first > 0.35) {
			t.Errorf("it had %.0f %% of the reads in the first %v", 100*first, took)
		}
		t.Logf("first %.1f %%", 100*first)
		eventually(t, 30*time.Second, func() string {
			if got := share(); got < 0.45 || got > 0.55 {
				return fmt.Sprintf("it has %.0f %% of the reads", 100*got)
			}
			return ""
		})
		if took := time.Since(started); took < 5*time.Second {
			t.Errorf("it had its full share after %v", took)
		}
	})
}

// While a replica leaves its probe unanswered, reads go to the other one, long before
// the breaker opens. It is no suspect when it has answered.
func TestReadsAvoidASuspect(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 2, fakedb.Full)
		db := f.open()
		shares := func() map[string]int {
			got := make(map[string]int)
			for range 20 {
				got[servedBy(t.Context(), t, db)]++
			}
			return got
		}
		if got := shares(); got["replica1"] != 10 {
			t.Errorf("before: %v", got)
		}
		hold := f.replicas[0].Hold(fakedb.OpPing)
		time.Sleep(replicated.ProbeEvery + 200*time.Millisecond)
		if got := shares(); got["replica1"] != 10 {
			t.Errorf("with a probe that has just begun: %v", got)
		}
		time.Sleep(200 * time.Millisecond)
		if got := shares(); got["replica2"] != 20 {
			t.Errorf("with a probe that is not answered: %v", got)
		}
		if got := f.breakers(db); got[0] != replicated.BreakerClosed {
			t.Errorf("the breaker is %v", got[0])
		}
		hold.Release()
		synctest.Wait()
		if got := shares(); got["replica1"] != 10 {
			t.Errorf("after it has answered: %v", got)
		}
	})
}

// The breaker's closing begins a ramp; the start of a process does not.
func TestReturningReplicaIsOnARamp(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 2, fakedb.PQLike)
		db := f.open(f.asPostgres())
		share := func() int {
			n := 0
			for range 100 {
				if servedBy(t.Context(), t, db) == "replica1" {
					n++
				}
			}
			return n
		}
		if got := share(); got != 50 {
			t.Errorf("at the start it had %d of 100 reads", got)
		}
		f.replicas[0].Down(context.DeadlineExceeded)
		time.Sleep(10 * time.Second)
		f.replicas[0].Heal()
		time.Sleep(time.Minute)
		if got := share(); got < 5 || got > 15 {
			t.Errorf("on its return it had %d of 100 reads", got)
		}
		time.Sleep(time.Minute)
		if got := share(); got != 50 {
			t.Errorf("in the end it had %d of 100 reads", got)
		}
	})
}
