package replicatedtest

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"
)

// attach makes a running standby receive from its source, and waits until it
// does.
func (p *postgres) attach(ctx context.Context, n *Node, fresh bool) error {
	if !fresh {
		if err := p.reconnect(ctx, n); err != nil {
			return err
		}
	}
	return p.following(ctx, n)
}

func (p *postgres) following(ctx context.Context, n *Node) error {
	return n.withConn(ctx, func(ctx context.Context, conn *sql.Conn) error {
		return poll(ctx, 10*time.Millisecond, func() (bool, error) {
			// The receiver of the former source may still be listed.
			var streaming bool
			err := conn.QueryRowContext(ctx, "SELECT count(*) > 0 FROM pg_stat_wal_receiver WHERE status = 'streaming' AND conninfo LIKE $1",
				p.conninfoLike(n)).Scan(&streaming)
			return streaming, err
		})
	})
}

// conninfoLike is a pattern that the primary_conninfo of the node's source has,
// and no other.
func (p *postgres) conninfoLike(n *Node) string {
	if n.unfed {
		return ""
	}
	return fmt.Sprintf("%%port=%d %%", n.source.Port())
}

// reconnect makes a running standby use the primary_conninfo that its role
// asks for now.
func (p *postgres) reconnect(ctx context.Context, n *Node) error {
	if p.version.atLeast(13, 0) {
		return p.reload(ctx, n, "primary_conninfo", p.conninfoLike(n))
	}
	// It is read at the start only, which ends what does not outlive one.
	unfed := n.unfed
	if err := n.stopLocked(); err != nil {
		return err
	}
	return n.startUnfedLocked(ctx, unfed)
}

func (p *postgres) repoint(ctx context.Context, n *Node, wasReplica bool) error {
	if wasReplica && n.process() != nil {
		return p.reconnect(ctx, n)
	}
	// What was a primary becomes a standby by a start.
	if err := n.stopLocked(); err != nil {
		return err
	}
	if err := p.markStandby(n); err != nil {
		return err
	}
	return n.startLocked(ctx)
}

func (p *postgres) unplug(ctx context.Context, n *Node) error {
	if err := p.reconnect(ctx, n); err != nil {
		return err
	}
	// The recovering process ends the receiver when it looks, which it does not
	// while it is delayed or paused: so it is ended here, as by an
	// administrator's kill.
	return n.withConn(ctx, func(ctx context.Context, conn *sql.Conn) error {
		return poll(ctx, 2*time.Millisecond, func() (bool, error) {
			var pid sql.NullInt64
			err := conn.QueryRowContext(ctx, "SELECT max(pid) FROM pg_stat_wal_receiver").Scan(&pid)
			if err != nil || !pid.Valid {
				return err == nil, err
			}
			if slices.Contains(children(n.proc.pid), int(pid.Int64)) {
				if err := terminateProcess(int(pid.Int64)); err != nil && processExists(int(pid.Int64)) {
					return false, err
				}
			}
			return false, nil
		})
	})
}

func (p *postgres) plug(ctx context.Context, n *Node) error { return p.reconnect(ctx, n) }

// reload makes the server read follow.conf again, and waits until all its
// processes have been told. A connection made after the main process has read
// the file shows the new value, and the main process passes the signal on
// before it takes a connection.
func (p *postgres) reload(ctx context.Context, n *Node, setting, like string) error {
	if err := p.writeFollow(n); err != nil {
		return err
	}
	if err := n.exec(ctx, "SELECT pg_reload_conf()"); err != nil {
		return err
	}
	return poll(ctx, 2*time.Millisecond, func() (found bool, err error) {
		err = n.withConn(ctx, func(ctx context.Context, conn *sql.Conn) error {
			return conn.QueryRowContext(ctx, "SELECT setting LIKE $2 FROM pg_settings WHERE name = $1", setting, like).Scan(&found)
		})
		return found, err
	})
}

