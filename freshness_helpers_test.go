package replicated_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// readback writes rows and reads them back. Each read must show what had been
// acknowledged before it was called: every one that shows less fails the test.
// Statements may fail, since servers are broken meanwhile; what a failed write has
// done may be seen or not.
//
// It is for any number of goroutines, as long as each row has one writer at a time.
type readback struct {
	t     *testing.T
	c     *replicatedtest.Cluster
	names map[int]string // nodes by port

	table, where string

	primary atomic.Pointer[replicatedtest.Node] // whose value counts

	rows [readbackRows]struct {
		acked atomic.Int64 // by the servers
		tried atomic.Int64 // the last value that was sent
	}

	mu     sync.Mutex
	served map[string]int // reads by node
	errs   map[string]int // errors of reads and writes
}

const readbackRows = 8

// newReadback makes the table, on the primary and by now on all replicas that
// follow it.
func newReadback(t *testing.T, c *replicatedtest.Cluster) *readback {
	t.Helper()
	r := &readback{t: t, c: c, names: make(map[int]string)}
	for _, n := range c.Nodes() {
		r.names[n.Port()] = n.Name()
	}
	r.primary.Store(c.Primary())
	name := tableName(t)
	db := bare(t, c.Primary())
	mustExec(t, db, "DROP TABLE IF EXISTS "+name)
	mustExec(t, db, "CREATE TABLE "+name+" (id int PRIMARY KEY, v bigint NOT NULL)")
	for id := range r.rows {
		mustExec(t, db, fmt.Sprintf("INSERT INTO %s VALUES (%d, 0)", name, id))
	}
	r.table, r.where = name, "current_setting('port')::int"
	if c.Engine() != replicatedtest.Postgres {
		r.where = "whereami()"
		admin := c.Primary().AdminDB(t)
		mustExec(t, admin, "DROP FUNCTION IF EXISTS "+replicatedtest.Database+".whereami")
		mustExec(t, admin, "CREATE FUNCTION "+replicatedtest.Database+".whereami() RETURNS int DETERMINISTIC NO SQL RETURN @@global.port")
	}
	caughtUp(t, c)
	t.Cleanup(r.report)
	return r
}

// locating is what a handle needs for reads of a readback to run on replicas.
const locating = "replicated.read_functions=whereami"

// evenly has reads run on all replicas that may serve them, in turn, so that a test
// can wait for each.
const evenly = "replicated.balance=round-robin"

// writing is what runs the statements of a readback: a *sql.DB, a *sql.Conn, …
type writing interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}

// write raises the row's value.
func (r *readback) write(ctx context.Context, db writing, row int) error {
	x := &r.rows[row]
	v := x.tried.Add(1)
	// Without arguments, so that it is one trip, as poolers need it. One of unknown
	// outcome may yet come, after the next: it must not lower the value.
	_, err := db.ExecContext(ctx, fmt.Sprintf("UPDATE %s SET v = %d WHERE id = %d AND v < %d", r.table, v, row, v))
	if err != nil {
		r.failed("a write", err)
		return err
	}
	x.acked.Store(v)
	return nil
}

// read reads the row, and returns the name of the node that answered.
func (r *readback) read(ctx context.Context, db writing, row int) (node string, err error) {
	return r.readThen(ctx, db, row, func() {})
}

