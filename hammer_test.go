package replicated_test

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/sqlreplicated/replicated"
)

// hammer has 64 goroutines use a handle in every way at once. Replicas are killed
// while it goes on, the primary is not: no error of the primary may show.
func hammer(t *testing.T, db *sql.DB, f interface{ kill() }) {
	var clients sync.WaitGroup
	for range 64 {
		clients.Go(func() {
			for range 30 {
				ctx, cancel := context.WithCancel(t.Context())
				if rand.IntN(8) == 0 {
					go cancel()
				}
				ctx, _ = replicated.WithSession(ctx)
				if err := deed(ctx, db); !tolerable(err) {
					t.Errorf("%v", err)
				}
				if rand.IntN(100) == 0 {
					f.kill()
				}
				cancel()
			}
		})
	}
	clients.Wait()
}

func (f *fakes) kill() { f.replicas[rand.IntN(len(f.replicas))].Kill() }

// deed does one of the things that clients do.
func deed(ctx context.Context, db *sql.DB) error {
	switch rand.IntN(7) {
	case 0:
		_, err := db.ExecContext(ctx, "INSERT INTO t VALUES (?)", 1)
		return err
	case 1:
		return db.QueryRowContext(ctx, plainSelect).Scan(new(string))
	case 2:
		return nested(ctx, db, 3)
	case 3:
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback() //nolint:errcheck // over already, mostly
		if _, err := tx.ExecContext(ctx, "INSERT INTO t VALUES (?)", 1); err != nil {
			return err
		}
		if err := tx.QueryRowContext(ctx, plainSelect).Scan(new(string)); err != nil {
			return err
		}
		return tx.Commit()
	case 4:
		tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
		if err != nil {
			if err.Error() == "sql: driver does not support read-only transactions" {
				return nil
			}
			return err
		}
		defer tx.Rollback() //nolint:errcheck // over already, mostly
		if err := tx.QueryRowContext(ctx, plainSelect).Scan(new(string)); err != nil {
			return err
		}
		return tx.Commit()
	case 5:
		stmt, err := db.PrepareContext(ctx, "SELECT a FROM t WHERE a = ?")
		if err != nil {
			return err
		}
		defer stmt.Close()
		for range 3 {
			if err := stmt.QueryRowContext(ctx, 1).Scan(new(string)); err != nil {
				return err
			}
		}
		return nil
	default:
		conn, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		if _, err := conn.ExecContext(ctx, "CREATE TEMPORARY TABLE x (a int)"); err != nil {
			return err
		}
		return conn.QueryRowContext(ctx, plainSelect).Scan(new(string))
	}
}

// nested reads again while its rows are open, and closes them early.
func nested(ctx context.Context, db *sql.DB, depth int) error {
	rows, err := db.QueryContext(ctx, "SELECT n FROM many")
	if err != nil {
		return err
	}
	defer rows.Close()
	for i := 0; rows.Next() && i < 3; i++ {
		if depth > 0 && i == 0 {
			if err := nested(ctx, db, depth-1); err != nil {
				return err
			}
		}
	}
	return rows.Err()
}
