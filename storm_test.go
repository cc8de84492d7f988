package replicated_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
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

// crowd is how many goroutines meet a fault at the same time.
const crowd = 500

// dialGauge counts the dials of a fake server: how many there were, and how many at
// a time.
type dialGauge struct{ total, flying, most atomic.Int64 }

// gaugeDials counts the dials of a server from now on. answer decides about each.
func gaugeDials(s *fakedb.Server, answer func(context.Context) error) *dialGauge {
	g := new(dialGauge)
	s.OnConnect(func(ctx context.Context) error {
		g.total.Add(1)
		n := g.flying.Add(1)
		defer g.flying.Add(-1)
		for m := g.most.Load(); n > m && !g.most.CompareAndSwap(m, n); m = g.most.Load() {
		}
		return answer(ctx)
	})
	return g
}

// soon is a server that takes a moment for everything, so that a crowd is one.
func soon(err error) func(context.Context) error {
	return func(context.Context) error { time.Sleep(5 * time.Millisecond); return err }
}

// late is a server whose network says after a second that it is not there.
func late(ctx context.Context) error {
	select {
	case <-time.After(time.Second):
		return errors.New("no route to host")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// crowdReads has a crowd read once each and returns the longest that one of them took.
func (f *fakes) crowdReads(db *sql.DB) (longest time.Duration) {
	f.t.Helper()
	var took atomic.Int64
	var readers sync.WaitGroup
	for range crowd {
		readers.Go(func() {
			began := time.Now()
			if err := db.QueryRowContext(f.t.Context(), plainSelect).Scan(new(string)); err != nil {
				f.t.Errorf("a read failed: %v", err)
			}
			for d, old := int64(time.Since(began)), took.Load(); d > old && !took.CompareAndSwap(old, d); old = took.Load() {
			}
		})
	}
	readers.Wait()
	return time.Duration(took.Load())
}

// A crowd finds a replica gone, in one of the ways in which one goes. All its reads
// are served, none waits for more than the time allowed for two dials, and no node is
// stormed: neither the one that is gone, nor those that have its share to carry now.
func TestStormOnAReplicaThatIsGone(t *testing.T) {
	const allowed = 2 * time.Second // replicated.connect_timeout
	for name, tt := range map[string]struct {
		answer func(context.Context) error
		within time.Duration
	}{
		"refuses":      {soon(errors.New("connection refused")), time.Second},
		"refuses late": {late, 2 * allowed},
		"hangs":        {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, 2*allowed + time.Second},
		"starts up":    {soon(pgError("57P03")), time.Second},
		"is full":      {soon(pgError("53300")), time.Second},
		"is full, too": {soon(mysqlError(1040)), time.Second},
		"login":        {soon(pgError("28P01")), time.Second},
	} {
		for _, replicas := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s/%d", name, replicas), func(t *testing.T) {
				faketime.Test(t, func(t *testing.T) {
					f := newFakes(t, replicas, fakedb.Full)
					for _, s := range f.servers() {
						s.OnQuery(func(context.Context, *fakedb.Call) (*fakedb.Reply, error) {
							time.Sleep(5 * time.Millisecond)
							return nil, nil
						})
					}
					db := f.open()
					gone := gaugeDials(f.replicas[0], tt.answer)
					healthy := []*dialGauge{gaugeDials(f.primary, soon(nil))}
					for _, r := range f.replicas[1:] {
						healthy = append(healthy, gaugeDials(r, soon(nil)))
					}
					f.replicas[0].Kill() // and with it the connections that there were

					if took := f.crowdReads(db); took > tt.within {
						t.Errorf("a read took %v, want %v at most", took, tt.within)
					}
					// Those that were dialling when it was taken out, and those that had got
					// their places before that was known.
					if n := gone.total.Load(); n > 2*replicated.MaxDials+2 {
						t.Errorf("%d reads have dialled the replica %d times", crowd, n)
					}
					for i, g := range append(healthy, gone) {
						if n := g.most.Load(); n > replicated.MaxDials {
							t.Errorf("%d dials of a node at a time (%d), want at most %d", n, i, replicated.MaxDials)
						}
					}
					// Now it is known, and only the probe asks again.
					before := gone.total.Load()
					if took := f.crowdReads(db); took > time.Second {
						t.Errorf("with the replica taken out a read took %v", took)
					}
					if n := gone.total.Load() - before; n > 2 {
						t.Errorf("%d more reads have dialled the replica %d times", crowd, n)
					}
				})
			})
		}
	}
}

