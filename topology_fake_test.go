package replicated_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"
	"github.com/sqlreplicated/replicated/internal/faketime"
)

// roleFakes is a cluster of scripted PostgreSQL servers whose roles are followed. They
// are listed with the primary last, and refuse writes as their roles demand.
type roleFakes struct {
	*logs
	writes [3]atomic.Int64 // that each has executed, the first primary's first
}

func newRoleFakes(t *testing.T) *roleFakes {
	f := &roleFakes{logs: newLogs(t)}
	for i, s := range f.servers() {
		write := func(context.Context, *fakedb.Call) (*fakedb.Reply, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			l := f.log(i)
			if l.readOnly {
				return nil, pgError("25006")
			}
			f.writes[i].Add(1)
			l.inserted++
			l.flushed = l.inserted
			return &fakedb.Reply{Affected: 1}, nil
		}
		s.ReplyContaining("insert into", write)
		s.ReplyContaining("call ", write)
	}
	return f
}

func (f *roleFakes) log(i int) *pgLog {
	if i == 0 {
		return &f.logs.primary
	}
	return &f.standby[i-1]
}

// promote has a server take writes on a new timeline.
func (f *roleFakes) promote(i int) {
	f.set(func() {
		newest := 0
		for j := range f.writes {
			newest = max(newest, f.log(j).timeline)
		}
		l := f.log(i)
		l.readOnly, l.timeline, l.flushed, l.inserted = false, newest+1, l.replayed, l.replayed
	})
}

// stepDown has a server be a standby, and cuts no connection: what a balancer before it,
// or MySQL's read_only, looks like.
func (f *roleFakes) stepDown(i int) {
	f.set(func() { l := f.log(i); l.readOnly, l.replayed = true, l.flushed })
}

func (f *roleFakes) executed() (all [3]int64) {
	for i := range all {
		all[i] = f.writes[i].Load()
	}
	return all
}

func (f *roleFakes) wantWrites(want ...int64) {
	f.t.Helper()
	if got := f.executed(); !slices.Equal(got[:], want) {
		f.t.Errorf("the servers have executed %v writes, want %v", got, want)
	}
}

func followed(c *replicated.Config) {
	c.Driver, c.Tracker, c.Topology = "postgres", replicated.TrackerAuto, replicated.TopologyDiscover
	slices.Reverse(c.Nodes)
}

// openRoles returns a handle that knows who the primary is.
func (f *roleFakes) openRoles(changes ...func(*replicated.Config)) *sql.DB {
	f.t.Helper()
	db := f.open(slices.Concat([]func(*replicated.Config){followed}, changes)...)
	pass(100 * time.Millisecond)
	return db
}

// unopened returns a handle that nothing has been asked of yet.
func (f *roleFakes) unopened(changes ...func(*replicated.Config)) *sql.DB {
	f.t.Helper()
	db := sql.OpenDB(f.connector(slices.Concat([]func(*replicated.Config){followed}, changes)...))
	f.t.Cleanup(func() { _ = db.Close() })
	return db
}

func (f *roleFakes) wantRoles(db *sql.DB, want string) {
	f.t.Helper()
	cluster, err := replicated.ClusterOf(f.t.Context(), db)
	if err != nil {
		f.t.Fatal(err)
	}
	var got []string
	for _, n := range cluster.Stats().Nodes {
		got = append(got, fmt.Sprintf("%s %v", n.Name, n.Role))
	}
	if s := strings.Join(got, ", "); s != want {
		f.t.Errorf("roles %q, want %q", s, want)
	}
}

func roleBubble(t *testing.T, test func(t *testing.T, f *roleFakes)) {
	t.Helper()
	faketime.Test(t, func(t *testing.T) { test(t, newRoleFakes(t)) })
}

func insert(ctx context.Context, e execer) error {
	_, err := e.ExecContext(ctx, "INSERT INTO t VALUES (1)")
	return err
}

// inTime runs f and fails the test unless it takes that long.
func inTime(t *testing.T, least, most time.Duration, f func()) {
	t.Helper()
	began := time.Now()
	f()
	if took := time.Since(began); took < least || took > most {
		t.Errorf("took %v, want %v to %v", took, least, most)
	}
}

