package replicated

import "context"

// view is who is what, as of one moment. It is immutable.
type view struct {
	primary  *node   // nil: nobody is known to be
	replicas nodeSet // those that may serve reads, where they are fresh
	readers  []*node // the same

	// over ends when another node, or nobody, is the primary.
	over context.Context
	end  context.CancelFunc
}

// newView returns the view of a primary, or nobody, and those of the other nodes that
// may serve reads.
func newView(nodes []*node, primary int, replicas nodeSet) *view {
	v := &view{}
	v.over, v.end = context.WithCancel(context.Background())
	for i, n := range nodes {
		switch {
		case i == primary:
			v.primary = n
		case replicas.has(i):
			v.replicas = v.replicas.with(i)
			v.readers = append(v.readers, n)
		}
	}
	return v
}

// view returns who is what now: one atomic load.
func (c *Cluster) view() *view { return c.topology.now.Load() }

// primary returns the primary, or nil where nobody is known to be.
func (c *Cluster) primary() *node { return c.view().primary }

// primaryName returns the primary's name, or "".
func (c *Cluster) primaryName() string {
	if n := c.primary(); n != nil {
		return n.name
	}
	return ""
}

// role returns what the node is now: the primary, or a replica.
func (n *node) role() Role {
	if n.cluster.primary() == n {
		return RolePrimary
	}
	return RoleReplica
}

// roleOf returns the role of a node as Stats shows it: a node that is not the primary
// and takes writes, or has never answered, is unknown where roles are followed.
func (t *topology) roleOf(n *node) Role {
	v := t.now.Load()
	switch {
	case v.primary == n:
		return RolePrimary
	case !t.follows:
		return RoleReplica
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := &t.claims[n.index]; !x.known || !v.replicas.has(n.index) {
		return RoleUnknown
	}
	return RoleReplica
}
