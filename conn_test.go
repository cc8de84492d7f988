package replicated_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"
	"github.com/sqlreplicated/replicated/internal/faketime"
)

// A primary connection that is lost after it was used takes the Conn with it:
// what stood on it is gone, and nothing may go on elsewhere as if it were there.
func TestBrokenConnSendsNothing(t *testing.T) {
	eachShape(t, func(t *testing.T, shape fakedb.Shape) {
		f := newFakes(t, 1, shape)
		c := f.conn(f.connector())
		ctx := t.Context()
		stmt, err := c.PrepareContext(ctx, "INSERT INTO t VALUES (1)")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.ExecContext(ctx, "INSERT INTO t VALUES (1)", nil); err != nil {
			t.Fatal(err)
		}
		f.primary.Kill()
		if _, err := c.ExecContext(ctx, "INSERT INTO t VALUES (2)", nil); !isBadConn(err) {
			t.Fatalf("error %v, want driver.ErrBadConn", err)
		}
		synctest.Wait()
		for _, s := range f.servers() {
			s.Forget()
		}
		for what, call := range map[string]func() error{
			"exec":     func() error { _, err := c.ExecContext(ctx, "INSERT INTO t VALUES (3)", nil); return err },
			"a read":   func() error { _, err := c.QueryContext(ctx, plainSelect, nil); return err },
			"prepare":  func() error { _, err := c.PrepareContext(ctx, plainSelect); return err },
			"prepared": func() error { _, err := stmt.(driver.StmtExecContext).ExecContext(ctx, nil); return err },
			"begin":    func() error { _, err := c.BeginTx(ctx, driver.TxOptions{}); return err },
			"ping":     func() error { return c.Ping(ctx) },
			"raw":      func() error { return c.Primary(ctx, func(any) error { return nil }) },
			"reset":    func() error { return c.ResetSession(ctx) },
		} {
			if err := call(); !isBadConn(err) {
				t.Errorf("%s: %v, want driver.ErrBadConn", what, err)
			}
		}
		if c.IsValid() {
			t.Error("it says that it is valid")
		}
		if err := stmt.Close(); err != nil {
			t.Errorf("closing a statement: %v", err)
		}
		for _, s := range f.servers() {
			if ops := s.Ops(); len(ops) > 0 {
				t.Errorf("%s got %v from a broken Conn", s.Name(), ops)
			}
		}
	})
}

func TestPoolNeverHandsOutABrokenConn(t *testing.T) {
	eachShape(t, func(t *testing.T, shape fakedb.Shape) {
		f := newFakes(t, 1, shape)
		db := f.open()
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		run(t.Context(), t, conn, "INSERT INTO t VALUES (1)")
		f.primary.Kill()
		if _, err := conn.ExecContext(t.Context(), "INSERT INTO t VALUES (2)"); !isBadConn(err) {
			t.Errorf("error %v, want driver.ErrBadConn", err)
		}
		if _, err := conn.ExecContext(t.Context(), "INSERT INTO t VALUES (2)"); !errors.Is(err, sql.ErrConnDone) {
			t.Errorf("error %v, want sql.ErrConnDone", err)
		}
		run(t.Context(), t, db, "INSERT INTO t VALUES (3)")
		if n := sent(f.primary, "INSERT INTO t VALUES (2)"); n != 0 {
			t.Errorf("the statement after the loss was sent %d times", n)
		}
	})
}

// A primary connection that died between two check-outs is opened anew, and what
// it held is forgotten, as a pool of bare connections forgets it.
func TestIdlePrimaryIsOpenedAnew(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.PQLike)
		db := f.open(f.asPostgres())
		db.SetMaxOpenConns(1)
		run(t.Context(), t, db, "SET ROLE auditor")
		wantOn(t.Context(), t, db, "primary")
		f.primary.Kill()
		run(replicated.WithUntracked(t.Context()), t, db, "INSERT INTO t VALUES (1)")
		wantOn(t.Context(), t, db, "replica")
	})
}

// What a statement leaves in the session keeps reads on the primary until the
// connection goes back to the pool; roles and custom settings for as long as it
// has them.
func TestPins(t *testing.T) {
	for _, tt := range []struct {
		name, text, undo string
		holds            bool // after check-in
	}{
		{"LISTEN", "LISTEN jobs", "", false},
		{"advisory lock", "SELECT pg_advisory_lock(1)", "", false},
		{"other settings", "SET work_mem = '1GB'", "", false},
		{"PREPARE", "PREPARE p AS SELECT 1", "", false},
		{"role", "SET ROLE auditor", "RESET ROLE", true},
		{"tenant", "SET app.tenant = '7'", "DISCARD ALL", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) {
				f := newFakes(t, 1, fakedb.PQLike)
				db := f.open(f.asPostgres())
				db.SetMaxOpenConns(1)
				conn, err := db.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				wantOn(t.Context(), t, conn, "replica")
				run(t.Context(), t, conn, tt.text)
				time.Sleep(time.Minute) // no floor keeps the reads
				f.routes()
				wantOn(t.Context(), t, conn, "primary")
				wantOn(replicated.WithReplica(t.Context()), t, conn, "primary")
				f.wantRoutes("primary pinned", "primary pinned")
				if err := conn.Close(); err != nil {
					t.Fatal(err)
				}
				if !tt.holds {
					wantOn(t.Context(), t, db, "replica")
					return
				}
				wantOn(t.Context(), t, db, "primary")
				wantOn(t.Context(), t, db, "primary")
				run(t.Context(), t, db, tt.undo)
				time.Sleep(time.Minute)
				wantOn(t.Context(), t, db, "replica")
			})
		})
	}
}

