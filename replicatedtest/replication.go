package replicatedtest

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// PauseReplication makes the replica apply nothing more; it goes on receiving.
// It holds until [Node.ResumeReplication] or the next start of the server.
func (n *Node) PauseReplication() error {
	return n.replication("pause replication", n.c.db.pause)
}

// ResumeReplication undoes [Node.PauseReplication].
func (n *Node) ResumeReplication() error {
	return n.replication("resume replication", n.c.db.unpause)
}

// Delay makes the replica apply everything d after the primary committed it,
// from now on; 0 undoes it. The delay outlives restarts of the server.
//
// PostgreSQL delays what it applies (recovery_min_apply_delay, whole
// milliseconds). MariaDB and MySQL receive late: their own delay knows whole
// seconds only, so that a delaying proxy is put between replica and source, and
// stays there; the replica reconnects when that happens.
func (n *Node) Delay(d time.Duration) error {
	return n.replication("delay", func(ctx context.Context, n *Node) error {
		if d < 0 {
			return fmt.Errorf("negative delay %v", d)
		}
		n.apply = d
		return n.c.db.delay(ctx, n, d)
	})
}

// replication runs an operation that needs a running replica.
func (n *Node) replication(op string, f func(context.Context, *Node) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
	defer cancel()
	if err := n.usable(true); err != nil {
		return n.wrap(op, err)
	}
	if err := f(ctx, n); err != nil {
		return n.wrap(op, err)
	}
	n.c.logf("%s: %s", n.name, op)
	return nil
}

// usable returns an error unless the node can be talked to and has the role.
func (n *Node) usable(replica bool) error {
	switch {
	case n.process() == nil:
		return errNotRunning
	case n.Hung():
		return errors.New("the server hangs")
	case replica && n.source == nil:
		return errors.New("not a replica")
	}
	return nil
}

// Promote makes the replica a primary, after it has applied all that it has
// received; a delay ends with that. [Cluster.Primary] is then this node. The
// former primary is left as it is: kill it before, or have two. Other replicas
// go on following the former primary until [Node.Follow].
func (n *Node) Promote() error {
	err := n.replication("promote", func(ctx context.Context, n *Node) error {
		if err := n.c.db.promote(ctx, n); err != nil {
			return err
		}
		n.setRole(nil)
		n.apply = 0
		return nil
	})
	if err == nil {
		n.c.setPrimary(n)
	}
	return err
}

// Follow makes the node a replica of the primary and waits until it receives
// from it; the node is started if it does not run.
//
// A node that was a primary itself, or that has what the primary lacks, is
// rebuilt: its data is replaced by the primary's.
func (n *Node) Follow(primary *Node) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.wrap("follow "+primary.name, n.followLocked(primary))
}

func (n *Node) followLocked(primary *Node) error {
	if primary == n || primary.c != n.c {
		return errors.New("not another node of the cluster")
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if n.Hung() {
		return errors.New("the server hangs")
	}
	wasReplica := n.source != nil
	n.setRole(primary)
	if wasReplica {
		err := n.startLocked(ctx)
		if err == nil {
			attach, cancel := context.WithTimeout(ctx, opTimeout/3)
			err = n.c.db.attach(attach, n, false)
			cancel()
		}
		if err == nil {
			n.c.logf("%s: follows %s", n.name, primary.name)
			return nil
		}
		n.c.logf("%s: cannot follow %s as it is: %v", n.name, primary.name, err)
	}
	if err := n.stopLocked(); err != nil {
		return err
	}
	n.c.logf("%s: being rebuilt from %s", n.name, primary.name)
	if err := n.c.db.rebuild(ctx, n); err != nil {
		return err
	}
	if err := n.startLocked(ctx); err != nil {
		return err
	}
	if err := n.c.db.attach(ctx, n, true); err != nil {
		return err
	}
	n.c.logf("%s: follows %s", n.name, primary.name)
	return nil
}

// WaitCaughtUp waits until the replica has applied, and shows, everything that
// its source had when it was called. On a primary it returns at once.
func (n *Node) WaitCaughtUp(ctx context.Context) error {
	n.stateMu.Lock()
	source := n.source
	n.stateMu.Unlock()
	if source == nil {
		return nil
	}
	return n.wrap("wait until caught up", n.c.db.caughtUp(ctx, source, n))
}

// poll calls f until it reports true or an error.
func poll(ctx context.Context, every time.Duration, f func() (bool, error)) error {
	for {
		ok, err := f()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(every):
		}
	}
}
