package replicated_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"
	"github.com/sqlreplicated/replicated/internal/faketime"
)

// The server tells only at the end of a write's rows that it is committed.
func TestEndOfAWritesRowsStamps(t *testing.T) {
	eachShape(t, func(t *testing.T, shape fakedb.Shape) {
		f := newFakes(t, 1, shape)
		db := f.open()
		ctx, _ := replicated.WithSession(t.Context())
		f.primary.Reply("INSERT INTO t VALUES (1) RETURNING a", lines(2))
		rows, err := db.QueryContext(ctx, "INSERT INTO t VALUES (1) RETURNING a")
		if err != nil {
			t.Fatal(err)
		}
		wantOn(ctx, t, db, "primary")
		time.Sleep(time.Minute)
		wantOn(ctx, t, db, "replica")
		for rows.Next() {
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
		wantOn(ctx, t, db, "primary")
	})
}

func TestEndOfReadsRowsStampsNothing(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		db := f.open(limit(5))
		f.replicas[0].Down(errors.New("refused"))
		rows, err := db.QueryContext(t.Context(), plainSelect)
		if err != nil {
			t.Fatal(err)
		}
		f.replicas[0].Heal()
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
		wantOn(t.Context(), t, db, "replica")
	})
}

func TestPrimarysRowsAreLost(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		unknown    bool
	}{
		{"a write's", "INSERT INTO t VALUES (1) RETURNING a", true},
		{"a read's", "SELECT /* replicated:primary */ a FROM t", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eachShape(t, func(t *testing.T, shape fakedb.Shape) {
				f := newFakes(t, 1, shape)
				db := f.open()
				reply := lines(1)
				reply.NextErr, reply.Break = io.ErrUnexpectedEOF, true
				f.primary.Reply(tt.text, reply)
				rows, err := db.QueryContext(t.Context(), tt.text)
				if err != nil {
					t.Fatal(err)
				}
				n := 0
				for rows.Next() {
					n++
				}
				if err := rows.Err(); err == nil || errors.Is(err, replicated.ErrOutcomeUnknown) != tt.unknown || tt.unknown && isBadConn(err) {
					t.Errorf("error %v, want ErrOutcomeUnknown: %v", err, tt.unknown)
				}
				if n != 1 {
					t.Errorf("%d rows before the error, want 1", n)
				}
				_ = rows.Close()
				if got := sent(f.primary, tt.text); got != 1 {
					t.Errorf("it was sent %d times", got)
				}
				run(t.Context(), t, db, "INSERT INTO t VALUES (2)")
			})
		})
	}
}

// The end of the rows may be what fails.
func TestErrorsOfClosingRows(t *testing.T) {
	failed := errors.New("no")
	for _, tt := range []struct {
		name, text string
		closing    error
		want       func(error) bool
	}{
		{"a replica's connection is lost", plainSelect, driver.ErrBadConn, func(err error) bool { return err == nil }},
		{"a replica's other error", plainSelect, failed, func(err error) bool { return errors.Is(err, failed) }},
		{"a write's connection is lost", "INSERT INTO t VALUES (1) RETURNING a", driver.ErrBadConn, func(err error) bool {
			return errors.Is(err, replicated.ErrOutcomeUnknown) && !isBadConn(err)
		}},
		{"a write's other error", "INSERT INTO t VALUES (1) RETURNING a", failed, func(err error) bool { return errors.Is(err, failed) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) {
				f := newFakes(t, 1, fakedb.Full)
				db := f.open()
				reply := lines(3)
				reply.CloseErr = tt.closing
				for _, s := range f.servers() {
					s.Reply(tt.text, reply)
				}
				rows, err := db.QueryContext(t.Context(), tt.text)
				if err != nil || !rows.Next() {
					t.Fatal(err)
				}
				if err := rows.Close(); !tt.want(err) {
					t.Errorf("Close: %v", err)
				}
				run(t.Context(), t, db, "INSERT INTO t VALUES (2)")
			})
		})
	}
}

// A read whose context ends amid its rows closes the replica's connection, is no
// fault of the node, and leaves the primary alone.
func TestContextEndsAmidRows(t *testing.T) {
	eachShape(t, func(t *testing.T, shape fakedb.Shape) {
		f := newFakes(t, 1, shape)
		db := f.open(func(c *replicated.Config) { c.BreakerFailures = 1 })
		db.SetMaxOpenConns(1)
		f.everywhere("SELECT n FROM many", lines(100))
		ctx, cancel := context.WithCancel(t.Context())
		rows, err := db.QueryContext(ctx, "SELECT n FROM many")
		if err != nil || !rows.Next() {
			t.Fatal(err)
		}
		cancel()
		synctest.Wait()
		for rows.Next() {
		}
		if err := rows.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want the context's", err)
		}
		_ = rows.Close()
		if n := f.replicas[0].Stats().OpenConns; n != 1 {
			t.Errorf("the replica has %d connections, want the prober's alone", n)
		}
		wantOn(t.Context(), t, db, "replica")
		if n := f.primary.Stats().Connects; n != 1 {
			t.Errorf("the primary was connected to %d times", n)
		}
	})
}

// Rows on a replica do not keep the Conn busy; statements of a sql.Conn may run
// beside them.
func TestRowsOnAReplicaBlockNothing(t *testing.T) {
	eachShape(t, func(t *testing.T, shape fakedb.Shape) {
		f := newFakes(t, 1, shape)
		db := f.open()
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		f.everywhere("SELECT n FROM many", lines(5))
		rows, err := conn.QueryContext(t.Context(), "SELECT n FROM many")
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			run(t.Context(), t, conn, "UPDATE t SET a = 1")
		}
		if err := rows.Err(); err != nil {
			t.Error(err)
		}
		if n := f.primary.Stats().Execs; n != 5 {
			t.Errorf("%d updates beside five rows", n)
		}
	})
}
