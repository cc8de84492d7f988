package bench_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

var update = flag.Bool("update", false, "write what is measured to testdata")

// policies are the ways to have reads see their session's write.
var policies = []struct {
	name string
	keys []string
}{
	{name: "proof"},
	{name: "window-2s", keys: []string{"replicated.tracker=off", "replicated.sticky=2s"}},
	{name: "window-5s", keys: []string{"replicated.tracker=off", "replicated.sticky=5s"}},
	{name: "primary", keys: []string{"replicated.reads=off"}},
}

// offloadCase is a lag, how long sessions last, and what is asked for there.
type offloadCase struct {
	lag, span time.Duration
	goal      float64 // of proof; 0: none
}

// offloadCases are measured in this order. Sessions of two seconds are the hard ones: a
// window of two seconds has nothing for replicas there. The longer ones show windows
// at their best, and a lag that they do not cover.
var offloadCases = []offloadCase{
	{lag: 5 * time.Millisecond, span: 2 * time.Second, goal: 0.98},
	{lag: 30 * time.Millisecond, span: 2 * time.Second, goal: 0.96},
	{lag: 200 * time.Millisecond, span: 2 * time.Second, goal: 0.88},
	{lag: time.Second, span: 2 * time.Second},
	{lag: 3 * time.Second, span: 2 * time.Second},
	{lag: 5 * time.Millisecond, span: 10 * time.Second},
	{lag: 30 * time.Millisecond, span: 10 * time.Second},
	{lag: 200 * time.Millisecond, span: 10 * time.Second},
	{lag: time.Second, span: 10 * time.Second},
	{lag: 3 * time.Second, span: 10 * time.Second},
}

// TestOffload measures which part of the reads replicas serve, where sessions write
// once and then read what they wrote, and that none of it is stale: by proof, and
// beside it, on the same servers at the same time, by waiting for two seconds, for
// five, and by leaving all to the primary.
//
// REPLICATED_MEASURE=15s makes a table of it, fails where proof misses its goal, and
// with -update writes testdata/offload.tsv.
func TestOffload(t *testing.T) {
	d, thorough := measureFor(t)
	cases, rows := offloadCases, []string(nil)
	if !thorough {
		cases = cases[:1]
	}
	eachEngine(t, replicatedtest.Options{NoStatementLog: true}, func(t *testing.T, c *replicatedtest.Cluster) {
		makeRows(t, c, "notes", len(policies)*maxSlots)
		for _, x := range cases {
			t.Run(fmt.Sprintf("lag=%v/span=%v", x.lag, x.span), func(t *testing.T) {
				for _, n := range c.Replicas() {
					if err := n.Delay(x.lag); err != nil {
						t.Fatal(err)
					}
				}
				for i, o := range measureOffload(t, c, x.span, d) {
					name := policies[i].name
					t.Logf("%-9s %5.1f %% of %d reads on replicas, %d stale, primary: %v; load %s", name, 100*o.share(), o.reads(), o.stale, o.primary, load())
					if thorough {
						rows = append(rows, fmt.Sprintf("%s\t%d\t%d\t%s\t%d\t%.4f\t%d\t%s",
							c.Version(), x.span.Milliseconds(), x.lag.Milliseconds(), name, o.reads(), o.share(), o.stale, load()))
					}
					if name != "proof" {
						continue
					}
					if o.stale > 0 {
						t.Errorf("%d stale reads", o.stale)
					}
					if thorough && o.share() < x.goal {
						t.Errorf("%.1f %% of the reads on replicas, want at least %.0f %%", 100*o.share(), 100*x.goal)
					}
				}
			})
		}
	})
	if *update && thorough {
		text := "engine\tspan_ms\tlag_ms\tpolicy\treads\tshare\tstale\tload\n" + strings.Join(rows, "\n") + "\n"
		if err := os.WriteFile("testdata/offload.tsv", []byte(text), 0o644); err != nil {
			t.Error(err)
		}
	}
}

// Each policy has ten sessions a second begin, so that a hundred reads a second are
// made, however long sessions last.
const (
	sessionsPerSecond = 10
	readsPerSession   = 10
	maxSlots          = 10 * sessionsPerSecond
)

// offload is what came of one policy.
type offload struct {
	where
	stale int64
}

// measureOffload has all policies at work at once, and counts what begins within d
// after a first round of sessions.
func measureOffload(t *testing.T, c *replicatedtest.Cluster, span, d time.Duration) []offload {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var working sync.WaitGroup
	all := make([]*users, len(policies))
	for i, p := range policies {
		slots := sessionsPerSecond * int(span/time.Second)
		u := &users{
			handle: openHandle(t, c, 20, p.keys...), span: span, firstRow: i * maxSlots,
			update: fmt.Sprintf("UPDATE notes SET v = %s WHERE id = %s", placeholder(c, 1), placeholder(c, 2)),
			read:   "SELECT v FROM notes WHERE id = " + placeholder(c, 1),
		}
		if p.keys == nil {
			u.ready(t)
		}
		all[i] = u
		for slot := range slots {
			working.Go(func() {
				if err := u.work(ctx, slot); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			})
		}
	}
	count := func() []offload {
		now := make([]offload, len(all))
		for i, u := range all {
			now[i] = offload{where: u.where(), stale: u.stale.Load()}
		}
		return now
	}
	pause(ctx, span)
	before := count()
	pause(ctx, d)
	results := count()
	for i, b := range before {
		results[i] = offload{where: results[i].since(b.where), stale: results[i].stale - b.stale}
	}
	stop()
	working.Wait()
	return results
}

// users are sessions on one handle. Each writes its own row once, and then reads it
// ten times, uniformly over a span: at some moment of each tenth of it, so that chance
// has less of a part in the figures.
type users struct {
	handle
	update, read string
	span         time.Duration
	firstRow     int
	stale        atomic.Int64
}

// work has one session after the other use a row, until ctx ends.
func (u *users) work(ctx context.Context, slot int) error {
	row := u.firstRow + slot
	pause(ctx, rand.N(u.span)) // they do not march in step
	for ctx.Err() == nil {
		session, _ := replicated.WithSession(ctx)
		v := time.Now().UnixNano()
		if _, err := u.ExecContext(session, u.update, v, row); err != nil {
			return err
		}
		acknowledged := time.Now()
		for i := range time.Duration(readsPerSession) {
			const part = readsPerSession
			pause(ctx, time.Until(acknowledged.Add(u.span*i/part+rand.N(u.span/part))))
			var got int64
			if err := u.QueryRowContext(session, u.read, row).Scan(&got); err != nil {
				return err
			}
			if got != v {
				u.stale.Add(1)
			}
		}
		pause(ctx, time.Until(acknowledged.Add(u.span)))
	}
	return nil
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
