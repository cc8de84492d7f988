package replicatedtest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

// echoServer answers each byte with itself, and tells what it has got.
func echoServer(t *testing.T) (addr string, got func() string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var mu sync.Mutex
	var all bytes.Buffer
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				buffer := make([]byte, 1024)
				for {
					n, err := c.Read(buffer)
					if err != nil {
						return
					}
					mu.Lock()
					all.Write(buffer[:n])
					mu.Unlock()
					if _, err := c.Write(buffer[:n]); err != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(serving.Wait)
	t.Cleanup(func() { l.Close() })
	return l.Addr().String(), func() string {
		mu.Lock()
		defer mu.Unlock()
		return all.String()
	}
}

func newProxy(t *testing.T, target string) *replicatedtest.Proxy {
	t.Helper()
	p, err := replicatedtest.NewProxy(target)
	must(t, err)
	t.Cleanup(p.Close)
	return p
}

func dial(t *testing.T, p *replicatedtest.Proxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	_, err := c.Write([]byte(text))
	must(t, err)
}

// receive returns what arrives within the time, up to n bytes.
func receive(c net.Conn, n int, d time.Duration) (string, error) {
	_ = c.SetReadDeadline(time.Now().Add(d))
	buffer := make([]byte, n)
	k, err := io.ReadFull(c, buffer)
	return string(buffer[:k]), err
}

func expect(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if got, err := receive(c, len(text), 10*time.Second); got != text {
		t.Fatalf("received %q (%v), want %q", got, err, text)
	}
}

func expectSilence(t *testing.T, c net.Conn) {
	t.Helper()
	if got, err := receive(c, 1, 100*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("received %q (%v), want nothing", got, err)
	}
}

func expectClosed(t *testing.T, c net.Conn) {
	t.Helper()
	if got, err := receive(c, 1, 10*time.Second); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("received %q (%v), want a closed connection", got, err)
	}
}

func TestProxyPassesAndCounts(t *testing.T) {
	addr, _ := echoServer(t)
	p := newProxy(t, addr)
	c := dial(t, p)
	send(t, c, "hello")
	expect(t, c, "hello")
	large := string(bytes.Repeat([]byte("x"), 1<<20))
	go send(t, c, large)
	expect(t, c, large)
	if got := p.Traffic(); got.Connections != 1 || got.ToServer != 5+1<<20 || got.ToClient != 5+1<<20 {
		t.Errorf("traffic %+v", got)
	}
	if got := p.Open(); got != 1 {
		t.Errorf("%d open", got)
	}
}

func TestProxyDelaysBothWays(t *testing.T) {
	addr, _ := echoServer(t)
	p := newProxy(t, addr)
	c := dial(t, p)
	p.Delay(60 * time.Millisecond)
	begin := time.Now()
	send(t, c, "a")
	send(t, c, "b")
	expect(t, c, "ab")
	if got := time.Since(begin); got < 120*time.Millisecond {
		t.Errorf("answer after %v", got)
	}
	p.Delay(time.Hour)
	send(t, c, "c")
	expectSilence(t, c)
	p.Pass()
	expect(t, c, "c")
}

func TestProxyStallsUntilPassed(t *testing.T) {
	addr, got := echoServer(t)
	p := newProxy(t, addr)
	old := dial(t, p)
	send(t, old, "1")
	expect(t, old, "1")

	p.Stall(replicatedtest.ToClient)
	send(t, old, "2")
	expectSilence(t, old)
	if s := got(); s != "12" {
		t.Errorf("the server got %q", s)
	}
	p.Stall(replicatedtest.ToServer)
	fresh := dial(t, p)
	send(t, fresh, "3")
	expectSilence(t, fresh)
	expect(t, old, "2")
	if s := got(); s != "12" {
		t.Errorf("the server got %q", s)
	}
	p.Pass()
	expect(t, fresh, "3")
}

func TestProxyDiscardLosesBytes(t *testing.T) {
	addr, got := echoServer(t)
	p := newProxy(t, addr)
	unharmed, c := dial(t, p), dial(t, p)
	send(t, unharmed, "1")
	expect(t, unharmed, "1")
	p.Discard(replicatedtest.BothWays)
	send(t, c, "2")
	expectSilence(t, c)
	p.Pass()
	expectClosed(t, c)
	send(t, unharmed, "3")
	expect(t, unharmed, "3")
	if s := got(); s != "13" {
		t.Errorf("the server got %q", s)
	}
}

