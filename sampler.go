package replicated

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// sampler keeps the book on freshness up to date: it has the nodes asked how far
// they have got, often while reads are in need of it and once in a while
// otherwise. It is one goroutine for each node, so that none waits for another.
//
//	a write returns ─────────────► the primary is asked ──► replicas are asked
//	a read is refused a replica ─┘        ▲                        │
//	                                      └── one has got there ───┘
type sampler struct {
	cluster *Cluster

	wanted stamps      // highest floor that a read was refused a replica for
	useful atomic.Bool // a proof has served a read that needed it, or a read was refused
	moved  stamp       // when the proof of some replica has last moved, or had to begin to
	told   atomic.Bool // the primary's watcher knows of a write since its last sample

	mu    sync.Mutex
	wakes []chan struct{} // of the nodes' watchers, in their order; nil while none runs
}

// run watches all nodes until ctx ends. wake has replicas looked at whose breaker
// has opened.
func (s *sampler) run(ctx context.Context, wake <-chan struct{}) {
	var watchers sync.WaitGroup
	s.moved.raise(now())
	wakes := make([]chan struct{}, len(s.cluster.nodes))
	for i, n := range s.cluster.nodes {
		wakes[i] = make(chan struct{}, 1)
		w := &watcher{node: n, wake: wakes[i], probe: prober{node: n}}
		watchers.Go(func() { w.run(ctx) })
		if n.src.dials() {
			watchers.Go(func() { n.followName(ctx) })
		}
	}
	s.setWakes(wakes)
	defer s.setWakes(nil)
	for {
		select {
		case <-ctx.Done():
			watchers.Wait()
			return
		case <-wake:
			s.wakeReplicas()
		}
	}
}

func (s *sampler) setWakes(wakes []chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wakes = wakes
}

func (s *sampler) wake(pick func(i int) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, ch := range s.wakes {
		if pick(i) {
			select {
			case ch <- struct{}{}:
			default:
			}
		}
	}
}

func (s *sampler) wakePrimary()  { s.wakeRole(RolePrimary) }
func (s *sampler) wakeReplicas() { s.wakeRole(RoleReplica) }

func (s *sampler) wakeRole(role Role) {
	s.wake(func(i int) bool { return s.cluster.nodes[i].role() == role })
}

// wrote has a proof looked for, since a write has returned.
func (s *sampler) wrote() {
	if s.cluster.fresh.tracking() == trackProof && !s.told.Load() && !s.told.Swap(true) {
		s.wakePrimary()
	}
}

// refused has a proof looked for, since a read has gone to the primary for want of
// it.
func (s *sampler) refused(f floor) {
	if s.cluster.fresh.tracking() == trackWindow {
		return
	}
	if s.useful.Load() && s.told.Load() && s.wanted.any.load() >= f.Any {
		return
	}
	s.wanted.raise(f.Any, f.Async != never)
	s.useful.Store(true)
	s.told.Store(true)
	s.wakePrimary()
	s.wakeReplicas()
}

// servedRecently is how new a floor is for a read past it to show that the proof
// was worth its price.
const servedRecently = time.Second

// served takes note of a read that a replica has served.
func (s *sampler) served(b *bound) {
	if b.floor.Any != never && b.at-b.floor.Any < moment(servedRecently) && !s.useful.Load() {
		s.useful.Store(true)
	}
}

// owed returns the highest floor of all that reads may have.
func (s *sampler) owed() floor { return s.cluster.floors.last().Max(s.wanted.load()) }
