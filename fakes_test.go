package replicated_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"
	"github.com/sqlreplicated/replicated/internal/faketime"
)

// fakes is a cluster of scripted servers, for what real ones cannot be made to do
// at a given moment. Its tests run inside testing/synctest bubbles: time passes
// only while everybody waits, so no event has to be waited for by the clock, and
// a goroutine that is left behind fails the test.
type fakes struct {
	t        *testing.T
	shape    fakedb.Shape
	primary  *fakedb.Server
	replicas []*fakedb.Server

	mu      sync.Mutex // guards what the observer is told
	events  []replicated.RouteEvent
	states  []replicated.NodeStateEvent
	notices []replicated.Notice
}

// newFakes makes a primary and so many replicas. At the end of the test nothing
// may be open on them, and nothing may have been done to them that no user of a
// driver may do.
func newFakes(t *testing.T, replicas int, shape fakedb.Shape) *fakes {
	f := &fakes{t: t, shape: shape, primary: fakedb.New("primary")}
	for i := range replicas {
		r := fakedb.New(fmt.Sprintf("replica%d", i+1))
		r.SetRole(fakedb.Replica)
		f.replicas = append(f.replicas, r)
	}
	t.Cleanup(func() {
		for _, s := range f.servers() {
			if open := s.Open(); len(open) > 0 {
				t.Errorf("left open: %s", strings.Join(open, ", "))
			}
			if misuse := s.Misuse(); len(misuse) > 0 {
				t.Errorf("misuse: %s", strings.Join(misuse, ", "))
			}
		}
	})
	return f
}

func (f *fakes) servers() []*fakedb.Server {
	return append([]*fakedb.Server{f.primary}, f.replicas...)
}

var clusterNumber atomic.Int64

// config is that of a cluster of its own: no other test's writes raise its floors.
func (f *fakes) config(changes ...func(*replicated.Config)) replicated.Config {
	cfg := replicated.Config{
		ClusterName: fmt.Sprintf("fakes-%d", clusterNumber.Add(1)),
		Tracker:     replicated.TrackerOff, // what a fake says of its position is for a test to choose
		Balance:     replicated.BalanceRoundRobin,
		Observe: &replicated.Observer{
			Routed:    func(e replicated.RouteEvent) { f.mu.Lock(); defer f.mu.Unlock(); f.events = append(f.events, e) },
			NodeState: func(e replicated.NodeStateEvent) { f.mu.Lock(); defer f.mu.Unlock(); f.states = append(f.states, e) },
			Notice:    func(n replicated.Notice) { f.mu.Lock(); defer f.mu.Unlock(); f.notices = append(f.notices, n) },
		},
	}
	for _, s := range f.servers() {
		cfg.Nodes = append(cfg.Nodes, replicated.Node{Name: s.Name(), Connector: s.Connector(f.shape)})
	}
	for _, change := range changes {
		change(&cfg)
	}
	return cfg
}

