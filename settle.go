package replicated

import (
	"context"
	"errors"
	"time"
)

// Settle waits until nobody needs a token to see what was written in the session:
// until every replica that may serve reads has it. That is proven of each, or, for
// one that can't be reached, Config.MaxLag has passed since the last write, after
// which no process sends a read to a replica without it (but for those that have
// lost the primary before the write: see Config.MaxBlind). A session that wrote
// nothing is settled.
//
// What cannot be sent along with a response can be waited for so. An error says that
// ctx has ended first, or that it can't be told: no tracker works.
func (s *Session) Settle(ctx context.Context) error {
	for _, f := range s.met() {
		c, open := f.handles.any()
		switch {
		case open:
		case s.wroteTo(f):
			return errClosed
		default:
			continue // what Wrote has told of went elsewhere
		}
		if err := c.settle(ctx, s.floor(f, nil)); err != nil {
			return err
		}
	}
	return nil
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

var errUnsettled = errors.New("replicated: not all replicas are known to have what the session wrote")

// allPast tells whether every replica is proven to be past a floor, by each of the
// servers behind it.
func (c *Cluster) allPast(f floor) bool {
	for _, n := range c.view().readers {
		servers := n.servers()
		if len(servers) == 0 || n.multiplexed.Load() {
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
// written to. What Wrote has told of may have been written to any cluster.
func (s *Session) met() []*floors {
	var all []*floors
	for ; s != nil; s = s.parent {
		if s.behind.load() != never {
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
