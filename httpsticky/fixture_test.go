package httpsticky_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/httpsticky"
	"github.com/sqlreplicated/replicated/internal/fakedb"
	"github.com/sqlreplicated/replicated/internal/faketime"
)

var (
	key1 = []byte("an example key of thirty-two by.")
	key2 = []byte("another key with thirty-two byte")
)

// cluster is a scripted PostgreSQL primary with one replica, which has what was
// written when a test says so. Each write takes one place in the log.
type cluster struct {
	primary, replica *fakedb.Server
	name             string

	mu                sync.Mutex // guards what follows
	flushed, replayed int
	silent            bool
}

var clusters atomic.Int64

func newCluster() *cluster {
	f := &cluster{
		primary: fakedb.New("primary"), replica: fakedb.New("replica"),
		name: fmt.Sprintf("httpsticky-%d", clusters.Add(1)), flushed: 1000, replayed: 1000,
	}
	f.replica.SetRole(fakedb.Replica)
	for _, s := range []*fakedb.Server{f.primary, f.replica} {
		s.ReplyContaining("current_setting('", func(_ context.Context, call *fakedb.Call) (*fakedb.Reply, error) {
			r := fakedb.Row(slices.Repeat([]driver.Value{"default"}, strings.Count(call.Text, "current_setting('"))...)
			return &r, nil
		})
		s.ReplyContaining("pg_control_system", f.identity(s == f.replica))
	}
	f.primary.ReplyContaining("pg_proc", func(_ context.Context, call *fakedb.Call) (*fakedb.Reply, error) {
		switch {
		case strings.Contains(call.Text, "hashtext"):
			r := fakedb.Row("1")
			return &r, nil
		case strings.Contains(call.Text, "prosrc ~*"):
			r := fakedb.Row("false")
			return &r, nil
		case strings.Contains(call.Text, "pg_operator"):
			return &fakedb.Reply{Columns: make([]string, 4)}, nil
		default:
			return &fakedb.Reply{Columns: make([]string, 5)}, nil
		}
	})
	f.primary.ReplyContaining("c.relkind = 'f'", func(context.Context, *fakedb.Call) (*fakedb.Reply, error) {
		return &fakedb.Reply{Columns: make([]string, 2)}, nil
	})
	f.primary.OnExec(func(context.Context, *fakedb.Call) (*fakedb.Reply, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.flushed++
		return &fakedb.Reply{Affected: 1}, nil
	})
	return f
}

// identity answers the question of who a server is, and where in its log.
func (f *cluster) identity(standby bool) fakedb.Handler {
	return func(ctx context.Context, _ *fakedb.Call) (*fakedb.Reply, error) {
		f.mu.Lock()
		silent := f.silent
		f.mu.Unlock()
		if silent {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		lsn := func(n int) string { return fmt.Sprintf("0/%X", 16*n) }
		var file, received, flushed, inserted, replayed driver.Value
		start := "1"
		if standby {
			received, replayed, start = "1", lsn(f.replayed), "2"
		} else {
			file, flushed, inserted = "00000001", lsn(f.flushed), lsn(f.flushed)+" 8192 16MB"
		}
		r := fakedb.Row(fmt.Sprint(standby), "4711", file, received, "1",
			flushed, inserted, replayed, "2026010100000000000"+start,
			"5432", fmt.Sprint(fakedb.BackendPID), "16.1", "160001", "read committed", "on", "off")
		return &r, nil
	}
}

// apply has the replica apply what was written.
func (f *cluster) apply() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replayed = f.flushed
}

// write writes in a session that no request has to do with.
func (f *cluster) write(t *testing.T, db *sql.DB) {
	ctx, _ := replicated.WithSession(context.Background())
	insert(t, ctx, db)
}

// silence has nobody tell any more where in its log it is.
func (f *cluster) silence(silent bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.silent = silent
}

