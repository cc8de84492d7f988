package demo

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sqlreplicated/replicated"
)

// othersPerVisit is how many people look at accounts while one pays in.
const othersPerVisit = 3

// staleness is the second chapter: users pay in and look at their balance at once,
// through a naive split and through the driver, side by side.
func (d *demo) staleness(ctx context.Context) error {
	s := d.screen
	s.chapter(2, "Reading what one has just written")
	s.line(fmt.Sprintf("  %d users pay in and look at their balance at once. Replicas are %v behind.", users, lag))
	s.line("")

	naive, done, err := d.naive()
	if err != nil {
		return err
	}
	defer done()
	db, err := sql.Open(replicated.DriverName, d.servers.dsn(d.keys()...))
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxIdleConns(maxIdle)
	cluster, err := replicated.ClusterOf(ctx, db)
	if err != nil {
		return err
	}
	if _, err := d.known(ctx, db); err != nil {
		return err
	}
	var ours teller = driverTeller{db, d.bank}
	if d.ours != nil {
		ours = d.ours(d, db)
	}

	v := &visits{d: d}
	before := cluster.Stats()
	var group errgroup.Group
	for u := range users {
		group.Go(func() error { return v.user(ctx, naive, naiveAcct+u, &v.naive, nil) })
		group.Go(func() error { return v.user(ctx, ours, oursAcct+u, &v.ours, &v.others) })
	}
	if err := d.watch(&group, v.draw); err != nil {
		return err
	}
	stats := since(before, cluster.Stats())
	fromPrimary := stats.primaryReads()
	s.line("")
	s.line("  where the driver's reads ran")
	v.share("a user's own balance, at once", "replicas", max(0, stats.replica-int(v.others.reads.Load())), int(v.ours.reads.Load()))
	// Every read on the primary that the users' own do not account for was somebody
	// else's.
	others := int(v.others.reads.Load())
	onReplicas := min(others, max(0, others-(fromPrimary-stats.ownReads())))
	v.share("other people's reads, meanwhile", "replicas", onReplicas, others)

	later, err := v.released(ctx, cluster)
	if err != nil {
		return err
	}
	before = cluster.Stats()
	late, lateStale, err := v.again(ours)
	if err != nil {
		return err
	}
	lateOnReplicas := min(late, since(before, cluster.Stats()).replica)
	v.share(fmt.Sprintf("a user's own balance, %.1f s later", later.Seconds()), "replicas", lateOnReplicas, late)
	s.line("")
	if d.measured {
		s.note(fmt.Sprintf("Nothing is guessed. After a write the driver asks the primary how far its log has got, and each "+
			"replica how far it has applied it: a replica serves the user again once it is proven to have the write. "+
			"On both it was, %d ms after the last one.", later.Milliseconds()))
	} else {
		honest := ""
		if d.heard.noticed(replicated.NoticeLagUnmeasured) {
			honest = ", of which the driver gives notice (lag-unmeasured)"
		}
		s.note(fmt.Sprintf("SQLite does not tell how far a replica has got. So a user's reads are held on the primary for a time "+
			"after a write (replicated.sticky, %v here), in the trust that replicas are not further behind. That is a guess%s. "+
			"On PostgreSQL, MySQL and MariaDB it is proven.", sticky, honest))
	}

	naiveStale, oursStale := int(v.naive.stale.Load()), int(v.ours.stale.Load())+lateStale
	reads := int(v.ours.reads.Load()) + late
	d.promises.add("One reads what one has written", oursStale == 0 && reads > 0,
		fmt.Sprintf("%s stale (naive: %s)", outOf(oursStale, reads), outOf(naiveStale, int(v.naive.reads.Load()))))
	if d.measured {
		d.promises.add("Replicas serve again what is proven", lateOnReplicas == late && late > 0, outOf(lateOnReplicas, late))
	}
	d.promises.add("Others' reads stay on replicas", onReplicas*10 >= others*9 && others > 0, outOf(onReplicas, others))
	if naiveStale == 0 {
		return fmt.Errorf("the naive split has read nothing stale, so that this chapter shows nothing: were the replicas not behind?")
	}
	return nil
}

// visits counts what users see. Its counters are used by all of them.
type visits struct {
	d                   *demo
	naive, ours, others reading
	last                [users]visit // of ours; each is its user's until all are done
	wrote               atomic.Int64 // when the last write of ours had returned, in nanoseconds since the demo began
}

type reading struct{ reads, stale atomic.Int64 }

// visit is what a user of ours did last.
type visit struct {
	ctx     context.Context // with the session
	balance int             // what the account has
}

