package replicated

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqlreplicated/replicated/internal/dialect"
	"github.com/sqlreplicated/replicated/internal/evidence"
)

// This file tells whether a connection leads to the primary, or to where the
// primary was: one name may stand for one server today and another tomorrow.

// meet compares the server that a new primary connection has reached with the
// primary of the epoch, before the connection is used.
func (c *Cluster) meet(p *physical) {
	f := &c.fresh
	f.mu.Lock()
	p.doubt = f.doubts.Load()
	last := c.floors.last().Any // before anything is sent over it
	change := evidence.Nothing
	switch {
	case c.topology.follows && c.primary() != p.node: // it has lost that role while the connection was opened
		change = evidence.Outdated
	case f.tracking() != trackWindow && p.identity.Server != "" && !p.identity.ReadOnly:
		lineage := p.identity.Lineage
		if c.beats() {
			lineage = "" // a beat has an epoch of its own
		}
		change = f.book.Meet(p.identity.Server, lineage, p.opened)
	}
	f.enterLocked(p, change)
	if change == evidence.NewPrimary {
		f.wrote.raise(last)
	}
	f.mu.Unlock()
	c.changed(p.node, change)
}

// outdated tells whether a primary connection may lead to where the primary was.
func (c *Cluster) outdated(p *physical) bool {
	return c.over(p) || p.doubt != c.fresh.doubts.Load()
}

// over tells whether a primary connection leads to a server that is no longer the
// primary.
func (c *Cluster) over(p *physical) bool {
	return p.term != c.fresh.term.Load() || c.primary() != p.node
}

// enterLocked gives a primary connection its term.
func (f *freshness) enterLocked(p *physical, change evidence.Change) {
	switch change {
	case evidence.NewPrimary:
		p.term = f.term.Add(1)
	case evidence.Outdated:
		p.term = f.term.Load() - 1
	default:
		p.term = f.term.Load()
	}
}

// changed tells of what a sample or a connection of the primary has brought about.
func (c *Cluster) changed(n *node, change evidence.Change) {
	switch change {
	case evidence.NewPrimary:
		c.notice(Notice{Kind: NoticePrimaryChanged, Node: n.name})
	case evidence.WentBack:
		c.notice(Notice{Kind: NoticePrimaryWentBack, Node: n.name})
	}
}

// tellLosses tells, once for each change of the primary, whether writes were lost that
// this process knows to have been acknowledged.
func (c *Cluster) tellLosses(n *node) {
	s, ok := c.fresh.book.Succession()
	if !ok {
		return
	}
	last := c.fresh.wrote.load()
	switch {
	case s.Missing:
		c.notice(Notice{Kind: NoticeWritesLost, Node: n.name, Err: errors.New("replicated: the primary lacks writes that the one before it had acknowledged")})
	case last == never || s.Kept && last <= s.Upto:
	case s.Kept:
		c.notice(Notice{Kind: NoticeWritesInDoubt, Node: n.name, Err: fmt.Errorf("replicated: the primary has what the one before it had %v before the last write that this process made there; whether it has the rest can't be told", time.Duration(last-s.Upto))})
	default:
		c.notice(Notice{Kind: NoticeWritesInDoubt, Node: n.name, Err: errors.New("replicated: whether the primary has all that the one before it had acknowledged can't be told")})
	}
}

// vouch returns an error if a primary connection has reached a server that may
// lack what the primary has acknowledged: one that is read-only, and not the one
// that was the primary, or has not been it for too long, or before the call of
// WithFresh: others may have written elsewhere since.
func (c *Cluster) vouch(ctx context.Context, p *physical) error {
	f := &c.fresh
	if f.tracking() != trackProof || !p.identity.ReadOnly && p.doubt == f.doubts.Load() {
		return nil
	}
	primary := f.book.Primary()
	if primary == "" {
		return nil
	}
	if p.identity.Server == primary {
		last := f.answered.load()
		if !f.blind.Load() || last > wishesOf(ctx).fresh && now()-last <= moment(c.cfg.MaxBlind) {
			return nil
		}
	}
	return fmt.Errorf("%w: the node %s, listed as the primary, is read-only, and may lack what the primary has acknowledged", ErrNotFresh, p.node.name)
}

// errOutdated: while the connection was opened another one has reached the next
// primary, or it has reached a server that has stepped down.
var errOutdated = errors.New("the connection has reached a server that is no longer the primary")

// connectPrimary opens a connection to the primary. It gives up when another node has
// become the primary.
func (c *Cluster) connectPrimary(ctx context.Context, n *node) (*physical, error) {
	v := c.view()
	if v.primary != n {
		return nil, errOutdated
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(v.over, func() { cancel(errOutdated) })()
	err := c.placeToDial(ctx, n)
	var p *physical
	if err == nil {
		defer n.dials.Release(1)
		p, err = n.open(ctx, RolePrimary, forStatements)
	}
	if err != nil {
		if errors.Is(context.Cause(ctx), errOutdated) {
			err = errOutdated
		}
		return nil, err
	}
	if c.outdated(p) || c.topology.follows && p.identity.ReadOnly {
		p.close()
		return nil, errOutdated
	}
	return p, nil
}

// errSilent: the primary does not answer, and as many dial it as may.
var errSilent = errors.New("it does not answer, and others are trying to reach it already")

// placeToDial takes a place for a dial of the primary. Where roles are followed, nobody
// queues for a primary that does not answer: each would wait for the time of several
// dials, and then dial in vain.
func (c *Cluster) placeToDial(ctx context.Context, n *node) error {
	for c.topology.follows {
		if c.topology.silent(n) {
			if n.dials.TryAcquire(1) {
				return nil
			}
			return errSilent
		}
		turn, cancel := context.WithTimeout(ctx, rolesEvery)
		err := n.dials.Acquire(turn, 1)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
	return n.dials.Acquire(ctx, 1)
}

// another tells whether a statement whose connection to the primary of a term could
// not be opened may be sent to another server: where roles are followed, the nodes are
// asked for that. A server that answers, and turns us away, is not tried again.
func (c *Cluster) another(ctx context.Context, term uint64, err error) bool {
	class := dialect.For(c.dialect()).Class(err)
	switch {
	case ctx.Err() != nil:
		return false
	case class == dialect.Busy, class == dialect.Auth:
		c.topology.hurry()
		return false
	case !c.topology.follows:
		return errors.Is(err, errOutdated)
	}
	n, err := c.topology.primaryAfter(ctx, term)
	return err == nil && n != nil
}
