package replicated

import (
	"context"

	"github.com/sqlreplicated/replicated/internal/evidence"
)

// WithMonotonicReads has reads that run with the returned context never lose sight
// of an acknowledged write that an earlier one has seen: one that was acknowledged
// before that read began. It is for the reads of the context's session; where
// there is none, one is opened. The session stays on the replica that it has read
// from for as long as that may serve; elsewhere its reads are entitled to
// everything up to the end of the last one.
//
// A write that is not acknowledged yet may be seen on one node and not yet on the
// next, in either direction: replicas can show what their primary does not show
// yet.
func WithMonotonicReads(ctx context.Context) context.Context {
	w := wishesOf(ctx)
	if w.session == nil {
		ctx, _ = WithSession(ctx)
		w = wishesOf(ctx)
	}
	w.monotonic = true
	return withWishes(ctx, w)
}

// seen is what a session has seen of a cluster. The zero value is nothing.
//
// A read on a server that has served the session before needs no proof of what it
// has seen there, as long as the server goes on living: a connection shows that
// which was opened before the read began, since a crash closes it.
type seen struct {
	node   *node // of the last read; nil: none yet, or the primary
	server *evidence.Server
	began  moment // of the last read, and of those that ran beside it
	end    moment // of the last read
	others moment // of the last read anywhere else
}

// floor is what a node has to be past that the session has not read from last.
func (s *seen) floor() floor { return evidence.All(s.end) }

// here tells whether the session has read from the node last, so that what it has
// seen elsewhere is all that has to be proven.
func (s *seen) here(n *node) bool { return s.node == n && n != nil }

// over tells whether a connection leads to the server that the session has read
// from last, and has done so ever since.
func (s *seen) over(p *physical) bool {
	return s.here(p.node) && s.server == p.server && p.opened < s.began && (s.others == never || p.server.Proof().Past(evidence.All(s.others)))
}

// outermost returns the session that all others of the context are nested in: what
// any of them has seen counts for all.
func (s *Session) outermost() *Session {
	for s.parent != nil {
		s = s.parent
	}
	return s
}

// hasSeen returns what the session has seen of a cluster.
func (s *Session) hasSeen(f *floors) seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ofLocked(f).seen
}

// saw takes note of a read of the session that has just been answered over p.
// looked is what the session had seen when the read was called.
func (s *Session) saw(f *floors, p *physical, began moment, looked *seen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := &s.ofLocked(f).seen
	var n *node
	if p.role == RoleReplica {
		n = p.node
	}
	switch {
	case x.node != n || x.server != p.server:
		x.others = max(x.others, x.end)
		x.node, x.server, x.began = n, p.server, began
	case x.end == looked.end: // it has what was seen before
		x.began = began
	default:
		x.began = min(x.began, began)
	}
	x.end = max(x.end, now())
}

// saw takes note of a read, where the context has monotonic ones.
func (c *Conn) saw(ctx context.Context, w *work, p *physical, began moment, looked *seen) {
	if wish := wishesOf(ctx); wish.monotonic && w.runs {
		wish.session.outermost().saw(c.cluster.floors, p, began, looked)
	}
}
