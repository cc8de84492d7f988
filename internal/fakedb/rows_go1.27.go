//go:build go1.27

package fakedb

import (
	"database/sql"
	"database/sql/driver"
)

// rowsScanner is the RowsColumnScanner of Go 1.27.
type rowsScanner struct {
	r   *rows
	row []driver.Value // the current one
}

func newRowsScanner(r *rows) *rowsScanner { return &rowsScanner{r: r} }

func (m *rowsScanner) NextRow() (err error) {
	m.row, err = m.r.advance()
	return err
}

func (m *rowsScanner) ScanColumn(ctx driver.ScanContext, index int, dest any) error {
	m.r.c.touch()
	return sql.ConvertAssign(ctx, dest, m.r.lend(m.row[index]))
}
