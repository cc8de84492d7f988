package replicated

import "time"

// This file says when a node is next asked how far it has got. Everything in it is
// a function of moments that it is given.

const (
	// sampleSpacing keeps a process at 50 samples a second on a node, whatever it
	// does: each costs the server 22–70 µs of CPU.
	sampleSpacing = 20 * time.Millisecond
	// sampleBurst is how many may come at once after a pause.
	sampleBurst = 10
	// soonest is how soon a replica is asked again that has not got there yet.
	soonest = 2 * time.Millisecond
	// idlest is the pause between samples that serve nobody.
	idlest = 500 * time.Millisecond
	// slowest is the pause between samples that nobody waits for.
	slowest = time.Second
)

// slowTick is the pause between samples that nobody waits for: lag has to be known
// well within the bound on it.
func slowTick(maxLag time.Duration) time.Duration {
	return max(sampleSpacing, min(slowest, maxLag/4))
}

// budget spaces samples out. The zero budget is full.
//
// It is the generic cell rate algorithm: paid runs ahead of time by one spacing
// for each sample.
type budget struct{ paid moment }

// next returns the earliest moment at which a sample may be taken.
func (b *budget) next() moment { return b.paid - moment((sampleBurst-1)*sampleSpacing) }

func (b *budget) take(at moment) { b.paid = max(b.paid, at) + moment(sampleSpacing) }

// zeal is how eagerly the primary is sampled for writes that nobody has asked to
// read yet. The zero zeal is the highest. A second in which samples were taken for
// such writes, and served no read, halves it.
type zeal struct {
	halvings int
	spent    bool   // a sample was taken for a floor
	since    moment // when the second began
}

// look is called now and then with whether, since the last time, a proof has
// served a read that needed it, or a read was refused for want of one.
func (z *zeal) look(at moment, useful bool) {
	switch {
	case useful:
		z.halvings = 0
	case at-z.since < moment(time.Second):
		return
	case z.spent:
		z.halvings = min(z.halvings+1, 8)
	default:
		z.halvings = 0
	}
	z.spent, z.since = false, at
}

// gap is the pause that it keeps.
func (z *zeal) gap() time.Duration {
	if z.halvings == 0 {
		return 0
	}
	return min(sampleSpacing<<z.halvings, idlest)
}

// primaryPace says when the primary is sampled.
type primaryPace struct {
	tick time.Duration
	zeal zeal
	budget
	last moment // when it was last asked
}

// primaryState is what the pace of the primary depends on.
type primaryState struct {
	owed    bool          // there is a floor that no sample covers, or a replica to be confirmed
	reached bool          // some replica has the newest sample already
	lag     time.Duration // how long the quickest replica usually takes
	stalled bool          // no replica gets on
}

// next returns when to ask: at the slow tick, or sooner if a floor is owed a proof.
// A further sample is of no use before a replica has reached the one before, or has
// had the time to, and hardly any while none gets on.
func (p *primaryPace) next(s primaryState) moment {
	slow := p.last + moment(p.tick)
	if !s.owed {
		return slow
	}
	gap := p.zeal.gap()
	if !s.reached {
		gap = max(gap, min(max(s.lag, soonest), sampleSpacing))
	}
	if s.stalled {
		gap = idlest
	}
	return min(slow, max(p.last+moment(gap), p.budget.next()))
}

func (p *primaryPace) asked(at moment, owed bool) {
	p.last = at
	p.take(at)
	p.zeal.spent = p.zeal.spent || owed
}

// replicaPace says when a replica is sampled.
type replicaPace struct {
	tick time.Duration
	budget
	last  moment // when it was last asked
	stuck moment // since when its proof is wanted and has not moved; never: it is not wanted
}

// patience is how much longer a read may be kept from a replica, in parts of the time
// for which the replica was behind anyhow, since it was not asked in time.
const patience = 8

// next returns when to ask: at the slow tick, or sooner if there is a floor that it
// has not been proven to be past, and a sample that would prove it. The pauses grow
// with the time that it makes no progress; a replica that has stopped is soon asked at
// the slow tick only.
func (r *replicaPace) next(wanted bool, at moment) moment {
	slow := r.last + moment(r.tick)
	switch {
	case !wanted:
		r.stuck = never
		return slow
	case r.stuck == never:
		r.stuck = at
	}
	pause := max((r.last-r.stuck)/patience, moment(soonest))
	return min(slow, max(r.last+pause, r.budget.next()))
}

// asked takes note of an answer: whether it has moved the proof.
func (r *replicaPace) asked(at moment, progress bool) {
	r.last = at
	r.take(at)
	if progress && r.stuck != never {
		r.stuck = at
	}
}

// stopped tells whether the replica has made no progress for so long, while its proof
// was wanted, that it may go on like that.
func (r *replicaPace) stopped(at moment) bool {
	return r.stuck != never && at-r.stuck >= moment(slowest)
}
