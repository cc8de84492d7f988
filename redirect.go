package replicated

import (
	"context"
	"fmt"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// This file keeps writes off servers that have stepped down.

// mayWriteTo returns an error for a statement that would write, where the node listed
// as the primary says that it is read-only. Its user may bypass that (SUPER, READ_ONLY
// ADMIN), and what it would take is lost to the cluster. What makes it writable again
// (SET GLOBAL) passes. Where roles are followed, nobody gets here: such a node is not
// the primary.
func (c *Conn) mayWriteTo(ctx context.Context, p *physical, w *work) error {
	if !w.runs || c.cluster.topology.follows || !p.identity.ReadOnly && !c.cluster.fresh.demoted.Load() || !writes(c.cluster.dialect(), &w.verdict) {
		return nil
	}
	p.begin(&progress{}, true, 0)
	id, err := p.ask(ctx)
	if err != nil {
		return nil // the statement will meet the same
	}
	if p.identity.ReadOnly = id.ReadOnly; !id.ReadOnly {
		c.cluster.fresh.demoted.Store(false)
		return nil
	}
	return fmt.Errorf("%w: %s, listed as the primary, is read-only or in recovery: list the primary first, or follow it with replicated.topology=discover", ErrNoPrimary, p.node.name)
}

// writes tells whether a statement changes the database, by what is known of it. In
// recovery PostgreSQL lets nobody write, so that there what is not known may be tried.
func writes(d classify.Dialect, v *classify.Verdict) bool {
	if v.Effect&classify.Stamps == 0 {
		return false
	}
	switch v.Class {
	case classify.Write, classify.DDL, classify.Call, classify.Multi:
		return true
	case classify.Unknown:
		return d != classify.Postgres
	default:
		return false
	}
}

// single tells whether a text is known to be one statement that takes effect as a whole
// or not at all. The end of a transaction is none: what it would end is nowhere else, and
// a COMMIT without a transaction succeeds.
func single(v *classify.Verdict) bool {
	switch v.Class {
	case classify.Multi, classify.Call, classify.Transaction:
		return false
	default:
		return true
	}
}

// redirect tells whether a statement that the server in the primary's place has
// refused as read-only, before any effect, is to be sent once more: to the server that
// has become the primary. That is for a single statement outside a transaction, on a
// connection with no state that would be left behind: whatever ran over it in this
// check-out (relied) may have left some, as LAST_INSERT_ID() has. A procedure may have
// committed before it was refused. The refused connection is used for nothing else.
//
// The server is asked for its role first: the session may be read-only, and MySQL's
// 1290 has other causes too.
func (c *Conn) redirect(ctx context.Context, w *work, relied bool, refusal error) bool {
	p, t, f := c.primary, &c.cluster.topology, &c.cluster.fresh
	if !p.node.dialect().ReadOnlyRefusal(refusal) || ctx.Err() != nil {
		return false
	}
	if c.inTx() && c.cluster.dialect() == classify.Postgres {
		return false // nothing can be asked in a transaction that has failed
	}
	term, asked := f.term.Load(), now()
	p.begin(&progress{}, true, 0)
	id, err := p.ask(ctx)
	if err == nil && !id.ReadOnly {
		return false
	}
	p.spoiled = true
	if err == nil {
		t.heard(p.node, &id, asked)
	}
	if !t.follows {
		f.steppedDown()
	}
	t.hurry()
	if !w.runs || relied || !single(&w.verdict) || c.inTx() || c.hasState() || c.vars != 0 {
		return false
	}
	if t.follows {
		if _, err := t.primaryAfter(ctx, term); err != nil {
			return false
		}
		c.dropPrimary()
		return true
	}
	// The name may lead to another server by now.
	next, err := c.cluster.connectPrimary(ctx, p.node)
	if err != nil {
		return false
	}
	if next.identity.ReadOnly || next.identity.Server == p.identity.Server {
		next.close()
		return false
	}
	c.dropPrimary()
	c.primary = next
	return true
}
