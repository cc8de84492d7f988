package replicated

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/dialect"
	"github.com/sqlreplicated/replicated/internal/evidence"
)

// tracking is how a cluster tells whether replicas are fresh.
type tracking uint32

const (
	trackUndecided tracking = iota // the primary has not been asked yet: nothing is known
	trackProof                     // by the positions of their logs
	trackWindow                    // by time, which is a guess (Config.Sticky)
)

// freshness is what a cluster knows of how fresh its replicas are, and of who its
// primary is. The book decides; this is its place in the cluster.
//
// Statements read atomics only.
type freshness struct {
	book evidence.Book
	mode atomic.Uint32 // tracking

	// term counts the primaries that have been met. A primary connection of an
	// earlier term leads to a server that is no longer the primary.
	term atomic.Uint64
	// doubts counts how often the primary has turned read-only. Connections opened
	// before may lead to where the primary was, behind one name: those that nobody
	// is using are opened anew.
	doubts atomic.Uint64

	answered stamp       // when the primary, writable, has last been asked and has answered
	missed   stamp       // when it has first been asked in vain since
	blind    atomic.Bool // it does not answer now, or is read-only
	demoted  atomic.Bool // it was read-only when it answered last

	unmet atomic.Bool // a token could not be honoured, and it was told

	wrote stamp // the last write of the process when the primary last changed

	mu       sync.Mutex    // guards meeting primaries, and what follows
	news     chan struct{} // closed when something has been learned; nil while nobody waits
	failures uint64        // of asking the primary
	failed   error         // the last one
}

func (f *freshness) tracking() tracking { return tracking(f.mode.Load()) }

// bound is what a read asks of a replica.
type bound struct {
	floor floor         // that it has everything up to here
	lag   time.Duration // and is no further behind than this
	seen  seen          // and that it has what the session has seen
	at    moment        // when the read was called
	any   bool          // nothing is asked
}

// bounds returns what a read asks of replicas.
func (c *Cluster) bounds(w *wishes, f floor) bound {
	b := bound{lag: c.cfg.MaxLag, floor: f, at: now()}
	if w.stale {
		b.floor = floor{}
		if w.maxStale > 0 {
			b.lag = w.maxStale
		}
	}
	if w.maxLag > 0 {
		b.lag = min(b.lag, w.maxLag)
	}
	return b
}

// measuredTo returns the moment to which lag is measured for a read that is called
// at a moment: that one, or, while no primary answers, the last one at which it may
// have taken writes: until it was asked in vain, others may have reached it. ok is
// false if that is too long ago for replicas to serve anything.
func (c *Cluster) measuredTo(at moment) (to moment, ok bool) {
	f := &c.fresh
	if !f.blind.Load() {
		return at, true
	}
	to = max(f.answered.load(), f.missed.load())
	return to, at-to <= moment(c.cfg.MaxBlind)
}

// within tells whether a proof is within the bound on lag.
func within(p *evidence.Proof, to moment, lag time.Duration) bool {
	return p != nil && p.Settled != never && to-p.Settled <= moment(lag)
}

// survey fills in what is known of the replicas for a question: which are within
// the bound on lag, and which are past the floor.
func (c *Cluster) survey(q *question) {
	b := &q.bound
	q.near, q.past, q.unmeasured = 0, 0, false
	switch c.fresh.tracking() {
	case trackWindow:
		q.near = q.replicas
		if gone := func(f floor) bool { return f.Any == never || b.at-f.Any >= moment(c.cfg.Sticky) }; gone(b.floor) {
			for _, n := range c.view().readers {
				if gone(b.seen.floor()) || b.seen.here(n) {
					q.past = q.past.with(n.index)
				}
			}
		}
		return
	case trackUndecided:
		q.unmeasured = true
		return
	}
	to, ok := c.measuredTo(b.at)
	q.unmeasured = true
	for _, n := range c.view().readers {
		if n.multiplexed.Load() {
			continue
		}
		for _, s := range n.servers() {
			p := s.Proof()
			if p == nil {
				continue
			}
			q.unmeasured = false
			if ok && within(p, to, b.lag) {
				q.near = q.near.with(n.index)
				if p.Past(b.floor) && (p.Past(b.seen.floor()) || b.seen.here(n)) {
					q.past = q.past.with(n.index)
					break
				}
			}
		}
	}
}

