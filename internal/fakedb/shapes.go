package fakedb

import (
	"context"
	"database/sql/driver"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// Shape names the set of optional methods of a driver, and the habits that go
// with it.
//
//	            Full  MySQLLike    PQLike       PgxLike      Legacy     Minimal
//	Conn
//	PrepareContext x      x           x            x            -          -
//	BeginTx        x      x           x            x            -          -
//	ExecContext    x   skips args     x            x         Exec only     -
//	QueryContext   x   skips args     x            x         Query only    -
//	Ping           x      x           x            x            -          -
//	ResetSession   x      x           x            x            -          -
//	IsValid        x      x           x            -            -          -
//	CheckNamedValue x     x        slices       anything        -          -
//	TxStatus       x      x           x            x            -          -
//	Stmt
//	contexts       x      x           x          only these     -          -
//	CheckNamedValue x     x           -            -            -          -
//	ColumnConverter x     x           -            -            x          -
//	NumInput     counts counts      counts       counts       counts      -1
//	Rows
//	NextResultSet  x      x           x            -            x          -
//	ScanType       x      x           x            x            -          -
//	DatabaseType   x      x           x            x            -          -
//	Length         x      -           x            x            -          -
//	Nullable       x      x           -            -            -          -
//	PrecisionScale x      x           x            x            -          -
//	ColumnScanner  -      -           -       from Go 1.27      -          -
//	Habits
//	cancelled ctx  -    closes        -          closes         -          -
//	failed in a tx -      -        aborts it    aborts it       -          -
//	LastInsertId   x      x         error        error          x          x
type Shape uint8

// The shapes of drivers. Full is the zero value.
const (
	Full Shape = iota
	MySQLLike
	PQLike // lib/pq: also has Exec and Query without context, and is its own Tx
	PgxLike
	Legacy  // a driver of Go 1.7: Execer, Queryer, ColumnConverter, no context anywhere
	Minimal // the mandatory methods alone
)

// Shapes lists all shapes, for tests that run over each.
func Shapes() []Shape { return []Shape{Full, MySQLLike, PQLike, PgxLike, Legacy, Minimal} }

func (s Shape) String() string {
	switch s {
	case Full:
		return "full"
	case MySQLLike:
		return "mysql-like"
	case PQLike:
		return "pq-like"
	case PgxLike:
		return "pgx-like"
	case Legacy:
		return "legacy"
	case Minimal:
		return "minimal"
	}
	return fmt.Sprintf("shape(%d)", uint8(s))
}

func (s Shape) breaksOnCancel() bool { return s == MySQLLike || s == PgxLike }
func (s Shape) failsTx() bool        { return s == PQLike || s == PgxLike }
func (s Shape) noLastID() bool       { return s == PQLike || s == PgxLike }

// Each optional method of a Conn is a type of its own, and a shape embeds those
// it has.
type (
	connPrepare struct{ c *core }
	connBegin   struct{ c *core }
	connExec    struct{ c *core }
	connQuery   struct{ c *core }
	connPing    struct{ c *core }
	connReset   struct{ c *core }
	connValid   struct{ c *core }
	connCheck   struct{ c *core }
	connStatus  struct{ c *core }
	oldExec     struct{ c *core }
	oldQuery    struct{ c *core }
)

func (m connPrepare) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	return m.c.prepare(ctx, text)
}

func (m connBegin) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	return m.c.begin(ctx, opts)
}

func (m connExec) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	if m.c.shape == MySQLLike && len(args) > 0 {
		m.c.touch()
		return nil, driver.ErrSkip
	}
	return m.c.exec(ctx, text, args, false)
}

func (m connQuery) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	if m.c.shape == MySQLLike && len(args) > 0 {
		m.c.touch()
		return nil, driver.ErrSkip
	}
	return m.c.query(ctx, text, args, false)
}

func (m connPing) Ping(ctx context.Context) error { return m.c.ping(ctx) }

func (m connReset) ResetSession(ctx context.Context) error { return m.c.reset(ctx) }

func (m connValid) IsValid() bool {
	m.c.touch()
	return !m.c.closed && !m.c.broken.Load()
}

func (m connCheck) CheckNamedValue(nv *driver.NamedValue) error { return m.c.check(nv) }

// TxStatus tells the transaction state as the PostgreSQL protocol does: 'I'
// idle, 'T' in a transaction, 'E' in a failed one.
func (m connStatus) TxStatus() byte {
	m.c.touch()
	return m.c.tx
}

// PID is what a server gives in BackendKeyData, always the same here.
func (m connStatus) PID() uint32 { return BackendPID }

// BackendPID is the process id of every connection of a shape with a status. An
// answer with another pg_backend_pid() means that a pooler sits between.
const BackendPID = 1

func (m oldExec) Exec(text string, args []driver.Value) (driver.Result, error) {
	return m.c.exec(context.Background(), text, namedValues(args), false)
}

func (m oldQuery) Query(text string, args []driver.Value) (driver.Rows, error) {
	return m.c.query(context.Background(), text, namedValues(args), false)
}

// check is the NamedValueChecker: the script's, or the shape's habit.
func (c *core) check(nv *driver.NamedValue) error {
	c.touch()
	if check := c.server.checker(); check != nil {
		return check(nv)
	}
	switch c.shape {
	case PgxLike:
		return nil
	case MySQLLike:
		if _, ok := nv.Value.(uint64); ok {
			return nil
		}
		v, err := driver.DefaultParameterConverter.ConvertValue(nv.Value)
		nv.Value = v
		return err
	case PQLike:
		if _, ok := nv.Value.(driver.Valuer); ok {
			return driver.ErrSkip
		}
		switch v := reflect.ValueOf(nv.Value); {
		case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
			nv.Value = "{" + strings.Trim(strings.ReplaceAll(fmt.Sprint(v.Interface()), " ", ","), "[]") + "}"
			return nil
		case v.Kind() == reflect.Uint64 && v.Uint() > math.MaxInt64:
			nv.Value = strconv.FormatUint(v.Uint(), 10)
			return nil
		}
	}
	return driver.ErrSkip
}

