package replicatedtest

import (
	"errors"
	"fmt"
	"net"
	"slices"
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

// Proxy passes TCP connections on to a server, or to several in turn, and can
// be told to do so badly. What it is told holds for the connections that there
// are and for new ones, until it is told otherwise. All methods may be called
// from any goroutine.
type Proxy struct {
	port *port
	// begins, if there is one, tells from what a client sends that the delay is
	// to begin on this connection.
	begins func(sent []byte) bool

	mu       sync.Mutex // guards what follows; never held during I/O
	changed  chan struct{}
	targets  []string     // new connections go to them in turn
	turn     int          // whose turn it is
	cuts     int          // how often all connections have been closed
	listener net.Listener // nil while refusing
	links    map[*link]struct{}
	delay    time.Duration
	held     Direction // bytes wait
	lost     Direction // bytes vanish
	hole     bool      // bytes and ends vanish, and nobody is behind new connections
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
func NewProxy(target string) (*Proxy, error) { return newProxy([]string{target}, nil) }

// NewBalancer starts a proxy that is one address for several servers, as a TCP
// load balancer is: each new connection goes to the next one in turn, and to
// the one after it if nothing listens there. [Proxy.Close] ends it.
func NewBalancer(targets ...string) (*Proxy, error) {
	if len(targets) == 0 {
		return nil, errors.New("replicatedtest: balancer: no servers")
	}
	return newProxy(targets, nil)
}

func newProxy(targets []string, begins func([]byte) bool) (*Proxy, error) {
	port, err := leasePort()
	if err != nil {
		return nil, err
	}
	p := &Proxy{port: port, begins: begins, targets: slices.Clone(targets), changed: make(chan struct{}), links: map[*link]struct{}{}}
	if err := p.listen(); err != nil {
		port.release()
		return nil, fmt.Errorf("replicatedtest: proxy: %w", err)
	}
	return p, nil
}

// Proxy starts a proxy in front of the node, which ends with the test.
func (n *Node) Proxy(tb testing.TB) *NodeProxy {
	tb.Helper()
	return n.c.Balancer(tb, n)
}

// Balancer starts a proxy that is one address for the nodes, as [NewBalancer]
// does, and which ends with the test.
func (c *Cluster) Balancer(tb testing.TB, nodes ...*Node) *NodeProxy {
	tb.Helper()
	var targets []string
	for _, n := range nodes {
		targets = append(targets, n.Addr())
	}
	p, err := NewBalancer(targets...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Close)
	return &NodeProxy{Proxy: p, c: c}
}

// NodeProxy is a [Proxy] in front of a [Node], or of several.
type NodeProxy struct {
	*Proxy
	c *Cluster
}

// DSN is [Node.DSN] through the proxy.
func (p *NodeProxy) DSN(keys ...string) string { return p.c.DSNAt([]string{p.Addr()}, keys...) }

// Addr is where clients find the proxy, as "127.0.0.1:20123".
func (p *Proxy) Addr() string { return p.port.addr() }

// Port is the port of [Proxy.Addr].
func (p *Proxy) Port() int { return p.port.number }

// Pass undoes everything: bytes go through at once, connections are accepted.
// Bytes that waited are sent. Connections that lost bytes by [Proxy.Discard],
// or anything by [Proxy.Blackhole], are closed, as they make no sense any more.
func (p *Proxy) Pass() {
	p.change(func() {
		p.delay, p.held, p.lost, p.hole, p.swallow = 0, 0, 0, false, nil
		for l := range p.links {
			l.swallow = nil
			if l.damaged {
				l.close()
			}
		}
	})
	_ = p.listen()
}

// Delay makes each byte arrive d after it was sent, in both directions. It
// holds at once for the bytes that are on their way: a shorter delay lets go
// those whose time has come, a longer one keeps them.
func (p *Proxy) Delay(d time.Duration) { p.change(func() { p.delay = d }) }

// Stall accepts connections and bytes, and hands on none that go in the
// direction, until [Proxy.Pass]: a server that hangs, or a network that has
// stopped for now.
func (p *Proxy) Stall(way Direction) { p.change(func() { p.held = way }) }

// Discard accepts connections and bytes, and throws away those that go in the
// direction: a network that has lost them for good.
func (p *Proxy) Discard(way Direction) { p.change(func() { p.lost = way }) }

// Blackhole makes everything vanish, until [Proxy.Pass]: a network that is gone
// without a word. What is sent, or on its way, is lost in both directions, and
// so is the end of a connection: neither side hears that the other one has
// closed. New connections are accepted, as nothing else can be had on loopback,
// and nobody is behind them; the server hears nothing of them.
//
// Connections that lost something, or that began meanwhile, are closed by Pass.
// One that nobody used lives on, as it would.
func (p *Proxy) Blackhole() { p.change(func() { p.hole = true }) }

// Cut closes all connections. New ones are accepted.
func (p *Proxy) Cut() {
	p.change(p.cutLocked)
}

// cutLocked is called with mu held.
func (p *Proxy) cutLocked() {
	p.cuts++
	for l := range p.links {
		l.close()
	}
}

// Refuse closes all connections and refuses new ones, as a host does on which
// nothing listens.
func (p *Proxy) Refuse() {
	p.change(func() {
		if p.listener != nil {
			_ = p.listener.Close()
			p.listener = nil
		}
		p.cutLocked()
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
	p.change(func() {
		p.targets = []string{addr}
		p.cutLocked()
	})
}

// Redirect makes new connections go to other servers, in turn, and leaves those
// that there are where they are: a name that means another server from now on,
// whose old address still answers. Without an address it does nothing.
func (p *Proxy) Redirect(addrs ...string) {
	if len(addrs) == 0 {
		return
	}
	p.change(func() { p.targets = slices.Clone(addrs) })
}

// delays reports whether a delay is in force on a connection that there is.
func (p *Proxy) delays() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		if l.begun {
			return true
		}
	}
	return false
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
		if p.hole {
			l := newLink(p, client, nil)
			l.damaged = true
			p.links[l] = struct{}{}
			if p.listener == nil {
				l.close() // refused since
			}
			p.mu.Unlock()
			p.goroutines.Go(func() { l.starve() })
			continue
		}
		first := p.turn % len(p.targets)
		targets := append(slices.Clone(p.targets[first:]), p.targets[:first]...)
		p.turn = first + 1
		cuts := p.cuts
		p.mu.Unlock()
		p.goroutines.Go(func() { p.serve(client, targets, cuts) })
	}
}