// A crowd that is reading from a replica when it comes to hang is set free by the
// probe, and has to be served elsewhere, all at once.
func TestStormFromAReplicaThatHangsAmidReads(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 2, fakedb.Full)
		db := f.open()
		gauges := []*dialGauge{gaugeDials(f.primary, soon(nil)), gaugeDials(f.replicas[0], soon(nil)), gaugeDials(f.replicas[1], soon(nil))}
		hold := f.replicas[0].Hold(fakedb.OpQuery)
		var readers sync.WaitGroup
		for range crowd {
			readers.Go(func() { wantOn(t.Context(), t, db, "replica") })
		}
		time.Sleep(time.Second) // half of them are in it now
		if n := stats(t, db).Nodes[1].InFlight; n < crowd/4 {
			t.Errorf("%d reads are in the replica that hangs", n)
		}
		// What the probe does to real sockets: the reads in them end.
		gone := gaugeDials(f.replicas[0], soon(errors.New("refused")))
		gauges = append(gauges, gone)
		f.replicas[0].Reply(plainSelect, fakedb.Reply{Err: pgError("57P01"), Break: true})
		hold.Release()
		readers.Wait()
		for i, g := range gauges {
			if n := g.most.Load(); n > replicated.MaxDials {
				t.Errorf("%d dials of node %d at a time, want at most %d", n, i, replicated.MaxDials)
			}
		}
		if got := f.breakers(db)[0]; got == replicated.BreakerClosed {
			t.Error("the replica is not taken out")
		}
		if n := gone.total.Load(); n > replicated.MaxDials {
			t.Errorf("the replica was dialled %d times after that", n)
		}
	})
}

// A node that turns us away is up: it is left alone for a moment, which differs from
// process to process, so that they do not all come back as one.
func TestProcessesThatAreTurnedAwayComeBackOneByOne(t *testing.T) {
	for name, tt := range map[string]struct {
		refusal error
		least   time.Duration // that each stays away
	}{
		"full": {pgError("53300"), time.Second}, "full, too": {mysqlError(1040), time.Second},
		"login": {pgError("28P01"), 5 * time.Second}, "login, too": {mysqlError(1045), 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) { turnProcessesAway(t, tt.refusal, tt.least) })
		})
	}
}

