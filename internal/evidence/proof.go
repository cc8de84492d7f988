package evidence

// Moment is a point on this process's monotonic clock, in nanoseconds. Never, the
// zero Moment, lies before all others.
type Moment int64

// Never lies before all other moments.
const Never Moment = 0

// Floor is what a read must see: everything that was acknowledged up to these two
// moments. The zero Floor asks for nothing.
type Floor struct {
	// Any is the moment of the last acknowledgement of all.
	Any Moment
	// Async is that of the last one that may have come before the write was durable
	// on the primary (synchronous_commit = off on PostgreSQL). It is never later
	// than Any.
	Async Moment
}

// Max returns what both floors ask for.
func (f Floor) Max(g Floor) Floor { return Floor{max(f.Any, g.Any), max(f.Async, g.Async)} }

// All returns the floor of a read that must see everything up to m, however it
// was acknowledged.
func All(m Moment) Floor { return Floor{m, m} }

// Proof is what a server's answers are proven to have. It is immutable. A nil
// *Proof proves nothing.
type Proof struct {
	// Read is when the position was asked for that proves it. The proof holds for
	// connections that were opened no later, as long as they live.
	Read Moment
	// Synced: nothing is missing that was acknowledged, by a commit that waited for
	// the primary's disk, before this moment.
	Synced Moment
	// Whole: nothing is missing that was acknowledged before this moment at all. It
	// is never later than Synced.
	Whole Moment
	// Settled: nothing is missing that was acknowledged before this moment, provided
	// that commits which do not wait for the primary's disk reach it in the time that
	// the server promises. It is never earlier than Whole, nor later than Synced. The
	// log of a transaction that is still open may keep Whole back for long.
	Settled Moment
}

// Past tells whether a read with this floor may be answered.
//
// Equal moments do not do: the sample's may have been read before the write was
// acknowledged, in the same tick of the clock.
func (p *Proof) Past(f Floor) bool {
	return p != nil && p.Synced > f.Any && (f.Async == Never || p.Whole > f.Async)
}

// HoldsFor tells whether the proof is about a connection that was opened at m.
func (p *Proof) HoldsFor(m Moment) bool { return p != nil && m <= p.Read }
