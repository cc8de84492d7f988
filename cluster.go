package replicated

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// Cluster is what one connector knows of its servers: the nodes, their health
// and pools, the floors of this process, and counters. Get it from
// [Connector.Cluster] or [ClusterOf].
//
// A Cluster is safe for concurrent use. Nothing runs before the first connection
// is asked for; background work ends 30 s after the last one was closed, starts
// again with the next, and is stopped and awaited when the [*database/sql.DB] is
// closed.
type Cluster struct {
	cfg      *settings
	nodes    []*node // in the order of the configuration
	topology topology
	floors   *floors

	kind       atomic.Uint32 // classify.Dialect; narrowed once a server has said what it is
	turns      turns         // of round-robin
	statements statements
	catalog    *catalog
	learned    *learned
	counters   counters
	fresh      freshness
	sampler    sampler
	touches    touches
	told       atomic.Bool  // NoticeLagUnmeasured, of a cluster that is not measured by choice
	fallbacks  atomic.Int64 // reads in flight on the primary for want of a replica

	// mu guards the life of the background work.
	mu     sync.Mutex
	conns  int            // open Conns
	work   *background    // nil while none runs
	rests  sync.WaitGroup // lives that are ending by themselves, and killers; added to under mu
	idleAt *time.Timer    // stops the work some time after the last Conn
	done   chan struct{}  // closed by Close

	abandoned map[*node]*abandonedWrites // that wait to be ended
}

// background is one life of a cluster's background work.
type background struct {
	cancel context.CancelFunc
	wake   chan struct{}
	ended  chan struct{}
}

// idleLife is how long background work goes on without a Conn. A wrapper that
// never passes Close on to us leaks nothing because of it.
const idleLife = 30 * time.Second

func newCluster(cfg *settings) *Cluster {
	c := &Cluster{
		cfg:     cfg,
		floors:  floorsOf(cfg.clusterKey()),
		learned: newLearned(),
		done:    make(chan struct{}),
	}
	c.kind.Store(uint32(cfg.dialect))
	c.sampler.cluster = c
	c.fresh.term.Store(1)
	if !c.tracks() {
		c.fresh.mode.Store(uint32(trackWindow))
	}
	c.catalog = newCatalog(c)
	for i, src := range cfg.sources {
		c.nodes = append(c.nodes, newNode(c, i, src, cfg))
	}
	c.topology.start(c)
	c.floors.handles.add(c)
	return c
}

// dialect returns what is known of the servers' dialect.
func (c *Cluster) dialect() classify.Dialect { return classify.Dialect(c.kind.Load()) }

// learnFlavor narrows "MySQL or MariaDB" to what a server has said it is.
func (c *Cluster) learnFlavor(d classify.Dialect) {
	if d == classify.MySQL || d == classify.MariaDB {
		c.kind.CompareAndSwap(uint32(classify.AnyMySQL), uint32(d))
	}
}

// LongestLag returns for how long after a write a replica may serve reads without it, to
// whoever has not been told: [Config.MaxLag], or [Config.Sticky] where that is longer
// and takes the place of proofs. With TrackerAuto it does once the primary has been found
// to have no positions.
func (c *Cluster) LongestLag() time.Duration {
	if c.fresh.tracking() == trackWindow {
		return max(c.cfg.MaxLag, c.cfg.Sticky)
	}
	return c.cfg.MaxLag
}

// eligible returns the replicas that are up.
func (c *Cluster) eligible() nodeSet {
	var s nodeSet
	at := now()
	for _, n := range c.view().readers {
		if n.up(at) {
			s = s.with(n.index)
		}
	}
	return s
}

// attach counts a new Conn and starts the background work with the first.
func (c *Cluster) attach() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.done:
		return errClosed
	default:
	}
	c.conns++
	if c.idleAt != nil {
		c.idleAt.Stop()
		c.idleAt = nil
	}
	if c.work == nil {
		c.startLocked()
	}
	return nil
}

