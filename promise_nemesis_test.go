package replicated_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/internal/history"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// nemesis makes one node's life hard. A replica's lag jumps between nothing and two
// seconds, it stops applying, it is killed and comes back. The primary loses
// connections, and is restarted.
type nemesis struct {
	*promise
	node    *replicatedtest.Node
	proxies []*replicatedtest.NodeProxy // in front of the primary, one of each program
	rng     *rand.Rand
	did     map[string]int
}

// torment lets a nemesis loose on each replica, and one on the connections to the
// primary. The function that it returns stops them, undoes what they did, and
// tells it.
func (p *promise) torment(t *testing.T, seed uint64) (stop func() string) {
	t.Helper()
	for _, n := range p.cluster.Replicas() {
		// The first delay of all may have the replica connect anew, the others do not.
		if err := n.Delay(time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var all []*nemesis
	for i, node := range p.cluster.Nodes() {
		n := &nemesis{promise: p, node: node, rng: rand.New(rand.NewPCG(seed, 1000+uint64(i))), did: make(map[string]int)}
		all = append(all, n)
		live := n.onReplica
		if !node.IsReplica() {
			for _, g := range p.programs {
				n.proxies = append(n.proxies, g.proxy)
			}
			live = n.onPrimary
		}
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := live(ctx); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	return sync.OnceValue(func() string {
		cancel()
		wg.Wait()
		text := ""
		for _, n := range all {
			text += fmt.Sprintf("\n  %s: %v", n.node.Name(), n.did)
			if !n.node.IsReplica() {
				continue
			}
			if err := n.node.Delay(0); err != nil {
				t.Error(err)
			}
		}
		return text
	})
}

func (n *nemesis) upTo(d time.Duration) time.Duration {
	return time.Duration(n.rng.Int64N(int64(d))).Round(time.Millisecond)
}

// pause lets up to so much time pass, less if the end has come.
func (n *nemesis) pause(ctx context.Context, most time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(n.upTo(most)):
	}
}

// onReplica does one thing to a replica. What it does it also undoes.
func (n *nemesis) onReplica(ctx context.Context) error {
	defer n.pause(ctx, 1500*time.Millisecond)
	switch act := n.rng.IntN(20); {
	case act < 12:
		n.did["delays"]++
		most := []time.Duration{time.Millisecond, 50 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second}[n.rng.IntN(4)]
		return n.node.Delay(n.upTo(most))
	case act < 17:
		n.did["pauses"]++
		if err := n.node.PauseReplication(); err != nil {
			return err
		}
		n.pause(ctx, 2*time.Second)
		return n.node.ResumeReplication()
	default:
		return n.die(ctx)
	}
}

// die kills the replica and brings it back.
func (n *nemesis) die(ctx context.Context) error {
	n.did["kills"]++
	if n.text.engine != replicatedtest.Postgres {
		n.restarting.Lock() // which has to reach all replicas
		defer n.restarting.Unlock()
	}
	if n.text.engine == replicatedtest.MySQL {
		// MySQL 5.6 does not find its way back ("could not locate rotate event") if it
		// is killed between connecting to its source and hearing from it. What it has
		// applied here was written after it had connected.
		if err := n.node.Delay(0); err != nil {
			return err
		}
		if err := n.node.WaitCaughtUp(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		if err := n.node.Delay(n.upTo(2 * time.Second)); err != nil {
			return err
		}
		n.pause(ctx, time.Second)
	}
	if err := n.node.Kill(); err != nil {
		return err
	}
	n.pause(ctx, time.Second)
	return n.node.Start()
}

// onPrimary cuts all connections of one program to the primary, so that some writes
// have an unknown outcome. Every eighth time it restarts the primary.
func (n *nemesis) onPrimary(ctx context.Context) error {
	n.pause(ctx, 3*time.Second)
	switch {
	case ctx.Err() != nil:
		return nil
	case (n.did["cuts"]+n.did["restarts"])%8 == 3:
		return n.restart(ctx)
	}
	n.did["cuts"]++
	n.proxies[n.rng.IntN(len(n.proxies))].Cut()
	return nil
}

// noticing is how long programs may take to notice that the primary is back: they ask
// it every quarter of promiseMaxLag, on a machine that may be slow.
const noticing = promiseMaxLag

// restart stops the primary as an administrator would, so that it loses nothing, and
// starts it again.
func (n *nemesis) restart(ctx context.Context) error {
	n.restarting.Lock()
	defer n.restarting.Unlock()
	n.did["restarts"]++
	from := n.rec.Now()
	if err := n.node.Stop(); err != nil {
		return err
	}
	n.pause(ctx, time.Second)
	err := n.node.Start()
	n.outages = append(n.outages, history.Span{From: from, To: n.rec.Now() + noticing})
	if err != nil || n.text.engine == replicatedtest.Postgres {
		return err
	}
	// A replica that was about to connect may have given up for good ("fatal error ...
	// Query execution was interrupted").
	for _, r := range n.cluster.Replicas() {
		if err := r.ResumeReceiving(); err != nil {
			return err
		}
	}
	return nil
}
