package fakedb

import (
	"context"
	"database/sql/driver"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Op names what a driver was asked to do.
type Op string

// The operations that are counted, logged, and can be made to fail or hang.
const (
	OpConnect       Op = "connect"
	OpPing          Op = "ping"
	OpPrepare       Op = "prepare"
	OpQuery         Op = "query" // also of a prepared statement, see Call.Prepared
	OpExec          Op = "exec"
	OpBegin         Op = "begin"
	OpCommit        Op = "commit"
	OpRollback      Op = "rollback"
	OpReset         Op = "reset" // SessionResetter
	OpNext          Op = "next"
	OpNextResultSet Op = "next result set"
	OpRowsClose     Op = "rows close"
	OpStmtClose     Op = "stmt close"
	OpClose         Op = "close"
)

// Call is one operation that reached the server.
type Call struct {
	Op       Op
	Text     string              // SQL text of OpPrepare, OpQuery, OpExec, OpNext…
	Args     []driver.NamedValue // as the driver received them
	Conn     int                 // number of the connection on this server, from 1
	Prepared bool                // through a Stmt
	Tx       byte                // transaction state before the call: 'I', 'T' or 'E'
	TxOpts   driver.TxOptions    // of OpBegin
	Err      error               // what the driver answered
}

// Handler answers a call. A nil Reply means the default answer. It runs without
// a lock held and may be called by many connections at once.
type Handler func(ctx context.Context, call *Call) (*Reply, error)

// Role is what the server says about itself when asked.
type Role uint8

// The roles of a server. A new server is a primary.
const (
	Primary Role = iota
	Replica
)

// Stats counts what a server has seen. OpenConns, OpenStmts and OpenRows are
// the numbers now, the others totals.
type Stats struct {
	OpenConns, OpenStmts, OpenRows int
	Connects, Pings, Prepares      int
	Queries, Execs                 int
	Begins, Commits, Rollbacks     int
	Resets, Closes                 int
	StmtCloses, RowsCloses         int
}

// Server is one node of a fake cluster. All methods may be called from any
// goroutine, also while statements run.
type Server struct {
	name string

	mu         sync.Mutex // guards what follows; no handler runs while it is held
	role       Role
	lastConn   int
	conns      map[*core]struct{}
	stmts      map[*stmt]struct{}
	rows       map[*rows]struct{}
	counts     map[Op]int
	calls      []*Call
	misuse     []string
	replies    map[string]Reply
	containing []containing
	onConnect  func(ctx context.Context) error
	onQuery    Handler
	onExec     Handler
	onCheck    func(*driver.NamedValue) error
	converter  func(index int) driver.ValueConverter
	fails      []*fail
	holds      []*Hold
	down       error
	refuse     error
	allowBusy  bool
}

type containing struct {
	part   string
	handle Handler
}

type fail struct {
	op  Op
	n   int // calls left; negative: for ever
	err error
}

// New returns a server that answers every query with its name.
func New(name string) *Server {
	return &Server{
		name:    name,
		conns:   make(map[*core]struct{}),
		stmts:   make(map[*stmt]struct{}),
		rows:    make(map[*rows]struct{}),
		counts:  make(map[Op]int),
		replies: make(map[string]Reply),
	}
}

// Name returns the server's name.
func (s *Server) Name() string { return s.name }

// Reply makes the server answer the exact text with r, from now on.
func (s *Server) Reply(text string, r Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies[text] = r
}

// ReplyContaining makes h answer every text that contains part, whatever the
// case of its letters. The latest call wins; exact texts win over it.
func (s *Server) ReplyContaining(part string, h Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.containing = append(s.containing, containing{strings.ToLower(part), h})
}

// OnConnect makes f decide about each new connection. nil removes it.
func (s *Server) OnConnect(f func(ctx context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onConnect = f
}

// OnQuery makes h answer the queries that no scripted reply answers.
func (s *Server) OnQuery(h Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onQuery = h
}

// OnExec makes h answer what is executed and no scripted reply answers.
func (s *Server) OnExec(h Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onExec = h
}

// OnCheck replaces the NamedValueChecker of shapes that have one.
func (s *Server) OnCheck(f func(*driver.NamedValue) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onCheck = f
}

// OnConvert replaces the ColumnConverter of shapes that have one.
func (s *Server) OnConvert(f func(index int) driver.ValueConverter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.converter = f
}

// SetRole changes what the server says about itself: texts that contain
// pg_is_in_recovery are answered with a bool, those that contain @@read_only,
// @@super_read_only or @@innodb_read_only with 0 or 1, in one column. Queries
// that ask for more need a ReplyContaining of their own.
func (s *Server) SetRole(r Role) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.role = r
}

// RefuseWrites makes the server answer everything but plain reads and
// transaction ends with err; nil ends that.
func (s *Server) RefuseWrites(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = err
}

// AllowBusy permits statements on a connection that has rows open, which is
// refused and recorded as misuse otherwise.
func (s *Server) AllowBusy() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allowBusy = true
}

