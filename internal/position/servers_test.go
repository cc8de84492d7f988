package position_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/internal/position"
)

// session returns one connection of a node's pool, with a time limit for all
// that the test does on it.
func session(tb testing.TB, db *sql.DB) (context.Context, *sql.Conn) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	tb.Cleanup(cancel)
	conn, err := db.Conn(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	return ctx, conn
}

// ask scans the one row of a query.
func ask(tb testing.TB, ctx context.Context, conn *sql.Conn, query string, targets ...any) {
	tb.Helper()
	if err := conn.QueryRowContext(ctx, query).Scan(targets...); err != nil {
		tb.Fatalf("%s: %v", query, err)
	}
}

func run(tb testing.TB, ctx context.Context, conn *sql.Conn, texts ...string) {
	tb.Helper()
	for _, text := range texts {
		if _, err := conn.ExecContext(ctx, text); err != nil {
			tb.Fatalf("%s: %v", text, err)
		}
	}
}

// await repeats a question until the answer is the position, and returns the
// last answer.
func await(tb testing.TB, ctx context.Context, want position.Position, read func() position.Position) position.Position {
	tb.Helper()
	limit := time.Now().Add(30 * time.Second)
	for {
		p := read()
		if p.Equal(want) || time.Now().After(limit) || ctx.Err() != nil {
			return p
		}
	}
}
