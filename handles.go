package replicated

import (
	"slices"
	"sync"
)

// handles are the clusters of this process that share their floors: several
// *sql.DB on the same servers.
type handles struct {
	mu   sync.Mutex
	open []*Cluster
	last *Cluster // the one that was closed last: it still knows what they were
}

func (h *handles) add(c *Cluster) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = append(h.open, c)
}

func (h *handles) remove(c *Cluster) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = slices.DeleteFunc(h.open, func(o *Cluster) bool { return o == c })
	h.last = c
}

// any returns one that is open, if there is one: rather one that tells positions. There
// is one, open or not, for all floors that a statement has raised.
func (h *handles) any() (c *Cluster, open bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.open {
		if c.fresh.tracking() == trackProof {
			return c, true
		}
	}
	if len(h.open) > 0 {
		return h.open[0], true
	}
	return h.last, false
}

// all returns those that are open.
func (h *handles) all() []*Cluster {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.open)
}

// allFloors returns the floors of all clusters that this process has opened.
func allFloors() []*floors {
	registry.Lock()
	defer registry.Unlock()
	all := make([]*floors, 0, len(registry.byCluster))
	for _, f := range registry.byCluster {
		all = append(all, f)
	}
	return all
}
