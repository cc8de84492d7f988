package replicated

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// result is a query that has been answered: the node's Rows, and what is owed
// when they end.
type result struct {
	conn *Conn
	ctx  context.Context // of the query: for whom its end raises floors
	work *work

	on    *physical
	inner driver.Rows
	first *firstRow   // read ahead, where a driver reports errors no earlier
	stmt  driver.Stmt // prepared for this query alone, or nil

	tx     *Tx   // on a replica: whose connection it is; nil: it is to be given back
	failed error // what a Next has failed with
}

// fetch runs the query of k on p.
func (r *result) fetch(ctx context.Context, p *physical, k *call, g *progress) error {
	rows, stmt, err := p.query(ctx, k, g)
	if err != nil {
		return err
	}
	r.on, r.inner, r.stmt, r.first = p, rows, stmt, nil
	if p.role == RolePrimary || r.conn.cluster.dialect() != classify.Generic {
		return nil
	}
	// Of a driver that we do not know, a read may fail at its first row only, when
	// it is too late to run it elsewhere.
	r.first, err = fetchFirst(rows)
	if err != nil {
		_ = rows.Close()
		r.closeStmt()
	}
	return err
}

func (r *result) closeStmt() {
	if r.stmt != nil {
		_ = r.stmt.Close()
	}
}

// rows returns what database/sql gets: the node's Rows as they are, unless
// something is owed at their end.
func (r *result) rows() driver.Rows {
	if r.on.role == RoleReplica {
		if r.tx = r.conn.tx; r.tx != nil { // it keeps its connection
			r.tx.open++
		}
		return wrapRows(r.inner, r.first, r.replicaError, r.endOnReplica)
	}
	owed := r.stmt != nil || r.work.leave != nil || r.work.mayWrite ||
		r.on.grace // Rows.Close of lib/pq waits for a hung server, and answers driver.ErrBadConn for a lost one
	if !owed {
		r.work.watch()
		return r.inner
	}
	return wrapRows(r.inner, nil, r.primaryError, r.endOnPrimary)
}

// replicaError maps an error of a replica's Rows: some have been handed out, so
// the read can't be run elsewhere.
func (r *result) replicaError(err error) error {
	r.failed = err
	p := r.on
	if !p.lost(err) {
		return err
	}
	p.spoiled = true
	if gone := callerGone(r.ctx); gone != nil {
		return gone
	}
	return nodeError(p.node, RoleReplica, "read rows", err)
}

// endOnReplica gives the connection back. What is lost here is the replica's
// connection alone: driver.ErrBadConn would have database/sql close the Conn,
// with its primary.
func (r *result) endOnReplica(err error) error {
	p := r.on
	r.closeStmt()
	r.work.watch()
	lost := err != nil && p.lost(err)
	if lost && callerGone(r.ctx) == nil {
		p.node.failed(p.node.dialect().Class(err), err)
	}
	p.spoiled = p.spoiled || lost || callerGone(r.ctx) != nil
	if r.tx == nil {
		p.node.release(p)
	} else {
		r.tx.open--
	}
	if lost || r.failed != nil { // Next has told
		return nil
	}
	return err
}

// primaryError maps an error of the primary's Rows.
func (r *result) primaryError(err error) error {
	c := r.conn
	if r.failed == nil {
		c.cluster.forsaken(r.ctx, r.work, r.on, &progress{}, err)
	}
	r.failed = err
	if c.primary != r.on || !r.on.lost(err) {
		return err
	}
	if c.free(r.work) { // for the next one the connection is opened anew
		r.on.spoiled = r.on.spoiled || !c.relied
		return err
	}
	c.broken = true
	if r.work.mayWrite && callerGone(r.ctx) == nil {
		return outcomeUnknown(r.on.node, err)
	}
	return err
}

// endOnPrimary raises the floor again for a write: only now has the server told
// that it is committed (lib/pq announces the end of RETURNING rows before that).
func (r *result) endOnPrimary(err error) error {
	c := r.conn
	r.closeStmt()
	r.work.watch()
	if r.work.leave != nil {
		r.work.leave()
	}
	failed := r.failed != nil
	if err != nil && !failed {
		err = r.primaryError(err)
	}
	if c.primary == r.on {
		wish := wishesOf(r.ctx)
		v := &r.work.verdict
		c.touched(r.work)
		c.doubt(err, v.Effect&classify.OpensTx != 0)
		c.ran(&classify.Verdict{Class: v.Class, Effect: v.Effect & classify.Stamps}, &wish, r.work.touch, err)
		if c.dirty && v.Class == classify.Multi && v.Effect&classify.EndsTx != 0 {
			c.published(wish.session)
		}
		c.defined(v, r.work.text)
	}
	if failed && !(c.broken && errors.Is(err, driver.ErrBadConn)) { // Next has told
		return nil
	}
	if r.work.mayWrite || !c.broken { // database/sql would close the Conn
		return withoutBadConn(err)
	}
	return err
}
