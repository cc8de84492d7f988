package replicated_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"
	"github.com/sqlreplicated/replicated/internal/faketime"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

const (
	cancellations = 5_000 // on each engine
	cancellers    = 12    // more of them would leave no time for anything but dials
)

// Ten thousand callers, half of them of each engine, go away at random moments: before, while and after a
// connection is opened, the statement is sent, it runs, its rows are read. A single
// failure would open a breaker here. The connections to the primary that the pool of
// database/sql holds are nobody's business: each is there afterwards, as it was.
func TestTenThousandCancellations(t *testing.T) {
	noGoroutineLeak(t)
	for _, e := range []replicatedtest.Engine{replicatedtest.Postgres, replicatedtest.MariaDB} {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			c := replicatedtest.Start(t, e, replicatedtest.Options{NoStatementLog: true, Settings: map[string]string{"max_connections": "500"}})
			k := newCancelling(t, c)
			before := k.backends(t)
			proven(t, k.db) // and so reads run on replicas
			k.run(t)
			k.finish(t, before)
		})
	}
}

// cancelling is a handle whose callers go away.
type cancelling struct {
	cluster *replicatedtest.Cluster
	db      *sql.DB
	table   string
	reads   []func(context.Context) error

	started, cancelled atomic.Int64
	onPrimary          atomic.Int64 // statements that failed there
	served             atomic.Int64 // reads that replicas answered

	mu      sync.Mutex
	strange []string // what was told of, and should not have been
}

func newCancelling(t *testing.T, c *replicatedtest.Cluster) *cancelling {
	t.Helper()
	k := &cancelling{cluster: c}
	name, million := wide(t, c)
	k.table = name
	cfg, err := replicated.ParseDSN(c.DSN("replicated.breaker_failures=1", "replicated.max_lag=1m", ownFloors(t)))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Observe = &replicated.Observer{
		Routed: func(e replicated.RouteEvent) {
			switch {
			case e.Err == nil && e.Role == replicated.RoleReplica:
				k.served.Add(1)
			case e.Err != nil && e.Role == replicated.RolePrimary:
				k.onPrimary.Add(1)
			}
		},
		NodeState: func(e replicated.NodeStateEvent) { k.complain("the breaker of %s is %v: %v", e.Node, e.State, e.Err) },
		Notice:    func(n replicated.Notice) { k.complain("%v of %q: %v", n.Kind, n.Node, n.Err) },
	}
	connector, err := replicated.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	k.db = sql.OpenDB(connector)
	k.db.SetMaxOpenConns(cancellers)
	k.db.SetMaxIdleConns(cancellers)
	measured(t, c, k.db)

	sleep := "SELECT sleep(0.01)"
	if c.Engine() == replicatedtest.Postgres {
		sleep = "SELECT pg_sleep(0.01)"
	}
	one := "SELECT n FROM " + name + " WHERE id = "
	stmt, err := k.db.PrepareContext(t.Context(), one+placeholder(c.Engine(), 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stmt.Close() })
	k.reads = []func(context.Context) error{
		func(ctx context.Context) error { return k.db.QueryRowContext(ctx, one+"7").Scan(new(int)) },
		func(ctx context.Context) error {
			return k.db.QueryRowContext(ctx, one+placeholder(c.Engine(), 1), 7).Scan(new(int))
		},
		func(ctx context.Context) error { return k.db.QueryRowContext(ctx, sleep).Scan(new(any)) },
		func(ctx context.Context) error { return stmt.QueryRowContext(ctx, 7).Scan(new(int)) },
		func(ctx context.Context) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			rows, err := k.db.QueryContext(ctx, million)
			if err != nil {
				return err
			}
			defer rows.Close()
			for range rand.IntN(2000) {
				if !rows.Next() {
					return rows.Err()
				}
			}
			cancel() // amid rows, however much time there was
			return nil
		},
		k.onConn(sleep),
		k.inTransaction(one + "7"),
	}
	return k
}

// onConn reads twice on one connection.
func (k *cancelling) onConn(query string) func(context.Context) error {
	return func(ctx context.Context) error {
		conn, err := k.db.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		for range 2 {
			if err := conn.QueryRowContext(ctx, query).Scan(new(any)); err != nil {
				return err
			}
		}
		return nil
	}
}

// inTransaction reads in a transaction that runs on a replica.
func (k *cancelling) inTransaction(query string) func(context.Context) error {
	return func(ctx context.Context) error {
		tx, err := k.db.BeginTx(ctx, readOnlyTx)
		if err != nil {
			return err
		}
		defer tx.Rollback() //nolint:errcheck // over already, mostly
		if err := tx.QueryRowContext(ctx, query).Scan(new(int)); err != nil {
			return err
		}
		return tx.Commit()
	}
}

