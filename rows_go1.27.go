//go:build go1.27

package replicated

import (
	"database/sql/driver"
	"io"
)

// scannerRows are rows whose node lets the driver scan into the caller's
// variables, which database/sql uses in place of Next as of Go 1.27. It is a type
// of its own because database/sql decides by its presence: Rows that have the
// methods must be able to keep them.
type scannerRows struct {
	rows
	scanner driver.RowsColumnScanner // the same as inner
}

var (
	_ driver.RowsColumnScanner = (*scannerRows)(nil)
	_ driver.RowsNextResultSet = (*scannerRows)(nil)
)

// wrapScanner wraps inner if it is a RowsColumnScanner, else it returns nil.
func wrapScanner(inner driver.Rows, first *firstRow, onError, onClose func(error) error) driver.Rows {
	scanner, ok := inner.(driver.RowsColumnScanner)
	if !ok {
		return nil
	}
	return &scannerRows{rows{inner: inner, first: first, onError: onError, onClose: onClose}, scanner}
}

// NextRow implements driver.RowsColumnScanner. After Close it returns io.EOF.
func (r *scannerRows) NextRow() error {
	if r.closed {
		return io.EOF
	}
	if first := r.first; first != nil {
		r.first = nil
		return first.err // a row read ahead is still the node's current one
	}
	if err := r.scanner.NextRow(); err != nil {
		return r.failed(err)
	}
	return nil
}

// ScanColumn implements driver.RowsColumnScanner. Its errors are the scan's, not
// the connection's, and reach the caller as they are.
func (r *scannerRows) ScanColumn(ctx driver.ScanContext, index int, dest any) error {
	if r.closed {
		return io.EOF
	}
	return r.scanner.ScanColumn(ctx, index, dest)
}

// fetchScanner moves inner to its first row by NextRow, if it has that; scan is
// nil if not. scan serves a caller that calls Next all the same, as a wrapper
// written for an older Go does.
func fetchScanner(inner driver.Rows) (scan func(index int) (driver.Value, error), err error) {
	scanner, ok := inner.(driver.RowsColumnScanner)
	if !ok {
		return nil, nil
	}
	scan = func(index int) (driver.Value, error) {
		var value any
		err := scanner.ScanColumn(driver.ScanContext{}, index, &value)
		return value, err
	}
	return scan, scanner.NextRow()
}
