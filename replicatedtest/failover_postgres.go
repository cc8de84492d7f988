package replicatedtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

func (p *postgres) synchronous() error { return nil }

// synchronousNames lists all other nodes: whoever is a standby ignores it.
func (p *postgres) synchronousNames(n *Node) string {
	var names []string
	for i := range 1 + n.c.options.replicas() {
		if name := nodeName(i); name != n.name {
			names = append(names, name)
		}
	}
	return "ANY 1 (" + strings.Join(names, ", ") + ")"
}

func (p *postgres) demote(context.Context, *Node) error {
	return fmt.Errorf("%s has no mode for that: %w", p.name(), errors.ErrUnsupported)
}

// received takes the timeline from the names of the log's segments: the control
// file learns of a new one late, and without a primary there is no receiver to
// ask.
func (p *postgres) received(ctx context.Context, n *Node) (got progress, err error) {
	err = n.withConn(ctx, func(ctx context.Context, conn *sql.Conn) error {
		return conn.QueryRowContext(ctx, `SELECT
			(SELECT max(('x' || left(name, 8))::bit(32)::int) FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}$'),
			coalesce(greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) - '0/0', 0)::bigint`).Scan(&got.timeline, &got.position)
	})
	return got, err
}

func (p *postgres) receiving(ctx context.Context, n *Node) (yes bool, err error) {
	err = n.withConn(ctx, func(ctx context.Context, conn *sql.Conn) error {
		return conn.QueryRowContext(ctx, "SELECT count(*) > 0 FROM pg_stat_wal_receiver WHERE status = 'streaming'").Scan(&yes)
	})
	return yes, err
}

// handOver stops the primary, which waits for the standbys that are connected
// to have all. The last that it writes is the checkpoint that the control file
// tells of.
func (p *postgres) handOver(ctx context.Context, primary, to *Node) (err error) {
	if err := p.following(ctx, to); err != nil {
		return err
	}
	if err := primary.stopLocked(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
			defer cancel()
			err = errors.Join(err, primary.startLocked(ctx))
		}
	}()
	out, err := p.tool("pg_controldata", "-D", p.data(primary)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("pg_controldata: %w: %s", err, out)
	}
	last := lastCheckpoint.FindSubmatch(out)
	if last == nil || !orderlyStop.Match(out) {
		return errors.New("it did not stop in order")
	}
	err = to.withConn(ctx, func(ctx context.Context, conn *sql.Conn) error {
		return poll(ctx, 2*time.Millisecond, func() (there bool, err error) {
			err = conn.QueryRowContext(ctx, "SELECT coalesce(greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) > $1::pg_lsn, false)",
				string(last[1])).Scan(&there)
			return there, err
		})
	})
	if err != nil {
		return fmt.Errorf("%s has not received all: %w", to, err)
	}
	return nil
}

var (
	lastCheckpoint = regexp.MustCompile(`(?m)^Latest checkpoint location: +([0-9A-F]+/[0-9A-F]+)$`)
	orderlyStop    = regexp.MustCompile(`(?m)^Database cluster state: +shut down$`)
)
