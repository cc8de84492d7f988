package replicatedtest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"
)

// Kind tells how a statement reached the server. The zero value is none.
type Kind uint8

const (
	// Query is a statement sent as text and executed at once.
	Query Kind = iota + 1
	// Prepare is a statement that was prepared, not executed. MariaDB and
	// MySQL report it always, PostgreSQL only with the setting
	// {"log_min_duration_statement": "0"}.
	Prepare
	// Execute is an execution of a prepared statement. PostgreSQL reports the
	// text as prepared, MariaDB and MySQL with the arguments put in.
	Execute
	// Refused is a statement that PostgreSQL answered with an error before it
	// was executed: it reached the server, and that is all that it did.
	// (MariaDB and MySQL report such statements as Query or not at all.)
	Refused
)

// String returns the name of the constant in lower case.
func (k Kind) String() string {
	switch k {
	case Query:
		return "query"
	case Prepare:
		return "prepare"
	case Execute:
		return "execute"
	case Refused:
		return "refused"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Statement is an entry of a server's statement log.
type Statement struct {
	// Time is when the server took it, by the server's clock. MariaDB and MySQL
	// before 5.7 tell whole seconds.
	Time time.Time
	// User is the account that sent it.
	User string
	// Session is pg_backend_pid() or CONNECTION_ID() of the sender.
	Session int64
	Kind    Kind
	// Text is the statement as the server got it, byte for byte, except that
	// MariaDB and MySQL cut blanks and semicolons off both ends.
	Text string
	// Code is the SQLSTATE if the statement failed, on PostgreSQL; MariaDB and
	// MySQL do not log it.
	Code string
}

// Statements returns what clients had this server execute since it was started
// first or [Node.ResetStatements], in the order of its log, whoever runs or
// does not run now. It reads the server's own statement log, which has each
// statement before the client has its answer: a statement that has returned is
// there.
//
// What the package itself executes is left out, and so is what a replica
// applies.
//
// It panics if [Options.NoStatementLog] turned the log off, since a test would
// take silence for an answer, and if the log cannot be read.
func (n *Node) Statements() []Statement { return n.StatementsSince(Mark{}) }

// Mark is a point in a node's statement log. The zero value is the last
// [Node.ResetStatements], or the beginning.
type Mark struct {
	end   int
	reset int
}

// Mark returns the present end of the statement log, for
// [Node.StatementsSince].
func (n *Node) Mark() Mark {
	n.log.mu.Lock()
	defer n.log.mu.Unlock()
	n.readLogLocked()
	return Mark{end: len(n.log.entries), reset: n.log.resets}
}

// StatementsSince is [Node.Statements] beginning at the mark. A mark from before
// a [Node.ResetStatements] means that reset.
func (n *Node) StatementsSince(m Mark) []Statement {
	n.log.mu.Lock()
	defer n.log.mu.Unlock()
	n.readLogLocked()
	if m.reset != n.log.resets {
		m.end = 0
	}
	return append([]Statement(nil), n.log.entries[m.end:]...)
}

// ResetStatements forgets what [Node.Statements] would return now.
func (n *Node) ResetStatements() {
	if n.c.options.NoStatementLog {
		return
	}
	n.log.mu.Lock()
	defer n.log.mu.Unlock()
	n.readLogLocked()
	n.log.entries = nil
	n.log.resets++
}

func (n *Node) readLogLocked() {
	if n.c.options.NoStatementLog {
		panic("replicatedtest: the statement log is turned off by Options.NoStatementLog")
	}
	if err := n.log.readLocked(); err != nil {
		panic(n.wrap("statements", err))
	}
}

// statementLog reads the log file of a server as it grows.
type statementLog struct {
	path   string
	parser logParser

	mu      sync.Mutex // guards what follows, and the parser
	offset  int64      // how far the file has been read
	entries []Statement
	resets  int
}

// logParser takes a log file in pieces. add gets what was added to the file
// since the last call, which ends at any byte; complete entries are appended
// to list, whose older ones it may amend. The file ends there for now: an entry
// whose end shows only by the beginning of the next is complete if the file
// ends with a newline.
type logParser interface {
	add(data []byte, list []Statement) []Statement
}

func (l *statementLog) readLocked() error {
	f, err := os.Open(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the server has not been started yet
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Seek(l.offset, io.SeekStart); err != nil {
		return err
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	l.offset += int64(len(data))
	l.entries = l.parser.add(data, l.entries)
	return nil
}

// internalUser reports whether the account is one that the package uses
// itself.
func internalUser(name string) bool { return name == harnessUser || name == replUser }
