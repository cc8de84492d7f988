package app

import (
	"maps"
	"sync"

	"github.com/sqlreplicated/replicated"
)

// Stats counts what a process has done since it began.
type Stats struct {
	// Replica and Primary count reads by the reason for which they ran there.
	Replica, Primary map[string]int64
	// Events counts what the middleware told of, by kind.
	Events map[string]int64
	// Ready tells that all replicas are proven to be some moment's image of the
	// primary, so that they serve reads.
	Ready bool
}

// Sub returns what has been added since an earlier snapshot.
func (s Stats) Sub(earlier Stats) Stats {
	return Stats{
		Replica: difference(s.Replica, earlier.Replica),
		Primary: difference(s.Primary, earlier.Primary),
		Events:  difference(s.Events, earlier.Events),
		Ready:   s.Ready,
	}
}

// Add returns the sum of two processes.
func (s Stats) Add(other Stats) Stats {
	return Stats{
		Replica: sum(s.Replica, other.Replica),
		Primary: sum(s.Primary, other.Primary),
		Events:  sum(s.Events, other.Events),
		Ready:   s.Ready && other.Ready,
	}
}

func difference(a, b map[string]int64) map[string]int64 {
	d := make(map[string]int64)
	for k, n := range a {
		if n -= b[k]; n != 0 {
			d[k] = n
		}
	}
	return d
}

func sum(a, b map[string]int64) map[string]int64 {
	s := make(map[string]int64)
	maps.Copy(s, a)
	for k, n := range b {
		s[k] += n
	}
	return s
}

// counts are Stats while they are being counted.
type counts struct {
	mu    sync.Mutex
	stats Stats
}

func newCounts() *counts {
	return &counts{stats: Stats{}.Add(Stats{})}
}

// routed counts a read that a node has answered.
func (c *counts) routed(e replicated.RouteEvent) {
	if e.Class != "read" || e.Err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Role == replicated.RoleReplica {
		c.stats.Replica[e.Reason.String()]++
	} else {
		c.stats.Primary[e.Reason.String()]++
	}
}

func (c *counts) event(kind string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Events[kind]++
}

// snapshot is what was counted so far, and how the cluster is.
func (c *counts) snapshot(cluster replicated.Stats) Stats {
	c.mu.Lock()
	s := c.stats.Sub(Stats{}) // a copy
	c.mu.Unlock()
	s.Ready = cluster.LagMeasured
	for _, n := range cluster.Nodes {
		if n.Role == replicated.RoleReplica {
			s.Ready = s.Ready && n.Freshness == replicated.FreshnessProven && n.Breaker == replicated.BreakerClosed
		}
	}
	return s
}