// open returns a handle on the cluster: a process of its own, as far as sessions go.
func (f *cluster) open(t testing.TB, changes ...func(*replicated.Config)) *sql.DB {
	t.Helper()
	cfg := replicated.Config{
		ClusterName: f.name, Driver: "postgres",
		Nodes: []replicated.Node{
			{Name: "primary", Connector: f.primary.Connector(fakedb.Full)},
			{Name: "replica", Connector: f.replica.Connector(fakedb.Full)},
		},
	}
	for _, change := range changes {
		change(&cfg)
	}
	c, err := replicated.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(c)
	t.Cleanup(func() { _ = db.Close() })
	if err := db.PingContext(context.Background()); err != nil {
		t.Fatal(err)
	}
	return db
}

// inBubble runs a test in fake time with a cluster and a handle that has proofs.
func inBubble(t *testing.T, test func(t *testing.T, f *cluster, db *sql.DB)) {
	t.Helper()
	faketime.Test(t, func(t *testing.T) {
		// The clock of a bubble stands in the year 2000, before the process began, from
		// where package replicated counts.
		pass(60 * 365 * 24 * time.Hour)
		f := newCluster()
		db := f.open(t)
		pass(time.Second)
		test(t, f, db)
	})
}

// step runs a part of a test in a bubble, where there are no subtests, and names it if
// it is the first to fail.
func step(t *testing.T, name string, f func()) {
	t.Helper()
	before := t.Failed()
	f()
	if t.Failed() && !before {
		t.Logf("the first failures are of %q", name)
	}
}

// pass lets time pass, with all that happens in it.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// told collects events.
type told struct {
	mu   sync.Mutex
	list []httpsticky.Event
}

func (e *told) observe(x httpsticky.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, x)
}

// await waits until so many events were told, by a handler that ends after its
// response has.
func (e *told) await(t *testing.T, n int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		e.mu.Lock()
		got := len(e.list)
		e.mu.Unlock()
		if got >= n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d events were told, want %d", got, n)
		}
	}
}

// want compares the kinds of what was told since it was last called.
func (e *told) want(t *testing.T, kinds ...httpsticky.EventKind) []httpsticky.Event {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	var got []httpsticky.EventKind
	for _, x := range e.list {
		got = append(got, x.Kind)
	}
	if !slices.Equal(got, kinds) {
		t.Errorf("told %v, want %v: %v", got, kinds, e.list)
	}
	list := e.list
	e.list = nil
	return list
}

func handler(t testing.TB, next http.Handler, db *sql.DB, changes ...func(*httpsticky.Options)) http.Handler {
	t.Helper()
	o := httpsticky.Options{Databases: []*sql.DB{db}, Keys: [][]byte{key1}}
	for _, change := range changes {
		change(&o)
	}
	h, err := httpsticky.Handler(next, o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func observed(e *told) func(*httpsticky.Options) {
	return func(o *httpsticky.Options) { o.Observe = e.observe }
}

func headerOn(o *httpsticky.Options) { o.Header = "replicated-sticky" }

func cookieOff(o *httpsticky.Options) { o.Cookie.Off = true }

func userOf(r *http.Request) string { return r.Header.Get("User") }

func stored(s httpsticky.Store) func(*httpsticky.Options) {
	return func(o *httpsticky.Options) { o.Store, o.Key = s, userOf }
}

// insert writes a row.
func insert(t testing.TB, ctx context.Context, db *sql.DB) {
	if _, err := db.ExecContext(ctx, "INSERT INTO t VALUES (1)"); err != nil {
		t.Errorf("insert: %v", err)
	}
}

// node returns which node serves a plain read.
func node(t testing.TB, ctx context.Context, db *sql.DB) string {
	var name string
	if err := db.QueryRowContext(ctx, "SELECT a FROM t").Scan(&name); err != nil {
		t.Errorf("read: %v", err)
	}
	return name
}

// app writes at POST /write, answers with a redirect, and says at GET /read which
// node has served the read.
func app(t testing.TB, db *sql.DB) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /write", func(w http.ResponseWriter, r *http.Request) {
		insert(t, r.Context(), db)
		http.Redirect(w, r, "/read", http.StatusSeeOther)
	})
	mux.HandleFunc("/read", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, node(t, r.Context(), db))
	})
	return mux
}

