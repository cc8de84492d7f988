package socket_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/internal/socket"
)

// pair returns the two ends of a connection over the given network.
func pair(tb testing.TB, network string) (*socket.Conn, net.Conn) {
	tb.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(tb.TempDir(), "s")
	}
	ln, err := net.Listen(network, address)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	c, err := net.Dial(network, ln.Addr().String())
	if err != nil {
		tb.Fatal(err)
	}
	peer, err := ln.Accept()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _, _ = c.Close(), peer.Close() })
	return socket.Wrap(c), peer
}

// eventually waits for something that the kernel does in its own time.
func eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); runtime.Gosched() {
		if time.Now().After(end) {
			tb.Fatalf("not within 10 s: %s", what)
		}
	}
}

// seesEnd reports whether the system tells of a close behind unread data.
var seesEnd = runtime.GOOS == "linux"

func TestConnAlive(t *testing.T) {
	tests := []struct {
		name string
		peer func(tb testing.TB, c *socket.Conn, peer net.Conn)
		want bool
	}{
		{name: "idle", want: true, peer: func(testing.TB, *socket.Conn, net.Conn) {}},
		{name: "data waits", want: true, peer: func(tb testing.TB, _ *socket.Conn, peer net.Conn) { send(tb, peer) }},
		{name: "closed", peer: func(_ testing.TB, _ *socket.Conn, peer net.Conn) { _ = peer.Close() }},
		{name: "data and closed", want: !seesEnd, peer: func(tb testing.TB, _ *socket.Conn, peer net.Conn) {
			send(tb, peer)
			_ = peer.Close()
		}},
		{name: "half-closed", peer: func(_ testing.TB, _ *socket.Conn, peer net.Conn) {
			_ = peer.(interface{ CloseWrite() error }).CloseWrite()
		}},
		{name: "reset", peer: func(tb testing.TB, _ *socket.Conn, peer net.Conn) {
			if tcp, ok := peer.(*net.TCPConn); ok && tcp.SetLinger(0) != nil {
				tb.Fatal("no linger")
			}
			_ = peer.Close()
		}},
		{name: "closed here", peer: func(_ testing.TB, c *socket.Conn, _ net.Conn) { _ = c.Close() }},
		{name: "aborted", peer: func(_ testing.TB, c *socket.Conn, _ net.Conn) { c.Abort(nil) }},
		{name: "passed deadline", want: true, peer: func(tb testing.TB, c *socket.Conn, _ net.Conn) {
			if err := c.SetDeadline(time.Unix(1, 0)); err != nil {
				tb.Fatal(err)
			}
		}},
	}
	for _, network := range []string{"tcp", "unix"} {
		for _, tt := range tests {
			t.Run(network+"/"+tt.name, func(t *testing.T) {
				c, peer := pair(t, network)
				tt.peer(t, c, peer)
				if tt.want {
					if !c.Alive() {
						t.Error("Alive() = false")
					}
					return
				}
				eventually(t, "Alive() = false", func() bool { return !c.Alive() })
				if c.Alive() {
					t.Error("Alive() = true after it was false")
				}
			})
		}
	}
}

func send(tb testing.TB, c net.Conn) {
	tb.Helper()
	if _, err := io.WriteString(c, "hello"); err != nil {
		tb.Fatal(err)
	}
}

func TestConnAliveTakesNothingFromTheBuffer(t *testing.T) {
	c, peer := pair(t, "tcp")
	send(t, peer)
	_ = peer.Close()
	for range 3 {
		c.Alive()
	}
	if got, err := io.ReadAll(c); string(got) != "hello" || err != nil {
		t.Errorf("read %q, %v after Alive", got, err)
	}
}

