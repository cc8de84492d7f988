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
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"
	"github.com/sqlreplicated/replicated/internal/faketime"
)

// logs is a cluster of scripted PostgreSQL servers with positions that a test moves.
type logs struct {
	*catalogFake

	mu      sync.Mutex // guards what follows
	primary pgLog
	standby []pgLog
}

// pgLog is what one server says of its log.
type pgLog struct {
	readOnly          bool
	start             int // changes with a restart
	system, timeline  int
	flushed, inserted int
	replayed          int
	pid               int
}

// newLogs makes a primary and two replicas, which have the primary's log.
func newLogs(t *testing.T) *logs {
	f := &logs{catalogFake: newCatalogFake(t, fakedb.Full), standby: make([]pgLog, 2)}
	for _, s := range f.servers() {
		s.ReplyContaining("current_setting('", postgresSettings)
	}
	f.primary = pgLog{start: 1, system: 4711, timeline: 1, flushed: 1000, inserted: 1000}
	f.fakes.primary.ReplyContaining("pg_control_system", f.says(&f.primary))
	for i := range f.standby {
		f.standby[i] = pgLog{readOnly: true, start: 2 + i, system: 4711, timeline: 1, replayed: 1000}
		f.replicas[i].ReplyContaining("pg_control_system", f.says(&f.standby[i]))
	}
	// Each write takes one place in the log.
	f.fakes.primary.ReplyContaining("insert into", func(context.Context, *fakedb.Call) (*fakedb.Reply, error) {
		f.set(func() { f.primary.inserted++; f.primary.flushed = f.primary.inserted })
		return &fakedb.Reply{Affected: 1}, nil
	})
	return f
}

func (f *logs) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// apply has replicas apply what the primary has flushed; without a number all do.
func (f *logs) apply(which ...int) {
	f.set(func() {
		for i := range f.standby {
			if len(which) == 0 || slices.Contains(which, i) {
				f.standby[i].replayed, f.standby[i].timeline = f.primary.flushed, f.primary.timeline
			}
		}
	})
}

func (f *logs) says(l *pgLog) fakedb.Handler {
	return func(context.Context, *fakedb.Call) (*fakedb.Reply, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		lsn := func(n int) string { return fmt.Sprintf("0/%X", 16*n) }
		var file, received, flushed, inserted, replayed driver.Value
		if l.readOnly {
			received, replayed = fmt.Sprint(l.timeline), lsn(l.replayed)
		} else {
			file, flushed, inserted = fmt.Sprintf("%08X", l.timeline), lsn(l.flushed), lsn(l.inserted)+" 8192 16MB"
		}
		l.pid++
		r := fakedb.Row(fmt.Sprint(l.readOnly), fmt.Sprint(l.system), file, received, fmt.Sprint(l.timeline),
			flushed, inserted, replayed, fmt.Sprintf("2026010100000000000%d", l.start),
			"5432", fmt.Sprint(l.pid), "16.1", "160001", "read committed", "on", "off")
		return &r, nil
	}
}

// openLogs returns a handle that has proofs of all replicas.
func (f *logs) openLogs(changes ...func(*replicated.Config)) *sql.DB {
	f.t.Helper()
	db := f.open(slices.Concat([]func(*replicated.Config){func(c *replicated.Config) {
		c.Driver, c.Tracker = "postgres", replicated.TrackerAuto
	}}, changes)...)
	pass(100 * time.Millisecond)
	return db
}

// pass lets time pass, with all that happens in it.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func write(ctx context.Context, t *testing.T, e execer) {
	t.Helper()
	run(ctx, t, e, "INSERT INTO t VALUES (1)")
}

// refusedWith runs a plain read that must fail.
func refusedWith(ctx context.Context, t *testing.T, q querier, want error) {
	t.Helper()
	var node string
	if err := q.QueryRowContext(ctx, plainSelect).Scan(&node); !errors.Is(err, want) {
		t.Errorf("the read was served by %q, error %v; want %v", node, err, want)
	}
}