func TestRolesAreFoundOut(t *testing.T) {
	roleBubble(t, func(t *testing.T, f *roleFakes) {
		f.replicas[0].Down(driver.ErrBadConn)
		db := f.openRoles()
		f.wantRoles(db, "replica2 replica, replica1 unknown, primary primary")
		f.replicas[0].Heal()
		pass(6 * time.Second)
		f.wantRoles(db, "replica2 replica, replica1 replica, primary primary")
		write(t.Context(), t, db)
		f.wantWrites(1, 0, 0)
		f.apply()
		pass(2 * time.Second)
		wantOn(t.Context(), t, db, "replica")

		f.fakes.primary.Down(driver.ErrBadConn)
		f.promote(1)
		pass(time.Second)
		f.wantRoles(db, "replica2 replica, replica1 primary, primary unknown")
		// It comes back as it was.
		f.fakes.primary.Heal()
		pass(time.Second)
		f.wantRoles(db, "replica2 replica, replica1 primary, primary unknown")
		for range 5 {
			write(t.Context(), t, db)
		}
		f.wantWrites(1, 5, 0)
		f.set(func() { f.logs.primary.readOnly, f.logs.primary.timeline = true, 2 })
		pass(time.Second)
		f.wantRoles(db, "replica2 replica, replica1 primary, primary replica")
		if n := f.told(replicated.NoticePrimaryChanged); n != 1 {
			t.Errorf("told %d times of the change", n)
		}
	})
}

// A commit is not sent to a former primary.
func TestTransactionsOfAFormerPrimary(t *testing.T) {
	roleBubble(t, func(t *testing.T, f *roleFakes) {
		db := f.openRoles()
		db.SetMaxOpenConns(1)
		ctx := t.Context()
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		write(ctx, t, tx)
		f.promote(1) // both answer, and take writes
		pass(time.Second)
		commits := f.fakes.primary.Stats().Commits
		err = tx.Commit()
		if err == nil || !strings.Contains(err.Error(), "nothing was committed") || errors.Is(err, replicated.ErrOutcomeUnknown) {
			t.Errorf("Commit: %v", err)
		}
		if n := f.fakes.primary.Stats().Commits - commits; n != 0 {
			t.Errorf("%d commits were sent", n)
		}
		f.wantWrites(1, 0, 0)
		write(ctx, t, db) // on the one connection that the pool may have
		f.wantWrites(1, 1, 0)
	})
}

// A connection that has been used is of no use any more, whatever is sent over it.
func TestConnectionsOfAFormerPrimary(t *testing.T) {
	for _, text := range []string{"COMMIT", "INSERT INTO t VALUES (1)", plainSelect} {
		t.Run(text, func(t *testing.T) {
			roleBubble(t, func(t *testing.T, f *roleFakes) {
				db := f.openRoles()
				ctx := t.Context()
				conn, err := db.Conn(ctx)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				run(ctx, t, conn, "BEGIN")
				write(ctx, t, conn)
				f.promote(1)
				pass(time.Second)
				before := len(f.fakes.primary.Texts())
				for range 2 {
					if _, err := conn.ExecContext(ctx, text); err == nil {
						t.Errorf("%s succeeded", text)
					}
				}
				for _, s := range f.fakes.primary.Texts()[before:] {
					if !strings.Contains(s, "pg_") {
						t.Errorf("the former primary was sent %q", s)
					}
				}
				if err := conn.Raw(func(dc any) error {
					if dc.(driver.Validator).IsValid() {
						t.Error("the connection would be kept")
					}
					return nil
				}); err != nil && !errors.Is(err, driver.ErrBadConn) && !errors.Is(err, sql.ErrConnDone) {
					t.Error(err)
				}
				f.wantWrites(1, 0, 0)
			})
		})
	}
}

func TestIdleConnectionsMoveToTheNewPrimary(t *testing.T) {
	roleBubble(t, func(t *testing.T, f *roleFakes) {
		db := f.openRoles()
		ctx := t.Context()
		db.SetMaxIdleConns(10)
		h := f.fakes.primary.Hold(fakedb.OpExec)
		var writers sync.WaitGroup
		for range 10 {
			writers.Go(func() { write(ctx, t, db) })
		}
		synctest.Wait()
		h.Release()
		writers.Wait()
		f.promote(1)
		pass(time.Second)
		for range 10 {
			writers.Go(func() { write(ctx, t, db) })
		}
		writers.Wait()
		f.wantWrites(10, 10, 0)
		pass(time.Second)
		if n := f.fakes.primary.Stats().OpenConns; n > 10 {
			t.Errorf("%d connections to the former primary are open", n)
		}
	})
}

