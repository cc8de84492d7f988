package replicated_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/lib/pq"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/history"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// Everything at once, and the roles change as well: programs work on a cluster whose
// nodes are killed, hang, lag, lose their connections and take each other's place. What
// is acknowledged outlives that, as one replica has it by then. No read sees less than
// it is entitled to, each acknowledged write is there once, none twice, and nothing is
// left of it: no goroutine, no connection, no memory.
//
// REPLICATED_SEED makes the same faults in the same order.
func TestChaosStress(t *testing.T) {
	noGoroutineLeak(t)
	m, seed := &chaosMemory{}, promiseSeed(t)
	t.Logf("REPLICATED_SEED=%d", seed)
	for _, e := range []replicatedtest.Engine{replicatedtest.Postgres, replicatedtest.MariaDB} {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			runChaos(t, e, seed, m)
		})
	}
}

// chaosFor is how long it lasts. In a short run the decks do not run out.
func chaosFor(t *testing.T) time.Duration {
	t.Helper()
	switch {
	case os.Getenv("REPLICATED_SOAK") != "":
		return stressFor(t)
	case os.Getenv("CI") != "":
		return 20 * time.Second
	default:
		return 15 * time.Second
	}
}

// chaos is the workload of the promise, and a ledger, on a cluster whose roles change.
type chaos struct {
	*promise
	ledger *chaosLedger
	open   int // connections that a program had to one node, at most
}

func runChaos(t *testing.T, e replicatedtest.Engine, seed uint64, m *chaosMemory) {
	d := chaosFor(t)
	c := newChaos(t, e, seed)
	m.add(c.rec)
	n := newChaosNemesis(c, seed)
	statements, abandon := context.WithCancel(t.Context())
	defer abandon()
	ctx, cancel := context.WithCancel(statements)
	rounds, stop := context.WithTimeout(ctx, d)
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() { c.ledger.run(ctx, statements, seed) })
	wg.Go(func() { c.watchPools(ctx) })
	quarter := time.AfterFunc(d/4, m.first)
	wg.Go(func() { c.run(statements, seed, effort{time: d, limit: d}) })
	err := n.run(rounds)
	if err == nil {
		err = n.resume()
	}
	if err != nil {
		abandon() // with nobody to restore the cluster they might never end
	}
	cancel()
	stuck := time.AfterFunc(time.Minute, func() {
		t.Errorf("statements have not ended a minute after the last fault; they were %s", strings.Join(n.told, ", "))
		abandon()
	})
	wg.Wait()
	stuck.Stop()
	if err != nil {
		t.Fatalf("the nemesis after %v", err)
	}
	quarter.Stop()
	m.last(t)
	c.healed(t)
	c.audit(t)
	for _, node := range c.cluster.Nodes() {
		c.ledger.audit(t, node)
	}
	c.close(t)
	r := &promiseRun{history: c.rec.History(), outages: c.outages, statements: c.statements.Load(), took: d}
	t.Log(n.report(r))
	r.check(t, history.LevelProcess)
	if c.open > chaosMostOpen {
		t.Errorf("a program had %d connections to one node, want %d at most", c.open, chaosMostOpen)
	}
}

// newChaos starts a cluster and the programs on it. Each has a network of its own, and
// lists the nodes in an order of its own.
func newChaos(t *testing.T, e replicatedtest.Engine, seed uint64) *chaos {
	t.Helper()
	o := replicatedtest.Options{Synchronous: true, NoStatementLog: true, MaxConnections: 300}
	if e == replicatedtest.MariaDB {
		// To become read-only it waits for the statements that are under way, and has new
		// ones wait meanwhile: those of the transaction on whose row lock one of the
		// former waits as well.
		o.Settings = map[string]string{"innodb_lock_wait_timeout": "2"}
	}
	cluster := replicatedtest.Start(t, e, o)
	if e == replicatedtest.Postgres { // so that the user sees a standby's timeline at once
		mustExec(t, cluster.Primary().AdminDB(t), "GRANT pg_read_all_stats TO "+replicatedtest.AppUser)
	}
	p, keys := newRegisters(t, cluster, []string{discover, "replicated.max_lag=" + promiseMaxLag.String()})
	p.durable = true
	sides := make(map[*replicatedtest.Node]*sql.DB)
	must(t, p.side().Close())
	for _, n := range cluster.Nodes() {
		sides[n] = bare(t, n)
	}
	p.side = func() *sql.DB { return sides[cluster.Primary()] }
	l := newChaosLedger(t, p)
	rng := rand.New(rand.NewPCG(seed, 4000))
	for id := int32(1); id <= 3; id++ {
		to := make(map[*replicatedtest.Node]*replicatedtest.NodeProxy)
		var addrs []string
		for _, n := range cluster.Nodes() {
			to[n] = n.Proxy(t)
			addrs = append(addrs, to[n].Addr())
		}
		rng.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
		g := p.newProgram(t, id, addrs, keys)
		g.to = to
		p.programs = append(p.programs, g)
	}
	return &chaos{promise: p, ledger: l}
}

// chaosMostOpen bounds the connections of a program to one node: its 16 users have two
// goroutines and a connection that is held, its two handles keep eight idle ones each;
// the ledger, the pool, the prober and what is being opened or closed come on top.
const chaosMostOpen = 3*16 + 2*8 + 2 + 8 + 16

// watchPools looks how many connections there are, until ctx ends.
func (c *chaos) watchPools(ctx context.Context) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			for _, g := range c.programs {
				for _, n := range g.cluster.Stats().Nodes {
					c.open = max(c.open, n.Open)
				}
			}
		}
	}
}

