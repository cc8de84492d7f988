package replicated

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/dialect"
)

// How often nodes are asked for their roles, where these are followed.
const (
	// rolesEvery is the pause while all is well.
	rolesEvery = 500 * time.Millisecond
	// rolesSoon is the pause while no primary is known, or it does not answer.
	rolesSoon = 100 * time.Millisecond
)

// topology follows who is what. The watchers tell it what the nodes say, and with each
// piece of news it elects.
//
// With TopologyStatic the roles are those of the configuration for ever.
type topology struct {
	cluster *Cluster
	follows bool
	now     atomic.Pointer[view]

	// wanted: nodes that were last asked before then are to be asked again at once.
	wanted stamp

	mu      sync.Mutex
	claims  claims
	current int
	last    *node         // the last primary that there was; nil: none
	why     string        // nobody is the primary
	noticed bool          // that has been told
	since   moment        // when there was a primary that answered for the last time; never: there is one
	news    chan struct{} // closed with the next piece of news; nil while nobody waits
}

func (t *topology) start(c *Cluster) {
	t.cluster, t.follows, t.current = c, c.cfg.Topology == TopologyDiscover, nobody
	all := ^nodeSet(0)
	if !t.follows {
		t.current = 0
		t.now.Store(newView(c.nodes, 0, all))
		return
	}
	for _, n := range c.nodes {
		t.claims = append(t.claims, claim{name: n.name})
	}
	t.now.Store(newView(c.nodes, nobody, all))
}

// begin has all nodes asked anew, since none has been for some time: another one may be
// the primary by now. What is known of their past stays.
func (t *topology) begin() {
	if !t.follows {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.claims {
		x := &t.claims[i]
		x.asked, x.heard, x.unasked = never, false, true
	}
	if before := t.now.Load(); t.current != nobody {
		t.succeedLocked(nobody)
		t.now.Store(t.viewLocked(before, true))
		before.end()
	}
	t.why, t.noticed, t.since = "no node has been asked yet", false, now()
}

// heard takes note of what a node has said. asked is the moment before it was asked.
func (t *topology) heard(n *node, id *dialect.Identity, asked moment) {
	t.heardFollowing(n, id, nil, asked)
}

// following is what a node has said of whom it replicates from.
type following struct {
	sources []dialect.Source
	told    bool // it has said that
}

// heardFollowing is heard, with whom the node replicates from, where it was asked for
// that too: what belongs together is entered at once.
func (t *topology) heardFollowing(n *node, id *dialect.Identity, f *following, asked moment) {
	t.learn(n, asked, func(x *claim) {
		x.heard, x.known = true, true
		x.server, x.serverID, x.writable = id.Server, id.ServerID, !id.ReadOnly
		if id.Lineage != "" {
			x.lineage = id.Lineage
		}
		if id.ReadOnly {
			x.turned, x.reigned, x.deposed = true, false, false
		}
		if f != nil {
			x.sources, x.told, x.unasked = f.sources, f.told, false
		}
	})
}

// unheard takes note that a node does not answer what it was asked at a moment. What
// hangs there, if it is a former primary, is ended.
func (t *topology) unheard(n *node, asked moment) {
	t.learn(n, asked, func(x *claim) { x.heard = false })
	if p := t.cluster.primary(); t.follows && p != nil && p != n {
		n.abort(RolePrimary, errDeposed)
	}
}

// learn enters a piece of news, unless a later question has been answered already, and
// elects.
func (t *topology) learn(n *node, asked moment, enter func(*claim)) {
	if !t.follows {
		return
	}
	c := t.cluster
	t.mu.Lock()
	x := &t.claims[n.index]
	if asked < x.asked {
		t.mu.Unlock()
		return
	}
	x.asked = asked
	enter(x)
	before := t.now.Load()
	primary, why := t.claims.elect(c.dialect(), t.current)
	changed := primary != t.current
	t.noticed = t.noticed && t.why == why
	t.why = why
	former := t.last
	if changed {
		t.succeedLocked(primary)
	}
	after := t.viewLocked(before, changed)
	t.now.Store(after)
	switch {
	case primary != nobody && t.claims[primary].heard:
		t.since = never
	case t.since == never:
		t.since = asked
	}
	silent := former != nil && !t.claims[former.index].heard
	// While some have not been asked yet it may be a matter of moments.
	lacking := primary == nobody && t.claims.unasked(c.dialect()) < 0
	tell := lacking && !t.noticed
	t.noticed = t.noticed || tell
	news := t.news
	t.news = nil
	t.mu.Unlock()

	if changed {
		before.end()
	}
	if news != nil { // before what may take its time
		close(news)
	}
	if changed {
		t.changed(former, silent, after.primary)
	}
	if lacking {
		c.unsampled(t.nobody())
	}
	if tell {
		c.notice(Notice{Kind: NoticeNoPrimary, Err: errors.New("replicated: " + why)})
	}
}

// viewLocked returns the view that the claims make, which mostly is the one before.
func (t *topology) viewLocked(before *view, changed bool) *view {
	var replicas nodeSet
	for i := range t.claims {
		if i != t.current && t.claims[i].reads(t.cluster.dialect()) {
			replicas = replicas.with(i)
		}
	}
	if !changed && replicas == before.replicas {
		return before
	}
	v := newView(t.cluster.nodes, t.current, replicas)
	if !changed {
		v.over, v.end = before.over, before.end
	}
	return v
}

// succeedLocked has another node, or nobody, be the primary.
func (t *topology) succeedLocked(primary int) {
	if primary != nobody {
		for i := range t.claims { // nobody may have come in between
			t.claims[i].deposed = t.claims[i].reigned
		}
		x := &t.claims[primary]
		x.turned, x.reigned, x.deposed = false, true, false
	}
	t.current = primary
	if primary != nobody {
		t.last = t.cluster.nodes[primary]
	}
	t.cluster.fresh.term.Add(1) // connections to the former primary are of no use from here on
}

// errDeposed is why statements on a primary that has gone silent end, when another is
// one.
var errDeposed = errors.New("another node has become the primary")

// changed does what a change of the primary asks for, under no lock. former is the last
// one that there was. Statements on it are left to end by themselves if it still
// answers: it may be about to tell that it has committed.
func (t *topology) changed(former *node, silent bool, primary *node) {
	c := t.cluster
	if primary != nil && former != nil && former != primary && silent {
		former.abort(RolePrimary, errDeposed)
	}
	if former != nil {
		former.ramp.begin() // if it is to serve reads
	}
	if former != nil || primary == nil {
		c.fresh.miss(now())
	}
	if primary != nil {
		for _, p := range primary.pool.takeIdle(func(*physical) bool { return true }) {
			p.close()
		}
		if former != nil && former != primary && c.fresh.tracking() == trackWindow {
			c.notice(Notice{Kind: NoticePrimaryChanged, Node: primary.name})
		}
	}
	c.sampler.wake(func(int) bool { return true })
}

// nobody returns why there is no primary.
func (t *topology) nobody() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Errorf("%w: %s", ErrNoPrimary, t.why)
}

