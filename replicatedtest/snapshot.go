package replicatedtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Snapshot is a copy of all that a server remembered at one time. It lives as
// long as the cluster.
type Snapshot struct {
	node    *Node
	dir     string
	replica bool
}

// Snapshot copies the data of a server that does not run: a backup, or the
// image of a virtual machine. [Node.Restore] brings it back.
func (n *Node) Snapshot() (*Snapshot, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process() != nil {
		return nil, n.wrap("snapshot", errRunning)
	}
	n.taken++
	// Not where the watchdog looks for the lock files of servers.
	s := &Snapshot{node: n, dir: filepath.Join(n.dir, fmt.Sprintf("snapshot%d", n.taken)), replica: n.source != nil}
	if err := copyTree(s.dir, n.c.db.data(n), n.c.db.account()); err != nil {
		return nil, n.wrap("snapshot", err)
	}
	n.c.logf("%s: snapshot taken", n.name)
	return s, nil
}

// Restore replaces the data of the server, which must not run, by what it was
// when the snapshot was taken, as often as wanted: identity, positions, accounts
// and all. [Node.Start] starts it with that.
//
// The node must have the role that it had then. A replica follows whom it
// followed then, without its delay, until [Node.Follow] or [Node.Repoint].
// [Cluster.WaitCaughtUp] cannot tell how far the replicas of a restored primary
// are: they have been at its positions before.
func (n *Node) Restore(s *Snapshot) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case s.node != n:
		return n.wrap("restore", fmt.Errorf("a snapshot of %s", s.node))
	case n.process() != nil:
		return n.wrap("restore", errRunning)
	case s.replica != (n.source != nil):
		return n.wrap("restore", errors.New("the role is another one than when the snapshot was taken"))
	}
	data := n.c.db.data(n)
	if err := emptyDir(data); err != nil {
		return n.wrap("restore", err)
	}
	if err := copyInto(data, s.dir, n.c.db.account()); err != nil {
		return n.wrap("restore", err)
	}
	// PostgreSQL's lock file, of a server that was killed, tells of a process
	// that is no more.
	if err := os.Remove(filepath.Join(data, "postmaster.pid")); err != nil && !os.IsNotExist(err) {
		return n.wrap("restore", err)
	}
	n.c.logf("%s: restored", n.name)
	return nil
}

// ResetBinaryLog makes a MariaDB or MySQL server forget its binary log and its
// GTIDs, and begin anew with the first (RESET MASTER). Its data stay. What
// replicas make of that is what they do in earnest; [Cluster.WaitCaughtUp] cannot
// tell how far they are. PostgreSQL has nothing like it: the error is
// [errors.ErrUnsupported] there.
func (n *Node) ResetBinaryLog() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
	defer cancel()
	if err := n.usable(false); err != nil {
		return n.wrap("reset binary log", err)
	}
	if err := n.c.db.resetLog(ctx, n); err != nil {
		return n.wrap("reset binary log", err)
	}
	n.c.logf("%s: binary log reset", n.name)
	return nil
}

func (p *postgres) resetLog(context.Context, *Node) error {
	return fmt.Errorf("%s has no binary log: %w", p.name(), errors.ErrUnsupported)
}

func (m *mysqlFamily) resetLog(ctx context.Context, n *Node) error {
	if m.atLeast(8, 2) {
		return n.exec(ctx, "RESET BINARY LOGS AND GTIDS")
	}
	return n.exec(ctx, "RESET MASTER")
}

var errRunning = errors.New("the server runs")
