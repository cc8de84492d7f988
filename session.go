package replicated

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/sqlreplicated/replicated/internal/evidence"
)

// Session is a scope that reads its own writes: a request, a job, a user's
// action. Every statement run with the session's context, on any goroutine,
// connection or [*database/sql.DB], raises the session's floor when it may have
// written; every read with that context is served only by a node that is known
// to be past the floor. A session may meet several clusters and keeps one floor
// for each.
//
// A Session is safe for concurrent use. It holds no connection and needs no
// closing.
type Session struct {
	parent *Session
	behind stamp // raised by Wrote, for every cluster

	changes atomic.Uint64                 // writes and adoptions
	adopted atomic.Pointer[[]*tokenFloor] // what Adopt has brought; nil: nothing
	heard   stamp                         // when it was brought last

	mu     sync.Mutex
	floors []clusterFloor // one or two in practice; searched in order
}

type clusterFloor struct {
	of   *floors
	at   ledger
	seen seen
}

// WithSession opens a session inside ctx. Where ctx already has one, the new
// session is nested in it: its writes raise the floors of all that enclose it,
// and its reads honour their floors too.
func WithSession(ctx context.Context) (context.Context, *Session) {
	w := wishesOf(ctx)
	s := &Session{parent: w.session}
	w.session = s
	return withWishes(ctx, w), s
}

// SessionFromContext returns the innermost session of ctx, or nil. A nil
// *Session may be used: its methods answer as for a session that wrote nothing.
func SessionFromContext(ctx context.Context) *Session {
	return wishesOf(ctx).session
}

// Wrote tells whether a statement that may have written ran in the session, on
// whatever cluster.
func (s *Session) Wrote() bool {
	if s == nil {
		return false
	}
	if s.behind.load() != never {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.floors {
		if s.floors[i].at.any.Any != never {
			return true
		}
	}
	return false
}

// Changes counts what the session has written and adopted so far. Where it is the same
// as when a token of the session's was made, that token still tells of everything: one
// that is made now may differ, and tells of no more. The number has no other meaning.
func (s *Session) Changes() uint64 {
	if s == nil {
		return 0
	}
	return s.changes.Load()
}

// raise moves the floors of the session and of those around it.
func (s *Session) raise(f *floors, to floor, t *touch) {
	for ; s != nil; s = s.parent {
		s.raiseOwn(f, to, t)
	}
}

func (s *Session) raiseOwn(f *floors, to floor, t *touch) {
	defer s.changes.Add(1) // when a token would have it
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ofLocked(f).at.raise(to, t)
}

// ofLocked returns what the session keeps for a cluster.
func (s *Session) ofLocked(f *floors) *clusterFloor {
	for i := range s.floors {
		if s.floors[i].of == f {
			return &s.floors[i]
		}
	}
	s.floors = append(s.floors, clusterFloor{of: f})
	return &s.floors[len(s.floors)-1]
}

// floor returns the highest floor of the session and of those around it, for a read
// of what t touches.
func (s *Session) floor(f *floors, t *touch) floor {
	var at floor
	for ; s != nil; s = s.parent {
		at = at.Max(evidence.All(s.behind.load())).Max(s.ownFloor(f, t))
	}
	return at
}

func (s *Session) ownFloor(f *floors, t *touch) floor {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.floors {
		if s.floors[i].of == f {
			return s.floors[i].at.floor(t)
		}
	}
	return floor{}
}
