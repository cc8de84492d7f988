package replicated

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync"
	"time"

	"github.com/sqlreplicated/replicated/internal/dialect"
	"github.com/sqlreplicated/replicated/internal/evidence"
	"github.com/sqlreplicated/replicated/internal/socket"
	"github.com/sqlreplicated/replicated/internal/status"
)

// abortGrace is how long after its context has ended a call may go on before its
// socket is closed under it. lib/pq does not honour a context on a server that
// has stopped answering.
const abortGrace = 500 * time.Millisecond

// physical is one connection to one server. It belongs to a Conn (a primary
// connection) or to the pool of its node (a replica connection), and has one user
// at a time; abort alone may be called from anywhere.
type physical struct {
	node  *node
	role  Role // what it was opened as
	conn  driver.Conn
	dial  *socket.Dialer // nil where the node's driver dials by itself
	sock  *socket.Conn   // nil likewise
	flags status.Reader

	use      purpose
	opened   moment           // before its server was first asked
	server   *evidence.Server // that a replica's connection has reached; nil where nothing is proven
	term     uint64           // of a primary's, see freshness
	doubt    uint64           // likewise
	sampler  *dialect.Sampler // asks often; nil: it does not
	beat     *heartbeat       // what it has seen of one; nil: nothing
	unsynced bool             // its commits may be acknowledged before they are durable
	identity dialect.Identity
	direct   bool // no pooler sits between us and the server, as far as can be told
	resends  bool // the driver answers driver.ErrBadConn after it has sent, too, and we do not see its socket
	grace    bool // the driver does not honour contexts on a hung server: abort does it

	settings dialect.Settings // the session variables it has been brought to
	base     dialect.Settings // the values it was opened with, of those changed since

	stmts map[held]driver.Stmt // prepared for live driver.Stmts

	expires   time.Time // zero: never
	idleSince time.Time
	used      bool // has run a statement for an earlier user
	spoiled   bool // must be closed, not pooled
}

// progress says how far a statement has got on the wire, for the judgement
// whether it may have run.
type progress struct {
	preparing bool // it is being prepared: nothing has run, whatever was sent
	harmless  int  // so many writes are sent before anything runs
}

// ask has the server say who it is, and how far it has got where that is of use.
func (p *physical) ask(ctx context.Context) (dialect.Identity, error) {
	d := p.node.dialect()
	switch {
	case p.role == RoleReplica && p.node.cluster.beats():
		id, _, err := new(heartbeat).ask(ctx, p, false)
		return id, err
	case p.sampler != nil:
		return p.sampler.Sample(ctx)
	case p.use == forSampling:
		return d.Sample(ctx, p.conn)
	case p.role == RolePrimary || p.node.cluster.fresh.tracking() == trackWindow:
		return d.Identify(ctx, p.conn)
	default:
		return d.Sample(ctx, p.conn)
	}
}

// alive looks at the socket, without reading from it.
func (p *physical) alive() bool { return p.sock == nil || p.sock.Alive() }

// abort closes the socket, so that whoever waits on it returns.
func (p *physical) abort(cause error) {
	if p.dial != nil {
		p.dial.Abort(cause)
	}
}

// abortWhenDone aborts the connection when ctx ends. stop calls that off; it
// reports false if it came too late: then the connection is not to be used again,
// since its abort may still be on the way.
func (p *physical) abortWhenDone(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() { p.abort(context.Cause(ctx)) })
}

// valid asks the driver whether the connection can be used again.
func (p *physical) valid() bool {
	if p.spoiled {
		return false
	}
	v, ok := p.conn.(driver.Validator)
	return !ok || v.IsValid()
}

// keepsAfterRollback tells whether database/sql would keep a bare connection of
// this driver after a transaction whose context has ended.
func (p *physical) keepsAfterRollback() bool {
	_, resets := p.conn.(driver.SessionResetter)
	_, validates := p.conn.(driver.Validator)
	return resets && validates
}

// reset runs the driver's own ResetSession, which is due before the first
// statement of each user but the first.
func (p *physical) reset(ctx context.Context) error {
	if r, ok := p.conn.(driver.SessionResetter); ok && p.used {
		return r.ResetSession(ctx)
	}
	return nil
}

// lost tells whether err means that the connection is gone.
func (p *physical) lost(err error) bool {
	if p.sock != nil && p.sock.Aborted() != nil {
		return true
	}
	return p.node.dialect().EndsConnection(err) || errors.Is(err, driver.ErrBadConn)
}

// nothingRan tells whether a statement that failed because its connection was
// lost certainly did not run. Where we do not see the socket, the driver's word
// counts: driver.ErrBadConn means that nothing was sent.
func (p *physical) nothingRan(g *progress, err error) bool {
	if g.preparing {
		return true
	}
	if p.sock == nil {
		return errors.Is(err, driver.ErrBadConn) && !p.resends
	}
	_, writes := p.sock.Written()
	return writes <= g.harmless
}

