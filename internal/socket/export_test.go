package socket

import (
	"net"
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