func TestConnWrittenCountsSinceBegin(t *testing.T) {
	c, _ := pair(t, "tcp")
	check := func(bytes int64, writes int) {
		t.Helper()
		if b, w := c.Written(); b != bytes || w != writes {
			t.Errorf("Written() = %d, %d; want %d, %d", b, w, bytes, writes)
		}
	}
	check(0, 0)
	send(t, c)
	check(5, 1)
	c.Begin()
	check(0, 0)
	send(t, c)
	send(t, c)
	check(10, 2)
	_ = c.Close()
	c.Begin()
	if _, err := c.Write([]byte("x")); err == nil {
		t.Error("Write on a closed connection succeeded")
	}
	check(0, 0)
}

func TestConnWriteFailsStaleBeforeTheFirstByte(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		for _, waiting := range []bool{false, true} {
			if waiting && !seesEnd {
				continue
			}
			c, peer := pair(t, network)
			if waiting {
				send(t, peer)
			}
			_ = peer.Close()
			eventually(t, "Alive() = false", func() bool { return !c.Alive() })
			c.Begin()
			for range 2 { // and it stays so
				n, err := c.Write([]byte("insert"))
				op := (*net.OpError)(nil)
				if n != 0 || !errors.Is(err, socket.ErrStale) || !errors.As(err, &op) || op.Op != "write" {
					t.Errorf("%s: Write = %d, %v; want 0 and a *net.OpError with ErrStale", network, n, err)
				}
			}
			if b, w := c.Written(); b != 0 || w != 0 {
				t.Errorf("%s: Written() = %d, %d after a stale Write", network, b, w)
			}
		}
	}
}

func TestConnLooksOnlyBeforeTheFirstWrite(t *testing.T) {
	c, peer := pair(t, "tcp")
	c.Begin()
	send(t, c)
	if err := peer.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "Alive() = false", func() bool { return !c.Alive() })
	if _, err := c.Write([]byte("more")); err != nil {
		t.Errorf("second Write: %v", err)
	}
	if _, w := c.Written(); w != 2 {
		t.Errorf("%d Writes counted, want 2", w)
	}
}

func TestConnWriteThroughTLSFailsStale(t *testing.T) {
	// A certificate that is at hand.
	srv := httptest.NewTLSServer(nil)
	defer srv.Close()
	raw, peer := pair(t, "tcp")
	server := tls.Server(peer, srv.TLS)
	done := make(chan error, 1)
	go func() { done <- server.Handshake() }()
	client := tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
	if err := client.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	// Session tickets wait in the buffer, which is no reason to give up.
	raw.Begin()
	if n, err := client.Write([]byte("select")); n != 6 || err != nil {
		t.Fatalf("Write = %d, %v", n, err)
	}
	if _, w := raw.Written(); w != 1 {
		t.Errorf("%d Writes counted, want 1", w)
	}
	if !seesEnd {
		return
	}
	_ = server.Close() // close_notify, then FIN
	eventually(t, "Alive() = false", func() bool { return !raw.Alive() })
	raw.Begin()
	if n, err := client.Write([]byte("insert")); n != 0 || !errors.Is(err, socket.ErrStale) {
		t.Errorf("Write = %d, %v; want 0, ErrStale", n, err)
	}
	if b, _ := raw.Written(); b != 0 {
		t.Errorf("%d bytes written", b)
	}
}

func TestConnAbortFreesBlockedCalls(t *testing.T) {
	c, _ := pair(t, "tcp")
	cause := errors.New("node given up")
	errs := make(chan error, 2)
	go func() {
		_, err := c.Read(make([]byte, 1))
		errs <- err
	}()
	go func() {
		for { // until the buffers are full and Write blocks
			if _, err := c.Write(make([]byte, 1<<16)); err != nil {
				errs <- err
				return
			}
		}
	}()
	// Both are under way, or will find the connection aborted.
	eventually(t, "a full buffer", func() bool { b, _ := c.Written(); return b > 1<<16 })
	c.Abort(cause)
	c.Abort(errors.New("too late"))
	for range 2 {
		err := <-errs
		if !errors.Is(err, socket.ErrAborted) || !errors.Is(err, cause) {
			t.Errorf("error %v has not ErrAborted and the cause in its chain", err)
		}
		if op := (*net.OpError)(nil); !errors.As(err, &op) {
			t.Errorf("error %T is no *net.OpError, and lib/pq takes the connection for a good one", err)
		}
	}
	if got := c.Aborted(); got != cause {
		t.Errorf("Aborted() = %v, want the first cause", got)
	}
	c.Begin()
	if n, err := c.Write([]byte("x")); n != 0 || !errors.Is(err, cause) || errors.Is(err, socket.ErrStale) {
		t.Errorf("Write after Abort = %d, %v", n, err)
	}
}

