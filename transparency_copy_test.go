package replicated_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/lib/pq"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

func TestTransparencyCopy(t *testing.T) {
	postgresAlone(t, func(t *testing.T, c *replicatedtest.Cluster) {
		transparent(t, c, plain(c.Engine()), func(s *script) {
			s.db.SetMaxOpenConns(1)
			read := "SELECT name, n FROM transparent ORDER BY id"
			copyIn := func(text string, end bool, rows ...[]any) {
				tx, err := s.db.BeginTx(s.ctx(), nil)
				s.must(err)
				stmt, err := tx.PrepareContext(s.ctx(), text)
				s.fail("prepare "+text, err)
				if err == nil {
					for _, row := range rows {
						s.result(stmt.ExecContext(s.ctx(), row...))
					}
					if end {
						s.result(stmt.ExecContext(s.ctx()))
						s.result(stmt.ExecContext(s.ctx(), "after the end", 1))
					}
					_, err = stmt.QueryContext(s.ctx())
					s.fail("query", err)
					s.fail("close", stmt.Close())
				}
				s.query(tx, read)
				s.fail("commit", tx.Commit())
				s.query(s.db, read)
				s.pool("after it")
			}
			in := pq.CopyIn("transparent", "name", "n") //nolint:staticcheck // in use as long as lib/pq has it
			copyIn(in, true, []any{"copied", 4}, []any{"tab\t\n\\", nil}, []any{[]byte("bytes"), uint64(6)})
			copyIn(in, false, []any{"by close", 7})
			copyIn(in, true)
			copyIn(in, true, []any{"one", 1})
			copyIn(in, true, []any{"wrong", "type"})
			copyIn(in, true, []any{"too", 1, "many"})
			copyIn(in, true, []any{"unfit", struct{}{}})
			copyIn(pq.CopyIn("transparent", "missing"), true, []any{1}) //nolint:staticcheck // as above
			copyIn("COPY transparent (name, n) FROM STDIN BINARY", true)
			copyIn("COPY transparent TO STDOUT", true)
			copyIn("copy transparent (name) from stdin", true, []any{"lower"})
			copyIn("  COPY transparent (name) FROM STDIN", true, []any{"blanks"})

			// Outside of a transaction.
			for _, text := range []string{in, "COPY transparent TO STDOUT", "COPY missing_table TO STDOUT", "COPY (SELECT 1) TO STDOUT"} {
				stmt, err := s.db.PrepareContext(s.ctx(), text)
				s.fail("prepare", err)
				if err == nil {
					s.fail("close", stmt.Close())
				}
				s.exec(s.db, text)
				s.query(s.db, text)
				s.query(s.db, read)
				s.pool("after it")
			}

			// A transaction that is given up in the middle of a COPY.
			tx, err := s.db.BeginTx(s.ctx(), nil)
			s.must(err)
			stmt, err := tx.PrepareContext(s.ctx(), in)
			s.must(err)
			s.result(stmt.ExecContext(s.ctx(), "lost", 8))
			s.fail("close", stmt.Close())
			s.fail("roll back", tx.Rollback())
			s.query(s.db, read)
		})
	})
}

func TestTransparencyLoadDataLocal(t *testing.T) {
	mysqlAlone(t, func(t *testing.T, c *replicatedtest.Cluster) {
		data := ""
		mysql.RegisterReaderHandler("transparent", func() io.Reader { return strings.NewReader(data) })
		t.Cleanup(func() { mysql.DeregisterReaderHandler("transparent") })
		transparent(t, c, plain(c.Engine()), func(s *script) {
			load := "LOAD DATA LOCAL INFILE 'Reader::transparent' INTO TABLE transparent FIELDS TERMINATED BY ',' (name, n)"
			data = "four,4\nfive,\\N\nsix," + strings.Repeat("0", 100) + "6\n"
			s.exec(s.db, load)
			s.query(s.db, "SELECT name, n FROM transparent ORDER BY id")
			data = "one,1\nseven,seven\neight,8,9\n"
			s.exec(s.db, load)
			s.exec(s.db, strings.Replace(load, "INTO", "REPLACE INTO", 1))
			tx, err := s.db.BeginTx(s.ctx(), nil)
			s.must(err)
			data = "rolled back,1\n"
			s.exec(tx, load)
			s.query(tx, "SELECT name, n FROM transparent ORDER BY id")
			s.fail("roll back", tx.Rollback())
			data = ""
			s.exec(s.db, load)
			s.exec(s.db, strings.Replace(load, "Reader::transparent", "Reader::missing", 1))
			s.exec(s.db, strings.Replace(load, "Reader::transparent", "/missing", 1))
			s.exec(s.db, strings.Replace(load, "INTO TABLE transparent", "INTO TABLE missing_table", 1))
			s.query(s.db, load)
			s.query(s.db, "SELECT name, n FROM transparent ORDER BY id")
			s.pool("at the end")
		})
	})
}

