package replicated

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/dialect"
)

// Conn is one connection of the pool of database/sql. It owns a connection to the
// primary, opened on first need, where all session state lives; connections to
// replicas it borrows, a statement at a time, from pools that all Conns share.
// [database/sql.Conn.Raw] hands it out.
//
// As any driver.Conn it runs one call at a time; database/sql sees to that.
type Conn struct {
	cluster *Cluster
	primary *physical // nil until needed

	// State of this check-out, cleared by ResetSession.

	used    bool   // the primary connection has run something
	relied  bool   // … other than proven reads: what follows may depend on it
	broken  bool   // it was lost after that: nothing is sent any more
	lost    bool   // … which only reads that depend on nothing have met: they go on, over another one
	pinned  bool   // it holds state that replicas lack
	asked   bool   // reads are to run there for no such reason (UsePrimary)
	written ledger // what was written
	discard bool   // IsValid answers false
	closed  bool   // and counted as such

	// State of the primary connection, which goes when it goes.

	held      classify.Effect  // roles and custom settings that it has: they pin for as long
	vars      classify.Vars    // variables that were set, to be carried to replicas
	unread    bool             // … and whose values have not been read back since
	values    dialect.Settings // their values
	textTx    bool             // a transaction is open, by text, where the driver does not show it
	unsure    bool             // one may be open: a failure may have opened it, or have ended it
	unsureTx  bool             // … at the end of a Tx: who began it takes it to be over
	dirty     bool             // the open transaction has run more than proven reads
	untracked bool             // … or that, and nobody has to read what it wrote
	writers   []*Session       // for whose sessions; nil is no session
	dirtied   *touch           // … and what that touched; nil: everything
	defines   bool             // it may have changed what the catalog tells
	reshapes  bool             // … or the schema at all: it is counted as being on its way

	tx *Tx // the transaction begun by BeginTx, or nil

	live map[*statement]int // its open driver.Stmts, by text
}

var (
	_ driver.Conn               = (*Conn)(nil)
	_ driver.ConnPrepareContext = (*Conn)(nil)
	_ driver.ConnBeginTx        = (*Conn)(nil)
	_ driver.ExecerContext      = (*Conn)(nil)
	_ driver.QueryerContext     = (*Conn)(nil)
	_ driver.Pinger             = (*Conn)(nil)
	_ driver.SessionResetter    = (*Conn)(nil)
	_ driver.Validator          = (*Conn)(nil)
	_ driver.NamedValueChecker  = (*Conn)(nil)
)

// call is one execution of a statement.
type call struct {
	st      *statement
	verdict classify.Verdict
	live    bool // through a driver.Stmt: the physical statement is kept
	args    []driver.NamedValue

	prefer *node // where it has just been prepared
}

// work returns what the attempt loop has to know of the call.
func (k *call) work() *work {
	v := &k.verdict
	harmless := v.Class == classify.Empty || v.Class == classify.Show && v.Effect&classify.Stamps == 0
	return &work{verdict: *v, text: k.st.text, runs: true, mayWrite: !v.Replica() && !harmless, prefer: k.prefer}
}

func (c *Conn) newCall(query string, args []driver.NamedValue) *call {
	return &call{
		st:      &statement{text: query},
		verdict: classify.ClassifyWith(c.cluster.dialect(), query, c.cluster.catalog.definitions()),
		args:    args,
	}
}

// QueryContext implements [driver.QueryerContext].
func (c *Conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.query(ctx, c.newCall(query, args))
}

// ExecContext implements [driver.ExecerContext].
func (c *Conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.exec(ctx, c.newCall(query, args))
}

func (c *Conn) exec(ctx context.Context, k *call) (res driver.Result, err error) {
	w := k.work()
	w.do = func(ctx context.Context, p *physical, g *progress) (err error) {
		res, err = p.exec(ctx, k, g)
		return err
	}
	if err := c.run(ctx, w); err != nil {
		return nil, err
	}
	return res, nil
}

func (c *Conn) query(ctx context.Context, k *call) (driver.Rows, error) {
	got := result{conn: c, ctx: ctx, work: k.work()}
	got.work.do = func(ctx context.Context, p *physical, g *progress) (err error) {
		if err = got.fetch(ctx, p, k, g); err == nil {
			got.work.kept = true
		}
		return err
	}
	if err := c.run(ctx, got.work); err != nil {
		return nil, err
	}
	return got.rows(), nil
}

// CheckNamedValue implements [driver.NamedValueChecker]. It takes every value as
// it is: which driver, and so which conversion, is known when the statement runs.
func (c *Conn) CheckNamedValue(*driver.NamedValue) error { return nil }