// user comes again and again, each time in a session of its own: pays in, and
// looks. others, if not nil, counts those who look at accounts meanwhile.
func (v *visits) user(ctx context.Context, t teller, account int, own, others *reading) error {
	balance := firstBalance
	for range v.d.pace.rounds {
		visitCtx, _ := replicated.WithSession(ctx)
		if err := t.deposit(visitCtx, account); err != nil {
			return err
		}
		if others != nil {
			v.wrote.Store(int64(time.Since(v.d.began)))
		}
		balance++
		seen, err := t.balance(visitCtx, account)
		if err != nil {
			return err
		}
		own.reads.Add(1)
		if seen != balance {
			own.stale.Add(1)
		}
		if others != nil {
			v.last[account-oursAcct] = visit{visitCtx, balance}
			for range othersPerVisit {
				otherCtx, _ := replicated.WithSession(ctx)
				if _, err := t.balance(otherCtx, oursAcct+rand.IntN(users)); err != nil {
					return err
				}
				others.reads.Add(1)
			}
		}
		if err := pause(ctx, v.d.pace.visit); err != nil {
			return err
		}
	}
	return nil
}

// released waits until replicas may serve the users' own reads again, and returns
// how long after the last write that was: until both are proven to have it, or
// until the time is over for which reads are held.
func (v *visits) released(ctx context.Context, cluster *replicated.Cluster) (time.Duration, error) {
	since := func() time.Duration { return time.Since(v.d.began) - time.Duration(v.wrote.Load()) }
	past := func() bool {
		after := since()
		if !v.d.measured {
			return after > sticky
		}
		// Lag is the time since the sample of the primary that the replica contains.
		return !slices.ContainsFunc(cluster.Stats().Nodes[1:], func(n replicated.NodeStats) bool {
			return n.Freshness != replicated.FreshnessProven || n.Lag >= after
		})
	}
	for !past() {
		if since() > patience {
			return 0, fmt.Errorf("after %v replicas are not proven to have the last write", patience)
		}
		if err := pause(ctx, pollEvery); err != nil {
			return 0, err
		}
	}
	return since(), nil
}

// again has every user look once more, in the session of the last visit.
func (v *visits) again(t teller) (reads, stale int, err error) {
	for u, last := range v.last {
		seen, err := t.balance(last.ctx, oursAcct+u)
		if err != nil {
			return reads, stale, err
		}
		reads++
		if seen != last.balance {
			stale++
		}
	}
	return reads, stale, nil
}

// draw is the state of both contestants.
func (v *visits) draw() []string {
	s := v.d.screen
	row := func(name string, r *reading) string {
		reads, stale := int(r.reads.Load()), int(r.stale.Load())
		st := green
		if stale > 0 {
			st = red
		}
		return "  " + s.left(name, 14) + s.bar(stale, reads, 32, red) + s.paint(st, right(outOf(stale, reads), 16)) + " reads stale"
	}
	return []string{row("naive split", &v.naive), row("replicated", &v.ours)}
}

// share writes how many of some reads replicas have served.
func (v *visits) share(name, by string, part, whole int) {
	s := v.d.screen
	s.line("    " + s.left(name, 36) + s.bar(part, whole, 12, cyan) + "  " + right(outOf(part, whole), 12) + " on " + by)
}

// routedReads is what a cluster has counted over a time.
type routedReads struct {
	replica int
	primary map[replicated.Reason]int
}

func since(before, after replicated.Stats) routedReads {
	r := routedReads{primary: make(map[replicated.Reason]int)}
	for why, n := range after.Replica {
		r.replica += int(n - before.Replica[why])
	}
	for why, n := range after.Primary {
		r.primary[why] = int(n - before.Primary[why])
	}
	return r
}

// primaryReads are the reads that the primary served, for whatever reason.
func (r routedReads) primaryReads() int {
	n := 0
	for why, k := range r.primary {
		if why != replicated.ReasonWrite {
			n += k
		}
	}
	return n
}

// ownReads are those that it served because their session had written.
func (r routedReads) ownReads() int {
	return r.primary[replicated.ReasonSessionWrite] + r.primary[replicated.ReasonOwnWrite]
}

// watch draws the state until the group has done its work.
func (d *demo) watch(group *errgroup.Group, state func() []string) error {
	ended := make(chan error, 1)
	go func() { ended <- group.Wait() }()
	r := d.screen.region()
	for {
		select {
		case err := <-ended:
			r.end(state()...)
			return err
		case <-time.After(frame):
			r.draw(state()...)
		}
	}
}

// frame is how often a live region is drawn.
const frame = 100 * time.Millisecond
