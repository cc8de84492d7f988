package dialect_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/dialect"
)

// catalogConn answers the queries of a catalog by what stands in them.
type catalogConn struct {
	driver.Conn
	answers map[string]*catalogRows
}

func (c catalogConn) QueryContext(ctx context.Context, text string, _ []driver.NamedValue) (driver.Rows, error) {
	for part, rows := range c.answers {
		if strings.Contains(text, part) {
			again := *rows
			return &again, ctx.Err()
		}
	}
	return nil, errors.New("not expected: " + text)
}

// catalogRows are some rows, or one without end.
type catalogRows struct {
	columns int
	rows    [][]driver.Value
	endless []driver.Value
	err     error
}

func (r *catalogRows) Columns() []string { return make([]string, r.columns) }
func (r *catalogRows) Close() error      { return nil }
func (r *catalogRows) Next(dest []driver.Value) error {
	switch {
	case r.endless != nil:
		copy(dest, r.endless)
	case len(r.rows) > 0:
		copy(dest, r.rows[0])
		r.rows = r.rows[1:]
	case r.err != nil:
		return r.err
	default:
		return io.EOF
	}
	return nil
}

func mysqlCatalog() catalogConn {
	return catalogConn{answers: map[string]*catalogRows{
		"ROUTINES": {columns: 4, rows: [][]driver.Value{
			{[]byte("shop"), "reads", "FUNCTION", "READS SQL DATA"},
			{"shop", "none", "FUNCTION", "NO SQL"},
			{"shop", "silent", "FUNCTION", "CONTAINS SQL"},
			{"shop", "writes", "FUNCTION", "MODIFIES SQL DATA"},
			{"tools", "reads", "FUNCTION", "READS SQL DATA"},
			{"shop", "Tools", "PACKAGE BODY", "READS SQL DATA"},
		}},
		"VIEWS":  {columns: 3, rows: [][]driver.Value{{"shop", "v", "select 1"}, {"shop", "hidden", nil}}},
		"TABLES": {columns: 2, rows: [][]driver.Value{{"shop", "cache"}}},
	}}
}

func TestCatalogOfMySQL(t *testing.T) {
	got, version, err := dialect.For(classify.MariaDB).Catalog(t.Context(), mysqlCatalog(), "")
	if err != nil {
		t.Fatal(err)
	}
	if version != "" {
		t.Errorf("version %q", version)
	}
	wantFunctions := []classify.CatalogFunction{
		{Schema: "shop", Name: "reads", Harmless: true},
		{Schema: "shop", Name: "none", Harmless: true},
		{Schema: "shop", Name: "silent"},
		{Schema: "shop", Name: "writes"},
		{Schema: "tools", Name: "reads"}, // or a function of the package
	}
	if !slices.Equal(got.Functions, wantFunctions) {
		t.Errorf("functions %+v, want %+v", got.Functions, wantFunctions)
	}
	wantRelations := []classify.CatalogRelation{
		{Schema: "shop", Name: "v", Text: "select 1"},
		{Schema: "shop", Name: "hidden"},
		{Schema: "shop", Name: "cache", Local: true},
	}
	if !slices.Equal(got.Relations, wantRelations) {
		t.Errorf("relations %+v, want %+v", got.Relations, wantRelations)
	}
}

// Half a catalog is none.
func TestCatalogFailsWhole(t *testing.T) {
	broken := errors.New("broken")
	for _, part := range []string{"ROUTINES", "VIEWS", "TABLES"} {
		conn := mysqlCatalog()
		conn.answers[part].err = broken
		if got, _, err := dialect.For(classify.MySQL).Catalog(t.Context(), conn, ""); got != nil || !errors.Is(err, broken) {
			t.Errorf("%s broken: %v, %v", part, got, err)
		}
		conn = mysqlCatalog()
		conn.answers[part].columns++
		if got, _, err := dialect.For(classify.MySQL).Catalog(t.Context(), conn, ""); got != nil || err == nil {
			t.Errorf("%s with another column: %v, %v", part, got, err)
		}
	}
	if got, _, err := dialect.For(classify.Generic).Catalog(t.Context(), mysqlCatalog(), ""); got != nil || !errors.Is(err, dialect.ErrNoCatalog) {
		t.Errorf("generic: %v, %v", got, err)
	}
	if dialect.For(classify.Generic).HasCatalog() || !dialect.For(classify.AnyMySQL).HasCatalog() {
		t.Error("HasCatalog is wrong")
	}
}

// A catalog without end is given up before it has filled the memory.
func TestCatalogIsBounded(t *testing.T) {
	conn := mysqlCatalog()
	conn.answers["VIEWS"].endless = []driver.Value{"shop", "v", strings.Repeat("x", 1<<20)}
	if got, _, err := dialect.For(classify.MySQL).Catalog(t.Context(), conn, ""); got != nil || err == nil {
		t.Errorf("endless text: %v, %v", got != nil, err)
	}
	conn.answers["ROUTINES"].endless = []driver.Value{"shop", "f", "FUNCTION", "NO SQL"}
	if got, _, err := dialect.For(classify.MySQL).Catalog(t.Context(), conn, ""); got != nil || err == nil {
		t.Errorf("endless rows: %v, %v", got != nil, err)
	}
}
