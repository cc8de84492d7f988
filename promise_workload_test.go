package replicated_test

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/history"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// promise is several programs that use one cluster at once and record all that
// they do and see. The rows are registers: each write raises the row's counter by
// one, so that the database, which holds the row lock until the commit, puts the
// writes of a row into one order.
type promise struct {
	cluster  *replicatedtest.Cluster
	rec      *history.Recorder
	programs []*program
	side     func() *sql.DB // the primary's own driver, behind ours
	others   *history.Log   // of what is written there
	text     promiseText
	names    map[int64]string // nodes by port

	// durable: what is acknowledged is to outlive the primary, so that nobody commits
	// without waiting.
	durable bool
	// cancelling is held by whoever may cancel a write, and, exclusively, while nobody
	// may.
	cancelling sync.RWMutex

	statements atomic.Int64                    // that have succeeded
	recent     [64]atomic.Int64                // keys inserted lately, by anybody
	tokens     [16]atomic.Pointer[issuedToken] // … and tokens taken
	errs       errorCount

	restarting sync.Mutex // held while the primary is restarted, or must not be
	outages    []history.Span
}

// program stands for a process: handles that share one set of floors. Programs
// differ in how they write, since with few writes outside sessions there is more
// to be had from replicas.
type program struct {
	id       int32
	proxy    *replicatedtest.NodeProxy                          // in front of the primary; nil where that changes
	to       map[*replicatedtest.Node]*replicatedtest.NodeProxy // … and of each node then
	handles  []*handle
	cluster  *replicated.Cluster
	plain    bool // no sessions, and bursts of writes seconds apart
	sessions bool // everything in sessions, but for a write once in a while
	nextJob  atomic.Int64
}

// handle is a *sql.DB with its prepared statements. Each program has two on the
// cluster, as one with an ORM beside database/sql has.
type handle struct {
	*sql.DB
	read, update *sql.Stmt
}

// promiseText is the SQL of an engine.
type promiseText struct {
	engine                             replicatedtest.Engine
	read, readThree, readHint, literal string
	update, bump, insert, remove       string
}

const hotKeys = 24 // 1 to hotKeys; they are never deleted

func newPromiseText(e replicatedtest.Engine) promiseText {
	p := func(n int) string { return placeholder(e, n) }
	where := "whereami()"
	if e == replicatedtest.Postgres {
		where = "current_setting('port')::int"
	}
	// A row comes back for a key that is not there too: it tells where it is not.
	read := func(hint, cond string) string {
		return "SELECT " + hint + where + ", k.id, k.seq, k.v FROM (SELECT 1 AS one) AS x LEFT JOIN kv AS k ON k.id " + cond
	}
	t := promiseText{
		engine:    e,
		read:      read("", "= "+p(1)),
		readThree: read("", "IN ("+p(1)+", "+p(2)+", "+p(3)+")"),
		readHint:  read("/* replicated:primary */ ", "= "+p(1)),
		literal:   read("", "= "),
		bump:      "UPDATE kv SET v = " + p(1) + ", seq = seq + 1 WHERE id = " + p(2),
		insert:    "INSERT INTO kv (id, v, seq) VALUES (" + p(1) + ", " + p(2) + ", 1)",
		remove:    "DELETE FROM kv WHERE id = " + p(1),
	}
	// The version that an UPDATE made comes back in the same statement.
	t.update = t.bump + " RETURNING seq"
	if e != replicatedtest.Postgres {
		t.update = "UPDATE kv SET v = ?, seq = LAST_INSERT_ID(seq + 1) WHERE id = ?"
	}
	return t
}

// newPromise makes the table and opens the programs' handles. Each program reaches the
// primary by an address of its own, so that they share no floors, as if they were
// processes.
func newPromise(t *testing.T, c *replicatedtest.Cluster, keys ...string) *promise {
	t.Helper()
	p, keys := newRegisters(t, c, keys)
	for id := int32(1); id <= 3; id++ {
		proxy := c.Primary().Proxy(t)
		addrs := []string{proxy.Addr()}
		for _, n := range c.Replicas() {
			addrs = append(addrs, n.Addr())
		}
		g := p.newProgram(t, id, addrs, keys)
		g.proxy = proxy
		p.programs = append(p.programs, g)
	}
	return p
}