// allows tells whether a connection may serve a read, by what is proven of the
// server that this very connection has reached.
func (c *Cluster) allows(p *physical, b *bound) bool {
	switch tracking := c.fresh.tracking(); {
	case b.any, tracking == trackWindow:
		return true
	case tracking == trackUndecided:
		return false
	}
	if p.server == nil || p.node.multiplexed.Load() {
		return false
	}
	proof := p.server.Proof()
	to, ok := c.measuredTo(b.at)
	return ok && proof.HoldsFor(p.opened) && proof.Past(b.floor) && within(proof, to, b.lag) &&
		(proof.Past(b.seen.floor()) || b.seen.over(p))
}

// refused has a proof looked for that a read is in need of.
func (c *Cluster) refused(b bound) {
	f := b.floor.Max(b.seen.floor())
	if to := b.at - moment(b.lag); f.Any < to {
		f = f.Max(evidence.All(to)) // it was for the bound on lag
	}
	c.sampler.refused(f)
}

// reached takes note that the primary has answered a statement: as long as it does,
// lag is measured to that, though the sampler may fail to reach it.
func (f *freshness) reached() {
	if f.blind.Load() && !f.demoted.Load() {
		f.answered.raise(now())
	}
}

// lost takes note that the primary does not answer what it was asked at a moment.
func (c *Cluster) lost(asked moment, err error) {
	c.fresh.miss(asked)
	c.unsampled(err)
}

func (f *freshness) miss(asked moment) {
	if !f.blind.Load() {
		f.missed.raise(asked)
	}
	f.blind.Store(true)
}

// unsampled has those who wait for a sample of the primary know that there is none
// to be had, and why.
func (c *Cluster) unsampled(err error) {
	f := &c.fresh
	f.mu.Lock()
	f.failures++
	f.failed = err
	if n := c.primary(); n != nil {
		f.failed = nodeError(n, RolePrimary, "sample", withoutBadConn(err))
	}
	f.mu.Unlock()
	f.tell()
}

// steppedDown takes note that a server in the primary's place says that it is
// read-only: the connections behind the same name are looked at again.
func (f *freshness) steppedDown() {
	if !f.demoted.Swap(true) {
		f.doubts.Add(1)
	}
}

var (
	errReadOnlyPrimary = errors.New("the server in the primary's place is read-only")
	errEmptyLog        = errors.New("the primary's log is empty")
)

// failure returns how often no sample could be had of the primary, and why the last
// time.
func (f *freshness) failure() (times uint64, last error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failures, f.failed
}

// sampled enters what the primary has said over a connection of the sampler's. An
// error says that it is none.
func (c *Cluster) sampled(p *physical, id *dialect.Identity, asked moment) error {
	f := &c.fresh
	if id.ReadOnly {
		// It may be what the primary was. What has been proven so far stays true.
		f.miss(asked)
		f.steppedDown()
		p.node.reportOnce(&p.node.readOnly, NoticeReadOnlyPrimary)
		return errReadOnlyPrimary
	}
	f.demoted.Store(false)
	if !c.decide(p.node, id) {
		f.blind.Store(false)
		if why := id.NoWritten(); why != "" {
			c.unsampled(errors.New(why))
		}
		return nil
	}
	q := evidence.Sample{
		At: asked, Answered: now(), Opened: p.opened, Server: id.Server, Lineage: id.Lineage,
		Synced: id.Written, Whole: id.Written, Settles: moment(id.Settles),
	}
	if !id.Inserted.IsZero() {
		q.Whole = id.Inserted
	}
	if id.AsyncCommit {
		q.Synced = q.Whole // no commit waits for the disk, as far as this session can tell
	}
	f.mu.Lock()
	change := f.book.Sampled(q)
	f.enterLocked(p, change)
	f.mu.Unlock()
	if change == evidence.Outdated {
		p.spoiled = true
		return nil
	}
	p.node.readOnly.Store(false)
	if change != evidence.Nothing {
		f.unmet.Store(false) // in another history another one may be
	}
	f.answered.raise(asked)
	f.blind.Store(false)
	f.tell()
	c.changed(p.node, change)
	c.tellLosses(p.node)
	if q.Synced.IsEmpty() || q.Whole.IsEmpty() {
		c.unsampled(errEmptyLog)
	}
	return nil
}