type (
	fullConn struct {
		*core
		connPrepare
		connBegin
		connExec
		connQuery
		connPing
		connReset
		connValid
		connCheck
		connStatus
	}
	pqConn struct {
		fullConn
		oldExec
		oldQuery
		tx
	}
	pgxConn struct {
		*core
		connPrepare
		connBegin
		connExec
		connQuery
		connPing
		connReset
		connCheck
		connStatus
	}
	legacyConn struct {
		*core
		oldExec
		oldQuery
	}
)

// conn dresses c in the optional methods of the shape.
func (s Shape) conn(c *core) driver.Conn {
	full := fullConn{c, connPrepare{c}, connBegin{c}, connExec{c}, connQuery{c}, connPing{c}, connReset{c}, connValid{c}, connCheck{c}, connStatus{c}}
	switch s {
	case Full, MySQLLike:
		return &full
	case PQLike:
		pq := &pqConn{full, oldExec{c}, oldQuery{c}, tx{c}}
		c.own = pq
		return pq
	case PgxLike:
		return &pgxConn{c, connPrepare{c}, connBegin{c}, connExec{c}, connQuery{c}, connPing{c}, connReset{c}, connCheck{c}, connStatus{c}}
	case Legacy:
		return &legacyConn{c, oldExec{c}, oldQuery{c}}
	case Minimal:
		return c
	}
	panic("fakedb: BUG: " + s.String())
}

// newTx returns the transaction just begun: the connection itself where it is
// its own.
func (c *core) newTx() driver.Tx {
	if c.own != nil {
		return c.own
	}
	return tx{c}
}

type (
	stmtContext struct{ st *stmt }
	stmtCheck   struct{ st *stmt }
	stmtConvert struct{ st *stmt }
)

func (m stmtContext) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return m.st.exec(ctx, args)
}

func (m stmtContext) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return m.st.query(ctx, args)
}

func (m stmtCheck) CheckNamedValue(nv *driver.NamedValue) error { return m.st.c.check(nv) }

func (m stmtConvert) ColumnConverter(index int) driver.ValueConverter {
	return m.st.c.server.columnConverter(index)
}

// stmt dresses st in the optional methods of the shape.
func (s Shape) stmt(st *stmt) driver.Stmt {
	switch s {
	case Full, MySQLLike:
		return struct {
			*stmt
			stmtContext
			stmtCheck
			stmtConvert
		}{st, stmtContext{st}, stmtCheck{st}, stmtConvert{st}}
	case PQLike, PgxLike:
		return struct {
			*stmt
			stmtContext
		}{st, stmtContext{st}}
	case Legacy:
		return struct {
			*stmt
			stmtConvert
		}{st, stmtConvert{st}}
	}
	return st
}

type (
	rowsSets      struct{ r *rows }
	rowsScanType  struct{ r *rows }
	rowsDatabase  struct{ r *rows }
	rowsLength    struct{ r *rows }
	rowsNullable  struct{ r *rows }
	rowsPrecision struct{ r *rows }
)

func (m rowsSets) HasNextResultSet() bool { return m.r.hasNextResultSet() }
func (m rowsSets) NextResultSet() error   { return m.r.nextResultSet() }

func (m rowsScanType) ColumnTypeScanType(i int) reflect.Type { return m.r.columnType(i).ScanType }

func (m rowsDatabase) ColumnTypeDatabaseTypeName(i int) string { return m.r.columnType(i).DatabaseType }

func (m rowsLength) ColumnTypeLength(i int) (int64, bool) {
	t := m.r.columnType(i)
	return t.Length, t.HasLength
}

func (m rowsNullable) ColumnTypeNullable(i int) (nullable, ok bool) {
	t := m.r.columnType(i)
	return t.Nullable, t.HasNullable
}

func (m rowsPrecision) ColumnTypePrecisionScale(i int) (precision, scale int64, ok bool) {
	t := m.r.columnType(i)
	return t.Precision, t.Scale, t.HasPrecisionScale
}

// rows dresses r in the optional methods of the shape.
func (s Shape) rows(r *rows) driver.Rows {
	switch s {
	case Full:
		return struct {
			*rows
			rowsSets
			rowsScanType
			rowsDatabase
			rowsLength
			rowsNullable
			rowsPrecision
		}{r, rowsSets{r}, rowsScanType{r}, rowsDatabase{r}, rowsLength{r}, rowsNullable{r}, rowsPrecision{r}}
	case MySQLLike:
		return struct {
			*rows
			rowsSets
			rowsScanType
			rowsDatabase
			rowsNullable
			rowsPrecision
		}{r, rowsSets{r}, rowsScanType{r}, rowsDatabase{r}, rowsNullable{r}, rowsPrecision{r}}
	case PQLike:
		return struct {
			*rows
			rowsSets
			rowsScanType
			rowsDatabase
			rowsLength
			rowsPrecision
		}{r, rowsSets{r}, rowsScanType{r}, rowsDatabase{r}, rowsLength{r}, rowsPrecision{r}}
	case PgxLike:
		return struct {
			*rows
			rowsScanType
			rowsDatabase
			rowsLength
			rowsPrecision
			*rowsScanner
		}{r, rowsScanType{r}, rowsDatabase{r}, rowsLength{r}, rowsPrecision{r}, newRowsScanner(r)}
	case Legacy:
		return struct {
			*rows
			rowsSets
		}{r, rowsSets{r}}
	}
	return r
}
