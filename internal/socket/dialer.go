package socket

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// cancelTimeout bounds each connection that a driver dials beside its own, from
// dial to close. lib/pq dials one to cancel a statement, allows ten seconds for
// the dial, and then waits on it without a deadline, for ever if the server hangs.
// It is a variable for the tests.
var cancelTimeout = 10 * time.Second

// keepAlive notices a peer that has vanished without a word in half a minute;
// the systems' defaults take two hours.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}

// Dialer dials for one physical connection. It has two phases.
//
//	phase    a dial gives                            ends with
//	opening  the connection's [Conn], in place of    Socket, or Abort
//	         the one before
//	opened   a side connection for cancelling,       Abort, or the Conn's Abort
//	         bounded by cancelTimeout
//
// While opening, lib/pq may dial again (sslmode=prefer and allow start over with
// or without TLS, and leave the first socket open), so that it is not the first
// dial but the last one before Socket that counts.
//
// It serves as lib/pq's Dialer and DialerContext and, by DialContext, as
// go-sql-driver's DialFunc, for the networks tcp and unix. Both take the name that a
// server's certificate has to have from their own settings, whatever address is
// dialled. The zero Dialer is ready to use, for one connection. All methods may be
// called from any goroutine.
type Dialer struct {
	// Host, if not nil, chooses among the addresses of the name that is dialled.
	Host *Host
	// EveryMember lets the socket lead to an address that the latest answer for the
	// name lacks, where the name answers with some of its addresses in turn.
	EveryMember bool

	init sync.Once
	// life ends with Abort; all that was dialled ends with it. See [Conn].
	life  context.Context
	abort context.CancelCauseFunc

	mu     sync.Mutex
	sock   *Conn
	opened bool
}

func (d *Dialer) start() {
	d.init.Do(func() { d.life, d.abort = context.WithCancelCause(context.Background()) })
}

// Socket returns the connection's socket and ends the opening phase. It is called
// after the driver has connected. It is nil if the driver has not dialled, or if
// the dialer was aborted before.
func (d *Dialer) Socket() *Conn {
	d.start()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.opened = true
	if d.sock != nil && d.sock.at != nil {
		d.sock.host.served(d.sock.at)
	}
	return d.sock
}

// Abort aborts the socket and whatever was dialled beside it, and lets no dial
// begin or succeed any more. It is the way to bound the opening of a connection,
// too: lib/pq reads the server's greeting without regard to any context. The
// first cause counts; see [Conn.Abort].
func (d *Dialer) Abort(cause error) {
	if cause == nil {
		cause = ErrAborted
	}
	d.start()
	d.abort(cause)
	d.mu.Lock()
	sock, opened := d.sock, d.opened
	d.mu.Unlock()
	if sock != nil {
		if !opened && !errors.Is(cause, context.Canceled) {
			sock.Shun() // or the next dials would go there again, where there are no connections
		}
		sock.Abort(cause)
	}
}

// Dial is DialContext without a context.
func (d *Dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialTimeout is DialContext with a timeout.
func (d *Dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.DialContext(ctx, network, address)
}

// DialContext dials address, until ctx ends or the dialer is aborted. The
// connection is the physical connection's own while opening, else a side
// connection. ctx has no meaning for it once it stands.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	d.start()
	d.mu.Lock()
	opened := d.opened
	d.mu.Unlock()
	if opened {
		return d.dialSide(ctx, network, address)
	}
	c, at, err := d.dial(ctx, d.Host, network, address)
	if err != nil {
		return nil, err
	}
	w := wrap(c, d.life, d.abort)
	w.host, w.at = d.Host, at
	d.mu.Lock()
	old := d.sock
	d.sock = w
	d.mu.Unlock()
	if old != nil {
		_ = old.Close() // given up by the driver, which does not close it
	}
	if cause := w.Aborted(); cause != nil { // Abort came too early to find w
		_ = w.Close()
		return nil, dialError(network, cause)
	}
	return w.NetConn(), nil
}

// dialSide dials a connection that lives no longer than cancelTimeout, nor than
// the socket. It leads to the socket's own address: of several servers behind one
// name only that one knows what is to be cancelled.
func (d *Dialer) dialSide(ctx context.Context, network, address string) (net.Conn, error) {
	limit := time.Now().Add(cancelTimeout)
	ctx, cancel := context.WithDeadline(ctx, limit)
	defer cancel()
	d.mu.Lock()
	sock := d.sock
	d.mu.Unlock()
	if sock != nil && sock.RemoteAddr().Network() == network {
		address = sock.RemoteAddr().String()
	}
	c, _, err := d.dial(ctx, nil, network, address)
	if err != nil {
		return nil, err
	}
	if err := c.SetDeadline(limit); err != nil {
		_ = c.Close()
		return nil, err
	}
	return &side{
		Conn:   c,
		limit:  limit,
		unhook: context.AfterFunc(d.life, func() { _ = c.Close() }),
	}, nil
}

// dial dials until ctx ends or the dialer is aborted. The place is nil unless the
// address is a name of the host, if one is given.
func (d *Dialer) dial(ctx context.Context, host *Host, network, address string) (c net.Conn, at *place, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.life, cancel)()
	nd := net.Dialer{KeepAliveConfig: keepAlive}
	if port, ok := host.named(network, address); ok {
		c, at, err = host.dial(ctx, &nd, port, d.EveryMember)
	} else {
		c, err = nd.DialContext(ctx, network, address)
	}
	if err != nil {
		if cause := context.Cause(d.life); cause != nil {
			return nil, nil, dialError(network, cause) // instead of "operation was canceled"
		}
		return nil, nil, err
	}
	return c, at, nil
}

// dialError is the error of a dial that was aborted.
func dialError(network string, cause error) error {
	return &net.OpError{Op: "dial", Net: network, Err: abortError{cause}}
}

// side is a connection whose deadlines never pass its limit.
type side struct {
	net.Conn
	limit  time.Time
	unhook func() bool
}

func (s *side) Close() error {
	s.unhook()
	return s.Conn.Close()
}

func (s *side) SetDeadline(t time.Time) error      { return s.Conn.SetDeadline(s.clamp(t)) }
func (s *side) SetReadDeadline(t time.Time) error  { return s.Conn.SetReadDeadline(s.clamp(t)) }
func (s *side) SetWriteDeadline(t time.Time) error { return s.Conn.SetWriteDeadline(s.clamp(t)) }

// clamp returns t, or the limit if t is later or, being zero, never.
func (s *side) clamp(t time.Time) time.Time {
	if t.IsZero() || t.After(s.limit) {
		return s.limit
	}
	return t
}
