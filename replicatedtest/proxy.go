package replicatedtest

import (
	"bytes"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"
)

// Direction names one or both ways through a [Proxy].
type Direction uint8

const (
	// ToServer is what clients send.
	ToServer Direction = 1 << iota
	// ToClient is what the server answers.
	ToClient
	// BothWays is either.
	BothWays = ToServer | ToClient
)

// Proxy passes TCP connections on to a server and can be told to do so badly.
// What it is told holds for the connections that there are and for new ones,
// until it is told otherwise. All methods may be called from any goroutine.
type Proxy struct {
	port *port
	// begins, if there is one, tells from what a client sends that the delay is
	// to begin on this connection.
	begins func(sent []byte) bool

	mu       sync.Mutex // guards what follows; never held during I/O
	changed  chan struct{}
	target   string
	listener net.Listener // nil while refusing
	links    map[*link]struct{}
	delay    time.Duration
	held     Direction // bytes wait
	lost     Direction // bytes vanish
	swallow  *swallow
	counts   Traffic
	closed   bool

	goroutines sync.WaitGroup
}

// Traffic counts what has gone through a [Proxy].
type Traffic struct {
	Connections int   // accepted so far
	ToServer    int64 // bytes handed on to the server
	ToClient    int64 // bytes handed on to clients
}

// swallow is what [Proxy.SwallowAnswer] has asked for.
type swallow struct {
	text []byte
	skip int
	done chan struct{}
}

// NewProxy starts a proxy in front of the address. [Proxy.Close] ends it.
func NewProxy(target string) (*Proxy, error) { return newProxy(target, nil) }

func newProxy(target string, begins func([]byte) bool) (*Proxy, error) {
	port, err := leasePort()
	if err != nil {
		return nil, err
	}
	p := &Proxy{port: port, begins: begins, target: target, changed: make(chan struct{}), links: map[*link]struct{}{}}
	if err := p.listen(); err != nil {
		port.release()
		return nil, fmt.Errorf("replicatedtest: proxy: %w", err)
	}
	return p, nil
}

// Proxy starts a proxy in front of the node, which ends with the test.
func (n *Node) Proxy(tb testing.TB) *NodeProxy {
	tb.Helper()
	p, err := NewProxy(n.Addr())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Close)
	return &NodeProxy{Proxy: p, node: n}
}

// NodeProxy is a [Proxy] in front of a [Node].
type NodeProxy struct {
	*Proxy
	node *Node
}

// DSN is [Node.DSN] through the proxy.
func (p *NodeProxy) DSN(keys ...string) string { return p.node.c.DSNAt([]string{p.Addr()}, keys...) }

// Addr is where clients find the proxy, as "127.0.0.1:20123".
func (p *Proxy) Addr() string { return p.port.addr() }

// Port is the port of [Proxy.Addr].
func (p *Proxy) Port() int { return p.port.number }

// Pass undoes everything: bytes go through at once, connections are accepted.
// Bytes that waited are sent. Connections that lost bytes by
// [Proxy.Discard] are closed, as they make no sense any more.
func (p *Proxy) Pass() {
	p.change(func() {
		p.delay, p.held, p.lost, p.swallow = 0, 0, 0, nil
		for l := range p.links {
			l.swallow = nil
			if l.damaged {
				l.close()
			}
		}
	})
	_ = p.listen()
}

// Delay makes each byte arrive d after it was sent, in both directions.
func (p *Proxy) Delay(d time.Duration) { p.change(func() { p.delay = d }) }

// Stall accepts connections and bytes, and hands on none that go in the
// direction, until [Proxy.Pass]: a server that hangs, or a network that has
// stopped for now.
func (p *Proxy) Stall(way Direction) { p.change(func() { p.held = way }) }

// Discard accepts connections and bytes, and throws away those that go in the
// direction: a network that has lost them for good.
func (p *Proxy) Discard(way Direction) { p.change(func() { p.lost = way }) }

// Cut closes all connections. New ones are accepted.
func (p *Proxy) Cut() {
	p.change(func() {
		for l := range p.links {
			l.close()
		}
	})
}

// Refuse closes all connections and refuses new ones, as a host does on which
// nothing listens.
func (p *Proxy) Refuse() {
	p.change(func() {
		if p.listener != nil {
			_ = p.listener.Close()
			p.listener = nil
		}
		for l := range p.links {
			l.close()
		}
	})
}

// SwallowAnswer loses one answer of the server on the wire: the client sends
// text, the server gets it, executes it and answers, and the answer is thrown
// away and the connection closed. It happens once, on the first connection on
// which a client sends the text ("" is anything); the channel is closed when it
// has happened.
//
// skip is how many answers pass before, beginning with the answer to the
// message that holds the text. It is 0 for a statement sent as text. One with
// arguments is prepared first, so that 1 is the answer to its execution, both
// with lib/pq and go-sql-driver.
func (p *Proxy) SwallowAnswer(text string, skip int) <-chan struct{} {
	done := make(chan struct{})
	p.change(func() { p.swallow = &swallow{text: []byte(text), skip: skip, done: done} })
	return done
}

// SetTarget makes new connections go to another server, and closes those that
// there are.
func (p *Proxy) SetTarget(addr string) {
	p.change(func() { p.target = addr })
	p.Cut()
}

// Traffic returns what has gone through so far.
func (p *Proxy) Traffic() Traffic {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}