func (k *cancelling) complain(format string, args ...any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.strange) < 10 {
		k.strange = append(k.strange, fmt.Sprintf(format, args...))
	}
}

// run reads until so many callers have gone away before they had their answer.
func (k *cancelling) run(t *testing.T) {
	began := time.Now()
	var callers sync.WaitGroup
	for range cancellers {
		callers.Go(func() {
			for k.cancelled.Load() < cancellations {
				k.one(t.Context())
			}
		})
	}
	callers.Wait()
	t.Logf("%d reads, of which %d were cancelled and replicas answered %d, took %v", k.started.Load(), k.cancelled.Load(), k.served.Load(), time.Since(began))
}

// one reads once, in one of the ways to read and with one of the ways to go away, or
// with the time that it takes.
func (k *cancelling) one(ctx context.Context) {
	after := time.Duration(rand.Int64N(int64(20 * time.Millisecond)))
	var cancel context.CancelFunc
	switch rand.IntN(5) {
	case 0, 1:
		ctx, cancel = context.WithTimeout(ctx, after)
	case 2, 3:
		ctx, cancel = context.WithCancel(ctx)
		defer time.AfterFunc(after, cancel).Stop()
	default:
		ctx, cancel = context.WithCancel(ctx)
	}
	defer cancel()
	k.started.Add(1)
	switch err := k.reads[rand.IntN(len(k.reads))](ctx); {
	case err == nil:
	case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded): // a dial may know before its context
		k.cancelled.Add(1)
	default:
		k.complain("a read whose context has not ended: %v", err)
	}
}

// backends has every connection of the pool open its connection to the primary, and
// returns the server's numbers for these.
func (k *cancelling) backends(t *testing.T) map[int]bool {
	t.Helper()
	ids := make(map[int]bool)
	for range cancellers {
		conn, err := k.db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		mustExec(t, conn, "UPDATE "+k.table+" SET n = n + 1 WHERE id = 7")
		ids[backend(t, k.cluster, conn)] = true
	}
	return ids
}

func (k *cancelling) finish(t *testing.T, before map[int]bool) {
	t.Helper()
	for _, s := range k.strange {
		t.Error(s)
	}
	lost := 0
	after := k.backends(t)
	for id := range before {
		if !after[id] {
			lost++
		}
	}
	if most := int(k.onPrimary.Load()); lost > most || len(before) != cancellers {
		t.Errorf("%d of %d connections to the primary are gone; %d of its statements were cancelled", lost, len(before), most)
	}
	if n := k.served.Load(); n < cancellations/10 {
		t.Errorf("replicas have answered %d reads: it was not them that was under stress", n)
	}
	for _, n := range stats(t, k.db).Nodes[1:] {
		if n.Breaker != replicated.BreakerClosed || n.InFlight != 0 || n.TurnedAway {
			t.Errorf("%s: %+v", n.Name, n)
		}
	}
	// By the servers' count: the idle ones, and on the primary those of the pool.
	const idle = 8 + 2 // replicated.replica_max_idle, and what is being opened to ask
	for i, n := range k.cluster.Nodes() {
		most := idle
		if i == 0 {
			most = cancellers + 2
		}
		eventually(t, 10*time.Second, func() string {
			if open, err := n.Connections(); err != nil || open > most {
				return fmt.Sprintf("%v has %d connections, want %d at most (%v)", n, open, most, err)
			}
			return ""
		})
	}
	if err := k.db.Close(); err != nil {
		t.Error(err)
	}
	for _, n := range k.cluster.Nodes() {
		noConnections(t, n)
	}
}

// aheadOfItself is a context whose deadline has passed, and whose timer has not gone off.
type aheadOfItself struct {
	context.Context
	deadline time.Time
}

func (c aheadOfItself) Deadline() (time.Time, bool) { return c.deadline, true }

// A dial looks at the deadline by itself. Where it gives up a moment before the context
// does, its time-out is the caller's all the same.
func TestReportA33DialThatEndsBeforeItsContext(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 2, fakedb.Full)
		db := f.open(func(c *replicated.Config) { c.BreakerFailures = 1 })
		for _, r := range f.replicas {
			r.OnConnect(func(context.Context) error {
				return &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
			})
		}
		for range 60 {
			ctx := aheadOfItself{t.Context(), time.Now()}
			if _, err := count(db.QueryContext(ctx, plainSelect)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v, want the context's", err)
			}
		}
		if got := f.breakers(db); !slices.Equal(got, closedBreakers) || len(f.states) > 0 {
			t.Errorf("the breakers are %v, after %v", got, f.states)
		}
	})
}
