package replicated

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqlreplicated/replicated/internal/dialect"
)

// When a caller's context ends, drivers for MySQL and MariaDB close the socket and
// return, and the server, which does not look at the socket while a statement runs,
// goes on with it to the commit. So that a write does not take effect when nobody
// expects it any more, the server is told to end the connection.

const (
	// killTime is for how long an attempt is made to end an abandoned write, the
	// waiting for its turn included.
	killTime = 3 * time.Second
	// maxKillers is how many connections to one node end abandoned writes at a time:
	// many contexts may end at once, and the node has others to serve.
	maxKillers = 4
)

// What a [NoticeWriteAbandoned] tells.
var (
	errWriteStopped = errors.New("the server has ended the connection: the write has no effect from here on, and most likely had none")
	errWriteEnded   = errors.New("the write had ended before the server was told: it may have taken effect")
	errWriteAtLarge = errors.New("the server could not be made to end the write, which may take effect at any later time")
)

// abandonedWrite is a statement that may write and whose caller has gone away.
type abandonedWrite struct {
	id     dialect.Identity // of its connection
	opened moment
	until  time.Time // nothing is tried after that
}

// abandonedWrites are those of one node that wait to be ended. Each killer has a
// connection of its own and ends one after the other, until there are none.
type abandonedWrites struct {
	waiting []abandonedWrite
	killers int
}

// forsaken abandons what w has sent over the primary connection p, if err means that
// the caller's context has ended while it was under way.
func (c *Cluster) forsaken(ctx context.Context, w *work, p *physical, g *progress, err error) {
	if err == nil || ctx.Err() == nil || !w.runs || !w.mayWrite || p.nothingRan(g, err) {
		return
	}
	if p.lost(err) || !p.valid() { // else the server has answered
		c.abandon(p)
	}
}

// abandon has the server end p, a primary connection that is lost to us and may
// still run a write. It returns at once; what came of it is told by a
// [NoticeWriteAbandoned]. [Cluster.close] waits for it, killTime at most, and after
// that nothing is done.
func (c *Cluster) abandon(p *physical) {
	n := p.node
	if !n.dialect().Abandons() || !p.direct || p.identity.Server == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.done:
		return
	default:
	}
	if c.abandoned == nil {
		c.abandoned = make(map[*node]*abandonedWrites)
	}
	a := c.abandoned[n]
	if a == nil {
		a = new(abandonedWrites)
		c.abandoned[n] = a
	}
	a.waiting = append(a.waiting, abandonedWrite{id: p.identity, opened: p.opened, until: time.Now().Add(killTime)})
	if a.killers < maxKillers {
		a.killers++
		c.rests.Go(func() { c.endAbandoned(n) })
	}
}

// nextAbandoned takes the write that has waited longest. Who gets none is a killer
// no more.
func (c *Cluster) nextAbandoned(n *node) (v abandonedWrite, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.abandoned[n]
	if len(a.waiting) > 0 {
		v, a.waiting = a.waiting[0], a.waiting[1:]
		return v, true
	}
	if a.killers--; a.killers == 0 {
		delete(c.abandoned, n)
	}
	return v, false
}

// endAbandoned is a killer's life.
func (c *Cluster) endAbandoned(n *node) {
	var p *physical
	defer func() {
		if p != nil {
			p.close()
		}
	}()
	for {
		v, ok := c.nextAbandoned(n)
		if !ok {
			return
		}
		var killed bool
		var err error
		if killed, p, err = v.end(n, p); err != nil {
			err = fmt.Errorf("%w: %w", errWriteAtLarge, withoutBadConn(err))
		} else if killed {
			err = errWriteStopped
		} else {
			err = errWriteEnded
		}
		c.notice(Notice{Kind: NoticeWriteAbandoned, Node: n.name, Err: err})
	}
}

// end ends the write over p, or a new connection where p is nil, and returns the one
// that can be used again.
func (v *abandonedWrite) end(n *node, p *physical) (killed bool, _ *physical, err error) {
	ctx, cancel := context.WithDeadline(context.Background(), v.until)
	defer cancel()
	if p == nil {
		if p, err = n.connect(ctx, RolePrimary, forKill); err != nil {
			return false, nil, err
		}
	}
	done := p.abortWhenDone(ctx)
	killed, err = n.dialect().Abandon(ctx, p.conn, v.id, time.Duration(now()-v.opened))
	if !done() || err != nil {
		p.close()
		p = nil
	}
	return killed, p, err
}
