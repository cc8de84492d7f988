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

// StopReceiving makes the replica receive nothing more; it goes on applying
// what it has received. It holds until [Node.ResumeReceiving], [Node.Follow],
// [Node.Repoint] or the next start of the server.
//
// On PostgreSQL it ends the WAL receiver and leaves the server no address to
// start another one for, on MariaDB and MySQL it stops the receiving thread.
// MariaDB forgets what it has received and not applied when it is paused as
// well, and receives that again at last.
func (n *Node) StopReceiving() error {
	return n.replication("stop receiving", func(ctx context.Context, n *Node) error {
		n.unfed = true
		return n.c.db.unplug(ctx, n)
	})
}

// ResumeReceiving undoes [Node.StopReceiving].
func (n *Node) ResumeReceiving() error {
	return n.replication("resume receiving", func(ctx context.Context, n *Node) error {
		n.unfed = false
		return n.c.db.plug(ctx, n)
	})
}

// Delay makes the replica apply everything d after the primary committed it,
// from now on; 0 undoes it. It holds at once for what is waiting: a shorter
// delay lets go what has waited long enough, a longer one keeps it. The delay
// outlives restarts of the server.
//
// PostgreSQL delays what it applies (recovery_min_apply_delay, whole
// milliseconds), and only commits. MariaDB and MySQL receive late: their own
// delay knows whole seconds only, so that a delaying proxy is put between
// replica and source, and stays there; the replica reconnects when that happens,
// at the first delay. The proxy delays the stream of events alone, not what
// precedes it, so that a replica comes back as fast as ever.
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
		n.apply, n.unfed = 0, false
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
// The primary may be a replica itself: that makes a chain.
//
// A node that was a primary itself, or that has what the primary lacks, is
// rebuilt, as by [Node.Rebuild]. [Node.Repoint] never does that.
func (n *Node) Follow(primary *Node) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.wrap("follow "+primary.name, n.followLocked(primary, false))
}

// followLocked makes the node follow the primary. sound says that a former
// primary has nothing that the primary lacks.
func (n *Node) followLocked(primary *Node, sound bool) error {
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
	n.unfed = false
	if wasReplica || sound {
		var err error
		attach, cancel := context.WithTimeout(ctx, opTimeout/3)
		if !wasReplica {
			if err = n.c.db.repoint(attach, n, false); err == nil {
				err = n.c.db.following(attach, n)
			}
		} else if err = n.startStillLocked(ctx); err == nil {
			err = n.c.db.attach(attach, n, false)
		}
		cancel()
		if err == nil {
			n.c.logf("%s: follows %s", n.name, primary.name)
			return nil
		}
		n.c.logf("%s: cannot follow %s as it is: %v", n.name, primary.name, err)
	}
	return n.rebuildLocked(ctx)
}

// Rebuild makes the replica anew from whom it follows, on the same port, and
// waits until it receives: what an administrator does with a replica that
// cannot follow any more. Nothing of its own data remains. A MariaDB or MySQL
// source stands still while it is copied, a fraction of a second for a small
// one.
func (n *Node) Rebuild() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if n.source == nil {
		return n.wrap("rebuild", errors.New("not a replica"))
	}
	return n.wrap("rebuild", n.rebuildLocked(ctx))
}

// rebuildLocked replaces the data by the source's and follows it.
func (n *Node) rebuildLocked(ctx context.Context) error {
	if err := n.stopLocked(); err != nil {
		return err
	}
	n.c.logf("%s: being rebuilt from %s", n.name, n.source.name)
	if err := n.c.db.rebuild(ctx, n); err != nil {
		return err
	}
	if err := n.startStillLocked(ctx); err != nil {
		return err
	}
	if err := n.c.db.attach(ctx, n, true); err != nil {
		return err
	}
	n.c.logf("%s: follows %s", n.name, n.source.name)
	return nil
}

// Repoint makes the node a replica of the source with the data that it has, and
// does not look whether it can follow: it may have what the source lacks, and
// then it stays as it is, or follows wrongly, as a server does to which an
// administrator did that. The node is started if it does not run, and restarted
// if that is what it takes. It takes connections when Repoint returns.
func (n *Node) Repoint(source *Node) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.wrap("repoint to "+source.name, n.repointLocked(source))
}

func (n *Node) repointLocked(source *Node) error {
	if source == n || source.c != n.c {
		return errors.New("not another node of the cluster")
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if n.Hung() {
		return errors.New("the server hangs")
	}
	wasReplica := n.source != nil
	n.setRole(source)
	n.unfed = false
	if err := n.c.db.repoint(ctx, n, wasReplica); err != nil {
		return err
	}
	n.c.logf("%s: pointed to %s", n.name, source.name)
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
