package replicated_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// A backend that dies in the middle of a transaction takes the transaction with
// it: no later statement of it may run on another connection, where it would be
// committed at once.
func TestTransactionDiesWithItsConnection(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		name := table(t, c, "id int PRIMARY KEY")
		db := open(t, c)
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		insert := func(id int) error {
			_, err := tx.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO %s (id) VALUES (%d)", name, id))
			return err
		}
		if err := insert(1); err != nil {
			t.Fatal(err)
		}
		if err := c.Primary().KillBackend(backendOf(t, c, tx)); err != nil {
			t.Fatal(err)
		}
		for id := 2; id <= 4; id++ {
			if err := insert(id); err == nil {
				t.Errorf("statement %d of a dead transaction ran", id)
			}
		}
		if err := tx.Commit(); err == nil {
			t.Error("a dead transaction was committed")
		}
		if n := queryInt(t, bare(t, c.Primary()), "SELECT count(*) FROM "+name); n != 0 {
			t.Errorf("%d rows of the dead transaction are left", n)
		}
		// The handle is none the worse.
		mustExec(t, db, "INSERT INTO "+name+" (id) VALUES (5)")
	})
}

// backendOf returns the server's number for the connection of a transaction.
func backendOf(t *testing.T, c *replicatedtest.Cluster, tx *sql.Tx) int64 {
	t.Helper()
	query := "SELECT CONNECTION_ID()"
	if c.Engine() == replicatedtest.Postgres {
		query = "SELECT pg_backend_pid()"
	}
	return int64(queryInt(t, tx, query))
}

// An INSERT whose answer is lost has run once, is not repeated, and says that its
// outcome is not known. driver.ErrBadConn in the chain would have database/sql
// run it again.
func TestLostAnswerOfAWrite(t *testing.T) {
	for _, withArgs := range []bool{false, true} {
		t.Run(fmt.Sprintf("args=%v", withArgs), func(t *testing.T) {
			eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
				name := table(t, c, "id int")
				proxy := c.Primary().Proxy(t)
				addrs := []string{proxy.Addr()}
				for _, r := range c.Replicas() {
					addrs = append(addrs, r.Addr())
				}
				db := openDSN(t, c.DSNAt(addrs))
				mustExec(t, db, "DELETE FROM "+name) // opens the primary connection

				var lost <-chan struct{}
				var err error
				if withArgs {
					lost = proxy.SwallowAnswer("INSERT INTO "+name, 1)
					_, err = db.ExecContext(t.Context(), "INSERT INTO "+name+" (id) VALUES ("+placeholder(c.Engine(), 1)+")", 1)
				} else {
					lost = proxy.SwallowAnswer("INSERT INTO "+name, 0)
					_, err = db.ExecContext(t.Context(), "INSERT INTO "+name+" (id) VALUES (1)")
				}
				select {
				case <-lost:
				default:
					t.Error("the proxy lost no answer")
				}
				if !errors.Is(err, replicated.ErrOutcomeUnknown) {
					t.Errorf("error %v, want ErrOutcomeUnknown", err)
				}
				if errors.Is(err, driver.ErrBadConn) {
					t.Errorf("error %v has driver.ErrBadConn in its chain", err)
				}
				eventually(t, 5*time.Second, func() string {
					if n := queryInt(t, bare(t, c.Primary()), "SELECT count(*) FROM "+name); n != 1 {
						return fmt.Sprintf("%d rows after one INSERT", n)
					}
					return ""
				})
				mustExec(t, db, "INSERT INTO "+name+" (id) VALUES (2)")
			})
		})
	}
}