// Prepare implements [driver.Conn].
func (c *Conn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

// Begin implements [driver.Conn].
//
// Deprecated: database/sql calls BeginTx.
func (c *Conn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

// Ping implements [driver.Pinger]: it asks the primary.
func (c *Conn) Ping(ctx context.Context) error {
	if c.broken {
		return driver.ErrBadConn
	}
	return c.onPrimary(ctx, &work{do: func(ctx context.Context, p *physical, g *progress) error {
		p.begin(g, true, 0)
		if pinger, ok := p.conn.(driver.Pinger); ok {
			return pinger.Ping(ctx)
		}
		return nil
	}})
}

// ResetSession implements [driver.SessionResetter]. It begins a new check-out: no
// pin and no floor of the last one is left. It does no I/O; the primary's own
// driver is asked when its connection is next used.
func (c *Conn) ResetSession(context.Context) error {
	if c.broken || c.discard {
		return driver.ErrBadConn
	}
	if c.primary != nil && c.used {
		c.primary.used = true
	}
	c.used, c.relied, c.lost, c.pinned, c.asked, c.written = false, false, false, false, false, ledger{}
	return nil
}

// IsValid implements [driver.Validator].
func (c *Conn) IsValid() bool {
	return !c.broken && !c.discard && (c.primary == nil || c.primary.valid())
}

// Close implements [driver.Conn]. Rows that are still open on replicas keep their
// connections.
func (c *Conn) Close() error {
	if c.closed {
		return nil
	}
	c.closed = true
	c.dropPrimary()
	c.broken = true
	c.cluster.detach()
	return nil
}

// UsePrimary sends all further statements of this connection to the primary until
// it goes back to the pool. Reach it through [database/sql.Conn.Raw].
func (c *Conn) UsePrimary() { c.asked = true }

// Primary calls f with the primary's own driver connection, opening it if need
// be: a *pq.Conn's methods, a *stdlib.Conn, what a Raw function expects of the
// bare driver. What f does is not seen by us: it counts as a write when f
// returns, and the connection reads from the primary until it goes back to the
// pool. f must not keep the connection.
//
// The context bounds opening the connection, and its session is the one that f
// writes for.
func (c *Conn) Primary(ctx context.Context, f func(driverConn any) error) error {
	if c.broken {
		return driver.ErrBadConn
	}
	w := wishesOf(ctx)
	if w.readOnly {
		return fmt.Errorf("%w: the context was made by WithReadOnly, and what a function does with the connection is not known", ErrReadOnly)
	}
	var ferr error
	err := c.onPrimary(ctx, &work{mayWrite: true, do: func(_ context.Context, p *physical, _ *progress) error {
		defer func() { // also when f panics
			c.pinned = true
			if c.primary != nil {
				c.primary.unsynced = true
			}
			c.wrote(&w, nil)
			c.settle(&classify.Verdict{Effect: classify.EndsTx | classify.OpensTx}, &w, nil)
		}()
		ferr = f(p.conn)
		return nil
	}})
	if err != nil {
		return err
	}
	return ferr
}

// openPrimary returns the primary connection, ready for a statement. Before the
// first statement of a check-out the connection may be opened anew; after it, its
// loss breaks the Conn, but for a read that depends on nothing of it.
func (c *Conn) openPrimary(ctx context.Context, free bool) (*physical, error) {
	if p := c.primary; p != nil && c.cluster.outdated(p) {
		over := c.cluster.over(p)
		switch {
		case !c.relied && (over || !c.inTx()): // what an earlier user has left open goes with it
			c.dropPrimary()
		case over && free:
			c.losePrimary()
		case over:
			// Another server is the primary now. What this one acknowledges from here on
			// would be lost, and what it answers is old.
			c.broken = true
			return nil, driver.ErrBadConn
		}
	}
	if p := c.primary; p != nil && !c.relied && (p.spoiled || !p.alive() || p.moved() && !c.inTx() || !c.used && p.reset(ctx) != nil) {
		c.dropPrimary()
	}
	if p := c.primary; p != nil && c.relied && free && !p.alive() {
		c.losePrimary()
	}
	for tries := 1; c.primary == nil; tries++ {
		term := c.cluster.fresh.term.Load()
		n, err := c.cluster.thePrimary(ctx)
		if err != nil {
			return nil, err
		}
		p, err := c.cluster.connectPrimary(ctx, n)
		if err == nil {
			c.primary = p
			break
		}
		if tries > len(c.cluster.nodes) || !c.cluster.another(ctx, term, err) {
			return nil, nodeError(n, RolePrimary, "connect", err)
		}
	}
	return c.primary, nil
}

// losePrimary is dropPrimary for a connection that this check-out relies on.
func (c *Conn) losePrimary() {
	c.dropPrimary()
	c.lost = true
}

// dropPrimary closes the primary connection and forgets what it held.
func (c *Conn) dropPrimary() {
	if c.primary == nil {
		return
	}
	c.primary.close()
	c.primary = nil
	c.held, c.vars, c.unread, c.values = 0, 0, false, dialect.Settings{}
	c.textTx, c.unsure, c.unsureTx = false, false, false
	c.forgetTx()
}

// forgetLost forgets a primary connection that is of no use any more, where earlier users
// have left on it what would keep reads there, or has to be asked for. Nothing of this
// check-out relies on it, and its loss must cost no read that replicas could serve.
func (c *Conn) forgetLost() {
	p := c.primary
	if p == nil || c.relied || !c.unread && c.held == 0 && !c.inTx() {
		return
	}
	if c.cluster.over(p) || !p.alive() || !p.valid() {
		c.dropPrimary()
	}
}

// isPinned tells whether reads have to stay on the primary connection.
func (c *Conn) isPinned() bool { return c.asked || c.hasState() }

// hasState tells whether it has state that replicas lack.
func (c *Conn) hasState() bool { return c.pinned || c.held != 0 }

// settings returns the values of the session variables that a replica connection
// has to be brought to, reading them back from the primary where they have been
// set since. It is called outside transactions only: inside one they may yet be
// rolled back.
func (c *Conn) settings(ctx context.Context) (dialect.Settings, error) {
	if !c.unread {
		return c.values, nil
	}
	err := c.onPrimary(ctx, &work{do: func(ctx context.Context, p *physical, g *progress) error {
		if c.vars == 0 {
			return nil // the connection was opened anew, and has none set
		}
		p.begin(g, true, 0)
		values, err := p.node.dialect().ReadSettings(ctx, p.conn, c.vars)
		if err == nil {
			c.values, c.unread = values, false
			c.relied = true // what is read from here on depends on them
		}
		return err
	}})
	if err != nil && c.primary == nil {
		return dialect.Settings{}, nil // they were lost with the connection, and no other one can be had
	}
	return c.values, err
}