// client is a browser: it keeps cookies until their age is up.
type client struct {
	t      *testing.T
	header http.Header // sent with every request
	jar    map[string]cookie
}

type cookie struct {
	value string
	until time.Time
}

func newClient(t *testing.T) *client {
	return &client{t: t, header: http.Header{}, jar: map[string]cookie{}}
}

func (c *client) request(method, path string) *http.Request {
	r := httptest.NewRequestWithContext(c.t.Context(), method, path, nil)
	for name, values := range c.header {
		r.Header[name] = slices.Clone(values)
	}
	for name, k := range c.jar {
		if time.Now().Before(k.until) {
			r.AddCookie(&http.Cookie{Name: name, Value: k.value})
		}
	}
	return r
}

// keep takes over the cookies of a response.
func (c *client) keep(w *http.Response) {
	for _, k := range w.Cookies() {
		switch {
		case k.MaxAge < 0:
			delete(c.jar, k.Name)
		default:
			c.jar[k.Name] = cookie{k.Value, time.Now().Add(time.Duration(k.MaxAge) * time.Second)}
		}
	}
}

func (c *client) do(h http.Handler, method, path string) *http.Response {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, c.request(method, path))
	w := rec.Result()
	c.keep(w)
	return w
}

// reads has a GET request read, and compares the node that served it.
func (c *client) reads(h http.Handler, want string) {
	c.t.Helper()
	w := c.do(h, "GET", "/read")
	body, _ := io.ReadAll(w.Body)
	if string(body) != want {
		c.t.Errorf("the read was served by %q, want %q", body, want)
	}
	if len(w.Header["Set-Cookie"]) > 0 {
		c.t.Errorf("a read sets cookies: %q", w.Header["Set-Cookie"])
	}
}

// cookies returns the one cookie that the client has, or fails.
func (c *client) cookie() (name, value string) {
	c.t.Helper()
	if len(c.jar) != 1 {
		c.t.Fatalf("the client has %d cookies, want one", len(c.jar))
	}
	for name, k := range c.jar {
		return name, k.value
	}
	panic("unreachable")
}

// store is a Store whose answers a test chooses.
type store struct {
	inner httpsticky.Store

	mu                   sync.Mutex // guards what follows
	loadFails, saveFails error
	panics               bool
	hung                 bool
	loads, saves         int
	whole                *time.Duration
}

var errStore = errors.New("the store has failed")

func (s *store) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *store) hang(ctx context.Context, fails error) error {
	s.mu.Lock()
	hung := s.hung
	s.mu.Unlock()
	if hung {
		<-ctx.Done()
		return ctx.Err()
	}
	return fails
}

func (s *store) Load(ctx context.Context, keys ...string) (httpsticky.Kept, error) {
	s.mu.Lock()
	s.loads++
	fails, whole, panics := s.loadFails, s.whole, s.panics
	s.mu.Unlock()
	if panics {
		panic("a store of somebody's")
	}
	if err := s.hang(ctx, fails); err != nil {
		return httpsticky.Kept{}, err
	}
	k, err := s.inner.Load(ctx, keys...)
	if whole != nil {
		k.Whole = *whole
	}
	return k, err
}

func (s *store) Save(ctx context.Context, token string, ttl time.Duration, keys ...string) error {
	s.mu.Lock()
	s.saves++
	fails := s.saveFails
	s.mu.Unlock()
	if err := s.hang(ctx, fails); err != nil {
		return err
	}
	return s.inner.Save(ctx, token, ttl, keys...)
}