func inBubble(t *testing.T, test func(t *testing.T, f *logs)) {
	t.Helper()
	faketime.Test(t, func(t *testing.T) { test(t, newLogs(t)) })
}

func (f *logs) told(kind replicated.NoticeKind) (n int) {
	f.fakes.mu.Lock()
	defer f.fakes.mu.Unlock()
	for _, x := range f.notices {
		if x.Kind == kind {
			n++
		}
	}
	return n
}

func TestNothingIsKnownAtTheStart(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		h := f.fakes.primary.Hold(fakedb.OpQuery)
		db := sql.OpenDB(f.connector(func(c *replicated.Config) { c.Driver, c.Tracker = "postgres", replicated.TrackerAuto }))
		defer db.Close()
		read := make(chan string)
		go func() {
			var node string
			if err := db.QueryRowContext(t.Context(), plainSelect).Scan(&node); err != nil {
				node = err.Error()
			}
			read <- node
		}()
		pass(10 * time.Millisecond)
		h.Release()
		if got := <-read; got != "primary" {
			t.Errorf("the first read was served by %s", got)
		}
		f.wantRoutes("primary unmeasured")
		pass(100 * time.Millisecond)
		wantOn(t.Context(), t, db, "replica")
	})
}

func TestReadsWaitForProof(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		db := f.openLogs()
		wantOn(t.Context(), t, db, "replica")
		write(t.Context(), t, db)
		f.routes()
		wantOn(t.Context(), t, db, "primary")
		f.wantRoutes("primary process-write")
		pass(2 * time.Second)
		wantOn(t.Context(), t, db, "primary")
		f.apply(1)
		pass(2 * time.Second)
		for range 4 {
			if got := servedBy(t.Context(), t, db); got != "replica2" {
				t.Errorf("served by %s, which has not applied the write", got)
			}
		}
	})
}

// A floor that was raised by a commit that waits for no disk is proven by what the
// primary has written, any other one by what it has flushed.
func TestAsynchronousCommits(t *testing.T) {
	for _, tt := range []struct {
		name, before, write string
		wait                bool
	}{
		{"synchronous", "", "INSERT INTO t VALUES (1)", false},
		{"by SET LOCAL", "SET LOCAL synchronous_commit = off", "INSERT INTO t VALUES (1)", true},
		{"by set_config", "", "INSERT INTO t SELECT set_config('synchronous_' || 'commit', 'off', true)", true},
		{"in capitals", "SET SYNCHRONOUS_COMMIT TO OFF", "INSERT INTO t VALUES (1)", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *logs) {
				db := f.openLogs()
				tx, err := db.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if tt.before != "" {
					run(t.Context(), t, tx, tt.before)
				}
				run(t.Context(), t, tx, tt.write)
				if err := tx.Commit(); err != nil {
					t.Fatal(err)
				}
				f.set(func() { f.primary.inserted++ }) // pruning, or an asynchronous commit
				f.apply()
				pass(2 * time.Second)
				want := "replica"
				if tt.wait {
					want = "primary"
				}
				wantOn(replicated.WithMaxLag(t.Context(), time.Hour), t, db, want)
				f.set(func() { f.primary.flushed = f.primary.inserted })
				f.apply()
				pass(2 * time.Second)
				wantOn(t.Context(), t, db, "replica")
			})
		})
	}
}

func TestBoundsOnLagOfFakes(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		db := f.openLogs()
		f.set(func() { f.primary.inserted++; f.primary.flushed++ }) // somebody else's write
		pass(3 * time.Second)
		ctx := t.Context()
		wantOn(ctx, t, db, "replica") // 3 s behind, of 5 s
		wantOn(replicated.WithMaxLag(ctx, 2*time.Second), t, db, "primary")
		wantOn(replicated.WithMaxLag(replicated.WithMaxLag(ctx, 2*time.Second), time.Hour), t, db, "primary")
		wantOn(replicated.WithMaxLag(replicated.WithStaleReads(ctx, time.Hour), 2*time.Second), t, db, "primary")
		wantOn(replicated.WithStaleReads(replicated.WithMaxLag(ctx, 2*time.Second), time.Hour), t, db, "primary")
		f.routes()
		pass(4 * time.Second)
		wantOn(ctx, t, db, "primary")
		f.wantRoutes("primary lag")
		wantOn(replicated.WithMaxLag(ctx, time.Hour), t, db, "primary")
		wantOn(replicated.WithStaleReads(ctx, 0), t, db, "primary")
		wantOn(replicated.WithStaleReads(ctx, 6*time.Second), t, db, "primary")
		wantOn(replicated.WithStaleReads(ctx, 8*time.Second), t, db, "replica")
		f.apply(0)
		pass(2 * time.Second)
		if got := servedBy(ctx, t, db); got != "replica1" {
			t.Errorf("served by %s, which is 9 s behind", got)
		}
	})
}

