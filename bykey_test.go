package replicated_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"
	"github.com/sqlreplicated/replicated/internal/faketime"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

const byKey = "SELECT a FROM t WHERE id = ?"

func noRow() fakedb.Reply { return fakedb.Reply{Columns: []string{"c1"}} }

// keyed has the servers answer a read by key: those named with their name, all others
// with no row.
func (f *fakes) keyed(having ...string) {
	for _, s := range f.servers() {
		s.Reply(byKey, noRow())
		for _, name := range having {
			if name == s.Name() {
				s.Reply(byKey, fakedb.Row(name))
			}
		}
	}
}

// Which servers are asked for a row, by where it is, and by where the read may run.
func TestQueryRowByKey(t *testing.T) {
	all := []string{"primary", "replica1", "replica2"}
	for _, tt := range []struct {
		name   string
		having []string
		change func(*replicated.Config)
		ctx    func(context.Context) context.Context
		query  string
		want   string // "" is no row
		routes []string
	}{
		{name: "everywhere", having: all, want: "replica", routes: []string{"replica read"}},
		{name: "too new for the replicas", having: all[:1], want: "primary", routes: []string{"replica read", "primary miss"}},
		{name: "nowhere", routes: []string{"replica read", "primary miss"}},
		{
			name: "asked of the primary at first", ctx: replicated.WithPrimary, routes: []string{"primary asked"},
		},
		{
			name: "own write before", having: all[:1], want: "primary", routes: []string{"primary session-write"},
			ctx: func(ctx context.Context) context.Context {
				ctx, _ = replicated.WithSession(ctx)
				replicated.Wrote(ctx)
				return ctx
			},
		},
		{name: "in shadow mode", change: func(c *replicated.Config) { c.Reads = replicated.ReadsShadow }, routes: []string{"primary shadow"}},
		{name: "not opted in", change: func(c *replicated.Config) { c.Reads = replicated.ReadsOptIn }, routes: []string{"primary not-opted-in"}},
		{
			name: "opted in", having: all[:1], change: func(c *replicated.Config) { c.Reads = replicated.ReadsOptIn }, ctx: replicated.WithReplica,
			want: "primary", routes: []string{"replica read", "primary miss"},
		},
		{name: "read-only", having: all[:1], ctx: replicated.WithReadOnly, want: "primary", routes: []string{"replica read", "primary miss"}},
		{
			name: "older data allowed", having: all[:1], want: "primary", routes: []string{"replica read", "primary miss"},
			ctx: func(ctx context.Context) context.Context { return replicated.WithStaleReads(ctx, 0) },
		},
		{name: "a single node", change: func(c *replicated.Config) { c.Nodes = c.Nodes[:1] }, routes: []string{"primary single-node"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) {
				f := newFakes(t, 2, fakedb.Full)
				f.keyed(tt.having...)
				var changes []func(*replicated.Config)
				if tt.change != nil {
					changes = append(changes, tt.change)
				}
				db := f.open(changes...)
				ctx := t.Context()
				if tt.ctx != nil {
					ctx = tt.ctx(ctx)
				}
				var got string
				err := replicated.QueryRowByKey(ctx, db, byKey, 7).Scan(&got)
				if tt.want == "" && !errors.Is(err, sql.ErrNoRows) || tt.want != "" && err != nil {
					t.Errorf("error %v", err)
				}
				if tt.want != got[:min(len(got), len("primary"))] {
					t.Errorf("the row is of %q, want %q", got, tt.want)
				}
				f.wantRoutes(tt.routes...)
			})
		})
	}
}

// A replica that has failed, and a primary that has answered in its place: nobody is
// asked twice.
func TestQueryRowByKeyAfterAFailedReplica(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		f.keyed()
		db := f.open()
		f.replicas[0].Reply(byKey, fakedb.Reply{Err: driver.ErrBadConn, Break: true})
		if err := replicated.QueryRowByKey(t.Context(), db, byKey, 7).Err(); !errors.Is(err, sql.ErrNoRows) {
			t.Errorf("error %v", err)
		}
		if n := sent(f.primary, byKey); n != 1 {
			t.Errorf("the primary was asked %d times", n)
		}
	})
}