func (f *fakes) connector(changes ...func(*replicated.Config)) *replicated.Connector {
	f.t.Helper()
	c, err := replicated.NewConnector(f.config(changes...))
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

// open returns a handle whose background work has come to rest.
func (f *fakes) open(changes ...func(*replicated.Config)) *sql.DB {
	f.t.Helper()
	db := sql.OpenDB(f.connector(changes...))
	f.t.Cleanup(func() {
		if err := db.Close(); err != nil {
			f.t.Errorf("closing the handle: %v", err)
		}
	})
	if err := db.PingContext(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	synctest.Wait()
	return db
}

// conn returns one connection of the driver, without database/sql around it.
func (f *fakes) conn(c *replicated.Connector) *replicated.Conn {
	f.t.Helper()
	dc, err := c.Connect(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		_ = dc.Close()
		_ = c.Close()
	})
	return dc.(*replicated.Conn)
}

// asPostgres has the servers taken for PostgreSQL, and answer like it.
func (f *fakes) asPostgres() func(*replicated.Config) {
	for _, s := range f.servers() {
		s.ReplyContaining("current_setting('", postgresSettings)
		s.ReplyContaining("pg_control_system", postgresIdentity(s.Name() != "primary", "read committed"))
	}
	return func(c *replicated.Config) { c.Driver = "postgres" }
}

// postgresSettings answers the question for the values of session variables.
func postgresSettings(_ context.Context, call *fakedb.Call) (*fakedb.Reply, error) {
	r := fakedb.Row(slices.Repeat([]driver.Value{"default"}, strings.Count(call.Text, "current_setting('"))...)
	return &r, nil
}

// postgresIdentity answers the question of who is there.
func postgresIdentity(standby bool, isolation string) fakedb.Handler {
	return func(context.Context, *fakedb.Call) (*fakedb.Reply, error) {
		r := fakedb.Row(fmt.Sprint(standby), "4711", nil, nil, "1", nil, nil, nil, "20260101000000000000",
			"5432", "1", "16.1", "160001", isolation, "on", "off")
		return &r, nil
	}
}

// everywhere scripts the same answer on all replicas.
func (f *fakes) everywhere(text string, r fakedb.Reply) {
	for _, s := range f.replicas {
		s.Reply(text, r)
	}
}

// routes returns and forgets where statements went: "node reason", and " failed"
// after it where the attempt did.
func (f *fakes) routes() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, e := range f.events {
		s := e.Node + " " + e.Reason.String()
		if e.Err != nil {
			s += " failed"
		}
		out = append(out, s)
	}
	f.events = nil
	return out
}

// wantRoutes compares, with the replicas' numbers taken off: which of them was
// tried first is no matter.
func (f *fakes) wantRoutes(want ...string) {
	f.t.Helper()
	got := f.routes()
	for i, r := range got {
		if node, rest, _ := strings.Cut(r, " "); strings.HasPrefix(node, "replica") {
			got[i] = "replica " + rest
		}
	}
	if !slices.Equal(got, want) {
		f.t.Errorf("routed %q, want %q", got, want)
	}
}

func (f *fakes) breakers(db *sql.DB) []replicated.BreakerState {
	f.t.Helper()
	c, err := replicated.ClusterOf(f.t.Context(), db)
	if err != nil {
		f.t.Fatal(err)
	}
	var out []replicated.BreakerState
	for _, n := range c.Stats().Nodes[1:] {
		out = append(out, n.Breaker)
	}
	return out
}

// sent counts how often a text reached a server.
func sent(s *fakedb.Server, text string) (n int) {
	for _, got := range s.Texts() {
		if got == text {
			n++
		}
	}
	return n
}

type querier interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
	QueryRowContext(context.Context, string, ...any) *sql.Row
}

type execer interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}

const plainSelect = "SELECT a FROM t"

// servedBy runs a plain read and returns the name of the node that answered.
func servedBy(ctx context.Context, t *testing.T, q querier) string {
	t.Helper()
	var node string
	if err := q.QueryRowContext(ctx, plainSelect).Scan(&node); err != nil {
		t.Fatalf("%s: %v", plainSelect, err)
	}
	return node
}

// wantOn runs a plain read and fails the test unless the primary, or a replica,
// answered.
func wantOn(ctx context.Context, t *testing.T, q querier, role string) {
	t.Helper()
	if got := servedBy(ctx, t, q); strings.TrimRight(got, "0123456789") != role {
		t.Errorf("the read was served by %s, want %s", got, role)
	}
}

func run(ctx context.Context, t *testing.T, e execer, text string, args ...any) {
	t.Helper()
	if _, err := e.ExecContext(ctx, text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

func eachShape(t *testing.T, test func(t *testing.T, shape fakedb.Shape)) {
	for _, shape := range fakedb.Shapes() {
		t.Run(shape.String(), func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) { test(t, shape) })
		})
	}
}

// rows of n lines, each with the number of the line.
func lines(n int) fakedb.Reply {
	r := fakedb.Reply{Columns: []string{"n"}}
	for i := range n {
		r.Rows = append(r.Rows, []driver.Value{int64(i)})
	}
	return r
}