// A commit whose answer is lost is not known to have happened either.
func TestLostAnswerOfACommit(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		name := table(t, c, "id int")
		proxy := c.Primary().Proxy(t)
		db := openDSN(t, c.DSNAt([]string{proxy.Addr()}))
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		mustExec(t, tx, "INSERT INTO "+name+" (id) VALUES (1)")
		lost := proxy.SwallowAnswer("COMMIT", 0)
		err = tx.Commit()
		<-lost
		if !errors.Is(err, replicated.ErrOutcomeUnknown) || errors.Is(err, driver.ErrBadConn) {
			t.Errorf("error %v, want ErrOutcomeUnknown without driver.ErrBadConn", err)
		}
	})
}

// Idle connections that the server has closed cost nothing: the next statement
// looks before it writes, and takes a new one.
func TestWritesAfterIdleConnectionsDied(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		name := table(t, c, "id int")
		db := open(t, c)
		for id := range 20 {
			mustExec(t, db, fmt.Sprintf("INSERT INTO %s (id) VALUES (%d)", name, id))
			if n, err := c.Primary().KillBackends(); err != nil || n == 0 {
				t.Fatalf("killed %d backends: %v", n, err)
			}
		}
		checker := bare(t, c.Primary())
		if n := queryInt(t, checker, "SELECT count(*) FROM "+name); n != 20 {
			t.Errorf("%d rows after 20 writes", n)
		}
		if n := queryInt(t, checker, "SELECT count(DISTINCT id) FROM "+name); n != 20 {
			t.Errorf("%d different rows after 20 writes", n)
		}
	})
}

func TestReadsAfterIdleConnectionsDied(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		name := table(t, c, "id int")
		db := open(t, c)
		c.ResetStatements()
		for range 10 {
			for range 4 {
				queryInt(t, db, "SELECT count(*) FROM "+name)
			}
			for _, r := range c.Replicas() {
				if _, err := r.KillBackends(); err != nil {
					t.Fatal(err)
				}
			}
		}
		onlyReplicas(t, c, "SELECT count(*) FROM "+name)
		for _, n := range stats(t, db).Nodes {
			if n.Breaker != replicated.BreakerClosed {
				t.Errorf("the breaker of %s is %v", n.Name, n.Breaker)
			}
		}
	})
}

// A stopped server holds nobody longer than his context and a second.
func TestHungServerHonoursContexts(t *testing.T) {
	eachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{})
		name := table(t, c, "id int PRIMARY KEY")
		db := open(t, c)
		stmt, err := db.PrepareContext(t.Context(), "INSERT INTO "+name+" (id) VALUES ("+placeholder(e, 1)+")")
		if err != nil {
			t.Fatal(err)
		}
		defer stmt.Close()
		if _, err := stmt.ExecContext(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		mustExec(t, conn, "UPDATE "+name+" SET id = id")
		if err := c.Primary().Hang(); err != nil {
			t.Fatal(err)
		}
		defer c.Primary().Resume() //nolint:errcheck // the cluster is closed next

		for _, tt := range []struct {
			name string
			call func(context.Context) error
		}{
			{"a new connection", func(ctx context.Context) error {
				_, err := db.ExecContext(ctx, "UPDATE "+name+" SET id = id")
				return err
			}},
			{"a statement", func(ctx context.Context) error {
				_, err := conn.ExecContext(ctx, "UPDATE "+name+" SET id = id")
				return err
			}},
			{"a prepared statement", func(ctx context.Context) error {
				_, err := stmt.ExecContext(ctx, 2)
				return err
			}},
			{"begin", func(ctx context.Context) error {
				_, err := db.BeginTx(ctx, nil)
				return err
			}},
			{"ping", db.PingContext},
		} {
			t.Run(tt.name, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				began := time.Now()
				err := tt.call(ctx)
				if took := time.Since(began); took > 1300*time.Millisecond {
					t.Errorf("it took %v", took)
				}
				if err == nil {
					t.Error("it succeeded on a stopped server")
				}
			})
		}
	})
}

