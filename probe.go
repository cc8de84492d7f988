package replicated

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync"
	"time"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/dialect"
)

const (
	probeEvery   = time.Second
	probeTimeout = time.Second // or the time allowed for a dial, if that is less

	// probeAgain is the pause after a probe that failed while the breaker is
	// closed: a node that hangs shall not keep its reads for seconds.
	probeAgain = 50 * time.Millisecond
)

// watchNodes is a cluster's background work: one prober for each replica.
func (c *Cluster) watchNodes(ctx context.Context, wake <-chan struct{}) {
	var probers sync.WaitGroup
	wakes := make([]chan struct{}, 0, len(c.nodes))
	for _, n := range c.nodes[1:] {
		ch := make(chan struct{}, 1)
		wakes = append(wakes, ch)
		probers.Go(func() { (&prober{node: n, wake: ch}).run(ctx) })
	}
	for {
		select {
		case <-ctx.Done():
			probers.Wait()
			return
		case <-wake:
			for _, ch := range wakes {
				select {
				case ch <- struct{}{}:
				default:
				}
			}
		}
	}
}

// prober asks one replica, once a second, whether it answers. It finds a node
// that accepts connections and never answers, it closes the breaker again, and it
// lets idle connections go when they have aged. It keeps one connection of its
// own, so that a full server does not look dead.
//
// It is one goroutine's.
type prober struct {
	node *node
	wake <-chan struct{}
	own  *physical

	// asking yields the answer of a driver that is being asked; else it is nil.
	// While it is set, own is that goroutine's.
	asking chan error
}

func (b *prober) run(ctx context.Context) {
	defer b.end()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			timer.Reset(b.look(ctx))
		case <-b.wake:
			// The breaker has opened: its schedule counts from now.
			if b.node.breaker.current() != BreakerClosed {
				timer.Reset(b.node.breaker.openFor())
			}
		}
	}
}

// look probes once and returns when to do it again.
func (b *prober) look(ctx context.Context) time.Duration {
	n := b.node
	n.forgetLatency()
	for _, p := range n.pool.aged(time.Now()) {
		p.close()
	}
	if n.breaker.current() != BreakerClosed {
		var err error
		if !n.breaker.probe(func() error { err = b.ask(ctx); return err }) {
			return n.breaker.openFor()
		}
		n.cluster.stateChanged(n, BreakerClosed, nil)
		return probeEvery
	}
	err := b.ask(ctx)
	if err == nil {
		n.breaker.succeeded()
		return probeEvery
	}
	if ctx.Err() != nil {
		return probeEvery
	}
	class := n.dialect().Class(err)
	if errors.Is(err, context.DeadlineExceeded) {
		class = dialect.Lost
	}
	n.failed(class, err)
	if n.breaker.current() != BreakerClosed {
		return n.breaker.openFor()
	}
	if held := time.Duration(moment(n.backOff.Load()) - now()); held > 0 {
		return held // the node turns us away: probes keep off, too
	}
	return probeAgain
}

// ask has the node say who it is, within the time for a probe. A driver that dials
// by itself need not heed a context, and its socket is hidden from us: it is asked
// on a goroutine of its own, and, if it hangs, not again before it has returned.
func (b *prober) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, min(probeTimeout, b.node.cluster.cfg.ConnectTimeout))
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
	if b.own != nil && !(b.own.alive() && b.own.valid()) {
		b.drop() // it died while idle, or with all others when the breaker opened
	}
	if b.own == nil {
		p, err := n.connect(ctx, RoleReplica)
		if err != nil {
			return err
		}
		b.own = p
		if n.cluster.cfg.ReplicaMaxIdle == 0 {
			b.drop()
		}
		return nil
	}
	p := b.own
	stop := p.abortWhenDone(ctx)
	p.begin(&progress{}, false, 0)
	err := b.question(ctx, p)
	if !stop() || err != nil {
		b.drop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return err
}

// question puts to the server, over p, what only a living one answers. Of a
// dialect that we do not know, the driver's Ping has to do, or else a new
// connection.
func (b *prober) question(ctx context.Context, p *physical) error {
	if b.node.cluster.dialect() != classify.Generic {
		_, err := b.node.dialect().Identify(ctx, p.conn)
		return err
	}
	if pinger, ok := p.conn.(driver.Pinger); ok {
		return pinger.Ping(ctx)
	}
	b.drop()
	return b.askOwn(ctx)
}

func (b *prober) drop() {
	if b.own != nil {
		b.own.close()
		b.own = nil
	}
}
