package bench_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// proofGoal is how long a proof may take on a quiet primary, in the median.
const proofGoal = 10 * time.Millisecond

// TestTimeToProof measures how long after the acknowledgement of a write a replica
// may serve the writer, on a primary where nothing else goes on, without a delay of
// the replicas. Between the two the writer reads on the primary, which on PostgreSQL
// writes to the log what nobody has flushed when the row's page is cleaned: waiting
// for that would take until the next write, or the WAL writer's turn.
//
// The read that is timed waits for its proof (replicated.wait), so that what is
// measured has one round trip in it. REPLICATED_MEASURE asks for the goal.
func TestTimeToProof(t *testing.T) {
	d, thorough := measureFor(t)
	eachEngine(t, replicatedtest.Options{NoStatementLog: true}, func(t *testing.T, c *replicatedtest.Cluster) {
		makeRows(t, c, "notes", 1)
		h := openHandle(t, c, 1, "replicated.wait=5s")
		h.ready(t)
		update, read := fmt.Sprintf("UPDATE notes SET v = %s WHERE id = 0", placeholder(c, 1)), "SELECT v FROM notes WHERE id = 0"
		var times []time.Duration
		for v, end := int64(1), time.Now().Add(d); len(times) < 5 || time.Now().Before(end); v++ {
			pause(t.Context(), 50*time.Millisecond+rand.N(100*time.Millisecond)) // quiet
			if _, err := h.ExecContext(t.Context(), update, v); err != nil {
				t.Fatal(err)
			}
			acknowledged, before := time.Now(), h.where()
			for _, ctx := range []struct{ primary bool }{{true}, {false}} {
				var got int64
				on := t.Context()
				if ctx.primary {
					on = replicated.WithPrimary(on)
				}
				if err := h.QueryRowContext(on, read).Scan(&got); err != nil {
					t.Fatal(err)
				}
				if got != v {
					t.Errorf("read %d after writing %d", got, v)
				}
			}
			took := time.Since(acknowledged)
			if n := h.where().since(before).replica; n != 1 {
				t.Errorf("replicas served %d reads of one", n)
			}
			times = append(times, took)
		}
		slices.Sort(times)
		at := func(q float64) time.Duration {
			return times[int(q*float64(len(times)-1))].Round(10 * time.Microsecond)
		}
		t.Logf("%d writes: median %v, 90 %% %v, 99 %% %v, most %v; load %s", len(times), at(0.5), at(0.9), at(0.99), at(1), load())
		if thorough && at(0.5) > proofGoal {
			t.Errorf("the median is %v, want at most %v", at(0.5), proofGoal)
		}
	})
}
