package replicated

import (
	"math"
	"sync/atomic"
	"time"
)

const (
	// latencyFloor is the latency below which nodes count as equally fast: what is
	// left there is noise, and would keep one of two equal nodes idle.
	latencyFloor = time.Millisecond

	// alike is the logarithm of how many times as slow as the fastest, twice, a node may
	// be and get its full share. Reads differ more than nodes do: less would be noise.
	alike = math.Ln2

	// memory is how many reads the average goes back.
	memory = 32

	// trusted is how many reads it takes to say something of a node.
	trusted = 4

	// forgetEvery is how often it is looked whether a node has had no reads, and
	// forgetHalf how long it then takes to forget half of what was known.
	forgetEvery = time.Second
	forgetHalf  = 10 * time.Second
)

// slowness is how slow a node's reads are: the mean of the logarithms of their
// latency, counted from latencyFloor. The usual mean would not do: one report that
// takes two seconds, among reads of a millisecond, would keep reads from its node
// for a while, though nothing is wrong with it. The logarithms give it the weight of
// a few reads.
//
// The zero value is a node of which nothing is known: it counts as fast, and becomes
// slow only by several reads. It is safe for concurrent use. Of two reads that
// end at once one may be lost, which is no matter.
type slowness struct {
	state atomic.Uint64 // see packSlowness

	// What forget saw when it last looked, and when that was.
	seen atomic.Uint64
	when atomic.Int64
}

// load returns the mean, 0 or more, and the number of recent reads in it.
func (s *slowness) load() (mean float64, samples int) {
	mean, samples, _ = unpackSlowness(s.state.Load())
	return mean, samples
}

// packSlowness puts the mean, a float32, above the number of recent reads, in 8 bits,
// and a count of all, in 24, which tells that there was one.
func packSlowness(mean float64, samples int, count uint32) uint64 {
	return uint64(math.Float32bits(float32(mean)))<<32 | uint64(count<<8) | uint64(samples)
}

func unpackSlowness(state uint64) (mean float64, samples int, count uint32) {
	return float64(math.Float32frombits(uint32(state >> 32))), int(state & 0xff), uint32(state) >> 8
}

// add takes the latency of one read into the mean.
func (s *slowness) add(took time.Duration) {
	old := s.state.Load()
	mean, samples, count := unpackSlowness(old)
	x := 0.0
	if took > latencyFloor {
		x = math.Log(float64(took) / float64(latencyFloor))
	}
	// While there are few, the mean is that of all, and of one fast one before them.
	mean += (x - mean) / float64(min(samples+2, memory))
	s.state.CompareAndSwap(old, packSlowness(mean, min(samples+1, memory), count+1))
}

// speed is the part of its share that a node gets for being slower than the fastest,
// whose mean is given. Twice as slow as what is alike gets a quarter: a read costs
// the caller its latency, and another one the chance of a better place. It never
// comes to nothing, so that a node that has recovered is found out.
func (s *slowness) speed(fastest float64) float64 {
	mean, _ := s.load()
	excess := mean - fastest - alike
	if excess <= 0 {
		return 1
	}
	return math.Exp(-2 * excess)
}

// forget lets a node that was slow, and has had few reads since, be tried again.
// Within half a minute without any it gets its full share, whatever it was. One
// goroutine calls it, as often as it likes.
func (s *slowness) forget(at moment) {
	when := moment(s.when.Load())
	if when != never && at-when < moment(forgetEvery) {
		return
	}
	state := s.state.Load()
	if when != never && state == s.seen.Load() {
		mean, samples, count := unpackSlowness(state)
		mean *= math.Exp2(-float64(at-when) / float64(forgetHalf))
		next := packSlowness(mean, samples/2, count)
		if s.state.CompareAndSwap(state, next) {
			state = next
		}
	}
	s.seen.Store(state)
	s.when.Store(int64(at))
}
