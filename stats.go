package replicated

import (
	"sync/atomic"
	"time"
)

// Stats is a snapshot of a cluster. Counters count since the cluster was made.
type Stats struct {
	// Nodes in the order of the configuration; the first is the primary.
	Nodes []NodeStats
	// Primary and Replica count statements by the reason for which they ran on
	// the primary, or on a replica. Reasons that did not occur are absent. A
	// statement that failed on one node and ran on another counts on each.
	Primary, Replica map[Reason]uint64
	// FallbackReads are the reads that the primary is serving now for want of a
	// replica, see Config.PrimaryReadLimit.
	FallbackReads int64
	// LagMeasured tells whether replicas' freshness is measured. While it is not,
	// Config.Sticky stands in for it and Config.MaxLag is not enforced.
	LagMeasured bool
}

// NodeStats is what is known of one node.
type NodeStats struct {
	Name    string
	Address string
	Role    Role
	// Zone and Weight are those of the Config; a Weight of 0 is shown as 1.
	Zone    string
	Weight  int
	Breaker BreakerState // of a replica
	// Idle connections in the replica's pool.
	Idle int
	// InFlight reads: statements and open Rows on the replica's connections.
	InFlight int64
	// Open connections of every kind: idle, in use, the prober's, and, on the
	// primary, those that connections of the pool of database/sql own.
	Open int
	// Freshness tells what is known of how far the replica has got, and Lag how far
	// behind it is at most: the time since the last sample of the primary that it is
	// proven to contain, so that an idle replica shows up to the pause between two
	// samples. Lag is zero where freshness is not FreshnessProven.
	Freshness Freshness
	Lag       time.Duration
	// Latency is a moving average over the replica's answered reads; zero before
	// the first.
	Latency time.Duration
	// TurnedAway tells that the node refuses connections for now (too many, or
	// the login), and is left alone for some seconds.
	TurnedAway bool
	// Pooler tells that a connection pooler was found before the node.
	Pooler bool
}

// Freshness is what is known of how far a replica has got.
type Freshness uint8

// What may be known. The zero value is FreshnessUnknown.
const (
	// FreshnessUnknown: nothing is proven, and the replica serves no reads: it has
	// just been met, cannot be asked, has diverged, or follows another history.
	FreshnessUnknown Freshness = iota
	// FreshnessProven: the replica is proven to have everything up to some moment.
	FreshnessProven
	// FreshnessUnmeasured: nobody measures it. Config.Sticky stands in.
	FreshnessUnmeasured
)

// String returns "unknown", "proven" or "unmeasured".
func (f Freshness) String() string {
	switch f {
	case FreshnessProven:
		return "proven"
	case FreshnessUnmeasured:
		return "unmeasured"
	default:
		return "unknown"
	}
}

// freshness tells what is known of a node, with lag measured to a moment.
func (n *node) freshness(to moment) (Freshness, time.Duration) {
	switch {
	case n.role() != RoleReplica || n.multiplexed.Load():
		return FreshnessUnknown, 0
	case n.cluster.fresh.tracking() == trackWindow:
		return FreshnessUnmeasured, 0
	}
	at := never
	for _, s := range n.servers() {
		if p := s.Proof(); p != nil {
			at = max(at, p.Settled)
		}
	}
	if at == never {
		return FreshnessUnknown, 0
	}
	return FreshnessProven, time.Duration(max(to-at, 0))
}

// Stats returns a snapshot.
func (c *Cluster) Stats() Stats {
	at := now()
	s := Stats{
		LagMeasured:   c.fresh.tracking() == trackProof,
		Primary:       c.counters.primary.byReason(),
		Replica:       c.counters.replica.byReason(),
		FallbackReads: c.fallbacks.Load(),
	}
	to, _ := c.measuredTo(at)
	for _, n := range c.nodes {
		fresh, lag := n.freshness(to)
		s.Nodes = append(s.Nodes, NodeStats{
			Freshness:  fresh,
			Lag:        lag,
			Name:       n.name,
			Address:    n.src.address,
			Role:       c.topology.roleOf(n),
			Zone:       n.src.zone,
			Weight:     n.src.weight,
			Breaker:    n.breaker.current(),
			Idle:       n.pool.len(),
			InFlight:   n.inFlight.Load(),
			Open:       n.openConns(),
			Latency:    time.Duration(n.latency.Load()),
			TurnedAway: moment(n.backOff.Load()) > at,
			Pooler:     n.behind.Load(),
		})
	}
	return s
}

// counters count routed statements.
type counters struct{ primary, replica reasonCounts }

type reasonCounts [reasons]atomic.Uint64

func (c *counters) add(role Role, why Reason) {
	if role == RolePrimary {
		c.primary[why].Add(1)
	} else {
		c.replica[why].Add(1)
	}
}

func (rc *reasonCounts) byReason() map[Reason]uint64 {
	m := make(map[Reason]uint64)
	for r := range rc {
		if n := rc[r].Load(); n > 0 {
			m[Reason(r)] = n
		}
	}
	return m
}