// turnProcessesAway has a server refuse many processes, which read all the time, and
// looks when they ask again. Each has a fake of its own, which tells who asks.
func turnProcessesAway(t *testing.T, refusal error, least time.Duration) {
	const processes = 40
	type process struct {
		*fakes
		db    *sql.DB
		dials []time.Duration // after the server was full
	}
	all := make([]*process, processes)
	for i := range all {
		all[i] = &process{fakes: newFakes(t, 1, fakedb.Full)}
		all[i].db = all[i].open(func(c *replicated.Config) { c.ReplicaMaxIdle = -1 })
		time.Sleep(time.Duration(rand.Int64N(int64(time.Second)))) // they do not start as one
	}
	began := time.Now()
	var clients sync.WaitGroup
	for _, p := range all {
		var mu sync.Mutex
		p.replicas[0].OnConnect(func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			p.dials = append(p.dials, time.Since(began))
			return refusal
		})
		p.replicas[0].Kill()
		clients.Go(func() {
			for time.Since(began) < 3*least {
				wantOn(t.Context(), t, p.db, "primary")
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	clients.Wait()

	stayed := make(map[time.Duration]int) // by how long they stayed away
	width := least / 20
	for _, p := range all {
		first := p.dials[0]
		again := slices.IndexFunc(p.dials, func(at time.Duration) bool { return at >= first+least })
		if again < 0 {
			t.Fatalf("a process has not asked again: %v", p.dials)
		}
		// The probe's turn may have come just after the refusal.
		if again > 1 {
			t.Errorf("a process has asked while it was to stay away: %v", p.dials)
		}
		stayed[(p.dials[again]-p.dials[again-1]).Truncate(width)]++
		if n := stats(t, p.db).Nodes[1]; n.Breaker != replicated.BreakerClosed || !n.TurnedAway || len(p.states) > 0 {
			t.Errorf("breaker %v, turned away: %v, states: %v", n.Breaker, n.TurnedAway, p.states)
		}
	}
	for d, n := range stayed {
		if n > processes/2 {
			t.Errorf("%d of %d processes have asked again after %v, within %v", n, processes, d, width)
		}
	}
	for _, p := range all {
		p.replicas[0].OnConnect(nil)
	}
	time.Sleep(2 * least)
	for _, p := range all {
		wantOn(t.Context(), t, p.db, "replica")
	}
}

// The same with servers, and a proxy that counts: a replica that refuses, one that
// accepts and never answers, and one that lets no more in.
func TestStormOnServers(t *testing.T) {
	noGoroutineLeak(t)
	eachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		t.Parallel()
		c := replicatedtest.Start(t, e, replicatedtest.Options{NoStatementLog: true, Settings: map[string]string{"max_connections": "700"}})
		name := table(t, c, "id int")
		for _, tt := range []struct {
			name   string
			gone   func(*replicatedtest.NodeProxy)
			within time.Duration
		}{
			{"refuses", func(p *replicatedtest.NodeProxy) { p.Refuse() }, 6 * time.Second},
			{"hangs", func(p *replicatedtest.NodeProxy) { p.Stall(replicatedtest.BothWays) }, 6 * time.Second},
			{"drops", func(p *replicatedtest.NodeProxy) { p.Discard(replicatedtest.BothWays) }, 6 * time.Second},
			{"cuts", func(p *replicatedtest.NodeProxy) { p.Cut() }, 6 * time.Second},
		} {
			t.Run(tt.name, func(t *testing.T) {
				proxy := c.Replicas()[0].Proxy(t)
				db := openDSN(t, c.DSNAt([]string{c.Primary().Addr(), proxy.Addr(), c.Replicas()[1].Addr()}, ownFloors(t)))
				measured(t, c, db)
				for range 20 { // both replicas have idle connections
					queryInt(t, db, "SELECT count(*) FROM "+name)
				}
				dialled := proxy.Traffic().Connections
				open := proxy.Open()
				tt.gone(proxy)
				most := proxyMost(t, proxy)
				longest := stormReads(t, db, "SELECT count(*) FROM "+name)
				if longest > tt.within {
					t.Errorf("a read took %v", longest)
				}
				n := proxy.Traffic().Connections - dialled
				t.Logf("%d reads dialled %d times; open %d before, %d at most; the longest took %v", crowd, n, open, most(), longest)
				switch tt.name {
				case "cuts": // it is up, and has its share
				case "refuses":
				default:
					if n > 2*replicated.MaxDials+10 {
						t.Errorf("%d reads have dialled the replica %d times", crowd, n)
					}
					// The proxy counts those that were given up until it has noticed.
					if m := most() - open; m > 2*replicated.MaxDials+2 {
						t.Errorf("%d dials at a time", m)
					}
				}
			})
		}
	})
}

// stormReads has a crowd read once each and returns the longest that one took.
func stormReads(t *testing.T, db *sql.DB, query string) (longest time.Duration) {
	t.Helper()
	took := make([]time.Duration, crowd)
	var readers sync.WaitGroup
	for i := range crowd {
		readers.Go(func() {
			began := time.Now()
			if err := db.QueryRowContext(t.Context(), query).Scan(new(int)); err != nil {
				t.Errorf("a read failed: %v", err)
			}
			took[i] = time.Since(began)
		})
	}
	readers.Wait()
	return slices.Max(took)
}

// proxyMost looks from now on how many connections the proxy has, until the test
// ends or most is called.
func proxyMost(t *testing.T, p *replicatedtest.NodeProxy) (most func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	highest := 0
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			highest = max(highest, p.Open())
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}()
	return func() int {
		cancel()
		<-done
		return highest
	}
}
