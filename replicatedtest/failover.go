package replicatedtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// progress is how far a replica has received: of two that follow the same
// primary, the one with more has all that the other one has.
type progress struct {
	timeline int64 // PostgreSQL's; later ones hold more
	position int64 // bytes of the log, or transactions
}

func (p progress) compare(q progress) int {
	return cmp.Or(cmp.Compare(p.timeline, q.timeline), cmp.Compare(p.position, q.position))
}

// MostAdvanced returns the replica of the primary that has received most, the
// one to promote when the primary is lost; of equals, the first. Replicas that
// are down, that hang, or that follow another node are passed over. It is an
// error if there is none.
func (c *Cluster) MostAdvanced(ctx context.Context) (*Node, error) {
	var best *Node
	var most progress
	for _, n := range c.followers(c.Primary()) {
		got, err := c.db.received(ctx, n)
		if err != nil {
			return nil, n.wrap("received position", err)
		}
		if best == nil || got.compare(most) > 0 {
			best, most = n, got
		}
	}
	if best == nil {
		return nil, errors.New("replicatedtest: no replica of the primary runs")
	}
	return best, nil
}

// followers lists the running replicas of the primary.
func (c *Cluster) followers(primary *Node) []*Node {
	return slices.DeleteFunc(c.running(), func(n *Node) bool { return n.follows() != primary })
}

// running lists the nodes that can be talked to.
func (c *Cluster) running() []*Node {
	return slices.DeleteFunc(c.Nodes(), func(n *Node) bool { return !n.Running() || n.Hung() })
}

// follows returns whom the node follows, or nil.
func (n *Node) follows() *Node {
	n.stateMu.Lock()
	defer n.stateMu.Unlock()
	return n.source
}

// Failover is what an operator, or a program in his place, does when the
// primary is lost: it is killed, if it still runs, the replica that has received
// most ([Cluster.MostAdvanced]) is promoted, and the other running replicas
// follow that. It returns the new primary, when it takes writes and the others
// follow.
//
// With [Options.Synchronous] the new primary has every acknowledged write,
// unless the one replica that had it was down, hung or followed another node.
// The former primary stays down; [Node.Rejoin] brings it back, and replicas that
// were passed over. ctx bounds the whole; an error may leave it half done.
func (c *Cluster) Failover(ctx context.Context) (*Node, error) {
	c.roles.Lock()
	defer c.roles.Unlock()
	lost := c.Primary()
	if err := lost.Kill(); err != nil {
		return nil, err
	}
	replicas := c.followers(lost)
	// What has arrived at a replica's socket is received too: were it received
	// after the comparison, another one would be ahead of the new primary.
	err := c.each(replicas, func(n *Node) error {
		return n.wrap("wait for the end of receiving", poll(ctx, 5*time.Millisecond, func() (bool, error) {
			receives, err := c.db.receiving(ctx, n)
			return !receives, err
		}))
	})
	if err != nil {
		return nil, err
	}
	to, err := c.MostAdvanced(ctx)
	if err != nil {
		return nil, err
	}
	if err := to.Promote(); err != nil {
		return nil, err
	}
	others := slices.DeleteFunc(replicas, func(n *Node) bool { return n == to })
	return to, c.each(others, func(n *Node) error { return n.Follow(to) })
}

// Rejoin brings a node back after [Cluster.Failover]: it is started if it does
// not run, and follows the primary. A former primary may have rows that were
// never acknowledged and that nobody else has: it is rebuilt, as by
// [Node.Rebuild].
func (n *Node) Rejoin(primary *Node) error { return n.Follow(primary) }

// Switchover makes the replica the primary in order, as for the maintenance of
// the old one, and returns when it takes writes and all other running nodes
// follow it, the old primary included. No acknowledged write is lost.
//
// On PostgreSQL the old primary is stopped, which ends its sessions and sends
// all it has to its standbys, and started again as one of them. On MariaDB and
// MySQL it becomes read_only, after the commits that are under way; sessions
// stay, and the commit of an open transaction fails. Writes of [AdminUser],
// whom read_only does not stop, are at their own risk.
//
// The replica must follow the primary. A delay of it ends, and so does a pause.
// Nodes that are down or hang are passed over; [Node.Rejoin] makes them follow.
// ctx bounds the waiting. After an error before the promotion the old primary
// takes writes as before.
func (c *Cluster) Switchover(ctx context.Context, to *Node) error {
	c.roles.Lock()
	defer c.roles.Unlock()
	from := c.Primary()
	if to.c != c || to.follows() != from {
		return to.wrap("switchover", fmt.Errorf("not a replica of %s", from))
	}
	// What holds it back must not hold back the writes.
	if err := to.Delay(0); err != nil {
		return err
	}
	if err := to.ResumeReplication(); err != nil {
		return err
	}
	if err := from.handOver(ctx, to); err != nil {
		return from.wrap("switchover to "+to.name, err)
	}
	if err := to.Promote(); err != nil {
		return err
	}
	// It has the promoted one's source still, and runs not on PostgreSQL.
	others := append(slices.DeleteFunc(c.running(), func(n *Node) bool { return n == to || n == from }), from)
	return c.each(others, func(n *Node) error { return n.followSound(to) })
}

func (n *Node) handOver(ctx context.Context, to *Node) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := n.usable(false); err != nil {
		return err
	}
	if err := n.c.db.handOver(ctx, n, to); err != nil {
		return err
	}
	n.c.logf("%s: takes no more writes, %s has all", n.name, to.name)
	return nil
}

// followSound is Follow for a node that has nothing that the primary lacks.
func (n *Node) followSound(primary *Node) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.wrap("follow "+primary.name, n.followLocked(primary, true))
}

// Demote makes a MariaDB or MySQL primary read_only, after the commits that are
// under way, and does nothing else: its replicas go on following it,
// [Cluster.Primary] stays. It holds until the next start of the server.
// PostgreSQL has nothing like it: the error is [errors.ErrUnsupported] there.
func (n *Node) Demote() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
	defer cancel()
	if err := n.usable(false); err != nil {
		return n.wrap("demote", err)
	}
	if err := n.c.db.demote(ctx, n); err != nil {
		return n.wrap("demote", err)
	}
	n.c.logf("%s: read-only", n.name)
	return nil
}