func TestUsePrimary(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		db := f.open()
		db.SetMaxOpenConns(1)
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		err = conn.Raw(func(dc any) error { dc.(*replicated.Conn).UsePrimary(); return nil })
		if err != nil {
			t.Fatal(err)
		}
		wantOn(t.Context(), t, conn, "primary")
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		wantOn(t.Context(), t, db, "replica")
	})
}

// Raw access leads to the node's own connection, counts as a write and pins.
func TestRawAccess(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.PQLike)
		db := f.open()
		db.SetMaxOpenConns(1)
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		failed := errors.New("the caller's own")
		err = conn.Raw(func(dc any) error {
			return dc.(*replicated.Conn).Primary(t.Context(), func(inner any) error {
				if s, ok := inner.(interface{ Server() *fakedb.Server }); !ok || s.Server() != f.primary {
					t.Errorf("it leads to %T", inner)
				}
				return failed
			})
		})
		if !errors.Is(err, failed) {
			t.Errorf("error %v, want the function's", err)
		}
		time.Sleep(time.Minute)
		wantOn(t.Context(), t, conn, "primary")
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		wantOn(t.Context(), t, db, "replica")
	})
}

// An open transaction is known by the connection's own status, and by text where
// the driver does not show it.
func TestTransactionByText(t *testing.T) {
	eachShape(t, func(t *testing.T, shape fakedb.Shape) {
		f := newFakes(t, 1, shape)
		db := f.open()
		db.SetMaxOpenConns(1)
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		wantOn(t.Context(), t, conn, "replica")
		run(t.Context(), t, conn, "BEGIN")
		f.routes()
		wantOn(t.Context(), t, conn, "primary")
		f.wantRoutes("primary transaction")
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		wantOn(t.Context(), t, db, "primary") // left behind, it stays what it is
		run(t.Context(), t, db, "COMMIT")
		time.Sleep(time.Minute)
		wantOn(t.Context(), t, db, "replica")
	})
}

// What a transaction that text opened has written stamps when it ends, for all
// who wrote in it.
func TestTransactionByTextStampsAtItsEnd(t *testing.T) {
	for _, shape := range []fakedb.Shape{fakedb.Full, fakedb.Legacy, fakedb.Minimal} {
		t.Run(shape.String(), func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) {
				f := newFakes(t, 1, shape)
				db := f.open()
				conn, err := db.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				writes, _ := replicated.WithSession(t.Context())
				run(t.Context(), t, conn, "BEGIN")
				run(writes, t, conn, "INSERT INTO t VALUES (1)")
				time.Sleep(time.Minute)
				ends, _ := replicated.WithSession(t.Context())
				wantOn(writes, t, db, "replica")
				run(ends, t, conn, "COMMIT")
				wantOn(writes, t, db, "primary")
				wantOn(ends, t, db, "primary")
			})
		})
	}
}

// database/sql keeps a connection after a transaction whose context has ended if
// it can be reset and validated. Ours always can; what counts is the primary's.
func TestConnAfterACancelledTransaction(t *testing.T) {
	keeps := map[fakedb.Shape]bool{fakedb.Full: true, fakedb.MySQLLike: true, fakedb.PQLike: true}
	eachShape(t, func(t *testing.T, shape fakedb.Shape) {
		f := newFakes(t, 1, shape)
		db := f.open()
		ctx, cancel := context.WithCancel(t.Context())
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		run(t.Context(), t, tx, "INSERT INTO t VALUES (1)")
		cancel()
		synctest.Wait()
		if n := f.primary.Stats().Rollbacks; n != 1 {
			t.Fatalf("rolled back %d times", n)
		}
		open := f.primary.Stats().OpenConns
		if kept := open == 1; kept != keeps[shape] {
			t.Errorf("kept: %v, the bare driver's connection would be: %v", kept, keeps[shape])
		}
		run(t.Context(), t, db, "INSERT INTO t VALUES (2)")
	})
}

