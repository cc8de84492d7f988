package replicated

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// newBalanced makes a cluster of a primary, node 0, and replicas of these weights.
func newBalanced(mode BalanceMode, weights ...int) *Cluster {
	c := &Cluster{cfg: &settings{Config: Config{Balance: mode}}, nodes: []*node{{src: &source{weight: 1}}}}
	for i, w := range weights {
		c.nodes = append(c.nodes, &node{index: i + 1, src: &source{weight: w}})
	}
	return c
}

func (c *Cluster) all() (s nodeSet) {
	for _, n := range c.nodes[1:] {
		s = s.with(n.index)
	}
	return s
}

// inZones puts the replicas into zones, and this process into the first of them.
func (c *Cluster) inZones(zones ...string) *Cluster {
	c.cfg.Zone = zones[0]
	for i, z := range zones {
		c.nodes[i+1].src.zone = z
	}
	return c
}

var modes = []BalanceMode{BalanceP2C, BalanceRoundRobin}

// pickMany picks so often, one read after the other.
func pickMany(c *Cluster, candidates nodeSet, times int) map[int]int {
	got := make(map[int]int)
	for range times {
		got[c.pick(candidates, nil).index]++
	}
	return got
}

// ending is a read of a simulation, and when it ends.
type ending struct {
	at   time.Duration
	took time.Duration
	node *node
}

type endings []ending

func (e endings) Len() int           { return len(e) }
func (e endings) Less(i, j int) bool { return e[i].at < e[j].at }
func (e endings) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *endings) Push(x any)        { *e = append(*e, x.(ending)) }
func (e *endings) Pop() any {
	x := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return x
}

// simulate has so many clients read in a row, in a time of its own, until so many
// reads are done. latency tells how long one takes on a node that has so many in
// flight, this one included. It returns how many each node has had.
func simulate(c *Cluster, clients, reads int, latency func(n *node, inFlight int64) time.Duration) map[int]int {
	got := make(map[int]int)
	var under endings
	var clock time.Duration
	start := func() {
		n := c.pick(c.all(), nil)
		got[n.index]++
		took := latency(n, n.inFlight.Add(1))
		heap.Push(&under, ending{clock + took, took, n})
	}
	for range clients {
		start()
	}
	for range reads - clients {
		e := heap.Pop(&under).(ending)
		clock = e.at
		e.node.inFlight.Add(-1)
		e.node.pace.add(e.took)
		start()
	}
	for _, e := range under {
		e.node.inFlight.Add(-1)
	}
	return got
}

// around returns latencies that vary by half around a mean.
func around(mean time.Duration) time.Duration {
	return mean/2 + time.Duration(rand.Int64N(int64(mean)))
}

// wantShares fails the test if a share is further from the wanted one than within,
// relative to it.
func wantShares(t *testing.T, got map[int]int, within float64, want ...float64) {
	t.Helper()
	total, sum := 0, 0.0
	for _, n := range got {
		total += n
	}
	for _, w := range want {
		sum += w
	}
	for i, w := range want {
		if share, w := float64(got[i+1])/float64(total), w/sum; math.Abs(share-w) > within*w {
			t.Errorf("replica %d got %.1f %% of the reads, want %.1f %%; all: %v", i+1, 100*share, 100*w, got)
		}
	}
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
	for _, mode := range modes {
		c := newBalanced(mode, 1, 2, 1, 3)
		for i := range pickMany(c, set(2, 4), 1000) {
			if i != 2 && i != 4 {
				t.Errorf("%v: picked %d", mode, i)
			}
		}
		if got := pickMany(c, set(3), 10); got[3] != 10 {
			t.Errorf("%v: of one candidate it picked %v", mode, got)
		}
	}
}

