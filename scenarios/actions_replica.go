package scenarios

import (
	"errors"
	"fmt"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

// What is done to a server, be it a replica or not.
var replicaForms = []form{
	{pattern: "kill <node>", run: on(func(w *world, n *replicatedtest.Node, _ args) error {
		w.toUndo("down", n, n.Start)
		return n.Kill()
	})},
	{pattern: "stop <node>", run: on(func(w *world, n *replicatedtest.Node, _ args) error {
		w.toUndo("down", n, n.Start)
		return n.Stop()
	})},
	{pattern: "start <node>", run: on(func(w *world, n *replicatedtest.Node, _ args) error { return w.undone("down", n) })},
	{pattern: "restart <node>", phase: true, run: on(func(w *world, n *replicatedtest.Node, _ args) error {
		if n == w.cluster.Primary() {
			return w.restartPrimary(n)
		}
		return errors.Join(n.Stop(), n.Start())
	})},
	{pattern: "hang <node>", run: on(func(w *world, n *replicatedtest.Node, _ args) error {
		w.toUndo("hung", n, n.Resume)
		return n.Hang()
	})},
	{pattern: "wake <node>", run: on(func(w *world, n *replicatedtest.Node, _ args) error { return w.undone("hung", n) })},

	{pattern: "pause recovery of <node>", run: on(func(w *world, n *replicatedtest.Node, _ args) error {
		w.toUndo("paused", n, n.ResumeReplication)
		return n.PauseReplication()
	})},
	{pattern: "resume recovery of <node>", run: on(func(w *world, n *replicatedtest.Node, _ args) error { return w.undone("paused", n) })},
	{pattern: "delay recovery of <node> <duration>", run: on(func(w *world, n *replicatedtest.Node, a args) error {
		w.toUndo("slow", n, func() error { return n.Delay(0) })
		return n.Delay(a.durations[0])
	})},
	{pattern: "hasten recovery of <node>", run: on(func(w *world, n *replicatedtest.Node, _ args) error { return w.undone("slow", n) })},
	{pattern: "cut off <node>", run: on(func(w *world, n *replicatedtest.Node, _ args) error {
		w.toUndo("cut off", n, n.ResumeReceiving)
		return n.StopReceiving()
	})},
	{pattern: "reconnect <node>", run: on(func(w *world, n *replicatedtest.Node, _ args) error { return w.undone("cut off", n) })},

	{pattern: "kill connections of <node>", run: on(func(w *world, n *replicatedtest.Node, _ args) error {
		_, err := n.KillBackends()
		return err
	})},
	// Connections that go later, such as those of the driver's that are cut, leave
	// places again: fill it once more.
	{pattern: "fill <node>", run: on(func(w *world, n *replicatedtest.Node, _ args) error {
		release, err := n.Occupy(0)
		if err != nil {
			return err
		}
		w.mu.Lock()
		key := "full " + n.Name()
		before := w.undo[key]
		w.undo[key] = func() error {
			release()
			if before != nil {
				return before()
			}
			return nil
		}
		w.mu.Unlock()
		return nil
	})},
	{pattern: "empty <node>", run: on(func(w *world, n *replicatedtest.Node, _ args) error { return w.undone("full", n) })},
	{pattern: "refuse login on <node>", run: on(func(w *world, n *replicatedtest.Node, _ args) error {
		w.toUndo("closed", n, func() error { return n.RefuseLogin(false) })
		return n.RefuseLogin(true)
	})},
	{pattern: "allow login on <node>", run: on(func(w *world, n *replicatedtest.Node, _ args) error { return w.undone("closed", n) })},

	// Rows are changed and their old versions removed: on PostgreSQL what a replica
	// replays of that cancels the reads that may still want to see them.
	{pattern: "vacuum", run: func(w *world, _ args) error { return w.cluster.Vacuum(w.ctx, "items") }},
}

// What is done to the network before a node. It needs "open proxied=yes".
var networkForms = []form{
	{pattern: "slow network of <node> <duration>", run: network(func(p *replicatedtest.Proxy, a args) { p.Delay(a.durations[0]) })},
	{pattern: "stall network of <node>", run: network(func(p *replicatedtest.Proxy, _ args) { p.Stall(replicatedtest.BothWays) })},
	{pattern: "black hole <node>", run: network(func(p *replicatedtest.Proxy, _ args) { p.Blackhole() })},
	{pattern: "lose answers of <node>", run: network(func(p *replicatedtest.Proxy, _ args) { p.Discard(replicatedtest.ToClient) })},
	{pattern: "cut network of <node>", run: network(func(p *replicatedtest.Proxy, _ args) { p.Cut() })},
	{pattern: "refuse network of <node>", run: network(func(p *replicatedtest.Proxy, _ args) { p.Refuse() })},
	{pattern: "heal network of <node>", run: network(func(p *replicatedtest.Proxy, _ args) { p.Pass() })},
}

func network(do func(*replicatedtest.Proxy, args)) func(*world, args) error {
	return on(func(w *world, n *replicatedtest.Node, a args) error {
		p := w.proxies[n.Name()]
		if p == nil {
			return fmt.Errorf("no proxy is before %s: open proxied=yes", n.Name())
		}
		do(p, a)
		return nil
	})
}
