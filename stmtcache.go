package replicated

import (
	"context"
	"database/sql/driver"
)

// This file keeps the prepared statements of one physical connection.

// prepared returns the connection's own statement for a live driver.Stmt,
// preparing it at its first use here. It is closed with the last driver.Stmt of
// that text.
func (p *physical) prepared(ctx context.Context, st *statement, g *progress) (driver.Stmt, error) {
	if stmt, ok := p.stmts[st]; ok {
		return stmt, nil
	}
	p.begin(g, true, 0)
	stmt, err := ctxDriverPrepare(ctx, p.conn, st.text)
	if err != nil {
		return nil, err
	}
	if p.stmts == nil {
		p.stmts = make(map[*statement]driver.Stmt)
	}
	p.stmts[st] = stmt
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

// closeStmt closes the connection's own statement for st, if it has one.
func (p *physical) closeStmt(st *statement) error {
	stmt, ok := p.stmts[st]
	if !ok {
		return nil
	}
	delete(p.stmts, st)
	return stmt.Close()
}

// closeStmts closes all the connection's statements.
func (p *physical) closeStmts() {
	for st := range p.stmts {
		_ = p.closeStmt(st)
	}
}

// closeReleased closes the statements that no live driver.Stmt uses any more.
func (p *physical) closeReleased() {
	for st := range p.stmts {
		if st.released() {
			_ = p.closeStmt(st)
		}
	}
}
