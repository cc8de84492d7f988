package replicated

import (
	"context"
	"database/sql/driver"
)

// Stmt is a prepared statement of a [Conn]: a shared text that is routed at each
// execution. The statements of the servers belong to the physical connections
// that run it, are prepared there at the first use, and are closed with it.
type Stmt struct {
	conn   *Conn
	st     *statement
	closed bool

	// home is the replica that has just prepared it. The first execution goes
	// there if it may: else each statement that is prepared, run and closed would
	// be prepared twice, and where nodes take turns, run on every second node only.
	home *node

	// Set for statements that are tied to the protocol state of the connection
	// that prepared them (COPY of lib/pq): they pass straight through.
	inner driver.Stmt
	on    *physical
}

var (
	_ driver.Stmt              = (*Stmt)(nil)
	_ driver.StmtExecContext   = (*Stmt)(nil)
	_ driver.StmtQueryContext  = (*Stmt)(nil)
	_ driver.NamedValueChecker = (*Stmt)(nil)
)

// boundReason keeps what a statement's protocol state is tied to off the replicas,
// whatever its text does.
const boundReason = "bound to the connection that prepared it"

// PrepareContext implements [driver.ConnPrepareContext]. A text that this process
// has prepared and still holds is not sent again; otherwise one server is asked,
// so that its errors show here as they do on a bare connection.
func (c *Conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if c.broken {
		return nil, driver.ErrBadConn
	}
	s := &Stmt{conn: c, st: c.cluster.statements.acquire(c.cluster.dialect(), query)}
	if err := s.prepare(ctx); err != nil {
		c.cluster.releaseStmt(s.st)
		return nil, err
	}
	if c.live == nil {
		c.live = make(map[*statement]int)
	}
	c.live[s.st]++
	return s, nil
}

func (s *Stmt) prepare(ctx context.Context) error {
	w := &work{verdict: s.conn.cluster.judge(s.st), text: s.st.text}
	switch {
	case s.st.bound(s.conn.cluster.dialect()):
		// Preparing sends COPY itself, and what follows has to go the same way: it is
		// no read that a replica could be asked for.
		w.runs, w.mayWrite = true, true
		if w.verdict.Reason == "" {
			w.verdict.Reason = boundReason
		}
		w.do = func(ctx context.Context, p *physical, g *progress) (err error) {
			p.begin(g, false, 0)
			s.on = p
			s.inner, err = ctxDriverPrepare(ctx, p.conn, s.st.text)
			return err
		}
		return s.conn.run(ctx, w)
	case s.st.params.Load() > 0:
		return ctx.Err()
	default:
		w.do = func(ctx context.Context, p *physical, g *progress) error {
			stmt, err := p.prepared(ctx, s.st, false, g)
			if err == nil {
				s.home = p.node
				s.st.params.Store(int32(stmt.NumInput() + 1))
			}
			return err
		}
		return s.conn.run(ctx, w)
	}
}

// QueryContext implements [driver.StmtQueryContext].
func (s *Stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if s.inner != nil {
		var rows driver.Rows
		err := s.passThrough(ctx, args, func(ctx context.Context, args []driver.NamedValue) (err error) {
			rows, err = ctxDriverStmtQuery(ctx, s.inner, args)
			return err
		})
		return rows, err
	}
	return s.conn.query(ctx, s.call(args))
}

// ExecContext implements [driver.StmtExecContext].
func (s *Stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if s.inner != nil {
		var res driver.Result
		err := s.passThrough(ctx, args, func(ctx context.Context, args []driver.NamedValue) (err error) {
			res, err = ctxDriverStmtExec(ctx, s.inner, args)
			return err
		})
		return res, err
	}
	return s.conn.exec(ctx, s.call(args))
}

func (s *Stmt) call(args []driver.NamedValue) *call {
	k := &call{st: s.st, verdict: s.conn.cluster.judge(s.st), live: true, args: args, prefer: s.home}
	s.home = nil
	return k
}

// passThrough runs a statement that is tied to the connection that prepared it,
// there or not at all.
func (s *Stmt) passThrough(ctx context.Context, args []driver.NamedValue, run func(context.Context, []driver.NamedValue) error) error {
	c := s.conn
	if c.broken || c.primary != s.on {
		return driver.ErrBadConn
	}
	w := &work{verdict: c.cluster.judge(s.st), text: s.st.text, runs: true, mayWrite: true}
	if w.verdict.Reason == "" {
		w.verdict.Reason = boundReason
	}
	w.do = func(ctx context.Context, p *physical, g *progress) error {
		args, err := convertArgs(p.conn, s.inner, s.inner.NumInput(), args)
		if err != nil {
			return err
		}
		p.begin(g, false, 0)
		return run(ctx, args)
	}
	return c.run(ctx, w)
}

// CheckNamedValue implements [driver.NamedValueChecker], see [Conn.CheckNamedValue].
func (s *Stmt) CheckNamedValue(*driver.NamedValue) error { return nil }

// NumInput implements [driver.Stmt]. The arguments are counted when they are
// converted, with the statement that will run them.
func (s *Stmt) NumInput() int { return -1 }

// Exec implements [driver.Stmt].
//
// Deprecated: database/sql calls ExecContext.
func (s *Stmt) Exec(args []driver.Value) (driver.Result, error) {
	return s.ExecContext(context.Background(), named(args))
}

// Query implements [driver.Stmt].
//
// Deprecated: database/sql calls QueryContext.
func (s *Stmt) Query(args []driver.Value) (driver.Rows, error) {
	return s.QueryContext(context.Background(), named(args))
}

func named(args []driver.Value) []driver.NamedValue {
	out := make([]driver.NamedValue, len(args))
	for i, v := range args {
		out[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return out
}

// Close implements [driver.Stmt]. The primary's own statement is closed now, idle
// replicas' with the last statement of the text, busy ones' when they come back.
func (s *Stmt) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	c := s.conn
	c.cluster.releaseStmt(s.st)
	c.live[s.st]--
	left := c.live[s.st]
	if left == 0 {
		delete(c.live, s.st)
	}
	if s.inner != nil {
		return s.inner.Close()
	}
	if c.primary == nil || c.broken || left > 0 {
		return nil
	}
	return c.primary.closeStmts(func(st *statement) bool { return st == s.st })
}