// The second question goes through the same handle while the first is over: a pool of
// one connection, a held connection, and a transaction, where there is no second one.
func TestQueryRowByKeyHandles(t *testing.T) {
	eachShape(t, func(t *testing.T, shape fakedb.Shape) {
		f := newFakes(t, 2, shape)
		f.keyed("primary")
		db := f.open()
		db.SetMaxOpenConns(1)
		ask := func(q replicated.Queryer) (got string, err error) {
			err = replicated.QueryRowByKey(t.Context(), q, byKey, 7).Scan(&got)
			return got, err
		}
		if got, err := ask(db); got != "primary" || err != nil {
			t.Errorf("a pool of one: %q, %v", got, err)
		}
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ask(conn); got != "primary" || err != nil {
			t.Errorf("a connection: %q, %v", got, err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		f.routes()
		f.primary.Reply(byKey, noRow())
		if got, err := ask(tx); got != "" || !errors.Is(err, sql.ErrNoRows) {
			t.Errorf("a transaction: %q, %v", got, err)
		}
		f.wantRoutes("primary transaction")
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
		f.primary.Reply(byKey, fakedb.Row("primary"))
		tx, err = db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
		if err != nil {
			if !refusesReadOnlyTx(err) {
				t.Error(err)
			}
			return
		}
		f.routes()
		if got, err := ask(tx); got != "" || !errors.Is(err, sql.ErrNoRows) {
			t.Errorf("a read-only transaction: %q, %v", got, err)
		}
		f.wantRoutes("replica read-only-tx")
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	})
}

// What the caller learns when something fails, and that nothing stays open.
func TestQueryRowByKeyErrors(t *testing.T) {
	broken := errors.New("broken")
	row := func(nextErr, closeErr error) fakedb.Reply {
		r := fakedb.Row("x")
		r.NextErr, r.CloseErr = nextErr, closeErr
		return r
	}
	for _, tt := range []struct {
		name             string
		replica, primary fakedb.Reply
		dest             []any
		asked            int // the primary
		check            func(error) bool
	}{
		{"the second question", noRow(), fakedb.Error(broken), nil, 1, func(err error) bool { return errors.Is(err, broken) && !errors.Is(err, sql.ErrNoRows) }},
		{"the first question", fakedb.Error(broken), fakedb.Row("x"), nil, 0, func(err error) bool { return errors.Is(err, broken) }},
		{"while no row has come", fakedb.Reply{Columns: []string{"c1"}, NextErr: broken}, fakedb.Row("x"), nil, 0, func(err error) bool { return errors.Is(err, broken) }},
		{"several rows", lines(3), fakedb.Row("x"), nil, 0, func(err error) bool { return err == nil }},
		{"too many destinations", fakedb.Row("x"), fakedb.Row("x"), []any{new(string), new(string)}, 0, func(err error) bool { return err != nil }},
		{"of another type", fakedb.Row("x"), fakedb.Row("x"), []any{new(int)}, 0, func(err error) bool { return err != nil }},
		{"raw bytes", fakedb.Row("x"), fakedb.Row("x"), []any{new(sql.RawBytes)}, 0, func(err error) bool { return err != nil }},
		{"at the end", row(nil, broken), fakedb.Row("x"), nil, 0, func(err error) bool { return errors.Is(err, broken) }},
	} {
		// A driver that is not known has its first row fetched before the query returns.
		for _, known := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s known=%v", tt.name, known), func(t *testing.T) {
				faketime.Test(t, func(t *testing.T) {
					f := newFakes(t, 1, fakedb.Full)
					f.replicas[0].Reply(byKey, tt.replica)
					f.primary.Reply(byKey, tt.primary)
					var changes []func(*replicated.Config)
					if known {
						changes = append(changes, f.asPostgres())
					}
					db := f.open(changes...)
					db.SetMaxOpenConns(1)
					dest := tt.dest
					if dest == nil {
						dest = []any{new(string)}
					}
					r := replicated.QueryRowByKey(t.Context(), db, byKey, 7)
					if err := r.Scan(dest...); !tt.check(err) {
						t.Errorf("error %v", err)
					}
					if n := sent(f.primary, byKey); n != tt.asked {
						t.Errorf("the primary was asked %d times, want %d", n, tt.asked)
					}
					wantFree(t, db)
				})
			})
		}
	}
	t.Run("the caller has gone", func(t *testing.T) {
		faketime.Test(t, func(t *testing.T) {
			f := newFakes(t, 1, fakedb.Full)
			f.keyed("primary")
			db := f.open()
			ctx, cancel := context.WithCancel(t.Context())
			h := f.primary.Hold(fakedb.OpQuery)
			go func() { <-h.Entered(); cancel() }()
			if err := replicated.QueryRowByKey(ctx, db, byKey, 7).Err(); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
			h.Release()
			wantFree(t, db)
		})
	})
	t.Run("without a primary", func(t *testing.T) {
		faketime.Test(t, func(t *testing.T) {
			f := newFakes(t, 1, fakedb.Full)
			f.keyed("primary")
			db := f.open()
			f.primary.Kill()
			f.primary.Down(driver.ErrBadConn)
			if err := replicated.QueryRowByKey(t.Context(), db, byKey, 7).Err(); err == nil || errors.Is(err, sql.ErrNoRows) {
				t.Errorf("error %v, where nobody knows whether there is a row", err)
			}
			f.primary.Heal()
		})
	})
}

