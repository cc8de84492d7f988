package replicated_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"
)

func TestTwoClaimantsOnOneTimeline(t *testing.T) {
	roleBubble(t, func(t *testing.T, f *roleFakes) {
		db := f.openRoles()
		f.set(func() { f.standby[0].readOnly, f.standby[0].inserted, f.standby[0].flushed = false, 1000, 1000 })
		pass(10 * time.Second)
		err := insert(t.Context(), db)
		if !errors.Is(err, replicated.ErrNoPrimary) || !strings.Contains(fmt.Sprint(err), "replica1, primary") {
			t.Errorf("error %v", err)
		}
		if n := f.told(replicated.NoticeNoPrimary); n != 1 {
			t.Errorf("told %d times", n)
		}
		f.wantWrites(0, 0, 0)
		f.wantRoles(db, "replica2 replica, replica1 unknown, primary unknown")
		f.set(func() { f.standby[0].readOnly = true })
		pass(time.Second)
		write(t.Context(), t, db)
		f.wantWrites(1, 0, 0)
	})
}

// That there is no primary is told where there was none from the beginning, too.
func TestNoPrimaryFromTheBeginning(t *testing.T) {
	roleBubble(t, func(t *testing.T, f *roleFakes) {
		f.stepDown(0)
		db := f.unopened()
		inTime(t, 5*time.Second, 5*time.Second+100*time.Millisecond, func() {
			if err := insert(t.Context(), db); !errors.Is(err, replicated.ErrNoPrimary) {
				t.Errorf("error %v", err)
			}
		})
		if n := f.told(replicated.NoticeNoPrimary); n != 1 {
			t.Errorf("told %d times", n)
		}
	})
}

// The first statement of a process has its time to find a primary, whenever the handle
// was made.
func TestFirstStatementWaitsForAPrimary(t *testing.T) {
	roleBubble(t, func(t *testing.T, f *roleFakes) {
		f.stepDown(0)
		db := f.unopened()
		pass(time.Minute)
		time.AfterFunc(2*time.Second, func() { f.promote(1) })
		inTime(t, 2*time.Second, 2500*time.Millisecond, func() { write(t.Context(), t, db) })
		f.wantWrites(0, 1, 0)
	})
}

// A process that begins while a former primary is back as it was asks all nodes before
// it believes one.
func TestFormerPrimaryAnswersFirst(t *testing.T) {
	roleBubble(t, func(t *testing.T, f *roleFakes) {
		f.promote(1) // and nobody has told the former one
		for _, r := range f.replicas {
			r.OnConnect(func(context.Context) error { time.Sleep(50 * time.Millisecond); return nil })
		}
		db := f.unopened()
		write(t.Context(), t, db)
		f.wantWrites(0, 1, 0)
	})
}

// While nobody uses the handle nobody asks the nodes. What they said before that counts
// for nothing when it is used again.
func TestFailoverWhileNothingRuns(t *testing.T) {
	roleBubble(t, func(t *testing.T, f *roleFakes) {
		db := f.openRoles()
		db.SetMaxIdleConns(0)
		write(t.Context(), t, db)
		pass(time.Minute)
		f.promote(1) // and nobody has told the former one
		for _, r := range f.replicas {
			r.OnConnect(func(context.Context) error { time.Sleep(50 * time.Millisecond); return nil })
		}
		write(t.Context(), t, db)
		f.wantWrites(1, 1, 0)
	})
}

// A former primary that answers at last, to a question of the time before, does not
// become the primary of anything.
func TestLateAnswerOfAFormerPrimary(t *testing.T) {
	roleBubble(t, func(t *testing.T, f *roleFakes) {
		db := f.openRoles()
		ctx := t.Context()
		f.fakes.primary.Kill()
		h := f.fakes.primary.Hold(fakedb.OpConnect)
		<-h.Entered()
		f.promote(1)
		write(ctx, t, db)
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		write(ctx, t, tx)
		pass(10 * time.Millisecond)
		h.Release()
		pass(2 * time.Second)
		if err := tx.Commit(); err != nil {
			t.Errorf("a transaction on the new primary: %v", err)
		}
		f.wantWrites(0, 2, 0)
		if n := f.told(replicated.NoticePrimaryChanged); n != 1 {
			t.Errorf("told %d times of the change", n)
		}
	})
}

