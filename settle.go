package replicated

import (
	"context"
	"errors"
	"time"

	"github.com/sqlreplicated/replicated/internal/evidence"
	"github.com/sqlreplicated/replicated/internal/token"
)

// Settle waits until nobody needs a token to see what was written in the session, or
// what it has adopted: until every replica that may serve reads has it. That is proven
// of each, or Config.MaxLag has passed since, after which no process sends a read to a
// replica without it (but for those that have lost the primary before the write: see
// Config.MaxBlind). A session that wrote nothing and adopted nothing is settled.
//
// The replicas are those of all handles that the process has on the cluster. Where they
// may not be all (a handle has none, or one name stands for several servers), and for
// one that can't be reached, MaxLag is waited for. Other processes are taken to have the
// same replicas, and no greater MaxLag.
//
// What cannot be sent along with a response can be waited for so. An error says that
// ctx has ended first, or that it can't be told: no tracker works, or the cluster is
// not open in this process.
func (s *Session) Settle(ctx context.Context) error {
	if s.strangers(ctx) {
		return errStranger
	}
	for _, f := range s.met() {
		handles := f.handles.all()
		if len(handles) == 0 && s.wroteTo(f) {
			return errClosed
		}
		to := s.floor(f, nil)
		for q := s; q != nil; q = q.parent {
			to = to.Max(evidence.All(q.heard.load()))
		}
		for _, c := range handles {
			if err := c.settle(ctx, to); err != nil {
				return err
			}
		}
	}
	return nil
}

// strangers tells whether the session has adopted a token of a cluster that this process
// has no handle on.
func (s *Session) strangers(ctx context.Context) bool {
	w := wishes{session: s}
	for _, t := range w.tokensOf() {
		if t.entry.Cluster != token.Any && !isKnown(ctx, &t.entry) {
			return true
		}
	}
	return false
}

// isKnown tells whether this process has a handle on the cluster of an entry. Those that
// have not been used are asked who they are, for which ctx is waited.
func isKnown(ctx context.Context, e *token.Entry) bool {
	var unused []*Cluster
	for _, f := range allFloors() {
		for _, c := range f.handles.all() {
			if c.isOurs(e, c.fresh.book.Lineage()) {
				return true
			}
			if c.fresh.book.Latest() == never {
				unused = append(unused, c)
			}
		}
	}
	for _, c := range unused {
		if q, err := c.sampleAfter(ctx, never); err == nil && c.isOurs(e, q.Lineage) {
			return true
		}
	}
	return false
}

// settle waits until all replicas are past a floor.
func (c *Cluster) settle(ctx context.Context, f floor) error {
	if f.Any == never {
		return nil
	}
	if err := c.attach(); err != nil { // the sampler may be at rest
		return err
	}
	defer c.detach()
	late := time.NewTimer(time.Duration(f.Any + moment(c.cfg.MaxLag) - now()))
	defer late.Stop()
	for {
		news := c.fresh.listen()
		switch {
		case c.fresh.tracking() == trackWindow:
			return errUnmeasured
		case c.allPast(f):
			return nil
		}
		c.sampler.refused(f)
		select {
		case <-news:
		case <-late.C:
			return nil
		case <-ctx.Done():
			return errors.Join(errUnsettled, ctx.Err())
		}
	}
}

var (
	errUnsettled = errors.New("replicated: not all replicas are known to have what the session wrote")
	errStranger  = errors.New("replicated: the session has adopted a token of a cluster that this process has no handle on")
)

// allPast tells whether every replica is proven to be past a floor. Where there is
// none, or one name leads to several servers, others may know of more.
func (c *Cluster) allPast(f floor) bool {
	readers := c.view().readers
	if len(readers) == 0 {
		return false
	}
	for _, n := range readers {
		servers := n.servers()
		if len(servers) != 1 || n.host.Several() || n.multiplexed.Load() {
			return false
		}
		for _, s := range servers {
			if p := s.Proof(); p == nil || !p.Past(f) {
				return false
			}
		}
	}
	return true
}

// met returns the floors of the clusters that the session, or one around it, has
// written to. What Wrote has told of, and tokens do, may have been written to any.
func (s *Session) met() []*floors {
	var all []*floors
	for ; s != nil; s = s.parent {
		if s.behind.load() != never || s.heard.load() != never {
			return allFloors()
		}
		all = s.addMet(all)
	}
	return all
}

func (s *Session) addMet(all []*floors) []*floors {
	s.mu.Lock()
	defer s.mu.Unlock()
next:
	for i := range s.floors {
		if s.floors[i].at.any.Any == never {
			continue
		}
		for _, f := range all {
			if f == s.floors[i].of {
				continue next
			}
		}
		all = append(all, s.floors[i].of)
	}
	return all
}

// wroteTo tells whether the session, or one around it, has written to a cluster by
// itself.
func (s *Session) wroteTo(f *floors) bool {
	for ; s != nil; s = s.parent {
		if s.ownFloor(f, nil).Any != never {
			return true
		}
	}
	return false
}
