package demo

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net"
	"sync"
	"syscall"

	"modernc.org/sqlite"
)

// sqliteDriverName is a driver that plays a server around a SQLite file: it logs
// statements, counts connections, refuses them while the node is down, and hands
// the primary's changes to the replicas. Its DSN is the path of a file.
const sqliteDriverName = "demo-sqlite"

// sqliteFiles are the nodes by path, of all demos in this process.
var sqliteFiles sync.Map // string → *sqliteFile

func init() { sql.Register(sqliteDriverName, sqliteDriver{}) }

type sqliteDriver struct{}

// errRefused is what a dial says of a port on which nobody listens. The nodes of
// this driver have no port, but whoever meets the error shall take it as from one.
var errRefused = &net.OpError{Op: "dial", Net: "file", Err: syscall.ECONNREFUSED}

// Open implements [driver.Driver].
func (sqliteDriver) Open(path string) (driver.Conn, error) {
	known, ok := sqliteFiles.Load(path)
	if !ok {
		return nil, fmt.Errorf("%s: no node of the demo", path)
	}
	f := known.(*sqliteFile)
	life := f.crashes.Load()
	if f.dead.Load() {
		return nil, errRefused
	}
	// A transaction takes its lock when it begins, since two that have read and
	// then want to write cannot both go on. Replicas are read-only.
	setting := "_txlock=immediate"
	if f.upstream == nil {
		setting = "_pragma=query_only(1)"
	}
	inner, err := (&sqlite.Driver{}).Open(sqliteDSN(path, setting))
	if err != nil {
		return nil, err
	}
	if f.upstream != nil {
		f.upstream.record(inner.(sqlite.HookRegisterer))
	}
	f.conns.Add(1)
	return &sqliteConn{sqliteInner: inner.(sqliteInner), file: f, life: life}, nil
}

// sqliteInner is what SQLite's own connections can do.
type sqliteInner interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// sqliteConn is a connection that is lost when its node is killed, and does not
// come back when the node does.
type sqliteConn struct {
	sqliteInner
	file *sqliteFile
	life int64 // the crashes of the node before it was opened
}

// check fails on a lost connection. driver.ErrBadConn says, truthfully, that
// nothing has been sent.
func (c *sqliteConn) check() error {
	if c.file.crashes.Load() != c.life {
		return driver.ErrBadConn
	}
	return nil
}

// arrives logs a statement, unless the connection is lost.
func (c *sqliteConn) arrives(text string) error {
	if err := c.check(); err != nil {
		return err
	}
	c.file.log(text)
	return nil
}

func (c *sqliteConn) Close() error {
	c.file.conns.Add(-1)
	return c.sqliteInner.Close()
}

func (c *sqliteConn) IsValid() bool { return c.check() == nil && c.sqliteInner.IsValid() }

func (c *sqliteConn) ResetSession(ctx context.Context) error {
	if err := c.check(); err != nil {
		return err
	}
	return c.sqliteInner.ResetSession(ctx)
}

func (c *sqliteConn) Ping(ctx context.Context) error {
	if err := c.check(); err != nil {
		return err
	}
	return c.sqliteInner.Ping(ctx)
}

func (c *sqliteConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if err := c.arrives("BEGIN"); err != nil {
		return nil, err
	}
	tx, err := c.sqliteInner.BeginTx(ctx, o)
	if err != nil {
		return nil, err
	}
	return &sqliteTx{tx, c}, nil
}

func (c *sqliteConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.arrives(text); err != nil {
		return nil, err
	}
	return c.sqliteInner.ExecContext(ctx, text, args)
}

func (c *sqliteConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.arrives(text); err != nil {
		return nil, err
	}
	return c.sqliteInner.QueryContext(ctx, text, args)
}

func (c *sqliteConn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	st, err := c.sqliteInner.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	return &sqliteStmt{st.(sqliteInnerStmt), c, text}, nil
}

type sqliteTx struct {
	driver.Tx
	conn *sqliteConn
}

func (t *sqliteTx) Commit() error {
	if err := t.conn.arrives("COMMIT"); err != nil {
		_ = t.Tx.Rollback() // as the server would, finding its client gone
		return err
	}
	return t.Tx.Commit()
}

func (t *sqliteTx) Rollback() error {
	t.conn.file.log("ROLLBACK")
	return t.Tx.Rollback()
}

type sqliteInnerStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type sqliteStmt struct {
	sqliteInnerStmt
	conn *sqliteConn
	text string
}

func (s *sqliteStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if err := s.conn.arrives(s.text); err != nil {
		return nil, err
	}
	return s.sqliteInnerStmt.ExecContext(ctx, args)
}

func (s *sqliteStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if err := s.conn.arrives(s.text); err != nil {
		return nil, err
	}
	return s.sqliteInnerStmt.QueryContext(ctx, args)
}
