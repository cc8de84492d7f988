package replicated

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"
)

// This file follows the names of nodes. A name may lead elsewhere tomorrow (the
// primary's, after a failover by DNS) or to more servers than today (a reader
// endpoint), and a connection that works shows nothing of that. What an address has
// to do to be gone, and which of several is dialled, is for [socket.Host] to tell.

// followName looks up the addresses of the node's name again and again, until ctx
// ends, and closes idle connections that its answers leave no place for. Those in
// use go when they are given back, see leaves. It waits for nothing but the
// resolver, and nothing waits for it.
func (n *node) followName(ctx context.Context) {
	timer := time.NewTimer(n.host.Pause())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		_ = n.host.Look(ctx) // a name that cannot be looked up leads to where it has led
		for _, p := range n.pool.takeIdle((*physical).leaves) {
			p.close()
		}
		timer.Reset(n.host.Pause())
	}
}

// moved tells whether the name that the connection was dialled by leads elsewhere
// now.
func (p *physical) moved() bool { return p.sock != nil && p.sock.Gone() }

// leaves tells whether a replica connection that nobody is using should be closed,
// because the name leads elsewhere, or for the sake of addresses that have fewer
// connections. It must be closed then, see [socket.Conn.Surplus].
func (p *physical) leaves() bool { return p.moved() || p.sock != nil && p.sock.Surplus() }

// shun has the next connections of the node lead to other servers behind its name
// for a while, if there are any.
func (p *physical) shun() {
	if p.sock != nil {
		p.sock.Shun()
	}
}

// member returns the address behind the node's name that the connection leads to, if
// there are several.
func (p *physical) member() netip.Addr {
	if p.sock == nil {
		return netip.Addr{}
	}
	return p.sock.Member()
}

// spreadLocked returns, in place of the idle connection that was picked for a read,
// the youngest one with the same settings to a member of the name that is chosen at
// random: the youngest of all may lead to the same member for ever.
func (p *pool) spreadLocked(pick int, b *bound) int {
	picked := p.idle[pick]
	member := picked.member()
	if !member.IsValid() {
		return pick
	}
	var buf [8]netip.Addr
	members := append(buf[:0], member)
	for i := len(p.idle) - 1; i >= 0; i-- {
		x := p.idle[i]
		if x.settings != picked.settings || slices.Contains(members, x.member()) || p.cluster != nil && !p.cluster.allows(x, b) {
			continue
		}
		members = append(members, x.member())
		if rand.IntN(len(members)) == 0 {
			pick = i
		}
	}
	return pick
}

// renewAgain is the pause before another try to open the prober's connection anew.
const renewAgain = 10 * time.Second

// renew opens the prober's own connection anew when its time is over. Where a
// virtual address or a balancer leads to another server by now, with the old one
// still alive, only a new connection can tell. The old one serves until there is a
// new one: a full server is not a dead one.
func (b *prober) renew(ctx context.Context) {
	at := time.Now()
	if b.own.expires.IsZero() || at.Before(b.own.expires) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, b.openTime())
	defer cancel()
	p, err := b.node.connect(ctx, b.own.role, forSampling)
	if err != nil {
		b.own.expires = at.Add(renewAgain)
		return
	}
	b.own.close()
	b.own = p
}