// A transaction whose context ends on a stopped server is given up.
func TestHungServerLetsGoOfTransactions(t *testing.T) {
	eachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: -1})
		db := open(t, c)
		db.SetMaxOpenConns(1)
		ctx, cancel := context.WithCancel(t.Context())
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Primary().Hang(); err != nil {
			t.Fatal(err)
		}
		cancel()
		began := time.Now()
		_ = tx.Rollback() // waits for the roll-back that the context has started
		eventually(t, 5*time.Second, func() string {
			if n := db.Stats().InUse; n > 0 {
				return fmt.Sprintf("%d connections still in use", n)
			}
			return ""
		})
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("giving the transaction up took %v", took)
		}
		if err := c.Primary().Resume(); err != nil {
			t.Fatal(err)
		}
		mustExec(t, db, "CREATE TABLE after_hang (id int)")
	})
}

// A hung replica is found by the probe: reads in it fail there and succeed
// elsewhere, without a context of their own.
func TestHungReplicaCostsNoRead(t *testing.T) {
	eachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{})
		name := table(t, c, "id int")
		db := open(t, c)
		for range 20 {
			queryInt(t, db, "SELECT count(*) FROM "+name)
		}
		hung := c.Replicas()[0]
		if err := hung.Hang(); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			began := time.Now()
			queryInt(t, db, "SELECT count(*) FROM "+name)
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("a read took %v", took)
			}
		}
		if err := hung.Resume(); err != nil {
			t.Fatal(err)
		}
		eventually(t, 60*time.Second, func() string {
			for _, n := range stats(t, db).Nodes {
				if n.Breaker != replicated.BreakerClosed {
					return fmt.Sprintf("the breaker of %s is still %v", n.Name, n.Breaker)
				}
			}
			return ""
		})
	})
}

func TestCloseDoesNotWaitForRows(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		name := table(t, c, "id int")
		mustExec(t, bare(t, c.Primary()), "INSERT INTO "+name+" (id) VALUES (1), (2), (3)")
		caughtUp(t, c)
		db, err := sql.Open("replicated", c.DSN())
		if err != nil {
			t.Fatal(err)
		}
		measured(t, c, db)
		rows, err := db.QueryContext(t.Context(), "SELECT id FROM "+name)
		if err != nil {
			t.Fatal(err)
		}
		if !rows.Next() {
			t.Fatal(rows.Err())
		}
		closed := make(chan error, 1)
		go func() { closed <- db.Close() }()
		select {
		case err := <-closed:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(5 * time.Second):
			t.Fatal("Close waits for the rows")
		}
		n := 1
		for rows.Next() {
			n++
		}
		if err := rows.Err(); err != nil || n != 3 {
			t.Errorf("read %d of 3 rows after Close: %v", n, err)
		}
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
		for _, node := range c.Nodes() {
			noConnections(t, node)
		}
	})
}

// noConnections fails the test unless the server soon counts no connection of the
// application's.
func noConnections(t *testing.T, n *replicatedtest.Node) {
	t.Helper()
	eventually(t, 10*time.Second, func() string {
		open, err := n.Connections()
		if err != nil || open > 0 {
			return fmt.Sprintf("%v still has %d connections (%v)", n, open, err)
		}
		return ""
	})
}

