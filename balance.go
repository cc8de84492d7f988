package replicated

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// pick chooses one of the candidates, of which there is at least one: the first
// of the preferred ones that is among them, if any is, else one by weight, load and
// zone.
//
// It reads atomics only, and allocates nothing.
func (c *Cluster) pick(candidates nodeSet, prefer ...*node) *node {
	candidates = c.answering(candidates)
	for _, n := range prefer {
		if n != nil && candidates.has(n.index) {
			return n
		}
	}
	candidates = c.nearby(candidates)
	switch {
	case candidates.len() == 1:
		// Alone, it takes everything at once. The primary could take a part of it, but
		// it has the writes already, and nobody has promised it the reads of a replica.
		n := c.nodes[candidates.nth(0)]
		n.ramp.share() // begins now: this warms it
		return n
	case c.cfg.Balance == BalanceRoundRobin:
		return c.inTurn(candidates)
	default:
		return c.betterOfTwo(candidates)
	}
}

// suspectAfter is how long a node may leave its probe unanswered before reads go
// elsewhere. A probe is a trifle; a server that needs longer for one is busy, far
// away, or hangs. The breaker waits for the probe's own time-out.
const suspectAfter = 250 * time.Millisecond

// suspect tells whether a node that was asked at a moment, and has not answered
// since, is to be avoided. Never means that no answer is awaited.
func suspect(asked, at moment) bool { return asked != never && at-asked > moment(suspectAfter) }

// answering leaves out the suspects, as long as others remain.
func (c *Cluster) answering(candidates nodeSet) nodeSet {
	at, rest := never, candidates
	for s := candidates; s != 0; s &= s - 1 {
		asked := moment(c.nodes[s.nth(0)].asked.Load())
		if asked == never {
			continue
		}
		if at == never {
			at = now()
		}
		if suspect(asked, at) {
			rest = rest.without(s & -s)
		}
	}
	if rest == 0 {
		return candidates
	}
	return rest
}

const (
	// zoneYields is how many times as slow as the others the zone's replicas have to
	// be to lose their preference: another zone costs a millisecond or two, and
	// usually money, so that it takes an overload and not a busy hour.
	zoneYields = 8

	// One in scouts reads looks at the other zones, while the zone's replicas are slow
	// and nothing is known of the others: it may be the reads that are slow.
	scouts = 32
)

// nearby keeps to the candidates in the zone of Config.Zone, if there are any. They
// share with the others while all of them have just returned, and when they have
// become far slower.
func (c *Cluster) nearby(candidates nodeSet) nodeSet {
	if c.cfg.Zone == "" {
		return candidates
	}
	var local nodeSet
	here, there := math.Inf(1), math.Inf(1) // the fastest
	known, warm := true, 0.0
	for s := candidates; s != 0; s &= s - 1 {
		n := c.nodes[s.nth(0)]
		slow, samples := n.pace.load()
		if n.src.zone == c.cfg.Zone {
			local |= s & -s
			here, warm = min(here, slow), max(warm, n.ramp.share())
		} else if slow < there {
			there, known = slow, samples >= trusted
		}
	}
	far := candidates.without(local)
	switch {
	case local == 0, far == 0:
		return candidates
	case warm < 1 && rand.Float64() >= warm:
		return far
	case here-there > math.Log(zoneYields) && (known || rand.IntN(scouts) == 0):
		return candidates
	default:
		return local
	}
}

// crowded is how many times as much to do as another a node has to have to lose a
// read to it, and calm the work, in latencyFloor, that nobody loses one for: what
// short reads make of it is noise. The difference of one read is the better rule on
// paper. On servers it sends reads after whatever the scheduler has just favoured,
// which then ends them first, and so on: of two equal nodes one had 93 % of 6,400 reads.
const (
	crowded = 3
	calm    = 16
)

