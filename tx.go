package replicated

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/dialect"
)

// Tx is a transaction begun by [Conn.BeginTx]. A read-write transaction runs
// wholly on the primary, a read-only one wholly on one replica that was eligible
// when it began, or on the primary.
type Tx struct {
	conn    *Conn
	inner   driver.Tx
	ctx     context.Context // of BeginTx: whose end rolls back
	session *Session
	replica *physical // nil: on the primary
	shadow  bool      // … though a replica would have run it (ReadsShadow)
	gone    bool      // the replica's connection is lost, and the node knows
	open    int       // Rows on the replica
}

var _ driver.Tx = (*Tx)(nil)

// BeginTx implements [driver.ConnBeginTx].
func (c *Conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if c.broken {
		return nil, driver.ErrBadConn
	}
	if c.tx != nil && c.tx.replica != nil {
		return nil, errors.New("replicated: the connection is in a read-only transaction already")
	}
	t := &Tx{conn: c, ctx: ctx, session: wishesOf(ctx).session}
	w := &work{begin: true, serializable: serializable(opts.Isolation)}
	w.verdict = classify.Verdict{Class: classify.Transaction, Keyword: "BEGIN"}
	if opts.ReadOnly {
		w.verdict.Class = classify.Read
	}
	w.do = func(ctx context.Context, p *physical, g *progress) (err error) {
		// BEGIN by itself changes nothing: a lost answer is a lost connection. The
		// driver's watch of ctx goes on after it, ours ends here.
		p.begin(g, true, 0)
		t.inner, err = ctxDriverBegin(ctx, p.conn, opts)
		if err == nil && p.role == RoleReplica {
			t.replica, w.kept = p, true
		}
		return err
	}
	if err := c.run(ctx, w); err != nil {
		return nil, err
	}
	if w.watch != nil {
		w.watch()
	}
	t.shadow = w.shadow
	c.tx = t
	return t, nil
}

// shadowed tells what becomes of a statement inside a read-only transaction that a
// replica would have run, were it not for [ReadsShadow]: what [Tx.run] would do.
// Without such a transaction, it is ReasonUnknown.
func (c *Conn) shadowed(w *work, wish *wishes) Reason {
	switch {
	case c.tx == nil || !c.tx.shadow:
		return ReasonUnknown
	case runsInReadOnly(w, wish):
		return ReasonShadow
	default:
		return ReasonShadowRefused
	}
}

// runsInReadOnly tells whether a read-only transaction on a replica runs w, and does
// not refuse it.
func runsInReadOnly(w *work, wish *wishes) bool {
	if proven, _ := provenRead(&question{verdict: w.verdict}); !w.runs || proven {
		return true
	}
	switch w.verdict.Class {
	case classify.Empty:
		return true
	case classify.Show:
		return w.verdict.Effect == 0 && !wish.readOnly
	default:
		return w.verdict.Class == classify.Unknown && !wish.readOnly
	}
}

// run runs a statement inside a read-only transaction on a replica. It runs there
// or not at all: the transaction's snapshot is nowhere else.
func (t *Tx) run(ctx context.Context, w *work, wish *wishes) error {
	p := t.replica
	proven, why := provenRead(&question{verdict: w.verdict})
	if !runsInReadOnly(w, wish) {
		return fmt.Errorf("%w: the read-only transaction runs on replica %s, and the statement is not a proven read (%s); set replicated.readonly_tx=primary to run such transactions on the primary",
			ErrReadOnly, p.node.name, because(&question{verdict: w.verdict}, why))
	}
	if w.runs && !proven && w.verdict.Class == classify.Unknown {
		// A function that is not known: the server lets it write nothing in this
		// transaction, but what it leaves in the session is not known either.
		p.spoiled = true
	}
	var g progress
	w.kept = false
	stop := p.watch(ctx)
	began := now()
	err := w.do(ctx, p, &g)
	if err == nil && w.kept {
		w.watch = stop
	} else {
		stop()
	}
	switch {
	case err == nil:
		t.conn.saw(ctx, w, p, began, &seen{})
	case p.lost(err):
		err = t.lost(ctx, "read in a transaction", err)
	case callerGone(ctx) != nil:
		p.spoiled = true // the driver may still be cancelling
	case p.node.dialect().Class(err) == dialect.Fence:
		p.spoiled = true // see Conn.judge
		if proven {
			t.conn.cluster.learned.add(w.text)
		}
	}
	t.conn.cluster.routed(ctx, w, p.node, RoleReplica, ReasonReadOnlyTx, err)
	return err
}

