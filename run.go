package replicated

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/dialect"
	"github.com/sqlreplicated/replicated/internal/evidence"
)

// work is something to be done on a physical connection: run a statement, prepare
// one, begin a transaction.
type work struct {
	verdict      classify.Verdict
	text         string
	begin        bool // opens a transaction
	serializable bool // with that isolation
	runs         bool // runs the statement, with its effects; else prepares it
	shadow       bool // a replica would have done it
	mayWrite     bool // its outcome matters when its answer is lost

	touch    *touch           // what it has written to; nil: everything
	schema   *classify.Schema // … by this
	reshapes bool             // it may change the schema

	prefer *node // has the statement prepared; or nil

	// do does it. It may be called once for each node that is tried.
	do func(ctx context.Context, p *physical, g *progress) error

	// kept tells that what do made still needs the connection when it has
	// returned: Rows, a transaction. Whoever has it then ends the watch, calls
	// leave, and gives a replica connection back.
	kept  bool
	watch func()
	leave func() // not nil: ends a fallback read

	last bool // it has been lost on a replica: where it is lost again, it stays so
}

// passes tells whether w leaves nothing behind on a connection that what follows could
// rely on: a proven read, or what is asked of the connection alone.
func (w *work) passes() bool {
	if w.runs {
		return w.verdict.Replica()
	}
	return !w.begin && !w.mayWrite
}

// free tells whether w is a proven read in which neither a transaction nor anything else
// that the primary connection has plays a part: it may run over any other one.
func (c *Conn) free(w *work) bool {
	return w.runs && w.passes() && w.verdict.Class != classify.Empty && !c.depends()
}

// depends tells whether reads depend on what the primary connection has.
func (c *Conn) depends() bool { return c.vars != 0 || c.hasState() || c.inTx() }

// run is the one attempt loop: route, borrow, run, judge the error, next. Each
// node is tried at most once, within ctx.
func (c *Conn) run(ctx context.Context, w *work) error {
	if c.broken {
		return driver.ErrBadConn
	}
	wish := wishesOf(ctx)
	if c.tx != nil && c.tx.replica != nil {
		return c.tx.run(ctx, w, &wish)
	}
	c.forgetLost()
	if err := c.resolveDoubt(ctx, w); err != nil {
		return err
	}
	q, err := c.question(ctx, w, &wish)
	if err != nil {
		return err
	}
	var cause error // why the last replica failed
	for {
		q.eligible = c.eligible()
		a, err := route(&q)
		if err != nil {
			return err
		}
		if a.replicas == 0 {
			if a.reason.behind() && c.catchUp(ctx, &q) {
				continue
			}
			return c.toPrimary(ctx, w, &wish, &q, a, cause)
		}
		n := c.cluster.pick(a.replicas, w.prefer, q.bound.seen.node)
		next, err := c.onReplica(ctx, w, n, a.reason, &q.bound)
		switch next {
		case done:
			return err
		case unproven:
			q.past = q.past.without(nodeSet(0).with(n.index))
		case elsewhere:
			q.tried = q.tried.with(n.index)
			cause = err
		case toPrimary:
			why := reasonOfRefusal(n, err)
			if why == ReasonRefused && wish.readOnly && w.runs {
				return fmt.Errorf("%w: the context was made by WithReadOnly and replica %s has refused the statement as a write: %w", ErrReadOnly, n.name, err)
			}
			return c.toPrimary(ctx, w, &wish, &q, answer{reason: why}, err)
		}
	}
}

// question asks where to run w, as things stand.
func (c *Conn) question(ctx context.Context, w *work, wish *wishes) (question, error) {
	q := question{
		verdict:  w.verdict,
		begin:    w.begin,
		inTx:     c.inTx(),
		shadowTx: c.shadowed(w, wish),
		pinned:   c.isPinned(),
		wishes:   *wish,
		reads:    c.cluster.cfg.Reads,
		replicas: c.cluster.view().replicas,
	}
	if w.begin {
		q.primaryTx = c.cluster.cfg.ReadOnlyTx == ReadOnlyTxPrimary
		q.serializable = w.serializable
	} else {
		q.learned = c.cluster.learned.has(w.text)
		q.wishes.readOnly = q.wishes.readOnly && w.runs
	}
	q.serializable = q.serializable || c.primary != nil && c.primary.identity.Serializable && c.cluster.dialect() == classify.Postgres
	var reads *touch
	if !w.begin {
		reads = c.cluster.touch(w.text)
	}
	floor, why := c.cluster.floors.of(c.cluster.cfg.Consistency, &c.written, wish.session, reads)
	higher := func(m moment, r Reason) {
		if m > floor.Any {
			why = r
		}
		floor = floor.Max(evidence.All(m))
	}
	higher(wish.fresh, ReasonFresh)
	if tokens := wish.tokensOf(); len(tokens) > 0 && !q.inTx && q.isRead() {
		at, err := c.cluster.tokensAsk(ctx, tokens)
		if err != nil {
			return q, err
		}
		higher(at, ReasonToken)
	}
	q.bound = c.cluster.bounds(wish, floor)
	if wish.monotonic && wish.session != nil {
		q.bound.seen = wish.session.outermost().hasSeen(c.cluster.floors)
		if q.bound.seen.end > floor.Any {
			why = ReasonMonotonic
		}
	}
	q.floorWhy = why
	c.cluster.survey(&q)
	return q, nil
}

