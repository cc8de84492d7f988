package replicated_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lib/pq"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// Faults that users of other libraries have reported, with real servers. See
// reports_faults_test.go.

// By the servers' word: prepared reads run on replicas, on the primary while no replica
// is proven to have what was written, and on replicas again; Tx.Stmt stays in its
// transaction.
func TestReportA20PreparedReadsOnServers(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		name := table(t, c, "id int PRIMARY KEY, a int")
		db := open(t, c)
		query := "SELECT a FROM " + name + " WHERE id = " + placeholder(c.Engine(), 1)
		stmt, err := db.PrepareContext(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		defer stmt.Close()
		run := func(stmt *sql.Stmt, want error) {
			t.Helper()
			for range 100 {
				if err := stmt.QueryRowContext(t.Context(), 1).Scan(new(int)); !errors.Is(err, want) {
					t.Fatalf("error %v, want %v", err, want)
				}
			}
		}
		part := "FROM " + name + " WHERE id"
		c.ResetStatements()
		run(stmt, sql.ErrNoRows)
		onlyReplicas(t, c, part)

		resume := pauseReplicas(t, c)
		mustExec(t, db, "INSERT INTO "+name+" (id, a) VALUES (1, 1)")
		c.ResetStatements()
		run(stmt, nil)
		onlyPrimary(t, c, part)
		resume()
		proven(t, db)
		c.ResetStatements()
		run(stmt, nil)
		onlyReplicas(t, c, part)

		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		mustExec(t, tx, "INSERT INTO "+name+" (id, a) VALUES (2, 2)")
		c.ResetStatements()
		var n int
		if err := tx.StmtContext(t.Context(), stmt).QueryRowContext(t.Context(), 2).Scan(&n); err != nil || n != 2 {
			t.Errorf("the transaction reads %d of its own row: %v", n, err)
		}
		onlyPrimary(t, c, part)
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	})
}

// A replica that cannot be reached costs a bounded time, once, and no read: whether
// nobody listens or nobody answers. So does the last one, whose reads the primary takes.
func TestReportA25UnreachableReplicaOnServers(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		name := table(t, c, "id int")
		query := "SELECT count(*) FROM " + name
		hole := c.Replicas()[0].Proxy(t)
		hole.Stall(replicatedtest.BothWays)
		for kind, addr := range map[string]string{"closed": closedPort(t), "hole": hole.Addr()} {
			t.Run(kind, func(t *testing.T) {
				const timeout = 300 * time.Millisecond
				keys := []string{ownFloors(t), "replicated.connect_timeout=300ms"}
				read := func(db *sql.DB, most time.Duration) {
					t.Helper()
					began := time.Now()
					for range 50 {
						queryInt(t, db, query)
					}
					if took := time.Since(began); took > most {
						t.Errorf("fifty reads took %v, want %v at most", took, most)
					}
				}
				c.ResetStatements()
				db := openDSN(t, c.DSNAt([]string{c.Primary().Addr(), addr, c.Replicas()[1].Addr()}, keys...))
				measured(t, c, db)
				read(db, 3*timeout+5*time.Second)
				onlyReplicas(t, c, query)

				c.ResetStatements()
				db = openDSN(t, c.DSNAt([]string{c.Primary().Addr(), addr}, keys...))
				read(db, 3*timeout+5*time.Second)
				onlyPrimary(t, c, query)
			})
		}
	})
}

// Pure reads, many at a time, open no connection to the primary; those that there are
// belong to the driver's own work. While the primary is down they go on, also in a
// handle that has not met it, if it may read what there is.
func TestReportA26PureReadsOnServers(t *testing.T) {
	eachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{})
		name := table(t, c, "id int")
		query := "SELECT count(*) FROM " + name
		db := open(t, c)
		db.SetMaxIdleConns(20)
		reads := func(db *sql.DB) {
			t.Helper()
			var readers sync.WaitGroup
			for range 20 {
				readers.Go(func() {
					conn, err := db.Conn(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					defer conn.Close()
					for range 10 {
						if err := conn.QueryRowContext(t.Context(), query).Scan(new(int)); err != nil {
							t.Error(err)
						}
					}
				})
			}
			readers.Wait()
		}
		c.ResetStatements()
		reads(db)
		onlyReplicas(t, c, query)
		const own = 2 // asks for positions; reads the catalog now and then
		if n, err := c.Primary().Connections(); err != nil || n > own {
			t.Errorf("pure reads have opened %d connections to the primary (%v)", n, err)
		}
		mustExec(t, db, "INSERT INTO "+name+" (id) VALUES (1)")
		if n, err := c.Primary().Connections(); err != nil || n > own+1 {
			t.Errorf("one write has left %d connections to the primary (%v)", n, err)
		}
		proven(t, db)

		if err := c.Primary().Kill(); err != nil {
			t.Fatal(err)
		}
		reads(db)
		late := openDSN(t, c.DSN(ownFloors(t)+"_late", "replicated.primary_down=stale"))
		reads(late)
	})
}

