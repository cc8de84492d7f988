// Package wiretest has a PostgreSQL and a MySQL server that speak just enough of
// their protocols for a driver to log in and run statements whose results are
// scripted. With them a test decides what is on the wire at each moment, which
// no real server lets it do.
package wiretest

import (
	"net"
	"sync"
	"testing"
)

// Reply is what a server answers to one message of a client.
type Reply struct {
	// Status is the transaction state that the answer ends with: the byte of
	// PostgreSQL's ReadyForQuery ('I' if zero), or MySQL's status flags.
	Status uint16
	// Code, if not empty, makes the answer an error: a SQLSTATE, or a MySQL
	// error number in decimal.
	Code string
	// Hang sends no answer at all, until the connection is closed.
	Hang bool
	// Drop closes the connection without an answer.
	Drop bool
}

// Handler answers the messages. PostgreSQL's are "Q text" (simple query),
// "P text" (Parse, with Describe and Sync), "B" (Bind, with Execute and Sync) and
// "C" (Close); MySQL's are "Q text" and "ping". It is called from one goroutine
// per connection.
type Handler func(message string) Reply

// Server is a server on the loopback interface. It is closed with the test.
type Server struct {
	// Addr is its host:port.
	Addr string

	greet  func(*Session, Handler)
	handle Handler
	ln     net.Listener
	wg     sync.WaitGroup

	mu       sync.Mutex
	sessions []*Session
	messages []string
	arrived  chan *Session
}

// Session is one connection that a client has made.
type Session struct {
	// PID is what the server has given it as its process or connection id.
	PID int
	// Cancels is set if the client made it to cancel a statement (PostgreSQL).
	Cancels bool

	net.Conn
	server *Server
	closed chan struct{}
}

// Closed is closed when the server has seen the end of the session.
func (s *Session) Closed() <-chan struct{} { return s.closed }

// Close ends the session as a server does, with a FIN after what was sent.
func (s *Session) Close() error { return s.Conn.Close() }

// Reset ends the session with a RST.
func (s *Session) Reset() error {
	if err := s.Conn.(*net.TCPConn).SetLinger(0); err != nil {
		return err
	}
	return s.Conn.Close()
}

func start(tb testing.TB, h Handler, greet func(*Session, Handler)) *Server {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s := &Server{Addr: ln.Addr().String(), ln: ln, greet: greet, handle: h, arrived: make(chan *Session, 64)}
	s.wg.Go(s.accept)
	tb.Cleanup(s.close)
	return s
}

func (s *Server) accept() {
	for {
		c, err := s.ln.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		ses := &Session{PID: 4711 + len(s.sessions), Conn: c, server: s, closed: make(chan struct{})}
		s.sessions = append(s.sessions, ses)
		s.mu.Unlock()
		s.wg.Go(func() {
			defer close(ses.closed)
			defer func() { _ = c.Close() }()
			s.greet(ses, s.handle)
		})
	}
}

func (s *Server) close() {
	_ = s.ln.Close()
	s.mu.Lock()
	for _, ses := range s.sessions {
		_ = ses.Conn.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// Next returns the next session that has logged in or asked to cancel.
func (s *Server) Next() *Session { return <-s.arrived }

// Messages returns what all clients have sent, in the order of arrival.
func (s *Server) Messages() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.messages...)
}

// ask notes a message and has it answered by the handler.
func (s *Session) ask(h Handler, message string) Reply {
	s.server.mu.Lock()
	s.server.messages = append(s.server.messages, message)
	s.server.mu.Unlock()
	if h == nil {
		return Reply{}
	}
	return h(message)
}