// A write that hides in a function takes effect once, on the primary, even where
// replicas would take it: they are not read-only, and the user may bypass that.
func TestHiddenWriteRunsOnceOnThePrimary(t *testing.T) {
	eachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{WritableReplicas: true})
		admin := c.Primary().AdminDB(t)
		mustExec(t, admin, "CREATE TABLE ledger (id int)")
		// The function has a name that the classifier takes for harmless.
		function, call := "", ""
		switch e {
		case replicatedtest.Postgres:
			function = "CREATE FUNCTION similarity(a int, b text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN INSERT INTO ledger VALUES (a); RETURN a; END $$"
			call = "SELECT similarity(%d, 'x')"
		default:
			function = "CREATE FUNCTION hidden_write(a int) RETURNS int MODIFIES SQL DATA BEGIN INSERT INTO ledger VALUES (a); RETURN a; END"
			call = "SELECT hidden_write(%d)"
		}
		mustExec(t, admin, function)
		caughtUp(t, c)
		db := openDSN(t, c.AdminDSN())
		measured(t, c, db)
		c.ResetStatements()
		const calls = 5
		for i := range calls {
			if got := queryInt(t, db, fmt.Sprintf(call, i)); got != i {
				t.Errorf("call %d returned %d", i, got)
			}
		}
		caughtUp(t, c)
		for _, n := range c.Nodes() {
			if got := queryInt(t, n.AdminDB(t), "SELECT count(*) FROM ledger"); got != calls {
				t.Errorf("%v has %d rows after %d calls", n, got, calls)
			}
		}
	})
}

// The fence is the last line: a function that the application calls a reader, and
// that writes all the same, is refused by a replica that would let it, and runs
// once, on the primary.
func TestFenceStopsWhatIsCalledARead(t *testing.T) {
	eachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{WritableReplicas: true})
		admin := c.Primary().AdminDB(t)
		mustExec(t, admin, "CREATE TABLE ledger (id int)")
		function := "CREATE FUNCTION hidden_write(a int) RETURNS int MODIFIES SQL DATA BEGIN INSERT INTO ledger VALUES (a); RETURN a; END"
		if e == replicatedtest.Postgres {
			function = "CREATE FUNCTION hidden_write(a int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN INSERT INTO ledger VALUES (a); RETURN a; END $$"
		}
		mustExec(t, admin, function)
		caughtUp(t, c)
		db := openDSN(t, c.AdminDSN("replicated.read_functions=hidden_write"))
		measured(t, c, db)
		if got := queryInt(t, db, "SELECT hidden_write(7)"); got != 7 {
			t.Errorf("the call returned %d", got)
		}
		if n := stats(t, db).Primary[replicated.ReasonRefused]; n != 1 {
			t.Errorf("%d statements were refused by a replica, want 1", n)
		}
		caughtUp(t, c)
		for _, n := range c.Nodes() {
			if got := queryInt(t, n.AdminDB(t), "SELECT count(*) FROM ledger"); got != 1 {
				t.Errorf("%v has %d rows after one call", n, got)
			}
		}
	})
}

// closedPort returns a loopback address on which nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestUnreachableReplicaDoesNotStopReads(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		name := table(t, c, "id int")
		c.ResetStatements()
		db := openDSN(t, c.DSNAt([]string{c.Primary().Addr(), closedPort(t), c.Replicas()[0].Addr()}, ownFloors(t)))
		measured(t, c, db)
		for range 20 {
			queryInt(t, db, "SELECT count(*) FROM "+name)
		}
		onlyReplicas(t, c, "SELECT count(*) FROM "+name)
	})
}

func TestNoReplicaReachableReadsOnThePrimary(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		name := table(t, c, "id int")
		c.ResetStatements()
		db := openDSN(t, c.DSNAt([]string{c.Primary().Addr(), closedPort(t), closedPort(t)}, ownFloors(t)))
		for range 10 {
			queryInt(t, db, "SELECT count(*) FROM "+name)
		}
		onlyPrimary(t, c, "SELECT count(*) FROM "+name)
	})
}

