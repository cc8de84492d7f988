package replicated

import (
	"sync"
	"time"

	"github.com/sqlreplicated/replicated/internal/dialect"
)

// pool keeps the idle connections of one replica, last in first out, so that the
// warm ones are used and the rest age. A borrower never waits for another: get
// returns nil when nothing is idle, and the caller dials.
type pool struct {
	cluster     *Cluster // tells which connections may serve what; nil: each may
	maxIdle     int
	maxIdleTime time.Duration // 0: none

	// mu guards what follows. Connections are closed, and drivers called, only
	// after it is unlocked.
	mu     sync.Mutex
	idle   []*physical // youngest last
	closed bool
}

// searchDepth is how many idle connections are looked at for one that has the
// borrower's settings already.
const searchDepth = 4

// get takes an idle connection out that may serve a read within b, preferably one
// with these settings, or returns nil.
func (p *pool) get(want dialect.Settings, b *bound) *physical {
	p.mu.Lock()
	defer p.mu.Unlock()
	pick, looked := -1, 0
	for i := len(p.idle) - 1; i >= 0 && looked < searchDepth; i-- {
		x := p.idle[i]
		if p.cluster != nil && !p.cluster.allows(x, b) {
			continue
		}
		looked++
		if pick < 0 {
			pick = i
		}
		if x.settings == want {
			pick = i
			break
		}
	}
	if pick < 0 {
		return nil
	}
	pick = p.spreadLocked(pick, b)
	x := p.idle[pick]
	p.idle = append(p.idle[:pick], p.idle[pick+1:]...)
	return x
}

// put gives a connection back. It reports false if there is no room: the caller
// closes it.
func (p *pool) put(x *physical, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) >= p.maxIdle {
		return false
	}
	x.idleSince = now
	p.idle = append(p.idle, x)
	return true
}

// takeIdle takes out the idle connections for which pick says so.
func (p *pool) takeIdle(pick func(*physical) bool) []*physical {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []*physical
	kept := p.idle[:0]
	for _, x := range p.idle {
		if pick(x) {
			out = append(out, x)
		} else {
			kept = append(kept, x)
		}
	}
	clear(p.idle[len(kept):])
	p.idle = kept
	return out
}

// takeOne takes out one idle connection for which pick says so, or returns nil.
func (p *pool) takeOne(pick func(*physical) bool) *physical {
	taken := false
	out := p.takeIdle(func(x *physical) bool {
		if taken || !pick(x) {
			return false
		}
		taken = true
		return true
	})
	if len(out) == 0 {
		return nil
	}
	return out[0]
}

// aged takes out the connections whose time is over.
func (p *pool) aged(now time.Time) []*physical {
	return p.takeIdle(func(x *physical) bool { return p.tooOld(x, now) })
}

func (p *pool) tooOld(x *physical, now time.Time) bool {
	return !x.expires.IsZero() && now.After(x.expires) ||
		p.maxIdleTime > 0 && !x.idleSince.IsZero() && now.Sub(x.idleSince) > p.maxIdleTime
}

// shut takes all out and lets none back in until open.
func (p *pool) shut() []*physical {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	out := p.idle
	p.idle = nil
	return out
}

func (p *pool) open() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = false
}

func (p *pool) len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}
