package replicatedtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// CrashBackend ends the process of one PostgreSQL session, by its
// pg_backend_pid(), with SIGKILL, as the system does when memory runs out, and
// waits until the server takes connections again.
//
// The server throws all sessions out and recovers by itself: its main process
// stays, and so do [Node.Pid], the address and pg_postmaster_start_time(). What
// a standby had applied is applied anew from its last restartpoint, and it takes
// connections before it is as far as it was: to keep it from getting there, set
// a [Node.Delay] longer than the test before. A pause of replication ends.
//
// MariaDB and MySQL sessions are threads, which do not die alone: the error is
// [errors.ErrUnsupported] there. [Node.Kill] and [Node.Start] are the same
// crash.
func (n *Node) CrashBackend(id int64) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := n.usable(false); err != nil {
		return n.wrap("crash backend", err)
	}
	if err := n.c.db.crash(ctx, n, id); err != nil {
		return n.wrap("crash backend", err)
	}
	n.c.logf("%s: crashed with session %d, ready again", n.name, id)
	return nil
}

func (p *postgres) crash(ctx context.Context, n *Node, id int64) error {
	server := n.proc
	if !slices.Contains(children(server.pid), int(id)) {
		return fmt.Errorf("no session %d", id)
	}
	if err := killProcess(int(id)); err != nil {
		return err
	}
	// Once the main process has collected the dead one, it takes no connection
	// before it has recovered.
	if err := waitExit(ctx, int(id)); err != nil {
		return err
	}
	return poll(ctx, time.Millisecond, func() (bool, error) {
		if server.ended() {
			n.ended(server)
			return false, fmt.Errorf("the server ended (%v)", server.err)
		}
		return p.ready(ctx, n) == nil, nil
	})
}

func (m *mysqlFamily) crash(context.Context, *Node, int64) error {
	return fmt.Errorf("sessions of %s are threads: %w", m.name(), errors.ErrUnsupported)
}
