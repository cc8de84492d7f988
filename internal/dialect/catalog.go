package dialect

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// Bounds of what is read of a catalog. A database that has more is one of whose
// functions nothing is known.
const (
	maxCatalogRows  = 500_000
	maxCatalogBytes = 64 << 20
)

var errCatalogSize = fmt.Errorf("the catalog has more than %d functions and views to tell of, or %d bytes", maxCatalogRows, maxCatalogBytes)

// ErrNoCatalog is returned by Catalog where the database is not known to have one.
var ErrNoCatalog = errors.New("no catalog of this database is known")

// HasCatalog reports whether Catalog may know more than nothing.
func (d *Dialect) HasCatalog() bool { return d.catalog != nil }

// Catalog reads what the database tells of its own functions, operators and
// relations, with what the connection's user may see. It takes a few queries,
// which lock nothing and need no privilege, but are no single snapshot.
//
// The version stands for what was read. Given back as since, it spares the reading
// of a catalog that has not changed: the catalog returned is then nil. It is ""
// where the database does not tell cheaply.
func (d *Dialect) Catalog(ctx context.Context, conn driver.Conn, since string) (c *classify.Catalog, version string, err error) {
	if d.catalog == nil {
		return nil, "", ErrNoCatalog
	}
	if d.catalogVersion != "" {
		row, err := queryRow(ctx, conn, d.catalogVersion, 1)
		if err != nil {
			return nil, "", err
		}
		if version = row[0].text; version == since {
			return nil, version, nil
		}
	}
	r := catalogReader{ctx: ctx, conn: conn, into: new(classify.Catalog)}
	if err := d.catalog(&r); err != nil {
		return nil, "", err
	}
	return r.into, version, nil
}

// catalogReader runs the queries of one reading and counts what they bring.
type catalogReader struct {
	ctx   context.Context
	conn  driver.Conn
	into  *classify.Catalog
	rows  int
	bytes int
}

// each runs text, which must have n columns, and calls f for each row. The cells
// are the next row's afterwards.
func (r *catalogReader) each(text string, n int, f func(row []cell)) (err error) {
	rows, done, err := query(r.ctx, r.conn, text)
	if err != nil {
		return err
	}
	defer func() {
		if e := errors.Join(rows.Close(), done()); err == nil {
			err = e
		}
	}()
	if got := len(rows.Columns()); got != n {
		return fmt.Errorf("%d columns where %d were asked for", got, n)
	}
	values, row := make([]driver.Value, n), make([]cell, n)
	for {
		switch err := rows.Next(values); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		for i, v := range values {
			row[i] = toCell(v)
			r.bytes += len(row[i].text)
		}
		if r.rows++; r.rows > maxCatalogRows || r.bytes > maxCatalogBytes {
			return errCatalogSize
		}
		f(row)
	}
}
