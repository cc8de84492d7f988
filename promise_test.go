package replicated_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/internal/history"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// promiseMaxLag is replicated.max_lag of these tests: replicas that are two
// seconds behind must be left out.
const promiseMaxLag = time.Second

// The promise, checked on recorded histories: programs with sessions and without
// write and read registers while replicas lag by zero to two seconds, unequally and
// changing, stop and are killed, connections are cut and the primary is restarted. No
// read sees less than it is entitled to.
//
// REPLICATED_SEED makes the same choices again, though not at the same moments.
func TestPromiseStress(t *testing.T) {
	eachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		o := promiseEffort(t)
		r := runPromise(t, e, o)
		r.check(t, history.LevelProcess)
		switch {
		case r.statements >= o.statements:
		case os.Getenv("REPLICATED_SOAK") != "":
			t.Errorf("%d statements in %v, want %d", r.statements, r.took, o.statements)
		case r.took < o.limit:
			t.Errorf("%d statements, want %d, and there was time left after %v", r.statements, o.statements, r.took)
		default:
			t.Logf("this machine is too slow for more than %d statements in %v", r.statements, o.limit)
		}
		if r.onReplicas < 0.1 {
			t.Errorf("%.0f %% of the reads that may run on replicas did: this does not test much", 100*r.onReplicas)
		}
	})
}

// promiseEffort is a few seconds, or, where the tests have to be thorough, 50,000
// statements if they can be had in a minute, or what REPLICATED_SOAK says
// and 350,000 statements in ten minutes.
func promiseEffort(t *testing.T) effort {
	t.Helper()
	switch {
	case os.Getenv("REPLICATED_SOAK") != "":
		d := stressFor(t)
		return effort{statements: int64(350_000 * min(1, d.Minutes()/10)), time: d, limit: 3 * d}
	case os.Getenv("CI") != "":
		return effort{statements: 50_000, time: 15 * time.Second, limit: 60 * time.Second}
	default:
		return effort{time: 10 * time.Second, limit: 10 * time.Second}
	}
}

// The level session promises less, and keeps it.
func TestPromiseSession(t *testing.T) {
	eachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		r := runPromise(t, e, briefly, "replicated.consistency=session")
		r.check(t, history.LevelSession)
	})
}

var briefly = effort{time: 6 * time.Second, limit: 6 * time.Second}

// The same checker finds what the level eventual does not promise. That a
// connection sees its own writes, and the bound on lag, it does promise.
func TestPromiseEventualIsCaught(t *testing.T) {
	eachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		r := runPromise(t, e, briefly, "replicated.consistency=eventual")
		counts := r.count(history.LevelProcess)
		t.Logf("violations of more than was promised: %v", counts)
		if counts[history.ReadYourWrites] == 0 {
			t.Error("the checker found no stale read where reads are stale")
		}
		r.check(t, history.LevelEventual)
	})
}

// promiseRun is a history that was recorded.
type promiseRun struct {
	history    *history.History
	outages    []history.Span
	statements int64
	took       time.Duration
	onReplicas float64 // of the reads that were not bound to the primary
}

func promiseSeed(t *testing.T) uint64 {
	t.Helper()
	s := os.Getenv("REPLICATED_SEED")
	if s == "" {
		return uint64(time.Now().UnixNano())
	}
	seed, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatalf("REPLICATED_SEED: %v", err)
	}
	return seed
}

func runPromise(t *testing.T, e replicatedtest.Engine, o effort, keys ...string) *promiseRun {
	t.Helper()
	seed := promiseSeed(t)
	c := replicatedtest.Start(t, e, replicatedtest.Options{NoStatementLog: true})
	p := newPromise(t, c, append(keys, "replicated.max_lag="+promiseMaxLag.String())...)
	stop := p.torment(t, seed)
	defer stop()
	start := time.Now()
	p.run(t.Context(), seed, o)
	took := time.Since(start)
	did := stop()
	p.audit(t)
	p.close(t)
	r := &promiseRun{history: p.rec.History(), outages: p.outages, statements: p.statements.Load(), took: took}
	t.Logf("REPLICATED_SEED=%d: %d statements in %v (%.0f/s), %d events\nerrors:%s\nnemesis:%s\n%s",
		seed, r.statements, took.Round(time.Second), float64(r.statements)/took.Seconds(), len(r.history.Events), p.errs.String(), did, r.placed(c))
	return r
}

