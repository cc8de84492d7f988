package replicated_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

func TestTransparencyTransactions(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		transparent(t, c, plain(c.Engine()), func(s *script) {
			e := s.c.Engine()
			insert := "INSERT INTO transparent (name, n) VALUES (" + placeholder(e, 1) + ", " + placeholder(e, 2) + ")"
			read := "SELECT id, name, n FROM transparent ORDER BY id"
			begin := func() *sql.Tx {
				tx, err := s.db.BeginTx(s.ctx(), nil)
				s.must(err)
				return tx
			}
			tx := begin()
			s.exec(tx, insert, "four", 4)
			s.query(tx, read)
			s.fail("commit", tx.Commit())
			s.query(s.db, read)
			s.exec(tx, insert, "late", 4)
			s.query(tx, read)
			s.fail("commit again", tx.Commit())
			s.fail("roll back", tx.Rollback())

			tx = begin()
			s.exec(tx, insert, "five", 5)
			s.exec(tx, "SAVEPOINT a")
			s.exec(tx, insert, "one", 1)
			s.query(tx, "SELECT count(*) FROM transparent")
			s.exec(tx, "ROLLBACK TO SAVEPOINT a")
			s.exec(tx, insert, "six", 6)
			s.exec(tx, "RELEASE SAVEPOINT a")
			s.fail("commit", tx.Commit())

			tx = begin()
			s.exec(tx, insert, "one", 1)
			s.exec(tx, insert, "seven", 7)
			s.fail("commit after an error", tx.Commit())
			s.query(s.db, read)

			// A transaction that the text has ended.
			for _, text := range []string{"COMMIT", "ROLLBACK"} {
				tx = begin()
				s.exec(tx, insert, "ended by "+text, 8)
				s.exec(tx, text)
				s.exec(tx, insert, "after "+text, 9)
				s.fail("commit", tx.Commit())
				s.query(s.db, read)
			}

			// A statement while rows are open.
			tx = begin()
			rows, err := tx.QueryContext(s.ctx(), read)
			s.must(err)
			s.note("row %t", rows.Next())
			s.query(tx, "SELECT 1")
			s.exec(tx, "UPDATE transparent SET n = 0 WHERE id = 1")
			s.fail("rows", rows.Close())
			// On MySQL this has broken the connection; of a broken one ours says
			// driver.ErrBadConn whatever is asked of it.
			if err := tx.Rollback(); e == replicatedtest.Postgres {
				s.fail("roll back", err)
			}
			s.pool("at the end")
			s.query(s.db, read)
		})
	})
}

func TestTransparencyTxStmt(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		transparent(t, c, plain(c.Engine()), func(s *script) {
			e := s.c.Engine()
			insert := s.prepare("INSERT INTO transparent (name, n) VALUES (" + placeholder(e, 1) + ", " + placeholder(e, 2) + ")")
			read := s.prepare("SELECT id, name, n FROM transparent WHERE n >= " + placeholder(e, 1) + " ORDER BY id")
			for i := range 3 {
				tx, err := s.db.BeginTx(s.ctx(), nil)
				s.must(err)
				inserting, reading := tx.StmtContext(s.ctx(), insert), tx.StmtContext(s.ctx(), read)
				s.result(inserting.ExecContext(s.ctx(), "tx", i))
				s.rows(reading.QueryContext(s.ctx(), 0))
				s.result(inserting.ExecContext(s.ctx(), "tx", i))
				if i == 2 {
					s.fail("close", inserting.Close())
					s.result(inserting.ExecContext(s.ctx(), "closed", i))
				}
				own, err := tx.PrepareContext(s.ctx(), "SELECT count(*) FROM transparent")
				s.fail("prepare", err)
				if err == nil {
					s.rows(own.QueryContext(s.ctx()))
				}
				s.fail("roll back", tx.Rollback())
				s.rows(reading.QueryContext(s.ctx(), 0))
				s.settle()
				s.rows(read.QueryContext(s.ctx(), 0))
			}
			s.result(insert.ExecContext(s.ctx(), "last", 1))
			s.settle()
			s.rows(read.QueryContext(s.ctx(), 1))
			s.fail("close", insert.Close())
			s.fail("close", read.Close())
			s.result(insert.ExecContext(s.ctx(), "closed", 1))
			s.rows(read.QueryContext(s.ctx(), 1))
			s.fail("close again", read.Close())
		})
	})
}

