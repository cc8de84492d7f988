package replicated_test

import (
	"context"
	"database/sql"
	"io"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"
	"github.com/sqlreplicated/replicated/internal/faketime"
)

// What an earlier user of a connection has left on it is not what the next one relies
// on: its loss costs him no read, wherever the read has to run, and whoever may be the
// primary by then.
func TestWhatIsLeftOnALostPrimaryCostsNoRead(t *testing.T) {
	for name, text := range map[string]string{
		"a transaction": "BEGIN",
		"a role":        "SET ROLE auditor",
		"a setting":     "SET search_path = app",
		"nothing":       "SELECT 1 FOR UPDATE",
	} {
		for what, lose := range map[string]func(f *roleFakes){
			"another is the primary": func(f *roleFakes) { f.promote(1) },
			"none is":                func(f *roleFakes) { f.fakes.primary.Down(io.ErrUnexpectedEOF) },
		} {
			for where, ctx := range map[string]context.Context{
				"a replica":   context.Background(),
				"the primary": replicated.WithPrimary(context.Background()),
			} {
				if where == "the primary" && what == "none is" {
					continue
				}
				t.Run(name+", "+what+", "+where, func(t *testing.T) {
					roleBubble(t, func(t *testing.T, f *roleFakes) {
						f.apply()
						db := f.openRoles()
						db.SetMaxOpenConns(1)
						pass(time.Second)
						run(t.Context(), t, db, text)
						lose(f)
						pass(time.Second)
						conn := heldConn(t, db)
						wantOn(ctx, t, conn, "replica") // one of them is the primary now, or none
					})
				})
			}
		}
	}
}

// heldConn takes a connection out of the pool until the end of the test.
func heldConn(t *testing.T, db *sql.DB) *sql.Conn {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// What leaves nothing behind on the primary connection has nothing lost with it.
func TestReadsAfterWhatLeavesNothing(t *testing.T) {
	ctx := replicated.WithPrimary(context.Background())
	read := func(t *testing.T, conn *sql.Conn) {
		t.Helper()
		var on string
		if err := conn.QueryRowContext(ctx, plainSelect).Scan(&on); err != nil {
			t.Errorf("a read: %v", err)
		}
	}
	for name, first := range map[string]func(t *testing.T, conn *sql.Conn){
		"a read": read,
		"a ping": func(t *testing.T, conn *sql.Conn) {
			if err := conn.PingContext(ctx); err != nil {
				t.Error(err)
			}
		},
		"prepared": func(t *testing.T, conn *sql.Conn) {
			st, err := conn.PrepareContext(ctx, plainSelect)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = st.Close() })
		},
		"a pin": func(t *testing.T, conn *sql.Conn) {
			_ = conn.Raw(func(dc any) error { dc.(*replicated.Conn).UsePrimary(); return nil })
			read(t, conn)
		},
	} {
		for what, lose := range map[string]func(f *roleFakes){
			"killed":     func(f *roleFakes) { f.fakes.primary.Kill() },
			"in it":      func(f *roleFakes) { f.fakes.primary.Fail(fakedb.OpQuery, 1, io.ErrUnexpectedEOF) },
			"superseded": func(f *roleFakes) { f.promote(1); pass(time.Second) },
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				roleBubble(t, func(t *testing.T, f *roleFakes) {
					conn := heldConn(t, f.openRoles())
					first(t, conn)
					lose(f)
					read(t, conn)
				})
			})
		}
	}
	t.Run("a pin before all", func(t *testing.T) {
		roleBubble(t, func(t *testing.T, f *roleFakes) {
			db := f.openRoles()
			write(t.Context(), t, db)
			conn := heldConn(t, db)
			_ = conn.Raw(func(dc any) error { dc.(*replicated.Conn).UsePrimary(); return nil })
			f.fakes.primary.Fail(fakedb.OpQuery, 1, io.ErrUnexpectedEOF)
			read(t, conn)
		})
	})
}