// Fail makes the next n calls of op fail with err; a negative n makes all of
// them fail until Heal. The call counts as received by the server.
func (s *Server) Fail(op Op, n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = append(s.fails, &fail{op, n, err})
}

// Heal removes what Fail has left and ends Down.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = nil
	s.down = nil
}

// Kill cuts every open connection: further calls on them answer
// driver.ErrBadConn without reaching the server, and rows end with it too.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.broken.Store(true)
	}
}

// Down cuts every open connection and refuses new ones with err, until Heal.
func (s *Server) Down(err error) {
	s.Kill()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = err
}

// Calls returns what has reached the server, in order. Next is not logged.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := make([]Call, len(s.calls))
	for i, call := range s.calls {
		calls[i] = *call
	}
	return calls
}

// Texts returns the texts that were queried or executed, in order; refused and
// failed ones too.
func (s *Server) Texts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var texts []string
	for _, call := range s.calls {
		if call.Op == OpQuery || call.Op == OpExec {
			texts = append(texts, call.Text)
		}
	}
	return texts
}

// Ops returns the operations that have reached the server, in order.
func (s *Server) Ops() []Op {
	s.mu.Lock()
	defer s.mu.Unlock()
	ops := make([]Op, len(s.calls))
	for i, call := range s.calls {
		ops[i] = call.Op
	}
	return ops
}

// Forget empties the log of calls; the counters stay.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = nil
}

// Stats returns the counters.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{
		OpenConns:  len(s.conns),
		OpenStmts:  len(s.stmts),
		OpenRows:   len(s.rows),
		Connects:   s.counts[OpConnect],
		Pings:      s.counts[OpPing],
		Prepares:   s.counts[OpPrepare],
		Queries:    s.counts[OpQuery],
		Execs:      s.counts[OpExec],
		Begins:     s.counts[OpBegin],
		Commits:    s.counts[OpCommit],
		Rollbacks:  s.counts[OpRollback],
		Resets:     s.counts[OpReset],
		Closes:     s.counts[OpClose],
		StmtCloses: s.counts[OpStmtClose],
		RowsCloses: s.counts[OpRowsClose],
	}
}

// Open lists what is open, one line each: empty after a test that leaks
// nothing.
func (s *Server) Open() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var open []string
	for r := range maps.Keys(s.rows) {
		open = append(open, fmt.Sprintf("%s: rows of %q on connection %d", s.name, r.text, r.c.id))
	}
	for st := range maps.Keys(s.stmts) {
		open = append(open, fmt.Sprintf("%s: statement %q on connection %d", s.name, st.text, st.c.id))
	}
	for c := range maps.Keys(s.conns) {
		open = append(open, fmt.Sprintf("%s: connection %d", s.name, c.id))
	}
	slices.Sort(open)
	return open
}

// Misuse lists what no driver's user may do and was done: a call after Close,
// a second Close, a statement while rows are open, a row read into a slice of
// the wrong length. Closing a connection with statements or rows open is none:
// the server frees them with it.
func (s *Server) Misuse() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.misuse)
}

func (s *Server) misused(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.misuse = append(s.misuse, s.name+": "+fmt.Sprintf(format, args...))
}
