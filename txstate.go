package replicated

import (
	"context"
	"database/sql/driver"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/status"
)

// This file tells whether a Conn's primary connection is in a transaction.

// inTx tells whether the primary connection is in a transaction. The connection
// is asked, not the texts: procedures, completion_type and implicit commits open
// and end transactions that no text shows.
func (c *Conn) inTx() bool {
	switch {
	case c.tx != nil:
		return true
	case c.primary == nil:
		return false
	case c.unsure:
		return true
	}
	switch c.primary.flags.Read().Tx {
	case status.Idle:
		return false
	case status.Unknown:
		return c.textTx
	default:
		return true
	}
}

// trackText follows transactions by text where the driver does not show its
// status. What may open one without saying so pins. A COMMIT that fails may leave
// its transaction open (SQLite's does, when it is busy).
func (c *Conn) trackText(v *classify.Verdict, err error) {
	if c.primary == nil || c.primary.flags.Read().Tx != status.Unknown {
		return
	}
	switch {
	case v.Class == classify.Transaction && v.Effect&classify.OpensTx != 0:
		c.textTx = c.textTx || err == nil
		c.pinned = c.pinned || err != nil
	case v.Class == classify.Transaction && v.Effect&classify.EndsTx != 0:
		c.textTx = c.textTx && err != nil && v.Keyword != "ROLLBACK"
	case v.Effect&classify.OpensTx != 0, v.Class == classify.Transaction:
		c.pinned = true // SQLite's SAVEPOINT opens a transaction where there is none
	}
}

// doubt takes note of a failure after which the driver does not know whether a
// transaction is open. MySQL sends its status with success only: a procedure that has
// begun a transaction and then failed shows as idle, and a transaction that a deadlock,
// or a COMMIT that was refused, has ended shows as open, until the next answer.
func (c *Conn) doubt(err error, opens bool) {
	c.unsureTx = false
	switch {
	case err == nil || c.primary == nil || c.primary.flags.AfterErrors():
		c.unsure = false
	case opens || c.primary.flags.Read().Tx == status.Active:
		c.unsure = true
	}
}

// resolveDoubt asks the server whether a transaction is open, where a statement has
// failed since it last said so: the answer to a ping has the status. What follows would
// else be taken to be inside of a transaction that is over. An earlier check-out's
// connection is not waited for longer than a probe is. In the check-out of the failure
// nothing is sent before what goes to the primary anyhow: ROW_COUNT() would tell of it.
func (c *Conn) resolveDoubt(ctx context.Context, w *work) error {
	p := c.primary
	if !c.unsure || c.tx != nil || p == nil || !p.flags.Known() {
		return nil
	}
	if c.relied && !w.begin && !w.passes() {
		return nil
	}
	pinger, ok := p.conn.(driver.Pinger)
	if !ok {
		return nil
	}
	if !c.relied {
		if c.cluster.outdated(p) || !p.alive() {
			c.dropPrimary()
			return nil
		}
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, probeTimeout)
		defer cancel()
	}
	p.begin(&progress{}, true, 0)
	stop := p.watch(ctx)
	err := pinger.Ping(ctx)
	stop()
	lost := err != nil && p.lost(err)
	switch {
	case err == nil:
		c.unsure, c.unsureTx = false, false
		if !c.inTx() {
			c.forgetTx() // the failure has ended it, and what that published is published
		}
	case !c.relied && (lost || callerGone(ctx) != nil):
		c.dropPrimary()
	case !lost:
		// It stays in doubt, which keeps everything on the primary. Where the caller has gone,
		// nothing may have been sent.
	case c.unsureTx:
		// The transaction has gone with the connection, and nobody goes on with it.
		c.losePrimary()
	default:
		c.broken = true
		return c.lostPrimary(ctx, &work{}, true, err)
	}
	return nil
}