// Stale reads waive what has been written, not the bound on lag, and not for ever.
func TestStaleReads(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		db := f.openLogs()
		write(t.Context(), t, db)
		stale := replicated.WithStaleReads(t.Context(), 0)
		wantOn(t.Context(), t, db, "primary")
		wantOn(stale, t, db, "replica")
		wantOn(replicated.WithFresh(stale), t, db, "primary")
		pass(6 * time.Second)
		wantOn(stale, t, db, "primary")
	})
}

func TestFreshReads(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		db := f.openLogs()
		pass(time.Second)
		fresh := replicated.WithFresh(t.Context())
		wantOn(fresh, t, db, "primary")
		f.wantRoutes("primary fresh")
		pass(100 * time.Millisecond)
		wantOn(fresh, t, db, "replica")
		wantOn(replicated.WithFresh(t.Context()), t, db, "primary")
	})
}

func TestReadsThatWait(t *testing.T) {
	wait := func(c *replicated.Config) { c.Wait = time.Second }
	t.Run("until a replica is proven", func(t *testing.T) {
		inBubble(t, func(t *testing.T, f *logs) {
			db := f.openLogs(wait)
			write(t.Context(), t, db)
			time.AfterFunc(30*time.Millisecond, func() { f.apply(0) })
			began := time.Now()
			if got := servedBy(t.Context(), t, db); got != "replica1" {
				t.Errorf("served by %s", got)
			}
			if took := time.Since(began); took < 30*time.Millisecond || took > 100*time.Millisecond {
				t.Errorf("took %v", took)
			}
		})
	})
	t.Run("no longer than they may", func(t *testing.T) {
		inBubble(t, func(t *testing.T, f *logs) {
			db := f.openLogs(wait)
			write(t.Context(), t, db)
			began := time.Now()
			wantOn(t.Context(), t, db, "primary")
			if took := time.Since(began); took < time.Second || took > time.Second+10*time.Millisecond {
				t.Errorf("took %v", took)
			}
		})
	})
	t.Run("no longer than their context", func(t *testing.T) {
		inBubble(t, func(t *testing.T, f *logs) {
			db := f.openLogs(wait)
			write(t.Context(), t, db)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			began := time.Now()
			refusedWith(ctx, t, db, context.DeadlineExceeded)
			if took := time.Since(began); took != 20*time.Millisecond {
				t.Errorf("took %v", took)
			}
		})
	})
	t.Run("not for a bound on lag that is kept", func(t *testing.T) {
		inBubble(t, func(t *testing.T, f *logs) {
			db := f.openLogs(wait)
			pass(3 * time.Second)
			began := time.Now()
			wantOn(t.Context(), t, db, "replica")
			if took := time.Since(began); took != 0 {
				t.Errorf("took %v", took)
			}
		})
	})
}

// A replica that comes back with less has lost its proof.
func TestReplicaThatHasGoneBack(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		db := f.openLogs()
		write(t.Context(), t, db)
		f.apply()
		pass(2 * time.Second)
		wantOn(t.Context(), t, db, "replica")
		f.set(func() {
			for i := range f.standby {
				f.standby[i].replayed--
			}
		})
		for _, r := range f.replicas {
			r.Kill()
		}
		wantOn(t.Context(), t, db, "primary")
		pass(3 * time.Second)
		wantOn(t.Context(), t, db, "primary")
		f.apply()
		pass(3 * time.Second)
		wantOn(t.Context(), t, db, "replica")
	})
}

