package flows_test

import (
	"context"
	"errors"
	"time"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

// storeFaults is what befalls the store while users are there, in rounds, until ctx ends.
// first is the way of the first process to it, and life how long its tokens live.
// done is called at the end of each round.
func storeFaults(r *replicatedtest.Redis, first *replicatedtest.Proxy, life time.Duration) func(ctx context.Context, done func()) error {
	round := []struct {
		do   func(context.Context) error
		last time.Duration // how long it lasts
	}{
		// One process has lost the store, and the other has not: what the first one
		// writes, nothing tells the other.
		{func(context.Context) error { first.Refuse(); return nil }, 2 * time.Second},
		{func(context.Context) error { first.Pass(); return nil }, time.Second},
		// It loses all that it has, without a moment's absence.
		{func(ctx context.Context) error { return emptied(ctx, r, 3*time.Second) }, 0},
		{func(context.Context) error { return r.Hang() }, 2 * time.Second},
		{func(context.Context) error { return r.Resume() }, time.Second},
		{func(context.Context) error { return r.Kill() }, 2 * time.Second},
		{func(context.Context) error { return r.RestartEmpty() }, time.Second},
		{func(context.Context) error { return r.RestartEmpty() }, time.Second},
	}
	return func(ctx context.Context, done func()) error {
		for ; ctx.Err() == nil; sleep(ctx, life+time.Second) { // reads are fresh until then
			for _, fault := range round {
				if err := fault.do(ctx); err != nil {
					return errors.Join(err, r.Kill())
				}
				if sleep(ctx, fault.last); ctx.Err() != nil {
					return nil
				}
			}
			done()
		}
		return nil
	}
}

// emptied empties the store ten times a second: it matters for what was written just
// before.
func emptied(ctx context.Context, r *replicatedtest.Redis, d time.Duration) error {
	for end := time.Now().Add(d); time.Now().Before(end) && ctx.Err() == nil; {
		if _, err := r.Do("FLUSHALL", "SYNC"); err != nil {
			return err
		}
		sleep(ctx, 100*time.Millisecond)
	}
	return nil
}
