package replicated_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/lib/pq"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// What a server refuses comes back as the driver's own error, unwrapped and
// whole, whether the text, a prepared statement or a transaction met it.
func TestTransparencyStatementErrors(t *testing.T) {
	texts := func(e replicatedtest.Engine) []string {
		common := []string{
			"SELEC 1",
			"SELECT",
			"SELECT * FROM missing_table",
			"SELECT missing_column FROM transparent",
			"SELECT missing_function(1)",
			"SELECT * FROM missing_schema.t",
			"SELECT 'unterminated",
			"SELECT id FROM transparent ORDER BY",
			"SELECT (SELECT id FROM transparent)",
			"INSERT INTO transparent (name) VALUES ('one')",
			"INSERT INTO transparent (name) VALUES (NULL)",
			"INSERT INTO transparent (name, n) VALUES ('four', 'not a number')",
			"INSERT INTO transparent (name) VALUES ('longer than twenty characters')",
			"INSERT INTO missing_table VALUES (1)",
			"UPDATE transparent SET id = 1 WHERE id = 2",
			"CREATE TABLE transparent (id int)",
			"DROP TABLE missing_table",
			"ROLLBACK TO SAVEPOINT missing_savepoint",
			"SET missing_variable = 1",
			"SELECT 1 /* unterminated",
			"SELECT \x00",
			"SELECT '\xff'",
		}
		if e == replicatedtest.Postgres {
			return append(common,
				"SELECT 1/0",
				"SELECT 10/(3-g) FROM generate_series(1,5) g",
				"SELECT 'x'::int",
				"SELECT $1",
				"SELECT '{1'::int[]",
				"SELECT '2024-13-01'::date",
				"SELECT '{bad json'::jsonb",
				"SELECT lastval()",
				"SELECT currval('transparent_id_seq')",
				"SELECT nextval('missing_sequence')",
				"SELECT * FROM transparent WHERE id = ANY('x')",
				"SELECT n FROM transparent GROUP BY id, name",
				"SELECT 1 FROM transparent a JOIN transparent b ON id = id",
				"SELECT pg_read_file('/etc/passwd')",
				"COPY transparent TO STDOUT",
				"COPY transparent FROM '/missing'",
				"LOAD '$libdir/plugins/missing'",
				"CREATE EXTENSION missing_extension",
				"DO $$ BEGIN RAISE EXCEPTION 'raised %', 1 USING ERRCODE = '08006', DETAIL = 'd', HINT = 'h', CONSTRAINT = 'c'; END $$",
				"DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '57P01'; END $$",
				"DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40001'; END $$",
				"SET statement_timeout = 'x'",
				"SELECT set_config('missing', 'x', false)",
				"FETCH ALL FROM missing_cursor",
				"EXECUTE missing_statement",
				"DEALLOCATE missing_statement",
				"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE; SELECT 1/0",
				"REFRESH MATERIALIZED VIEW missing_view",
				"VACUUM missing_table",
			)
		}
		return append(common,
			"SELECT (SELECT id FROM transparent x WHERE x.id <= y.id) FROM transparent y",
			"SELECT ?",
			"SELECT * FROM transparent LIMIT -1",
			"SELECT 18446744073709551615 + 1",
			"SELECT id FROM transparent HAVING missing_column",
			"SELECT CONVERT('a' USING missing_charset)",
			"SELECT @@missing_variable",
			"SHOW TABLES FROM missing_schema",
			"SHOW missing_thing",
			"CALL missing_procedure()",
			"USE missing_schema",
			"SET sql_mode = 'MISSING'",
			"SET GLOBAL max_connections = 10",
			"SELECT * FROM mysql.user",
			"LOAD DATA INFILE '/missing' INTO TABLE transparent",
			"EXECUTE missing_statement",
			"DEALLOCATE PREPARE missing_statement",
			"KILL 4294967295",
			"SELECT 1; SELECT 2",
			"CREATE TABLE t (a missing_type)",
			"ALTER TABLE transparent ADD COLUMN name int",
			"XA COMMIT 'missing'",
			"START TRANSACTION missing",
		)
	}
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		transparent(t, c, plain(c.Engine()), func(s *script) {
			s.db.SetMaxOpenConns(1)
			for _, text := range texts(s.c.Engine()) {
				s.query(s.db, text)
				s.exec(s.db, text)
				stmt, err := s.db.PrepareContext(s.ctx(), text)
				s.fail("prepare", err)
				if err == nil {
					s.rows(stmt.QueryContext(s.ctx()))
					// go-sql-driver 1.10 waits for ever on MariaDB where a statement with
					// rows has been queried and then is executed.
					if !strings.HasPrefix(text, "SELECT") {
						s.result(stmt.ExecContext(s.ctx()))
					}
					s.fail("close", stmt.Close())
				}
				s.query(s.db, text, 1)
				s.settle()
				s.scan(s.db.QueryRowContext(s.ctx(), text), new(any))
				tx, err := s.db.BeginTx(s.ctx(), nil)
				s.must(err)
				s.exec(tx, text)
				s.query(tx, "SELECT name FROM transparent WHERE id = 2")
				s.fail("rollback", tx.Rollback())
				s.pool("after an error")
			}
			s.query(s.db, "SELECT id, name, n FROM transparent ORDER BY id")
		})
	})
}

