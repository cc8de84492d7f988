package replicated

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// toPrimary runs w on the primary and takes note of what it did.
func (c *Conn) toPrimary(ctx context.Context, w *work, wish *wishes, q *question, a answer, cause error) error {
	if a.reason == ReasonShadow && !q.inTx {
		w.shadow = true
		c.cluster.sampler.served(&q.bound) // the proof was as good as if it had
	}
	if a.reason.fallback() && q.reads != ReadsShadow {
		if !c.cluster.enterFallback() {
			return joinCause(ErrNoReplica, cause)
		}
		w.leave = func() { c.cluster.fallbacks.Add(-1) }
	}
	if w.verdict.Effect&classify.Stamps != 0 {
		w.touch, w.schema = c.cluster.wrote(w.text)
		w.reshapes = w.runs && classify.Reshapes(w.verdict, w.text)
	}
	// A text that no replica may run is run as a write, whatever it looks like.
	if a.reason == ReasonRefused || q.learned {
		w.mayWrite = true
		w.verdict.Effect |= classify.Stamps
		w.touch = nil
	}
	w.last = lostInRead(cause)
	err := c.onPrimary(ctx, w)
	if err != nil && errors.Is(err, driver.ErrBadConn) && w.last {
		// Each node has had it once: database/sql would have all of them run it again.
		err = &NodeError{Node: c.cluster.primaryName(), Role: RolePrimary, Op: opRead, Err: joinCause(errConnLost, cause)}
	}
	if w.leave != nil && (err != nil || !w.kept) {
		w.leave()
		w.leave = nil
	}
	if c.primary != nil && !c.broken {
		c.cluster.fresh.reached()
	}
	if err != nil && c.primary == nil {
		return c.withoutPrimary(ctx, w, q, a, joinCause(err, cause))
	}
	if err == nil && c.primary != nil {
		c.saw(ctx, w, c.primary, never, &q.bound.seen)
	}
	if w.runs {
		c.mayUnsync(w.text)
		c.touched(w)
		c.ran(&w.verdict, wish, w.touch, err)
		c.defined(&w.verdict, w.text)
	}
	c.cluster.routed(ctx, w, c.cluster.primary(), RolePrimary, a.reason, err)
	return err
}

// opRead is what a NodeError names where a node was lost with a read in it.
const opRead = "read"

func lostInRead(cause error) bool {
	ne, ok := errors.AsType[*NodeError](cause)
	return ok && ne.Op == opRead
}

// withoutPrimary answers a statement whose primary cannot be reached.
func (c *Conn) withoutPrimary(ctx context.Context, w *work, q *question, a answer, err error) error {
	c.cluster.routed(ctx, w, c.cluster.primary(), RolePrimary, a.reason, err)
	if callerGone(ctx) != nil {
		return err
	}
	if read, _ := provenRead(q); read && (q.inTx || q.pinned) && !c.inTx() && !c.isPinned() {
		// What an earlier user had left on the connection has kept it here, and has gone
		// with it: it is a read like others.
		return c.run(ctx, w)
	}
	if !a.reason.behind() || q.reads == ReadsShadow {
		return err
	}
	if c.cluster.cfg.PrimaryDown != PrimaryDownStale {
		return fmt.Errorf("%w: %w", ErrNotFresh, err)
	}
	for {
		candidates := c.eligible().without(q.tried)
		if candidates == 0 {
			return fmt.Errorf("%w: %w", ErrNotFresh, err)
		}
		n := c.cluster.pick(candidates, w.prefer, nil)
		next, rerr := c.onReplica(ctx, w, n, ReasonStale, &bound{any: true})
		if next == done {
			return rerr
		}
		q.tried = q.tried.with(n.index)
	}
}

// enterFallback counts a read that goes to the primary for want of a replica. It
// reports false when there are too many.
func (c *Cluster) enterFallback() bool {
	n := c.fallbacks.Add(1)
	if limit := int64(c.cfg.PrimaryReadLimit); limit > 0 && n > limit {
		c.fallbacks.Add(-1)
		return false
	}
	return true
}

func joinCause(err, cause error) error {
	if cause == nil {
		return err
	}
	return fmt.Errorf("%w (before that: %w)", err, withoutBadConn(cause))
}

// onPrimary does w on the primary connection. What was sent is sent once:
// driver.ErrBadConn, which has database/sql repeat the call, leaves here only
// where nothing has run, or where w is a proven read.
func (c *Conn) onPrimary(ctx context.Context, w *work) error {
	for again := true; ; again = false {
		before, free := c.relied, c.free(w)
		if c.lost && !free {
			c.broken = true
			return driver.ErrBadConn
		}
		p, err := c.openPrimary(ctx, free)
		if err != nil {
			return err
		}
		if (w.runs || w.begin) && !c.inTx() && w.verdict.Replica() {
			if err := c.cluster.vouch(ctx, p); err != nil {
				return err
			}
		}
		if err := c.mayWriteTo(ctx, p, w); err != nil {
			return err
		}
		// While nothing is relied on, an open transaction is one that an earlier user has left.
		// Without autocommit it is the user's own.
		c.used = true
		c.relied = c.relied || !w.passes() || w.runs && (c.vars != 0 || c.hasState() || p.flags.Read().AutocommitOff)
		if w.reshapes {
			c.reshaping()
		}
		var g progress
		w.kept = false
		stop := p.watch(ctx)
		err = w.do(ctx, p, &g)
		if err == nil && w.kept {
			w.watch = stop
			return nil
		}
		stop()
		c.cluster.forsaken(ctx, w, p, &g, err)
		if callerGone(ctx) != nil {
			c.relied = true // what was called off may have ended the connection, and the Conn with it
		}
		if err == nil || !p.lost(err) {
			if err != nil && again && c.redirect(ctx, w, before, err) {
				c.used, c.relied = false, false
				continue
			}
			return err
		}
		c.cluster.topology.hurry()
		nothing := p.nothingRan(&g, err)
		if (nothing || w.runs && w.passes() && !w.last) && (!before || free) && again && callerGone(ctx) == nil {
			// It died while idle, or in a read, and nothing of this check-out depends on it,
			// or the read does not.
			c.dropPrimary()
			c.used, c.relied, c.lost = false, before, c.lost || before
			continue
		}
		c.broken = true
		return c.lostPrimary(ctx, w, nothing, err)
	}
}

// lostPrimary names the error of a statement whose primary connection is gone.
func (c *Conn) lostPrimary(ctx context.Context, w *work, nothing bool, err error) error {
	gone := callerGone(ctx)
	switch {
	case gone != nil && errors.Is(err, driver.ErrBadConn):
		return gone
	case gone != nil:
		return err
	case nothing:
		return driver.ErrBadConn
	case w.mayWrite:
		return outcomeUnknown(c.primary.node, err)
	case c.tx != nil:
		return err
	default:
		return driver.ErrBadConn // a read: repeating it does no harm
	}
}
