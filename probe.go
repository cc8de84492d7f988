package replicated

import (
	"context"
	"database/sql/driver"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/dialect"
	"github.com/sqlreplicated/replicated/internal/evidence"
)

// prober asks one node who it is and how far it has got, over connections of its
// own: one, so that a full server does not look dead, and one more for each further
// server that the node's name leads to.
//
// It is one goroutine's.
type prober struct {
	node    *node
	role    Role // as which it is asked
	own     *physical
	adopted []*physical

	// asking yields the answer of a driver that is being asked; else it is nil.
	// While it is set, the connections are that goroutine's.
	asking chan error

	owed bool // a floor waits for the sample that is being taken

	followed moment // when the server was last asked whom it replicates from
	readOnly bool   // what its role was then

	opened atomic.Int64 // the time that it took to open the connection last; 0: none has been yet
}

// ask has the node say who it is, within the time for a probe, and that for opening a
// connection first where there is none. A driver that dials by itself need not heed a
// context, and its socket is hidden from us: it is asked on a goroutine of its own, and,
// if it hangs, not again before it has returned.
func (b *prober) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, b.openTime()+b.answerTime())
	defer cancel()
	if b.node.src.dials() {
		return b.askOwn(ctx)
	}
	if b.asking == nil {
		ch := make(chan error, 1)
		b.asking = ch
		go func() { ch <- b.askOwn(ctx) }()
	}
	select {
	case err := <-b.asking:
		b.asking = nil
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end closes the prober's connection, or leaves that to a driver that hangs.
func (b *prober) end() {
	if b.asking != nil {
		select {
		case <-b.asking: //nolint:errcheck // what it says no longer matters
		case <-time.After(abortGrace):
			go func() {
				<-b.asking //nolint:errcheck // likewise
				b.drop()
			}()
			return
		}
	}
	b.drop()
}

// askOwn asks over the prober's own connection.
func (b *prober) askOwn(ctx context.Context) error {
	n := b.node
	if b.own != nil && (b.own.moved() || !b.own.alive() || !b.own.valid()) {
		b.drop() // its name leads elsewhere, or it died while idle, or with all others when the breaker opened
	}
	if b.own != nil && (b.own.role != b.role || b.role == RolePrimary && n.cluster.outdated(b.own)) {
		b.drop() // it has another role now, or its name may lead elsewhere
	}
	if b.own != nil {
		b.renew(ctx)
	}
	if b.own == nil {
		if err := b.open(ctx); err != nil {
			return err
		}
		if b.role == RoleReplica && !n.cluster.topology.follows {
			if n.cluster.cfg.ReplicaMaxIdle == 0 && n.cluster.fresh.tracking() == trackWindow {
				b.drop()
			}
			return nil
		}
	}
	if err := b.askOver(ctx, b.own); err != nil || b.own.spoiled {
		b.drop()
		return err
	}
	b.askAdopted(ctx)
	return nil
}

// answerTime is how long a server may take to answer.
func (b *prober) answerTime() time.Duration {
	return min(probeTimeout, b.connectTimeout())
}

// openTime is how long a connection may take to open: as long as a probe, but where the
// way to the server is long. Opening takes half a dozen round trips: on a node that has
// never been reached, or was slow to, it may take as long as for a statement.
func (b *prober) openTime() time.Duration {
	took := time.Duration(b.opened.Load())
	if took == 0 {
		return b.connectTimeout()
	}
	return min(max(probeTimeout, 4*took), b.connectTimeout())
}

func (b *prober) connectTimeout() time.Duration {
	if d := b.node.cluster.cfg.ConnectTimeout; d > 0 {
		return d
	}
	return 2 * probeTimeout
}

func (b *prober) open(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, b.openTime())
	defer cancel()
	began := time.Now()
	if b.own, err = b.node.connect(ctx, b.role, forSampling); err == nil {
		b.opened.Store(max(int64(time.Since(began)), 1))
	}
	return err
}

