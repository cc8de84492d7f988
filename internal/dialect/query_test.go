package dialect_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/internal/dialect"
)

// script is what a scripted connection answers to its only query.
type script struct {
	columns int
	rows    [][]driver.Value
	err     error // of the query
	nextErr error // after the rows
	closed  []string
}

// bareConn can only prepare; skipConn leaves texts to be prepared.
type (
	bareConn struct{ *script }
	skipConn struct{ bareConn }
	fullConn struct{ bareConn }
	ctxConn  struct{ bareConn }
	bareStmt struct{ *script }
	ctxStmt  struct{ bareStmt }
	rows     struct {
		*script
		at int
	}
)

func (c bareConn) Prepare(string) (driver.Stmt, error) { return bareStmt(c), nil }
func (c bareConn) Close() error                        { return nil }
func (c bareConn) Begin() (driver.Tx, error)           { return nil, driver.ErrSkip }

func (c ctxConn) PrepareContext(context.Context, string) (driver.Stmt, error) {
	return ctxStmt{bareStmt{c.script}}, nil
}

func (skipConn) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return nil, driver.ErrSkip
}

func (c fullConn) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return c.open()
}

func (s bareStmt) Close() error                              { s.closed = append(s.closed, "stmt"); return nil }
func (bareStmt) NumInput() int                               { return 0 }
func (bareStmt) Exec([]driver.Value) (driver.Result, error)  { return nil, driver.ErrSkip }
func (s bareStmt) Query([]driver.Value) (driver.Rows, error) { return s.open() }
func (s ctxStmt) QueryContext(context.Context, []driver.NamedValue) (driver.Rows, error) {
	return s.open()
}

func (s *script) open() (driver.Rows, error) {
	if s.err != nil {
		return nil, s.err
	}
	return &rows{script: s}, nil
}

func (r *rows) Columns() []string { return make([]string, r.columns) }
func (r *rows) Close() error      { r.closed = append(r.closed, "rows"); return nil }
func (r *rows) Next(dest []driver.Value) error {
	if r.at == len(r.rows) {
		if r.nextErr != nil {
			return r.nextErr
		}
		return io.EOF
	}
	copy(dest, r.rows[r.at])
	r.at++
	return nil
}

func TestQueryRowOverEveryShapeOfDriver(t *testing.T) {
	value := []driver.Value{"text", []byte("bytes"), int64(-7), true, nil, 1.5, uint64(1 << 63), time.Unix(0, 0).UTC()}
	want := []string{"text", "bytes", "-7", "true", "", "1.5", "9223372036854775808", "1970-01-01T00:00:00Z"}
	for name, shape := range map[string]func(*script) driver.Conn{
		"prepare":         func(s *script) driver.Conn { return bareConn{s} },
		"prepare context": func(s *script) driver.Conn { return ctxConn{bareConn{s}} },
		"skips":           func(s *script) driver.Conn { return skipConn{bareConn{s}} },
		"queries":         func(s *script) driver.Conn { return fullConn{bareConn{s}} },
	} {
		t.Run(name, func(t *testing.T) {
			s := &script{columns: len(value), rows: [][]driver.Value{value}}
			got, err := dialect.QueryRow(context.Background(), shape(s), "q", len(value))
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("row %q, %v; want %q", got, err, want)
			}
			wantClosed := []string{"rows", "stmt"}
			if name == "queries" {
				wantClosed = wantClosed[:1]
			}
			if !slices.Equal(s.closed, wantClosed) {
				t.Errorf("closed %q, want %q", s.closed, wantClosed)
			}
		})
	}
}

func TestQueryRowReportsErrors(t *testing.T) {
	boom := errors.New("boom")
	row := []driver.Value{"x"}
	for name, s := range map[string]*script{
		"query fails":       {columns: 1, err: boom},
		"first row fails":   {columns: 1, nextErr: boom},
		"end fails":         {columns: 1, rows: [][]driver.Value{row}, nextErr: boom},
		"no row":            {columns: 1},
		"number of columns": {columns: 2, rows: [][]driver.Value{row}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := dialect.QueryRow(context.Background(), bareConn{s}, "q", 1)
			if err == nil || got != nil || (s.err != nil || s.nextErr != nil) && !errors.Is(err, boom) {
				t.Errorf("row %q, error %v", got, err)
			}
			if len(s.closed) == 0 || s.closed[len(s.closed)-1] != "stmt" {
				t.Errorf("closed %q: the statement is left", s.closed)
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := dialect.QueryRow(ctx, bareConn{&script{columns: 1}}, "q", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
}
