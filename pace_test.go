package replicated

import (
	"testing"
	"time"
)

const millisecond = moment(time.Millisecond)

// paced walks through virtual time in steps and lists the moments at which the pace
// has a node asked. next is the pace's; asked is called with each of them.
func paced(from, to moment, next func(at moment) moment, asked func(at moment)) []moment {
	var at []moment
	for m := from; m < to; m += millisecond / 4 {
		for next(m) <= m {
			at = append(at, m)
			asked(m)
		}
	}
	return at
}

// most returns the highest number of moments within a window.
func most(at []moment, window time.Duration) (n int) {
	for i, j := 0, 0; j < len(at); j++ {
		for at[j]-at[i] >= moment(window) {
			i++
		}
		n = max(n, j-i+1)
	}
	return n
}

func within10(t *testing.T, what string, got, want int) {
	t.Helper()
	if got < want*9/10 || got > want*11/10+1 {
		t.Errorf("%s: %d, want about %d", what, got, want)
	}
}

func TestSlowTick(t *testing.T) {
	for maxLag, want := range map[time.Duration]time.Duration{
		time.Hour: time.Second, 5 * time.Second: time.Second, 4 * time.Second: time.Second,
		2 * time.Second: 500 * time.Millisecond, 100 * time.Millisecond: 25 * time.Millisecond,
		80 * time.Millisecond: 20 * time.Millisecond, time.Millisecond: 20 * time.Millisecond,
	} {
		if got := slowTick(maxLag); got != want {
			t.Errorf("slowTick(%v) = %v, want %v", maxLag, got, want)
		}
	}
}

// However much is wanted, a node is asked 50 times a second, and ten more after a
// pause.
func TestBudget(t *testing.T) {
	var b budget
	greedy := paced(1, moment(10*time.Second), func(moment) moment { return b.next() }, b.take)
	within10(t, "in ten seconds", len(greedy), 500)
	if n := most(greedy, time.Second); n > 50+sampleBurst {
		t.Errorf("%d samples in one second", n)
	}
	if n := most(greedy[sampleBurst:], time.Second); n > 51 {
		t.Errorf("%d samples in one second, without a pause before", n)
	}
	if n := most(greedy, time.Millisecond); n != sampleBurst {
		t.Errorf("a burst of %d", n)
	}
	after := paced(moment(time.Hour), moment(time.Hour)+moment(time.Second), func(moment) moment { return b.next() }, b.take)
	if n := most(after, time.Millisecond); n != sampleBurst {
		t.Errorf("after a pause a burst of %d", n)
	}
}

// A worker that only writes has the primary sampled less and less often, down to
// twice a second; when reads come back, it is asked as often as before at once.
func TestZeal(t *testing.T) {
	p := primaryPace{tick: time.Second}
	useful := false
	next := func(at moment) moment {
		p.zeal.look(at, useful)
		return p.next(primaryState{owed: true, reached: true})
	}
	asked := func(at moment) { p.asked(at, true) }
	count := func(second int) int {
		from := moment(time.Duration(second) * time.Second)
		return len(paced(from+1, from+moment(time.Second)+1, next, asked))
	}
	var rates []int
	for second := range 12 {
		rates = append(rates, count(second))
	}
	if rates[0] < 45 {
		t.Errorf("%d samples in the first second, want the budget", rates[0])
	}
	for i := 1; i < len(rates); i++ {
		if rates[i] > max(rates[i-1]*2/3, 3) {
			t.Errorf("the rate does not halve: %v", rates)
		}
	}
	for _, n := range rates[8:] {
		if n > 2 {
			t.Errorf("a worker that only writes costs %v samples a second", rates)
		}
	}
	useful = true
	if n := count(12); n < 45 {
		t.Errorf("%d samples in the second after a read, want the budget", n)
	}
	useful = false
	count(13)
	count(14)
	if p.zeal.halvings == 0 {
		t.Error("the rate does not halve again")
	}
	// A second without writes, and the next one is worth the highest rate.
	p.zeal.look(moment(16*time.Second), false)
	p.zeal.look(moment(18*time.Second), false)
	if p.zeal.gap() != 0 {
		t.Errorf("after a pause the gap is %v", p.zeal.gap())
	}
}

