package replicated_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"
	"github.com/sqlreplicated/replicated/internal/faketime"
)

// The probe finds a dead replica without any read, takes it out, and brings it
// back when it answers again. After one probe that has failed it does not wait for
// the usual time of the next.
func TestProbeOpensAndClosesTheBreaker(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 2, fakedb.PQLike)
		db := f.open(f.asPostgres())
		wantOn(t.Context(), t, db, "replica")
		wantOn(t.Context(), t, db, "replica")
		f.replicas[0].Down(errors.New("refused"))
		time.Sleep(replicated.ProbeEvery + 200*time.Millisecond)
		if got := f.breakers(db); !slices.Equal(got, []replicated.BreakerState{replicated.BreakerOpen, replicated.BreakerClosed}) {
			t.Fatalf("the breakers are %v", got)
		}
		if n := f.replicas[0].Stats().OpenConns; n != 0 {
			t.Errorf("%d connections of the node that is out are left", n)
		}
		f.routes()
		connects := f.replicas[0].Stats().Connects
		for range 10 {
			if got := servedBy(t.Context(), t, db); got != "replica2" {
				t.Errorf("a read was served by %s", got)
			}
		}
		if n := f.replicas[0].Stats().Connects - connects; n != 0 {
			t.Errorf("reads have dialled the node that is out %d times", n)
		}

		f.replicas[0].Heal()
		time.Sleep(40 * time.Second)
		if got := f.breakers(db); !slices.Equal(got, closedBreakers) {
			t.Errorf("the breakers are %v", got)
		}
		var served []string
		for range 20 { // at first it gets one in eleven
			served = append(served, servedBy(t.Context(), t, db))
		}
		if !slices.Contains(served, "replica1") {
			t.Errorf("the reads are served by %v", served)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.states) != 2 || f.states[0].State != replicated.BreakerOpen || f.states[0].Node != "replica1" || f.states[0].Err == nil ||
			f.states[1].State != replicated.BreakerClosed || f.states[1].Err != nil {
			t.Errorf("events %v", f.states)
		}
	})
}

// A node that accepts connections and never answers is found by the probe's own
// time limit.
func TestProbeFindsAHungReplica(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.PQLike)
		db := f.open(f.asPostgres())
		hold := f.replicas[0].Hold(fakedb.OpQuery)
		defer hold.Release()
		time.Sleep(10 * time.Second)
		if got := f.breakers(db); got[0] == replicated.BreakerClosed {
			t.Error("the breaker is closed")
		}
		wantOn(t.Context(), t, db, "primary")
	})
}

// Probes of a node that stays dead come ever more seldom.
func TestProbesOfADeadReplicaBackOff(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.PQLike)
		f.open(f.asPostgres())
		f.replicas[0].Down(errors.New("refused"))
		time.Sleep(10 * time.Minute)
		before := f.replicas[0].Stats().Connects
		time.Sleep(10 * time.Minute)
		if n := f.replicas[0].Stats().Connects - before; n < 15 || n > 20 {
			t.Errorf("%d probes in ten minutes, want one each 30 s to 38 s", n)
		}
	})
}

// A login that is refused is not tried twenty times a second: accounts are locked
// for less.
func TestProbesBackOffFromANodeThatTurnsUsAway(t *testing.T) {
	for name, refusal := range map[string]error{"too many": pgError("53300"), "password": pgError("28P01")} {
		t.Run(name, func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) {
				f := newFakes(t, 1, fakedb.PQLike)
				f.replicas[0].OnConnect(func(context.Context) error { return refusal })
				db := f.open(f.asPostgres())
				time.Sleep(time.Minute)
				if n := f.replicas[0].Stats().Connects; n > 65 {
					t.Errorf("%d logins in a minute", n)
				}
				if got := f.breakers(db); got[0] != replicated.BreakerClosed {
					t.Errorf("the breaker is %v", got[0])
				}
				f.replicas[0].OnConnect(nil)
				time.Sleep(15 * time.Second)
				wantOn(t.Context(), t, db, "replica")
			})
		})
	}
}

// Three failures in a row open the breaker, whoever meets them.
func TestReadsOpenTheBreaker(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		db := f.open()
		f.replicas[0].Down(errors.New("refused"))
		before := f.replicas[0].Stats().Connects
		for range 10 {
			wantOn(t.Context(), t, db, "primary")
		}
		if n := f.replicas[0].Stats().Connects - before; n != 3 {
			t.Errorf("ten reads have dialled the dead replica %d times, want 3", n)
		}
	})
}

// One lost connection is one failure, however many statements meet it.
func TestALostConnectionCountsOnce(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		db := f.open()
		tx := begin(t, db, readOnlyTx)
		f.replicas[0].Kill()
		for range 10 {
			if err := tx.QueryRowContext(t.Context(), plainSelect).Scan(new(string)); err == nil {
				t.Error("no error")
			}
		}
		if err := tx.Rollback(); err == nil {
			t.Error("no error at the end")
		}
		if got := f.breakers(db); got[0] != replicated.BreakerClosed {
			t.Errorf("the breaker is %v", got[0])
		}
	})
}

// A server that says that it goes down is believed at once.
func TestOneWordOfShutdownOpensTheBreaker(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		db := f.open()
		f.everywhere(plainSelect, fakedb.Error(pgError("57P01")))
		wantOn(t.Context(), t, db, "primary")
		if got := f.breakers(db); got[0] != replicated.BreakerOpen {
			t.Errorf("the breaker is %v", got[0])
		}
	})
}
