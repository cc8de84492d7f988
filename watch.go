package replicated

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/dialect"
)

const (
	// probeTimeout is what a server may take to answer a probe, or the time allowed for
	// a dial, if that is less.
	probeTimeout = time.Second

	// probeAgain is the pause after a probe that failed while the breaker is
	// closed: a node that hangs shall not keep its reads for seconds.
	probeAgain = 50 * time.Millisecond

	// retryWindow is how often a primary without positions is asked whether it has
	// some by now.
	retryWindow = 30 * time.Second

	// exploreMost is the longest pause between looks for another server behind the
	// name of a replica that has stopped.
	exploreMost = 30 * time.Second

	// unneeded is the pause where nothing is to be asked.
	unneeded = time.Hour
)

// watcher asks one node whether it lives and how far it has got, at the pace that
// reads need. It finds a node that accepts connections and never answers, it
// closes the breaker again, and it lets idle connections go when they have aged.
//
// It is one goroutine's.
type watcher struct {
	node  *node
	role  Role // the node's, when it was last looked at
	wake  <-chan struct{}
	probe prober

	primary primaryPace // one of them is used, by the node's role
	replica replicaPace
	paused  moment        // not before then, after a failure
	misses  int           // in a row, of the primary
	failed  bool          // the replica's last probe has
	open    bool          // the breaker has been seen to be open
	drift   time.Duration // of the wall clock

	last     moment        // when the node was last looked at
	explored moment        // when another server was last looked for
	rest     time.Duration // pause until the next time
}

func (w *watcher) run(ctx context.Context) {
	defer w.probe.end()
	w.become(w.node.role())
	w.drift = wallDrift()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			w.look(ctx)
		case <-w.wake:
		}
		timer.Reset(time.Duration(w.next() - now()))
	}
}

// become begins to watch a node in a role.
func (w *watcher) become(role Role) {
	tick := slowTick(w.node.cluster.cfg.MaxLag)
	w.role = role
	w.primary, w.replica = primaryPace{tick: tick}, replicaPace{tick: tick}
	w.paused, w.misses, w.failed = never, 0, false
	w.node.asked.Store(int64(never))
}

// look asks the node once.
func (w *watcher) look(ctx context.Context) {
	if role := w.node.role(); role != w.role {
		w.become(role)
	}
	if w.probe.asking == nil {
		w.probe.role = w.role
	}
	w.last = now()
	look := w.lookAtReplica
	if w.role == RolePrimary {
		look = w.lookAtPrimary
	}
	if !look(ctx) && ctx.Err() == nil {
		w.node.cluster.topology.unheard(w.node, w.last)
	}
}

// next returns when to look again.
func (w *watcher) next() moment {
	if t := &w.node.cluster.topology; t.follows {
		return min(w.nextInRole(), t.nextRole(w.last))
	}
	return w.nextInRole()
}

func (w *watcher) nextInRole() moment {
	n := w.node
	if n.role() != w.role {
		return now()
	}
	if w.role == RolePrimary {
		return max(w.nextPrimary(), w.paused)
	}
	if n.breaker.current() != BreakerClosed {
		if !w.open { // its schedule counts from now
			w.open = true
			w.paused = now() + moment(n.breaker.openFor())
		}
		return w.paused
	}
	w.open = false
	if w.failed { // whether it is dead shall be known soon
		return max(w.paused, moment(n.backOff.Load()))
	}
	return max(w.replica.next(w.wanted(), now()), w.paused, moment(n.backOff.Load()))
}

func (w *watcher) nextPrimary() moment {
	c := w.node.cluster
	at := now()
	owed := w.owed()
	if !owed {
		// Nothing is going to be asked soon: the next write has to tell. One that came
		// just now may have relied on its having been told.
		c.sampler.told.Store(false)
		owed = w.owed()
	}
	switch {
	case !c.tracks():
		return at + moment(unneeded)
	case c.fresh.tracking() == trackWindow:
		return w.primary.last + moment(retryWindow)
	case !c.usesReplicas() && !owed:
		return at + moment(unneeded)
	default:
		state := primaryState{owed: owed}
		state.reached, state.lag = c.progress()
		state.stalled = at-c.sampler.moved.load() > moment(3*w.primary.tick) && !c.fresh.book.Unconfirmed()
		w.primary.zeal.look(at, c.sampler.useful.Swap(false))
		if c.beats() {
			return max(w.primary.next(state), w.primary.last+moment(min(beatEvery, w.primary.tick)))
		}
		return w.primary.next(state)
	}
}

// owed tells whether there is a floor that no sample of the primary covers, or a
// replica that waits to be confirmed by one.
func (w *watcher) owed() bool {
	c := w.node.cluster
	if !c.usesReplicas() { // a token may be asked for all the same
		return c.sampler.wanted.any.load() >= c.fresh.book.Latest() && c.sampler.wanted.any.load() != never
	}
	owed := c.sampler.owed().Any
	return owed != never && owed >= c.fresh.book.Latest() || c.fresh.book.Unconfirmed()
}

// tracks tells whether the servers are asked for positions at all.
func (c *Cluster) tracks() bool {
	return c.cfg.Tracker != TrackerOff && c.dialect() != classify.Generic
}

// usesReplicas tells whether reads may run on replicas.
func (c *Cluster) usesReplicas() bool { return len(c.nodes) > 1 && c.cfg.Reads != ReadsOff }

// progress tells whether some replica has the newest sample already, and how long
// the quickest one usually takes.
func (c *Cluster) progress() (reached bool, lag time.Duration) {
	b := &c.fresh.book
	for _, n := range c.view().readers {
		for _, s := range n.servers() {
			reached = reached || b.Contains(s)
			if l := time.Duration(b.Lag(s)); lag == 0 || l < lag {
				lag = l
			}
		}
	}
	return reached, lag
}