// The preferred node is taken where it is a candidate.
func TestPickPrefers(t *testing.T) {
	for _, mode := range modes {
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

func TestEqualNodesGetEqualShares(t *testing.T) {
	for _, tt := range []struct {
		name    string
		clients int
		latency func(n *node, inFlight int64) time.Duration
	}{
		{"one at a time", 1, func(*node, int64) time.Duration { return around(300 * time.Microsecond) }},
		{"one is a bit slower", 1, func(n *node, _ int64) time.Duration { return time.Duration(n.index+9) * 400 * time.Microsecond }},
		{"around a power of two", 1, func(n *node, _ int64) time.Duration {
			return 2*time.Millisecond + time.Duration(n.index)*time.Microsecond
		}},
		{"one begins with cold caches", 1, func(n *node, _ int64) time.Duration {
			if _, samples := n.pace.load(); n.index == 1 && samples == 0 {
				return 50 * time.Millisecond
			}
			return 300 * time.Microsecond
		}},
		{"short reads and reports", 1, func(*node, int64) time.Duration {
			if rand.IntN(50) == 0 {
				return around(2 * time.Second)
			}
			return around(time.Millisecond)
		}},
		{"sixteen at a time", 16, func(*node, int64) time.Duration { return around(3 * time.Millisecond) }},
		{"overloaded", 64, func(_ *node, inFlight int64) time.Duration { return around(time.Duration(inFlight) * time.Millisecond) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const reads = 60_000
			wantShares(t, simulate(newBalanced(BalanceP2C, 1, 1), tt.clients, reads, tt.latency), 0.05, 1, 1)
		})
	}
}

func TestWeightsHold(t *testing.T) {
	even := func(*node, int64) time.Duration { return around(3 * time.Millisecond) }
	for _, weights := range [][]int{{1, 1, 1}, {2, 1}, {1, 5}, {10, 1, 1}, {3, 2, 1, 1}} {
		var want []float64
		for _, w := range weights {
			want = append(want, float64(w))
		}
		wantShares(t, simulate(newBalanced(BalanceP2C, weights...), 1, 60_000, even), 0.1, want...)
		// In flight is a whole number: a light one's 1.3 of sixteen is 1, or 2.
		wantShares(t, simulate(newBalanced(BalanceP2C, weights...), 16, 60_000, even), 0.4, want...)
		wantShares(t, simulate(newBalanced(BalanceRoundRobin, weights...), 1, 6_000, even), 0.01, want...)
	}
}

func TestSlowOrOverloadedNodesGetLess(t *testing.T) {
	late := func(n *node, _ int64) time.Duration {
		if n.index == 1 {
			return around(20 * time.Millisecond)
		}
		return around(300 * time.Microsecond)
	}
	small := func(n *node, inFlight int64) time.Duration { // has an eighth of the processors
		if n.index == 1 {
			return around(time.Duration(8*inFlight) * time.Millisecond)
		}
		return around(time.Duration(inFlight) * time.Millisecond)
	}
	for _, tt := range []struct {
		name     string
		clients  int
		latency  func(*node, int64) time.Duration
		min, max float64
	}{
		{"late, one at a time", 1, late, 0.001, 0.05},
		{"late, sixteen at a time", 16, late, 0.001, 0.05},
		{"small, one at a time", 1, small, 0.001, 0.15},
		{"small, sixteen at a time", 16, small, 0.005, 0.2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := simulate(newBalanced(BalanceP2C, 1, 1), tt.clients, 20_000, tt.latency)
			if share := float64(got[1]) / 20_000; share < tt.min || share > tt.max {
				t.Errorf("the slow one got %.2f %%, want %v to %v %%", 100*share, 100*tt.min, 100*tt.max)
			}
		})
	}
}

// A node that takes long to connect has reads in a queue, and does not look idle.
func TestReadsThatQueueForADialCount(t *testing.T) {
	c := newBalanced(BalanceP2C, 1, 1)
	c.nodes[1].dialling.Store(maxDials + 100)
	c.nodes[2].inFlight.Store(10)
	if got := pickMany(c, c.all(), 1000); got[1] != 0 {
		t.Errorf("picked %v", got)
	}
}

func TestRoundRobinTakesTurns(t *testing.T) {
	c := newBalanced(BalanceRoundRobin, 1, 1, 1)
	before := c.pick(c.all()).index
	for range 300 {
		n := c.pick(c.all()).index
		if n != before%3+1 {
			t.Fatalf("%d comes after %d", n, before)
		}
		before = n
	}
}

// A heavy node's turns lie among those of the others, not in a row.
func TestRoundRobinIsSmooth(t *testing.T) {
	c := newBalanced(BalanceRoundRobin, 4, 1, 1)
	for range 1000 {
		// Of any six turns four are the heavy one's, give or take one.
		if got := pickMany(c, c.all(), 6); got[1] < 3 || got[1] > 5 {
			t.Fatalf("six turns: %v", got)
		}
	}
}

// Reads that come by turns with two sets of candidates starve nobody: counted
// together, the first would have all the even turns.
func TestRoundRobinWithChangingCandidates(t *testing.T) {
	c := newBalanced(BalanceRoundRobin, 1, 1, 1)
	pair, all := map[int]int{}, map[int]int{}
	for range 300 {
		pair[c.pick(set(1, 2)).index]++
		all[c.pick(set(1, 2, 3)).index]++
	}
	wantShares(t, pair, 0.01, 1, 1)
	wantShares(t, all, 0.01, 1, 1, 1)
}

// Picking goes on while weights (by ramps and latencies), candidates and suspicions
// change. What is picked is a candidate.
func TestPickWhileEverythingChanges(t *testing.T) {
	for _, mode := range modes {
		c := newBalanced(mode, 1, 2, 3, 1).inZones("a", "a", "b", "b")
		var clients sync.WaitGroup
		for g := range 8 {
			clients.Go(func() {
				r := rand.New(rand.NewPCG(uint64(g), 1))
				for range 20_000 {
					candidates := nodeSet(r.Uint64()) & c.all()
					if candidates == 0 {
						continue
					}
					n := c.pick(candidates, nil)
					if !candidates.has(n.index) {
						t.Errorf("picked %d of %b", n.index, candidates)
						return
					}
					n.inFlight.Add(1)
					n.pace.add(time.Duration(r.Int64N(int64(30 * time.Millisecond))))
					switch r.IntN(20) {
					case 0:
						n.ramp.begin()
					case 1:
						n.asked.Store(int64(now() - moment(time.Second)))
					case 2:
						n.asked.Store(int64(never))
					}
					n.inFlight.Add(-1)
				}
			})
		}
		clients.Go(func() {
			for i := range 1000 {
				c.nodes[1+i%4].pace.forget(moment(i) * moment(time.Second))
			}
		})
		clients.Wait()
	}
}

func TestPickAllocatesNothing(t *testing.T) {
	for _, mode := range modes {
		c := newBalanced(mode, 1, 2, 3).inZones("a", "a", "b")
		c.nodes[2].ramp.begin()
		if n := testing.AllocsPerRun(100, func() { c.pick(c.all(), nil, nil) }); n != 0 {
			t.Errorf("%v: %v allocations", mode, n)
		}
	}
}

func BenchmarkPick(b *testing.B) {
	for _, mode := range modes {
		for name, c := range map[string]*Cluster{
			"two":            newBalanced(mode, 1, 1),
			"five, weighted": newBalanced(mode, 1, 2, 3, 4, 5),
			"zones":          newBalanced(mode, 1, 1, 1, 1).inZones("a", "b", "a", "b"),
		} {
			b.Run(mode.String()+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				candidates := c.all()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						c.pick(candidates, nil, nil)
					}
				})
			})
		}
	}
}
