package replicated_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// locked is a table that a test holds locked, so that writes to it wait until they
// are ended, or let through.
type locked struct {
	t      *testing.T
	name   string
	admin  *sql.DB
	holder *sql.Conn
}

func lock(t *testing.T, c *replicatedtest.Cluster) *locked {
	t.Helper()
	l := &locked{t: t, name: table(t, c, "id int"), admin: c.Primary().AdminDB(t)}
	// A connection's age proves something once the server is older by two seconds.
	eventually(t, 10*time.Second, func() string {
		var name, uptime string
		if err := l.admin.QueryRowContext(t.Context(), "SHOW GLOBAL STATUS LIKE 'Uptime'").Scan(&name, &uptime); err != nil {
			t.Fatal(err)
		}
		if n, err := strconv.Atoi(uptime); err != nil || n < 3 {
			return "the server is up for " + uptime + " s"
		}
		return ""
	})
	l.holder = mustConn(t, bare(t, c.Primary()))
	mustExec(t, l.holder, "LOCK TABLES "+l.name+" WRITE")
	return l
}

// waiting waits until so many statements with the text in them run on the primary.
func (l *locked) waiting(text string, want int) {
	l.t.Helper()
	eventually(l.t, 10*time.Second, func() string {
		if n := l.running(text); n != want {
			return fmt.Sprintf("%d statements run, want %d", n, want)
		}
		return ""
	})
}

// running counts the statements that run on the primary.
func (l *locked) running(text string) int {
	l.t.Helper()
	return queryInt(l.t, l.admin, "SELECT COUNT(*) FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND info LIKE '%"+text+"%'")
}

// let lets through what waits, and returns how many rows there are in the end.
func (l *locked) let() int {
	l.t.Helper()
	mustExec(l.t, l.holder, "UNLOCK TABLES")
	l.waiting("INTO "+l.name, 0)
	return queryInt(l.t, l.admin, "SELECT COUNT(*) FROM "+replicatedtest.Database+"."+l.name)
}