// What a standby answers to a read whose rows replication has to remove.
func TestReportA27ConflictWithRecoveryOnServers(t *testing.T) {
	c := replicatedtest.Start(t, replicatedtest.Postgres, replicatedtest.Options{
		Replicas: 1,
		Settings: map[string]string{
			"autovacuum": "off", "hot_standby_feedback": "off", "max_standby_streaming_delay": "0", "max_standby_archive_delay": "0",
		},
	})
	name, million := wide(t, c)
	victim := "victims"
	mustExec(t, bare(t, c.Primary()), "CREATE TABLE "+victim+" (id int PRIMARY KEY)")
	remove := func() {
		db := bare(t, c.Primary())
		mustExec(t, db, "INSERT INTO "+victim+" SELECT generate_series(1, 1000)")
		mustExec(t, db, "DELETE FROM "+victim)
		mustExec(t, db, "VACUUM "+victim)
		mustExec(t, db, "INSERT INTO "+victim+" VALUES (0)") // a commit, with which all of that is flushed and sent
	}
	remove()
	caughtUp(t, c)
	db := open(t, c, "replicated.breaker_failures=1", "replicated.max_lag=1m")

	// Before the first row: the primary runs it.
	slow := fmt.Sprintf("SELECT count(*) FROM %s a CROSS JOIN %[1]s b CROSS JOIN generate_series(1, 30) slow", name)
	c.ResetStatements()
	got := make(chan error, 1)
	go func() { got <- db.QueryRowContext(t.Context(), slow).Scan(new(int)) }()
	eventually(t, 5*time.Second, func() string {
		if len(ranOn(c, ") slow")) == 0 {
			return "the read has not begun"
		}
		return ""
	})
	if err := removing(remove, got); err != nil {
		t.Errorf("the conflict reached the application: %v", err)
	}
	if n := stats(t, db).Primary[replicated.ReasonConflict]; n != 1 {
		t.Errorf("%d reads were sent to the primary for a conflict, want 1", n)
	}

	// Amid the rows: the application is told, with the server's own error, and nothing
	// is run again.
	proven(t, db)
	rows, err := db.QueryContext(t.Context(), million)
	if err != nil || !rows.Next() {
		t.Fatal(err, rows.Err())
	}
	c.ResetStatements()
	go func() { got <- toTheEnd(rows) }()
	err = removing(remove, got)
	var pe *pq.Error
	if !errors.As(err, &pe) || pe.Code != "40001" {
		t.Errorf("error %v, want the server's 40001", err)
	}
	if got := ranOn(c, "a CROSS JOIN"); slices.Contains(got, c.Primary().Name()) {
		t.Error("it was run again")
	}
	for _, n := range stats(t, db).Nodes[1:] {
		if n.Breaker != replicated.BreakerClosed {
			t.Errorf("the breaker of %s is %v", n.Name, n.Breaker)
		}
	}
}

// removing has rows removed until a read has ended. Once need not do: a snapshot on the
// primary may keep them.
func removing(remove func(), got <-chan error) error {
	for {
		remove()
		select {
		case err := <-got:
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// What the drivers make of a caller that goes away is no failure of the node: lib/pq
// has the server cancel and reports its 57014, go-sql-driver closes the socket.
func TestReportA33CancelledReadsOnServers(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		db := open(t, c, "replicated.breaker_failures=1")
		sleep := "SELECT sleep(5)"
		if c.Engine() == replicatedtest.Postgres {
			sleep = "SELECT pg_sleep(5)"
		}
		stmt, err := db.PrepareContext(t.Context(), strings.Replace(sleep, "5", placeholder(c.Engine(), 1), 1))
		if err != nil {
			t.Fatal(err)
		}
		defer stmt.Close()
		c.ResetStatements()
		for i := range 60 {
			ctx, cancel := context.WithCancel(t.Context())
			if i%2 == 0 {
				ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
			} else {
				time.AfterFunc(20*time.Millisecond, cancel)
			}
			var err error
			if i%4 < 2 {
				err = db.QueryRowContext(ctx, sleep).Scan(new(any))
			} else {
				err = stmt.QueryRowContext(ctx, 5).Scan(new(any))
			}
			if err == nil {
				t.Error("a read whose caller has gone away has succeeded")
			}
			cancel()
		}
		if got := ranOn(c, "sleep("); len(got) == 0 || slices.Contains(got, c.Primary().Name()) {
			t.Errorf("the reads ran on %v, want replicas alone", got)
		}
		for _, n := range stats(t, db).Nodes[1:] {
			if n.Breaker != replicated.BreakerClosed || n.TurnedAway || n.InFlight != 0 {
				t.Errorf("%+v", n)
			}
		}
		if got := fmt.Sprint(stats(t, db).Primary); strings.Contains(got, "no-replica") {
			t.Errorf("reads on the primary by reason: %v", got)
		}
	})
}
