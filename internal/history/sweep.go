package history

import (
	"cmp"
	"slices"
)

// scope is a set of writes that a read may be entitled to.
type scope struct {
	kind scopeKind
	id   int64
}

type scopeKind uint8

const (
	ofTx       scopeKind = iota + 1 // the writes of a transaction, seen from inside
	ofConn                          // … of a check-out
	ofSession                       // … of a session and those inside it
	outside                         // … of a process, made outside any session
	ofProcess                       // all writes of a process
	ofAnybody                       // all writes
	seenBySess                      // acknowledged writes that a session has seen
)

// point is a moment at which something of one key happens. The sweep walks the
// points of a key in time; where two share a moment, demands come first: what
// returns when a read is called has not returned before.
type point struct {
	at    Moment
	kind  pointKind
	event *Event
	token int // index of the claim's token
}

type pointKind uint8

const (
	// Demands.
	ownTx   pointKind = iota // a read in a transaction wants its writes
	ownDue                   // a read wants what its scope has written
	token                    // … what its token stands for
	fresh                    // … what anybody has written
	lagging                  // … what anybody wrote longer ago than the bound
	unlost                   // … what its session has seen
	look                     // a monotonic read begins: what it sees is worth keeping
	// Effects.
	inTx    // a write has returned inside its transaction
	effect  // a write has returned, or its transaction has committed
	keeping // a monotonic read has returned
)

// sweep checks the reads of one key against its writes.
func (c *checker) sweep(events []*Event) {
	c.points, c.acked, c.kept = c.points[:0], c.acked[:0], nil
	clear(c.best)
	monotonic := false
	for _, e := range events {
		switch {
		case e.Kind == Read && e.Outcome == Acked:
			c.demands(e)
			monotonic = monotonic || e.Claim.Monotonic
		case e.Kind == Write || e.Kind == Delete:
			c.effects(e)
		}
	}
	if monotonic {
		c.kept = make(map[*Event]*Event)
	}
	slices.SortStableFunc(c.points, func(a, b point) int {
		if a.at != b.at {
			return cmp.Compare(a.at, b.at)
		}
		return cmp.Compare(a.kind, b.kind)
	})
	for i := range c.points {
		c.step(&c.points[i])
	}
}

func (c *checker) point(at Moment, kind pointKind, e *Event) {
	c.points = append(c.points, point{at: at, kind: kind, event: e})
}

func (c *checker) demands(r *Event) {
	if r.Tx != 0 {
		c.point(r.Called, ownTx, r)
	}
	if bound := r.Claim.MaxLag; bound != 0 || c.o.MaxLag != 0 {
		if bound == 0 {
			bound = c.o.MaxLag
		}
		c.point(c.reachable(r.due())-bound, lagging, r)
	}
	if r.Claim.Stale {
		return
	}
	c.point(r.due(), ownDue, r)
	if r.Claim.Fresh != 0 {
		c.point(r.Claim.Fresh, fresh, r)
	}
	for i, t := range r.Claim.Tokens {
		c.points = append(c.points, point{at: t.Taken, kind: token, event: r, token: i})
	}
	if r.Claim.Monotonic && r.Session != 0 {
		c.point(r.due(), unlost, r)
		c.point(r.Called, look, r)
		c.point(r.Returned, keeping, r)
	}
}

// reachable returns the last moment, up to at, at which a primary could be
// reached.
func (c *checker) reachable(at Moment) Moment {
	for _, s := range c.o.Unreachable {
		if s.From <= at && at <= s.To {
			at = s.From
		}
	}
	return at
}

func (c *checker) effects(w *Event) {
	if c.version(w) == 0 {
		return
	}
	if w.Tx != 0 && w.Outcome == Acked {
		c.point(w.Returned, inTx, w)
	}
	if c.fateOf(w) == effective {
		c.point(c.returned(w), effect, w)
	}
}

// returned is when an effective write had returned, for those outside its
// transaction: when that had committed.
func (c *checker) returned(w *Event) Moment {
	if w.Tx != 0 {
		return c.txs[w.Tx].end.Returned
	}
	return w.Returned
}

