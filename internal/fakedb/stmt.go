package fakedb

import (
	"context"
	"database/sql/driver"
)

// stmt is what all shapes of statements share.
type stmt struct {
	c      *core
	text   string
	closed bool
}

func (c *core) newStmt(text string) driver.Stmt {
	st := &stmt{c: c, text: text}
	c.server.mu.Lock()
	c.server.stmts[st] = struct{}{}
	c.server.mu.Unlock()
	return c.shape.stmt(st)
}

// Close is the mandatory method of driver.Stmt. After the connection's Close it
// has nothing left to do.
func (st *stmt) Close() error {
	st.c.touch()
	if st.closed {
		st.c.server.misused("statement %q closed twice", st.text)
		return ErrClosed
	}
	st.closed = true
	st.c.server.mu.Lock()
	delete(st.c.server.stmts, st)
	st.c.server.mu.Unlock()
	if st.c.closed {
		return nil
	}
	call := &Call{Op: OpStmtClose, Text: st.text, Prepared: true}
	err := st.c.enter(context.Background(), call)
	st.c.server.outcome(call, err)
	return err
}

// NumInput is the mandatory method of driver.Stmt.
func (st *stmt) NumInput() int {
	st.c.touch()
	if st.c.shape == Minimal {
		return -1
	}
	return numInput(st.text)
}

// Exec is the mandatory method of driver.Stmt.
func (st *stmt) Exec(args []driver.Value) (driver.Result, error) {
	if st.c.shape == PgxLike {
		return nil, ErrLegacyStmt
	}
	return st.exec(context.Background(), namedValues(args))
}

// Query is the mandatory method of driver.Stmt.
func (st *stmt) Query(args []driver.Value) (driver.Rows, error) {
	if st.c.shape == PgxLike {
		return nil, ErrLegacyStmt
	}
	return st.query(context.Background(), namedValues(args))
}

func (st *stmt) exec(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if err := st.usable(); err != nil {
		return nil, err
	}
	return st.c.exec(ctx, st.text, args, true)
}

func (st *stmt) query(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if err := st.usable(); err != nil {
		return nil, err
	}
	return st.c.query(ctx, st.text, args, true)
}

func (st *stmt) usable() error {
	st.c.touch()
	if st.closed {
		st.c.server.misused("statement %q used after Close", st.text)
		return ErrClosed
	}
	return nil
}