func TestPrimaryPace(t *testing.T) {
	const last = moment(time.Minute)
	for _, tt := range []struct {
		name  string
		state primaryState
		want  time.Duration
	}{
		{"nothing owed", primaryState{reached: true}, time.Second},
		{"a replica has the newest sample", primaryState{owed: true, reached: true, lag: time.Second}, 0},
		{"none has, and the usual lag is short", primaryState{owed: true, lag: time.Microsecond}, 2 * time.Millisecond},
		{"none has, and the usual lag is 7 ms", primaryState{owed: true, lag: 7 * time.Millisecond}, 7 * time.Millisecond},
		{"none has, and the usual lag is long", primaryState{owed: true, lag: time.Hour}, 20 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := primaryPace{tick: time.Second}
			p.asked(last, false)
			if got := time.Duration(p.next(tt.state) - last); got != tt.want {
				t.Errorf("asked after %v, want %v", got, tt.want)
			}
		})
	}
	t.Run("the first time at once", func(t *testing.T) {
		p := primaryPace{tick: time.Second}
		if at := p.next(primaryState{}); at > last {
			t.Errorf("at %d", at)
		}
	})
	t.Run("the slow tick is kept whatever the zeal", func(t *testing.T) {
		p := primaryPace{tick: 50 * time.Millisecond, zeal: zeal{halvings: 8}}
		p.asked(last, false)
		if got := time.Duration(p.next(primaryState{owed: true}) - last); got != 50*time.Millisecond {
			t.Errorf("asked after %v", got)
		}
	})
	t.Run("the budget is kept", func(t *testing.T) {
		p := primaryPace{tick: time.Second}
		at := paced(1, moment(10*time.Second), func(moment) moment { return p.next(primaryState{owed: true, reached: true}) }, func(at moment) { p.asked(at, false) })
		within10(t, "in ten seconds", len(at), 500)
	})
}

// While no replica gets on, a sample proves nothing new: the primary is sampled
// no more often than where it serves nobody.
func TestStalledReplicas(t *testing.T) {
	p := primaryPace{tick: time.Second}
	p.asked(moment(time.Minute), false)
	if got := time.Duration(p.next(primaryState{owed: true, stalled: true, lag: time.Millisecond}) - moment(time.Minute)); got != idlest {
		t.Errorf("asked after %v, want %v", got, idlest)
	}
}

// A replica that makes no progress is asked less and less often, and soon at the slow
// tick only; one that comes up is asked fast again. For all that, its proof comes no
// more than an eighth later than it could.
func TestReplicaPace(t *testing.T) {
	r := replicaPace{tick: time.Second}
	progress := false
	next := func(at moment) moment { return r.next(true, at) }
	asked := func(at moment) { r.asked(at, progress) }
	stopped := paced(1, moment(20*time.Second), next, asked)
	if n := most(stopped, 100*time.Millisecond); n < 5 {
		t.Errorf("a replica that is behind is asked %d times in a tenth of a second", n)
	}
	for i, at := range stopped[1:] {
		behind := stopped[i] - stopped[0]
		if pause := at - stopped[i]; pause > max(behind/patience, moment(sampleSpacing))+millisecond {
			t.Errorf("after %v without progress the pause is %v", time.Duration(behind), time.Duration(pause))
		}
	}
	if n := len(stopped); n > 100 {
		t.Errorf("a replica that has stopped is asked %d times in 20 s", n)
	}
	if n := most(stopped[len(stopped)-8:], time.Second); n > 2 {
		t.Errorf("a replica that has stopped is asked %d times a second in the end, want the slow tick", n)
	}
	if at := moment(20 * time.Second); !r.stopped(at) {
		t.Error("it does not count as stopped")
	}
	progress = true
	asked(moment(20 * time.Second))
	if at := moment(20 * time.Second); r.stopped(at) || time.Duration(r.next(true, at)-at) != soonest {
		t.Errorf("after progress it is asked in %v", time.Duration(r.next(true, at)-at))
	}
	within10(t, "with progress in ten seconds", len(paced(moment(21*time.Second), moment(31*time.Second), next, asked)), 500)

	t.Run("nothing wanted", func(t *testing.T) {
		r := replicaPace{tick: 300 * time.Millisecond}
		r.asked(moment(time.Minute), true)
		if got := time.Duration(r.next(false, moment(time.Minute)) - moment(time.Minute)); got != 300*time.Millisecond {
			t.Errorf("asked after %v, want the slow tick", got)
		}
		if r.stopped(moment(time.Hour)) {
			t.Error("it counts as stopped, though nobody wants its proof")
		}
	})
	t.Run("wanted again, it is given time", func(t *testing.T) {
		r := replicaPace{tick: time.Second}
		r.next(true, moment(time.Second))
		r.asked(moment(time.Minute), false)
		r.next(false, moment(time.Minute))
		if got := time.Duration(r.next(true, moment(time.Hour)) - moment(time.Minute)); got != soonest {
			t.Errorf("asked after %v", got)
		}
	})
}