// catchUp has a proof looked for that a read is in need of, and waits for it where
// reads may (Config.Wait; a read that the primary serves anyhow waits for nothing).
// It reports whether there is one now.
func (c *Conn) catchUp(ctx context.Context, q *question) bool {
	c.cluster.refused(q.bound)
	if q.waited || c.cluster.cfg.Wait <= 0 || q.reads == ReadsShadow || c.cluster.fresh.tracking() == trackWindow {
		return false
	}
	q.waited = true
	return c.cluster.await(ctx, func() bool {
		q.bound.at = now()
		c.cluster.survey(q)
		return q.past&q.eligible.without(q.tried) != 0
	})
}

// eligible returns the replicas that may serve this Conn. Settings cannot be
// carried through a pooler.
func (c *Conn) eligible() nodeSet {
	s := c.cluster.eligible()
	if c.vars == 0 {
		return s
	}
	for _, n := range c.cluster.view().readers {
		if n.behind.Load() {
			s = s.without(nodeSet(0).with(n.index))
		}
	}
	return s
}

// next is what the loop does after an attempt on a replica.
type next uint8

const (
	done      next = iota // the caller gets the result, or the error
	elsewhere             // the node was at fault: another replica, or the primary
	unproven              // it has no connection that is known to be fresh enough: likewise
	toPrimary             // the primary, at once
)

// onReplica tries w on a replica.
func (c *Conn) onReplica(ctx context.Context, w *work, n *node, why Reason, b *bound) (next, error) {
	settings, err := c.settings(ctx)
	if err != nil {
		return done, err
	}
	for {
		p, reused, err := n.borrow(ctx, settings, b)
		if errors.Is(err, errUnproven) {
			return unproven, nil
		}
		if err != nil {
			return c.notConnected(ctx, w, n, why, err)
		}
		n.inFlight.Add(1)
		started := time.Now()
		var g progress
		stop := p.watch(ctx)
		if err = p.adopt(ctx, settings); err != nil {
			p.spoiled = true
		} else {
			w.kept = false
			err = w.do(ctx, p, &g)
		}
		if err == nil {
			n.answered(time.Since(started))
			c.cluster.sampler.served(b)
			c.saw(ctx, w, p, momentOf(started), &b.seen)
			if served := wishesOf(ctx).served; served != nil {
				served.Store(true)
			}
			c.cluster.routed(ctx, w, n, RoleReplica, why, nil)
			if w.kept {
				w.watch = stop
				return done, nil
			}
			stop()
			n.release(p)
			return done, nil
		}
		stop()
		if reused && p.lost(err) && p.nothingRan(&g, err) && callerGone(ctx) == nil {
			// It had died while idle: no fault of the node's.
			p.spoiled = true
			n.release(p)
			continue
		}
		next, err := c.judge(ctx, w, p, err)
		n.release(p)
		c.cluster.routed(ctx, w, n, RoleReplica, why, err)
		return next, err
	}
}

// notConnected judges a replica that could not be reached.
func (c *Conn) notConnected(ctx context.Context, w *work, n *node, why Reason, err error) (next, error) {
	if err := callerGone(ctx); err != nil {
		return done, err
	}
	switch {
	case errors.Is(err, errNodeOut):
	case errors.Is(err, errSerializable):
		n.holdOff(authBackOff, err)
	case errors.Is(err, context.DeadlineExceeded): // replicated.connect_timeout
		n.failed(dialect.Lost, err)
	default:
		n.failed(n.dialect().Class(err), err)
	}
	err = nodeError(n, RoleReplica, "connect", err)
	c.cluster.routed(ctx, w, n, RoleReplica, why, err)
	return elsewhere, err
}

// judge decides what becomes of a read that has failed on a replica before its
// first row, and of the connection.
func (c *Conn) judge(ctx context.Context, w *work, p *physical, err error) (next, error) {
	n := p.node
	class := n.dialect().Class(err)
	if p.lost(err) && class != dialect.Down {
		class = dialect.Lost
	}
	if gone := callerGone(ctx); gone != nil {
		p.spoiled = true
		if class == dialect.Lost {
			err = gone
		}
		return done, err
	}
	switch class {
	case dialect.Cancelled: // a statement timeout that the caller has set
		return done, err
	case dialect.Lost, dialect.Down:
		if !p.lost(err) {
			// Said of one statement (a file is missing), in a session that goes on:
			// a text that fails everywhere must not take every replica out.
			return elsewhere, nodeError(n, RoleReplica, opRead, err)
		}
		p.spoiled = true
		n.failed(class, err)
		return elsewhere, nodeError(n, RoleReplica, opRead, err)
	case dialect.Auth:
		// We are logged in: a function has raised it, or a database is forbidden.
		return elsewhere, nodeError(n, RoleReplica, opRead, err)
	case dialect.Busy:
		p.spoiled = true
		n.failed(class, err)
		return elsewhere, nodeError(n, RoleReplica, opRead, err)
	case dialect.Conflict, dialect.Missing:
		return toPrimary, err
	case dialect.Fence:
		// A lock that it took before it was refused would be left in the pool.
		p.spoiled = true
		c.cluster.learned.add(w.text)
		return toPrimary, err
	default:
		if p.spoiled { // settings could not be adopted
			return elsewhere, nodeError(n, RoleReplica, "adopt settings", err)
		}
		return done, err
	}
}

// reasonOfRefusal names why a replica sent a statement on to the primary.
func reasonOfRefusal(n *node, err error) Reason {
	switch n.dialect().Class(err) {
	case dialect.Conflict:
		return ReasonConflict
	case dialect.Fence:
		return ReasonRefused
	default:
		return ReasonMissing
	}
}