// newRegisters makes the table, and returns the keys for DSNs with what it needs.
func newRegisters(t *testing.T, c *replicatedtest.Cluster, keys []string) (*promise, []string) {
	t.Helper()
	side := c.Primary().DB(t)
	p := &promise{cluster: c, rec: history.NewRecorder(), text: newPromiseText(c.Engine()), names: make(map[int64]string), side: func() *sql.DB { return side }}
	p.others = p.rec.Log(0)
	for _, n := range c.Nodes() {
		p.names[int64(n.Port())] = n.Name()
	}
	mustExec(t, side, "CREATE TABLE kv (id bigint PRIMARY KEY, v bigint NOT NULL, seq bigint NOT NULL)")
	if c.Engine() != replicatedtest.Postgres {
		mustExec(t, c.Primary().AdminDB(t), "CREATE FUNCTION whereami() RETURNS int DETERMINISTIC NO SQL RETURN @@global.port")
		keys = append(slices.Clip(keys), "replicated.read_functions=whereami")
	}
	for key := int64(1); key <= hotKeys; key++ {
		e := history.Event{Kind: history.Write, Outcome: history.Acked, Key: key, Version: 1, Value: p.rec.Next(), Called: p.rec.Now()}
		mustExec(t, side, p.text.insert, key, e.Value)
		e.Returned = p.rec.Now()
		p.others.Add(e)
	}
	caughtUp(t, c)
	return p, keys
}

// newProgram opens the handles of a program.
func (p *promise) newProgram(t *testing.T, id int32, addrs, keys []string) *program {
	t.Helper()
	g := &program{id: id, sessions: id == 1, plain: id == 2}
	if id == 3 { // reads wait for a replica before they go to the primary
		keys = append(slices.Clip(keys), "replicated.wait=50ms")
	}
	for range 2 {
		h := &handle{DB: openDSN(t, p.cluster.DSNAt(addrs, keys...))}
		h.SetMaxIdleConns(8)
		var err error
		if h.read, err = h.PrepareContext(t.Context(), p.text.read); err != nil {
			t.Fatal(err)
		}
		if h.update, err = h.PrepareContext(t.Context(), p.text.update); err != nil {
			t.Fatal(err)
		}
		g.handles = append(g.handles, h)
	}
	var err error
	if g.cluster, err = replicated.ClusterOf(t.Context(), g.handles[0].DB); err != nil {
		t.Fatal(err)
	}
	return g
}

// close closes all handles. The servers then have no connection of theirs.
func (p *promise) close(t *testing.T) {
	t.Helper()
	for _, g := range p.programs {
		for _, h := range g.handles {
			if err := errors.Join(h.read.Close(), h.update.Close(), h.Close()); err != nil {
				t.Error(err)
			}
		}
	}
	if err := p.side().Close(); err != nil {
		t.Error(err)
	}
	for _, n := range p.cluster.Nodes() {
		noConnections(t, n)
	}
}

// effort is how much a run does: so many statements at least, and for so long at
// least, unless a limit comes first.
type effort struct {
	statements  int64
	time, limit time.Duration
}

func (o effort) enough(statements int64, since time.Time) bool {
	took := time.Since(since)
	return took >= o.limit || took >= o.time && statements >= o.statements
}

// run lets users work until that is enough.
func (p *promise) run(ctx context.Context, seed uint64, o effort) {
	var wg sync.WaitGroup
	start := time.Now()
	for i := range 48 {
		g := p.programs[i%len(p.programs)]
		u := &user{promise: p, program: g, log: p.rec.Log(g.id), rng: rand.New(rand.NewPCG(seed, uint64(i)))}
		wg.Go(func() {
			for ctx.Err() == nil && !o.enough(p.statements.Load(), start) {
				u.visit(ctx)
			}
		})
	}
	wg.Wait()
}
