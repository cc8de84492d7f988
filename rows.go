package replicated

import (
	"database/sql/driver"
	"io"
	"reflect"
)

// rows wraps a node's Rows, for one of four reasons: a replica's connection has
// to be given back when they end, an implicit statement has to be closed, the
// end of a write's rows raises a floor, or a lost replica connection must not
// reach database/sql as driver.ErrBadConn, which would cost the primary.
//
// It has every optional method of driver.Rows. Where the node's Rows lack one it
// answers what database/sql assumes in its absence, so the difference cannot be
// seen; RowsColumnScanner of Go 1.27, which replaces Next, is left to a second
// type (rows_go1.27.go).
//
// Like all Rows it is used by one goroutine at a time. Invariant: after Close
// the node's Rows are not touched, except for what they remember of columns:
// their connection may be serving someone else.
type rows struct {
	inner   driver.Rows
	first   *firstRow             // read ahead and not handed out yet, or nil
	onError func(error) error     // maps an error of Next or NextResultSet, never io.EOF; nil: none
	onClose func(err error) error // called once, when inner has been closed; nil: none
	err     error                 // first error of Next or NextResultSet, unmapped, other than io.EOF
	closed  bool
}

var (
	_ driver.Rows                           = (*rows)(nil)
	_ driver.RowsNextResultSet              = (*rows)(nil)
	_ driver.RowsColumnTypeScanType         = (*rows)(nil)
	_ driver.RowsColumnTypeDatabaseTypeName = (*rows)(nil)
	_ driver.RowsColumnTypeLength           = (*rows)(nil)
	_ driver.RowsColumnTypeNullable         = (*rows)(nil)
	_ driver.RowsColumnTypePrecisionScale   = (*rows)(nil)
)

// wrapRows wraps inner. Each of the other arguments may be nil.
//
// first is what fetchFirst has read of inner. onError maps the errors of Next
// and NextResultSet, but for io.EOF, to what the caller is to see. onClose is
// called exactly once, after inner has been closed, with the first error of Next
// or NextResultSet as the node gave it, or else with that of inner's Close; what
// it returns is what Close returns.
func wrapRows(inner driver.Rows, first *firstRow, onError, onClose func(error) error) driver.Rows {
	if scanner := wrapScanner(inner, first, onError, onClose); scanner != nil {
		return scanner
	}
	return &rows{inner: inner, first: first, onError: onError, onClose: onClose}
}

// Columns implements driver.Rows.
func (r *rows) Columns() []string {
	if r.first != nil {
		return r.first.columns
	}
	return r.inner.Columns()
}

// Next implements driver.Rows. After Close it returns io.EOF.
func (r *rows) Next(dest []driver.Value) error {
	if r.closed {
		return io.EOF
	}
	if first := r.first; first != nil {
		r.first = nil
		return first.next(dest)
	}
	if err := r.inner.Next(dest); err != nil {
		return r.failed(err)
	}
	return nil
}

// HasNextResultSet implements driver.RowsNextResultSet.
func (r *rows) HasNextResultSet() bool {
	if r.closed {
		return false
	}
	sets, ok := r.inner.(driver.RowsNextResultSet)
	return ok && sets.HasNextResultSet()
}

// NextResultSet implements driver.RowsNextResultSet.
func (r *rows) NextResultSet() error {
	sets, ok := r.inner.(driver.RowsNextResultSet)
	if !ok || r.closed {
		return io.EOF
	}
	r.first = nil // of the result set that is left
	if err := sets.NextResultSet(); err != nil {
		return r.failed(err)
	}
	return nil
}

// failed notes an error of inner and gives the one that the caller sees.
func (r *rows) failed(err error) error {
	if err == io.EOF {
		return err
	}
	if r.err == nil {
		r.err = err
	}
	if r.onError != nil {
		return r.onError(err)
	}
	return err
}

// Close implements driver.Rows. Only the first call does anything; later ones
// return nil.
func (r *rows) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	err := r.inner.Close()
	if r.err != nil {
		err = r.err
	}
	if r.onClose != nil {
		return r.onClose(err)
	}
	return err
}

// ColumnTypeScanType implements driver.RowsColumnTypeScanType.
func (r *rows) ColumnTypeScanType(index int) reflect.Type {
	if types, ok := r.inner.(driver.RowsColumnTypeScanType); ok {
		return types.ColumnTypeScanType(index)
	}
	return reflect.TypeFor[any]()
}

// ColumnTypeDatabaseTypeName implements driver.RowsColumnTypeDatabaseTypeName.
func (r *rows) ColumnTypeDatabaseTypeName(index int) string {
	if types, ok := r.inner.(driver.RowsColumnTypeDatabaseTypeName); ok {
		return types.ColumnTypeDatabaseTypeName(index)
	}
	return ""
}

// ColumnTypeLength implements driver.RowsColumnTypeLength.
func (r *rows) ColumnTypeLength(index int) (length int64, ok bool) {
	if types, ok := r.inner.(driver.RowsColumnTypeLength); ok {
		return types.ColumnTypeLength(index)
	}
	return 0, false
}

// ColumnTypeNullable implements driver.RowsColumnTypeNullable.
func (r *rows) ColumnTypeNullable(index int) (nullable, ok bool) {
	if types, ok := r.inner.(driver.RowsColumnTypeNullable); ok {
		return types.ColumnTypeNullable(index)
	}
	return false, false
}

// ColumnTypePrecisionScale implements driver.RowsColumnTypePrecisionScale.
func (r *rows) ColumnTypePrecisionScale(index int) (precision, scale int64, ok bool) {
	if types, ok := r.inner.(driver.RowsColumnTypePrecisionScale); ok {
		return types.ColumnTypePrecisionScale(index)
	}
	return 0, 0, false
}

// firstRow is the outcome of reading one row ahead.
type firstRow struct {
	columns []string
	values  []driver.Value // nil at the end of the rows, and where scan is set
	err     error          // nil or io.EOF

	// scan, if set, copies a column of the node's current row: the row was
	// read by NextRow, whose values only ScanColumn can see.
	scan func(index int) (driver.Value, error)
}

// fetchFirst reads the first row of inner ahead, which wrapRows hands out. It is
// meant for drivers that may report a statement's error only with the first row:
// the error then comes while the statement can still be run elsewhere. It costs
// a copy of the row.
//
// The end of the rows is no error. After an error inner is still open, for the
// caller to close.
func fetchFirst(inner driver.Rows) (*firstRow, error) {
	// Columns are asked first because database/sql does so, too: a driver may
	// forget them at the end of the rows.
	first := &firstRow{columns: inner.Columns()}
	first.scan, first.err = fetchScanner(inner)
	if first.scan == nil {
		first.values = make([]driver.Value, len(first.columns))
		first.err = inner.Next(first.values)
		first.keep()
	}
	if first.err == nil || first.err == io.EOF {
		return first, nil
	}
	return nil, first.err
}

// keep copies what the driver only lends. Its memory is good until its next
// Next, and nobody calls that before the row is handed out; but a driver cannot
// know that a ColumnType method comes between a row and its use.
func (f *firstRow) keep() {
	for i, value := range f.values {
		if b, ok := value.([]byte); ok && b != nil {
			f.values[i] = append(make([]byte, 0, len(b)), b...)
		}
	}
}

// next hands the row out.
func (f *firstRow) next(dest []driver.Value) error {
	if f.err != nil {
		return f.err
	}
	if f.scan == nil {
		copy(dest, f.values)
		return nil
	}
	for i := range dest {
		value, err := f.scan(i)
		if err != nil {
			return err
		}
		dest[i] = value
	}
	return nil
}
