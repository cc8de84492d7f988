package demo

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqlreplicated/replicated"
)

// load is a crowd that reads all the time, each read in a session of its own, and
// a few who pay in. It counts what fails.
type load struct {
	d       *demo
	teller  teller
	stop    context.CancelFunc
	crowd   sync.WaitGroup
	reads   atomic.Int64
	slowest atomic.Int64 // nanoseconds

	mu       sync.Mutex
	failed   int
	firstErr error
	writes   int
}

const (
	readers    = 6
	readEvery  = 4 * time.Millisecond
	writeEvery = 40 * time.Millisecond
)

// startLoad starts the crowd; writes tells whether somebody pays in too.
func (d *demo) startLoad(ctx context.Context, writes bool) *load {
	ctx, stop := context.WithCancel(ctx)
	l := &load{d: d, teller: driverTeller{d.observed, d.bank}, stop: stop}
	for i := range readers {
		l.crowd.Go(func() {
			for pause(ctx, readEvery) == nil {
				l.read(ctx, oursAcct+i)
			}
		})
	}
	if writes {
		l.crowd.Go(func() {
			for pause(ctx, writeEvery) == nil {
				l.write(ctx)
			}
		})
	}
	return l
}

// end stops the crowd and waits for it.
func (l *load) end() {
	l.stop()
	l.crowd.Wait()
}

func (l *load) read(ctx context.Context, account int) {
	ctx, _ = replicated.WithSession(ctx)
	began := time.Now()
	_, err := l.teller.balance(ctx, account)
	if ctx.Err() != nil {
		return
	}
	took := int64(time.Since(began))
	for old := l.slowest.Load(); took > old && !l.slowest.CompareAndSwap(old, took); old = l.slowest.Load() {
	}
	l.reads.Add(1)
	l.result(err)
}

func (l *load) write(ctx context.Context) {
	ctx, _ = replicated.WithSession(ctx)
	err := l.teller.deposit(ctx, outageAcct)
	if ctx.Err() != nil {
		return
	}
	l.mu.Lock()
	l.writes++
	l.mu.Unlock()
	l.result(err)
}

func (l *load) result(err error) {
	if err == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed++
	if l.firstErr == nil {
		l.firstErr = err
	}
}

// failures returns how many calls have failed, and the first error.
func (l *load) failures() (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed, l.firstErr
}

// verdict tells what the crowd has met so far.
func (l *load) verdict() string {
	s := l.d.screen
	failed, err := l.failures()
	st, text := green, "failed: none"
	if failed > 0 {
		st, text = red, fmt.Sprintf("failed: %s, first: %v", count(failed), err)
	}
	calls := count(int(l.reads.Load())) + " reads"
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.writes > 0 {
		calls += ", " + count(l.writes) + " writes"
	}
	return calls + ", " + s.paint(st, text)
}
