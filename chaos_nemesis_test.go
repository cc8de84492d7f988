package replicated_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/history"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// chaosNemesis does things to a cluster, in rounds. In each something befalls one
// replica, and while that lasts something befalls the primary; both are drawn from
// decks, so that each happens before one happens again. The other replica is left
// alone: it is the one that has what was acknowledged.
//
// What is drawn depends on the seed alone.
type chaosNemesis struct {
	*chaos
	rng                  *rand.Rand
	onPrimary, onReplica []string // the decks
	told                 []string // what was done, in order
	did                  map[string]int
	spans                []chaosSpan // of what befell the primary

	// Of the round.
	victim, keeper *replicatedtest.Node
	bystander      *program             // whose network is at fault
	times          []time.Duration      // drawn before anything is done
	absent         bool                 // the victim is down, or hangs
	former         *replicatedtest.Node // is to come back
}

// chaosSpan is the time in which something befell the primary.
type chaosSpan struct {
	history.Span
	kind string
}

// The faults, beside none at all.
const (
	faultNone      = "nothing"
	faultKill      = "kill"
	faultHang      = "hang"
	faultPause     = "pause of replication"
	faultDelay     = "delay of replication"
	faultBackends  = "sessions killed"
	faultCut       = "connections cut"
	faultBlackhole = "black hole"
	faultSlow      = "slow network"

	faultRestart    = "restart"
	faultSwitchover = "switchover"
	faultFailover   = "failover"
	faultHungOver   = "failover of a hung primary"
)

var (
	replicaFaults = []string{faultNone, faultKill, faultKill, faultHang, faultPause, faultDelay, faultDelay, faultBackends, faultBlackhole, faultSlow}
	primaryFaults = []string{faultNone, faultHang, faultBackends, faultCut, faultBlackhole, faultSlow, faultRestart, faultSwitchover, faultFailover, faultHungOver}
)

// newChaosNemesis returns one that begins with a change of roles.
func newChaosNemesis(c *chaos, seed uint64) *chaosNemesis {
	n := &chaosNemesis{chaos: c, rng: rand.New(rand.NewPCG(seed, 2000)), did: make(map[string]int)}
	first := n.draw(&n.onPrimary, []string{faultSwitchover, faultFailover, faultHungOver})
	n.onPrimary = []string{first}
	return n
}

// run goes through rounds until ctx ends. The last one is finished: everything runs
// then, and follows the primary.
func (n *chaosNemesis) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := n.round(ctx); err != nil {
			return fmt.Errorf("%v: %w", n.told, err)
		}
	}
	return nil
}

// draw takes the next card of a deck, which is shuffled anew when it has run out.
func (n *chaosNemesis) draw(deck *[]string, all []string) string {
	if len(*deck) == 0 {
		*deck = slices.Clone(all)
		n.rng.Shuffle(len(*deck), func(i, j int) { (*deck)[i], (*deck)[j] = (*deck)[j], (*deck)[i] })
	}
	card := (*deck)[0]
	*deck = (*deck)[1:]
	return card
}

func (n *chaosNemesis) round(ctx context.Context) error {
	onPrimary, onReplica := n.draw(&n.onPrimary, primaryFaults), n.draw(&n.onReplica, replicaFaults)
	replicas := n.cluster.Replicas()
	i := n.rng.IntN(2)
	n.victim, n.keeper, n.former = replicas[i], replicas[1-i], nil
	n.bystander = n.programs[n.rng.IntN(len(n.programs))]
	n.times = n.times[:0]
	for range 8 {
		n.times = append(n.times, 100*time.Millisecond+time.Duration(n.rng.Int64N(int64(900*time.Millisecond))))
	}
	n.told = append(n.told, onPrimary+" + "+onReplica)
	n.did["primary: "+onPrimary]++
	n.did["replica: "+onReplica]++

	n.absent = onReplica == faultKill || onReplica == faultHang
	if err := n.begin(onReplica); err != nil {
		return fmt.Errorf("%s of %s: %w", onReplica, n.victim, err)
	}
	if onReplica == faultHang && (onPrimary == faultRestart || onPrimary == faultSwitchover) {
		// A server that is stopped in order waits for a replica that hangs.
		n.rest(ctx, 5)
		if err := n.end(onReplica); err != nil {
			return err
		}
		onReplica = faultNone
	}
	n.rest(ctx, 1)
	primary := n.cluster.Primary()
	if err := n.befall(ctx, onPrimary); err != nil {
		return fmt.Errorf("%s of the primary %s: %w", onPrimary, primary, err)
	}
	if onPrimary == faultNone || onReplica == faultHang {
		n.rest(ctx, 2)
	}
	if err := n.end(onReplica); err != nil {
		return fmt.Errorf("the end of %s of %s: %w", onReplica, n.victim, err)
	}
	if n.former != nil {
		if err := n.former.Rejoin(n.cluster.Primary()); err != nil {
			return err
		}
	}
	n.rest(ctx, 1)
	return nil
}

