package replicated_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"
)

func TestStatementsWaitForAPrimary(t *testing.T) {
	roleBubble(t, func(t *testing.T, f *roleFakes) {
		db := f.openRoles()
		f.fakes.primary.Down(driver.ErrBadConn)
		time.AfterFunc(2*time.Second, func() { f.promote(2) })
		inTime(t, 2*time.Second, 2500*time.Millisecond, func() { write(t.Context(), t, db) })
		f.wantWrites(0, 0, 1)
	})
}

func TestStatementsWaitNoLongerThanPrimaryWait(t *testing.T) {
	for name, lose := range map[string]func(f *roleFakes){
		"dead":      func(f *roleFakes) { f.fakes.primary.Down(driver.ErrBadConn) },
		"read-only": func(f *roleFakes) { f.stepDown(0) },
	} {
		t.Run(name, func(t *testing.T) {
			roleBubble(t, func(t *testing.T, f *roleFakes) {
				db := f.openRoles()
				lose(f)
				pass(time.Second)
				inTime(t, 4*time.Second, 4600*time.Millisecond, func() { // it was noticed within half a second
					err := insert(t.Context(), db)
					if name == "read-only" && !errors.Is(err, replicated.ErrNoPrimary) || err == nil {
						t.Errorf("error %v", err)
					}
				})
				for range 5 {
					inTime(t, 0, 200*time.Millisecond, func() {
						if err := insert(t.Context(), db); err == nil {
							t.Error("a write without a primary has succeeded")
						}
					})
				}
				f.wantWrites(0, 0, 0)
				f.promote(1)
				pass(200 * time.Millisecond)
				write(t.Context(), t, db)
				f.wantWrites(0, 1, 0)
			})
		})
	}
}

func TestWaitingForAPrimaryEndsWithTheContext(t *testing.T) {
	roleBubble(t, func(t *testing.T, f *roleFakes) {
		db := f.openRoles()
		f.stepDown(0)
		pass(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		inTime(t, 300*time.Millisecond, 300*time.Millisecond, func() {
			if err := insert(ctx, db); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v", err)
			}
		})
	})
}

// Nothing stays behind when the handle is closed under statements that wait.
func TestCloseWhileStatementsWaitForAPrimary(t *testing.T) {
	roleBubble(t, func(t *testing.T, f *roleFakes) {
		db := f.openRoles()
		f.stepDown(0)
		pass(time.Second)
		var waiting sync.WaitGroup
		for range 20 {
			waiting.Go(func() {
				if err := insert(t.Context(), db); err == nil {
					t.Error("a write without a primary has succeeded")
				}
			})
		}
		pass(10 * time.Millisecond)
		inTime(t, 0, 50*time.Millisecond, func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
			waiting.Wait()
		})
	})
}

func TestManyWritersWithoutAPrimary(t *testing.T) {
	roleBubble(t, func(t *testing.T, f *roleFakes) {
		db := f.openRoles()
		f.stepDown(0)
		pass(10 * time.Second) // they fail at once
		var before []int
		for _, s := range f.servers() {
			before = append(before, probes(s))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var writers sync.WaitGroup
		for range 64 {
			writers.Go(func() {
				for ctx.Err() == nil {
					if err := insert(ctx, db); err == nil {
						t.Error("a write without a primary has succeeded")
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
		writers.Wait()
		for i, s := range f.servers() {
			if n := probes(s) - before[i]; n > 520 {
				t.Errorf("%s was asked %d times in 10 s", s.Name(), n)
			}
		}
		f.wantWrites(0, 0, 0)
	})
}

// A node that hangs does not hold statements up for longer than it takes to find that
// out.
func TestHungNodeWithoutAPrimary(t *testing.T) {
	roleBubble(t, func(t *testing.T, f *roleFakes) {
		db := f.openRoles()
		f.stepDown(0)
		pass(10 * time.Second)
		for _, op := range []fakedb.Op{fakedb.OpQuery, fakedb.OpConnect} {
			defer f.replicas[0].Hold(op).Release()
		}
		inTime(t, 0, 1100*time.Millisecond, func() {
			if err := insert(t.Context(), db); !errors.Is(err, replicated.ErrNoPrimary) {
				t.Errorf("error %v", err)
			}
		})
		pass(2 * time.Second)
		for range 10 {
			inTime(t, 0, 50*time.Millisecond, func() {
				if err := insert(t.Context(), db); !errors.Is(err, replicated.ErrNoPrimary) {
					t.Errorf("error %v", err)
				}
			})
		}
	})
}

// The breaker keeps reads away from a node, and no question for its role: it may be the
// next primary.
func TestNodesOutOfOrderAreAskedForTheirRole(t *testing.T) {
	roleBubble(t, func(t *testing.T, f *roleFakes) {
		db := f.openRoles(func(c *replicated.Config) { c.BreakerOpen = time.Minute })
		f.replicas[0].Down(driver.ErrBadConn)
		pass(5 * time.Second)
		f.fakes.primary.Down(driver.ErrBadConn)
		f.replicas[0].Heal()
		f.promote(1)
		inTime(t, 0, time.Second, func() { write(t.Context(), t, db) })
		f.wantWrites(0, 1, 0)
	})
}

// A primary that has no room is not dialled again and again for each statement.
func TestPrimaryWithoutRoom(t *testing.T) {
	roleBubble(t, func(t *testing.T, f *roleFakes) {
		db := f.openRoles()
		db.SetMaxIdleConns(0)
		pass(time.Second)
		f.fakes.primary.OnConnect(func(context.Context) error { return pgError("53300") })
		calls := len(f.fakes.primary.Calls())
		if err := insert(t.Context(), db); err == nil || !strings.Contains(err.Error(), "53300") {
			t.Errorf("error %v", err)
		}
		dials := 0
		for _, c := range f.fakes.primary.Calls()[calls:] {
			if c.Op == fakedb.OpConnect {
				dials++
			}
		}
		if dials != 1 {
			t.Errorf("it was dialled %d times", dials)
		}
	})
}

// Writers of a primary that hangs do not queue for dialling it.
func TestManyWritersOfAHungPrimary(t *testing.T) {
	roleBubble(t, func(t *testing.T, f *roleFakes) {
		db := f.openRoles()
		db.SetMaxIdleConns(0)
		pass(time.Second)
		f.fakes.primary.Kill()
		for _, op := range []fakedb.Op{fakedb.OpQuery, fakedb.OpConnect} {
			defer f.fakes.primary.Hold(op).Release()
		}
		for round, most := range []time.Duration{7500 * time.Millisecond, 2500 * time.Millisecond} {
			var writers sync.WaitGroup
			var atOnce atomic.Int64
			for range 64 {
				writers.Go(func() {
					began := time.Now()
					inTime(t, 0, most, func() {
						if err := insert(t.Context(), db); err == nil {
							t.Error("a write on a primary that hangs has succeeded")
						}
					})
					if time.Since(began) < 100*time.Millisecond {
						atOnce.Add(1)
					}
				})
			}
			writers.Wait()
			if n := atOnce.Load(); round > 0 && n < 64-replicated.MaxDials {
				t.Errorf("%d of 64 statements failed at once", n)
			}
		}
		f.wantWrites(0, 0, 0)
	})
}