// Locks that cannot be had, and deadlocks, are the application's business.
func TestTransparencyLockErrors(t *testing.T) {
	postgresAlone(t, func(t *testing.T, c *replicatedtest.Cluster) {
		transparent(t, c, plain(c.Engine()), func(s *script) {
			holder, err := s.db.BeginTx(s.ctx(), nil)
			s.must(err)
			s.exec(holder, "UPDATE transparent SET n = 10 WHERE id = 1")
			s.query(s.db, "SELECT id FROM transparent WHERE id = 1 FOR UPDATE NOWAIT")
			s.query(s.db, "SELECT id FROM transparent ORDER BY id FOR UPDATE SKIP LOCKED")
			conn := s.conn()
			s.exec(conn, "SET lock_timeout = '20ms'")
			s.exec(conn, "UPDATE transparent SET n = 11 WHERE id = 1")
			s.exec(conn, "SET lock_timeout = 0; SET statement_timeout = '20ms'")
			s.exec(conn, "UPDATE transparent SET n = 11 WHERE id = 1")
			s.query(conn, "SELECT pg_sleep(5)")
			s.exec(conn, "RESET ALL")
			s.fail("close", conn.Close())
			s.fail("commit", holder.Commit())

			// The first of two serializable transactions to commit wins.
			opts := &sql.TxOptions{Isolation: sql.LevelRepeatableRead}
			a, err := s.db.BeginTx(s.ctx(), opts)
			s.must(err)
			b, err := s.db.BeginTx(s.ctx(), opts)
			s.must(err)
			s.query(a, "SELECT n FROM transparent WHERE id = 2")
			s.query(b, "SELECT n FROM transparent WHERE id = 2")
			s.exec(a, "UPDATE transparent SET n = 12 WHERE id = 2")
			s.fail("commit", a.Commit())
			s.exec(b, "UPDATE transparent SET n = 13 WHERE id = 2")
			s.fail("commit", b.Commit())
			s.query(s.db, "SELECT id, n FROM transparent ORDER BY id")
		})
	})
	mysqlAlone(t, func(t *testing.T, c *replicatedtest.Cluster) {
		transparent(t, c, plain(c.Engine()), func(s *script) {
			// The victim of a deadlock is who has changed fewer rows.
			many, err := s.db.BeginTx(s.ctx(), nil)
			s.must(err)
			few, err := s.db.BeginTx(s.ctx(), nil)
			s.must(err)
			s.exec(many, "UPDATE transparent SET n = 20 WHERE id IN (1, 3)")
			s.exec(few, "UPDATE transparent SET n = 21 WHERE id = 2")
			waited := make(chan error)
			go func() {
				_, err := many.ExecContext(s.ctx(), "UPDATE transparent SET n = 22 WHERE id = 2")
				waited <- err
			}()
			s.exec(few, "UPDATE transparent SET n = 23 WHERE id = 1")
			s.fail("the other", <-waited)
			s.exec(few, "UPDATE transparent SET n = n WHERE id = 99") // its transaction is over
			s.fail("commit", many.Commit())
			s.fail("commit", few.Commit())
			s.query(s.db, "SELECT id, n FROM transparent ORDER BY id")
		})
	})
}

// slow is a statement with a row that takes a second. It has no locks, because
// MySQL goes on with it after its client has left.
func slow(e replicatedtest.Engine) string {
	if e == replicatedtest.Postgres {
		return "SELECT pg_sleep(1)"
	}
	return "SELECT SLEEP(1)"
}