// span takes a length of time out of those drawn, up to so many seconds.
func (n *chaosNemesis) span(seconds int) time.Duration {
	d := n.times[0] * time.Duration(seconds)
	n.times = n.times[1:]
	return d
}

func (n *chaosNemesis) rest(ctx context.Context, seconds int) {
	select {
	case <-ctx.Done():
	case <-time.After(n.span(seconds)):
	}
}

// begin has something befall the victim.
func (n *chaosNemesis) begin(fault string) error {
	switch fault {
	case faultKill:
		return n.victim.Kill()
	case faultHang:
		return n.victim.Hang()
	case faultPause:
		return n.victim.PauseReplication()
	case faultDelay:
		return n.victim.Delay(n.span(2))
	case faultBackends:
		_, err := n.victim.KillBackends()
		return err
	case faultBlackhole:
		n.bystander.to[n.victim].Blackhole()
	case faultSlow:
		n.bystander.to[n.victim].Delay(n.span(1) / 20)
	}
	return nil
}

// end undoes it.
func (n *chaosNemesis) end(fault string) error {
	primary := n.cluster.Primary()
	switch fault {
	case faultKill:
		if n.victim != primary && n.keeper == primary { // it has been passed over
			return n.victim.Rejoin(primary)
		}
		return n.victim.Start()
	case faultHang:
		if err := n.victim.Resume(); err != nil {
			return err
		}
		if n.keeper == primary {
			return n.victim.Rejoin(primary)
		}
	case faultPause:
		if n.victim != primary {
			return n.victim.ResumeReplication()
		}
	case faultDelay:
		if n.victim != primary {
			return n.victim.Delay(n.span(1) / 50)
		}
	case faultBlackhole, faultSlow:
		n.bystander.to[n.victim].Pass()
	}
	return nil
}

// befall has something befall the primary, and undoes what can be undone.
func (n *chaosNemesis) befall(ctx context.Context, fault string) error {
	if fault == faultNone {
		return nil
	}
	if fault == faultRestart || fault == faultSwitchover || fault == faultFailover || fault == faultHungOver {
		n.cancelling.Lock()
		defer n.cancelling.Unlock()
		if err := n.settle(ctx); err != nil {
			return err
		}
	}
	primary := n.cluster.Primary()
	from := n.rec.Now()
	if err := n.strike(ctx, fault, primary); err != nil {
		return err
	}
	to := n.rec.Now()
	if n.victim == n.cluster.Primary() { // the bystander is to reach it
		n.bystander.to[n.victim].Pass()
	}
	if err := n.noticed(ctx); err != nil {
		return err
	}
	n.outage(history.Span{From: from, To: n.rec.Now() + noticing})
	kind := fault
	if n.former != nil && n.absent {
		kind += ", and no commit ends before a replica is back"
	}
	n.spans = append(n.spans, chaosSpan{history.Span{From: from, To: to}, kind})
	if fault == faultBackends || fault == faultRestart {
		// What waited for a replica shows now, without its word.
		return n.settle(ctx)
	}
	return nil
}