// A read that is lost amid its rows costs the connection that it was asked for on
// nothing but its own rows.
func TestPrimaryLostAmidRowsCostsNoOtherRead(t *testing.T) {
	for _, shape := range []fakedb.Shape{fakedb.MySQLLike, fakedb.Full} { // the first needs a statement for the argument
		t.Run(shape.String(), func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) {
				f := newFakes(t, 0, shape)
				conn := heldConn(t, f.open())
				rows, err := conn.QueryContext(t.Context(), "SELECT a FROM t WHERE a <> ?", 1)
				if err != nil {
					t.Fatal(err)
				}
				f.primary.Kill()
				for rows.Next() {
				}
				if rows.Err() == nil {
					t.Error("the rows have come to a good end")
				}
				if err := rows.Close(); err != nil {
					t.Error(err)
				}
				wantOn(t.Context(), t, conn, "primary")
			})
		})
	}
}

// A read that depends on nothing of the connection goes on where that is lost, whatever
// the check-out has done before. What may depend on it does not, not even after such reads.
func TestReadAfterAWriteOnALostPrimary(t *testing.T) {
	for what, lose := range map[string]func(f *roleFakes){
		"killed":     func(f *roleFakes) { f.fakes.primary.Kill() },
		"in it":      func(f *roleFakes) { f.fakes.primary.Fail(fakedb.OpQuery, 1, io.ErrUnexpectedEOF) },
		"superseded": func(f *roleFakes) { f.promote(1); pass(time.Second) },
	} {
		for name, tt := range map[string]struct {
			first []string
			reads bool
		}{
			"a write":             {[]string{"INSERT INTO t VALUES (1)"}, true},
			"a transaction":       {[]string{"BEGIN", "INSERT INTO t VALUES (1)", "COMMIT"}, true},
			"an open transaction": {[]string{"BEGIN"}, false},
			"a setting":           {[]string{"SET search_path = app"}, false},
			"a role":              {[]string{"SET ROLE auditor"}, false},
			"a temporary table":   {[]string{"CREATE TEMP TABLE x (a int)"}, false},
		} {
			for second, call := range map[string]func(*sql.Conn) error{
				"a write":  func(c *sql.Conn) error { return insert(context.Background(), c) },
				"begin":    func(c *sql.Conn) error { _, err := c.BeginTx(context.Background(), nil); return err },
				"ping":     func(c *sql.Conn) error { return c.PingContext(context.Background()) },
				"empty":    func(c *sql.Conn) error { _, err := c.ExecContext(context.Background(), "-- there?"); return err },
				"unproven": func(c *sql.Conn) error { return c.QueryRowContext(context.Background(), "SELECT currval('s')").Err() },
			} {
				t.Run(name+", "+what+", "+second, func(t *testing.T) {
					roleBubble(t, func(t *testing.T, f *roleFakes) {
						db := f.openRoles()
						db.SetMaxOpenConns(1)
						conn := heldConn(t, db)
						for _, text := range tt.first {
							run(t.Context(), t, conn, text)
						}
						lose(f)
						before := f.executed()
						ctx := replicated.WithPrimary(t.Context())
						for range 2 {
							var on string
							if err := conn.QueryRowContext(ctx, plainSelect).Scan(&on); (err == nil) != tt.reads {
								t.Errorf("a read: %v", err)
							}
						}
						if err := call(conn); err == nil || tt.reads && !isBadConn(err) {
							t.Errorf("error %v, want driver.ErrBadConn", err)
						}
						if f.executed() != before {
							t.Error("it has run")
						}
						_ = conn.Close()
						write(t.Context(), t, db) // the next user has nothing to do with it
					})
				})
			}
		}
	}
}

// Nor does he rely on it when he has read there.
func TestReadsInATransactionThatWasLeftOpen(t *testing.T) {
	roleBubble(t, func(t *testing.T, f *roleFakes) {
		db := f.openRoles()
		db.SetMaxOpenConns(1)
		run(t.Context(), t, db, "BEGIN")
		conn := heldConn(t, db)
		wantOn(t.Context(), t, conn, "primary")
		f.promote(1)
		pass(time.Second)
		wantOn(replicated.WithPrimary(t.Context()), t, conn, "replica")
	})
}
