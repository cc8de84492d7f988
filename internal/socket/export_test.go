package socket

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"
)

// SetCancelTimeout sets the bound of side connections for one test.
func SetCancelTimeout(tb testing.TB, d time.Duration) {
	old := cancelTimeout
	cancelTimeout = d
	tb.Cleanup(func() { cancelTimeout = old })
}

// Clamp returns the deadline that a side connection makes of t.
func Clamp(c net.Conn, t time.Time) time.Time { return c.(*side).clamp(t) }

// Known makes a Host whose name is looked up by a function.
func Known(lookup func(ctx context.Context, name string) ([]netip.Addr, error)) *Host {
	return &Host{name: "db.test", lookup: lookup}
}

// Open returns a connection that counts as one to the address that would be dialled
// first. The name must have been looked up.
func (h *Host) Open(everyMember bool) (*Conn, netip.Addr) {
	ours, theirs := net.Pipe()
	_ = theirs.Close()
	w := Wrap(ours)
	w.host, w.at = h, h.queue(everyMember)[0]
	return w, w.at.addr
}

// DialWith dials the name with a dialer of the net package.
func (h *Host) DialWith(ctx context.Context, nd *net.Dialer, port string) (net.Conn, error) {
	c, _, err := h.dial(ctx, nd, port, false)
	return c, err
}
