// Package socket wraps the network connections that the drivers talk through.
//
// A driver hides its socket, and four things can only be done there: to stop a
// call that ignores its context (lib/pq on a server that hangs), to know
// whether bytes of a statement have left (only then may a write be repeated),
// to notice before the first byte that the server has closed an idle
// connection, and to bound the connections that lib/pq dials to cancel. Here, too,
// it is chosen which of the addresses of a name is dialled, see [Host].
package socket

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
)

var (
	_ net.Conn     = (*Conn)(nil)
	_ syscall.Conn = (*Conn)(nil)
)

// Conn is the network connection of one physical database connection. It
// passes everything on to the connection it wraps and adds [Conn.Begin],
// [Conn.Written], [Conn.Alive], [Conn.Gone] and [Conn.Abort].
//
// All methods may be called from any goroutine. Begin and Written make sense
// only for the one who runs statements on the connection. The zero Conn is not
// usable; see [Wrap].
type Conn struct {
	net.Conn

	raw syscall.RawConn // nil: the inner connection shows no descriptor

	host *Host  // nil, with at, unless it was dialled by name
	at   *place // where it leads
	left atomic.Bool

	look   atomic.Bool // the next Write looks first
	bytes  atomic.Int64
	writes atomic.Int64

	// life ends with Abort, and its cause is Abort's. It is a Context because
	// that gives "the first cause wins", a hook for what has to end along with
	// the connection, and no lock of our own. Nothing is called with it.
	life  context.Context
	abort context.CancelCauseFunc

	// peekMu guards gone, and with it the one callback that is made at Wrap: a
	// closure made for each look would be an allocation for each statement.
	peekMu sync.Mutex
	gone   bool
	peekFn func(fd uintptr)
}

// Wrap returns a Conn for c. The Conn owns c.
func Wrap(c net.Conn) *Conn {
	life, abort := context.WithCancelCause(context.Background())
	return wrap(c, life, abort)
}

func wrap(c net.Conn, life context.Context, abort context.CancelCauseFunc) *Conn {
	w := &Conn{Conn: c, life: life, abort: abort}
	w.peekFn = func(fd uintptr) { w.gone = peerClosed(int(fd)) }
	if sc, ok := c.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			w.raw = raw
		}
	}
	return w
}

// NetConn returns what to hand to a driver: c itself, or, if the inner
// connection shows no descriptor, a view of c without SyscallConn.
// go-sql-driver takes a connection with that method but without a descriptor
// for a dead one at each ResetSession.
func (c *Conn) NetConn() net.Conn {
	if c.raw == nil {
		return struct{ net.Conn }{c}
	}
	return c
}

// SyscallConn gives the inner connection's descriptor to go-sql-driver's own
// liveness check, which without it silently does nothing. It fails with
// [syscall.EINVAL], as the net package does, if there is none.
func (c *Conn) SyscallConn() (syscall.RawConn, error) {
	if c.raw == nil {
		return nil, syscall.EINVAL
	}
	return c.raw, nil
}

// Begin says that a statement begins: the counters of [Conn.Written] go to
// zero, and the next Write first looks whether the peer has closed.
func (c *Conn) Begin() {
	c.bytes.Store(0)
	c.writes.Store(0)
	c.look.Store(true)
}

// Written returns the bytes that have been handed to the kernel since Begin,
// and the number of Writes that handed over any. Zero bytes is the proof that
// the server has seen nothing of the statement; more than zero proves nothing.
//
// Under TLS one write of the driver is at least one Write here, so "no more
// than n Writes" still means "no more than n writes of the driver".
func (c *Conn) Written() (bytes int64, writes int) {
	return c.bytes.Load(), int(c.writes.Load())
}

// Write sends b. If it is the first since [Conn.Begin] and the peer has closed
// the connection, it fails with [ErrStale] and has sent nothing. It goes on
// failing so: a connection once found stale never sends again.
//
// The drivers turn "an error, and 0 bytes written" into [driver.ErrBadConn],
// whatever the error is (lib/pq safeRetryError, go-sql-driver
// errBadConnNoWrite), and database/sql then repeats the call elsewhere.
func (c *Conn) Write(b []byte) (int, error) {
	if c.look.Load() {
		if !c.Alive() {
			return 0, c.failure("write", ErrStale)
		}
		c.look.Store(false)
	}
	n, err := c.Conn.Write(b)
	if n > 0 {
		c.bytes.Add(int64(n))
		c.writes.Add(1)
	}
	if err != nil {
		err = c.failure("write", err)
	}
	return n, err
}

// Read reads from the inner connection. Its errors come back unchanged, since
// drivers compare them with io.EOF, unless the connection was aborted.
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		err = c.failure("read", err)
	}
	return n, err
}

// Alive reports whether the peer has neither closed nor reset the connection,
// as far as this machine knows: it looks at the receive buffer without reading
// from it (an answer that LISTEN waits for must stay there) and without waiting.
// Data that waits does not mean that the connection is over; data followed by
// the peer's end does (a terminated PostgreSQL backend leaves a FATAL message).
//
// Where the system cannot tell, it is true: a broken connection then shows in
// the driver's own calls. After [Conn.Abort] and Close it is false.
func (c *Conn) Alive() bool {
	if c.raw == nil {
		return c.life.Err() == nil
	}
	c.peekMu.Lock()
	defer c.peekMu.Unlock()
	// Control, not Read: it takes no part in deadlines (go-sql-driver leaves a
	// passed one behind) nor in the lock of a Read that is under way.
	if err := c.raw.Control(c.peekFn); err != nil {
		return false // we have closed it
	}
	return !c.gone
}

// Abort closes the connection under whoever uses it: blocked and later calls
// return at once, with an error that Is [ErrAborted] and wraps cause. Connections
// which the driver has dialled to cancel something on this one end too. Only
// the first cause counts; nil stands for ErrAborted itself. cause must not wrap
// [driver.ErrBadConn], or database/sql would repeat what may have been done.
//
// No goodbye is sent: the server notices by itself, and what has reached it may
// still be executed.
func (c *Conn) Abort(cause error) {
	if cause == nil {
		cause = ErrAborted
	}
	c.abort(cause) // before Close, so that who wakes up by it finds the cause
	_ = c.Close()
}

// Close closes the connection.
func (c *Conn) Close() error {
	if c.at != nil && !c.left.Swap(true) {
		c.host.leave(c.at)
	}
	return c.Conn.Close()
}

// Gone reports whether the connection leads to an address that the name which was
// dialled no longer stands for, see [Host]. It may turn false again.
func (c *Conn) Gone() bool { return c.at != nil && c.at.gone.Load() }

// Member returns the address that the connection leads to, of a name that has
// several, else the zero Addr.
func (c *Conn) Member() netip.Addr {
	if c.at == nil || !c.host.several.Load() {
		return netip.Addr{}
	}
	return c.at.addr
}

// Surplus reports whether the connection is to be closed so that others of the
// node are opened to addresses that have less than their share. Each time that it
// is true there is one less to be closed: who has been told so has to do it.
func (c *Conn) Surplus() bool {
	if c.at == nil {
		return false
	}
	for n := c.at.surplus.Load(); n > 0; n = c.at.surplus.Load() {
		if c.at.surplus.CompareAndSwap(n, n-1) {
			return true
		}
	}
	return false
}

// Shun has other addresses of the name tried before the connection's for a while,
// since the server there was of no use.
func (c *Conn) Shun() {
	if c.at != nil {
		c.host.failed(c.at)
	}
}

// Aborted returns the cause of the first Abort, or nil.
func (c *Conn) Aborted() error {
	return context.Cause(c.life)
}
