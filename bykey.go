package replicated

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
)

// Queryer is what [QueryRowByKey] asks: a [*database/sql.DB], [*database/sql.Conn] or
// [*database/sql.Tx], or what has their method.
type Queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// QueryRowByKey reads one row by its key, like [database/sql.DB.QueryRowContext]. If a
// replica has no such row, the primary is asked once: the row may be somebody else's,
// and too new for the replica. Where the primary has answered at first, that is all.
//
// It is for a row that is looked up by what identifies it, and nearly always exists: a
// link that somebody was sent, a job's subject. Each miss costs the primary a read, so
// that it is none for keys that outsiders can make up. It does nothing for lists and
// counts, where a missing row shows as a shorter answer, nor for a row that exists
// in an older version: use [WithFresh] or a token for those. In a transaction it is the
// transaction's read, and no more.
//
// The second read may fail where the first did not, as when there is no primary. Then
// its error is returned, not [database/sql.ErrNoRows]: nobody knows.
func QueryRowByKey(ctx context.Context, q Queryer, query string, args ...any) *Row {
	w := wishesOf(ctx)
	w.served = new(atomic.Bool)
	r := queryRow(withWishes(ctx, w), q, query, args)
	if errors.Is(r.err, sql.ErrNoRows) && w.served.Load() {
		w.served, w.missed = nil, true
		return queryRow(withWishes(ctx, w), q, query, args)
	}
	return r
}

// Row is the result of [QueryRowByKey].
type Row struct {
	rows *sql.Rows // on the row; nil if there is an error
	err  error
}

func queryRow(ctx context.Context, q Queryer, query string, args []any) *Row {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return &Row{err: err}
	}
	if rows.Next() {
		return &Row{rows: rows}
	}
	return &Row{err: endOf(rows)}
}

// endOf returns the error of rows of which there is none. Where further
// results stand behind, they are still open.
func endOf(rows *sql.Rows) error {
	defer rows.Close()
	if err := rows.Err(); err != nil {
		return err
	}
	return sql.ErrNoRows
}

// Err returns what the query has failed with, without a look at its columns:
// [database/sql.ErrNoRows] too.
func (r *Row) Err() error { return r.err }

// Scan copies the columns of the row into what dest points to, and closes it. It must be
// called once, or the connection stays taken. It returns [database/sql.ErrNoRows] where
// there is no row, and takes the first where there are several. A
// [database/sql.RawBytes] would not outlive the call, and is refused.
func (r *Row) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	for _, d := range dest {
		if _, ok := d.(*sql.RawBytes); ok {
			return errors.New("replicated: RawBytes cannot be scanned from a Row: it is closed when Scan returns")
		}
	}
	if err := r.rows.Scan(dest...); err != nil {
		return err
	}
	return r.rows.Close() // an error that came after the row
}