// What a server has refused as read-only runs on the new primary, once.
func TestRefusedWritesAreRedirected(t *testing.T) {
	ctx := context.Background()
	for name, tt := range map[string]struct {
		texts []string
		want  bool
	}{
		"a single statement":         {[]string{"INSERT INTO t VALUES (1)"}, true},
		"on a used connection":       {[]string{"INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (LAST_INSERT_ID())"}, false},
		"several statements":         {[]string{"INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)"}, false},
		"a procedure, which commits": {[]string{"CALL p()"}, false},
		"in a transaction":           {[]string{"BEGIN", "INSERT INTO t VALUES (1)"}, false},
		"with a setting":             {[]string{"SET search_path = app", "INSERT INTO t VALUES (1)"}, false},
		"with a temporary table":     {[]string{"CREATE TEMP TABLE x (a int)", "INSERT INTO t VALUES (1)"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			roleBubble(t, func(t *testing.T, f *roleFakes) {
				db := f.openRoles()
				run(ctx, t, db, "SELECT 1 FOR UPDATE") // so that there is a connection
				conn, err := db.Conn(ctx)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				last := len(tt.texts) - 1
				for _, text := range tt.texts[:last] {
					run(ctx, t, conn, text)
				}
				before := f.executed()
				f.stepDown(0)
				f.promote(1)
				_, err = conn.ExecContext(ctx, tt.texts[last])
				if (err == nil) != tt.want {
					t.Errorf("error %v", err)
				}
				got := f.executed()
				if got[0] != before[0] || tt.want && got[1] != 1 || !tt.want && got[1] != 0 {
					t.Errorf("executed %v, before that %v", got, before)
				}
				// Others go there in any case.
				write(ctx, t, db)
				if n := f.executed(); n[1] != got[1]+1 {
					t.Errorf("executed %v", n)
				}
			})
		})
	}
}

// A session may be read-only where the server is not: the refusal is the statement's.
func TestReadOnlySessionOnAPrimary(t *testing.T) {
	for _, begin := range []string{"SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", "BEGIN READ ONLY"} {
		t.Run(begin, func(t *testing.T) {
			roleBubble(t, func(t *testing.T, f *roleFakes) {
				db := f.openRoles()
				ctx := t.Context()
				conn, err := db.Conn(ctx)
				if err != nil {
					t.Fatal(err)
				}
				run(ctx, t, conn, begin)
				f.fakes.primary.ReplyContaining("pg_control_system", func(ctx context.Context, call *fakedb.Call) (*fakedb.Reply, error) {
					if call.Tx != 'I' {
						return nil, pgError("25P02") // the refusal has failed the transaction
					}
					return f.says(&f.logs.primary)(ctx, call)
				})
				f.fakes.primary.Fail(fakedb.OpExec, 1, pgError("25006"))
				began := len(f.replicas[0].Ops())
				inTime(t, 0, 0, func() {
					if err := insert(ctx, conn); err == nil || err.Error() != pgError("25006").Error() {
						t.Errorf("error %v", err)
					}
				})
				if n := len(f.replicas[0].Ops()) - began; n > 0 {
					t.Errorf("a node was asked %d times", n)
				}
				run(ctx, t, conn, "ROLLBACK")
				f.wantWrites(0, 0, 0)
				write(ctx, t, conn)
				conns := f.fakes.primary.Stats().Connects
				_ = conn.Close()
				write(ctx, t, db)
				if n := f.fakes.primary.Stats().Connects - conns; n > 0 {
					t.Error("the connection was not kept")
				}
				f.wantWrites(2, 0, 0)
			})
		})
	}
}

// probes counts how often a server is asked for its role.
func probes(s *fakedb.Server) (n int) {
	for _, text := range s.Texts() {
		if strings.Contains(text, "pg_control_system") {
			n++
		}
	}
	return n
}
