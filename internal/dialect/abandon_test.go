package dialect_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/dialect"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// eachMySQL runs a test on a cluster of MySQL and one of MariaDB with one replica.
func eachMySQL(t *testing.T, test func(t *testing.T, c *replicatedtest.Cluster, d *dialect.Dialect)) {
	for _, e := range []replicatedtest.Engine{replicatedtest.MariaDB, replicatedtest.MySQL} {
		t.Run(e.String(), func(t *testing.T) {
			c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1, NoStatementLog: true})
			test(t, c, dialect.For(engines[e]))
		})
	}
}

// settled waits until the server is old enough to prove that it was not restarted.
func settled(t *testing.T, conn driver.Conn) {
	t.Helper()
	soon(t, func() string {
		row, err := dialect.QueryRow(testContext(t), conn, "SHOW GLOBAL STATUS LIKE 'Uptime'", 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(row[1]) == 1 && row[1] < "3" {
			return "up for " + row[1] + " s"
		}
		return ""
	})
}

// soon waits until nothing is complained of.
func soon(t *testing.T, complaint func() string) {
	t.Helper()
	ctx := testContext(t)
	for {
		last := complaint()
		if last == "" {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal(last)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// running waits until the server runs a text on the connection.
func running(t *testing.T, admin driver.Conn, id int64, part string) {
	t.Helper()
	query := fmt.Sprintf("SELECT COUNT(*) FROM information_schema.processlist WHERE id = %d AND info LIKE '%%%s%%'", id, part)
	soon(t, func() string {
		if ask(t, admin, query) != "1" {
			return "the statement does not run"
		}
		return ""
	})
}

func TestAbandonEndsAWriteWhoseCallerIsGone(t *testing.T) {
	eachMySQL(t, func(t *testing.T, c *replicatedtest.Cluster, d *dialect.Dialect) {
		n := c.Primary()
		admin := open(t, c.DriverName(), n.AdminDSN())
		settled(t, admin)
		mustRun(t, admin, "USE "+replicatedtest.Database, "CREATE TABLE a (n int) ENGINE=InnoDB", "CREATE TABLE locked (n int) ENGINE=InnoDB")
		lost := open(t, c.DriverName(), n.DSN())
		opened := time.Now()
		id := identify(t, d, lost)
		// It would wait for ever, so that its end can only be the kill's.
		mustRun(t, admin, "LOCK TABLES locked WRITE, a READ")
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() { gone <- run(ctx, lost, "INSERT INTO a SELECT n FROM locked") }()
		watcher := open(t, c.DriverName(), n.AdminDSN())
		running(t, watcher, id.BackendPID, "INSERT INTO a SELECT")
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Fatalf("the statement ended in %v", err)
		}
		running(t, watcher, id.BackendPID, "INSERT INTO a SELECT") // nobody has told the server

		killer := open(t, c.DriverName(), n.DSN())
		killed, err := d.Abandon(testContext(t), killer, id, time.Since(opened))
		if !killed || err != nil {
			t.Fatalf("Abandon: %v, %v", killed, err)
		}
		if left := ask(t, watcher, fmt.Sprintf("SELECT COUNT(*) FROM information_schema.processlist WHERE id = %d", id.BackendPID)); left != "0" {
			t.Error("Abandon has returned before the connection was gone")
		}
		mustRun(t, admin, "INSERT INTO locked VALUES (1)", "UNLOCK TABLES")
		if rows := ask(t, watcher, "SELECT COUNT(*) FROM "+replicatedtest.Database+".a"); rows != "0" {
			t.Errorf("the statement has left %s rows", rows)
		}
		// Once more: it is gone already.
		if killed, err := d.Abandon(testContext(t), killer, id, time.Since(opened)); killed || err != nil {
			t.Errorf("Abandon of what has ended: %v, %v", killed, err)
		}
		if _, err := d.Identify(testContext(t), killer); err != nil {
			t.Errorf("the killing connection: %v", err)
		}
	})
}

// A number of another server's connection, or of an earlier life of the server, is
// somebody else's.
func TestAbandonSendsNothingToAnotherServer(t *testing.T) {
	eachMySQL(t, func(t *testing.T, c *replicatedtest.Cluster, d *dialect.Dialect) {
		primary, replica := open(t, c.DriverName(), c.Primary().DSN()), open(t, c.DriverName(), c.Replicas()[0].DSN())
		settled(t, primary)
		settled(t, replica)
		victim, other := open(t, c.DriverName(), c.Primary().DSN()), open(t, c.DriverName(), c.Replicas()[0].DSN())
		id := identify(t, d, victim)
		id.BackendPID = identify(t, d, other).BackendPID
		if killed, err := d.Abandon(testContext(t), replica, id, 0); killed || err == nil {
			t.Errorf("on another server: %v, %v", killed, err)
		}
		// By whichever server answers: a proxy may send each statement to another one.
		if err := run(testContext(t), replica, dialect.KillText(id)); !isNumber(err, 1094) {
			t.Errorf("the text itself, on another server: %v", err)
		}
		id = identify(t, d, victim)
		if killed, err := d.Abandon(testContext(t), primary, id, 24*time.Hour); killed || err == nil {
			t.Errorf("after a restart: %v, %v", killed, err)
		}
		identify(t, d, victim)
		identify(t, d, other)
	})
}

func isNumber(err error, number uint16) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && e.Number == number
}

// asked is a server that answers by hand; the others of the connection's methods
// are not there.
type asked struct {
	canned
	kills   []error // what it answers to KILL, in turn; then the last one again
	killers []string
}

func (c *asked) ExecContext(_ context.Context, text string, _ []driver.NamedValue) (driver.Result, error) {
	c.killers = append(c.killers, strings.TrimPrefix(text, "/* replicated */ "))
	err := c.kills[0]
	if len(c.kills) > 1 {
		c.kills = c.kills[1:]
	}
	return driver.RowsAffected(0), err
}

func TestAbandonByWhatTheServerSays(t *testing.T) {
	gone := &mysql.MySQLError{Number: 1094}
	denied := &mysql.MySQLError{Number: 1095}
	const kill = "KILL CONNECTION IF(@@server_uuid = X'31313131313131312d313131312d313131312d313131312d313131313131313131313131', 5, 0)"
	if !strings.Contains(kill, fmt.Sprintf("X'%x'", uuid)) {
		t.Fatal("the test's own text")
	}
	tests := []struct {
		name    string
		kind    classify.Dialect
		id      dialect.Identity
		uptime  string
		elapsed time.Duration
		kills   []error
		killed  bool
		err     error // nil: none; anyError: some
		sent    int
	}{
		{name: "ended already", id: dialect.Identity{Server: uuid, BackendPID: 5}, uptime: "100", kills: []error{gone}, sent: 1},
		{name: "ends at once", id: dialect.Identity{Server: uuid, BackendPID: 5}, uptime: "100", kills: []error{nil, gone}, killed: true, sent: 2},
		{name: "ends later", id: dialect.Identity{Server: uuid, BackendPID: 5}, uptime: "100", kills: []error{nil, nil, nil, nil, gone}, killed: true, sent: 5},
		{name: "in a trigger, then in its own text", id: dialect.Identity{Server: uuid, BackendPID: 5}, uptime: "100", kills: []error{denied, denied, nil, gone}, killed: true, sent: 4},
		{name: "in a trigger, then ended", id: dialect.Identity{Server: uuid, BackendPID: 5}, uptime: "100", kills: []error{denied, gone}, sent: 2},
		{name: "in a procedure", id: dialect.Identity{Server: uuid, BackendPID: 5}, uptime: "100", kills: []error{denied}, err: denied, sent: -1},
		{name: "another error", id: dialect.Identity{Server: uuid, BackendPID: 5}, uptime: "100", kills: []error{driver.ErrBadConn}, err: driver.ErrBadConn, sent: 1},
		{name: "never seen to end", id: dialect.Identity{Server: uuid, BackendPID: 5}, uptime: "100", kills: []error{nil}, err: context.DeadlineExceeded, sent: -1},
		{name: "older than the connection", id: dialect.Identity{Server: uuid, BackendPID: 5}, uptime: "12", elapsed: 10900 * time.Millisecond, kills: []error{gone}, sent: 1},
		{name: "perhaps restarted", id: dialect.Identity{Server: uuid, BackendPID: 5}, uptime: "11", elapsed: 10 * time.Second, err: anyError},
		{name: "restarted", id: dialect.Identity{Server: uuid, BackendPID: 5}, uptime: "3", elapsed: time.Hour, err: anyError},
		{name: "another server", id: dialect.Identity{Server: otherUUID, BackendPID: 5}, uptime: "100", err: anyError},
		{name: "no number", id: dialect.Identity{Server: uuid}, uptime: "100", err: anyError},
		{name: "no server", id: dialect.Identity{BackendPID: 5}, uptime: "100", err: anyError},
		{name: "PostgreSQL", kind: classify.Postgres, id: dialect.Identity{Server: uuid, BackendPID: 5}, uptime: "100", err: anyError},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			conn := &asked{kills: tt.kills}
			conn.answers = []answer{
				server{version: "8.4.2", mode: "ON"}.identity(),
				{part: "SHOW GLOBAL STATUS LIKE 'Uptime'", row: []driver.Value{"Uptime", tt.uptime}},
			}
			if tt.kind == classify.Generic {
				tt.kind = classify.MySQL
			}
			ctx := testContext(t)
			if tt.sent < 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 50*time.Millisecond)
				defer cancel()
			}
			killed, err := dialect.For(tt.kind).Abandon(ctx, conn, tt.id, tt.elapsed)
			if killed != tt.killed || (err == nil) != (tt.err == nil) || err != nil && tt.err != anyError && !errors.Is(err, tt.err) {
				t.Errorf("Abandon: %v, %v; want %v, %v", killed, err, tt.killed, tt.err)
			}
			if tt.sent >= 0 && len(conn.killers) != tt.sent || slices.ContainsFunc(conn.killers, func(s string) bool { return s != kill }) {
				t.Errorf("sent %q, want %d times %q", conn.killers, tt.sent, kill)
			}
		})
	}
}

var anyError = errors.New("any")

func TestAbandons(t *testing.T) {
	for kind, want := range map[classify.Dialect]bool{
		classify.MySQL: true, classify.MariaDB: true, classify.AnyMySQL: true, classify.Postgres: false, classify.Generic: false,
	} {
		if got := dialect.For(kind).Abandons(); got != want {
			t.Errorf("%v: Abandons() = %v", kind, got)
		}
	}
}
