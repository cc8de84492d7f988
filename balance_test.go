package replicated

import (
	"testing"
	"time"
)

func newBalanced(mode BalanceMode, weights ...int) *Cluster {
	c := &Cluster{cfg: &settings{Config: Config{Balance: mode}}, nodes: []*node{{src: &source{weight: 1}}}}
	for i, w := range weights {
		c.nodes = append(c.nodes, &node{index: i + 1, src: &source{weight: w}})
	}
	return c
}

// pickMany picks so often that chance does not decide, keeping each read in
// flight until the end.
func pickMany(c *Cluster, candidates nodeSet, times int, keep bool) map[int]int {
	got := make(map[int]int)
	for range times {
		n := c.pick(candidates, nil)
		got[n.index]++
		if keep {
			n.inFlight.Add(1)
		}
	}
	return got
}

func TestNthMember(t *testing.T) {
	s := set(1, 3, 7, 63)
	for k, want := range []int{1, 3, 7, 63} {
		if got := s.nth(k); got != want {
			t.Errorf("member %d is %d, want %d", k, got, want)
		}
	}
}

func TestPickOnlyAmongCandidates(t *testing.T) {
	for _, mode := range []BalanceMode{BalanceP2C, BalanceRoundRobin} {
		c := newBalanced(mode, 1, 1, 1, 1)
		for i := range pickMany(c, set(2, 4), 1000, false) {
			if i != 2 && i != 4 {
				t.Errorf("%v: picked %d", mode, i)
			}
		}
		if got := pickMany(c, set(3), 10, false); got[3] != 10 {
			t.Errorf("%v: of one candidate it picked %v", mode, got)
		}
	}
}

func TestRoundRobinTakesTurns(t *testing.T) {
	got := pickMany(newBalanced(BalanceRoundRobin, 1, 1, 1), set(1, 2, 3), 300, false)
	for i := 1; i <= 3; i++ {
		if got[i] != 100 {
			t.Errorf("picked %v, want 100 of each", got)
			break
		}
	}
}

// Reads in flight even out, in proportion to the weights.
func TestTwoChoicesEvenOut(t *testing.T) {
	for _, tt := range []struct {
		weights []int
		want    map[int]int
	}{
		{[]int{1, 1, 1}, map[int]int{1: 1000, 2: 1000, 3: 1000}},
		{[]int{2, 1}, map[int]int{1: 2000, 2: 1000}},
		{[]int{1, 5}, map[int]int{1: 500, 2: 2500}},
	} {
		c := newBalanced(BalanceP2C, tt.weights...)
		got := pickMany(c, c.all(), 3000, true)
		for i, want := range tt.want {
			if got[i] < want*9/10 || got[i] > want*11/10 {
				t.Errorf("weights %v: picked %v, want about %v", tt.weights, got, tt.want)
				break
			}
		}
	}
}

func (c *Cluster) all() (s nodeSet) {
	for _, n := range c.nodes[1:] {
		s = s.with(n.index)
	}
	return s
}

func TestTwoChoicesAvoidTheSlowOne(t *testing.T) {
	c := newBalanced(BalanceP2C, 1, 1)
	c.nodes[1].latency.Store(int64(40 * time.Millisecond))
	if got := pickMany(c, c.all(), 1000, false); got[1] != 0 {
		t.Errorf("the idle fast node was passed over: %v", got)
	}
	if got := pickMany(c, c.all(), 1000, true); got[1] == 0 || got[1] > 100 {
		t.Errorf("under load picked %v, want a share of the slow one's", got)
	}
}

// Below a millisecond latency is noise, which would keep one of two equal nodes
// idle.
func TestTwoChoicesIgnoreNoise(t *testing.T) {
	c := newBalanced(BalanceP2C, 1, 1)
	c.nodes[1].latency.Store(int64(100 * time.Microsecond))
	c.nodes[2].latency.Store(int64(900 * time.Microsecond))
	if got := pickMany(c, c.all(), 1000, false); got[1] < 400 || got[2] < 400 {
		t.Errorf("picked %v", got)
	}
}

// The preferred node is taken where it is a candidate, and takes no turn.
func TestPickPrefers(t *testing.T) {
	for _, mode := range []BalanceMode{BalanceP2C, BalanceRoundRobin} {
		c := newBalanced(mode, 1, 1, 1)
		for range 100 {
			if n := c.pick(set(1, 2, 3), c.nodes[2]); n.index != 2 {
				t.Errorf("%v: picked %d, want the preferred 2", mode, n.index)
			}
			if n := c.pick(set(1, 3), c.nodes[2]); n.index == 2 {
				t.Errorf("%v: picked what is no candidate", mode)
			}
		}
	}
}
