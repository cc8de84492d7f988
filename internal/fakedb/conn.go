package fakedb

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
)

// The errors that fakedb itself reports. All others are scripted.
var (
	ErrClosed       = errors.New("fakedb: used after Close")
	ErrBusy         = errors.New("fakedb: statement sent while rows are open")
	ErrAborted      = errors.New("fakedb: current transaction is aborted, commands ignored until end of transaction block")
	ErrCommitFailed = errors.New("fakedb: commit of a failed transaction: rolled back")
	ErrNoTx         = errors.New("fakedb: no transaction to end")
	ErrLegacyStmt   = errors.New("fakedb: statement without context is not implemented")
)

// core is what all shapes of connections share: the methods every driver.Conn
// has, and the rest in lower case for the shapes to export.
type core struct {
	server *Server
	shape  Shape
	id     int

	broken atomic.Bool // cut by the server, or by a context that ended

	// What follows belongs to the goroutine that uses the connection and is
	// left without a lock on purpose: -race reports two users at once.
	line   int // written on every call
	tx     byte
	open   int // rows
	closed bool
	own    driver.Tx // the connection itself, where the shape is its own Tx
}

// touch writes to a plain field, so that concurrent use is a data race.
func (c *core) touch() { c.line++ }

// enter admits one call. A nil error means that the server has received it.
func (c *core) enter(ctx context.Context, call *Call) error {
	c.touch()
	call.Conn, call.Tx = c.id, c.tx
	if c.closed {
		c.server.misused("%s %q after Close of connection %d", call.Op, call.Text, c.id)
		return ErrClosed
	}
	if c.broken.Load() {
		return driver.ErrBadConn
	}
	if c.open > 0 && !c.server.busyAllowed() && call.Op != OpStmtClose {
		c.server.misused("%s %q while rows are open on connection %d", call.Op, call.Text, c.id)
		return ErrBusy
	}
	if err := ctx.Err(); err != nil {
		return err // drivers look before they send
	}
	return c.ended(ctx, c.server.admit(ctx, call))
}

// ended breaks the connection if the call ended with its context and the shape
// is one of those that close their socket then.
func (c *core) ended(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) && c.shape.breaksOnCancel() {
		c.broken.Store(true)
	}
	return err
}

// run sends one statement and gives the server's reply.
func (c *core) run(ctx context.Context, call *Call) (*Reply, error) {
	if err := c.enter(ctx, call); err != nil {
		c.failed(call)
		c.server.outcome(call, err)
		return nil, err
	}
	reply, err := c.answer(ctx, call)
	err = c.ended(ctx, err)
	if err != nil {
		c.failed(call)
	}
	c.server.outcome(call, err)
	return reply, err
}

func (c *core) answer(ctx context.Context, call *Call) (*Reply, error) {
	effect := effectOf(call.Text)
	if c.tx == 'E' && effect != txCommit && effect != txRollback && effect != txRollbackTo {
		return nil, ErrAborted
	}
	reply, err := c.server.answer(ctx, call)
	if err != nil {
		return nil, err
	}
	if reply.Err != nil {
		if reply.Break {
			c.broken.Store(true)
		}
		return nil, reply.Err
	}
	switch effect {
	case txBegin:
		c.tx = 'T'
	case txCommit:
		failed := c.tx == 'E'
		c.tx = 'I'
		if failed {
			return nil, ErrCommitFailed
		}
	case txRollback:
		c.tx = 'I'
	case txRollbackTo:
		if c.tx == 'E' {
			c.tx = 'T'
		}
	}
	return reply, nil
}

// failed notes a failed statement in the state of the transaction, where the
// shape's servers do that.
func (c *core) failed(call *Call) {
	if c.tx == 'T' && c.shape.failsTx() && (call.Op == OpQuery || call.Op == OpExec || call.Op == OpPrepare) {
		c.tx = 'E'
	}
}

