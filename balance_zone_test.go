package replicated

import (
	"testing"
	"time"
)

func TestSuspect(t *testing.T) {
	at := moment(time.Hour)
	for _, tt := range []struct {
		name  string
		asked moment
		want  bool
	}{
		{"no answer is awaited", never, false},
		{"just asked", at, false},
		{"within the time", at - moment(suspectAfter), false},
		{"too long ago", at - moment(suspectAfter) - 1, true},
	} {
		if got := suspect(tt.asked, at); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

func TestSuspectsAreAvoidedWhereOthersRemain(t *testing.T) {
	for _, mode := range modes {
		c := newBalanced(mode, 1, 1, 1)
		long, just := int64(now()-moment(time.Second)), int64(now())
		c.nodes[1].asked.Store(long)
		if got := pickMany(c, c.all(), 100); got[1] != 0 || got[2] == 0 || got[3] == 0 {
			t.Errorf("%v: picked %v with 1 under suspicion", mode, got)
		}
		if n := c.pick(c.all(), c.nodes[1]); n.index == 1 {
			t.Errorf("%v: the suspect was preferred", mode)
		}
		if n := c.pick(set(1)); n.index != 1 {
			t.Errorf("%v: picked %d of 1", mode, n.index)
		}
		for _, n := range c.nodes[2:] {
			n.asked.Store(long)
		}
		if got := pickMany(c, c.all(), 100); len(got) != 3 {
			t.Errorf("%v: picked %v with all under suspicion", mode, got)
		}
		for _, n := range c.nodes[1:] {
			n.asked.Store(just)
		}
		if got := pickMany(c, c.all(), 100); len(got) != 3 {
			t.Errorf("%v: picked %v with all just asked", mode, got)
		}
	}
}

func TestZoneIsPreferred(t *testing.T) {
	for _, mode := range modes {
		c := newBalanced(mode, 1, 1, 5).inZones("a", "a", "b")
		wantShares(t, pickMany(c, c.all(), 10_000), 0.1, 1, 1, 0)
		if got := pickMany(c, set(2, 3), 100); got[2] != 100 {
			t.Errorf("%v: picked %v", mode, got)
		}
		if got := pickMany(c, set(3), 100); got[3] != 100 {
			t.Errorf("%v: picked %v", mode, got)
		}
		c.nodes[1].asked.Store(int64(now() - moment(time.Second)))
		if got := pickMany(c, set(1, 3), 100); got[3] != 100 {
			t.Errorf("%v: picked %v where the zone's replica hangs", mode, got)
		}
		c.cfg.Zone = "elsewhere"
		if got := pickMany(c, set(1, 2, 3), 1000); got[2] == 0 || got[3] == 0 {
			t.Errorf("%v: picked %v without a replica in the zone", mode, got)
		}
		c.cfg.Zone = ""
		if got := pickMany(c, set(2, 3), 1000); got[2] == 0 || got[3] == 0 {
			t.Errorf("%v: picked %v without a zone", mode, got)
		}
	}
}

// The zone's replicas keep their reads through a busy hour, and share them when they
// are overloaded. Reads that are slow everywhere are no overload.
func TestZoneYieldsWhenOverloaded(t *testing.T) {
	for _, tt := range []struct {
		name         string
		local, other time.Duration
		min, max     float64 // share of the other zone
	}{
		{"fast", 300 * time.Microsecond, 2 * time.Millisecond, 0, 0},
		{"busy", 6 * time.Millisecond, time.Millisecond, 0, 0},
		{"overloaded", 50 * time.Millisecond, 2 * time.Millisecond, 0.5, 1},
		{"slow everywhere", 50 * time.Millisecond, 50 * time.Millisecond, 0.00001, 0.00035},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newBalanced(BalanceP2C, 1, 1).inZones("a", "b")
			got := simulate(c, 16, 20_000, func(n *node, _ int64) time.Duration {
				if n.index == 1 {
					return around(tt.local)
				}
				return around(tt.other)
			})
			if share := float64(got[2]) / 20_000; share < tt.min || share > tt.max {
				t.Errorf("the other zone got %.2f %%, want %v to %v %%", 100*share, 100*tt.min, 100*tt.max)
			}
		})
	}
}
