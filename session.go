package replicated

import (
	"context"
	"sync"
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

	mu     sync.Mutex
	floors []clusterFloor // one or two in practice; searched in order
}

type clusterFloor struct {
	of *floors
	at moment
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
	return len(s.floors) > 0
}

// raise moves the floors of the session and of those around it.
func (s *Session) raise(f *floors, at moment) {
	for ; s != nil; s = s.parent {
		s.raiseOwn(f, at)
	}
}

func (s *Session) raiseOwn(f *floors, at moment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.floors {
		if s.floors[i].of == f {
			s.floors[i].at = max(s.floors[i].at, at)
			return
		}
	}
	s.floors = append(s.floors, clusterFloor{of: f, at: at})
}

// floor returns the highest floor of the session and of those around it.
func (s *Session) floor(f *floors) moment {
	at := never
	for ; s != nil; s = s.parent {
		at = max(at, s.behind.load(), s.ownFloor(f))
	}
	return at
}

func (s *Session) ownFloor(f *floors) moment {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.floors {
		if s.floors[i].of == f {
			return s.floors[i].at
		}
	}
	return never
}
