package scenarios

import (
	"fmt"
	"strings"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// patience is how long a script waits until something is so: breakers stay open for
// up to half a minute, and a probe or two may find a busy machine.
const patience = 2 * time.Minute

var untilForms = []form{
	{pattern: "until <node> serves", phase: true, run: on(func(w *world, n *replicatedtest.Node, _ args) error {
		before := w.tally.served(n.Name())
		return w.wait(patience, func() string {
			if w.tally.served(n.Name()) == before {
				return n.Name() + " serves no reads: " + w.stateOf(n)
			}
			return ""
		})
	})},
	{pattern: "until <node> is out", phase: true, run: on(func(w *world, n *replicatedtest.Node, _ args) error {
		return w.wait(patience, func() string {
			if s := w.statsOf(n); s.Breaker == replicated.BreakerClosed && !s.TurnedAway {
				return n.Name() + " is not out: " + w.stateOf(n)
			}
			return ""
		})
	})},
	{pattern: "until writes succeed", phase: true, run: func(w *world, _ args) error {
		before := w.ledger.acknowledged()
		return w.wait(patience, func() string {
			if w.ledger.acknowledged() == before {
				return "no write is acknowledged"
			}
			return ""
		})
	}},
	{pattern: "until replicas have caught up", phase: true, run: func(w *world, _ args) error { return w.cluster.WaitCaughtUp(w.ctx) }},
	{pattern: "until notice <word>", phase: true, run: untilNotice},
	{pattern: "until notice <word> or <word>", phase: true, run: untilNotice},
}

// untilNotice waits until the driver has given a notice of one of the kinds.
func untilNotice(w *world, a args) error {
	return w.wait(patience, func() string {
		for _, kind := range a.words {
			if w.noticed(kind) > 0 {
				return ""
			}
		}
		return "there was no notice " + strings.Join(a.words, " or ")
	})
}

func (w *world) noticed(kind string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.notices[kind]
}

// statsOf returns what the driver says of a node, nothing before it is open.
func (w *world) statsOf(n *replicatedtest.Node) replicated.NodeStats {
	if w.driver != nil {
		for _, s := range w.driver.Stats().Nodes {
			if s.Name == n.Name() {
				return s
			}
		}
	}
	return replicated.NodeStats{}
}

func (w *world) stateOf(n *replicatedtest.Node) string {
	s := w.statsOf(n)
	return fmt.Sprintf("%v, breaker %v, turned away %v, freshness %v, lag %v", s.Role, s.Breaker, s.TurnedAway, s.Freshness, round(s.Lag))
}