func (p *postgres) promote(ctx context.Context, n *Node) error {
	if err := n.exec(ctx, "SELECT pg_promote(true, 60)"); err != nil {
		return err
	}
	return n.withConn(ctx, func(ctx context.Context, conn *sql.Conn) error {
		return poll(ctx, 5*time.Millisecond, func() (bool, error) {
			var done bool
			err := conn.QueryRowContext(ctx, "SELECT NOT pg_is_in_recovery()").Scan(&done)
			return done, err
		})
	})
}

func (p *postgres) pause(ctx context.Context, n *Node) error {
	state := "pg_get_wal_replay_pause_state() = 'paused'"
	if !p.version.atLeast(14, 0) {
		state = "pg_is_wal_replay_paused()"
	}
	return n.withConn(ctx, func(ctx context.Context, conn *sql.Conn) error {
		if _, err := conn.ExecContext(ctx, "SELECT pg_wal_replay_pause()"); err != nil {
			return err
		}
		return poll(ctx, 2*time.Millisecond, func() (bool, error) {
			var paused bool
			err := conn.QueryRowContext(ctx, "SELECT "+state).Scan(&paused)
			return paused, err
		})
	})
}

func (p *postgres) unpause(ctx context.Context, n *Node) error {
	return n.exec(ctx, "SELECT pg_wal_replay_resume()")
}

func (p *postgres) delay(ctx context.Context, n *Node, d time.Duration) error {
	return p.reload(ctx, n, "recovery_min_apply_delay", fmt.Sprint(d.Milliseconds()))
}

// caughtUp compares log positions, which mean something on one timeline only.
// What the source has is what it has flushed; if it holds more (asynchronous
// commits, page cleaning), a message in the log, committed synchronously, flushes
// that first.
func (p *postgres) caughtUp(ctx context.Context, source, replica *Node) error {
	var target string
	var timeline sql.NullInt64
	err := source.withConn(ctx, func(ctx context.Context, conn *sql.Conn) error {
		// A standby that others follow has what it has replayed.
		var inRecovery, ahead bool
		err := conn.QueryRowContext(ctx, "SELECT pg_is_in_recovery()").Scan(&inRecovery)
		if err != nil {
			return err
		}
		if inRecovery {
			return conn.QueryRowContext(ctx, "SELECT pg_last_wal_replay_lsn()").Scan(&target)
		}
		err = conn.QueryRowContext(ctx, "SELECT pg_current_wal_insert_lsn() <> pg_current_wal_flush_lsn()").Scan(&ahead)
		if err != nil {
			return err
		}
		if ahead {
			if _, err := conn.ExecContext(ctx, "SET synchronous_commit = local"); err != nil {
				return err
			}
			if _, err := conn.ExecContext(ctx, "SELECT pg_logical_emit_message(true, 'replicatedtest', '')"); err != nil {
				return err
			}
		}
		// The timeline is the first part of a segment's name, in hexadecimal.
		return conn.QueryRowContext(ctx, "SELECT lsn, ('x' || left(pg_walfile_name(lsn), 8))::bit(32)::int FROM pg_current_wal_flush_lsn() AS lsn").
			Scan(&target, &timeline)
	})
	if err != nil {
		return err
	}
	var told time.Time // when the standby was last told to write its control file
	return replica.withConn(ctx, func(ctx context.Context, conn *sql.Conn) error {
		return poll(ctx, 2*time.Millisecond, func() (bool, error) {
			var there bool
			var at int64
			err := conn.QueryRowContext(ctx, `SELECT coalesce(pg_last_wal_replay_lsn() >= $1::pg_lsn, false),
				greatest((SELECT max(received_tli) FROM pg_stat_wal_receiver), c.timeline_id, r.min_recovery_end_timeline)
				FROM pg_control_checkpoint() c, pg_control_recovery() r`, target).Scan(&there, &at)
			if err != nil || !there || !timeline.Valid || at == timeline.Int64 {
				return there, err
			}
			// A standby on a later timeline has a history of its own, as one on
			// an earlier timeline has; but without a receiver the latter is only
			// said by the control file, which learns of a new timeline late.
			if at < timeline.Int64 && time.Since(told) > time.Second {
				told = time.Now()
				_, err = conn.ExecContext(ctx, "CHECKPOINT")
			}
			return false, err
		})
	})
}