// wanted tells whether a proof of the replica is needed, and to be had.
func (w *watcher) wanted() bool {
	c := w.node.cluster
	latest := c.fresh.book.Latest()
	if c.fresh.tracking() != trackProof || latest == never {
		return false
	}
	servers, owed := w.node.servers(), c.sampler.owed()
	for _, s := range servers {
		if p := s.Proof(); p == nil || p.Whole < latest && !p.Past(owed) {
			return true
		}
	}
	return len(servers) == 0
}

// lookAtPrimary asks the primary, and reports whether it has answered.
func (w *watcher) lookAtPrimary(ctx context.Context) bool {
	c := w.node.cluster
	if !c.tracks() && !c.topology.follows {
		return false
	}
	if d := wallDrift(); d-w.drift > time.Second {
		c.fresh.book.Forget() // this machine has slept, and the clock that counts stood still
		w.drift = d
	} else {
		w.drift = d
	}
	owed := w.owed()
	c.sampler.told.Store(false)
	w.primary.asked(now(), owed)
	if w.probe.asking == nil { // else a driver that hangs has it
		w.probe.owed = owed
	}
	asked := now()
	err := w.probe.ask(ctx)
	if err != nil && ctx.Err() == nil && w.misses == 0 && !errors.Is(err, context.DeadlineExceeded) {
		asked = now()
		err = w.probe.ask(ctx) // it may have been the connection alone
	}
	if err != nil {
		if ctx.Err() == nil {
			c.lost(asked, err)
			w.paused = now() + moment(min(probeAgain<<w.misses, w.primary.tick))
			w.misses = min(w.misses+1, 8)
		}
		return false
	}
	w.misses = 0
	c.sampler.wakeReplicas()
	return true
}

// wallDrift is how far the wall clock is ahead of the clock that counts.
func wallDrift() time.Duration {
	t := time.Now()
	return time.Duration(t.UnixNano()-processStart.UnixNano()) - t.Sub(processStart)
}

// lookAtReplica asks a replica, and reports whether it has answered.
func (w *watcher) lookAtReplica(ctx context.Context) bool {
	n := w.node
	n.pace.forget(now())
	for _, p := range n.pool.aged(time.Now()) {
		p.close()
	}
	if moment(n.backOff.Load()) > now() {
		return false // it has turned somebody away since this look was planned
	}
	before := n.proven()
	err := w.probeReplica(ctx)
	after := n.proven()
	w.replica.asked(now(), after > before)
	if after > before {
		n.cluster.sampler.moved.raise(now())
	}
	if w.failed = err != nil; w.failed {
		return false
	}
	if w.replica.stopped(now()) && w.wanted() {
		w.explore(ctx)
	}
	book := &n.cluster.fresh.book
	latest := book.Latest()
	reached := after > before && after >= latest && n.cluster.sampler.owed().Any >= latest
	if reached || book.Unconfirmed() {
		n.cluster.sampler.wakePrimary() // the next sample is of use now
	}
	return true
}

// explore looks whether the name of a replica that has stopped leads to another
// server, which may be further: a balancer hands out connections in turn, and we open
// none by ourselves while those that we have will do.
func (w *watcher) explore(ctx context.Context) {
	n := w.node
	if w.explored != never && now()-w.explored < moment(w.rest) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, w.probe.openTime())
	defer cancel()
	known := n.servers()
	p, err := n.connect(ctx, RoleReplica, forStatements)
	w.explored, w.rest = now(), min(max(2*w.rest, slowest), exploreMost)
	switch {
	case err != nil: // whether the node is at fault is for its probe to tell
	case p.server == nil || slices.Contains(known, p.server):
		p.close()
	default:
		w.rest = 0
		n.giveBack(p) // the prober adopts it
	}
}

// proven is how far the node's servers have been proven to be.
func (n *node) proven() moment {
	at := never
	for _, s := range n.servers() {
		if p := s.Proof(); p != nil {
			at = max(at, p.Synced)
		}
	}
	return at
}

// probeReplica asks the replica, and reports what comes of it to its breaker.
func (w *watcher) probeReplica(ctx context.Context) error {
	n := w.node
	if n.breaker.current() != BreakerClosed {
		asked := false
		var err error
		check := func() error {
			asked = true
			if err = w.askReplica(ctx); err == nil {
				n.ramp.begin()
			}
			return err
		}
		switch closed := n.breaker.probe(check); {
		case closed:
		case asked:
			w.paused = now() + moment(n.breaker.openFor())
			return err
		case n.cluster.topology.follows: // too early for the breaker; its role is asked for all the same
			return check()
		default:
			w.paused = now() + moment(n.breaker.openFor())
			return errNodeOut
		}
		n.cluster.stateChanged(n, BreakerClosed, nil)
		return nil
	}
	err := w.askReplica(ctx)
	if err == nil {
		n.breaker.succeeded()
		return nil
	}
	if ctx.Err() != nil {
		return err
	}
	class := n.dialect().Class(err)
	if errors.Is(err, context.DeadlineExceeded) {
		class = dialect.Lost
	}
	n.failed(class, err)
	w.paused = now() + moment(probeAgain)
	return err
}

// askReplica asks the replica, and has reads avoid it from when it takes long to
// answer until it has answered.
func (w *watcher) askReplica(ctx context.Context) error {
	asked := &w.node.asked
	asked.CompareAndSwap(int64(never), int64(now()))
	err := w.probe.ask(ctx)
	if err == nil || ctx.Err() != nil { // or nobody asks it any more
		asked.Store(int64(never))
	}
	return err
}