// healed waits until every program knows every node for what it is, uses it, and has no
// statement under way.
func (c *chaos) healed(t *testing.T) {
	t.Helper()
	for _, g := range c.programs {
		eventually(t, 40*time.Second, func() string {
			if err := g.handles[0].QueryRowContext(t.Context(), "SELECT id FROM kv WHERE id = 1").Scan(new(int)); err != nil {
				return err.Error()
			}
			s := g.cluster.Stats()
			for node, proxy := range g.to {
				want := replicated.RoleReplica
				if node == c.cluster.Primary() {
					want = replicated.RolePrimary
				}
				i := slices.IndexFunc(s.Nodes, func(x replicated.NodeStats) bool { return x.Address == proxy.Addr() })
				switch x := s.Nodes[i]; {
				case x.Role != want:
					return fmt.Sprintf("program %d: %s counts as %v, want %v", g.id, node.Name(), x.Role, want)
				case x.InFlight != 0:
					return fmt.Sprintf("program %d: %d statements are under way on %s for ever", g.id, x.InFlight, node.Name())
				case want == replicated.RoleReplica && (x.Breaker != replicated.BreakerClosed || x.Freshness != replicated.FreshnessProven):
					return fmt.Sprintf("program %d: %s is not used again: breaker %v, freshness %v", g.id, node.Name(), x.Breaker, x.Freshness)
				}
			}
			if s.FallbackReads != 0 {
				return fmt.Sprintf("program %d: %d reads fall back on the primary for ever", g.id, s.FallbackReads)
			}
			return ""
		})
		s := g.cluster.Stats()
		var on [2]uint64
		for i, by := range []map[replicated.Reason]uint64{s.Primary, s.Replica} {
			for _, n := range by {
				on[i] += n
			}
		}
		t.Logf("program %d: %d statements on the primary, %d on replicas", g.id, on[0], on[1])
		if on[1] == 0 {
			t.Errorf("program %d: no read ran on a replica: this does not test much", g.id)
		}
	}
}

// report tells what was done and what came of it.
func (n *chaosNemesis) report(r *promiseRun) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d statements in %v (%.0f/s), %d events, %d connections at most of a program to a node\nfaults:",
		r.statements, r.took, float64(r.statements)/r.took.Seconds(), len(r.history.Events), n.open)
	for _, kind := range slices.Sorted(maps.Keys(n.did)) {
		fmt.Fprintf(&b, "\n  %d × %s", n.did[kind], kind)
	}
	fmt.Fprintf(&b, "\n  in this order: %s\nfailures:", strings.Join(n.told, ", "))
	for _, kind := range slices.Sorted(maps.Keys(n.errs.kinds)) {
		fmt.Fprintf(&b, "\n  %d × %s", n.errs.kinds[kind], kind)
	}
	fmt.Fprintf(&b, "\n  by what was tried:%s\ntime without an acknowledged write, by what befell the primary:", n.errs.String())
	pauses, acts := make(map[string][]time.Duration), make(map[string][]time.Duration)
	for _, s := range n.spans {
		pauses[s.kind] = append(pauses[s.kind], n.ledger.pause(s.Span))
		acts[s.kind] = append(acts[s.kind], s.To-s.From)
	}
	for _, kind := range slices.Sorted(maps.Keys(pauses)) {
		fmt.Fprintf(&b, "\n  %d × %s: %s; the act itself took %s", len(acts[kind]), kind, middleAndMost(pauses[kind]), middleAndMost(acts[kind]))
	}
	return b.String()
}

func middleAndMost(all []time.Duration) string {
	slices.Sort(all)
	return fmt.Sprintf("p50 %v, max %v", all[(len(all)-1)/2].Round(time.Millisecond), all[len(all)-1].Round(time.Millisecond))
}

// errorKind tells what an error is, for counting.
func errorKind(err error) string {
	var node *replicated.NodeError
	var postgres *pq.Error
	var maria *mysql.MySQLError
	switch {
	case err == nil:
		return "deadlock"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, replicated.ErrOutcomeUnknown):
		return "outcome unknown"
	case errors.Is(err, replicated.ErrNoPrimary):
		return "no primary"
	case errors.Is(err, replicated.ErrNotFresh):
		return "not fresh"
	case errors.As(err, &node):
		return fmt.Sprintf("node error: %v, %s", node.Role, node.Op)
	case errors.As(err, &postgres):
		return "server error " + string(postgres.Code)
	case errors.As(err, &maria):
		return fmt.Sprintf("server error %d", maria.Number)
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, sql.ErrConnDone), errors.Is(err, sql.ErrTxDone):
		return err.Error()
	default:
		return fmt.Sprintf("other: %v", err)
	}
}

// chaosMemory compares how much memory is in use early and late in a run, without what
// the histories take.
type chaosMemory struct {
	mu    sync.Mutex
	recs  []*history.Recorder
	early uint64
}

func (m *chaosMemory) add(r *history.Recorder) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.recs = append(m.recs, r)
}

// used is what is left of the heap.
func (m *chaosMemory) used() uint64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	var histories uint64
	for _, r := range m.recs {
		histories += uint64(r.Size())
	}
	return s.HeapAlloc - min(s.HeapAlloc, histories)
}

// first takes note of the memory in use, unless another engine's run has.
func (m *chaosMemory) first() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.early == 0 {
		m.early = m.used()
	}
}

// last compares the memory in use with what it was.
func (m *chaosMemory) last(t *testing.T) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	late := m.used()
	t.Logf("heap without the history: %.1f MB after a quarter of the time, %.1f MB at the end; %d goroutines", float64(m.early)/1e6, float64(late)/1e6, runtime.NumGoroutine())
	if allowed := 2*m.early + 32<<20; late > allowed {
		t.Errorf("the heap has grown from %d to %d bytes, want %d at most", m.early, late, allowed)
	}
}