// A standby of another timeline, or of another system, is none of this primary's.
func TestReplicaOfAnotherHistory(t *testing.T) {
	for name, change := range map[string]func(l *pgLog){
		"timeline": func(l *pgLog) { l.timeline = 2 },
		"system":   func(l *pgLog) { l.system = 9 },
		"promoted": func(l *pgLog) { l.readOnly, l.timeline, l.flushed, l.inserted = false, 2, 2000, 2000 },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *logs) {
				db := f.openLogs()
				f.set(func() { change(&f.standby[0]); f.standby[0].replayed = 5000 })
				pass(2 * time.Second)
				for range 6 {
					if got := servedBy(t.Context(), t, db); got != "replica2" {
						t.Errorf("served by %s", got)
					}
				}
			})
		})
	}
}

func TestDivergedReplica(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		db := f.openLogs()
		f.set(func() { f.standby[0].replayed += 5 })
		pass(3 * time.Second)
		for range 6 {
			if got := servedBy(t.Context(), t, db); got != "replica2" {
				t.Errorf("served by %s", got)
			}
		}
		if n := f.told(replicated.NoticeDiverged); n != 1 {
			t.Errorf("told %d times", n)
		}
		// The primary gets as far, with other things. A new connection changes nothing.
		f.set(func() { f.primary.inserted += 50; f.primary.flushed += 50; f.standby[0].replayed += 45 })
		f.apply(1)
		f.replicas[0].Kill()
		pass(3 * time.Second)
		for range 6 {
			if got := servedBy(t.Context(), t, db); got != "replica2" {
				t.Errorf("served by %s", got)
			}
		}
	})
}

// While the primary does not answer, replicas serve what they are entitled to, for as
// long as they may.
func TestPrimaryThatIsDown(t *testing.T) {
	t.Run("nothing written", func(t *testing.T) {
		inBubble(t, func(t *testing.T, f *logs) {
			db := f.openLogs(func(c *replicated.Config) { c.MaxBlind = 30 * time.Second })
			f.fakes.primary.Down(driver.ErrBadConn)
			for range 28 {
				pass(time.Second)
				wantOn(t.Context(), t, db, "replica")
			}
			pass(5 * time.Second)
			refusedWith(t.Context(), t, db, replicated.ErrNotFresh)
			f.fakes.primary.Heal()
			pass(3 * time.Second)
			wantOn(t.Context(), t, db, "replica")
		})
	})
	t.Run("what was written is not applied", func(t *testing.T) {
		inBubble(t, func(t *testing.T, f *logs) {
			db := f.openLogs()
			write(t.Context(), t, db)
			f.fakes.primary.Down(driver.ErrBadConn)
			pass(time.Second)
			refusedWith(t.Context(), t, db, replicated.ErrNotFresh)
			refusedWith(replicated.WithFresh(t.Context()), t, db, replicated.ErrNotFresh)
			wantOn(replicated.WithStaleReads(t.Context(), time.Hour), t, db, "replica")
		})
	})
	t.Run("stale reads are welcome", func(t *testing.T) {
		inBubble(t, func(t *testing.T, f *logs) {
			db := f.openLogs(func(c *replicated.Config) { c.PrimaryDown = replicated.PrimaryDownStale })
			write(t.Context(), t, db)
			f.fakes.primary.Down(driver.ErrBadConn)
			pass(time.Second)
			f.routes()
			wantOn(t.Context(), t, db, "replica")
			if routes := f.routes(); !strings.HasSuffix(routes[len(routes)-1], " stale") {
				t.Errorf("routed %q", routes)
			}
		})
	})
}