// Without a tracker the roles are followed all the same, and the nodes are left in peace
// when a primary is known again.
func TestRolesWithoutATracker(t *testing.T) {
	roleBubble(t, func(t *testing.T, f *roleFakes) {
		db := f.openRoles(func(c *replicated.Config) { c.Tracker = replicated.TrackerOff })
		write(t.Context(), t, db)
		f.stepDown(0)
		pass(2 * time.Second)
		f.promote(1)
		write(t.Context(), t, db)
		f.wantWrites(1, 1, 0)
		pass(time.Second)
		before := probes(f.replicas[1])
		pass(10 * time.Second)
		if n := probes(f.replicas[1]) - before; n > 25 {
			t.Errorf("a node was asked %d times in 10 s", n)
		}
		if n := f.told(replicated.NoticePrimaryChanged); n != 1 {
			t.Errorf("told %d times of the change", n)
		}
	})
}

func TestWritesThatAFailoverLoses(t *testing.T) {
	for name, tt := range map[string]struct {
		applied bool // the next primary has all
		later   bool // a write was made after the last sample of the former primary
		want    replicated.NoticeKind
	}{
		"none":     {true, false, 0},
		"in doubt": {true, true, replicated.NoticeWritesInDoubt},
		"lost":     {false, false, replicated.NoticeWritesLost},
	} {
		t.Run(name, func(t *testing.T) {
			roleBubble(t, func(t *testing.T, f *roleFakes) {
				db := f.openRoles()
				write(t.Context(), t, db)
				if tt.applied {
					f.apply()
				}
				pass(3 * time.Second)
				if tt.later {
					h := f.fakes.primary.Hold(fakedb.OpQuery)
					defer h.Release()
					write(t.Context(), t, db)
				}
				f.fakes.primary.Down(driver.ErrBadConn)
				f.promote(1)
				pass(100 * time.Millisecond)
				write(t.Context(), t, db)
				pass(2 * time.Second)
				for _, kind := range []replicated.NoticeKind{replicated.NoticeWritesInDoubt, replicated.NoticeWritesLost} {
					n, want := f.told(kind), 0
					if kind == tt.want {
						want = 1
					}
					if n != want {
						t.Errorf("%v was told of %d times, want %d", kind, n, want)
					}
				}
			})
		})
	}
}