// A pq.Listener has a connection of its own to the primary, beside the handle.
func TestTransparencyListener(t *testing.T) {
	postgresAlone(t, func(t *testing.T, c *replicatedtest.Cluster) {
		transparent(t, c, plain(c.Engine()), func(s *script) {
			l := pq.NewListener(s.c.Primary().DSN(), 10*time.Millisecond, time.Second, nil)
			defer l.Close()
			s.must(l.Listen("transparent"))
			hear := func() {
				select {
				case n := <-l.Notify:
					s.note("heard %s %q", n.Channel, n.Extra)
				case <-time.After(5 * time.Second):
					s.t.Errorf("%s: no notification", s.way.name)
				}
			}
			s.exec(s.db, "NOTIFY transparent, 'plain'")
			hear()
			s.query(s.db, "SELECT pg_notify('transparent', $1)", "function")
			hear()
			tx, err := s.db.BeginTx(s.ctx(), nil)
			s.must(err)
			s.exec(tx, "NOTIFY transparent, 'in a transaction'")
			s.exec(tx, "INSERT INTO transparent (name) VALUES ('notified')")
			s.note("%d heard before the commit", len(l.Notify))
			s.fail("commit", tx.Commit())
			hear()
			tx, err = s.db.BeginTx(s.ctx(), nil)
			s.must(err)
			s.exec(tx, "NOTIFY transparent, 'rolled back'")
			s.fail("roll back", tx.Rollback())
			for i := range 3 {
				s.query(s.db, fmt.Sprintf("SELECT pg_notify('transparent', '%d')", i))
				hear()
			}
			s.wrote = true // notifying raises floors as writes do
			s.query(s.db, "SELECT name FROM transparent ORDER BY id")
		})
	})
}

func TestTransparencyResults(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		play := func(s *script) {
			s.exec(s.db, "INSERT INTO transparent (name) VALUES ('four')")
			s.exec(s.db, "INSERT INTO transparent (name) VALUES ('five'), ('six')")
			s.exec(s.db, "INSERT INTO transparent (name, n) VALUES ("+placeholder(s.c.Engine(), 1)+", "+placeholder(s.c.Engine(), 2)+")", "seven", 7)
			s.exec(s.db, "UPDATE transparent SET n = 7")
			s.exec(s.db, "UPDATE transparent SET n = 7")
			s.exec(s.db, "UPDATE transparent SET n = 8 WHERE id = "+placeholder(s.c.Engine(), 1), 99)
			s.exec(s.db, "DELETE FROM transparent WHERE id > "+placeholder(s.c.Engine(), 1), 5)
			s.exec(s.db, "SELECT id FROM transparent")
			s.exec(s.db, "CREATE TABLE IF NOT EXISTS transparent (id int)")
			s.exec(s.db, "TRUNCATE TABLE transparent")
			if s.c.Engine() == replicatedtest.Postgres {
				s.query(s.db, "INSERT INTO transparent (name) VALUES ('a'), ('b') RETURNING id, name")
				s.query(s.db, "WITH w AS (DELETE FROM transparent RETURNING name) SELECT name FROM w ORDER BY name")
				s.exec(s.db, "INSERT INTO transparent (id, name) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET name = 'y'")
			} else {
				s.exec(s.db, "INSERT INTO transparent (id, name) VALUES (1, 'x') ON DUPLICATE KEY UPDATE name = 'y'")
				s.exec(s.db, "INSERT INTO transparent (id, name) VALUES (1, 'x') ON DUPLICATE KEY UPDATE name = 'y'")
				s.exec(s.db, "REPLACE INTO transparent (id, name) VALUES (1, 'z')")
				s.exec(s.db, "INSERT IGNORE INTO transparent (id, name) VALUES (1, 'z')")
			}
			s.query(s.db, "SELECT id, name, n FROM transparent ORDER BY id")
		}
		t.Run("plain", func(t *testing.T) { transparent(t, c, plain(c.Engine()), play) })
		if c.Engine() != replicatedtest.Postgres {
			t.Run("clientFoundRows", func(t *testing.T) { transparent(t, c, plain(c.Engine()), play, "clientFoundRows=true") })
		}
	})
}
