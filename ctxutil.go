package replicated

import (
	"context"
	"database/sql/driver"
	"errors"
)

// What a node's connection lacks is answered here as database/sql would have
// answered it (ctxutil.go of database/sql, Go 1.26, texts of errors included):
// our connection has every optional method, so database/sql never sees what
// lies behind it.
//
// Two differences, both of form: the legacy interfaces are looked up here
// instead of by the caller, and a connection that can neither execute nor query
// without preparing answers driver.ErrSkip, the sign to prepare.

// hasExecer reports whether conn can execute a text without preparing it.
// database/sql lets the connection convert the arguments only if it can; what
// needs a prepared statement is converted for that statement alone.
func hasExecer(conn driver.Conn) bool {
	if _, ok := conn.(driver.ExecerContext); ok {
		return true
	}
	_, ok := conn.(driver.Execer) //nolint:staticcheck // legacy drivers have nothing else
	return ok
}

// hasQueryer reports whether conn can query a text without preparing it.
func hasQueryer(conn driver.Conn) bool {
	if _, ok := conn.(driver.QueryerContext); ok {
		return true
	}
	_, ok := conn.(driver.Queryer) //nolint:staticcheck // legacy drivers have nothing else
	return ok
}

// ctxDriverPrepare prepares a statement. A conn without PrepareContext prepares
// regardless of ctx, which is looked at afterwards.
func ctxDriverPrepare(ctx context.Context, conn driver.Conn, query string) (driver.Stmt, error) {
	if preparer, ok := conn.(driver.ConnPrepareContext); ok {
		return preparer.PrepareContext(ctx, query)
	}
	stmt, err := conn.Prepare(query)
	if err == nil && ctx.Err() != nil {
		stmt.Close()
		return nil, ctx.Err()
	}
	return stmt, err
}

// ctxDriverExec executes query with converted args. It returns driver.ErrSkip
// if conn wants the statement prepared, or cannot do without.
func ctxDriverExec(ctx context.Context, conn driver.Conn, query string, args []driver.NamedValue) (driver.Result, error) {
	if execer, ok := conn.(driver.ExecerContext); ok {
		return execer.ExecContext(ctx, query, args)
	}
	execer, ok := conn.(driver.Execer) //nolint:staticcheck // legacy drivers have nothing else
	if !ok {
		return nil, driver.ErrSkip
	}
	values, err := legacyArgs(ctx, args)
	if err != nil {
		return nil, err
	}
	return execer.Exec(query, values)
}

// ctxDriverQuery queries with converted args. It returns driver.ErrSkip if conn
// wants the statement prepared, or cannot do without.
func ctxDriverQuery(ctx context.Context, conn driver.Conn, query string, args []driver.NamedValue) (driver.Rows, error) {
	if queryer, ok := conn.(driver.QueryerContext); ok {
		return queryer.QueryContext(ctx, query, args)
	}
	queryer, ok := conn.(driver.Queryer) //nolint:staticcheck // legacy drivers have nothing else
	if !ok {
		return nil, driver.ErrSkip
	}
	values, err := legacyArgs(ctx, args)
	if err != nil {
		return nil, err
	}
	return queryer.Query(query, values)
}

// ctxDriverStmtExec executes a prepared statement with converted args.
func ctxDriverStmtExec(ctx context.Context, stmt driver.Stmt, args []driver.NamedValue) (driver.Result, error) {
	if execer, ok := stmt.(driver.StmtExecContext); ok {
		return execer.ExecContext(ctx, args)
	}
	values, err := legacyArgs(ctx, args)
	if err != nil {
		return nil, err
	}
	return stmt.Exec(values) //nolint:staticcheck // legacy drivers have nothing else
}

// ctxDriverStmtQuery queries a prepared statement with converted args.
func ctxDriverStmtQuery(ctx context.Context, stmt driver.Stmt, args []driver.NamedValue) (driver.Rows, error) {
	if queryer, ok := stmt.(driver.StmtQueryContext); ok {
		return queryer.QueryContext(ctx, args)
	}
	values, err := legacyArgs(ctx, args)
	if err != nil {
		return nil, err
	}
	return stmt.Query(values) //nolint:staticcheck // legacy drivers have nothing else
}

// ctxDriverBegin begins a transaction. A conn without BeginTx cannot be told of
// an isolation level or of read-only, so both are refused rather than dropped.
func ctxDriverBegin(ctx context.Context, conn driver.Conn, opts driver.TxOptions) (driver.Tx, error) {
	if beginner, ok := conn.(driver.ConnBeginTx); ok {
		return beginner.BeginTx(ctx, opts)
	}
	if opts.Isolation != 0 {
		return nil, errors.New("sql: driver does not support non-default isolation level")
	}
	if opts.ReadOnly {
		return nil, errors.New("sql: driver does not support read-only transactions")
	}
	tx, err := conn.Begin() //nolint:staticcheck // legacy drivers have nothing else
	if err == nil && ctx.Err() != nil {
		_ = tx.Rollback()
		return nil, ctx.Err()
	}
	return tx, err
}

// legacyArgs prepares the call of a method that knows neither contexts nor
// names: the names are refused first, then the context is looked at.
func legacyArgs(ctx context.Context, args []driver.NamedValue) ([]driver.Value, error) {
	values, err := namedToValues(args)
	if err != nil {
		return nil, err
	}
	return values, ctx.Err()
}

// namedToValues strips args to what methods without contexts accept.
func namedToValues(named []driver.NamedValue) ([]driver.Value, error) {
	values := make([]driver.Value, len(named))
	for i := range named {
		if named[i].Name != "" {
			return nil, errors.New("sql: driver does not support the use of Named Parameters")
		}
		values[i] = named[i].Value
	}
	return values, nil
}