// Open returns how many connections there are now.
func (p *Proxy) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// Close ends the proxy and all its connections and waits until it has. Further
// calls do nothing.
func (p *Proxy) Close() {
	p.mu.Lock()
	closed := p.closed
	p.closed = true
	p.mu.Unlock()
	if closed {
		return
	}
	p.Refuse()
	p.goroutines.Wait()
	p.port.release()
}

// change changes the state and wakes all who wait for that.
func (p *Proxy) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Proxy) listen() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.listener != nil {
		return nil
	}
	listener, err := net.Listen("tcp", p.Addr())
	if err != nil {
		return err
	}
	p.listener = listener
	p.goroutines.Go(func() { p.accept(listener) })
	return nil
}

func (p *Proxy) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return // closed by Refuse
		}
		p.mu.Lock()
		p.counts.Connections++
		target := p.target
		p.mu.Unlock()
		p.goroutines.Go(func() { p.serve(client, target) })
	}
}

func (p *Proxy) serve(client net.Conn, target string) {
	server, err := net.DialTimeout("tcp", target, opTimeout)
	if err != nil {
		// A reset, not an orderly end: there is nobody behind us.
		_ = client.(*net.TCPConn).SetLinger(0)
		_ = client.Close()
		return
	}
	l := &link{proxy: p, client: client, server: server, ended: make(chan struct{}), begun: p.begins == nil}
	p.mu.Lock()
	refused := p.listener == nil || p.target != target
	p.links[l] = struct{}{}
	if refused {
		l.close()
	}
	p.mu.Unlock()

	var pumps sync.WaitGroup
	pumps.Go(func() { l.pump(ToServer, client, server) })
	pumps.Go(func() { l.pump(ToClient, server, client) })
	pumps.Wait()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// link is one connection through the proxy.
type link struct {
	proxy          *Proxy
	client, server net.Conn
	once           sync.Once
	ended          chan struct{}

	// Guarded by proxy.mu.
	begun   bool     // is delayed
	damaged bool     // has lost bytes
	tail    []byte   // what the client sent last, in case a text is split
	swallow *swallow // waits for an answer of this connection
	skip    int      // answers still to pass
	asking  bool     // the client has sent something since the server last did
}

// close may be called at any time, also with proxy.mu held.
func (l *link) close() {
	l.once.Do(func() {
		close(l.ended)
		_ = l.client.Close()
		_ = l.server.Close()
	})
}

// piece is some bytes on their way, and when they were read; no bytes are the
// end of the direction.
type piece struct {
	data []byte
	read time.Time
}

// piecesOnTheWay bounds what a delayed connection holds: 256 pieces of at most
// 32 KiB.
const piecesOnTheWay = 256

// pump hands on one direction until it ends. Reading and writing are apart, so
// that a delay is not added up over the pieces.
func (l *link) pump(way Direction, from, to net.Conn) {
	queue := make(chan piece, piecesOnTheWay)
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(queue)
		for {
			buffer := make([]byte, 32<<10)
			n, err := from.Read(buffer)
			if n > 0 {
				select {
				case queue <- piece{buffer[:n], time.Now()}:
				case <-l.ended:
					return
				}
			}
			if err != nil {
				return
			}
		}
	})
	for x := range queue {
		if !l.pass(way, x) {
			continue
		}
		if _, err := to.Write(x.data); err != nil {
			break
		}
	}
	// A side that has closed makes the other one close: database protocols
	// know no half-open connections. What was on its way has been written.
	l.close()
	reader.Wait()
}

// pass waits until the piece may go on, and reports whether it may at all.
func (l *link) pass(way Direction, x piece) bool {
	p := l.proxy
	for {
		p.mu.Lock()
		var wait time.Duration
		if l.begun {
			wait = time.Until(x.read.Add(p.delay))
		}
		if p.held&way == 0 && wait <= 0 {
			ok := l.decideLocked(way, x.data)
			p.mu.Unlock()
			return ok
		}
		held, changed := p.held&way != 0, p.changed
		p.mu.Unlock()
		if held {
			select {
			case <-changed:
			case <-l.ended:
				return false
			}
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-changed:
		case <-l.ended:
		}
		timer.Stop()
		if l.isEnded() {
			return false
		}
	}
}

func (l *link) isEnded() bool {
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

// decideLocked decides about a piece whose time has come. It is called with
// proxy.mu held.
func (l *link) decideLocked(way Direction, data []byte) bool {
	p := l.proxy
	if p.lost&way != 0 {
		l.damaged = true
		return false
	}
	if way == ToServer {
		l.begun = l.begun || p.begins(data)
		l.asked(data)
		p.counts.ToServer += int64(len(data))
		return true
	}
	if l.swallow != nil && l.skip == 0 {
		close(l.swallow.done)
		l.swallow = nil
		l.close()
		return false
	}
	l.asking = false
	p.counts.ToClient += int64(len(data))
	return true
}

// asked looks for the text whose answer is to be lost. Called with proxy.mu
// held.
func (l *link) asked(data []byte) {
	p := l.proxy
	if l.swallow != nil && !l.asking {
		l.skip-- // a further question: the former answer has passed
	}
	l.asking = true
	if p.swallow == nil {
		return
	}
	l.tail = append(l.tail, data...)
	if bytes.Contains(l.tail, p.swallow.text) {
		l.swallow, l.skip, l.tail = p.swallow, p.swallow.skip, nil
		p.swallow = nil
		return
	}
	if keep := max(0, len(p.swallow.text)-1); len(l.tail) > keep {
		l.tail = append([]byte(nil), l.tail[len(l.tail)-keep:]...)
	}
}
