package replicated

import (
	"math"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/internal/faketime"
)

func TestRamp(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		var r ramp
		want := func(want float64) {
			t.Helper()
			if got := r.share(); math.Abs(got-want) > 1e-9 {
				t.Errorf("the share is %v, want %v", got, want)
			}
		}
		want(1) // never out
		r.begin()
		time.Sleep(time.Minute) // answers again, but has to catch up: the ramp waits for the first read
		want(rampFrom)
		time.Sleep(rampTime / 2)
		want((1 + rampFrom) / 2)
		r.begin() // out again
		want(rampFrom)
		time.Sleep(rampTime)
		want(1)
		if got := moment(r.since.Load()); got != never {
			t.Errorf("the ramp has ended, and the clock is still read for it: %v", got)
		}
	})
}

// A moment that was read before begin was called ends no ramp.
func TestRampBeganMeanwhile(t *testing.T) {
	var r ramp
	r.begin()
	r.share()
	old := moment(r.since.Load())
	r.begin()
	r.shareAt(old, old+moment(rampTime))
	if got := moment(r.since.Load()); got != rampDue {
		t.Errorf("the ramp that has just begun is at %v", got)
	}
}

func TestReturningReplicaTakesReadsGradually(t *testing.T) {
	for _, mode := range modes {
		faketime.Test(t, func(t *testing.T) {
			c := newBalanced(mode, 1, 1, 2)
			c.nodes[3].ramp.begin()
			for _, part := range []float64{rampFrom, (1 + rampFrom) / 2, 1} {
				wantShares(t, pickMany(c, c.all(), 50_000), 0.1, 1, 1, 2*part)
				time.Sleep(rampTime / 2)
			}
		})
	}
}

// With nobody else to serve them, it takes all reads at once, and has warmed up by
// the time that others are back. Those that return together share evenly.
func TestReturningReplicaAlone(t *testing.T) {
	for _, mode := range modes {
		faketime.Test(t, func(t *testing.T) {
			c := newBalanced(mode, 1, 1)
			c.nodes[1].ramp.begin()
			if got := pickMany(c, set(1), 10); got[1] != 10 {
				t.Errorf("%v: picked %v", mode, got)
			}
			time.Sleep(rampTime)
			wantShares(t, pickMany(c, c.all(), 10_000), 0.1, 1, 1)
			c.nodes[1].ramp.begin()
			c.nodes[2].ramp.begin()
			wantShares(t, pickMany(c, c.all(), 10_000), 0.1, 1, 1)
		})
	}
}

// The other zones go on serving while the zone's only replica warms up.
func TestReturningReplicaAloneInItsZone(t *testing.T) {
	for _, mode := range modes {
		faketime.Test(t, func(t *testing.T) {
			c := newBalanced(mode, 1, 1, 1).inZones("a", "b", "b")
			c.nodes[1].ramp.begin()
			for _, part := range []float64{rampFrom, (1 + rampFrom) / 2, 1} {
				wantShares(t, pickMany(c, c.all(), 50_000), 0.1, part, (1-part)/2, (1-part)/2)
				time.Sleep(rampTime / 2)
			}
		})
	}
}