// readThen is read with something that is done while the connection is in use.
func (r *readback) readThen(ctx context.Context, db writing, row int, then func()) (node string, err error) {
	acked := r.rows[row].acked.Load()
	got, port, err := r.scan(ctx, db, row, then)
	if err != nil {
		r.failed("a read", err)
		return "", err
	}
	node = r.names[port]
	if got < acked || got > r.rows[row].tried.Load() {
		r.t.Errorf("%s shows %d in row %d, where %d had been acknowledged", node, got, row, acked)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.served == nil {
		r.served = make(map[string]int)
	}
	r.served[node]++
	return node, nil
}

func (r *readback) scan(ctx context.Context, db writing, row int, then func()) (got int64, port int, err error) {
	rows, err := db.QueryContext(ctx, fmt.Sprintf("SELECT v, %s FROM %s WHERE id = %d", r.where, r.table, row))
	if err != nil {
		then()
		return 0, 0, err
	}
	defer rows.Close()
	then()
	if !rows.Next() {
		return 0, 0, errors.Join(errors.New("no row"), rows.Err())
	}
	if err := rows.Scan(&got, &port); err != nil {
		return 0, 0, err
	}
	rows.Next() // to the end, where errors are told
	return got, port, rows.Err()
}

// atOnce reads the row several times at once. Each read keeps its connection until all
// have one, so that not only the warmest ones of a pool are used.
func (r *readback) atOnce(ctx context.Context, db writing, row int) {
	const times = 6
	var wg, begun sync.WaitGroup
	begun.Add(times)
	for range times {
		wg.Go(func() {
			_, _ = r.readThen(ctx, db, row, func() {
				begun.Done()
				begun.Wait()
			})
		})
	}
	wg.Wait()
}

func (r *readback) failed(what string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.errs == nil {
		r.errs = make(map[string]int)
	}
	text := what + ": " + err.Error()
	if i := strings.Index(text, "127.0.0.1"); i >= 0 {
		text = text[:i] + "…" // ports would make each of them another
	}
	r.errs[text]++
}

// mustWrite raises the row's value, which has to work.
func (r *readback) mustWrite(ctx context.Context, db writing, row int) {
	r.t.Helper()
	if err := r.write(ctx, db, row); err != nil {
		r.t.Fatalf("a write: %v", err)
	}
}

// reads reads the row so many times, which has to work, and returns the nodes that
// answered, each once.
func (r *readback) reads(ctx context.Context, db writing, row, times int) (nodes []string) {
	r.t.Helper()
	for range times {
		node, err := r.read(ctx, db, row)
		if err != nil {
			r.t.Fatalf("a read: %v", err)
		}
		if !slices.Contains(nodes, node) {
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// until reads the row until each of the nodes has answered. What fails meanwhile
// does not matter.
func (r *readback) until(ctx context.Context, db writing, row int, nodes ...*replicatedtest.Node) {
	r.t.Helper()
	var missing []string
	for _, n := range nodes {
		missing = append(missing, n.Name())
	}
	eventually(r.t, 30*time.Second, func() string {
		for range 10 {
			node, err := r.read(ctx, db, row)
			if err != nil {
				return fmt.Sprintf("%v did not serve a read, and the last one failed: %v", missing, err)
			}
			missing = slices.DeleteFunc(missing, func(m string) bool { return m == node })
		}
		if len(missing) > 0 {
			return fmt.Sprintf("%v did not serve a read", missing)
		}
		return ""
	})
}

// only fails the test unless reads of the row are served by the node, all of them,
// and within its value.
func (r *readback) only(ctx context.Context, db writing, row int, n *replicatedtest.Node) {
	r.t.Helper()
	if got := r.reads(ctx, db, row, 30); len(got) != 1 || got[0] != n.Name() {
		r.t.Errorf("reads were served by %v, want %s alone", got, n.Name())
	}
}

// forget takes what the primary has now for what was acknowledged: a copy was
// restored, or a failover has lost something, of which nothing is promised.
func (r *readback) forget() {
	r.t.Helper()
	db := bare(r.t, r.primary.Load())
	for row := range r.rows {
		r.rows[row].acked.Store(int64(queryInt(r.t, db, fmt.Sprintf("SELECT v FROM %s WHERE id = %d", r.table, row))))
	}
}

// while writes and reads back without a pause as long as f runs, and some rounds
// before and after it: in sessions, outside, and on connections that are held. It
// uses the last rows.
func (r *readback) while(db *sql.DB, f func()) {
	r.t.Helper()
	const before, after = 3, 3
	ctx := r.t.Context()
	var over atomic.Bool
	var wg, begun sync.WaitGroup
	for i, round := range []func(row int){
		func(row int) {
			ctx, _ := replicated.WithSession(ctx)
			r.round(ctx, db, row)
		},
		func(row int) { r.round(ctx, db, row) },
		func(row int) {
			conn, err := db.Conn(ctx)
			if err != nil {
				r.failed("a connection", err)
				return
			}
			defer conn.Close()
			r.round(ctx, conn, row)
		},
	} {
		begun.Add(1)
		wg.Go(func() {
			row := readbackRows - 1 - i
			for range before {
				round(row)
			}
			begun.Done()
			for left := after; left > 0; {
				if over.Load() {
					left--
				}
				round(row)
			}
		})
	}
	begun.Wait()
	func() {
		defer wg.Wait()
		defer over.Store(true)
		f()
	}()
}

// reading reads the row without a pause, from several goroutines, as long as f runs.
func (r *readback) reading(ctx context.Context, db writing, row int, f func()) {
	r.t.Helper()
	var over atomic.Bool
	var wg, begun sync.WaitGroup
	for range 4 {
		begun.Add(1)
		wg.Go(func() {
			_, _ = r.read(ctx, db, row)
			begun.Done()
			for !over.Load() {
				_, _ = r.read(ctx, db, row)
			}
		})
	}
	begun.Wait()
	func() {
		defer wg.Wait()
		defer over.Store(true)
		f()
	}()
}

// round writes once, and reads until a replica has answered, or so many times.
func (r *readback) round(ctx context.Context, db writing, row int) {
	if r.write(ctx, db, row) != nil {
		_, _ = r.read(ctx, db, row)
		return
	}
	for range 20 {
		node, err := r.read(ctx, db, row)
		if err != nil || node != r.primary.Load().Name() {
			return
		}
	}
}

// report logs where reads were served, and what failed.
func (r *readback) report() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.t.Logf("reads by node: %v; errors: %v", r.served, r.errs)
}

// heard collects the notices of a handle.
type heard struct {
	mu      sync.Mutex
	notices []replicated.Notice
}

// listening opens a handle whose notices are collected.
func listening(t *testing.T, dsn string) (*sql.DB, *heard) {
	t.Helper()
	cfg, err := replicated.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	h := new(heard)
	cfg.Observe = &replicated.Observer{Notice: func(n replicated.Notice) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.notices = append(h.notices, n)
	}}
	return openConfig(t, cfg), h
}

// count tells how many notices of the kind there were.
func (h *heard) count(kind replicated.NoticeKind) (n int) {
	for _, x := range h.all() {
		if x.Kind == kind {
			n++
		}
	}
	return n
}

func (h *heard) all() []replicated.Notice {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.notices)
}

// hears waits until there was a notice of the kind.
func (h *heard) hears(t *testing.T, kind replicated.NoticeKind) {
	t.Helper()
	eventually(t, 20*time.Second, func() string {
		if h.count(kind) == 0 {
			return fmt.Sprintf("no notice %v, only %v", kind, h.all())
		}
		return ""
	})
}

// unknown waits until nothing is known of how fresh the node with the address is.
func unknown(t *testing.T, db *sql.DB, address string) {
	t.Helper()
	eventually(t, 20*time.Second, func() string {
		for _, n := range stats(t, db).Nodes {
			if n.Address == address && n.Freshness == replicated.FreshnessUnknown {
				return ""
			}
		}
		return fmt.Sprintf("%s is not unknown: %+v", address, stats(t, db).Nodes)
	})
}

// must fails the test if what was done to a server did not work.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
