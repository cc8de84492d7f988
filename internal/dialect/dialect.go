// Package dialect holds what has to be known about each database beyond its
// SQL: how a new connection learns which server it has reached and how far that
// one's history reaches, how it is made read-only, how session settings are read
// back and replayed, how a heartbeat is kept, and what an error says about the
// node that sent it.
//
// The files named after a database hold its texts and tables; the other files hold
// what they have in common. Everything speaks [driver.Conn] directly, in text
// queries without arguments, with a comment in front by which a server's log tells
// them from the application's.
package dialect

import (
	"context"
	"database/sql/driver"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// Dialect is the knowledge about one database. There is one value per database,
// shared and immutable; see [For].
type Dialect struct {
	// Kind is the dialect whose facts these are.
	Kind classify.Dialect

	// BadConnAfterSend is set where the usual driver answers driver.ErrBadConn
	// also after it has sent the statement (lib/pq handleError does so for EOF
	// and for FATAL errors; golang/go#11978). Only a count of the bytes written
	// then proves that nothing was sent.
	BadConnAfterSend bool

	// ParseWrites is the number of Writes, from the first one of a call, with
	// which the usual driver executes nothing yet. It holds for a conn-level
	// QueryContext or ExecContext with arguments, and for PrepareContext, and
	// not for statement-level calls, COPY, or a DSN with binary_parameters=yes.
	// lib/pq sends Parse, Describe and Sync in one Write, and Bind and Execute
	// only after the answer (conn.query, prepareTo, stmt.exec).
	ParseWrites int

	identify func(context.Context, driver.Conn) (Identity, error)
	sample   func(context.Context, driver.Conn) (Identity, error) // nil: as identify
	prepared *prepared                                            // what Sampler prepares; nil: nothing
	fence    func(context.Context, driver.Conn, Identity) error

	// settings are in the order in which they are read and applied.
	settings []setting
	apply    func(context.Context, driver.Conn, []assignment) error

	// catalog reads what the database tells of its own names; nil if that is not
	// known.
	catalog        func(*catalogReader) error
	catalogVersion string // a query of one value; empty: there is none
	// relations reads what it does by itself when relations are touched; nil
	// likewise.
	relations func(*relationsReader) error

	beats *beats // nil: no heartbeat can be kept

	sources func(context.Context, driver.Conn) ([]Source, bool, error) // nil: servers do not tell

	codes func(error) (class ErrorClass, known bool)
}

// dialects is indexed by classify.Dialect. MySQL, MariaDB and AnyMySQL differ in
// how a connection is identified.
var dialects = [...]*Dialect{
	classify.Generic:  &generic,
	classify.Postgres: &postgres,
	classify.MySQL:    mysqlDialect(classify.MySQL, identifyMySQL),
	classify.MariaDB:  mysqlDialect(classify.MariaDB, identifyMariaDB),
	classify.AnyMySQL: mysqlDialect(classify.AnyMySQL, identifyAnyMySQL),
}

// For returns what is known about d; about a value that is none, what is known
// about [classify.Generic].
func For(d classify.Dialect) *Dialect {
	if int(d) < len(dialects) {
		return dialects[d]
	}
	return &generic
}