// wantFree fails the test if a connection of the handle is in use.
func wantFree(t *testing.T, db *sql.DB) {
	t.Helper()
	if n := db.Stats().InUse; n != 0 {
		t.Errorf("%d connections are in use", n)
	}
}

// Many at a time, on one context: who has missed is asked again, and nobody else.
func TestQueryRowByKeyConcurrently(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 2, fakedb.Full)
		ctx, _ := replicated.WithSession(t.Context())
		const old, young = "SELECT a FROM t WHERE id = 1", "SELECT a FROM t WHERE id = 2"
		for _, s := range f.servers() {
			s.Reply(old, fakedb.Row(s.Name()))
			s.Reply(young, noRow())
		}
		f.primary.Reply(young, fakedb.Row("primary"))
		db := f.open()
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				query := old
				if i%2 == 0 {
					query = young
				}
				var got string
				if err := replicated.QueryRowByKey(ctx, db, query).Scan(&got); err != nil || (got == "primary") != (query == young) {
					t.Errorf("%s: %q, %v", query, got, err)
				}
			})
		}
		wg.Wait()
		if n := sent(f.primary, young); n != 20 {
			t.Errorf("the primary was asked %d times for what replicas miss, want 20", n)
		}
		if n := sent(f.primary, old); n != 0 {
			t.Errorf("the primary was asked %d times for what replicas have", n)
		}
		wantOn(ctx, t, db, "replica") // nothing stays on the context
	})
}

// Another user's row that is too new for the replicas is found, one that exists in an
// older version is not made newer, and a row that nobody has costs the primary a read.
func TestQueryRowByKeyOnServers(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		name := table(t, c, "id int PRIMARY KEY, v int")
		mustExec(t, bare(t, c.Primary()), "INSERT INTO "+name+" (id, v) VALUES (1, 1)")
		caughtUp(t, c)
		db, _ := process(t, c)
		query := "SELECT v FROM " + name + " WHERE id = " + placeholder(c.Engine(), 1)
		wantInt(t.Context(), t, db, 1, query, 1)
		pauseReplicas(t, c)
		mustExec(t, bare(t, c.Primary()), "INSERT INTO "+name+" (id, v) VALUES (2, 2)")
		mustExec(t, bare(t, c.Primary()), "UPDATE "+name+" SET v = 5 WHERE id = 1")
		for id, want := range map[int]string{1: "1 <nil>", 2: "2 <nil>", 3: "0 " + sql.ErrNoRows.Error()} {
			mark := c.Primary().Mark()
			var got int
			err := replicated.QueryRowByKey(t.Context(), db, query, id).Scan(&got)
			if text := fmt.Sprint(got, " ", err); text != want {
				t.Errorf("row %d: %s, want %s", id, text, want)
			}
			asked := 0
			for _, s := range c.Primary().StatementsSince(mark) {
				if s.Kind != replicatedtest.Prepare && strings.Contains(s.Text, "FROM "+name) {
					asked++
				}
			}
			if most := min(id, 2) - 1; asked != most {
				t.Errorf("row %d was asked of the primary %d times, want %d", id, asked, most)
			}
		}
		if got := stats(t, db).Primary[replicated.ReasonMiss]; got != 2 {
			t.Errorf("%d misses are counted, want 2", got)
		}
	})
}

// Where the row is missing and further results stand behind it, as behind a CALL on
// MySQL, the connection is given back all the same.
func TestQueryRowByKeyBeforeFurtherResults(t *testing.T) {
	eachShape(t, func(t *testing.T, shape fakedb.Shape) {
		f := newFakes(t, 0, shape)
		f.primary.Reply(byKey, fakedb.Reply{Columns: []string{"c1"}, More: []fakedb.Reply{fakedb.Row("x")}})
		db := f.open()
		if err := replicated.QueryRowByKey(t.Context(), db, byKey, 7).Scan(new(string)); !errors.Is(err, sql.ErrNoRows) {
			t.Errorf("error %v", err)
		}
		if n := db.Stats().InUse; n != 0 {
			t.Errorf("%d connections are in use", n)
		}
	})
}