// Isolation levels, and what the drivers refuse of them. Of read-only
// transactions only what they may do is played: what they may not do, ours
// refuses by itself on a replica. How a transaction is isolated is asked for in
// read-write ones: a read-only one may answer from a replica, where that is not a
// proven read.
func TestTransparencyIsolation(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		transparent(t, c, plain(c.Engine()), func(s *script) {
			ask := "SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only')"
			if s.c.Engine() != replicatedtest.Postgres {
				ask = "SELECT @@tx_isolation, @@tx_read_only" // of the session: those of one transaction are not shown
			}
			for level := sql.LevelDefault; level <= sql.LevelLinearizable+1; level++ {
				for _, readOnly := range []bool{false, true} {
					s.note("%v, read-only %t", level, readOnly)
					tx, err := s.db.BeginTx(s.ctx(), &sql.TxOptions{Isolation: level, ReadOnly: readOnly})
					s.fail("begin", err)
					if err != nil {
						continue
					}
					s.query(tx, "SELECT id, name, n FROM transparent ORDER BY id")
					s.query(tx, "SELECT name FROM transparent WHERE id = "+placeholder(s.c.Engine(), 1), 2)
					stmt, err := tx.PrepareContext(s.ctx(), "SELECT n FROM transparent WHERE id = "+placeholder(s.c.Engine(), 1))
					s.fail("prepare", err)
					if err == nil {
						s.rows(stmt.QueryContext(s.ctx(), 1))
						s.rows(stmt.QueryContext(s.ctx(), 2))
					}
					s.query(tx, "SELECT missing FROM transparent")
					if !readOnly {
						s.query(tx, ask)
						s.exec(tx, "UPDATE transparent SET n = 1 WHERE id = 1")
					}
					s.fail("commit", tx.Commit())
					s.pool("after it")
				}
			}
			// The next transaction is an ordinary one again.
			tx, err := s.db.BeginTx(s.ctx(), nil)
			s.must(err)
			s.query(tx, ask)
			s.exec(tx, "UPDATE transparent SET n = 2 WHERE id = 1")
			s.fail("commit", tx.Commit())
			s.query(s.db, "SELECT id, n FROM transparent ORDER BY id")
		})
	})
}

// A transaction whose context ends is rolled back, and its connection is kept or
// dropped as the bare driver's is.
func TestTransparencyCancelledTransactions(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		transparent(t, c, plain(c.Engine()), func(s *script) {
			s.db.SetMaxOpenConns(1)
			backend := "SELECT CONNECTION_ID()"
			if s.c.Engine() == replicatedtest.Postgres {
				backend = "SELECT pg_backend_pid()"
			}
			for _, statement := range []string{"", "UPDATE transparent SET n = 99", "SELECT 1/0", "INSERT INTO transparent (name) VALUES ('one')"} {
				before := queryInt(s.t, s.db, backend)
				ctx, cancel := context.WithCancel(s.ctx())
				tx, err := s.db.BeginTx(ctx, nil)
				s.must(err)
				if statement != "" {
					s.exec(tx, statement)
				}
				cancel()
				// lib/pq sends a cancel request on the side, which may meet the ROLLBACK:
				// whether the bare connection outlives it is a matter of luck.
				lucky := s.c.Engine() == replicatedtest.Postgres
				if s.idle(); !lucky {
					s.pool("after cancelling")
				}
				s.fail("exec", func() error { _, err := tx.ExecContext(s.ctx(), "UPDATE transparent SET n = 98"); return err }())
				s.fail("commit", tx.Commit())
				s.fail("roll back", tx.Rollback())
				if same := queryInt(s.t, s.db, backend) == before; !lucky {
					s.note("same connection %t", same)
				}
				s.query(s.db, "SELECT id, n FROM transparent ORDER BY id")
			}
			// While a statement runs, and with rows open.
			ctx, cancel := context.WithCancel(s.ctx())
			tx, err := s.db.BeginTx(ctx, nil)
			s.must(err)
			rows, err := tx.QueryContext(s.ctx(), "SELECT id FROM transparent ORDER BY id")
			s.must(err)
			s.note("row %t", rows.Next())
			cancel()
			s.idle()
			s.note("row %t", rows.Next())
			s.fail("rows", rows.Err())
			s.pool("with rows open")
			s.query(s.db, "SELECT id, n FROM transparent ORDER BY id")

			// A read-only one, which ours may run on a replica.
			ctx, cancel = context.WithCancel(s.ctx())
			tx, err = s.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
			s.must(err)
			s.query(tx, "SELECT id, n FROM transparent ORDER BY id")
			cancel()
			s.idle()
			s.fail("query", s.drain(tx.QueryContext(s.ctx(), "SELECT 1")))
			s.fail("commit", tx.Commit())
			s.query(s.db, "SELECT id, n FROM transparent ORDER BY id")
		})
	})
}