func (c *Cluster) startLocked() {
	ctx, cancel := context.WithCancel(context.Background())
	b := &background{cancel: cancel, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	c.work = b
	for _, n := range c.nodes {
		n.pool.open()
	}
	c.topology.begin()
	go func() {
		defer close(b.ended)
		var reader sync.WaitGroup
		reader.Go(func() { c.catalog.run(ctx) })
		c.sampler.run(ctx, b.wake)
		reader.Wait()
	}()
}

// detach counts a closed Conn.
func (c *Cluster) detach() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns--
	if c.conns == 0 && c.work != nil {
		c.idleAt = time.AfterFunc(idleLife, c.rest)
	}
}

// rest stops the background work of a cluster that nobody uses.
func (c *Cluster) rest() {
	c.mu.Lock()
	b := c.work
	if c.conns > 0 || b == nil {
		c.mu.Unlock()
		return
	}
	c.work = nil
	c.rests.Add(1)
	c.mu.Unlock()
	defer c.rests.Done()
	c.stop(b)
}

// stop ends one life of the background work and closes what is idle.
func (c *Cluster) stop(b *background) {
	b.cancel()
	<-b.ended
	for _, n := range c.nodes {
		for _, p := range n.pool.shut() {
			p.close()
		}
	}
	// A Conn that came meanwhile has started the work anew and needs the pools.
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.work != nil {
		for _, n := range c.nodes {
			n.pool.open()
		}
	}
}

// close stops the background work, waits for it, and closes idle connections.
// It does not wait for Rows: their connections are closed when they end. Nor does
// it wait for a driver that hangs in a probe and heeds no context, see prober.end.
func (c *Cluster) close() error {
	c.mu.Lock()
	select {
	case <-c.done:
		c.mu.Unlock()
		return nil
	default:
		close(c.done)
	}
	b := c.work
	c.work = nil
	if c.idleAt != nil {
		c.idleAt.Stop()
		c.idleAt = nil
	}
	c.mu.Unlock()
	if b != nil {
		c.stop(b)
	}
	c.rests.Wait()
	c.floors.handles.remove(c)
	return c.cfg.close()
}

// wakeProber has the prober look at the nodes at once.
func (c *Cluster) wakeProber() {
	c.mu.Lock()
	b := c.work
	c.mu.Unlock()
	if b == nil {
		return
	}
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// releaseStmt drops one user of a prepared text. With the last one, idle replica
// connections close theirs now, and the others when they come back.
func (c *Cluster) releaseStmt(st *statement) {
	if !c.statements.release(st) {
		return
	}
	for _, n := range c.nodes {
		holders := n.pool.takeIdle(func(p *physical) bool { return p.holds(st) })
		for _, p := range holders {
			n.giveBack(p)
		}
	}
}

// ClusterOf returns the cluster behind a handle: one made by [sql.Open] with a
// driver name of this package, by [sql.OpenDB] with a [*Connector], or by a
// wrapper around them whose connections have a method Raw() driver.Conn, as
// otelsql's have. For a wrapped handle it takes a connection from the pool, for
// which ctx may be waited. An error says that the handle is none of ours.
func ClusterOf(ctx context.Context, db *sql.DB) (*Cluster, error) {
	if d, ok := db.Driver().(*Driver); ok && d.connector != nil {
		return d.connector.Cluster(), d.connector.err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	var c *Cluster
	err = conn.Raw(func(dc any) error {
		inner, err := unwrapConn(dc)
		if err == nil {
			c = inner.cluster
		}
		return err
	})
	return c, err
}

// unwrapConn follows the Raw methods of wrappers down to our Conn.
func unwrapConn(dc any) (*Conn, error) {
	for {
		switch x := dc.(type) {
		case *Conn:
			return x, nil
		case interface{ Raw() driver.Conn }:
			dc = x.Raw()
		default:
			return nil, fmt.Errorf("replicated: the handle's connections are %T, which leads to none of this driver's", dc)
		}
	}
}