// A primary that turns read-only has what it acknowledged, for all that is known. What
// others have committed since, on whatever server, it may lack.
func TestReadOnlyPrimary(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		db := f.openLogs(func(c *replicated.Config) { c.MaxBlind = 30 * time.Second })
		conn, err := db.Conn(t.Context()) // which has met it while it was writable
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		write(t.Context(), t, conn)
		f.set(func() { f.primary.readOnly, f.primary.replayed = true, f.primary.flushed })
		pass(2 * time.Second)
		ctx := t.Context()
		primary := replicated.WithPrimary(ctx)
		began := time.Now()
		for _, q := range []querier{db, conn} {
			wantOn(ctx, t, q, "primary")
			refusedWith(replicated.WithFresh(primary), t, q, replicated.ErrNotFresh)
			refusedWith(replicated.WithFresh(ctx), t, q, replicated.ErrNotFresh)
		}
		tx, err := db.BeginTx(replicated.WithFresh(primary), &sql.TxOptions{ReadOnly: true})
		if !errors.Is(err, replicated.ErrNotFresh) {
			t.Errorf("a read-only transaction: %v", err)
			_ = tx.Rollback()
		}
		cluster, err := replicated.ClusterOf(ctx, db)
		if err != nil {
			t.Fatal(err)
		}
		if tok, err := cluster.Token(ctx); err == nil {
			t.Errorf("a token %q of a write that no sample covers", tok)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the refusals took %v", took)
		}
		f.apply()
		pass(time.Second)
		before := f.fakes.primary.Stats().Connects
		for range 26 {
			pass(time.Second)
			wantOn(ctx, t, db, "primary")
		}
		if n := f.fakes.primary.Stats().Connects - before; n > 100 {
			t.Errorf("it was dialled %d times in 26 s", n)
		}
		pass(5 * time.Second)
		refusedWith(ctx, t, db, replicated.ErrNotFresh)
		f.set(func() { f.primary.readOnly = false })
		pass(2 * time.Second)
		wantOn(replicated.WithFresh(primary), t, db, "primary")
		wantOn(ctx, t, db, "replica")
	})
}

// Another server takes the primary's place and name.
func TestPrimaryIsReplaced(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		db := f.openLogs()
		pass(time.Second)
		f.set(func() { f.primary.start, f.primary.timeline = 9, 2 })
		f.fakes.primary.Kill()
		write(t.Context(), t, db) // over a connection that meets it first
		wantOn(t.Context(), t, db, "primary")
		if n := f.told(replicated.NoticePrimaryChanged); n != 1 {
			t.Errorf("told %d times", n)
		}
		f.set(func() {
			for i := range f.standby {
				f.standby[i].replayed = 5000 // far ahead, on the old timeline
			}
		})
		pass(2 * time.Second)
		wantOn(t.Context(), t, db, "primary")
		f.apply()
		pass(2 * time.Second)
		wantOn(t.Context(), t, db, "replica")
	})
}

// A primary that goes back has lost what it had: nothing that was proven counts.
func TestPrimaryHasGoneBack(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		db := f.openLogs()
		f.set(func() { f.primary.inserted, f.primary.flushed = 500, 500 })
		pass(2 * time.Second)
		wantOn(t.Context(), t, db, "primary")
		if n := f.told(replicated.NoticePrimaryWentBack); n != 1 {
			t.Errorf("told %d times", n)
		}
		if n := f.told(replicated.NoticeDiverged); n != 2 {
			t.Errorf("%d replicas have diverged", n)
		}
		f.apply()
		pass(3 * time.Second)
		wantOn(t.Context(), t, db, "replica")
	})
}

// Without a tracker time decides, and it is said.
func TestNoTrackerWorks(t *testing.T) {
	for _, tracker := range []replicated.TrackerMode{replicated.TrackerAuto, replicated.TrackerPosition} {
		t.Run(tracker.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *logs) {
				f.fakes.primary.ReplyContaining("aurora_version", func(context.Context, *fakedb.Call) (*fakedb.Reply, error) {
					r := fakedb.Row("false", nil, nil, nil, nil, nil, nil, nil, "20260101000000000001", "5432", "1", "16.1", "160001", "read committed", "on", "off")
					return &r, nil
				})
				f.fakes.primary.ReplyContaining("pg_control_system", func(context.Context, *fakedb.Call) (*fakedb.Reply, error) {
					return nil, pgError("42501")
				})
				db := f.openLogs(func(c *replicated.Config) { c.Tracker = tracker })
				if n := f.told(replicated.NoticeLagUnmeasured); n != 1 {
					t.Errorf("told %d times", n)
				}
				cluster, err := replicated.ClusterOf(t.Context(), db)
				if err != nil {
					t.Fatal(err)
				}
				write(t.Context(), t, db)
				began := time.Now()
				if tok, err := cluster.Token(t.Context()); err == nil {
					t.Errorf("a token %q of nothing", tok)
				}
				if took := time.Since(began); took > 3*time.Second {
					t.Errorf("that took %v", took)
				}
				wantOn(t.Context(), t, db, "primary")
				pass(6 * time.Second) // Config.Sticky
				if tracker == replicated.TrackerAuto {
					wantOn(t.Context(), t, db, "replica")
				} else {
					wantOn(t.Context(), t, db, "primary")
				}
			})
		})
	}
}