// lost takes note of the loss of the replica's connection, which costs the Conn
// nothing but this transaction.
func (t *Tx) lost(ctx context.Context, op string, err error) error {
	n := t.replica.node
	t.replica.spoiled = true
	if err := callerGone(ctx); err != nil {
		return err
	}
	if !t.gone { // one lost connection is one failure, however many statements meet it
		t.gone = true
		n.failed(n.dialect().Class(err), err)
	}
	return nodeError(n, RoleReplica, op, err)
}

// Commit implements [driver.Tx]. The first end of a transaction is its only one:
// a second would give a replica's connection back while another user has it.
func (t *Tx) Commit() error {
	if t.conn.tx != t {
		return sql.ErrTxDone
	}
	if t.replica != nil {
		return t.endOnReplica("commit", t.inner.Commit)
	}
	return t.endOnPrimary("commit", true, t.inner.Commit)
}

// Rollback implements [driver.Tx], see Commit.
func (t *Tx) Rollback() error {
	if t.conn.tx != t {
		return sql.ErrTxDone
	}
	if t.replica != nil {
		return t.endOnReplica("roll back", t.inner.Rollback)
	}
	return t.endOnPrimary("roll back", false, t.inner.Rollback)
}

func (t *Tx) endOnReplica(op string, end func() error) error {
	p := t.replica
	t.conn.tx = nil
	stop := p.guard(t.ctx)
	err := end()
	stop()
	if err != nil && p.lost(err) {
		err = t.lost(t.ctx, op, err)
	}
	if err != nil || t.ctx.Err() != nil || t.open > 0 {
		p.spoiled = true
	}
	p.node.release(p)
	return err
}

func (t *Tx) endOnPrimary(op string, commit bool, end func() error) error {
	c := t.conn
	c.tx = nil
	wrote, mayCommit := c.dirty, c.dirty || c.untracked
	c.untracked = false
	defer func() {
		c.definesNoMore()
		if wrote {
			c.ended(t.session)
		}
	}()
	if c.broken {
		return driver.ErrBadConn
	}
	p := c.primary
	if mayCommit && commit && c.cluster.over(p) {
		// It would be acknowledged by a server whose writes are given up.
		c.broken = true
		return nodeError(p.node, RolePrimary, op, fmt.Errorf("nothing was committed: %w", errDeposed))
	}
	var g progress
	p.begin(&g, false, 0)
	stop := p.guard(t.ctx)
	err := end()
	stop()
	if !commit && t.ctx.Err() != nil && !p.keepsAfterRollback() {
		c.discard = true
	}
	if err == nil || !p.lost(err) {
		c.doubt(err, false)
		c.unsureTx = c.unsure
		c.cluster.fresh.reached()
		return err
	}
	c.broken = true
	switch {
	case !commit:
		return err
	case mayCommit && !p.nothingRan(&g, err):
		return outcomeUnknown(p.node, err)
	default:
		return nodeError(p.node, RolePrimary, op, err)
	}
}

// serializable tells whether a standby refuses the isolation level.
func serializable(level driver.IsolationLevel) bool {
	return sql.IsolationLevel(level) == sql.LevelSerializable || sql.IsolationLevel(level) == sql.LevelLinearizable
}
