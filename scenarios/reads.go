package scenarios

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sqlreplicated/replicated"
)

// reader returns the reads of the i-th reader: they take turns in kind.
func (l *load) reader(i int) func(context.Context) {
	kinds := []func(context.Context){
		l.readText, l.readArgs, l.prepared(), l.readConn, l.readTransaction, l.readLong, l.readSlowly, l.readOutside,
	}
	return kinds[i%len(kinds)]
}

// querier is what reads by it have in common: a handle, a Conn, a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func (l *load) readText(ctx context.Context) {
	l.read(ctx, "text", l.db, fmt.Sprintf("SELECT v, pad FROM items WHERE id = %d", rand.IntN(items)))
}

func (l *load) readArgs(ctx context.Context) {
	l.read(ctx, "arguments", l.db, "SELECT v, pad FROM items WHERE id = "+l.text.arg(1), rand.IntN(items))
}

// readOutside has no session, and is entitled to all writes of the process.
func (l *load) readOutside(context.Context) {
	ctx, cancel := context.WithTimeout(l.ctx, opTime)
	defer cancel()
	l.read(ctx, "outside sessions", l.db, "SELECT v, pad FROM items WHERE id = "+l.text.arg(1), rand.IntN(items))
}

// prepared reads by a statement that is prepared once, and kept.
func (l *load) prepared() func(context.Context) {
	const kind = "prepared"
	var st *sql.Stmt
	return func(ctx context.Context) {
		if st == nil {
			began := time.Now()
			var err error
			// database/sql prepares for longer than this operation lasts.
			if st, err = l.db.PrepareContext(ctx, "SELECT v, pad FROM items WHERE id = "+l.text.arg(1)); err != nil {
				l.readFailed(kind, began, err)
				return
			}
			l.mu.Lock()
			l.stmts = append(l.stmts, st)
			l.mu.Unlock()
		}
		l.readBy(kind, 1, 0, func() (*sql.Rows, error) { return st.QueryContext(ctx, rand.IntN(items)) })
	}
}

// readConn reads twice on a connection that it holds.
func (l *load) readConn(ctx context.Context) {
	const kind = "on a Conn"
	began := time.Now()
	conn, err := l.db.Conn(ctx)
	if err != nil {
		l.readFailed(kind, began, err)
		return
	}
	defer conn.Close()
	for range 2 {
		l.read(ctx, kind, conn, "SELECT v, pad FROM items WHERE id = "+l.text.arg(1), rand.IntN(items))
	}
}

// readTransaction reads twice in a read-only transaction. What fails in it cannot
// be had elsewhere, and is counted apart; that it begins cannot fail.
func (l *load) readTransaction(ctx context.Context) {
	const kind = "in a transaction"
	began := time.Now()
	tx, err := l.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		l.readFailed("begin", began, err)
		return
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is none
	for range 2 {
		if _, err := allRows(tx.QueryContext(ctx, fmt.Sprintf("SELECT v, pad FROM items WHERE id = %d", rand.IntN(items)))); err != nil {
			l.tally.event(brokenTransactions, kind, time.Since(began), err)
			return
		}
	}
	if err := tx.Commit(); err != nil {
		l.tally.event(brokenTransactions, kind, time.Since(began), err)
		return
	}
	l.tally.read(kind, time.Since(began))
}

// readLong reads a result of many rows.
func (l *load) readLong(ctx context.Context) {
	l.readBy("long", longRows, 0, func() (*sql.Rows, error) {
		return l.db.QueryContext(ctx, fmt.Sprintf("SELECT id, v, pad FROM items WHERE id < %d ORDER BY id", longRows))
	})
}

// readSlowly reads what takes the server a nap, which is not counted.
func (l *load) readSlowly(ctx context.Context) {
	l.readBy("slow", 1, nap, func() (*sql.Rows, error) { return l.db.QueryContext(ctx, l.text.sleeping()) })
}

func (l *load) read(ctx context.Context, kind string, q querier, query string, args ...any) {
	l.readBy(kind, 1, 0, func() (*sql.Rows, error) { return q.QueryContext(ctx, query, args...) })
}

// readBy reads all rows of which there must be so many, and counts what came of it.
func (l *load) readBy(kind string, want int, asleep time.Duration, query func() (*sql.Rows, error)) {
	began := time.Now()
	n, err := allRows(query())
	switch {
	case err != nil && n > 0:
		l.tally.event(brokenRows, kind, 0, err)
	case err != nil:
		l.readFailed(kind, began, err)
	case n != want:
		l.tally.event(wrongAnswers, kind, 0, fmt.Errorf("%d rows in place of %d", n, want))
	default:
		l.tally.read(kind, max(0, time.Since(began)-asleep))
	}
}

func (l *load) readFailed(kind string, began time.Time, err error) {
	e := failedReads
	if errors.Is(err, replicated.ErrNotFresh) {
		e = refusedReads
	}
	l.tally.event(e, kind, time.Since(began), err)
}

// allRows reads rows to their end and returns how many there were before an error.
func allRows(rows *sql.Rows, err error) (n int, _ error) {
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return 0, err
	}
	row := make([]sql.RawBytes, len(columns))
	into := make([]any, len(columns))
	for i := range row {
		into[i] = &row[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return n, err
		}
		n++
	}
	if err := rows.Err(); err != nil {
		return n, err
	}
	return n, rows.Close()
}
