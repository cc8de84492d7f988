package replicated_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// stressFor is how long one engine is under stress: what REPLICATED_SOAK says, or
// a minute where the tests have to be thorough, or a few seconds.
func stressFor(t *testing.T) time.Duration {
	t.Helper()
	if s := os.Getenv("REPLICATED_SOAK"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatalf("REPLICATED_SOAK: %v", err)
		}
		return d
	}
	if os.Getenv("CI") != "" {
		return 20 * time.Second
	}
	return 5 * time.Second
}

// Sixty-four goroutines do everything at once on one handle, with contexts that
// end at random: transactions, early closing, nested reads, prepared statements,
// session state. Nothing of it is left afterwards, by the servers' own counts,
// and each acknowledged write is there once.
//
// The servers are under stress side by side: that is the more of it for each.
func TestStress(t *testing.T) {
	noGoroutineLeak(t)
	eachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		t.Parallel()
		c := replicatedtest.Start(t, e, replicatedtest.Options{NoStatementLog: true})
		s := newStress(t, c)
		s.run(t, 64, stressFor(t))
		s.finish(t)
	})
}

type stress struct {
	cluster  *replicatedtest.Cluster
	db       *sql.DB
	read     *sql.Stmt
	insert   *sql.Stmt
	nextID   atomic.Int64
	done     [4]atomic.Int64 // by kind: reads, writes, transactions, cancelled
	acked    sync.Map        // ids of acknowledged writes
	unknown  sync.Map        // ids of writes of which it is not known
	problems atomic.Int64
}

const stressIdle = 4

func newStress(t *testing.T, c *replicatedtest.Cluster) *stress {
	t.Helper()
	mustExec(t, bare(t, c.Primary()), "CREATE TABLE stress (id bigint PRIMARY KEY, v int)")
	caughtUp(t, c)
	db, err := sql.Open("replicated", c.DSN(fmt.Sprintf("replicated.replica_max_idle=%d", stressIdle)))
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(48)
	db.SetMaxIdleConns(24)
	s := &stress{cluster: c, db: db}
	p1, p2 := placeholder(c.Engine(), 1), placeholder(c.Engine(), 2)
	for query, stmt := range map[string]**sql.Stmt{
		"SELECT id FROM stress WHERE id >= " + p1 + " ORDER BY id LIMIT 5": &s.read,
		"INSERT INTO stress (id, v) VALUES (" + p1 + ", " + p2 + ")":       &s.insert,
	} {
		if *stmt, err = db.PrepareContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *stress) run(t *testing.T, goroutines int, d time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for ctx.Err() == nil {
				s.step(t)
			}
		})
	}
	wg.Go(func() { s.watchPools(t, ctx) })
	wg.Wait()
	t.Logf("%d reads, %d writes, %d transactions, %d cancelled", s.done[0].Load(), s.done[1].Load(), s.done[2].Load(), s.done[3].Load())
	served := stats(t, s.db).Replica[replicated.ReasonRead]
	t.Logf("replicas served %d reads", served)
	if served == 0 {
		t.Error("no read was served by a replica, so that half of it was not under stress")
	}
}

// watchPools looks whether replicas have more connections than there are reads in
// flight and idle ones allowed. The three figures are not of one moment: those
// that are just being opened or closed are allowed for.
func (s *stress) watchPools(t *testing.T, ctx context.Context) {
	cluster, err := replicated.ClusterOf(t.Context(), s.db)
	if err != nil {
		t.Error(err)
		return
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	const underWay = 16
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			before, at, after := cluster.Stats(), cluster.Stats(), cluster.Stats()
			for i := range at.Nodes[1:] {
				n := at.Nodes[1+i]
				flying := max(before.Nodes[1+i].InFlight, n.InFlight, after.Nodes[1+i].InFlight)
				if int64(n.Open) > flying+stressIdle+underWay {
					s.complain(t, "replica %s has %d connections for %d reads in flight", n.Name, n.Open, flying)
				}
			}
		}
	}
}

func (s *stress) complain(t *testing.T, format string, args ...any) {
	if s.problems.Add(1) <= 10 {
		t.Errorf(format, args...)
	}
}

// step does one thing, with a context that ends early one time in four, and mostly
// in a session of its own: what the others write does not keep its reads off the
// replicas.
func (s *stress) step(t *testing.T) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	defer cancel()
	if rand.IntN(64) > 0 {
		ctx, _ = replicated.WithSession(ctx)
	}
	if rand.IntN(4) == 0 {
		defer time.AfterFunc(time.Duration(rand.Int64N(int64(4*time.Millisecond))), cancel).Stop()
	}
	steps := []func(context.Context) error{
		s.plainRead, s.plainRead, s.argRead, s.argRead, s.preparedRead, s.preparedRead,
		s.earlyClose, s.nestedRead, s.write, s.preparedWrite, s.tx, s.readOnlyTx, s.sessionState, s.lockingRead,
	}
	err := steps[rand.IntN(len(steps))](ctx)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		s.done[3].Add(1)
	default:
		s.complain(t, "%v", err)
	}
}

func (s *stress) p(n int) string { return placeholder(s.cluster.Engine(), n) }

func (s *stress) plainRead(ctx context.Context) error {
	s.done[0].Add(1)
	var n int
	return s.db.QueryRowContext(ctx, "SELECT count(*) FROM stress WHERE id < 100").Scan(&n)
}

func (s *stress) argRead(ctx context.Context) error {
	s.done[0].Add(1)
	var n int
	return s.db.QueryRowContext(ctx, "SELECT count(*) FROM stress WHERE id < "+s.p(1), rand.IntN(200)).Scan(&n)
}