func TestConnAbortWithoutCause(t *testing.T) {
	c, _ := pair(t, "tcp")
	if err := c.Aborted(); err != nil {
		t.Errorf("Aborted() = %v before Abort", err)
	}
	c.Abort(nil)
	if err := c.Aborted(); err != socket.ErrAborted {
		t.Errorf("Aborted() = %v, want ErrAborted", err)
	}
	_, err := c.Read(make([]byte, 1))
	if !errors.Is(err, socket.ErrAborted) {
		t.Errorf("Read: %v", err)
	}
}

func TestConnReadErrorsComeBackUnchanged(t *testing.T) {
	c, peer := pair(t, "tcp")
	_ = peer.Close()
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("Read: %v, want io.EOF itself, which drivers compare", err)
	}
	_ = c.Close()
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) || errors.Is(err, socket.ErrAborted) {
		t.Errorf("Read after Close: %v", err)
	}
}

func TestConnWithoutDescriptor(t *testing.T) {
	inner, peer := net.Pipe()
	defer func() { _ = peer.Close() }()
	c := socket.Wrap(inner)
	if _, ok := c.NetConn().(syscall.Conn); ok {
		t.Error("NetConn shows SyscallConn without a descriptor: go-sql-driver would find it dead")
	}
	if _, err := c.SyscallConn(); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("SyscallConn: %v", err)
	}
	if !c.Alive() {
		t.Error("Alive() = false, where nothing can be known")
	}
	c.Abort(context.Canceled)
	if c.Alive() {
		t.Error("Alive() = true after Abort")
	}
	tcp, _ := pair(t, "tcp")
	if _, ok := tcp.NetConn().(syscall.Conn); !ok {
		t.Error("NetConn hides the descriptor from go-sql-driver's liveness check")
	}
}

// TestConnConcurrentUse is for the race detector.
func TestConnConcurrentUse(t *testing.T) {
	c, peer := pair(t, "tcp")
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = io.Copy(peer, peer) })
	wg.Go(func() {
		for c.Aborted() == nil {
			c.Begin()
			_, _ = c.Write([]byte("ping"))
			c.Written()
		}
	})
	wg.Go(func() {
		for b := make([]byte, 64); c.Aborted() == nil; {
			_, _ = c.Read(b)
		}
	})
	for range 4 {
		wg.Go(func() {
			for range 2000 {
				c.Alive()
			}
			c.Abort(context.Canceled)
		})
	}
	wg.Wait()
	if c.Alive() {
		t.Error("Alive() = true after Abort")
	}
}

func TestConnAddsNoAllocation(t *testing.T) {
	c, peer := pair(t, "tcp")
	go func() { _, _ = io.Copy(io.Discard, peer) }()
	b := []byte("select 1")
	for name, f := range map[string]func(){
		"Alive": func() { c.Alive() },
		"Write": func() { c.Begin(); _, _ = c.Write(b); c.Written() },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

func BenchmarkAlive(b *testing.B) {
	for _, waiting := range []bool{false, true} {
		name := "idle"
		if waiting {
			name = "data waits"
		}
		b.Run(name, func(b *testing.B) {
			c, peer := pair(b, "tcp")
			if waiting {
				send(b, peer)
			}
			b.ReportAllocs()
			for b.Loop() {
				c.Alive()
			}
		})
	}
}
