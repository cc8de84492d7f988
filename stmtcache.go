package replicated

import (
	"context"
	"database/sql/driver"
	"errors"
	"time"
)

// This file keeps the prepared statements of one physical connection.

// held is what a connection keeps a prepared statement for.
type held struct {
	st *statement
	// exec: a query that is run without looking at its rows. It has a statement of
	// its own: go-sql-driver 1.10 waits for ever for the columns that MariaDB does
	// not send again, when one that was queried before is executed.
	exec bool
}

// prepared returns the connection's own statement for a live driver.Stmt,
// preparing it at its first use here. It is closed with the last driver.Stmt of
// that text.
func (p *physical) prepared(ctx context.Context, st *statement, exec bool, g *progress) (driver.Stmt, error) {
	key := held{st, exec && st.judged.Load().verdict.Replica()}
	if stmt, ok := p.stmts[key]; ok {
		return stmt, nil
	}
	p.begin(g, true, 0)
	stmt, err := ctxDriverPrepare(ctx, p.conn, st.text)
	if err != nil {
		return nil, err
	}
	if p.stmts == nil {
		p.stmts = make(map[held]driver.Stmt)
	}
	p.stmts[key] = stmt
	return stmt, nil
}

// implicit returns a statement for a text that the application has not prepared,
// because the driver runs texts with arguments no other way. Temporary: it is
// closed after this use. Statements that are worth keeping will come from a cache
// here.
func (p *physical) implicit(ctx context.Context, st *statement, g *progress) (stmt driver.Stmt, temporary bool, err error) {
	p.begin(g, true, 0)
	stmt, err = ctxDriverPrepare(ctx, p.conn, st.text)
	return stmt, true, err
}

// holds tells whether the connection has st prepared.
func (p *physical) holds(st *statement) bool {
	for key := range p.stmts {
		if key.st == st {
			return true
		}
	}
	return false
}

// closeStmts closes the connection's statements of the texts that are picked.
func (p *physical) closeStmts(pick func(*statement) bool) error {
	var errs []error
	for key, stmt := range p.stmts {
		if pick(key.st) {
			delete(p.stmts, key)
			errs = append(errs, stmt.Close())
		}
	}
	return errors.Join(errs...)
}

// closeReleased closes the statements that no live driver.Stmt uses any more.
//
// Nothing bounds a driver's Close, so a hung server gets no more than the grace.
func (p *physical) closeReleased() {
	if len(p.stmts) == 0 {
		return
	}
	limit := time.AfterFunc(abortGrace, func() { p.abort(errClosed) })
	_ = p.closeStmts((*statement).released)
	if !limit.Stop() {
		p.spoiled = true // the abort may still be on the way
	}
}

// closeAllStmts closes every statement: what they were prepared under has changed.
func (p *physical) closeAllStmts() { _ = p.closeStmts(func(*statement) bool { return true }) }
