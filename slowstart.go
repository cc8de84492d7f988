package replicated

import (
	"sync/atomic"
	"time"
)

const (
	// rampTime is how long a replica that has returned takes to its full share of
	// reads, and rampFrom the part with which it begins. A server that has just
	// started has cold caches: with its whole share at once, every read of it would go
	// to the disk, and the queue would make it fail again.
	rampTime = 10 * time.Second
	rampFrom = 0.1
)

// ramp lets a node that returns have reads gradually. It runs from the first read
// that the node may serve, which may be long after it has answered again: it has to
// catch up first.
//
// The zero value is that of a node that was never out: there is no ramp, so that the
// start of a process is none. It is safe for concurrent use; where nothing has
// returned it costs one atomic load.
type ramp struct{ since atomic.Int64 } // moment of the first read, rampDue, or never

const rampDue moment = -1 // begin has been called, and no read has come

// begin starts the ramp over, with the next read.
func (r *ramp) begin() { r.since.Store(int64(rampDue)) }

// share returns the part of its share that the node is to get now, up to 1. It is
// called for a node that a read is about to be offered to.
func (r *ramp) share() float64 {
	since := moment(r.since.Load())
	if since == never {
		return 1
	}
	return r.shareAt(since, now())
}

func (r *ramp) shareAt(since, at moment) float64 {
	if since == rampDue {
		r.since.CompareAndSwap(int64(since), int64(at))
		return rampFrom
	}
	up := float64(at-since) / float64(rampTime)
	if up >= 1 {
		r.since.CompareAndSwap(int64(since), int64(never)) // unless it has begun again
		return 1
	}
	return rampFrom + (1-rampFrom)*max(up, 0)
}
