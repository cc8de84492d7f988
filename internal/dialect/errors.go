package dialect

import (
	"context"
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/go-sql-driver/mysql"
	"github.com/lib/pq"

	"github.com/sqlreplicated/replicated/internal/socket"
)

// ErrorClass says what an error means for the node, and what may be done about
// it. It is about the error alone: the caller knows the node's role, whether the
// statement was a read, and whether its own context has ended.
type ErrorClass uint8

const (
	// None is the class of nil.
	None ErrorClass = iota
	// Statement is the fault of the text, the data or the application. It
	// goes straight back. So does what is not known.
	Statement
	// Lost means that the connection is broken or could not be made. It
	// counts against the node.
	Lost
	// Down means that the server says it cannot serve: it shuts down,
	// starts, or finds its files damaged. It counts against the node at once.
	Down
	// Conflict means, if a replica sends it, that replication got in the
	// way of a read: run it on the primary; the node is sound. From a primary
	// it is a deadlock or a serialization failure, which is the application's.
	Conflict
	// Missing means that the server lacks an object (the DDL has not
	// arrived), a privilege or an ability: a read that a replica refuses so
	// runs once on the primary before the caller sees an error.
	Missing
	// Fence means that the statement was refused because the session or the
	// server is read-only. From a replica: run it on the primary, close the
	// connection, and take the text for a write from now on.
	Fence
	// Busy means that the server has no room, for connections or memory.
	// Back off from it; it is not down.
	Busy
	// Auth means that login, TLS or authentication failed: a fault of the
	// configuration, to be shown, not the node's.
	Auth
	// Cancelled means that the statement was cancelled or its time ran out:
	// by the caller's context, a statement timeout or an administrator. It never
	// counts against the node.
	Cancelled
)

var classNames = [...]string{
	None:      "none",
	Statement: "statement",
	Lost:      "lost",
	Down:      "down",
	Conflict:  "conflict",
	Missing:   "missing",
	Fence:     "fence",
	Busy:      "busy",
	Auth:      "auth",
	Cancelled: "cancelled",
}

// String returns the class's name in lower case.
func (c ErrorClass) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return "invalid"
}

// Class returns the class of an error from a driver, or from opening a
// connection. It looks through wrapped and joined errors, never at messages.
//
// lib/pq replaces what a server says with severity FATAL by driver.ErrBadConn
// once the connection is open, so that a server that shuts down is Lost
// there and Down at the next dial.
func (d *Dialect) Class(err error) ErrorClass {
	if err == nil {
		return None
	}
	if class, known := d.codes(err); known {
		return class
	}
	for _, row := range driverErrors {
		if errors.Is(err, row.err) {
			return row.class
		}
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return Auth
	}
	// A dial's timeout Is context.DeadlineExceeded, and mostly it is the
	// connect timeout's end. If it was the caller's, the caller knows.
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" && !errors.Is(err, context.Canceled) {
		return Lost
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return Cancelled // also of a connection aborted for that reason
	}
	for _, lost := range lostErrors {
		if errors.Is(err, lost) {
			return Lost
		}
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return Lost
	}
	if _, ok := errors.AsType[syscall.Errno](err); ok {
		return Lost
	}
	return Statement
}

// EndsConnection reports whether err means that the connection it came over is
// gone. A server that is going down, or finds its files damaged, may have said so
// in a session that goes on.
func (d *Dialect) EndsConnection(err error) bool {
	switch d.Class(err) {
	case Lost:
		return true
	case Down:
		return !answered(err)
	default:
		return false
	}
}

// answered reports whether err is a server's answer in a session that goes on.
// PostgreSQL says so by the severity: FATAL would have ended it. Severities come
// in the words of lc_messages; what is not recognised counts as the end. MySQL and
// MariaDB have numbers that speak of the node, and leave the session as it is.
func answered(err error) bool {
	if e, ok := errors.AsType[*pq.Error](err); ok {
		return e.Severity == "ERROR"
	}
	e, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && mysqlAnswers[e.Number]
}

// ReadOnlyRefusal reports whether a server has refused a statement, before any
// effect, because it or the session is read-only: PostgreSQL 25006; MySQL and
// MariaDB 1290, 1792, 1836 and 1874. MySQL's 1290 has other causes too (any
// --option that forbids something), so a write is run elsewhere only after a
// probe of the role.
func (d *Dialect) ReadOnlyRefusal(err error) bool {
	return d.Class(err) == Fence && !liftsFence(err)
}

// driverErrors are the drivers' own errors with a meaning of their own.
var driverErrors = [...]struct {
	err   error
	class ErrorClass
}{
	{mysql.ErrInvalidConn, Lost}, // broken after bytes were written
	{mysql.ErrPktSync, Lost},     // the protocol's order is lost
	{mysql.ErrPktSyncMul, Lost},
	{mysql.ErrMalformPkt, Lost},
	{mysql.ErrNoTLS, Auth},
	{mysql.ErrCleartextPassword, Auth},
	{mysql.ErrNativePassword, Auth},
	{mysql.ErrOldPassword, Auth},
	{mysql.ErrUnknownPlugin, Auth},
	{pq.ErrSSLNotSupported, Auth},
	{pq.ErrCouldNotDetectUsername, Auth},
	{socket.ErrStale, Lost},
}

// lostErrors mean a broken connection, unless the caller's context is at the
// root of it.
var lostErrors = [...]error{
	driver.ErrBadConn,
	socket.ErrAborted, // the node was given up
	io.EOF,
	io.ErrUnexpectedEOF,
	net.ErrClosed,
	os.ErrDeadlineExceeded, // a deadline on the socket, set because the server hangs
}
