package dialect

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// cell is one value of a row, as text. Rows here are small and their columns
// are of a few known types, so one form for all drivers is simplest.
type cell struct {
	text string
	null bool
}

// on reports whether the cell says yes. MySQL's variables are 1 or "ON",
// MariaDB 12's read_only also "NO_LOCK" and the like.
func (c cell) on() bool {
	switch c.text {
	case "", "0", "OFF", "off", "false", "f":
		return false
	}
	return true
}

// integer returns the cell as a number, 0 if it is none.
func (c cell) integer() int64 {
	n, _ := strconv.ParseInt(c.text, 10, 64)
	return n
}

// marker stands in front of all that is sent from here, so that it can be told
// from the application's statements in a server's log and list of sessions.
const marker = "/* replicated */ "

var errNoRow = errors.New("no row")

// queryRow runs text and returns its only row, which must have n columns.
func queryRow(ctx context.Context, conn driver.Conn, text string, n int) (row []cell, err error) {
	rows, done, err := query(ctx, conn, text)
	if err != nil {
		return nil, err
	}
	return onlyRow(rows, done, n)
}

// onlyRow reads the only row of rows, and closes them.
func onlyRow(rows driver.Rows, done func() error, n int) (row []cell, err error) {
	defer func() {
		if e := errors.Join(rows.Close(), done()); e != nil && err == nil {
			row, err = nil, e
		}
	}()
	if got := len(rows.Columns()); got != n {
		return nil, fmt.Errorf("%d columns where %d were asked for", got, n)
	}
	values := make([]driver.Value, n)
	for {
		switch err := rows.Next(values); {
		case err == io.EOF && row == nil:
			return nil, errNoRow
		case err == io.EOF:
			return row, nil
		case err != nil:
			return nil, err
		case row == nil:
			row = make([]cell, n)
			for i, v := range values { // at once: they are the driver's until the next Next
				row[i] = toCell(v)
			}
		}
	}
}

// namedRow is a row whose columns differ from one version of the server to the
// next.
type namedRow map[string]cell

// named returns the value of the column that has one of the names.
func (r namedRow) named(names ...string) cell {
	for _, name := range names {
		if c, ok := r[name]; ok {
			return c
		}
	}
	return cell{null: true}
}

// queryRows runs text and returns all rows, of which there may be so many at most.
func queryRows(ctx context.Context, conn driver.Conn, text string, most int) (out []namedRow, err error) {
	rows, done, err := query(ctx, conn, text)
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := errors.Join(rows.Close(), done()); e != nil && err == nil {
			out, err = nil, e
		}
	}()
	names := rows.Columns()
	values := make([]driver.Value, len(names))
	for {
		switch err := rows.Next(values); {
		case err == io.EOF:
			return out, nil
		case err != nil:
			return nil, err
		case len(out) == most:
			return nil, fmt.Errorf("more than %d rows", most)
		}
		row := make(namedRow, len(names))
		for i, v := range values {
			row[names[i]] = toCell(v)
		}
		out = append(out, row)
	}
}

// query starts a query without arguments; done frees what was prepared for it,
// after the rows have been closed.
func query(ctx context.Context, conn driver.Conn, text string) (rows driver.Rows, done func() error, err error) {
	text = marker + text
	if q, ok := conn.(driver.QueryerContext); ok {
		rows, err = q.QueryContext(ctx, text, nil)
		if err != driver.ErrSkip {
			return rows, func() error { return nil }, err
		}
	}
	stmt, err := prepare(ctx, conn, text)
	if err != nil {
		return nil, nil, err
	}
	if rows, err = queryStmt(ctx, stmt); err != nil {
		_ = stmt.Close()
		return nil, nil, err
	}
	return rows, stmt.Close, nil
}

// queryStmt runs a prepared query without arguments.
func queryStmt(ctx context.Context, stmt driver.Stmt) (driver.Rows, error) {
	if q, ok := stmt.(driver.StmtQueryContext); ok {
		return q.QueryContext(ctx, nil)
	}
	return stmt.Query(nil) //nolint:staticcheck // all that the driver has
}

// exec runs a statement without arguments or result.
func exec(ctx context.Context, conn driver.Conn, text string) error {
	text = marker + text
	if e, ok := conn.(driver.ExecerContext); ok {
		_, err := e.ExecContext(ctx, text, nil)
		if err != driver.ErrSkip {
			return err
		}
	}
	stmt, err := prepare(ctx, conn, text)
	if err != nil {
		return err
	}
	if e, ok := stmt.(driver.StmtExecContext); ok {
		_, err = e.ExecContext(ctx, nil)
	} else {
		_, err = stmt.Exec(nil) //nolint:staticcheck // all that the driver has
	}
	return errors.Join(err, stmt.Close())
}

func prepare(ctx context.Context, conn driver.Conn, text string) (driver.Stmt, error) {
	if p, ok := conn.(driver.ConnPrepareContext); ok {
		return p.PrepareContext(ctx, text)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return conn.Prepare(text)
}

// toCell returns a driver's value as text.
func toCell(v driver.Value) cell {
	switch v := v.(type) {
	case nil:
		return cell{null: true}
	case string:
		return cell{text: v}
	case []byte:
		return cell{text: string(v)}
	case int64:
		return cell{text: strconv.FormatInt(v, 10)}
	case bool:
		return cell{text: strconv.FormatBool(v)}
	case time.Time:
		return cell{text: v.Format(time.RFC3339Nano)}
	}
	return cell{text: fmt.Sprint(v)}
}