func (n *chaosNemesis) strike(ctx context.Context, fault string, primary *replicatedtest.Node) error {
	network := n.bystander.to[primary]
	switch fault {
	case faultHang:
		if err := primary.Hang(); err != nil {
			return err
		}
		n.rest(ctx, 5)
		return primary.Resume()
	case faultBackends:
		_, err := primary.KillBackends()
		return err
	case faultCut:
		network.Cut()
	case faultBlackhole:
		network.Blackhole()
		n.rest(ctx, 2)
		network.Pass()
	case faultSlow:
		network.Delay(n.span(1) / 20)
		n.rest(ctx, 2)
		network.Pass()
	case faultRestart:
		return n.restart(ctx, primary)
	case faultSwitchover:
		return n.switchover(ctx, primary)
	case faultHungOver:
		if err := primary.Hang(); err != nil {
			return err
		}
		n.rest(ctx, 3)
		return n.failover(ctx, primary)
	case faultFailover:
		return n.failover(ctx, primary)
	}
	return nil
}

func (n *chaosNemesis) restart(ctx context.Context, primary *replicatedtest.Node) error {
	if err := primary.Stop(); err != nil {
		return err
	}
	n.rest(ctx, 1)
	if err := primary.Start(); err != nil || n.text.engine == replicatedtest.Postgres {
		return err
	}
	for _, r := range n.cluster.Replicas() { // see nemesis.restart
		if !r.Running() || r.Hung() {
			continue
		}
		if err := r.ResumeReceiving(); err != nil {
			return err
		}
	}
	return nil
}

// switchover is tried again if the primary does not let go of its role: a statement
// that waits too long for a lock keeps a server of MariaDB from becoming read-only.
func (n *chaosNemesis) switchover(ctx context.Context, primary *replicatedtest.Node) (err error) {
	for range 3 {
		if err = n.cluster.Switchover(context.WithoutCancel(ctx), n.keeper); err == nil || n.cluster.Primary() != primary {
			return err
		}
		n.did["switchover that was given up"]++
	}
	return err
}

func (n *chaosNemesis) failover(ctx context.Context, primary *replicatedtest.Node) error {
	n.former = primary
	_, err := n.cluster.Failover(context.WithoutCancel(ctx))
	return err
}

// settle waits until the keeper has everything. A commit is acknowledged when one
// replica has it, which may have been the victim; and one whose wait for a replica was
// ended, by a cancelled statement or a killed session, shows before any has it.
func (n *chaosNemesis) settle(ctx context.Context) error {
	if err := n.keeper.Delay(0); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return n.keeper.WaitCaughtUp(ctx)
}

// resume has all replicas receive anew: on MariaDB one whose source went away at the
// wrong moment has given up for good (see nemesis.restart), or no longer tells what it
// has received, and then no commit ends.
func (n *chaosNemesis) resume() error {
	if n.text.engine == replicatedtest.Postgres {
		return nil
	}
	for _, r := range n.cluster.Replicas() {
		if err := r.StopReceiving(); err != nil {
			return err
		}
		if err := r.ResumeReceiving(); err != nil {
			return err
		}
	}
	return nil
}

// noticed waits until all programs reach a primary.
func (n *chaosNemesis) noticed(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	for _, g := range n.programs {
		for {
			var one int
			err := g.handles[0].QueryRowContext(replicated.WithPrimary(ctx), "SELECT 1").Scan(&one)
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				return fmt.Errorf("program %d still does not reach the primary %s%s: %w", g.id, n.cluster.Primary(), n.seenBy(g), err)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	return nil
}

// seenBy tells what a program takes the nodes for.
func (n *chaosNemesis) seenBy(g *program) (text string) {
	stats := g.cluster.Stats()
	for _, node := range n.cluster.Nodes() {
		for _, s := range stats.Nodes {
			if s.Address == g.to[node].Addr() {
				text += fmt.Sprintf(", %s (%s) is its %v, breaker %v", node.Name(), s.Address, s.Role, s.Breaker)
			}
		}
	}
	return text
}

// outage notes that no primary could be reached, by some program at least.
func (n *chaosNemesis) outage(s history.Span) {
	if last := len(n.outages) - 1; last >= 0 && s.From <= n.outages[last].To {
		n.outages[last].To = s.To
		return
	}
	n.outages = append(n.outages, s)
}
