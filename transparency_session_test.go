package replicated_test

import (
	"database/sql"
	"database/sql/driver"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/lib/pq"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

// held is state that a *sql.Conn keeps in its session. A group of texts begins
// and ends without any. Found by a later user of the connection it is not the
// same with us: no pin outlives the check-in.
var (
	postgresHeld = [][]string{
		{"SET extra_float_digits = 0", "SELECT 0.1::float8 + 0.2::float8", "RESET extra_float_digits", "SELECT 0.1::float8 + 0.2::float8"},
		{"SET app.tenant = 'a'", "SELECT current_setting('app.tenant')", "SELECT set_config('app.tenant', 'b', false)", "SELECT current_setting('app.tenant', true)", "RESET ALL", "SELECT current_setting('app.tenant', true)"},
		{"CREATE TEMP TABLE transparent AS SELECT 42 AS id, 'temporary' AS name", postgresRead, "DROP TABLE pg_temp.transparent", postgresRead},
		{"DO $$ BEGIN PERFORM set_config('TimeZone', 'Asia/Tokyo', false); END $$", postgresTimes},
		{"SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", "INSERT INTO transparent (name) VALUES ('refused')", postgresRead, "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE", "DELETE FROM transparent WHERE id = 3"},
		{"LISTEN transparent", "NOTIFY transparent, 'x'", "SELECT count(*) FROM pg_listening_channels()", "UNLISTEN *"},
	}
	mysqlHeld = [][]string{
		{"CREATE TEMPORARY TABLE transparent (id int, name varchar(10))", mysqlRead, "DROP TEMPORARY TABLE transparent", mysqlRead},
		{"LOCK TABLES transparent WRITE", "INSERT INTO transparent (name) VALUES ('locked')", mysqlRead, "SELECT * FROM transparent_times", "UNLOCK TABLES", mysqlTimes},
		{"SET sql_select_limit = 1", mysqlRead, "SET sql_select_limit = DEFAULT", mysqlRead},
		{"INSERT IGNORE INTO transparent (name) VALUES ('one')", "SHOW WARNINGS", "SELECT @@warning_count"},
		{"SET SESSION TRANSACTION READ ONLY", "INSERT INTO transparent (name) VALUES ('refused')", mysqlRead, "SET SESSION TRANSACTION READ WRITE"},
	}
)

// carried is state that is the same for a later user too: it goes to replicas with
// the reads, or what depends on it runs on the primary by its text.
var (
	postgresCarried = [][]string{
		{"SET TimeZone = 'Asia/Tokyo'", postgresTimes, "SET LOCAL TimeZone = 'UTC'", postgresTimes, "RESET TimeZone", postgresTimes},
		{"SET DateStyle = 'SQL, DMY'", "SELECT '01/02/2024'::date::text", "SET IntervalStyle = 'iso_8601'", "SELECT '1 day 02:03:04'::interval", "RESET ALL", "SELECT '1 day 02:03:04'::interval"},
		{"SET search_path = transparent_other, public", postgresRead, "SHOW search_path", "RESET search_path", postgresRead},
		{"SET SESSION search_path TO 'public'; SET TimeZone = 'America/New_York'", postgresTimes, postgresRead, "DISCARD ALL", postgresTimes},
		{"BEGIN", "SET LOCAL TimeZone = 'Asia/Tokyo'", postgresTimes, "COMMIT", postgresTimes, "BEGIN", "SET TimeZone = 'Asia/Tokyo'", "ROLLBACK", postgresTimes},
		{"SET ROLE app", "SELECT current_user, session_user", "RESET ROLE", "SELECT current_user"},
		{"CREATE TEMPORARY TABLE transparent_temp AS SELECT id FROM transparent", "SELECT id FROM transparent_temp ORDER BY id", "INSERT INTO transparent_temp VALUES (9)", "SELECT count(*) FROM transparent_temp", "SELECT count(*) FROM transparent t JOIN transparent_temp USING (id)", "DROP TABLE transparent_temp"},
		{"SELECT pg_advisory_lock(7)", "SELECT pg_try_advisory_lock(7)", "SELECT pg_advisory_unlock(7)", "SELECT pg_advisory_unlock(7)", "SELECT pg_advisory_unlock(7)"},
		{"PREPARE transparent_p (int) AS SELECT name FROM transparent WHERE id = $1", "EXECUTE transparent_p(2)", "DEALLOCATE transparent_p", "EXECUTE transparent_p(2)"},
		{"BEGIN", "INSERT INTO transparent (name) VALUES ('text')", postgresRead, "ROLLBACK", postgresRead, "COMMIT"},
		{"BEGIN", "SELECT 1/0", postgresRead, "COMMIT", postgresRead},
		{"START TRANSACTION READ ONLY", postgresRead, "INSERT INTO transparent (name) VALUES ('refused')", "ROLLBACK"},
		{"BEGIN", "DECLARE c CURSOR FOR SELECT id FROM transparent ORDER BY id", "FETCH 2 FROM c", "MOVE BACKWARD 1 IN c", "FETCH c", "CLOSE c", "COMMIT"},
		{"DECLARE h CURSOR WITH HOLD FOR SELECT id FROM transparent ORDER BY id", "FETCH 1 FROM h", "FETCH ALL FROM h", "CLOSE h"},
		{"INSERT INTO transparent (name) VALUES ('sequence') RETURNING id", "SELECT lastval()", "SELECT currval('transparent_id_seq'), nextval('transparent_id_seq')", "SELECT lastval()"},
	}
	mysqlCarried = [][]string{
		{"SET time_zone = '+05:30'", mysqlTimes, "SET SESSION time_zone = '-03:00'", mysqlTimes, "SET time_zone = DEFAULT", mysqlTimes},
		{"SET NAMES latin1", mysqlTimes, "SELECT HEX('é')", "SET NAMES utf8mb4", mysqlTimes},
		{"SET sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT'", `SELECT "id" || 'x' FROM transparent ORDER BY "id"`, "SET sql_mode = DEFAULT", `SELECT "id" || 'x'`},
		{"SET sql_mode = 'NO_BACKSLASH_ESCAPES'", `SELECT 'a\'`, `SELECT 'a\nb'`, "SET sql_mode = DEFAULT", `SELECT 'a\nb'`},
		{"USE information_schema", "SELECT DATABASE()", "SELECT COUNT(*) FROM transparent", "SELECT COUNT(*) FROM app.transparent", "USE app", mysqlRead},
		{"SET @x = 5", "SELECT @x + 1", "SELECT @x := @x + 1", "SELECT @x", "SELECT name INTO @y FROM transparent WHERE id = 2", "SELECT @y"},
		{"CREATE TEMPORARY TABLE transparent_temp AS SELECT id FROM transparent", "SELECT id FROM transparent_temp ORDER BY id", "INSERT INTO transparent_temp VALUES (9)", "SELECT COUNT(*) FROM transparent_temp", "DROP TEMPORARY TABLE transparent_temp"},
		{"SELECT GET_LOCK('transparent', 0)", "SELECT IS_FREE_LOCK('transparent')", "SELECT RELEASE_LOCK('transparent')", "SELECT RELEASE_LOCK('transparent')"},
		{"PREPARE p FROM 'SELECT name FROM transparent WHERE id = ?'", "SET @i = 2", "EXECUTE p USING @i", "DEALLOCATE PREPARE p", "EXECUTE p"},
		{"BEGIN", "INSERT INTO transparent (name) VALUES ('text')", mysqlRead, "ROLLBACK", mysqlRead},
		{"START TRANSACTION READ ONLY", mysqlRead, "INSERT INTO transparent (name) VALUES ('refused')", "ROLLBACK"},
		{"SET autocommit = 0", "INSERT INTO transparent (name) VALUES ('text')", mysqlRead, "ROLLBACK", mysqlRead, "SET autocommit = 1"},
		{"CALL transparent_begin()", mysqlRead, "ROLLBACK", mysqlRead},
		{"BEGIN", "INSERT INTO transparent (name) VALUES ('implicit')", "CREATE TABLE IF NOT EXISTS transparent_times (i int)", "ROLLBACK", mysqlRead},
		{"INSERT INTO transparent (name) VALUES ('four'), ('five')", "SELECT LAST_INSERT_ID(), ROW_COUNT()", "SELECT @@last_insert_id"},
		{"UPDATE transparent SET n = 7", "SELECT ROW_COUNT()"},
		{"SELECT SQL_CALC_FOUND_ROWS id FROM transparent LIMIT 1", "SELECT FOUND_ROWS()"},
		{"SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "SELECT @@tx_isolation"},
		{"HANDLER transparent OPEN", "HANDLER transparent READ FIRST", "HANDLER transparent READ NEXT", "HANDLER transparent CLOSE"},
		{"XA START 'transparent'", "INSERT INTO transparent (name) VALUES ('xa')", "XA END 'transparent'", "XA ROLLBACK 'transparent'", mysqlRead},
	}
)

const (
	postgresRead  = "SELECT id, name FROM transparent ORDER BY id"
	postgresTimes = "SELECT '2024-07-01 12:00:00+00'::timestamptz, '2024-07-01 12:00:00+00'::timestamptz::text, '1 day 02:03:04'::interval"
	mysqlRead     = "SELECT id, name FROM transparent ORDER BY id"
	mysqlTimes    = "SELECT ts, UNIX_TIMESTAMP(ts), v, HEX(v) FROM transparent_times"
)

func TestTransparencyPostgresSessions(t *testing.T) {
	postgresAlone(t, func(t *testing.T, c *replicatedtest.Cluster) {
		setup := append(plain(c.Engine()),
			"DROP SCHEMA IF EXISTS transparent_other CASCADE",
			"CREATE SCHEMA transparent_other",
			"CREATE TABLE transparent_other.transparent AS SELECT id, 'other ' || name AS name FROM public.transparent")
		transparent(t, c, setup, func(s *script) {
			s.db.SetMaxOpenConns(1)
			for _, texts := range postgresHeld {
				s.onConn(append(texts, "DISCARD ALL"))
			}
			for _, texts := range postgresCarried {
				s.onConn(texts)
				s.onPool(texts)
			}
			s.pool("at the end")
		})
	})
}

func TestTransparencyMySQLSessions(t *testing.T) {
	mysqlAlone(t, func(t *testing.T, c *replicatedtest.Cluster) {
		setup := append(plain(c.Engine()),
			"DROP TABLE IF EXISTS transparent_times",
			"CREATE TABLE transparent_times (ts timestamp, v varchar(10)) DEFAULT CHARSET=utf8mb4",
			"INSERT INTO transparent_times VALUES (FROM_UNIXTIME(1720000000), 'é')",
			"DROP PROCEDURE IF EXISTS transparent_begin",
			"CREATE PROCEDURE transparent_begin() BEGIN START TRANSACTION; INSERT INTO transparent (name) VALUES ('called'); END")
		transparent(t, c, setup, func(s *script) {
			s.db.SetMaxOpenConns(1)
			for _, texts := range mysqlHeld {
				s.onConn(texts)
			}
			for _, texts := range mysqlCarried {
				s.onConn(texts)
				s.onPool(texts)
			}
			s.pool("at the end")
		})
	})
}

// onConn runs texts on one connection.
func (s *script) onConn(texts []string) {
	s.t.Helper()
	conn := s.conn()
	for _, text := range texts {
		s.sessionQuery(conn, text)
	}
	s.fail("close", conn.Close())
}

// onPool runs texts, each of which finds the only connection of the pool.
func (s *script) onPool(texts []string) {
	s.t.Helper()
	for _, text := range texts {
		s.sessionQuery(s.db, text)
	}
}

// sessionQuery runs a text as a query, whatever it is.
func (s *script) sessionQuery(q queryer, text string) {
	s.t.Helper()
	s.query(q, text)
	s.wrote = s.wrote || !strings.HasPrefix(text, "SELECT") && !strings.HasPrefix(text, "SET")
}

// Statements of the pool are prepared where they are needed, and closed with it.
func TestTransparencyPreparedStatements(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		transparent(t, c, plain(c.Engine()), func(s *script) {
			e := s.c.Engine()
			text := "SELECT id, name FROM transparent WHERE id >= " + placeholder(e, 1) + " ORDER BY id"
			stmt, same := s.prepare(text), s.prepare(text)
			write := s.prepare("UPDATE transparent SET n = " + placeholder(e, 1))

			// Each level of nesting needs a connection of its own.
			var nest func(level int)
			nest = func(level int) {
				rows, err := stmt.QueryContext(s.ctx(), level)
				s.must(err)
				defer rows.Close()
				for rows.Next() {
					var id int
					var name string
					s.must(rows.Scan(&id, &name))
					s.note("level %d: %d %s", level, id, name)
					if level < 3 {
						nest(level + 1)
					}
				}
				s.fail("rows", rows.Err())
			}
			nest(1)
			s.result(write.ExecContext(s.ctx(), 1))
			s.settle()
			s.rows(stmt.QueryContext(s.ctx(), 1))
			s.rows(same.QueryContext(s.ctx(), 2))
			s.fail("close", stmt.Close())
			s.rows(stmt.QueryContext(s.ctx(), 1))
			s.rows(same.QueryContext(s.ctx(), 3))
			s.fail("close", same.Close())
			s.fail("close", same.Close())

			// On a connection, which is closed before its statement.
			conn := s.conn()
			bound, err := conn.PrepareContext(s.ctx(), text)
			s.must(err)
			s.rows(bound.QueryContext(s.ctx(), 2))
			s.rows(bound.QueryContext(s.ctx(), "x"))
			s.rows(bound.QueryContext(s.ctx(), 2))
			s.fail("close", conn.Close())
			s.rows(bound.QueryContext(s.ctx(), 2))
			s.fail("close", bound.Close())

			// The table changes under a statement.
			s.exec(s.db, "ALTER TABLE transparent ADD COLUMN added int")
			all := s.prepare("SELECT * FROM transparent ORDER BY id")
			s.settle()
			s.rows(all.QueryContext(s.ctx()))
			s.exec(s.db, "ALTER TABLE transparent DROP COLUMN added")
			s.settle()
			if e == replicatedtest.Postgres {
				s.exec(s.db, "DEALLOCATE ALL")
				all = s.prepare("SELECT id FROM transparent ORDER BY id")
			}
			s.rows(all.QueryContext(s.ctx()))
			s.fail("close", write.Close())
		})
	})
}

