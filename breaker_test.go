package replicated

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlreplicated/replicated/internal/faketime"
)

const testOpenFor = time.Second

func trip(b *breaker) {
	for b.current() == BreakerClosed {
		b.failed(false)
	}
}

func TestBreakerOpensAfterFailuresInARow(t *testing.T) {
	b := newBreaker(3, testOpenFor)
	b.failed(false)
	b.failed(false)
	if got := b.current(); got != BreakerClosed {
		t.Fatalf("after 2 failures the breaker is %v", got)
	}
	b.failed(false)
	if got := b.current(); got != BreakerOpen {
		t.Fatalf("after 3 failures the breaker is %v", got)
	}
	if !b.takeOpened() {
		t.Error("nobody is told that it opened")
	}
	if b.takeOpened() {
		t.Error("a second caller is told that it opened")
	}
}

func TestBreakerSuccessEndsTheRow(t *testing.T) {
	b := newBreaker(3, testOpenFor)
	for range 10 {
		b.failed(false)
		b.failed(false)
		b.succeeded()
	}
	if got := b.current(); got != BreakerClosed {
		t.Errorf("never more than 2 failures in a row, and the breaker is %v", got)
	}
}

func TestBreakerOpensAtOnceWhenTheNodeGoesDown(t *testing.T) {
	b := newBreaker(3, testOpenFor)
	b.failed(true)
	if got := b.current(); got != BreakerOpen {
		t.Errorf("the breaker is %v", got)
	}
}

func TestBreakerProbe(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		b := newBreaker(1, testOpenFor)
		trip(b)
		asked := 0
		ask := func(err error) func() error { return func() error { asked++; return err } }

		if b.probe(ask(nil)) || asked != 0 {
			t.Fatalf("a probe before its time was let through (%d asked)", asked)
		}
		time.Sleep(2 * testOpenFor)
		if b.probe(ask(errors.New("still down"))) || asked != 1 {
			t.Fatalf("the failing probe closed the breaker, or did not run (%d asked)", asked)
		}
		if got := b.current(); got != BreakerOpen {
			t.Fatalf("after a failed probe the breaker is %v", got)
		}
		time.Sleep(2 * testOpenFor)
		if !b.probe(ask(nil)) || asked != 2 {
			t.Fatalf("the good probe did not close the breaker (%d asked)", asked)
		}
		if got := b.current(); got != BreakerClosed {
			t.Fatalf("after a good probe the breaker is %v", got)
		}
		if b.failed(false); b.current() != BreakerOpen || !b.takeOpened() {
			t.Error("it does not open a second time")
		}
	})
}

// Reads that were under way when the breaker opened fail later; they must not
// count against the node that has come back, nor use up the probe's place.
func TestBreakerIgnoresLateFailures(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		b := newBreaker(1, testOpenFor)
		trip(b)
		b.failed(false)
		time.Sleep(2 * testOpenFor)
		b.failed(true)
		closed := b.probe(func() error {
			b.failed(false) // half-open now
			b.succeeded()
			return nil
		})
		if !closed {
			t.Error("a late failure kept the breaker open")
		}
	})
}

func TestBreakerProbeThatNeverReturns(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		b := newBreaker(1, testOpenFor)
		trip(b)
		time.Sleep(2 * testOpenFor)
		release := make(chan struct{})
		go b.probe(func() error { <-release; return nil })
		synctest.Wait()
		if got := b.current(); got != BreakerHalfOpen {
			t.Fatalf("while the probe is out the breaker is %v", got)
		}
		if b.probe(func() error { t.Error("a second probe was let through"); return nil }) {
			t.Error("a second probe closed the breaker")
		}
		close(release)
		synctest.Wait()
		if got := b.current(); got != BreakerClosed {
			t.Errorf("after the probe came back the breaker is %v", got)
		}
	})
}

func TestBreakerOpenTimeDoubles(t *testing.T) {
	b := newBreaker(1, testOpenFor)
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30, 30} {
		want *= time.Second
		for range 50 {
			if got := b.openFor(); got < want || got > want+want/4+1 {
				t.Fatalf("after %d misses it stays open for %v, want %v and up to a quarter more", b.misses.Load(), got, want)
			}
		}
		b.misses.Add(1)
	}
}

func TestBreakerLongBaseTimeIsKept(t *testing.T) {
	b := newBreaker(1, time.Minute)
	if got := b.openFor(); got < time.Minute {
		t.Errorf("it stays open for %v, want the configured minute", got)
	}
}

func TestBreakerTellsOneOfMany(t *testing.T) {
	b := newBreaker(1, testOpenFor)
	var wg sync.WaitGroup
	var mu sync.Mutex
	told := 0
	for range 64 {
		wg.Go(func() {
			b.failed(false)
			if b.takeOpened() {
				mu.Lock()
				told++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if told != 1 {
		t.Errorf("%d callers were told that the breaker opened, want 1", told)
	}
}

func TestBreakerStateNames(t *testing.T) {
	for s, want := range map[BreakerState]string{BreakerClosed: "closed", BreakerOpen: "open", BreakerHalfOpen: "half-open", 9: "unknown"} {
		if got := s.String(); got != want {
			t.Errorf("state %d is called %q, want %q", s, got, want)
		}
	}
}
