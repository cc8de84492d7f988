package scenarios

import (
	"context"
	"fmt"
	"time"
)

// writer returns the writes of the i-th writer: they take turns in kind.
func (l *load) writer(i int) func(context.Context) {
	kinds := []func(context.Context, int){l.writeText, l.writeArgs, l.writeTransaction, l.modify()}
	do := kinds[i%len(kinds)]
	return func(ctx context.Context) { do(ctx, i) }
}

// write does a write with a number of its own and notes what came of it.
func (l *load) write(kind string, do func(id int64) error) (done bool) {
	id := l.ledger.begin()
	began := time.Now()
	err := do(id)
	o := outcomeOf(err)
	l.ledger.end(id, o)
	switch o {
	case acknowledged:
		l.tally.write(time.Since(began))
	case failed:
		l.tally.event(failedWrites, kind, 0, err)
	default:
		l.tally.event(unknownWrites, kind, 0, err)
	}
	return o == acknowledged
}

func (l *load) writeText(ctx context.Context, writer int) {
	l.write("text", func(id int64) error {
		_, err := l.db.ExecContext(ctx, l.text.insert(id, writer, false))
		return err
	})
}

func (l *load) writeArgs(ctx context.Context, writer int) {
	l.write("arguments", func(id int64) error {
		_, err := l.db.ExecContext(ctx, l.text.insert(id, writer, true), id, writer)
		return err
	})
}

// writeTransaction reads and writes in a transaction.
func (l *load) writeTransaction(ctx context.Context, writer int) {
	l.write("in a transaction", func(id int64) error {
		tx, err := l.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback() //nolint:errcheck // after a commit there is none
		if _, err := allRows(tx.QueryContext(ctx, fmt.Sprintf("SELECT n FROM counters WHERE id = %d", writer))); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, l.text.insert(id, writer, true), id, writer); err != nil {
			return err
		}
		return tx.Commit()
	})
}

// modify writes a row that only this writer writes, and must see that in the same
// session.
func (l *load) modify() func(context.Context, int) {
	const kind = "own write"
	var last int64
	return func(ctx context.Context, writer int) {
		var written int64
		done := l.write("read and modify", func(id int64) error {
			written = id
			tx, err := l.db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer tx.Rollback() //nolint:errcheck // after a commit there is none
			if _, err := tx.ExecContext(ctx, fmt.Sprintf("UPDATE counters SET n = %d WHERE id = %d", last+1, writer)); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, l.text.insert(id, writer, false)); err != nil {
				return err
			}
			return tx.Commit()
		})
		last++ // also of a write that may have been done: the next one must be told from it
		if !done {
			return
		}
		began := time.Now()
		var n int64
		if err := l.db.QueryRowContext(ctx, fmt.Sprintf("SELECT n FROM counters WHERE id = %d", writer)).Scan(&n); err != nil {
			l.readFailed(kind, began, err)
			return
		}
		if n < last {
			l.ledger.miss(written)
			return
		}
		l.tally.read(kind, time.Since(began))
	}
}