func (c *core) query(ctx context.Context, text string, args []driver.NamedValue, prepared bool) (driver.Rows, error) {
	reply, err := c.run(ctx, &Call{Op: OpQuery, Text: text, Args: slices.Clone(args), Prepared: prepared})
	if err != nil {
		return nil, err
	}
	return c.newRows(text, reply), nil
}

func (c *core) exec(ctx context.Context, text string, args []driver.NamedValue, prepared bool) (driver.Result, error) {
	reply, err := c.run(ctx, &Call{Op: OpExec, Text: text, Args: slices.Clone(args), Prepared: prepared})
	if err != nil {
		return nil, err
	}
	if c.shape.noLastID() {
		return driver.RowsAffected(reply.Affected), nil
	}
	return result{affected: reply.Affected, lastID: reply.LastID}, nil
}

func (c *core) prepare(ctx context.Context, text string) (driver.Stmt, error) {
	call := &Call{Op: OpPrepare, Text: text}
	err := c.enter(ctx, call)
	if err == nil && c.tx == 'E' {
		err = ErrAborted
	}
	if err != nil {
		c.failed(call)
		c.server.outcome(call, err)
		return nil, err
	}
	return c.newStmt(text), nil
}

func (c *core) begin(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	call := &Call{Op: OpBegin, TxOpts: opts}
	if err := c.enter(ctx, call); err != nil {
		c.server.outcome(call, err)
		return nil, err
	}
	c.tx = 'T'
	return c.newTx(), nil
}

func (c *core) end(op Op) error {
	call := &Call{Op: op}
	err := c.enter(context.Background(), call)
	if err == nil {
		switch {
		case c.tx == 'I':
			err = ErrNoTx
		case c.tx == 'E' && op == OpCommit:
			err = ErrCommitFailed
		}
		c.tx = 'I'
	}
	c.server.outcome(call, err)
	return err
}

func (c *core) ping(ctx context.Context) error { return c.simple(ctx, OpPing) }

func (c *core) reset(ctx context.Context) error { return c.simple(ctx, OpReset) }

func (c *core) simple(ctx context.Context, op Op) error {
	call := &Call{Op: op}
	err := c.enter(ctx, call)
	c.server.outcome(call, err)
	return err
}

// Prepare is the mandatory method of driver.Conn.
func (c *core) Prepare(text string) (driver.Stmt, error) {
	return c.prepare(context.Background(), text)
}

// Begin is the mandatory method of driver.Conn.
func (c *core) Begin() (driver.Tx, error) {
	return c.begin(context.Background(), driver.TxOptions{})
}

// Close is the mandatory method of driver.Conn. Also a broken connection is
// closed, which then does not reach the server.
func (c *core) Close() error {
	c.touch()
	if c.closed {
		c.server.misused("connection %d closed twice", c.id)
		return ErrClosed
	}
	call := &Call{Op: OpClose, Conn: c.id, Tx: c.tx}
	err := c.server.admit(context.Background(), call)
	c.server.outcome(call, err)
	c.closed, c.tx = true, 'I'
	c.server.forgetConn(c)
	return err
}

// ID returns the number of the connection on its server, from 1.
func (c *core) ID() int { return c.id }

// Server returns the server of the connection.
func (c *core) Server() *Server { return c.server }

type result struct{ affected, lastID int64 }

func (r result) LastInsertId() (int64, error) { return r.lastID, nil }
func (r result) RowsAffected() (int64, error) { return r.affected, nil }

type tx struct{ c *core }

func (t tx) Commit() error   { return t.c.end(OpCommit) }
func (t tx) Rollback() error { return t.c.end(OpRollback) }

// namedValues gives the arguments of methods without a context the form of the
// log.
func namedValues(args []driver.Value) []driver.NamedValue {
	named := make([]driver.NamedValue, len(args))
	for i, v := range args {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return named
}

// contains reports whether text contains the lower-case part.
func contains(text, part string) bool { return strings.Contains(strings.ToLower(text), part) }
