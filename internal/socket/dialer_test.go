package socket_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/internal/socket"
)

// listen accepts connections and hands them over.
func listen(tb testing.TB) (address string, accepted <-chan net.Conn) {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	ch := make(chan net.Conn, 16)
	go func() {
		defer close(ch)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			ch <- c
		}
	}()
	tb.Cleanup(func() {
		_ = ln.Close()
		for c := range ch {
			_ = c.Close()
		}
	})
	return ln.Addr().String(), ch
}

func dial(tb testing.TB, d *socket.Dialer, address string) net.Conn {
	tb.Helper()
	c, err := d.DialContext(context.Background(), "tcp", address)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

func TestDialerGivesTheSocketOfTheLastDialWhileOpening(t *testing.T) {
	address, accepted := listen(t)
	var d socket.Dialer
	first := dial(t, &d, address)
	second := dial(t, &d, address)
	if _, err := first.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the first socket is left open: %v", err)
	}
	<-accepted
	if sock := d.Socket(); net.Conn(sock) != second {
		t.Errorf("Socket() = %v, want that of the second dial", sock)
	}
	side := dial(t, &d, address)
	if sock := d.Socket(); net.Conn(sock) != second || net.Conn(sock) == side {
		t.Error("a dial after Socket has replaced the socket")
	}
	if _, ok := side.(*socket.Conn); ok {
		t.Error("a side connection is a *Conn")
	}
}

func TestDialerWithoutDial(t *testing.T) {
	if sock := new(socket.Dialer).Socket(); sock != nil {
		t.Errorf("Socket() = %v, want nil", sock)
	}
}

func TestDialerAbortEndsWhatWasDialled(t *testing.T) {
	address, _ := listen(t)
	for name, abort := range map[string]func(*socket.Dialer, error){
		"the dialer's": func(d *socket.Dialer, err error) { d.Abort(err) },
		"the socket's": func(d *socket.Dialer, err error) { d.Socket().Abort(err) },
	} {
		t.Run(name, func(t *testing.T) {
			var d socket.Dialer
			main := dial(t, &d, address)
			d.Socket()
			side := dial(t, &d, address)
			cause := errors.New("node given up")
			abort(&d, cause)
			if _, err := main.Read(make([]byte, 1)); !errors.Is(err, cause) {
				t.Errorf("socket: Read: %v", err)
			}
			if _, err := side.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
				t.Errorf("side connection: Read: %v", err)
			}
			_, err := d.Dial("tcp", address)
			if op := (*net.OpError)(nil); !errors.Is(err, cause) || !errors.Is(err, socket.ErrAborted) || !errors.As(err, &op) || op.Op != "dial" {
				t.Errorf("Dial after Abort: %v", err)
			}
		})
	}
}

func TestDialerAbortWhileOpening(t *testing.T) {
	address, accepted := listen(t)
	var d socket.Dialer
	c := dial(t, &d, address)
	<-accepted // and says nothing, as a server that hangs
	read := make(chan error)
	go func() {
		_, err := c.Read(make([]byte, 1))
		read <- err
	}()
	ctx, cancel := context.WithCancel(context.Background())
	defer context.AfterFunc(ctx, func() { d.Abort(context.Cause(ctx)) })()
	cancel()
	if err := <-read; !errors.Is(err, context.Canceled) || !errors.Is(err, socket.ErrAborted) {
		t.Errorf("Read: %v", err)
	}
}

func TestSideConnectionsEndByThemselves(t *testing.T) {
	address, _ := listen(t) // that never answers
	socket.SetCancelTimeout(t, 30*time.Millisecond)
	for name, set := range map[string]func(net.Conn) error{
		"no deadline set":       func(net.Conn) error { return nil }, // as lib/pq
		"deadline lifted":       func(c net.Conn) error { return c.SetDeadline(time.Time{}) },
		"read deadline lifted":  func(c net.Conn) error { return c.SetReadDeadline(time.Time{}) },
		"later deadline":        func(c net.Conn) error { return c.SetDeadline(time.Now().Add(time.Hour)) },
		"write deadline lifted": func(c net.Conn) error { return c.SetWriteDeadline(time.Time{}) },
	} {
		var d socket.Dialer
		d.Socket()
		side := dial(t, &d, address)
		if err := set(side); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(side); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: Read: %v", name, err)
		}
		_ = side.Close()
		if _, err := side.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: Read after Close: %v", name, err)
		}
	}
}

func TestSideConnectionsKeepEarlierDeadlines(t *testing.T) {
	address, _ := listen(t)
	var d socket.Dialer
	d.Socket()
	side := dial(t, &d, address)
	if err := side.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := side.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Read: %v", err)
	}
	now := time.Now()
	if got := socket.Clamp(side, now); !got.Equal(now) {
		t.Errorf("deadline %v became %v", now, got)
	}
}
