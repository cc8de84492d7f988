package replicated

import (
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/internal/evidence"
	"github.com/sqlreplicated/replicated/internal/position"
)

// proven is a cluster with a primary and so many replicas, each of which is proven to
// have what was written up to a moment ago, over a connection.
func proven(replicas int) (*Cluster, []*physical) {
	c := &Cluster{cfg: &settings{Config: Config{MaxLag: time.Hour, MaxBlind: time.Minute}}, floors: new(floors)}
	c.fresh.mode.Store(uint32(trackProof))
	c.nodes = []*node{{cluster: c}}
	q := func() {
		lsn := position.FromLSN(100)
		at := now()
		c.fresh.book.Sampled(evidence.Sample{At: at, Answered: at, Opened: 1, Server: "primary", Lineage: "s/1", Synced: lsn, Whole: lsn})
		time.Sleep(time.Microsecond)
	}
	q()
	var conns []*physical
	for i := range replicas {
		n := &node{cluster: c, index: i + 1}
		p := &physical{node: n, role: RoleReplica, opened: now()}
		sees(p)
		servers := []*evidence.Server{p.server}
		n.reached.Store(&servers)
		c.nodes = append(c.nodes, n)
		conns = append(conns, p)
	}
	c.topology.start(c)
	time.Sleep(time.Microsecond)
	q()
	return c, conns
}

// sees enters what the server behind p has applied.
func sees(p *physical) {
	at := now()
	p.server = p.node.cluster.fresh.book.Sighted(evidence.Sighting{
		Asked: at, Answered: at, Server: string(rune('0' + p.node.index)), Lineage: "s/1", NeedsLineage: true, Applied: position.FromLSN(100),
	})
}

func TestSeen(t *testing.T) {
	c, conns := proven(2)
	one, two := conns[0], conns[1]
	early := one.server.Proof().Synced - 1 // what has been proven already
	primary := &physical{node: c.nodes[0], role: RolePrimary}
	younger := func(p *physical, opened moment) *physical {
		return &physical{node: p.node, role: p.role, server: p.server, opened: opened}
	}
	type read struct {
		over       *physical
		began, end moment
		// beside: the read was called before the one before it had ended.
		beside bool
	}
	const late = moment(1) << 62
	for _, tt := range []struct {
		name  string
		reads []read
		over  *physical
		want  bool
	}{
		{"nothing seen", nil, one, false},
		{"the connection that was read from", []read{{one, late, late + 1, false}}, one, true},
		{"one that was opened just before the read", []read{{one, late, late + 1, false}}, younger(one, late-1), true},
		{"one that was opened at the same moment", []read{{one, late, late + 1, false}}, younger(one, late), false},
		{"one that was opened during the read", []read{{one, late, late + 9, false}}, younger(one, late+1), false},
		{"one that was opened after the read", []read{{one, late, late + 1, false}}, younger(one, late+2), false},
		{"another replica", []read{{one, late, late + 1, false}}, two, false},
		{"the replica after the primary", []read{{one, late, late + 1, false}, {primary, late + 2, late + 3, false}}, one, false},
		{"a replica that was returned to", []read{{one, late, late + 1, false}, {two, late + 2, late + 3, false}, {one, late + 4, late + 5, false}}, one, false},
		{"… from where all has been proven here", []read{{two, early - 1, early, false}, {one, late, late + 1, false}}, one, true},
		{"a later read, called after the first had ended", []read{{one, late, late + 1, false}, {one, late + 5, late + 6, false}}, younger(one, late+4), true},
		{"a later read, called before the first had ended", []read{{one, late, late + 7, false}, {one, late + 5, late + 6, true}}, younger(one, late+4), false},
		{"… the other way round", []read{{one, late + 5, late + 6, false}, {one, late, late + 7, true}}, younger(one, late+4), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := new(Session)
			for _, r := range tt.reads {
				looked := s.hasSeen(c.floors)
				if r.beside {
					looked = seen{}
				}
				s.saw(c.floors, r.over, r.began, &looked)
				s.mu.Lock()
				s.ofLocked(c.floors).seen.end = r.end
				s.mu.Unlock()
			}
			got := s.hasSeen(c.floors)
			if ok := got.over(tt.over); ok != tt.want {
				t.Errorf("over = %v, seen %+v", ok, got)
			}
		})
	}
}