// decide settles how freshness is told, by whether the primary has positions. It
// reports whether it has.
func (c *Cluster) decide(n *node, id *dialect.Identity) bool {
	why := id.NoWritten()
	if c.beats() && why == "" && id.Written.IsZero() {
		return false // no beat has been seen yet
	}
	switch {
	case why == "":
		n.positionless.Store(false)
		c.fresh.mode.Store(uint32(trackProof))
	case c.cfg.Tracker == TrackerAuto:
		c.guess(n, why)
	default:
		c.fresh.mode.Store(uint32(trackProof)) // of nothing: the primary serves
		n.noPosition(why)
	}
	return why == ""
}

// guess lets the time window take the place of proofs, and says so once.
func (c *Cluster) guess(n *node, why string) {
	if tracking(c.fresh.mode.Swap(uint32(trackWindow))) != trackWindow {
		n.noPosition(why)
	}
}

// noPosition tells, once until it has one, why a node has no position.
func (n *node) noPosition(why string) {
	if !n.positionless.Swap(true) {
		n.cluster.notice(Notice{Kind: NoticeLagUnmeasured, Node: n.name, Err: errors.New("replicated: " + why)})
	}
}

// sighted enters what a replica has said over a connection, and returns its server.
func (c *Cluster) sighted(p *physical, id *dialect.Identity, asked moment) *evidence.Server {
	f := &c.fresh
	if f.tracking() == trackWindow || id.Server == "" {
		return nil
	}
	s := evidence.Sighting{
		Asked: asked, Answered: now(), Server: id.Server, Lineage: id.Lineage,
		NeedsLineage: id.Flavor == classify.Postgres && !c.beats(), Exact: id.LineageExact,
		Applied: id.AppliedFrom(f.book.Primary()),
	}
	server := f.book.Sighted(s)
	c.remark(p.node, server, id)
	f.tell()
	return server
}

// remark tells, once each, why a replica proves nothing.
func (c *Cluster) remark(n *node, s *evidence.Server, id *dialect.Identity) {
	b := &c.fresh.book
	if b.Diverged(s) {
		n.reportOnce(&n.diverged, NoticeDiverged)
	} else {
		n.diverged.Store(false)
	}
	switch why := id.NoApplied(b.Primary()); {
	case b.Latest() == never:
	case why != "":
		n.noPosition(why)
	case !b.OfLineage(s):
		n.reportOnce(&n.strange, NoticeOtherLineage)
	default:
		n.positionless.Store(false)
		n.strange.Store(false)
	}
}

// tell wakes the reads that wait for a proof.
func (f *freshness) tell() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.news != nil {
		close(f.news)
		f.news = nil
	}
}

// listen returns a channel that is closed when a proof moves.
func (f *freshness) listen() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.news == nil {
		f.news = make(chan struct{})
	}
	return f.news
}

// await waits until ok says yes, for as long as a read may wait.
func (c *Cluster) await(ctx context.Context, ok func() bool) bool {
	timer := time.NewTimer(c.cfg.Wait)
	defer timer.Stop()
	for {
		news := c.fresh.listen()
		if ok() {
			return true
		}
		select {
		case <-news:
		case <-timer.C:
			return ok()
		case <-ctx.Done():
			return false
		}
	}
}