// What has been proven of replicas stays true when the primary is gone.
func TestDeadPrimaryDoesNotStopReads(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		name := table(t, c, "id int")
		proxy := c.Primary().Proxy(t)
		dead := proxy.Addr()
		addrs := []string{dead, c.Replicas()[0].Addr(), c.Replicas()[1].Addr()}
		db := openDSN(t, c.DSNAt(addrs))
		measured(t, c, db)
		c.ResetStatements()
		proxy.Refuse()
		for range 10 {
			queryInt(t, db, "SELECT count(*) FROM "+name)
		}
		onlyReplicas(t, c, "SELECT count(*) FROM "+name)
		_, err := db.ExecContext(t.Context(), "INSERT INTO "+name+" (id) VALUES (1)")
		var ne *replicated.NodeError
		if !errors.As(err, &ne) || ne.Role != replicated.RolePrimary {
			t.Fatalf("a write on a dead primary: %v, want a NodeError of the primary", err)
		}
		if !strings.Contains(err.Error(), dead) && !strings.Contains(err.Error(), ne.Node) {
			t.Errorf("error %q does not name the node", err)
		}
		if strings.Contains(err.Error(), replicatedtest.AppPassword) {
			t.Error("the error tells the password")
		}
		// That failed write may count for floors; other sessions read on.
		ctx, _ := replicated.WithSession(t.Context())
		if err := db.QueryRowContext(replicated.WithStaleReads(ctx, time.Minute), "SELECT count(*) FROM "+name).Scan(new(int)); err != nil {
			t.Errorf("a read that waives floors: %v", err)
		}
	})
}

// A program that starts while the primary is gone knows nothing of the replicas. It
// reads from them only if it was told to take what there is.
func TestStartWithoutAPrimary(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		name := table(t, c, "id int")
		addrs := []string{closedPort(t), c.Replicas()[0].Addr(), c.Replicas()[1].Addr()}
		db := openDSN(t, c.DSNAt(addrs))
		stale := openDSN(t, c.DSNAt(addrs, "replicated.primary_down=stale"))
		for range 5 {
			if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM "+name).Scan(new(int)); !errors.Is(err, replicated.ErrNotFresh) {
				t.Errorf("error %v, want ErrNotFresh", err)
			}
			queryInt(t, stale, "SELECT 10 + count(*) FROM "+name)
		}
		onlyReplicas(t, c, "SELECT 10")
		if got := stats(t, stale).Replica[replicated.ReasonStale]; got != 5 {
			t.Errorf("%d reads are counted as stale, want 5", got)
		}
	})
}

// While no primary answers, reads go on that replicas are proven to be fresh enough
// for. One that is entitled to more than they are known to have fails rather than
// lie, unless it was configured to.
func TestPrimaryDown(t *testing.T) {
	eachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{})
		name := table(t, c, "id int")
		db := open(t, c, "replicated.max_lag=1m")
		stale := open(t, c, "replicated.max_lag=1m", "replicated.primary_down=stale")
		insert := func(id int) context.Context {
			ctx, session := replicated.WithSession(t.Context())
			if _, err := db.ExecContext(ctx, fmt.Sprintf("INSERT INTO %s (id) VALUES (%d)", name, id)); err != nil {
				t.Fatal(err)
			}
			if !session.Wrote() {
				t.Error("the session does not know that it wrote")
			}
			return ctx
		}
		early := insert(1)
		proven(t, db)
		proven(t, stale)
		pauseReplicas(t, c)
		late := insert(2)
		if err := c.Primary().Kill(); err != nil {
			t.Fatal(err)
		}
		read := func(ctx context.Context, db *sql.DB) (n int, err error) {
			err = db.QueryRowContext(ctx, "SELECT count(*) FROM "+name).Scan(&n)
			return n, err
		}
		if n, err := read(early, db); n != 1 || err != nil {
			t.Errorf("%d rows, of which replicas are proven to have 1: %v", n, err)
		}
		if _, err := read(late, db); !errors.Is(err, replicated.ErrNotFresh) {
			t.Errorf("error %v, want ErrNotFresh", err)
		}
		if n, err := read(late, stale); n != 1 || err != nil {
			t.Errorf("with primary_down=stale: %d rows of the 1 that replicas have: %v", n, err)
		}
		if got := stats(t, stale).Replica[replicated.ReasonStale]; got != 1 {
			t.Errorf("%d reads are counted as stale, want 1", got)
		}
	})
}