// A connection serves what is proven of the server that it has reached, for
// connections as old as itself.
func TestAllows(t *testing.T) {
	c, conns := proven(2)
	p := conns[0]
	proof := p.server.Proof()
	asks := bound{floor: floor{Any: proof.Synced - 1, Async: proof.Whole - 1}, lag: time.Hour, at: now()}
	for _, tt := range []struct {
		name   string
		change func(c *Cluster, p *physical, b *bound)
		want   bool
	}{
		{"proven", func(*Cluster, *physical, *bound) {}, true},
		{"opened after the proof", func(_ *Cluster, p *physical, _ *bound) { p.opened = proof.Read + 1 }, false},
		{"at the same moment", func(_ *Cluster, p *physical, _ *bound) { p.opened = proof.Read }, true},
		{"no server", func(_ *Cluster, p *physical, _ *bound) { p.server = nil }, false},
		{"a server without a proof", func(_ *Cluster, p *physical, _ *bound) { p.server = new(evidence.Server) }, false},
		{"multiplexed", func(_ *Cluster, p *physical, _ *bound) { p.node.multiplexed.Store(true) }, false},
		{"a floor at the sample", func(_ *Cluster, _ *physical, b *bound) { b.floor.Any++ }, false},
		{"… of asynchronous commits", func(_ *Cluster, _ *physical, b *bound) { b.floor.Async++ }, false},
		{"lag within the bound", func(_ *Cluster, _ *physical, b *bound) { b.lag, b.at = 5, proof.Whole+5 }, true},
		{"lag beyond it", func(_ *Cluster, _ *physical, b *bound) { b.lag, b.at = 5, proof.Whole+6 }, false},
		{"something seen elsewhere", func(_ *Cluster, _ *physical, b *bound) { b.seen = seen{node: conns[1].node, end: proof.Synced} }, false},
		{"… that is proven", func(_ *Cluster, _ *physical, b *bound) { b.seen = seen{node: conns[1].node, end: proof.Synced - 1} }, true},
		{"something seen here", func(_ *Cluster, p *physical, b *bound) {
			b.seen = seen{node: p.node, server: p.server, began: p.opened + 1, end: proof.Synced + 9}
		}, true},
		{"nothing asked", func(c *Cluster, p *physical, b *bound) { p.server, b.any = nil, true }, true},
		{"nothing decided", func(c *Cluster, _ *physical, _ *bound) { c.fresh.mode.Store(uint32(trackUndecided)) }, false},
		{"by time", func(c *Cluster, p *physical, _ *bound) { p.server = nil; c.fresh.mode.Store(uint32(trackWindow)) }, true},
		{"a primary that is gone for a moment", func(c *Cluster, _ *physical, b *bound) {
			c.fresh.blind.Store(true)
			c.fresh.answered.raise(proof.Whole + 5)
			b.lag, b.at = 5, proof.Whole+moment(time.Minute)
		}, true},
		{"… and for too long", func(c *Cluster, _ *physical, b *bound) {
			c.fresh.blind.Store(true)
			b.lag, b.at = time.Hour, proof.Whole+moment(time.Hour)
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q, b := *p, asks
			q.node = &node{cluster: c, index: 1}
			q.node.reached.Store(p.node.reached.Load())
			tt.change(c, &q, &b)
			if got := c.allows(&q, &b); got != tt.want {
				t.Errorf("allows = %v", got)
			}
			c.fresh.mode.Store(uint32(trackProof))
			c.fresh.blind.Store(false)
		})
	}
}

// What one cluster has shown says nothing of another one, and all nested sessions
// share it.
func TestSeenIsOfACluster(t *testing.T) {
	c, conns := proven(1)
	other, _ := proven(1)
	outer := new(Session)
	inner := &Session{parent: &Session{parent: outer}}
	if inner.outermost() != outer || outer.outermost() != outer {
		t.Error("the outermost session is another one")
	}
	inner.outermost().saw(c.floors, conns[0], now(), &seen{})
	if s := outer.hasSeen(c.floors); s.end == never || s.node != conns[0].node {
		t.Errorf("seen %+v", s)
	}
	if s := outer.hasSeen(other.floors); s != (seen{}) {
		t.Errorf("of another cluster %+v", s)
	}
}

// The whole price of freshness for a statement: which replicas are past its floor, and
// whether the connection that was picked is.
func BenchmarkFreshness(b *testing.B) {
	for _, replicas := range []int{1, 2, 5} {
		b.Run(string(rune('0'+replicas)), func(b *testing.B) {
			c, conns := proven(replicas)
			q := question{bound: bound{floor: floor{Any: conns[0].server.Proof().Synced - 1}, lag: time.Hour, at: now()}}
			b.ReportAllocs()
			for b.Loop() {
				c.survey(&q)
				if q.past != c.view().replicas || !c.allows(conns[0], &q.bound) {
					b.Fatal("not fresh")
				}
			}
		})
	}
}

func TestFreshnessDoesNotAllocate(t *testing.T) {
	c, conns := proven(3)
	q := question{bound: bound{floor: floor{Any: conns[0].server.Proof().Synced - 1}, lag: time.Hour, at: now()}}
	if n := testing.AllocsPerRun(100, func() {
		c.survey(&q)
		if q.past != c.view().replicas || !c.allows(conns[0], &q.bound) {
			t.Fatal("not fresh")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