// restless tells whether the nodes are to be asked often, since there is no primary.
func (t *topology) restless() bool {
	return t.cluster.primary() == nil || t.cluster.fresh.blind.Load()
}

// nextRole returns when a node is to be asked for its role that was last asked at a
// moment.
func (t *topology) nextRole(last moment) moment {
	switch {
	case t.wanted.load() > last:
		return last + moment(sampleSpacing)
	case t.restless():
		return last + moment(rolesSoon)
	default:
		return last + moment(rolesEvery)
	}
}

// hurry has all nodes asked at once, without waiting for their answers.
func (t *topology) hurry() {
	if t.follows {
		t.wanted.raise(now())
		t.cluster.sampler.wake(func(int) bool { return true })
	}
}

// primaryAfter returns the primary, once the nodes have been asked anew: another one
// than in an earlier term, or the same if it answers again. It waits for that within
// ctx, for as long as the nodes take to answer, and for Config.PrimaryWait since the
// primary was lost. Nodes that were silent before are not waited for, nor is the
// primary once that time is over. term 0 is before all others.
func (t *topology) primaryAfter(ctx context.Context, term uint64) (*node, error) {
	began := now()
	t.hurry()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		news := t.listen()
		n, asked, until := t.progress(term, began)
		switch rest := until - now(); {
		case n != nil:
			return n, nil
		case asked && rest <= 0:
			return nil, t.nobody()
		case asked:
			timer.Reset(time.Duration(rest))
		}
		select {
		case <-news:
		case <-timer.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-t.cluster.done:
			return nil, errClosed
		}
	}
}

// silent tells whether a node has not answered when it was last asked.
func (t *topology) silent(n *node) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := &t.claims[n.index]
	return x.asked != never && !x.heard
}

func (t *topology) listen() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.news == nil {
		t.news = make(chan struct{})
	}
	return t.news
}

// progress returns the primary, if it is new since a term or has answered since a
// moment; whether all nodes have been asked since then that can be expected to answer;
// and until when a primary that was lost is waited for.
func (t *topology) progress(term uint64, m moment) (n *node, asked bool, until moment) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current != nobody {
		x := &t.claims[t.current]
		if t.cluster.fresh.term.Load() != term || x.heard && x.asked >= m {
			return t.cluster.nodes[t.current], true, never
		}
	}
	if t.since != never {
		until = t.since + moment(t.cluster.cfg.PrimaryWait)
	}
	asked = true
	for i := range t.claims {
		x := &t.claims[i]
		silent := x.asked != never && !x.heard && (i != t.current || t.since != never && until <= m)
		asked = asked && (x.asked >= m || silent)
	}
	return nil, asked, until
}

// thePrimary returns who is the primary. Where nobody is known to be, the nodes are
// asked.
func (c *Cluster) thePrimary(ctx context.Context) (*node, error) {
	if n := c.primary(); n != nil {
		return n, nil
	}
	return c.topology.primaryAfter(ctx, 0)
}

// knowsRoles tells whether the servers of a dialect can be asked for their roles.
func knowsRoles(d classify.Dialect) bool { return d != classify.Generic }