func mustConn(t *testing.T, db *sql.DB) *sql.Conn {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// A write that a caller gives up has no effect later, however it was sent. Without
// a word to the server it is committed whenever it can be.
//
// Verdict: it is told that the server has ended the write, and no row of it comes
// when the lock is gone; what others have in the same place goes on.
func TestAbandonedWriteHasNoEffectLater(t *testing.T) {
	ways := []struct {
		name string
		run  func(ctx context.Context, conn *sql.Conn, table string) error
	}{
		{name: "text", run: func(ctx context.Context, conn *sql.Conn, table string) error {
			_, err := conn.ExecContext(ctx, "INSERT INTO "+table+" VALUES (1)")
			return err
		}},
		{name: "arguments", run: func(ctx context.Context, conn *sql.Conn, table string) error {
			_, err := conn.ExecContext(ctx, "INSERT INTO "+table+" VALUES (?)", 1)
			return err
		}},
		{name: "prepared", run: func(ctx context.Context, conn *sql.Conn, table string) error {
			stmt, err := conn.PrepareContext(context.WithoutCancel(ctx), "INSERT INTO "+table+" VALUES (?)")
			if err != nil {
				return err
			}
			defer stmt.Close()
			_, err = stmt.ExecContext(ctx, 1)
			return err
		}},
		{name: "transaction", run: func(ctx context.Context, conn *sql.Conn, table string) error {
			tx, err := conn.BeginTx(context.WithoutCancel(ctx), nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }()
			_, err = tx.ExecContext(ctx, "INSERT INTO "+table+" VALUES (1)")
			return err
		}},
		{name: "rows", run: func(ctx context.Context, conn *sql.Conn, table string) error {
			rows, err := conn.QueryContext(ctx, "CALL "+table+"_p()")
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() || rows.NextResultSet() {
			}
			return rows.Err()
		}},
	}
	eachMySQL(t, func(t *testing.T, e replicatedtest.Engine) {
		c := sharedCluster(t, e)
		for _, way := range ways {
			t.Run(way.name, func(t *testing.T) {
				l := lock(t, c)
				procedure := l.name + "_p"
				app := bare(t, c.Primary()) // a definer of another name would keep it from ending what runs
				mustExec(t, app, "DROP PROCEDURE IF EXISTS "+procedure)
				mustExec(t, app, "CREATE PROCEDURE "+procedure+"() BEGIN SELECT 1; INSERT INTO "+l.name+" VALUES (1); END")
				t.Cleanup(func() { _, _ = app.Exec("DROP PROCEDURE " + procedure) })
				db, h := listening(t, c.DSN(ownFloors(t)))
				conn, other := mustConn(t, db), mustConn(t, db)

				ctx, cancel := context.WithCancel(t.Context())
				var given, kept error
				var wg, rest sync.WaitGroup
				wg.Go(func() { given = way.run(ctx, conn, l.name) })
				rest.Go(func() { _, kept = other.ExecContext(t.Context(), "INSERT INTO "+l.name+" VALUES (2)") })
				l.waiting("INTO "+l.name, 2)
				cancel()
				wg.Wait()
				if !errors.Is(given, context.Canceled) {
					t.Errorf("the write ended in %v", given)
				}
				h.hears(t, replicated.NoticeWriteAbandoned)
				if told := h.all(); len(told) != 1 || told[0].Node != c.Primary().Addr() || !strings.Contains(told[0].Err.Error(), "has ended the connection") {
					t.Errorf("told %+v", told)
				}
				if n := l.running("INTO " + l.name); n != 1 {
					t.Errorf("%d writes run when the abandoned one was said to have ended, want 1", n)
				}
				rows := l.let()
				if rest.Wait(); rows != 1 || kept != nil {
					t.Errorf("%d rows, and the other write: %v", rows, kept)
				}
				// The handle is none the worse.
				mustExec(t, db, "INSERT INTO "+l.name+" VALUES (3)")
			})
		}
	})
}

// The end of a program ends contexts and closes the handle. No write is left behind.
func TestCloseWaitsForTheEndOfAbandonedWrites(t *testing.T) {
	const writes = 12
	eachMySQL(t, func(t *testing.T, e replicatedtest.Engine) {
		c := sharedCluster(t, e)
		l := lock(t, c)
		db, h := listening(t, c.DSN(ownFloors(t)))
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range writes {
			wg.Go(func() { _, _ = db.ExecContext(ctx, fmt.Sprintf("INSERT INTO %s VALUES (%d)", l.name, i)) })
		}
		l.waiting("INTO "+l.name, writes)
		cancel()
		wg.Wait()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		if n := l.running("INTO " + l.name); n != 0 {
			t.Errorf("%d writes run after Close", n)
		}
		if n := h.count(replicated.NoticeWriteAbandoned); n != writes {
			t.Errorf("%d writes were told of, want %d", n, writes)
		}
		if rows := l.let(); rows != 0 {
			t.Errorf("%d rows", rows)
		}
	})
}

// Of a server that does not answer, it is told that the write is at large, and
// Close does not wait for it for long.
func TestAbandonedWriteOfAHungServer(t *testing.T) {
	eachMySQL(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: -1})
		l := lock(t, c)
		db, h := listening(t, c.DSN(ownFloors(t)))
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = db.ExecContext(ctx, "INSERT INTO "+l.name+" VALUES (1)") })
		l.waiting("INTO "+l.name, 1)
		if err := c.Primary().Hang(); err != nil {
			t.Fatal(err)
		}
		cancel()
		wg.Wait()
		began := time.Now()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("Close took %v", took)
		}
		if told := h.all(); len(told) != 1 || !strings.Contains(told[0].Err.Error(), "at any later time") {
			t.Errorf("told %+v", told)
		}
		if err := c.Primary().Resume(); err != nil {
			t.Fatal(err)
		}
	})
}
