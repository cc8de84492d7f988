//go:build unix

package socket_test

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/internal/socket"
	"github.com/sqlreplicated/replicated/internal/socket/wiretest"
)

func TestDialerSetsKeepAlive(t *testing.T) {
	address, _ := listen(t)
	var d socket.Dialer
	raw, err := dial(t, &d, address).(*socket.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	on := 0
	if err := raw.Control(func(fd uintptr) {
		on, err = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_KEEPALIVE)
	}); err != nil {
		t.Fatal(err)
	}
	if err != nil || on == 0 {
		t.Errorf("SO_KEEPALIVE = %d, %v", on, err)
	}
}

// blackhole is an address where a dial neither succeeds nor fails soon: a
// listener whose queue is full.
func blackhole(tb testing.TB) string {
	tb.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		tb.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		tb.Fatal(err)
	}
	sa, err := syscall.Getsockname(fd)
	if err != nil {
		tb.Fatal(err)
	}
	address := (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: sa.(*syscall.SockaddrInet4).Port}).String()
	for range 8 { // fill the queue
		c, err := net.DialTimeout("tcp", address, 50*time.Millisecond)
		if err != nil {
			return address
		}
		tb.Cleanup(func() { _ = c.Close() })
	}
	tb.Skip("this system has room for connections that nobody accepts")
	return ""
}

func TestDialerAbortEndsADialUnderWay(t *testing.T) {
	address := blackhole(t)
	for _, opened := range []bool{false, true} {
		var d socket.Dialer
		if opened {
			d.Socket()
		}
		cause := errors.New("node given up")
		go d.Abort(cause) // before the dial or in it: the result is the same
		if _, err := d.Dial("tcp", address); !errors.Is(err, cause) {
			t.Errorf("opened %v: Dial: %v", opened, err)
		}
	}
}

func TestDialerHonoursItsTimeouts(t *testing.T) {
	address := blackhole(t)
	var d socket.Dialer
	_, err := d.DialTimeout("tcp", address, 20*time.Millisecond)
	if ne := net.Error(nil); !errors.As(err, &ne) || !ne.Timeout() || errors.Is(err, socket.ErrAborted) {
		t.Errorf("DialTimeout: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := d.DialContext(ctx, "tcp", address); !errors.Is(err, context.Canceled) {
		t.Errorf("DialContext: %v", err)
	}
}

func TestNotificationThatWaitsIsNoEnd(t *testing.T) {
	srv := wiretest.Postgres(t, nil)
	var d socket.Dialer
	conn, sock := open(t, srv, &d, "sslmode=disable")
	if err := srv.Next().Notify(); err != nil {
		t.Fatal(err)
	}
	raw, err := sock.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the notification arrives", func() (arrived bool) {
		if err := raw.Control(func(fd uintptr) {
			n, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
			arrived = n == 1 && err == nil
		}); err != nil {
			t.Fatal(err)
		}
		return arrived
	})
	sock.Begin()
	if err := exec(context.Background(), conn, "insert"); err != nil {
		t.Errorf("exec: %v", err)
	}
}