// begin marks the start of a statement on the wire: the next write looks first
// whether the peer is still there, and what is sent is counted from here.
func (p *physical) begin(g *progress, preparing bool, harmless int) {
	g.preparing, g.harmless = preparing, harmless
	if p.sock != nil {
		p.sock.Begin()
	}
}

// watch aborts the connection if ctx ends and the call that it belongs to, which
// has that context, is not done a moment later. done must be called, once, when
// it is. Drivers that honour contexts by themselves are not watched.
func (p *physical) watch(ctx context.Context) (done func()) {
	if !p.grace {
		return func() {}
	}
	return p.guard(ctx)
}

// guard is watch for a call that no driver gives its context to: the end of a
// transaction.
func (p *physical) guard(ctx context.Context) (done func()) {
	if p.dial == nil || ctx.Done() == nil {
		return func() {}
	}
	var (
		mu       sync.Mutex
		finished bool
		timer    *time.Timer
	)
	stop := context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		if !finished {
			timer = time.AfterFunc(abortGrace, func() { p.abort(context.Cause(ctx)) })
		}
	})
	return func() {
		if stop() {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		finished = true
		if timer != nil && !timer.Stop() {
			p.spoiled = true // the abort may still be on the way
		}
	}
}

// adopt brings a replica connection to the settings of the Conn that borrows it.
// After an error the connection must be closed.
func (p *physical) adopt(ctx context.Context, want dialect.Settings) error {
	if p.settings == want {
		return nil
	}
	p.closeAllStmts() // they were prepared under other settings
	p.begin(&progress{}, true, 0)
	var err error
	p.settings, p.base, err = p.node.dialect().Change(ctx, p.conn, p.settings, want, p.base)
	return err
}

// query runs a statement with its rows. Where the driver leaves a text with
// arguments to be prepared, the statement that did it is returned too and must be
// closed after the rows.
func (p *physical) query(ctx context.Context, k *call, g *progress) (driver.Rows, driver.Stmt, error) {
	if !k.live && hasQueryer(p.conn) {
		args, err := convertArgs(p.conn, nil, -1, k.args)
		if err != nil {
			return nil, nil, err
		}
		k.args = args // converted once, whatever nodes it is tried on
		p.begin(g, false, p.node.harmlessWrites(len(args)))
		rows, err := ctxDriverQuery(ctx, p.conn, k.st.text, args)
		if err != driver.ErrSkip {
			return rows, nil, err
		}
	}
	stmt, temporary, args, err := p.ready(ctx, k, false, g)
	if err != nil {
		return nil, nil, err
	}
	p.begin(g, false, 0)
	rows, err := ctxDriverStmtQuery(ctx, stmt, args)
	if !temporary {
		return rows, nil, err
	}
	if err != nil {
		_ = stmt.Close()
		return nil, nil, err
	}
	return rows, stmt, nil
}

// exec runs a statement without rows.
func (p *physical) exec(ctx context.Context, k *call, g *progress) (driver.Result, error) {
	if !k.live && hasExecer(p.conn) {
		args, err := convertArgs(p.conn, nil, -1, k.args)
		if err != nil {
			return nil, err
		}
		k.args = args // see query
		p.begin(g, false, p.node.harmlessWrites(len(args)))
		res, err := ctxDriverExec(ctx, p.conn, k.st.text, args)
		if err != driver.ErrSkip {
			return res, err
		}
	}
	stmt, temporary, args, err := p.ready(ctx, k, true, g)
	if err != nil {
		return nil, err
	}
	p.begin(g, false, 0)
	res, err := ctxDriverStmtExec(ctx, stmt, args)
	if temporary {
		_ = stmt.Close()
	}
	return res, err
}

// ready prepares the statement of a call, or finds it prepared, and converts the
// call's arguments for it. A temporary statement is the caller's to close.
func (p *physical) ready(ctx context.Context, k *call, exec bool, g *progress) (stmt driver.Stmt, temporary bool, args []driver.NamedValue, err error) {
	if k.live {
		stmt, err = p.prepared(ctx, k.st, exec, g)
	} else {
		stmt, temporary, err = p.implicit(ctx, k.st, g)
	}
	if err != nil {
		return nil, false, nil, err
	}
	args, err = convertArgs(p.conn, stmt, stmt.NumInput(), k.args)
	if err != nil && temporary {
		_ = stmt.Close()
	}
	k.args = args
	return stmt, temporary, args, err
}

// close closes the connection and forgets it. The node's driver says goodbye to
// the server, for which a hung one gets no more than the grace.
func (p *physical) close() {
	p.node.forget(p)
	if p.dial != nil {
		t := time.AfterFunc(abortGrace, func() { p.abort(errClosed) })
		defer t.Stop()
	}
	_ = p.conn.Close()
}