// Settings of the session go with the reads to the replicas, once for each
// connection, and are read back from the primary once.
func TestSettingsTravel(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.PQLike)
		db := f.open(f.asPostgres())
		db.SetMaxOpenConns(1)
		zone := "Europe/Berlin"
		f.primary.ReplyContaining("current_setting('TimeZone')", func(context.Context, *fakedb.Call) (*fakedb.Reply, error) {
			r := fakedb.Row(zone)
			return &r, nil
		})
		applied := 0
		f.replicas[0].ReplyContaining("set_config", func(_ context.Context, call *fakedb.Call) (*fakedb.Reply, error) {
			if !strings.Contains(call.Text, zone) {
				t.Errorf("applied %s, want %s", call.Text, zone)
			}
			applied++
			r := fakedb.Row(zone)
			return &r, nil
		})
		f.replicas[0].ReplyContaining("current_setting('TimeZone')", func(_ context.Context, call *fakedb.Call) (*fakedb.Reply, error) {
			if strings.Contains(call.Text, "set_config") {
				applied++
			}
			r := fakedb.Row("UTC")
			return &r, nil
		})
		wantOn(t.Context(), t, db, "replica")
		run(t.Context(), t, db, "SET TIME ZONE 'Europe/Berlin'")
		for range 3 {
			wantOn(t.Context(), t, db, "replica")
		}
		if applied != 1 {
			t.Errorf("three reads have set the zone %d times on their connection", applied)
		}
		asked := 0
		for _, text := range f.primary.Texts() {
			if strings.Contains(text, "current_setting('TimeZone')") {
				asked++
			}
		}
		if asked != 1 {
			t.Errorf("the primary was asked for the zone %d times", asked)
		}

		zone = "Asia/Tokyo"
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		run(t.Context(), t, tx, "SET TIME ZONE 'Asia/Tokyo'")
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		zone = "Europe/Berlin" // it was rolled back, which only the primary knows
		wantOn(t.Context(), t, db, "replica")
		if applied != 1 {
			t.Errorf("a SET that was rolled back has reached the replica")
		}
	})
}

func TestEmptyAndOddTextsGoToThePrimary(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		db := f.open()
		f.replicas[0].Forget()
		for _, text := range []string{"", " \n\t", "-- nothing", "/* nothing */", "\x00", "SELECT\x00 1", "\xff\xfe", "SELECT '\xff", strings.Repeat("x", 10<<20)} {
			if _, err := db.ExecContext(t.Context(), text); err != nil {
				t.Errorf("%.20q: %v", text, err)
			}
		}
		if got := f.replicas[0].Texts(); len(got) > 0 {
			t.Errorf("a replica got %.100q", got)
		}
	})
}

// Whatever the shape of the node's driver, nothing of it is left: 64 goroutines
// read, write, run transactions, prepare, close early and cancel, while replicas
// lose their connections.
func TestManyGoroutines(t *testing.T) {
	for _, shape := range fakedb.Shapes() {
		t.Run(shape.String(), func(t *testing.T) {
			noGoroutineLeak(t)
			f := newFakes(t, 2, shape)
			connector := f.connector(func(c *replicated.Config) {
				c.Consistency, c.Sticky, c.BreakerFailures = replicated.ConsistencyEventual, -1, 1000
			})
			db := sql.OpenDB(connector)
			t.Cleanup(func() {
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			})
			f.everywhere("SELECT n FROM many", lines(20))
			f.primary.Reply("SELECT n FROM many", lines(20))
			hammer(t, db, f)
			if n := connector.Cluster().Stats().FallbackReads; n != 0 {
				t.Errorf("%d reads are in flight for want of a replica", n)
			}
			for _, n := range connector.Cluster().Stats().Nodes {
				if n.InFlight != 0 {
					t.Errorf("%s: %d reads in flight", n.Name, n.InFlight)
				}
				if n.Role == replicated.RoleReplica && n.Open > 8 {
					t.Errorf("%s: %d connections are left, more than the idle limit", n.Name, n.Open)
				}
			}
		})
	}
}

// tolerable tells whether a client may see err while replicas are being killed
// and contexts cancelled.
func tolerable(err error) bool {
	var ne *replicated.NodeError
	return err == nil || errors.Is(err, context.Canceled) || errors.Is(err, sql.ErrTxDone) || errors.As(err, &ne) && ne.Role == replicated.RoleReplica ||
		errors.Is(err, fakedb.ErrAborted) || errors.Is(err, fakedb.ErrCommitFailed) || errors.Is(err, io.EOF)
}

func TestPing(t *testing.T) {
	eachShape(t, func(t *testing.T, shape fakedb.Shape) {
		f := newFakes(t, 1, shape)
		db := f.open()
		f.primary.Kill()
		if err := db.PingContext(t.Context()); err != nil {
			t.Errorf("Ping on a connection that died while idle: %v", err)
		}
		f.primary.Down(errors.New("refused"))
		if err := db.PingContext(t.Context()); shape != fakedb.Legacy && shape != fakedb.Minimal && (err == nil || isBadConn(err)) {
			t.Errorf("Ping of a dead primary: %v", err)
		}
		if got := f.replicas[0].Ops(); slices.Contains(got, fakedb.OpPing) {
			t.Error("a replica was asked")
		}
	})
}
