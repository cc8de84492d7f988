package replicated

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/sqlreplicated/replicated/internal/dialect"
	"github.com/sqlreplicated/replicated/internal/evidence"
	"github.com/sqlreplicated/replicated/internal/socket"
	"github.com/sqlreplicated/replicated/internal/status"
)

// maxDials is how many connections to one node are opened at a time. Who finds
// none idle waits for a place: for a dial, which ends by itself, never for
// another borrower, who may not.
const maxDials = 16

// node is one server address. What a statement needs to know of it is read from
// atomics; the rest has a lock of its own.
type node struct {
	cluster *Cluster
	index   int
	name    string
	src     *source

	breaker *breaker
	pool    pool
	dials   *semaphore.Weighted
	host    socket.Host // what its name leads to, where we dial

	inFlight atomic.Int64 // statements and open Rows on replica connections
	dialling atomic.Int64 // reads that wait for a replica connection to be opened
	latency  atomic.Int64 // nanoseconds, moving average of answered reads
	pace     slowness     // what balancing makes of their latencies
	ramp     ramp         // after a return
	asked    atomic.Int64 // moment since which a probe has not been answered, or never
	backOff  atomic.Int64 // moment until which no connection is asked of it
	unlucky  atomic.Int64 // moment until which none is opened in the hope of a fresher one
	behind   atomic.Bool  // a pooler sits before the server: sessions are not ours
	readOnly atomic.Bool  // listed as the primary, and read-only

	// What has been told of, and still holds.
	positionless atomic.Bool // has no position
	diverged     atomic.Bool // has applied what the primary lacks
	strange      atomic.Bool // its history is not the primary's, or cannot be read
	// multiplexed: one connection to it has reached two servers, so that nothing is
	// known of any.
	multiplexed atomic.Bool

	// reached are the servers that its connections lead to: one, unless its name
	// stands for several. It is replaced, never changed.
	reached atomic.Pointer[[]*evidence.Server]

	mu      sync.Mutex
	live    map[*physical]struct{} // every open connection of the node
	opening map[*physical]struct{} // those that are being opened
}

func newNode(c *Cluster, index int, src *source, cfg *settings) *node {
	n := &node{
		cluster: c,
		index:   index,
		name:    src.name,
		src:     src,
		breaker: newBreaker(cfg.BreakerFailures, cfg.BreakerOpen),
		// The prober's connection counts as one of the idle ones.
		pool:  pool{cluster: c, maxIdle: max(cfg.ReplicaMaxIdle-1, 0), maxIdleTime: cfg.ReplicaMaxIdleTime},
		dials: semaphore.NewWeighted(maxDials),
		live:  make(map[*physical]struct{}),

		opening: make(map[*physical]struct{}),
	}
	return n
}

func (n *node) dialect() *dialect.Dialect { return dialect.For(n.cluster.dialect()) }

// harmlessWrites is how many writes the driver sends before a text with so many
// arguments runs: lib/pq first sends Parse alone.
func (n *node) harmlessWrites(args int) int {
	if args > 0 && !n.src.oneTrip {
		return n.dialect().ParseWrites
	}
	return 0
}

// up tells whether reads may be sent to the node.
func (n *node) up(at moment) bool {
	return n.breaker.current() == BreakerClosed && moment(n.backOff.Load()) <= at
}

// servers returns the servers that the node's connections lead to.
func (n *node) servers() []*evidence.Server {
	if s := n.reached.Load(); s != nil {
		return *s
	}
	return nil
}

// borrow takes a connection out of the pool that may serve the read, or opens one.
// reused tells which.
func (n *node) borrow(ctx context.Context, want dialect.Settings, b *bound) (p *physical, reused bool, err error) {
	for {
		// A driver's reset may fail for ctx alone, which is no reason to close what
		// is idle.
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		p := n.pool.get(want, b)
		if p == nil {
			break
		}
		if !n.pool.tooOld(p, time.Now()) && !p.leaves() && p.alive() && p.reset(ctx) == nil && n.stillThere(ctx, p) {
			if p.closeReleased(); !p.spoiled {
				return p, true, nil
			}
		}
		p.close()
	}
	n.dialling.Add(1)
	defer n.dialling.Add(-1)
	if err := n.dials.Acquire(ctx, 1); err != nil {
		return nil, false, err
	}
	defer n.dials.Release(1)
	// While we waited for a place the node may have been found dead, or a
	// connection may have come back.
	if !n.up(now()) {
		return nil, false, errNodeOut
	}
	if p := n.pool.get(want, b); p != nil {
		if !p.moved() && p.alive() && p.reset(ctx) == nil {
			return p, true, nil
		}
		p.close()
	}
	if at := now(); moment(n.unlucky.Load()) > at {
		return nil, false, errUnproven
	}
	p, err = n.open(ctx, RoleReplica, forStatements)
	if err == nil && !n.cluster.allows(p, b) {
		// It has reached a server, or a state of one, that is not far enough. The next
		// read may ask less of it; those that ask as much shall not all dial.
		n.unlucky.Store(int64(now() + moment(unluckyFor)))
		p.shun()
		n.giveBack(p)
		return nil, false, errUnproven
	}
	return p, false, err
}

// askAgain is how many uses of a connection through a pooler come to one in which
// it is asked again which server it has reached.
const askAgain = 16

