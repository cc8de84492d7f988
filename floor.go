package replicated

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// moment is a point on this process's monotonic clock, in nanoseconds since the
// process began; never (zero) lies before all others. Floors are moments: a read
// whose floor is m may be served by a node that is known to have everything that
// was acknowledged before m.
type moment int64

const never moment = 0

var processStart = time.Now()

// now returns the present moment. It is later than never.
func now() moment { return moment(time.Since(processStart)) + 1 }

// stamp is a moment that only moves forward. The zero stamp stands at never.
type stamp struct{ at atomic.Int64 }

func (s *stamp) load() moment { return moment(s.at.Load()) }

func (s *stamp) raise(m moment) {
	for {
		old := s.at.Load()
		if int64(m) <= old || s.at.CompareAndSwap(old, int64(m)) {
			return
		}
	}
}

// floors are the last writes that this process made on one cluster. All handles
// on the cluster share them, so that an ORM and a plain *sql.DB side by side see
// each other's writes.
type floors struct {
	all     stamp // the last write of all
	outside stamp // the last one made outside any session

	// redefined counts the statements of this process that may have changed what
	// the catalog tells of functions, views and operators.
	redefined atomic.Uint64
}

// behindUs is raised by Wrote where the context has no session: the write may
// have gone to any cluster.
var behindUs stamp

var registry = struct {
	sync.Mutex
	byCluster map[string]*floors
}{byCluster: make(map[string]*floors)}

// floorsOf returns the floors that the process keeps for a cluster. They are
// kept for ever: a handle that is opened later is still bound by earlier writes,
// and a process meets few clusters.
func floorsOf(clusterKey string) *floors {
	registry.Lock()
	defer registry.Unlock()
	f := registry.byCluster[clusterKey]
	if f == nil {
		f = new(floors)
		registry.byCluster[clusterKey] = f
	}
	return f
}

// raise records a write that has just returned.
func (f *floors) raise(s *Session) moment {
	at := now()
	f.all.raise(at)
	if s == nil {
		f.outside.raise(at)
	} else {
		s.raise(f, at)
	}
	return at
}

// of returns the floor of a read, and the reason to give when no replica is past
// it: the maximum of all that the read's scopes have written. Adding a session to
// a context never lowers it.
func (f *floors) of(level Consistency, conn moment, s *Session) (moment, Reason) {
	at, why := conn, ReasonOwnWrite
	higher := func(m moment, r Reason) {
		if m > at {
			at, why = m, r
		}
	}
	if level == ConsistencyEventual {
		return at, why
	}
	if s != nil {
		higher(s.floor(f), ReasonSessionWrite)
	}
	if level == ConsistencySession {
		return at, why
	}
	if s == nil {
		higher(f.all.load(), ReasonProcessWrite)
	}
	higher(f.outside.load(), ReasonProcessWrite)
	higher(behindUs.load(), ReasonProcessWrite)
	return at, why
}

// Wrote tells the driver of a write that was made behind it: through another
// handle, an RPC, another program that this one waits for. Reads in the scope of
// ctx (its session, or the process where it has none) then count it as their own.
func Wrote(ctx context.Context) {
	s := wishesOf(ctx).session
	if s == nil {
		behindUs.raise(now())
		return
	}
	for ; s != nil; s = s.parent {
		s.behind.raise(now())
	}
}
