package replicated

import (
	"math/bits"
	"math/rand/v2"
	"time"
)

// latencyFloor is the latency below which nodes count as equally fast: what is
// left there is noise, and would keep one of two equal nodes idle.
const latencyFloor = int64(time.Millisecond)

// pick chooses one of the candidates, of which there is at least one: the first
// of the preferred ones that is among them, if any is.
func (c *Cluster) pick(candidates nodeSet, prefer ...*node) *node {
	for _, n := range prefer {
		if n != nil && candidates.has(n.index) {
			return n
		}
	}
	k := candidates.len()
	if k == 1 {
		return c.nodes[candidates.nth(0)]
	}
	if c.cfg.Balance == BalanceRoundRobin {
		return c.nodes[candidates.nth(int(c.turn.Add(1)%uint64(k)))]
	}
	// Power of two choices: M. Mitzenmacher, "The Power of Two Choices in
	// Randomized Load Balancing", IEEE TPDS 12(10), 2001.
	i := rand.IntN(k)
	j := rand.IntN(k - 1)
	if j >= i {
		j++
	}
	a, b := c.nodes[candidates.nth(i)], c.nodes[candidates.nth(j)]
	if b.load() < a.load() {
		return b
	}
	return a
}

// load is what a further read would meet on the node: reads in flight, times
// latency in powers of two, divided by the node's weight.
func (n *node) load() float64 {
	slow := max(n.latency.Load(), latencyFloor) / latencyFloor
	return float64(n.inFlight.Load()+1) * float64(int64(1)<<(bits.Len64(uint64(slow))-1)) / float64(n.src.weight)
}

// nth returns the index of the k-th member, counted from 0.
func (s nodeSet) nth(k int) int {
	for ; k > 0; k-- {
		s &= s - 1
	}
	return bits.TrailingZeros64(uint64(s))
}
