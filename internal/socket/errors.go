package socket

import (
	"errors"
	"net"
)

var (
	// ErrStale is what a statement's first Write fails with, 0 bytes sent, if
	// the server had closed the connection before.
	ErrStale = errors.New("connection was closed by the server while idle")

	// ErrAborted is in the chain of every error of a connection that
	// [Conn.Abort] has closed.
	ErrAborted = errors.New("connection aborted")
)

// abortError carries Abort's cause to the driver's caller.
type abortError struct{ cause error }

func (e abortError) Error() string {
	if errors.Is(e.cause, ErrAborted) {
		return ErrAborted.Error()
	}
	return ErrAborted.Error() + ": " + e.cause.Error()
}
func (e abortError) Is(target error) bool { return target == ErrAborted }
func (e abortError) Unwrap() error        { return e.cause }

// failure returns the error of an operation: err, or Abort's cause if there was
// one. An error of our own goes out as a *net.OpError, the only type by which
// lib/pq knows that a connection is broken (conn.handleError).
func (c *Conn) failure(op string, err error) error {
	if cause := c.Aborted(); cause != nil {
		err = abortError{cause}
	} else if !errors.Is(err, ErrStale) {
		return err
	}
	out := &net.OpError{Op: op, Err: err, Source: c.LocalAddr(), Addr: c.RemoteAddr()}
	if out.Addr != nil {
		out.Net = out.Addr.Network()
	}
	return out
}
