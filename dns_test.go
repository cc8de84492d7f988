package replicated_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
)

// nameserver answers the lookups of this process, for the names that it is told of.
// It knows their IPv4 addresses, and of other names that there are none.
type nameserver struct {
	conn net.PacketConn

	mu    sync.Mutex
	names map[string][]netip.Addr
	mode  nameserverMode
	asked int
}

type nameserverMode int

const (
	nameserverAnswers nameserverMode = iota
	nameserverFails                  // SERVFAIL
	nameserverHangs
)

// newNameserver takes the place of the system's resolver until the test ends.
func newNameserver(t *testing.T) *nameserver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	s := &nameserver{conn: conn, names: make(map[string][]netip.Addr)}
	var served sync.WaitGroup
	served.Go(s.serve)
	system := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		d := net.Dialer{Resolver: system} // or it would look at what is replaced here
		return d.DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	t.Cleanup(func() {
		net.DefaultResolver = system
		_ = conn.Close()
		served.Wait()
	})
	return s
}

// is has the name stand for the addresses from now on.
func (s *nameserver) is(name string, addrs ...netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[name] = addrs
}

func (s *nameserver) set(mode nameserverMode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mode = mode
}

func (s *nameserver) questions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func (s *nameserver) serve() {
	buf := make([]byte, 1500)
	for {
		n, from, err := s.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		if answer := s.answer(buf[:n]); answer != nil {
			_, _ = s.conn.WriteTo(answer, from)
		}
	}
}

// answer makes the answer to a message of RFC 1035 with one question.
func (s *nameserver) answer(question []byte) []byte {
	const header, typeA, classIN, ttl = 12, 1, 1, 1
	if len(question) < header {
		return nil
	}
	var name []string
	end := header
	for end < len(question) && question[end] != 0 {
		next := end + 1 + int(question[end])
		if next > len(question) {
			return nil
		}
		name = append(name, string(question[end+1:next]))
		end = next
	}
	end += 5 // the root, the type and the class
	if end > len(question) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	flags := uint16(0x8180) // an answer, recursion available
	addrs := s.names[strings.ToLower(strings.Join(name, "."))]
	switch {
	case s.mode == nameserverHangs:
		return nil
	case s.mode == nameserverFails:
		flags |= 2
		addrs = nil
	case addrs == nil:
		flags |= 3 // no such name
	case binary.BigEndian.Uint16(question[end-4:]) != typeA:
		addrs = nil
	}
	out := append([]byte(nil), question[:end]...)
	for i, v := range []uint16{flags, 1, uint16(len(addrs)), 0, 0} {
		binary.BigEndian.PutUint16(out[2+2*i:], v)
	}
	for _, a := range addrs {
		out = append(out, 0xc0, header, 0, typeA, 0, classIN, 0, 0, 0, ttl, 0, 4)
		out = append(out, a.AsSlice()...)
	}
	return out
}

// member is one of several addresses, all with one port, each of which leads to a
// server.
type member struct {
	netip.Addr
	listener net.Listener
	target   string

	mu       sync.Mutex
	closed   bool
	links    map[net.Conn]struct{} // the clients' ends
	accepted int

	served sync.WaitGroup
}

// members makes an address for each of the servers, from 127.0.0.2 on, and returns
// the port that they share. Those of name are told to the name server by the test.
func members(t *testing.T, targets ...string) (all []*member, port string) {
	t.Helper()
	for try := 0; ; try++ {
		all, port = nil, "0"
		var err error
		for i, target := range targets {
			m := &member{Addr: netip.AddrFrom4([4]byte{127, 0, 0, byte(2 + i)}), target: target, links: make(map[net.Conn]struct{})}
			if m.listener, err = net.Listen("tcp", net.JoinHostPort(m.String(), port)); err != nil {
				break
			}
			_, port, _ = net.SplitHostPort(m.listener.Addr().String())
			all = append(all, m)
		}
		if err == nil {
			break
		}
		for _, m := range all {
			_ = m.listener.Close()
		}
		if try == 20 {
			t.Fatal(err)
		}
	}
	for _, m := range all {
		m.served.Go(m.serve)
		t.Cleanup(m.close)
	}
	return all, port
}

// open is how many connections to the member there are.
func (m *member) open() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.links)
}

func (m *member) serve() {
	for {
		c, err := m.listener.Accept()
		if err != nil {
			return
		}
		m.mu.Lock()
		m.links[c] = struct{}{}
		m.accepted++
		closed := m.closed
		m.mu.Unlock()
		if closed {
			_ = c.Close()
		}
		m.served.Go(func() { m.pass(c) })
	}
}

func (m *member) pass(c net.Conn) {
	defer func() {
		_ = c.Close()
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.links, c)
	}()
	s, err := net.Dial("tcp", m.target)
	if err != nil {
		return
	}
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(c, s)
		_ = c.Close()
	})
	_, _ = io.Copy(s, c)
	_ = s.Close()
	back.Wait()
}

// cut closes all connections.
func (m *member) cut() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for c := range m.links {
		_ = c.Close()
	}
}

func (m *member) close() {
	_ = m.listener.Close()
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.cut()
	m.served.Wait()
}
