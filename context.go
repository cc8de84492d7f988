package replicated

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sqlreplicated/replicated/internal/caller"
)

// wishes are what a context asks of the statements that run with it. The zero
// value asks for nothing. They travel as one immutable value under one key, so
// that a statement looks its context up once.
type wishes struct {
	session   *Session
	primary   bool
	replica   bool
	readOnly  bool
	untracked bool
	fresh     moment // floor set by WithFresh
	stale     bool
	maxStale  time.Duration
	maxLag    time.Duration // 0: the cluster's
	tokens    []*tokenFloor
	monotonic bool
	served    *atomic.Bool // set where a replica has served it, for QueryRowByKey; or nil
	missed    bool         // a replica had no row
}

type wishesKey struct{}

func wishesOf(ctx context.Context) wishes {
	if w, ok := ctx.Value(wishesKey{}).(*wishes); ok {
		return *w
	}
	return wishes{}
}

func withWishes(ctx context.Context, w wishes) context.Context {
	return context.WithValue(ctx, wishesKey{}, &w)
}

// WithPrimary sends every statement that runs with the returned context to the
// primary.
func WithPrimary(ctx context.Context) context.Context {
	w := wishesOf(ctx)
	w.primary = true
	return withWishes(ctx, w)
}

// WithReplica allows reads that run with the returned context to go to a
// replica where [ReadsOptIn] is in force. It only allows: floors are honoured,
// and everything that is not a proven read goes to the primary as ever.
func WithReplica(ctx context.Context) context.Context {
	w := wishesOf(ctx)
	w.replica, w.primary = true, false
	return withWishes(ctx, w)
}

// WithStaleReads waives read-your-writes for reads that run with the returned
// context: a replica may serve them whatever has been written, as long as it is no
// more than maxLag behind, which stands in for [Config.MaxLag] and may be more.
// Zero or less is Config.MaxLag. While lag is unmeasured (see [Config.Tracker])
// the bound is not enforced.
func WithStaleReads(ctx context.Context, maxLag time.Duration) context.Context {
	w := wishesOf(ctx)
	w.stale, w.maxStale = true, maxLag
	return withWishes(ctx, w)
}

// WithMaxLag has reads that run with the returned context served by replicas only
// that are no more than maxLag behind. It tightens [Config.MaxLag], and the bound of
// [WithStaleReads], and never loosens them; zero or less changes nothing. Lag is known as of the last sample, up
// to a quarter of Config.MaxLag ago (a second at most), so that reads with a bound
// below that go to the primary until samples come more often because of them.
// While lag is unmeasured (see [Config.Tracker]) the bound is not enforced.
func WithMaxLag(ctx context.Context, maxLag time.Duration) context.Context {
	w := wishesOf(ctx)
	if maxLag > 0 && (w.maxLag == 0 || maxLag < w.maxLag) {
		w.maxLag = maxLag
	}
	return withWishes(ctx, w)
}

// WithFresh makes reads that run with the returned context see everything that
// anybody had committed when WithFresh was called: the answer to a notification,
// a message from a queue, a webhook, the refill of a cache. They run on the primary until
// a replica is proven to have it, some milliseconds plus the lag later; with Config.Wait
// they wait for that.
func WithFresh(ctx context.Context) context.Context {
	w := wishesOf(ctx)
	w.fresh, w.stale = now(), false
	return withWishes(ctx, w)
}

// WithUntracked says that nobody has to read the writes made with the returned
// context (a last_seen column, an audit row): they raise no floor.
func WithUntracked(ctx context.Context) context.Context {
	w := wishesOf(ctx)
	w.untracked = true
	return withWishes(ctx, w)
}

// WithReadOnly refuses, with [ErrReadOnly] and before it leaves the process,
// every statement that is not a proven read, and every transaction that is not
// read-only.
func WithReadOnly(ctx context.Context) context.Context {
	w := wishesOf(ctx)
	w.readOnly = true
	return withWishes(ctx, w)
}

// WithCaller names who runs the statements of the returned context, such as
// "GET /orders/{id}" or "job:mail": [RouteEvent.Caller] shows it. It has no effect on
// where they run. Choose few names: paths with ids and the like are no names.
func WithCaller(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, caller.Key{}, caller.Name(name))
}

func callerOf(ctx context.Context) string {
	if who, ok := ctx.Value(caller.Key{}).(fmt.Stringer); ok {
		return who.String()
	}
	return ""
}

// callerGone returns why ctx has ended, or nil. A dial looks at the deadline by
// itself, and may give up a moment before the context's own timer has gone off: what
// failed then has failed by its caller, and is no fault of the node's.
func callerGone(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return nil
}
