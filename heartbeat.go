package replicated

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/dialect"
	"github.com/sqlreplicated/replicated/internal/position"
)

// beatEvery is the pause between two beats of one process. A hundred processes that
// count up one row more often would make it a hot one.
const beatEvery = 500 * time.Millisecond

// heartbeat takes samples by a row that is counted up on the primary, where servers
// tell no positions. It is one prober's, and one goroutine's.
type heartbeat struct {
	beaten moment // when it was last counted up by us
	read   position.Position
	readAt moment // when it was last found to be at read

	asked    bool   // whether the replica applies in order
	disorder string // why not; "" if it does
}

// sample asks for the primary's beat. It counts the row up if some floor is owed a
// sample, and no beat of ours is too recent. Otherwise another process's beat may
// do: if two readings differ, the second one's was committed after the first was
// asked for, and has all that had been acknowledged by then.
//
// at is the moment that the position is a sample of; the zero Position is none.
func (h *heartbeat) sample(ctx context.Context, p *physical, owed bool) (at moment, pos position.Position, err error) {
	d, table := p.node.dialect(), p.node.cluster.cfg.HeartbeatTable
	asked := now()
	if owed && asked-h.beaten >= moment(beatEvery) {
		if pos, err = d.Beat(ctx, p.conn, table); err != nil {
			return never, position.Position{}, err
		}
		h.beaten, h.read, h.readAt = asked, pos, now()
		return asked, pos, nil
	}
	if pos, err = d.ReadBeat(ctx, p.conn, table); err != nil {
		return never, position.Position{}, err
	}
	before := h.readAt
	if pos.Equal(h.read) {
		h.readAt = asked
		return never, position.Position{}, nil
	}
	first := h.read.IsZero()
	h.read, h.readAt = pos, asked
	if first {
		return never, position.Position{}, nil
	}
	return before, pos, nil
}

// applied asks for the beat that the replica has applied. Where changes are not
// applied in the order in which they were committed, a beat proves nothing: why
// says so.
func (h *heartbeat) applied(ctx context.Context, p *physical) (pos position.Position, why string, err error) {
	d := p.node.dialect()
	if !h.asked {
		ok, why, err := d.InOrderApply(ctx, p.conn)
		if err != nil {
			return position.Position{}, "", err
		}
		h.asked, h.disorder = true, ""
		if !ok {
			h.disorder = why
		}
	}
	if h.disorder != "" {
		return position.Position{}, h.disorder, nil
	}
	pos, err = d.ReadBeat(ctx, p.conn, p.node.cluster.cfg.HeartbeatTable)
	return pos, "", err
}

// beats tells whether freshness is told by a heartbeat.
func (c *Cluster) beats() bool { return c.cfg.Tracker == TrackerHeartbeat && c.tracks() }

// ask has the server say who it is, and how far it has got by the heartbeat.
func (h *heartbeat) ask(ctx context.Context, p *physical, owed bool) (id dialect.Identity, at moment, err error) {
	at = now()
	if id, err = p.node.dialect().Identify(ctx, p.conn); err != nil {
		return id, never, err
	}
	switch {
	case p.role == RoleReplica:
		pos, why, err := h.applied(ctx, p)
		if missing := amiss(ctx, p, err); missing != "" {
			return id.ByBeat(position.Position{}, missing), at, nil
		}
		return id.ByBeat(pos, why), at, err
	case id.ReadOnly:
		return id, at, nil
	}
	asked := at
	at, pos, err := h.sample(ctx, p, owed)
	if missing := amiss(ctx, p, err); missing != "" {
		return id.ByBeat(position.Position{}, missing), asked, nil
	}
	return id.ByBeat(pos, ""), at, err
}

// amiss returns what is amiss with the heartbeat itself: its table, its row or a
// privilege is missing, says a server that answers. It is "" for any other error.
func amiss(ctx context.Context, p *physical, err error) string {
	if err == nil || ctx.Err() != nil || p.lost(err) {
		return ""
	}
	switch p.node.dialect().Class(err) {
	case dialect.Lost, dialect.Down, dialect.Busy, dialect.Auth, dialect.Cancelled:
		return ""
	default:
		return strings.TrimPrefix(err.Error(), "replicated: ")
	}
}

// HeartbeatDDL returns the statements that make the table of TrackerHeartbeat, to be
// run once on the primary: for the dialect "postgres", "mysql" or "mariadb", and a
// table named as Config.HeartbeatTable may be. What is there already stays.
//
// A heartbeat proves something only where all changes come to a replica in one
// stream and are applied in the order in which they were committed. Where a replica
// tells that it applies them otherwise (several workers without preserved commit
// order), it serves no reads, and a notice says why. That one subscription or source
// brings everything, without filters, is for whoever sets it up to see to.
func HeartbeatDDL(dialectName, table string) ([]string, error) {
	kind, ok := classify.ParseDialect(dialectName)
	if !ok || kind == classify.Generic {
		return nil, fmt.Errorf("replicated: no heartbeat for the dialect %q: want postgres, mysql or mariadb", dialectName)
	}
	return dialect.For(kind).HeartbeatDDL(table)
}