// audit reads all rows, on the primary at once and on the replicas when they have
// caught up, with the nodes' own driver: what is missing then is lost.
func (p *promise) audit(t *testing.T) {
	t.Helper()
	log := p.rec.Log(0)
	fresh := p.rec.Now()
	keys := make(map[int64]bool)
	for _, e := range p.rec.History().Events {
		if e.Kind != history.TxEnd {
			keys[e.Key] = true
		}
	}
	caughtUp(t, p.cluster)
	for _, n := range p.cluster.Nodes() {
		shown := make(map[int64]history.Event)
		at := p.rec.Now()
		for key := range keys {
			shown[key] = history.Event{Kind: history.Read, Outcome: history.Acked, Key: key, Called: at, Where: n.Name(), Claim: history.Claim{Fresh: fresh}}
		}
		p.readAll(t, n, shown)
		at = p.rec.Now()
		for _, e := range shown {
			e.Returned = at
			log.Add(e)
		}
	}
}

func (p *promise) readAll(t *testing.T, n *replicatedtest.Node, shown map[int64]history.Event) {
	t.Helper()
	rows, err := bare(t, n).QueryContext(t.Context(), "SELECT id, seq, v FROM kv")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var key, version, value int64
		if err := rows.Scan(&key, &version, &value); err != nil {
			t.Fatal(err)
		}
		e := shown[key]
		e.Version, e.Value = version, value
		shown[key] = e
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

// placed tells where the reads of each kind ran.
func (r *promiseRun) placed(c *replicatedtest.Cluster) string {
	type share struct{ replica, all int }
	kinds := make(map[string]*share)
	var total share
	for _, e := range r.history.Events {
		if e.Kind != history.Read || e.Process == 0 || e.Tx != 0 && e.Claim.Since == 0 {
			continue
		}
		kind := "outside sessions"
		switch {
		case e.Tx != 0:
			kind = "in transactions"
		case e.Claim.Fresh != 0:
			kind = "fresh"
		case e.Claim.Stale:
			kind = "stale"
		case e.Claim.Tokens != nil:
			kind = "with tokens"
		case e.Claim.Monotonic:
			kind = "monotonic"
		case e.Claim.MaxLag != 0:
			kind = "with little lag"
		case e.Conn != 0:
			kind = "on a held connection"
		case e.Session != 0:
			kind = "in sessions"
		}
		kind = fmt.Sprintf("program %d, %s", e.Process, kind)
		if kinds[kind] == nil {
			kinds[kind] = new(share)
		}
		kinds[kind].all++
		total.all++
		if e.Where != c.Primary().Name() {
			kinds[kind].replica++
			total.replica++
		}
	}
	r.onReplicas = float64(total.replica) / float64(max(1, total.all))
	text := fmt.Sprintf("%.0f %% of %d reads on replicas:", 100*r.onReplicas, total.all)
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		text += fmt.Sprintf("\n  %s: %.0f %% of %d", kind, 100*float64(kinds[kind].replica)/float64(kinds[kind].all), kinds[kind].all)
	}
	return text
}

func (r *promiseRun) violations(level history.Level) []history.Violation {
	return history.Check(r.history, history.Options{Level: level, MaxLag: promiseMaxLag, Unreachable: r.outages, Dense: true})
}

func (r *promiseRun) count(level history.Level) map[history.Clause]int {
	counts := make(map[history.Clause]int)
	for _, v := range r.violations(level) {
		counts[v.Clause]++
	}
	return counts
}

// check fails the test if there are violations, and shows some of each clause.
func (r *promiseRun) check(t *testing.T, level history.Level) {
	t.Helper()
	found := r.violations(level)
	if len(found) == 0 {
		return
	}
	shown := make(map[history.Clause]int)
	var text strings.Builder
	for _, v := range found {
		if shown[v.Clause]++; shown[v.Clause] <= 3 {
			fmt.Fprintf(&text, "\n%v", v)
		}
	}
	t.Errorf("%d violations in %d statements: %v%s", len(found), r.statements, shown, text.String())
}
