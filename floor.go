package replicated

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqlreplicated/replicated/internal/evidence"
)

// moment is a point on this process's monotonic clock, in nanoseconds since the
// process began; never (zero) lies before all others.
type moment = evidence.Moment

const never = evidence.Never

// floor is what a read must see: a node may serve it that is known to have
// everything that was acknowledged up to there.
type floor = evidence.Floor

var processStart = time.Now()

// now returns the present moment. It is later than never.
func now() moment { return moment(time.Since(processStart)) + 1 }

func momentOf(t time.Time) moment { return moment(t.Sub(processStart)) + 1 }

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

// stamps is a floor that only moves up.
type stamps struct {
	any   stamp // the last acknowledgement
	async stamp // the last one that may have come before the write was durable
}

func (s *stamps) raise(at moment, async bool) {
	if async {
		s.async.raise(at)
	}
	s.any.raise(at)
}

func (s *stamps) load() floor { return floor{Any: s.any.load(), Async: s.async.load()} }

// floors are the last writes that this process made on one cluster. All handles
// on the cluster share them, so that an ORM and a plain *sql.DB side by side see
// each other's writes.
type floors struct {
	all     ledgers // all writes
	outside ledgers // those made outside any session

	// redefined counts the statements of this process that may have changed what
	// the catalog tells of functions, views and operators.
	redefined atomic.Uint64
	// reshaped counts the beginnings and ends of statements that may change the
	// schema at all, and reshaping is how many of them are on their way: sent, and not
	// known to be over, with their transactions.
	reshaped  atomic.Uint64
	reshaping atomic.Int64

	handles handles
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

// raise records a write that has just returned, and may have been acknowledged
// before it was durable.
func (f *floors) raise(s *Session, async bool, t *touch) floor {
	at := now()
	f.all.raise(at, async, t)
	if s == nil {
		f.outside.raise(at, async, t)
	} else {
		s.raise(f, floorAt(at, async), t)
	}
	return floorAt(at, async)
}

// of returns the floor of a read, and the reason to give when no replica is past
// it: the maximum of all that the read's scopes have written to what it touches.
// Adding a session to a context never lowers it.
func (f *floors) of(level Consistency, conn *ledger, s *Session, t *touch) (floor, Reason) {
	at, why := conn.floor(t), ReasonOwnWrite
	higher := func(m floor, r Reason) {
		if m.Any > at.Any {
			why = r
		}
		at = at.Max(m)
	}
	if level == ConsistencyEventual {
		return at, why
	}
	if s != nil {
		higher(s.floor(f, t), ReasonSessionWrite)
	}
	if level == ConsistencySession {
		return at, why
	}
	if s == nil {
		higher(f.all.floor(t), ReasonProcessWrite)
	}
	higher(f.outside.floor(t), ReasonProcessWrite)
	higher(evidence.All(behindUs.load()), ReasonProcessWrite)
	return at, why
}

// last returns the last write of all, on whatever handle.
func (f *floors) last() floor { return f.all.any.load().Max(evidence.All(behindUs.load())) }

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
		s.changes.Add(1)
	}
}
