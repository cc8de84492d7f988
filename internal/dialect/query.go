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

// queryRow runs text and returns its only row, which must have n columns.
func queryRow(ctx context.Context, conn driver.Conn, text string, n int) (row []cell, err error) {
	rows, done, err := query(ctx, conn, text)
	if err != nil {
		return nil, err
	}
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
			return nil, errors.New("no row")
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

// query starts a query without arguments; done frees what was prepared for it,
// after the rows have been closed.
func query(ctx context.Context, conn driver.Conn, text string) (rows driver.Rows, done func() error, err error) {
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
	if q, ok := stmt.(driver.StmtQueryContext); ok {
		rows, err = q.QueryContext(ctx, nil)
	} else {
		rows, err = stmt.Query(nil) //nolint:staticcheck // all that the driver has
	}
	if err != nil {
		_ = stmt.Close()
		return nil, nil, err
	}
	return rows, stmt.Close, nil
}

// exec runs a statement without arguments or result.
func exec(ctx context.Context, conn driver.Conn, text string) error {
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
