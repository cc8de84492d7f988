package socket_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/internal/socket"
)

// listenAt listens at the addresses, all with one port, and accepts.
func listenAt(t *testing.T, addrs ...netip.Addr) (port string) {
	t.Helper()
	lns, err := listenTogether(addrs)
	for try := 0; err != nil && try < 20; try++ {
		lns, err = listenTogether(addrs)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, ln := range lns {
		t.Cleanup(func() { _ = ln.Close() })
		go func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				defer c.Close()
			}
		}()
	}
	_, port, _ = net.SplitHostPort(lns[0].Addr().String())
	return port
}

// listenTogether fails if the port that it got at the first address is taken at
// another one.
func listenTogether(addrs []netip.Addr) (lns []net.Listener, err error) {
	port := "0"
	for _, a := range addrs {
		ln, err := net.Listen("tcp", net.JoinHostPort(a.String(), port))
		if err != nil {
			for _, ln := range lns {
				_ = ln.Close()
			}
			return nil, err
		}
		lns = append(lns, ln)
		_, port, _ = net.SplitHostPort(ln.Addr().String())
	}
	return lns, nil
}

func loopback(last byte) netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 0, last}) }

func answering(addrs ...netip.Addr) *socket.Host {
	return socket.Known(func(context.Context, string) ([]netip.Addr, error) { return addrs, nil })
}

func peer(c net.Conn) netip.Addr { return c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap() }

func TestDialerSpreadsOverTheAddressesOfAName(t *testing.T) {
	port := listenAt(t, loopback(2), loopback(3))
	h := answering(loopback(2), loopback(3))
	count := make(map[netip.Addr]int)
	for range 10 {
		c := dial(t, &socket.Dialer{Host: h}, "db.test:"+port)
		count[peer(c)]++
	}
	if count[loopback(2)] != 5 || count[loopback(3)] != 5 {
		t.Errorf("ten connections lead to %v", count)
	}
}

func TestDialerTriesTheOtherAddresses(t *testing.T) {
	port := listenAt(t, loopback(2))
	h := answering(loopback(3), loopback(2), loopback(4))
	for range 3 {
		if c := dial(t, &socket.Dialer{Host: h}, "db.test:"+port); peer(c) != loopback(2) {
			t.Errorf("connected to %v", peer(c))
		}
	}
	_, err := (&socket.Dialer{Host: answering(loopback(3), loopback(4))}).Dial("tcp", "db.test:"+port)
	if op := (*net.OpError)(nil); !errors.Is(err, syscall.ECONNREFUSED) || !errors.As(err, &op) || op.Op != "dial" {
		t.Errorf("no address takes connections: %v", err)
	}
}

func TestDialerOverANameThatIsNotKnown(t *testing.T) {
	failure := &net.DNSError{Err: "no such host", Name: "db.test", IsNotFound: true}
	h := socket.Known(func(context.Context, string) ([]netip.Addr, error) { return nil, failure })
	_, err := (&socket.Dialer{Host: h}).Dial("tcp", "db.test:1")
	if dns := (*net.DNSError)(nil); !errors.As(err, &dns) || dns != failure || !strings.HasPrefix(err.Error(), "dial tcp: ") {
		t.Errorf("error %v", err)
	}
}