// betterOfTwo draws two of the candidates, by their shares and how slow they are. The
// first gets the read, unless it is crowded beside the second.
//
// The power of two choices (M. Mitzenmacher, IEEE TPDS 12(10), 2001) draws evenly,
// and so gives none of k nodes more than 2/k of the reads, whatever its weight.
// Here the two with the shortest times of an exponential race are drawn (P. Efraimidis,
// P. Spirakis, Information Processing Letters 97(5), 2006): the first is one of share
// s with the probability s ÷ the sum of all.
func (c *Cluster) betterOfTwo(candidates nodeSet) *node {
	fastest := math.Inf(1)
	for s := candidates; s != 0; s &= s - 1 {
		slow, _ := c.nodes[s.nth(0)].pace.load()
		fastest = min(fastest, slow)
	}
	var first, second *node
	t1, t2 := math.Inf(1), math.Inf(1)
	for s := candidates; s != 0; s &= s - 1 {
		n := c.nodes[s.nth(0)]
		switch t := rand.ExpFloat64() / (n.share() * n.pace.speed(fastest)); {
		case first == nil || t < t1:
			second, t2 = first, t1
			first, t1 = n, t
		case second == nil || t < t2:
			second, t2 = n, t
		}
	}
	if first.crowdedBeside(second) {
		return second
	}
	return first
}

// share is what part of the reads the node is meant to get, relative to others.
func (n *node) share() float64 { return float64(n.src.weight) * n.ramp.share() }

// crowdedBeside tells whether the node has so much more to do than another one, by
// their shares, that a read is better off there. What a node has to do is the reads
// that it has, times what one of them takes.
func (n *node) crowdedBeside(other *node) bool {
	mine, theirs := n.share(), other.share()
	unit := max(mine, theirs) // counted in reads of the one with the larger share
	return n.work()*unit/mine+calm > crowded*(other.work()*unit/theirs+calm)
}

func (n *node) work() float64 {
	if busy := n.busy(); busy > 0 {
		slow, _ := n.pace.load()
		return busy * math.Exp(slow)
	}
	return 0
}

// busy counts the reads that the node has to do with. Open Rows count until they are
// closed: the server is producing them, or holds a snapshot and a connection for
// them. So do reads that queue for a dial, or a node that takes long to connect would
// look idle; dials as such say nothing of it, but that there are more reads than idle
// connections.
func (n *node) busy() float64 {
	return float64(n.inFlight.Load() + max(n.dialling.Load()-maxDials, 0))
}

// inTurn gives each of the candidates its turns, in proportion to its share.
//
// Equal shares take turns strictly. Unequal ones are laid end to end, and a point
// moves over them by steps of the golden section: of all sequences this one strays
// least from the shares, over any stretch of turns, and it needs no state but the
// turn's number (D. Knuth, The Art of Computer Programming 3, 6.4, theorem S).
func (c *Cluster) inTurn(candidates nodeSet) *node {
	turn := c.turns.next(candidates)
	total, one, even := 0.0, 0.0, true
	for s := candidates; s != 0; s &= s - 1 {
		share := c.nodes[s.nth(0)].share()
		if total == 0 {
			one = share
		}
		even = even && share == one
		total += share
	}
	if even {
		return c.nodes[candidates.nth(int(turn%uint64(candidates.len())))]
	}
	point := float64(turn*golden>>11) / (1 << 53) * total
	n := c.nodes[candidates.nth(0)]
	for s := candidates; s != 0; s &= s - 1 {
		n = c.nodes[s.nth(0)]
		if point -= n.share(); point < 0 {
			break
		}
	}
	return n // the last one, where shares have grown since they were added up
}

// golden is 2⁶⁴ divided by the golden ratio.
const golden = 0x9E3779B97F4A7C15

// turns counts the turns of round-robin, for each set of candidates by itself: were
// they counted together, an application whose reads come with two sets by turns
// would always find the same node of the first one. Two sets that share a counter
// can at worst do that to each other.
type turns [64]atomic.Uint64

func (t *turns) next(s nodeSet) uint64 { return t[uint64(s)*golden>>58].Add(1) }

// nth returns the index of the k-th member, counted from 0.
func (s nodeSet) nth(k int) int {
	for ; k > 0; k-- {
		s &= s - 1
	}
	return bits.TrailingZeros64(uint64(s))
}
