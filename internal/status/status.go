// Package status reads the transaction state that a driver connection has been
// told by its server.
//
// Both servers report it with every answer, and no text can replace it: a CALL
// may open a transaction, completion_type=CHAIN opens the next one at COMMIT, a
// server may default to autocommit=0, DDL commits on MySQL. The drivers keep
// the report in an unexported field; reflect reads it (without unsafe, which
// could write) in two nanoseconds. A driver that renames the field makes the
// state [Unknown] here and a test of this package fail.
package status

import "database/sql/driver"

// Tx is the state of a connection's transaction.
type Tx uint8

const (
	// Unknown means that the driver does not tell. It is the zero value.
	Unknown Tx = iota
	// Idle means that no transaction is open and that the next statement
	// will commit by itself.
	Idle
	// Active means that the next statement belongs to a transaction: one is
	// open, or, on MySQL, autocommit is off and the next statement opens one.
	Active
	// Failed means a PostgreSQL transaction that accepts nothing but its end.
	Failed
)

var txNames = [...]string{Unknown: "unknown", Idle: "idle", Active: "active", Failed: "failed"}

// String returns the state's name in lower case.
func (t Tx) String() string {
	if int(t) < len(txNames) {
		return txNames[t]
	}
	return "invalid"
}

// Status is what the server said with its last answer.
//
// MySQL sends it with every success, but not with an error. So after an error
// the status is that of the last success: too cautious where the error ended a
// transaction (deadlock 1213), and silent where the failing statement had
// opened one (a CALL that begins a transaction and then signals).
type Status struct {
	Tx Tx
	// AutocommitOff is set if MySQL's autocommit is off. Tx is then Active.
	AutocommitOff bool
}

// Of returns the status of a driver connection, [Unknown] for a driver that is
// not known. It must not be called while the driver is at work on conn. It costs
// about a microsecond; keep a [Reader] where it is asked for again and again.
func Of(conn driver.Conn) Status { return ReaderFor(conn).Read() }