// A session stays on the replica that it has read from; elsewhere its reads see what
// it may have seen.
func TestMonotonicReadsStay(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		db := f.openLogs()
		f.set(func() { f.primary.inserted++; f.primary.flushed++ }) // somebody else's write
		f.apply(0)
		pass(2 * time.Second)
		for range 2 { // connections that are older than what is read
			wantOn(t.Context(), t, db, "replica")
		}
		pass(10 * time.Millisecond)
		const first = "replica1"
		var ctx context.Context
		for range 4 { // both are within the bound on lag
			if ctx = replicated.WithMonotonicReads(t.Context()); servedBy(ctx, t, db) == first {
				break
			}
		}
		for range 4 {
			if got := servedBy(ctx, t, db); got != first {
				t.Fatalf("served by %s after %s", got, first)
			}
		}
		nested, _ := replicated.WithSession(ctx)
		if got := servedBy(nested, t, db); got != first {
			t.Errorf("a nested session is served by %s after %s", got, first)
		}
		stayed := 0
		for range 8 {
			if servedBy(t.Context(), t, db) == first {
				stayed++
			}
		}
		if stayed == 8 {
			t.Error("reads that nobody wants to be monotonic stay too")
		}
		f.routes()

		// The replica is gone: the other one may lack what was seen.
		f.replicas[0].Down(driver.ErrBadConn)
		pass(2 * time.Second)
		f.routes()
		wantOn(ctx, t, db, "primary")
		if routes := f.routes(); routes[len(routes)-1] != "primary monotonic" {
			t.Errorf("routed %q", routes)
		}
		wantOn(t.Context(), t, db, "replica")
		f.apply()
		pass(2 * time.Second)
		wantOn(ctx, t, db, "replica")
	})
}

// A replica that has crashed may have less: the session does not go by its name.
func TestMonotonicReadsAcrossACrash(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		db := f.openLogs()
		f.replicas[1].Down(driver.ErrBadConn)
		f.set(func() { f.primary.inserted++; f.primary.flushed++ })
		f.apply()
		pass(2 * time.Second)
		ctx := replicated.WithMonotonicReads(t.Context())
		wantOn(ctx, t, db, "replica")
		f.replicas[0].Kill()
		f.set(func() { f.standby[0].replayed-- })
		wantOn(ctx, t, db, "primary")
		wantOn(t.Context(), t, db, "replica") // within the bound on lag
		pass(2 * time.Second)
		wantOn(ctx, t, db, "primary")
		f.apply()
		pass(2 * time.Second)
		wantOn(ctx, t, db, "replica")
	})
}

// After a read on the primary a replica has to have all that was there.
func TestMonotonicReadsAfterThePrimary(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		db := f.openLogs()
		pass(time.Second)
		ctx := replicated.WithMonotonicReads(t.Context())
		wantOn(replicated.WithPrimary(ctx), t, db, "primary")
		wantOn(ctx, t, db, "primary")
		wantOn(replicated.WithStaleReads(ctx, time.Hour), t, db, "primary")
		f.routes()
		wantOn(t.Context(), t, db, "replica")
		f.wantRoutes("replica read")
		pass(100 * time.Millisecond)
		wantOn(ctx, t, db, "replica")
	})
}
