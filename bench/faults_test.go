package bench_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

const (
	faultReaders = 64
	faultRate    = 2000 // reads a second, of all readers
	faultRuns    = 5

	// worstRead is the goal for a read in a node that hangs: a second after that was found.
	worstRead = time.Second
	// slowdown is the goal for the 99th percentile after that, over the healthy one.
	slowdown = 2
)

// TestReadsWhileAReplicaHangs measures how long reads take while all is well, while one
// of two replicas is stopped (SIGSTOP) and nobody knows it yet, and after its breaker has
// opened. No read may fail. With REPLICATED_MEASURE, the goals are asked for, of the
// medians over five runs.
func TestReadsWhileAReplicaHangs(t *testing.T) {
	d, thorough := measureFor(t)
	runs := faultRuns
	if !thorough {
		runs = 1
	}
	eachEngine(t, replicatedtest.Options{NoStatementLog: true}, func(t *testing.T, c *replicatedtest.Cluster) {
		makeRows(t, c, "notes", 100)
		h := openHandle(t, c, faultReaders)
		h.ready(t)
		victim := c.Replicas()[0]
		state := func() replicated.BreakerState {
			for _, n := range h.cluster.Stats().Nodes {
				if n.Address == victim.Addr() {
					return n.Breaker
				}
			}
			return replicated.BreakerClosed
		}
		query := "SELECT v FROM notes WHERE id = " + placeholder(c, 1)
		var times latencies
		ctx, stop := context.WithCancel(t.Context())
		readers := everyOn(ctx, t, faultReaders, faultRate, func(ctx context.Context) error {
			var v int64
			began := time.Now()
			err := h.QueryRowContext(ctx, query, began.UnixNano()%100).Scan(&v)
			times.add(began)
			return err
		})
		defer func() { stop(); readers.Wait() }()
		var healthy, after, worst []time.Duration
		var late time.Duration // how long after the hang was found a read ended, at most
		for range runs {
			times.next()
			pause(ctx, d)
			healthy = append(healthy, p99(times.next()))
			if err := victim.Hang(); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			wait(t, func() bool { return state() != replicated.BreakerClosed })
			found := time.Since(began)
			times.next()
			pause(ctx, d)
			after = append(after, p99(times.next()))
			worst = append(worst, times.worst())
			late = max(late, worst[len(worst)-1]-found)
			t.Logf("p99 %v; the hang was found after %v, worst read of all %v; p99 after that %v; load %s",
				healthy[len(healthy)-1], found.Round(time.Millisecond), worst[len(worst)-1], after[len(after)-1], load())
			if err := victim.Resume(); err != nil {
				t.Fatal(err)
			}
			wait(t, func() bool { return state() == replicated.BreakerClosed })
		}
		before, then := median(healthy), median(after)
		figure := fmt.Sprintf("median p99 %v healthy, %v after the breaker has opened: %.2f times; worst read %v, %v longer than it took to find the hang", before, then, float64(then)/float64(before), slices.Max(worst), late)
		t.Log(figure)
		if thorough && (then > slowdown*before || late > worstRead) {
			t.Errorf("%s; want at most %d times, and %v", figure, slowdown, worstRead)
		}
	})
}

// latencies collects how long reads took, in phases: a read belongs to the one in which
// it began and, if that is over, to none. It is safe for concurrent use.
type latencies struct {
	mu      sync.Mutex
	began   time.Time // the phase
	took    []time.Duration
	longest time.Duration // of all phases
}

func (l *latencies) add(began time.Time) {
	d := time.Since(began)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.longest = max(l.longest, d)
	if !began.Before(l.began) {
		l.took = append(l.took, d)
	}
}

// next begins a phase, and returns what belongs to the one before.
func (l *latencies) next() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	took := l.took
	l.began, l.took = time.Now(), nil
	return took
}

// worst returns the longest of all since it was last asked.
func (l *latencies) worst() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.longest
	l.longest = 0
	return d
}

func p99(s []time.Duration) time.Duration {
	slices.Sort(s)
	return s[len(s)*99/100].Round(time.Microsecond)
}

func median(s []time.Duration) time.Duration {
	s = slices.Sorted(slices.Values(s))
	return s[len(s)/2]
}