// stillThere tells whether a connection leads to the server that it has led to. It
// is asked at random, and only where a pooler may have changed that.
func (n *node) stillThere(ctx context.Context, p *physical) bool {
	if !n.behind.Load() || n.cluster.fresh.tracking() == trackWindow || rand.IntN(askAgain) > 0 {
		return true
	}
	p.begin(&progress{}, true, 0)
	id, err := p.ask(ctx)
	if err == nil && id.Server != p.identity.Server {
		n.foundSeveral()
	}
	return err == nil && id.Server == p.identity.Server
}

// unluckyFor is how long no further connection is opened for a read, when the last
// one has not been proven fresh enough.
const unluckyFor = 50 * time.Millisecond

// errUnproven: no connection of the node is proven to be past the read's floor.
// Reads are only sent to nodes that have one, so this is rare.
var errUnproven = errors.New("the connection is not proven to be fresh enough")

// errNodeOut: the node has been taken out since it was chosen.
var errNodeOut = errors.New("the node has been taken out")

// giveBack returns a borrowed connection: to the pool if nothing that it ran can
// be left in it, else it is closed.
func (n *node) giveBack(p *physical) {
	if p.valid() && p.settled() {
		p.used = true
		p.closeReleased()
		if !p.spoiled && n.up(now()) && n.role() == RoleReplica && !p.leaves() && n.pool.put(p, time.Now()) {
			return
		}
	}
	p.close()
}

// release ends one use of a borrowed connection.
func (n *node) release(p *physical) {
	n.inFlight.Add(-1)
	n.giveBack(p)
}

// settled tells whether the connection is outside any transaction, and would
// start none by itself.
func (p *physical) settled() bool {
	s := p.flags.Read()
	return (s.Tx == status.Idle || s.Tx == status.Unknown) && !s.AutocommitOff
}

// opens takes note that a connection is being opened, so that it can be given up.
func (n *node) opens(p *physical, begin bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if begin {
		n.opening[p] = struct{}{}
	} else {
		delete(n.opening, p)
	}
}

func (n *node) remember(p *physical) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.live[p] = struct{}{}
	n.reachedLocked()
}

func (n *node) forget(p *physical) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.live, p)
	n.reachedLocked()
}

// reachedLocked publishes the servers that live connections lead to.
func (n *node) reachedLocked() {
	var now []*evidence.Server
	for p := range n.live {
		if p.server != nil && !slices.Contains(now, p.server) {
			now = append(now, p.server)
		}
	}
	if old := n.servers(); len(old) != len(now) || slices.ContainsFunc(now, func(s *evidence.Server) bool { return !slices.Contains(old, s) }) {
		n.reached.Store(&now)
	}
}

// openConns counts the node's connections.
func (n *node) openConns() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.live)
}

// abortReplicas closes the sockets of all replica connections, so that the reads
// in them fail and run elsewhere.
func (n *node) abortReplicas(cause error) {
	for _, p := range n.pool.takeIdle(func(*physical) bool { return true }) {
		p.abort(cause)
		p.close()
	}
	n.abort(RoleReplica, cause)
}

// abort closes the sockets of all connections that were opened for a role, those that
// end abandoned writes excepted.
func (n *node) abort(role Role, cause error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for p := range n.live {
		if p.role == role && p.use != forKill {
			p.abort(cause)
		}
	}
	for p := range n.opening {
		if p.role == role && p.use == forStatements { // not the probe that is to find it healthy
			p.abort(cause)
		}
	}
}

// Back-off from a node that answers, but not to us now.
const (
	busyBackOff = time.Second
	authBackOff = 5 * time.Second
)

// failed reports that a dial of the node, or a connection to it, has failed for
// the node's reason.
func (n *node) failed(class dialect.ErrorClass, err error) {
	switch class {
	case dialect.Busy:
		n.holdOff(busyBackOff, err)
	case dialect.Auth:
		n.holdOff(authBackOff, err)
	default:
		n.breaker.failed(class == dialect.Down)
		n.afterReport(err)
	}
}

// holdOff keeps away from a node that is up but turns us away.
func (n *node) holdOff(d time.Duration, err error) {
	until := now() + moment(d+time.Duration(rand.Int64N(int64(d)/2)))
	if old := n.backOff.Swap(int64(until)); moment(old) <= now() {
		n.cluster.notice(Notice{Kind: NoticeTurnedAway, Node: n.name, Err: nodeError(n, RoleReplica, "connect", err)})
	}
}

// errBreakerOpened is why reads in a node that has been taken out fail there. It
// wraps nothing: what the node's probe died of (a deadline) is not what they do.
var errBreakerOpened = errors.New("the node's breaker has opened")

// afterReport does what opening the breaker asks for, outside its lock.
func (n *node) afterReport(err error) {
	if !n.breaker.takeOpened() {
		return
	}
	n.abortReplicas(errBreakerOpened)
	n.cluster.stateChanged(n, BreakerOpen, err)
	n.cluster.wakeProber()
}

// latencyWeight is the share of a new sample in the moving average: an eighth.
const latencyWeight = 8

// answered records how long the node took for a read.
func (n *node) answered(took time.Duration) {
	n.breaker.succeeded()
	n.pace.add(took)
	old, mean := n.latency.Load(), int64(took)
	if old != 0 {
		mean = old + (mean-old)/latencyWeight
	}
	n.latency.CompareAndSwap(old, mean) // of two at once one is lost, which is no matter
}
