package bench_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// texts are the statements of the work, in the placeholders of one dialect.
type texts struct {
	read, readArg, insert, update string
}

// operation is one kind of work. prepare runs once, before the clock does.
type operation struct {
	name    string
	replica bool // replicas serve it
	prepare func(context.Context, *sql.DB, texts) (func(context.Context) error, error)
}

// operations are measured in this order.
var operations = []operation{
	{name: "read", replica: true, prepare: func(_ context.Context, db *sql.DB, q texts) (func(context.Context) error, error) {
		return func(ctx context.Context) error { return scan(db.QueryRowContext(ctx, q.read)) }, nil
	}},
	{name: "read-args", replica: true, prepare: func(_ context.Context, db *sql.DB, q texts) (func(context.Context) error, error) {
		return func(ctx context.Context) error { return scan(db.QueryRowContext(ctx, q.readArg, int64(1))) }, nil
	}},
	{name: "read-prepared", replica: true, prepare: func(ctx context.Context, db *sql.DB, q texts) (func(context.Context) error, error) {
		stmt, err := db.PrepareContext(ctx, q.readArg) // closed with the handle
		return func(ctx context.Context) error { return scan(stmt.QueryRowContext(ctx, int64(1))) }, err
	}},
	{name: "insert", prepare: func(_ context.Context, db *sql.DB, q texts) (func(context.Context) error, error) {
		return func(ctx context.Context) error {
			_, err := db.ExecContext(ctx, q.insert)
			return err
		}, nil
	}},
	{name: "transaction", prepare: func(_ context.Context, db *sql.DB, q texts) (func(context.Context) error, error) {
		return func(ctx context.Context) error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			if err = scan(tx.QueryRowContext(ctx, q.read)); err == nil {
				_, err = tx.ExecContext(ctx, q.update)
			}
			if err != nil {
				_ = tx.Rollback()
				return err
			}
			return tx.Commit()
		}, nil
	}},
}

func scan(row *sql.Row) error {
	var id int64
	var name string
	return row.Scan(&id, &name)
}

// concurrency is how many goroutines do the work.
var concurrency = []int{1, 8}

// measure runs an operation from g goroutines. ns/op is the time by the clock per
// operation, whoever did it.
func measure(b *testing.B, g int, db *sql.DB, op operation, q texts) {
	db.SetMaxIdleConns(g) // or what is measured is dialling
	ctx := b.Context()
	run, err := op.prepare(ctx, db, q)
	if err == nil {
		err = together(g, int64(8*g), func() error { return run(ctx) }) // every connection is open
	}
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	if g == 1 {
		for b.Loop() {
			if err := run(ctx); err != nil {
				b.Fatal(err)
			}
		}
		return
	}
	b.ResetTimer() // b.Loop counts for one goroutine
	if err := together(g, int64(b.N), func() error { return run(ctx) }); err != nil {
		b.Fatal(err)
	}
}

// together has g goroutines call run n times in all.
func together(g int, n int64, run func() error) error {
	var (
		wg    sync.WaitGroup
		left  atomic.Int64
		first atomic.Pointer[error]
	)
	left.Store(n)
	for range g {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := run(); err != nil {
					first.CompareAndSwap(nil, &err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := first.Load(); err != nil {
		return *err
	}
	return nil
}

// name writes a sub-benchmark's name in the form by which benchstat groups.
func name(key string, value any) string { return fmt.Sprintf("%s=%v", key, value) }
