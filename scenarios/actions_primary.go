package scenarios

import (
	"errors"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

// What gives the cluster another primary.
var primaryForms = []form{
	{pattern: "switch over to <node>", phase: true, run: on(func(w *world, n *replicatedtest.Node, _ args) error {
		return w.change([]*replicatedtest.Node{n}, func() error { return w.cluster.Switchover(w.ctx, n) })
	})},
	// The primary is killed, the replica that has received most is promoted, and the
	// others follow it. The former primary stays down.
	{pattern: "fail over", phase: true, run: func(w *world, _ args) error {
		former := w.cluster.Primary()
		w.toUndo("down", former, former.Start)
		return w.change(w.cluster.Replicas(), func() error {
			_, err := w.cluster.Failover(w.ctx)
			return err
		})
	}},
	// A replica is promoted, and the former primary goes on as one: there are two.
	{pattern: "promote <node>", phase: true, run: on(func(w *world, n *replicatedtest.Node, _ args) error {
		return w.change([]*replicatedtest.Node{n}, n.Promote)
	})},
	{pattern: "rejoin <node>", phase: true, run: on(func(w *world, n *replicatedtest.Node, _ args) error {
		w.toUndo("down", n, nil)
		w.toUndo("cut off", n, nil)
		return n.Follow(w.cluster.Primary())
	})},
}

// restartPrimary restarts the primary, as an administrator does, and measures how
// long writes are away after it is back.
func (w *world) restartPrimary(n *replicatedtest.Node) error {
	return w.change([]*replicatedtest.Node{n}, func() error {
		if err := errors.Join(n.Stop(), n.Start()); err != nil {
			return err
		}
		if w.cluster.Engine() == replicatedtest.Postgres {
			return nil
		}
		// A replica that was about to connect may have given up for good.
		for _, r := range w.cluster.Replicas() {
			if err := r.ResumeReceiving(); err != nil {
				return err
			}
		}
		return nil
	})
}
