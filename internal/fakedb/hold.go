package fakedb

import (
	"context"
	"sync"
)

// Hold makes calls of one kind wait inside the server. See [Server.Hold].
type Hold struct {
	op       Op
	server   *Server
	entered  chan Call
	released chan struct{}
	once     sync.Once
}

// Hold makes every call of op wait until Release, or until its context ends.
// Calls without a context (legacy shapes, Next, Close) wait for Release alone.
// A test synchronises on [Hold.Entered], never on time.
func (s *Server) Hold(op Op) *Hold {
	h := &Hold{op: op, server: s, entered: make(chan Call, 1024), released: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds = append(s.holds, h)
	return h
}

// Entered yields each call that has begun to wait.
func (h *Hold) Entered() <-chan Call { return h.entered }

// Release lets the waiting calls go on, and later ones pass. It may be called
// more than once.
func (h *Hold) Release() {
	h.once.Do(func() {
		h.server.mu.Lock()
		for i, other := range h.server.holds {
			if other == h {
				h.server.holds = append(h.server.holds[:i:i], h.server.holds[i+1:]...)
				break
			}
		}
		h.server.mu.Unlock()
		close(h.released)
	})
}

// wait holds call until Release; it returns ctx's error if that comes first.
func (h *Hold) wait(ctx context.Context, call *Call) error {
	select {
	case h.entered <- *call:
	default: // a test that holds a thousand calls does not look at each
	}
	select {
	case <-h.released:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