func TestProxyBlackholeLosesEverything(t *testing.T) {
	addr, got := echoServer(t)
	p := newProxy(t, addr)
	idle, used, gone := dial(t, p), dial(t, p), dial(t, p)
	for _, c := range []net.Conn{idle, used, gone} {
		send(t, c, "1")
		expect(t, c, "1")
	}
	p.Blackhole()
	send(t, used, "2")
	fresh := dial(t, p)
	send(t, fresh, "3")
	must(t, gone.Close())
	expectSilence(t, used)
	expectSilence(t, fresh)
	if got := p.Open(); got != 4 {
		t.Errorf("%d open, want those of before, the one that the server has not heard the end of, and the new one", got)
	}
	p.Pass()
	expectClosed(t, used)
	expectClosed(t, fresh)
	send(t, idle, "4")
	expect(t, idle, "4")
	if s := got(); s != "1114" {
		t.Errorf("the server got %q", s)
	}
	p.Blackhole()
	fresh = dial(t, p)
	p.Refuse()
	expectClosed(t, fresh)
}

// The end of the server is not heard either.
func TestProxyBlackholeHidesTheEndOfTheServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	p := newProxy(t, l.Addr().String())
	c := dial(t, p)
	server, err := l.Accept()
	must(t, err)
	send(t, c, "1")
	expect(t, server, "1")
	p.Blackhole()
	must(t, server.Close())
	expectSilence(t, c)
	p.Pass()
	expectClosed(t, c)
}

func TestProxyCutAndRefuse(t *testing.T) {
	addr, _ := echoServer(t)
	p := newProxy(t, addr)
	c := dial(t, p)
	send(t, c, "1")
	expect(t, c, "1")
	p.Cut()
	expectClosed(t, c)
	c = dial(t, p)
	send(t, c, "2")
	expect(t, c, "2")
	p.Refuse()
	expectClosed(t, c)
	if c, err := net.Dial("tcp", p.Addr()); err == nil {
		c.Close()
		t.Error("a connection was accepted")
	}
	p.Pass()
	c = dial(t, p)
	send(t, c, "3")
	expect(t, c, "3")
	p.Close()
	p.Close()
	expectClosed(t, c)
	if got := p.Open(); got != 0 {
		t.Errorf("%d open after Close", got)
	}
}

func TestProxyClosesWhenNobodyIsBehind(t *testing.T) {
	addr, _ := echoServer(t)
	nobody := newProxy(t, addr)
	nobody.Refuse()
	p := newProxy(t, nobody.Addr())
	// The reset may be there before the client knows that it is connected.
	if c, err := net.Dial("tcp", p.Addr()); err == nil {
		expectClosed(t, c)
		c.Close()
	}
	p.SetTarget(addr)
	c := dial(t, p)
	send(t, c, "1")
	expect(t, c, "1")
}

func TestProxySwallowsOneAnswer(t *testing.T) {
	addr, got := echoServer(t)
	p := newProxy(t, addr)
	other, c := dial(t, p), dial(t, p)
	done := p.SwallowAnswer("needle", 1)
	send(t, other, "1")
	expect(t, other, "1")
	send(t, c, "a nee")
	expect(t, c, "a nee")
	send(t, c, "dle;")
	expect(t, c, "dle;")
	select {
	case <-done:
		t.Fatal("too early")
	default:
	}
	send(t, c, "x")
	expectClosed(t, c)
	<-done
	if s := got(); s != "1a needle;x" {
		t.Errorf("the server got %q", s)
	}
	send(t, other, "needle")
	expect(t, other, "needle")
	send(t, other, "again")
	expect(t, other, "again")
}

// An INSERT whose answer is lost has taken effect, with each way in which the
// drivers send it.
func TestProxyLosesTheAnswerOfAnInsert(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: -1})
		n := c.Primary()
		execSQL(t, n.DB(t), "CREATE TABLE t (id int)")
		p := n.Proxy(t)
		placeholder := map[bool]string{true: "$1", false: "?"}[e == replicatedtest.Postgres]
		for i, args := range [][]any{nil, {1}} {
			text := "INSERT INTO t VALUES (0)"
			if args != nil {
				text = "INSERT INTO t VALUES (" + placeholder + ")"
			}
			done := p.SwallowAnswer("INSERT", i)
			db := openBare(t, c.DriverName(), p.DSN())
			conn, err := db.Conn(context.Background()) // one try, unlike a DB
			must(t, err)
			if _, err := conn.ExecContext(context.Background(), text, args...); err == nil {
				t.Errorf("%s: no error", text)
			}
			conn.Close()
			<-done
			if got := query(t, n.DB(t), fmt.Sprintf("SELECT count(*) FROM t WHERE id = %d", i)); got != "1" {
				t.Errorf("%s: %s rows", text, got)
			}
		}
	})
}
