package replicatedtest

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// serve passes one connection on to the first of the targets that takes it.
// cuts is how often connections had been closed when it was accepted.
func (p *Proxy) serve(client net.Conn, targets []string, cuts int) {
	var server net.Conn
	err := errors.New("no target")
	for _, target := range targets {
		if server, err = net.DialTimeout("tcp", target, opTimeout); err == nil {
			break
		}
	}
	if err != nil {
		// A reset, not an orderly end: there is nobody behind us.
		_ = client.(*net.TCPConn).SetLinger(0)
		_ = client.Close()
		return
	}
	l := newLink(p, client, server)
	p.mu.Lock()
	p.links[l] = struct{}{}
	if p.listener == nil || p.cuts != cuts {
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
	client, server net.Conn // no server: nobody is behind
	once           sync.Once
	ended          chan struct{}

	// Guarded by proxy.mu.
	begun   bool     // is delayed
	damaged bool     // has lost something
	tail    []byte   // what the client sent last, in case a text is split
	swallow *swallow // waits for an answer of this connection
	skip    int      // answers still to pass
	asking  bool     // the client has sent something since the server last did
}

func newLink(p *Proxy, client, server net.Conn) *link {
	return &link{proxy: p, client: client, server: server, ended: make(chan struct{}), begun: p.begins == nil}
}

// close may be called at any time, also with proxy.mu held.
func (l *link) close() {
	l.once.Do(func() {
		close(l.ended)
		_ = l.client.Close()
		if l.server != nil {
			_ = l.server.Close()
		}
	})
}

// starve is a connection that nobody is behind: what the client sends is lost,
// until the connection is closed.
func (l *link) starve() {
	_, _ = io.Copy(io.Discard, l.client)
	l.awaitHole()
	l.close()
	p := l.proxy
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// awaitHole is called when one side has closed: as long as everything vanishes,
// the other side must not hear of it.
func (l *link) awaitHole() {
	p := l.proxy
	for {
		p.mu.Lock()
		hole, changed := p.hole, p.changed
		if hole {
			l.damaged = true
		}
		p.mu.Unlock()
		if !hole {
			return
		}
		select {
		case <-changed:
		case <-l.ended:
			return
		}
	}
}

// pump hands on one direction until it ends. Reading and writing are apart, so
// that a delay is not added up over the pieces.
func (l *link) pump(way Direction, from, to net.Conn) {
	queue := newPieces()
	var reader sync.WaitGroup
	reader.Go(func() {
		defer queue.end()
		buffer := make([]byte, 32<<10)
		for {
			n, err := from.Read(buffer)
			if n > 0 && !queue.put(buffer[:n], time.Now()) || err != nil {
				return
			}
		}
	})
	for {
		x, ok := queue.take()
		if !ok {
			break
		}
		if !l.pass(way, x) {
			continue
		}
		if _, err := to.Write(x.data); err != nil {
			break
		}
	}
	// A side that has closed makes the other one close: database protocols
	// know no half-open connections. What was on its way has been written.
	l.awaitHole()
	l.close()
	queue.stop()
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
		if p.hole || p.held&way == 0 && wait <= 0 {
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
	if p.hole || p.lost&way != 0 {
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
