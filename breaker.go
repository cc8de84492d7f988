package replicated

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
)

// BreakerState is the state of a replica's circuit breaker.
type BreakerState uint8

// The states of a breaker. The zero value is BreakerClosed.
const (
	BreakerClosed   BreakerState = iota // the replica takes reads
	BreakerOpen                         // it takes none
	BreakerHalfOpen                     // it takes none but the probe
)

// String returns "closed", "open" or "half-open".
func (s BreakerState) String() string {
	switch s {
	case BreakerClosed:
		return "closed"
	case BreakerOpen:
		return "open"
	case BreakerHalfOpen:
		return "half-open"
	default:
		return "unknown"
	}
}

// maxOpenTime is the longest that a breaker stays open between two probes.
const maxOpenTime = 30 * time.Second

// breaker takes a failing replica out and lets the probe bring it back.
//
//	state      event                             next       side effect
//	closed     failure, n in a row               open       opened() once
//	closed     failure that says "going down"    open       opened() once
//	closed     success while suspect             closed     the row of failures ends
//	open       openFor() has passed, probe       half-open
//	half-open  the probe succeeds                closed     openFor() starts over
//	half-open  the probe fails                   open       openFor() doubles
//
// gobreaker keeps the machine. Two things are kept beside it, because it locks a
// mutex on every call and its open time is fixed: the published state, which is
// all that a statement looks at, and the doubling open time, which is the probe's
// schedule. Successes are reported only while the replica is suspect: else three
// failures a week apart would count as three in a row.
//
// It is safe for concurrent use.
type breaker struct {
	machine *gobreaker.CircuitBreaker[struct{}]
	base    time.Duration

	state   atomic.Uint32 // BreakerState, stored by OnStateChange and nothing else
	suspect atomic.Bool   // a failure has been reported since the last success
	tripNow atomic.Bool   // the failure being reported opens at once
	opened  atomic.Bool   // has opened, and takeOpened has not been asked since
	misses  atomic.Uint32 // probes that have failed since it opened
}

var errCounted = errors.New("counted failure")

// newBreaker returns a closed breaker that opens after so many failures in a row,
// and stays open for openFor at first.
func newBreaker(failures int, openFor time.Duration) *breaker {
	b := &breaker{base: openFor}
	b.machine = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests: 1,
		Timeout:     openFor,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			return b.tripNow.Load() || c.ConsecutiveFailures >= uint32(failures)
		},
		// Runs with gobreaker's mutex held: it may store, and nothing else.
		OnStateChange: func(_ string, _, to gobreaker.State) {
			switch to {
			case gobreaker.StateOpen:
				if b.state.Swap(uint32(BreakerOpen)) == uint32(BreakerClosed) {
					b.opened.Store(true)
				}
			case gobreaker.StateHalfOpen:
				b.state.Store(uint32(BreakerHalfOpen))
			default:
				b.misses.Store(0)
				b.state.Store(uint32(BreakerClosed))
			}
		},
	})
	return b
}

// current returns the published state: one atomic load.
func (b *breaker) current() BreakerState { return BreakerState(b.state.Load()) }

// failed reports a failure of the node. Where down is set the node has said that
// it is going down, and one report is enough. Failures that arrive after the
// breaker has opened are late news and are not counted.
func (b *breaker) failed(down bool) {
	if b.current() != BreakerClosed {
		return
	}
	b.suspect.Store(true)
	if down {
		b.tripNow.Store(true)
		defer b.tripNow.Store(false)
	}
	b.report(errCounted)
}

// succeeded reports that the node has answered.
func (b *breaker) succeeded() {
	if b.suspect.Load() && b.current() == BreakerClosed {
		b.suspect.Store(false)
		b.report(nil)
	}
}

func (b *breaker) report(err error) {
	_, _ = b.machine.Execute(func() (struct{}, error) { return struct{}{}, err })
}

// probe runs check as the one request that a half-open breaker lets through. It
// reports whether the breaker is closed afterwards.
func (b *breaker) probe(check func() error) bool {
	_, err := b.machine.Execute(func() (struct{}, error) { return struct{}{}, check() })
	switch {
	case errors.Is(err, gobreaker.ErrOpenState): // too early: nothing was asked
		return false
	case err != nil:
		b.misses.Add(1)
		return false
	}
	b.suspect.Store(false)
	return b.current() == BreakerClosed
}

// openFor returns how long to wait before the next probe: the base time, doubled
// for each probe that has failed, up to 30 s, plus up to a quarter so that many
// processes do not come back as one.
func (b *breaker) openFor() time.Duration {
	d := b.base
	for n := b.misses.Load(); n > 0 && d < maxOpenTime; n-- {
		d *= 2
	}
	d = min(d, max(maxOpenTime, b.base))
	return d + time.Duration(rand.Int64N(int64(d)/4+1))
}

// takeOpened reports whether the breaker has opened since it was last asked. The
// one caller that gets true deals with the node's connections.
func (b *breaker) takeOpened() bool { return b.opened.Load() && b.opened.Swap(false) }
