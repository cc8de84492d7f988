package replicated

import (
	"math"
	"testing"
	"time"
)

func TestSlownessFollowsLatency(t *testing.T) {
	var s slowness
	if got := s.speed(0); got != 1 {
		t.Errorf("nothing is known of it, and its speed is %v", got)
	}
	for range 500 {
		s.add(20 * time.Millisecond)
	}
	if mean, samples := s.load(); math.Abs(mean-math.Log(20)) > 0.01 || samples != memory {
		t.Errorf("after 500 reads of 20 ms: e^%v ms, %d samples", mean, samples)
	}
	if got := s.speed(0); math.Abs(got-0.01) > 0.001 { // (20 ÷ 2)⁻²
		t.Errorf("its speed is %v", got)
	}
	if got := s.speed(math.Log(11)); got != 1 {
		t.Errorf("beside one of 11 ms its speed is %v", got)
	}
	n := 0
	for ; s.speed(0) < 1; n++ {
		s.add(time.Millisecond)
	}
	if n > 2*memory {
		t.Errorf("it took %d fast reads to forget the slow ones", n)
	}
}

// What is below the floor is noise.
func TestSlownessHasAFloor(t *testing.T) {
	var s slowness
	for range 100 {
		s.add(latencyFloor)
		s.add(0)
	}
	if mean, _ := s.load(); mean != 0 {
		t.Errorf("the mean is %v", mean)
	}
}

// One slow read is not all that there is to a node that has just been met.
func TestSlownessOfTheFirstRead(t *testing.T) {
	var s slowness
	s.add(64 * time.Millisecond)
	if mean, _ := s.load(); math.Abs(mean-math.Log(8)) > 0.01 {
		t.Errorf("after one read of 64 ms: e^%v ms", mean)
	}
}

// One report among short reads says little of its node.
func TestSlownessOfAReport(t *testing.T) {
	var s slowness
	for range memory {
		s.add(time.Millisecond)
	}
	s.add(2 * time.Second)
	if got := s.speed(0); got != 1 {
		t.Errorf("after one report the speed is %v", got)
	}
}

func TestSlownessIsForgotten(t *testing.T) {
	var s slowness
	for range 100 {
		s.add(200 * time.Millisecond)
	}
	at := moment(time.Minute)
	slow, _ := s.load()
	// However often it is looked at, a second is a second.
	for range 100 {
		s.forget(at)
		at += moment(10 * time.Millisecond)
	}
	s.forget(at)
	if mean, samples := s.load(); mean < 0.9*slow || samples < memory/2 {
		t.Errorf("within a second it has forgotten %v of %v, and has %d samples", slow-mean, slow, samples)
	}
	// A read in each second keeps it from forgetting anything.
	for range 100 {
		s.add(200 * time.Millisecond)
		at += moment(time.Second)
		s.forget(at)
	}
	if mean, _ := s.load(); math.Abs(mean-slow) > 0.1 {
		t.Errorf("it was read from, and went from %v to %v", slow, mean)
	}
	for range 30 {
		at += moment(time.Second)
		s.forget(at)
	}
	if got := s.speed(0); got != 1 {
		t.Errorf("after half a minute without reads its speed is %v", got)
	}
	if _, samples := s.load(); samples >= trusted {
		t.Errorf("%d samples of what is forgotten", samples)
	}
}

// Fast reads, whose mean stays where it is, are reads as well.
func TestSlownessOfASteadyNodeIsKept(t *testing.T) {
	var s slowness
	for i := range 10 {
		for range memory {
			s.add(time.Millisecond)
		}
		s.forget(moment(i+1) * moment(time.Second))
	}
	if _, samples := s.load(); samples != memory {
		t.Errorf("%d samples, want %d", samples, memory)
	}
}