func (c *checker) step(p *point) {
	e := p.event
	switch p.kind {
	case ownTx:
		c.demand(p, ReadYourWrites, scope{ofTx, e.Tx})
	case ownDue:
		c.demand(p, ReadYourWrites, c.scopes(e)...)
	case token:
		c.demand(p, Tokens, c.tokenScopes(e.Claim.Tokens[p.token])...)
	case fresh:
		c.demand(p, Fresh, scope{kind: ofAnybody})
	case lagging:
		c.demand(p, BoundedStaleness, scope{kind: ofAnybody})
	case unlost:
		c.demand(p, MonotonicReads, c.sessions(seenBySess, e.Session)...)
	case look:
		c.look(e)
	case inTx:
		c.raise(scope{ofTx, e.Tx}, e)
	case effect:
		c.wrote(e)
	case keeping:
		if w := c.kept[e]; w != nil {
			for _, s := range c.sessions(seenBySess, e.Session) {
				c.raise(s, w)
			}
		}
	}
}

// scopes are those whose writes a read is entitled to.
func (c *checker) scopes(r *Event) []scope {
	var s []scope
	if r.Conn != 0 {
		s = append(s, scope{ofConn, r.Conn})
	}
	if c.o.Level == LevelEventual {
		return s
	}
	s = append(s, c.sessions(ofSession, r.Session)...)
	if c.o.Level == LevelSession {
		return s
	}
	s = append(s, scope{outside, int64(r.Process)})
	if r.Session == 0 {
		s = append(s, scope{ofProcess, int64(r.Process)})
	}
	return s
}

func (c *checker) tokenScopes(t Token) []scope {
	if t.Session == 0 {
		return []scope{{ofProcess, int64(t.Process)}}
	}
	return c.sessions(ofSession, t.Session)
}

// sessions returns the scopes of a session and of those around it.
func (c *checker) sessions(kind scopeKind, s SessionID) []scope {
	var all []scope
	for ; s != 0; s = c.h.parent(s) {
		all = append(all, scope{kind, int64(s)})
	}
	return all
}

// wrote enters a write into every scope it belongs to.
func (c *checker) wrote(w *Event) {
	c.raise(scope{kind: ofAnybody}, w)
	if c.kept != nil {
		i, _ := slices.BinarySearchFunc(c.acked, c.version(w), func(a *Event, v int64) int { return cmp.Compare(c.version(a), v) })
		c.acked = slices.Insert(c.acked, i, w)
	}
	if w.Untracked {
		return
	}
	c.raise(scope{ofProcess, int64(w.Process)}, w)
	if w.Conn != 0 {
		c.raise(scope{ofConn, w.Conn}, w)
	}
	contexts := []SessionID{w.Session}
	if w.Tx != 0 {
		contexts = c.txs[w.Tx].contexts
	}
	for _, in := range contexts {
		if in == 0 {
			c.raise(scope{outside, int64(w.Process)}, w)
		}
		for _, s := range c.sessions(ofSession, in) {
			c.raise(s, w)
		}
	}
}

func (c *checker) raise(s scope, w *Event) {
	if old := c.best[s]; old == nil || c.version(w) > c.version(old) {
		c.best[s] = w
	}
}

// look keeps the highest version that the read saw and that was acknowledged
// before it began. What it saw beyond that, the next read may not see: on another
// server it may not be there yet. A key that is not there shows nothing: whether
// for a delete, nobody can tell.
func (c *checker) look(r *Event) {
	i, found := slices.BinarySearchFunc(c.acked, r.Version, func(a *Event, v int64) int { return cmp.Compare(c.version(a), v) })
	if found {
		c.kept[r] = c.acked[i]
	} else if i > 0 {
		c.kept[r] = c.acked[i-1]
	}
}

// demand reports the read of p if it missed a write of the scopes.
func (c *checker) demand(p *point, clause Clause, scopes ...scope) {
	r := p.event
	var missed *Event
	var why scope
	for _, s := range scopes {
		if w := c.best[s]; w != nil && (missed == nil || c.version(w) > c.version(missed)) {
			missed, why = w, s
		}
	}
	if missed == nil || c.version(missed) <= c.shown(r) {
		return
	}
	v := Violation{Clause: clause, Read: r, Write: missed, needed: c.version(missed), due: p.at, because: why}
	if v.returned = missed.Returned; why.kind != ofTx {
		v.returned = c.returned(missed)
	}
	c.report(v)
}