func (s *stress) preparedRead(ctx context.Context) error {
	s.done[0].Add(1)
	rows, err := s.read.QueryContext(ctx, rand.IntN(200))
	return drain(rows, err, -1)
}

func (s *stress) earlyClose(ctx context.Context) error {
	s.done[0].Add(1)
	rows, err := s.db.QueryContext(ctx, "SELECT id FROM stress ORDER BY id LIMIT 100")
	return drain(rows, err, rand.IntN(3))
}

// drain reads up to so many rows, all if that is negative.
func drain(rows *sql.Rows, err error, most int) error {
	if err != nil {
		return err
	}
	for n := 0; n != most && rows.Next(); n++ {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

func (s *stress) nestedRead(ctx context.Context) error {
	s.done[0].Add(1)
	rows, err := s.db.QueryContext(ctx, "SELECT id FROM stress ORDER BY id LIMIT 3")
	if err != nil {
		return err
	}
	for rows.Next() {
		// The pool of database/sql is bounded: an inner read that waited for a
		// connection of its own while all outer ones hold theirs would never end.
		inner, cancel := context.WithTimeout(ctx, time.Second)
		err := s.plainRead(inner)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// wrote keeps the books on a write.
func (s *stress) wrote(id int64, err error) error {
	s.done[1].Add(1)
	if err == nil {
		s.acked.Store(id, true)
		return nil
	}
	s.unknown.Store(id, true)
	return err
}

func (s *stress) write(ctx context.Context) error {
	id := s.nextID.Add(1)
	_, err := s.db.ExecContext(ctx, "INSERT INTO stress (id, v) VALUES ("+s.p(1)+", 0)", id)
	return s.wrote(id, err)
}

func (s *stress) preparedWrite(ctx context.Context) error {
	id := s.nextID.Add(1)
	_, err := s.insert.ExecContext(ctx, id, 0)
	return s.wrote(id, err)
}

func (s *stress) tx(ctx context.Context) error {
	s.done[2].Add(1)
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it has nothing to do
	id := s.nextID.Add(1)
	if _, err := tx.StmtContext(ctx, s.insert).ExecContext(ctx, id, 1); err != nil {
		return err
	}
	var v int
	if err := tx.QueryRowContext(ctx, fmt.Sprintf("SELECT v FROM stress WHERE id = %d", id)).Scan(&v); err != nil {
		return err
	}
	if rand.IntN(3) == 0 {
		return tx.Rollback()
	}
	return s.wrote(id, tx.Commit())
}

func (s *stress) readOnlyTx(ctx context.Context) error {
	s.done[2].Add(1)
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it has nothing to do
	var n int
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM stress WHERE id < 50").Scan(&n); err != nil {
		return err
	}
	rows, err := tx.StmtContext(ctx, s.read).QueryContext(ctx, 7)
	if err := drain(rows, err, -1); err != nil {
		return err
	}
	return tx.Commit()
}

func (s *stress) sessionState(ctx context.Context) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	set, zone := "SET TIME ZONE 'Asia/Tokyo'", "SELECT current_setting('TimeZone')"
	want := "Asia/Tokyo"
	if s.cluster.Engine() != replicatedtest.Postgres {
		set, zone, want = "SET time_zone = '+09:00'", "SELECT @@session.time_zone", "+09:00"
	}
	if _, err := conn.ExecContext(ctx, set); err != nil {
		return err
	}
	var got string
	if err := conn.QueryRowContext(ctx, zone).Scan(&got); err != nil {
		return err
	}
	if !strings.EqualFold(got, want) {
		return fmt.Errorf("after %s the time zone is %q", set, got)
	}
	return nil
}

func (s *stress) lockingRead(ctx context.Context) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // ends it
	rows, err := tx.QueryContext(ctx, fmt.Sprintf("SELECT id FROM stress WHERE id = %d FOR UPDATE", rand.IntN(1000)))
	return drain(rows, err, -1)
}

// finish closes all and looks what is left.
func (s *stress) finish(t *testing.T) {
	for _, stmt := range []*sql.Stmt{s.read, s.insert} {
		if err := stmt.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, n := range s.cluster.Nodes() {
		s.noStatements(t, n)
	}
	if err := s.db.Close(); err != nil {
		t.Error(err)
	}
	for _, n := range s.cluster.Nodes() {
		noConnections(t, n)
	}
	s.checkRows(t)
}

// noStatements fails the test unless the server soon counts no prepared statement.
// PostgreSQL shows them to their own session only.
func (s *stress) noStatements(t *testing.T, n *replicatedtest.Node) {
	if s.cluster.Engine() == replicatedtest.Postgres {
		return
	}
	db := n.AdminDB(t)
	eventually(t, 10*time.Second, func() string {
		var name string
		var count int
		if err := db.QueryRowContext(t.Context(), "SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'").Scan(&name, &count); err != nil || count > 0 {
			return fmt.Sprintf("%v still has %d prepared statements (%v)", n, count, err)
		}
		return ""
	})
}

func (s *stress) checkRows(t *testing.T) {
	rows, err := bare(t, s.cluster.Primary()).QueryContext(t.Context(), "SELECT id FROM stress")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	present := make(map[int64]bool)
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		present[id] = true
		_, acked := s.acked.Load(id)
		_, unknown := s.unknown.Load(id)
		if !acked && !unknown {
			s.complain(t, "row %d is there, of a transaction that was rolled back", id)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	s.acked.Range(func(id, _ any) bool {
		if !present[id.(int64)] {
			s.complain(t, "row %d was acknowledged and is not there", id)
		}
		return true
	})
}
