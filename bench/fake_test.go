package bench_test

import (
	"context"
	"database/sql/driver"
	"io"
	"sync/atomic"
)

// fakeServer is a driver.Connector whose connections answer every statement at
// once: a query with one row of two columns, everything else with one row
// affected. Nothing else is left to measure but database/sql and us.
type fakeServer struct {
	queries, execs atomic.Int64
}

func (s *fakeServer) Connect(context.Context) (driver.Conn, error) { return &fakeConn{server: s}, nil }
func (s *fakeServer) Driver() driver.Driver                        { return fakeDriver{} }

// fakeDriver exists because a Connector has to name its driver.
type fakeDriver struct{}

func (fakeDriver) Open(string) (driver.Conn, error) { return nil, driver.ErrBadConn }

// fakeConn has the optional interfaces that the drivers of PostgreSQL and MySQL
// have, so that database/sql takes the same ways.
type fakeConn struct {
	server *fakeServer
	rows   fakeRows // one result at a time: nothing is allocated per query
}

var (
	_ driver.ConnPrepareContext = (*fakeConn)(nil)
	_ driver.ConnBeginTx        = (*fakeConn)(nil)
	_ driver.QueryerContext     = (*fakeConn)(nil)
	_ driver.ExecerContext      = (*fakeConn)(nil)
	_ driver.SessionResetter    = (*fakeConn)(nil)
	_ driver.Validator          = (*fakeConn)(nil)
	_ driver.NamedValueChecker  = (*fakeConn)(nil)
)

func (c *fakeConn) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	c.server.queries.Add(1)
	c.rows = fakeRows{}
	return &c.rows, nil
}

func (c *fakeConn) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	c.server.execs.Add(1)
	return driver.RowsAffected(1), nil
}

func (c *fakeConn) PrepareContext(context.Context, string) (driver.Stmt, error) {
	return fakeStmt{c}, nil
}
func (c *fakeConn) Prepare(string) (driver.Stmt, error) { return fakeStmt{c}, nil }
func (c *fakeConn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) {
	return fakeTx{}, nil
}
func (c *fakeConn) Begin() (driver.Tx, error)                { return fakeTx{}, nil }
func (c *fakeConn) CheckNamedValue(*driver.NamedValue) error { return nil }
func (c *fakeConn) ResetSession(context.Context) error       { return nil }
func (c *fakeConn) IsValid() bool                            { return true }
func (c *fakeConn) Close() error                             { return nil }

type fakeStmt struct{ conn *fakeConn }

var (
	_ driver.StmtQueryContext = fakeStmt{}
	_ driver.StmtExecContext  = fakeStmt{}
)

func (s fakeStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.conn.QueryContext(ctx, "", args)
}

func (s fakeStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.conn.ExecContext(ctx, "", args)
}

func (s fakeStmt) Query([]driver.Value) (driver.Rows, error) {
	return s.conn.QueryContext(context.Background(), "", nil)
}

func (s fakeStmt) Exec([]driver.Value) (driver.Result, error) {
	return s.conn.ExecContext(context.Background(), "", nil)
}

func (s fakeStmt) NumInput() int { return -1 }
func (s fakeStmt) Close() error  { return nil }

type fakeTx struct{}

func (fakeTx) Commit() error   { return nil }
func (fakeTx) Rollback() error { return nil }

var fakeColumns = []string{"id", "name"}

type fakeRows struct{ read bool }

func (r *fakeRows) Columns() []string { return fakeColumns }
func (r *fakeRows) Close() error      { return nil }

func (r *fakeRows) Next(row []driver.Value) error {
	if r.read {
		return io.EOF
	}
	r.read = true
	row[0], row[1] = int64(1), "bolt"
	return nil
}