// A token is honoured by a process that has only just begun.
func TestTokenAtTheBeginning(t *testing.T) {
	roleBubble(t, func(t *testing.T, f *roleFakes) {
		name := func(c *replicated.Config) { c.ClusterName = "token-at-the-beginning" }
		db := f.openRoles(name)
		write(t.Context(), t, db)
		cluster, err := replicated.ClusterOf(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		tok, err := cluster.Token(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		f.apply()
		f.fakes.primary.OnConnect(func(context.Context) error { time.Sleep(50 * time.Millisecond); return nil })
		other := f.unopened(name)
		ctx, err := replicated.WithToken(t.Context(), tok)
		if err != nil {
			t.Fatal(err)
		}
		if err := other.QueryRowContext(ctx, plainSelect).Scan(new(string)); err != nil {
			t.Errorf("a read with a token: %v", err)
		}
	})
}

// One node is a cluster.
func TestOneNodeWhoseRoleIsFollowed(t *testing.T) {
	for _, reads := range []replicated.ReadsMode{replicated.ReadsAuto, replicated.ReadsOff} {
		roleBubble(t, func(t *testing.T, f *roleFakes) {
			db := f.openRoles(func(c *replicated.Config) { c.Nodes, c.Reads = c.Nodes[2:], reads })
			write(t.Context(), t, db)
			wantOn(t.Context(), t, db, "primary")
			f.stepDown(0)
			time.AfterFunc(time.Second, func() { f.set(func() { f.logs.primary.readOnly = false }) })
			inTime(t, time.Second, 1200*time.Millisecond, func() { write(t.Context(), t, db) })
			f.wantWrites(2, 0, 0)
		})
	}
}

// A primary that is listed as such and has become a standby is written to by nobody.
func TestStaticPrimaryThatIsReadOnly(t *testing.T) {
	roleBubble(t, func(t *testing.T, f *roleFakes) {
		db := f.open(func(c *replicated.Config) { c.Driver, c.Tracker = "postgres", replicated.TrackerAuto })
		write(t.Context(), t, db)
		f.stepDown(0)
		pass(2 * time.Second)
		f.promote(1)
		before := sent(f.fakes.primary, "INSERT INTO t VALUES (1)")
		if err := insert(t.Context(), db); !errors.Is(err, replicated.ErrNoPrimary) {
			t.Errorf("error %v", err)
		}
		if n := sent(f.fakes.primary, "INSERT INTO t VALUES (1)") - before; n != 0 {
			t.Errorf("it was sent %d writes", n)
		}
		f.wantWrites(1, 0, 0)
		f.set(func() { f.logs.primary.readOnly = false })
		write(t.Context(), t, db)
	})
}

// One server under two names takes each write once, and is one claimant.
func TestOneServerUnderTwoNames(t *testing.T) {
	roleBubble(t, func(t *testing.T, f *roleFakes) {
		db := f.openRoles(func(c *replicated.Config) {
			c.Nodes = append(c.Nodes, replicated.Node{Name: "alias", Connector: f.fakes.primary.Connector(f.shape)})
		})
		for range 3 {
			write(t.Context(), t, db)
		}
		f.wantWrites(3, 0, 0)
		f.fakes.primary.Down(driver.ErrBadConn)
		f.promote(1)
		pass(time.Second)
		f.fakes.primary.Heal() // as it was, twice
		pass(time.Second)
		write(t.Context(), t, db)
		f.wantWrites(3, 1, 0)
		if n := f.told(replicated.NoticeNoPrimary); n != 0 {
			t.Errorf("told %d times that there is no primary", n)
		}
	})
}

// The writers of a cluster that changes its primary again and again: none waits for
// ever, and no write is executed twice.
func TestPrimaryChangesUnderLoad(t *testing.T) {
	roleBubble(t, func(t *testing.T, f *roleFakes) {
		db := f.openRoles()
		ctx, cancel := context.WithCancel(t.Context())
		var done, sentOnce atomic.Int64
		var writers sync.WaitGroup
		for i := range 16 {
			writers.Go(func() {
				for ctx.Err() == nil {
					sentOnce.Add(1)
					if err := insert(t.Context(), db); err == nil {
						done.Add(1)
					} // else it was not sent, or hung in a former primary that has gone silent
					time.Sleep(time.Duration(7+i) * time.Millisecond)
				}
			})
		}
		for i := range 12 {
			time.Sleep(700 * time.Millisecond)
			from, to := i%3, (i+1)%3
			switch i % 4 {
			case 0: // a switchover
				f.stepDown(from)
				time.Sleep(30 * time.Millisecond)
				f.promote(to)
			case 1: // both for a moment
				f.promote(to)
				time.Sleep(600 * time.Millisecond)
				f.stepDown(from)
			case 2: // a failover
				f.servers()[from].Down(driver.ErrBadConn)
				f.promote(to)
				time.Sleep(600 * time.Millisecond)
				f.stepDown(from)
				f.servers()[from].Heal()
			default: // by and by
				f.stepDown(from)
				time.Sleep(2 * time.Second)
				f.promote(to)
			}
			f.set(func() { // the others follow
				for j := range f.writes {
					f.log(j).timeline = f.log(to).timeline
				}
			})
		}
		cancel()
		writers.Wait()
		all := f.executed()
		if n := all[0] + all[1] + all[2]; n != done.Load() {
			t.Errorf("%d writes were executed, %d have succeeded of %d", n, done.Load(), sentOnce.Load())
		}
	})
}