// An address that does not answer delays a dial for a moment, and the next ones not
// at all.
func TestDialerLeavesASlowAddressBehind(t *testing.T) {
	port := listenAt(t, loopback(2), loopback(3))
	h := answering(loopback(2), loopback(3))
	var hangs, hung atomic.Int64
	nd := &net.Dialer{ControlContext: func(ctx context.Context, _, address string, _ syscall.RawConn) error {
		if strings.HasPrefix(address, "127.0.0.2:") && hangs.Load() > 0 {
			hung.Add(1)
			<-ctx.Done()
		}
		return nil
	}}
	hangs.Store(1)
	for range 4 {
		c, err := h.DialWith(t.Context(), nd, port)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if peer(c) != loopback(3) {
			t.Errorf("connected to %v", peer(c))
		}
	}
	if n := hung.Load(); n > 1 {
		t.Errorf("the address that hangs was dialled %d times", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := answering(loopback(2)).DialWith(ctx, nd, port); err == nil {
		t.Error("a dial that hangs has connected")
	}
}

// Whoever is refused by the server itself was of as little use as a dead address.
func TestDialerThatIsAbortedWhileOpening(t *testing.T) {
	port := listenAt(t, loopback(2), loopback(3))
	for _, c := range []struct {
		cause   error
		shunned bool
	}{{errors.New("the database system is starting up"), true}, {context.Canceled, false}} {
		h := answering(loopback(2), loopback(3))
		steady := dial(t, &socket.Dialer{Host: h}, "db.test:"+port)
		d := socket.Dialer{Host: h}
		other := dial(t, &d, "db.test:"+port)
		if peer(other) == peer(steady) {
			t.Fatal("the second connection leads to where the first one does")
		}
		d.Abort(c.cause)
		next := dial(t, &socket.Dialer{Host: h}, "db.test:"+port)
		if shunned := peer(next) == peer(steady); shunned != c.shunned {
			t.Errorf("after %q the address is shunned: %v, want %v", c.cause, shunned, c.shunned)
		}
	}
}

// An address that has served after all is as good as the others.
func TestDialerForgetsFailuresWhenConnected(t *testing.T) {
	port := listenAt(t, loopback(2), loopback(3))
	h := answering(loopback(2), loopback(3))
	d := socket.Dialer{Host: h}
	c := dial(t, &d, "db.test:"+port).(*socket.Conn)
	dial(t, &socket.Dialer{Host: h}, "db.test:"+port)
	c.Shun()
	d.Socket()
	_ = c.Close()
	if next := dial(t, &socket.Dialer{Host: h}, "db.test:"+port); peer(next) != peer(c) {
		t.Errorf("connected to %v, where %v has no connection", peer(next), peer(c))
	}
}

// What cancels a statement has to go where the statement runs.
func TestSideConnectionGoesToTheSocketsServer(t *testing.T) {
	port := listenAt(t, loopback(2), loopback(3))
	h := answering(loopback(2), loopback(3))
	for range 4 {
		d := socket.Dialer{Host: h}
		c := dial(t, &d, "db.test:"+port)
		d.Socket()
		if side := dial(t, &d, "db.test:"+port); peer(side) != peer(c) {
			t.Errorf("the side connection leads to %v, the socket to %v", peer(side), peer(c))
		}
	}
}

// A resolver that hangs holds up the first dial for a moment, and no other.
func TestDialerWhoseResolverHangs(t *testing.T) {
	port := listenAt(t, loopback(2))
	var hangs atomic.Bool
	h := socket.Known(func(ctx context.Context, _ string) ([]netip.Addr, error) {
		if hangs.Load() {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return []netip.Addr{loopback(2)}, nil
	})
	dial(t, &socket.Dialer{Host: h}, "db.test:"+port)
	hangs.Store(true)
	began := time.Now()
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		c, err := (&socket.Dialer{Host: h}).DialContext(ctx, "tcp", "db.test:"+port)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("twenty dials took %v", took)
	}
}

// Numbers, and names other than the host's, are dialled as ever.
func TestDialerOverWhatIsNotTheHostsName(t *testing.T) {
	port := listenAt(t, loopback(2))
	h := answering(loopback(3))
	c := dial(t, &socket.Dialer{Host: h}, "127.0.0.2:"+port).(*socket.Conn)
	if peer(c) != loopback(2) || c.Gone() || c.Surplus() {
		t.Errorf("connected to %v", peer(c))
	}
	var named socket.Host
	if c, err := (&socket.Dialer{Host: &named}).Dial("tcp", "localhost:"+port); err == nil { // nothing listens there
		_ = c.Close()
		t.Error("connected to localhost")
	}
	if c := dial(t, &socket.Dialer{Host: &named}, "127.0.0.2:"+port); peer(c) != loopback(2) {
		t.Errorf("connected to %v", peer(c))
	}
}
