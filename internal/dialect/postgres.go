package dialect

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sqlreplicated/replicated/internal/classify"
)

var postgres = Dialect{
	Kind:             classify.Postgres,
	BadConnAfterSend: true,
	ParseWrites:      1,
	identify:         identifyPostgres,
	prepared: &prepared{
		text:    postgresIdentity,
		columns: postgresColumns,
		scan:    func(row []cell) Identity { return scanPostgres(row, "") },
	},
	fence:          fencePostgres,
	settings:       postgresSettings,
	apply:          applyPostgres,
	catalog:        catalogPostgres,
	catalogVersion: postgresVersion,
	relations:      relationsPostgres,
	beats:          postgresBeats,
	codes:          postgresCode,
}

// fencePostgres is for connections whose driver could not be given the start-up
// parameter.
func fencePostgres(ctx context.Context, conn driver.Conn, id Identity) error {
	if id.Fenced {
		return nil
	}
	return exec(ctx, conn, "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
}

// RefusesStartupParameter reports whether opening a PostgreSQL connection has
// failed because of a start-up parameter. PgBouncer refuses the ones it does not
// track with 08P01; a server answers 42704 to a name it does not know, and some
// forks 0A000.
func RefusesStartupParameter(err error) bool {
	e, ok := errors.AsType[sqlState](err)
	if !ok {
		return false
	}
	switch e.SQLState() {
	case "08P01", "42704", "0A000":
		return true
	}
	return false
}

// postgresSettings are the variables that are replayed.
var postgresSettings = []setting{
	postgresSetting(classify.TimeZone, "TimeZone"),
	postgresSetting(classify.DateStyle, "DateStyle"),
	postgresSetting(classify.IntervalStyle, "IntervalStyle"),
	postgresSetting(classify.SearchPath, "search_path"),
	postgresSetting(classify.StatementTimeout, "statement_timeout"),
	postgresSetting(classify.LockTimeout, "lock_timeout"),
	postgresSetting(classify.Names, "client_encoding"),
}

func postgresSetting(v classify.Vars, name string) setting {
	return setting{v: v, names: []string{name}, exprs: []string{"pg_catalog.current_setting('" + name + "')"}}
}

// applyPostgres assigns all values in one statement.
func applyPostgres(ctx context.Context, conn driver.Conn, todo []assignment) error {
	calls := make([]string, len(todo))
	for i, a := range todo {
		value, err := quotePostgres(a.text)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		calls[i] = "pg_catalog.set_config('" + a.name + "', " + value + ", false)"
	}
	_, err := queryRow(ctx, conn, "SELECT "+strings.Join(calls, ", "), len(calls))
	return err
}

// quotePostgres returns s as a literal that means s whatever
// standard_conforming_strings and backslash_quote say: in an E” string a
// backslash is always one when doubled, and so is a quote. That the text is
// valid UTF-8 matters because both drivers speak UTF-8 to the server: no byte
// of a longer character can be taken for a quote.
func quotePostgres(s string) (string, error) {
	if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		return "", errors.New("value is not text in UTF-8")
	}
	return "E'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(s) + "'", nil
}

// sqlState is what both lib/pq's and pgx's errors are.
type sqlState interface {
	error
	SQLState() string
}

// postgresCode finds an error's SQLSTATE in the table: the code itself or its first two characters.
func postgresCode(err error) (ErrorClass, bool) {
	e, ok := errors.AsType[sqlState](err)
	if !ok {
		return None, false
	}
	code := e.SQLState()
	class, known := postgresCodes[code]
	if !known && len(code) == 5 {
		if class, known = postgresCodes[code[:2]]; !known {
			return Statement, true
		}
	}
	if class == Lost && answered(err) {
		class = Statement // 08P01 is a wrong number of arguments, 08001 a foreign server's
	}
	return class, known // pgx errors without an answer have an empty code
}

// liftsFence reports whether a function tried to lift the fence, which is
// refused with the general code for "not inside a transaction".
func liftsFence(err error) bool {
	e, ok := errors.AsType[sqlState](err)
	return ok && e.SQLState() == "25001"
}

// postgresCodes is PostgreSQL's "Appendix A: Error Codes", as far as a code
// means more than a fault of the statement. Two characters stand for a class.
var postgresCodes = map[string]ErrorClass{
	"08":    Lost, // connection exceptions; 08007: transaction resolution unknown
	"57P04": Lost, // database dropped, also by replay on a standby
	"57P05": Lost, // idle_session_timeout
	"25P03": Lost, // idle_in_transaction_session_timeout
	"25P04": Lost, // transaction_timeout (PostgreSQL 17)

	"57P01": Down, // admin shutdown, or pg_terminate_backend
	"57P02": Down, // crash shutdown: another backend has crashed
	"57P03": Down, // cannot connect now: starting, stopping, or no hot standby yet
	"58000": Down, // system error
	"58030": Down, // I/O error
	"58P01": Down, // a file is missing
	"XX001": Down, // data corrupted
	"XX002": Down, // index corrupted

	"40001": Conflict, // a standby's conflict with recovery; elsewhere serialization failure
	"40P01": Conflict, // deadlock; on a standby with recovery, over a buffer pin
	"55P03": Conflict, // lock_timeout, on a standby behind DDL being applied
	"72000": Conflict, // snapshot too old (before PostgreSQL 17)

	"42P01": Missing, // table
	"42703": Missing, // column
	"42883": Missing, // function or operator
	"42704": Missing, // type, collation, text search configuration, …
	"3F000": Missing, // schema
	"3D000": Missing, // database
	"26000": Missing, // prepared statement: a pooler has changed the session under it
	"42P05": Missing, // … or has it already, from another client
	"42501": Missing, // privilege: the GRANT may be on its way
	"0A000": Missing, // not supported, e.g. SERIALIZABLE or READ WRITE in recovery
	"55000": Missing, // not in this state, e.g. "recovery is in progress"
	"XX000": Missing, // internal error, which the primary may not have

	"25006": Fence, // read-only transaction
	"25001": Fence, // a function tried to make the transaction read-write

	"53000": Busy, // insufficient resources
	"53100": Busy, // disk full
	"53200": Busy, // out of memory
	"53300": Busy, // too many connections

	"28": Auth, // invalid authorization: user, password, pg_hba.conf

	"57014": Cancelled, // query cancelled, statement_timeout
}