// The primary's own driver connection is within reach of sql.Conn.Raw.
func TestTransparencyRaw(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		transparent(t, c, plain(c.Engine()), func(s *script) {
			conn := s.conn()
			s.fail("raw", s.raw(conn, func(dc any) error {
				s.note("%T", dc)
				res, err := dc.(driver.ExecerContext).ExecContext(s.ctx(), "INSERT INTO transparent (name) VALUES ('raw'), ('rawer')", nil)
				if err != nil {
					return err
				}
				n, err := res.RowsAffected()
				s.note("%d rows affected: %s", n, showError(err))
				if all, ok := res.(mysql.Result); ok {
					s.note("%v %v", all.AllLastInsertIds(), all.AllRowsAffected())
				}
				return nil
			}))
			s.query(conn, "SELECT id, name FROM transparent ORDER BY id")
			s.fail("raw", s.raw(conn, func(dc any) error {
				_, err := dc.(driver.ExecerContext).ExecContext(s.ctx(), "INSERT INTO transparent (name) VALUES ('raw')", nil)
				return err
			}))
			s.fail("raw", s.raw(conn, func(any) error { return sql.ErrNoRows }))
			if s.c.Engine() == replicatedtest.Postgres {
				s.fail("raw", s.raw(conn, func(dc any) error {
					pq.SetNoticeHandler(dc.(driver.Conn), func(e *pq.Error) { s.note("notice %s", e.Message) })
					return nil
				}))
				s.exec(conn, "DO $$ BEGIN RAISE NOTICE 'noticed'; END $$")
				s.exec(conn, "DROP TABLE IF EXISTS missing_table")
			}
			s.query(conn, "SELECT id, name FROM transparent ORDER BY id")
			s.fail("raw", s.raw(conn, func(any) error { return driver.ErrBadConn }))
			s.fail("ping", conn.PingContext(s.ctx()))
			s.fail("close", conn.Close())
			s.fail("raw", conn.Raw(func(any) error { return nil }))
			s.query(s.db, "SELECT id, name FROM transparent ORDER BY id")
			s.pool("at the end")
		})
	})
}
