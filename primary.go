package replicated

import (
	"context"
	"fmt"

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
	change := evidence.Nothing
	if f.tracking() != trackWindow && p.identity.Server != "" && !p.identity.ReadOnly {
		lineage := p.identity.Lineage
		if c.beats() {
			lineage = "" // a beat has an epoch of its own
		}
		change = f.book.Meet(p.identity.Server, lineage, p.opened)
	}
	f.enterLocked(p, change)
	f.mu.Unlock()
	c.changed(p.node, change)
}

// outdated tells whether a primary connection may lead to where the primary was.
func (c *Cluster) outdated(p *physical) bool {
	return c.fresh.tracking() != trackWindow && (p.term != c.fresh.term.Load() || p.doubt != c.fresh.doubts.Load())
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