// askOver asks the server that p has reached.
func (b *prober) askOver(ctx context.Context, p *physical) error {
	ctx, cancel := context.WithTimeout(ctx, b.answerTime())
	defer cancel()
	stop := p.abortWhenDone(ctx)
	p.begin(&progress{}, false, 0)
	err := b.question(ctx, p)
	if !stop() || err != nil {
		p.spoiled = true
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return err
}

// askAdopted asks the other servers that the node's connections lead to, each over
// one of these.
func (b *prober) askAdopted(ctx context.Context) {
	kept := b.adopted[:0]
	asked := []*evidence.Server{b.own.server}
	for _, p := range b.adopted {
		if slices.Contains(asked, p.server) || p.moved() || b.askOver(ctx, p) != nil {
			p.close()
			continue
		}
		asked = append(asked, p.server)
		kept = append(kept, p)
	}
	clear(b.adopted[len(kept):])
	b.adopted = kept
	if b.role == RolePrimary {
		return
	}
	for _, s := range b.node.servers() {
		if !slices.Contains(asked, s) {
			if p := b.node.pool.takeOne(func(p *physical) bool { return p.server == s }); p != nil {
				b.adopted = append(b.adopted, p)
			}
		}
	}
}

// question puts to the server, over p, what only a living one answers. Of a
// dialect that we do not know, the driver's Ping has to do, or else a new
// connection.
func (b *prober) question(ctx context.Context, p *physical) error {
	c := b.node.cluster
	if d := b.node.dialect(); c.dialect() != classify.Generic {
		id, asked, err := b.identify(ctx, p, d)
		if err != nil {
			return err
		}
		if p.role == RolePrimary && id.ReadOnly {
			c.fresh.book.Final(id.Server, asked, id.Written)
		}
		f, err := b.askSources(ctx, p, &id)
		if err != nil {
			return err
		}
		c.topology.heardFollowing(b.node, &id, f, asked)
		switch {
		case p.role != b.node.role(): // from this answer on
			p.spoiled = true
			return nil
		case p.role == RolePrimary && !c.tracks():
			if !id.ReadOnly {
				c.fresh.demoted.Store(false)
				c.fresh.blind.Store(false)
			}
			return nil
		case p.role == RolePrimary:
			return c.sampled(p, &id, asked)
		}
		if id.Server != p.identity.Server && c.fresh.tracking() != trackWindow {
			b.node.foundSeveral()
		}
		c.sighted(p, &id, asked)
		return nil
	}
	if pinger, ok := p.conn.(driver.Pinger); ok {
		return pinger.Ping(ctx)
	}
	b.drop()
	return b.askOwn(ctx)
}

// identify has the server say who it is and how far it has got, as of a moment.
func (b *prober) identify(ctx context.Context, p *physical, d *dialect.Dialect) (id dialect.Identity, asked moment, err error) {
	c := b.node.cluster
	if c.beats() {
		if p.beat == nil {
			p.beat = new(heartbeat)
		}
		return p.beat.ask(ctx, p, b.owed)
	}
	if p.sampler == nil && c.tracks() && p.direct {
		p.sampler = d.Sampler(p.conn)
	}
	asked = now()
	id, err = p.ask(ctx)
	return id, asked, err
}

// askSources asks a server whom it replicates from, where that may decide who is the
// primary: now and then, and when its role may be changing. It returns nil where it did
// not ask.
func (b *prober) askSources(ctx context.Context, p *physical, id *dialect.Identity) (*following, error) {
	t := &b.node.cluster.topology
	if !t.follows || p != b.own {
		return nil, nil
	}
	asked := now()
	due := asked-b.followed >= moment(rolesEvery) || t.wanted.load() >= b.followed || t.restless()
	if !due && id.ReadOnly == b.readOnly {
		return nil, nil
	}
	sources, told, err := b.node.dialect().Sources(ctx, p.conn)
	if err != nil && (ctx.Err() != nil || p.lost(err)) {
		return nil, err
	}
	b.followed, b.readOnly = asked, id.ReadOnly
	return &following{sources, told}, nil
}

func (b *prober) drop() {
	if b.own != nil {
		b.own.close()
		b.own = nil
	}
	for _, p := range b.adopted {
		p.close()
	}
	b.adopted = nil
}