func TestTransparencyCancelledContexts(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		transparent(t, c, plain(c.Engine()), func(s *script) {
			s.db.SetMaxOpenConns(2)
			text, read := slow(s.c.Engine()), "SELECT name FROM transparent WHERE id = "+placeholder(s.c.Engine(), 1)
			ended, end := context.WithCancel(s.ctx())
			end()
			past, end := context.WithDeadline(s.ctx(), time.Now().Add(-time.Hour))
			defer end()
			conn, stmt := s.conn(), s.prepare(read)
			s.exec(conn, "UPDATE transparent SET n = 1 WHERE id = 1")
			calling := []queryer{s.db}
			if s.c.Engine() != replicatedtest.Postgres { // lib/pq cancels in the background, which may be too late
				calling = append(calling, conn)
			}
			for _, ctx := range []context.Context{ended, past} {
				for _, q := range calling {
					_, err := q.ExecContext(ctx, "UPDATE transparent SET n = 99")
					s.fail("exec", err)
					_, err = q.QueryContext(ctx, read, 1)
					s.fail("query", err)
					_, err = q.PrepareContext(ctx, read)
					s.fail("prepare", err)
					_, err = q.(interface {
						BeginTx(context.Context, *sql.TxOptions) (*sql.Tx, error)
					}).BeginTx(ctx, nil)
					s.fail("begin", err)
					s.fail("ping", q.(interface{ PingContext(context.Context) error }).PingContext(ctx))
					s.fail("usable", s.db.PingContext(s.ctx()))
				}
				_, err := stmt.QueryContext(ctx, 1)
				s.fail("statement", err)
				s.fail("conn", func() error { _, err := s.db.Conn(ctx); return err }())
			}
			s.fail("close the connection", conn.Close())
			s.fail("close the statement", stmt.Close())
			s.pool("after contexts that had ended")

			during := func(what string, call func(context.Context) error) {
				ctx, cancel := s.timeout()
				defer cancel()
				s.fail(what, call(ctx))
				s.pool(what)
			}
			during("exec", func(ctx context.Context) error { _, err := s.db.ExecContext(ctx, text); return err })
			during("query", func(ctx context.Context) error { return s.drain(s.db.QueryContext(ctx, text)) })
			writing := s.prepare(text)
			during("prepared exec", func(ctx context.Context) error { _, err := writing.ExecContext(ctx); return err })
			during("prepared query", func(ctx context.Context) error { return s.drain(writing.QueryContext(ctx)) })
			s.fail("close the statement", writing.Close())
			conn = s.conn()
			ctx, cancel := s.timeout()
			_, err := conn.ExecContext(ctx, text)
			s.fail("on a connection", err)
			cancel()
			s.exec(conn, "UPDATE transparent SET n = 6 WHERE id = 1")
			s.fail("ping", conn.PingContext(s.ctx()))
			s.fail("close", conn.Close())
			s.pool("after a connection")
			s.query(s.db, "SELECT id, n FROM transparent ORDER BY id")
		})
	})
}

// timeout gives a statement on the primary, whose connection it costs, a moment
// that opening one is not part of.
func (s *script) timeout() (context.Context, context.CancelFunc) {
	s.t.Helper()
	s.must(s.db.PingContext(s.ctx()))
	return context.WithTimeout(replicated.WithPrimary(s.ctx()), 100*time.Millisecond)
}

func (s *script) prepare(text string) *sql.Stmt {
	s.t.Helper()
	stmt, err := s.db.PrepareContext(s.ctx(), text)
	s.must(err)
	return stmt
}

// drain reads Rows to their end without a look at them.
func (s *script) drain(rows *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}

// A context that ends while rows are being read ends them. Rows that have come
// already may be seen or not: how many there are is not compared.
func TestTransparencyCancelledRows(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		transparent(t, c, plain(c.Engine()), func(s *script) {
			ctx, cancel := context.WithCancel(s.ctx())
			rows, err := s.db.QueryContext(ctx, "SELECT a.id FROM transparent a, transparent b, transparent c")
			s.must(err)
			s.note("row %t", rows.Next())
			cancel()
			eventually(s.t, 5*time.Second, func() string {
				if n := s.db.Stats().InUse; n > 0 {
					return "the rows are still open"
				}
				return ""
			})
			s.note("row %t", rows.Next())
			s.fail("rows", rows.Err())
			s.fail("scan", rows.Scan(new(int)))
			s.fail("close", rows.Close())
			s.query(s.db, "SELECT id, n FROM transparent ORDER BY id")
		})
	})
}

// Both error types can be had by a bare type assertion, which GORM relies on.
func TestTransparencyErrorsAreUnwrapped(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		name := table(t, c, "id int PRIMARY KEY")
		db := open(t, c)
		mustExec(t, db, "INSERT INTO "+name+" VALUES (1)")
		_, err := db.ExecContext(t.Context(), "INSERT INTO "+name+" VALUES (1)")
		got := ""
		switch e := err.(type) {
		case *pq.Error:
			got = string(e.Code)
		case *mysql.MySQLError:
			got = fmt.Sprint(e.Number)
		}
		want := "1062"
		if c.Engine() == replicatedtest.Postgres {
			want = "23505"
		}
		if got != want {
			t.Errorf("error %T %v, want code %s", err, err, want)
		}
	})
}
