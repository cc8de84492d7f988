package evidence

import "github.com/sqlreplicated/replicated/internal/position"

// Succession tells what the next primary has of what the former one is known to have
// had.
type Succession struct {
	// Upto is when the former primary was asked for the last time. Of what it
	// acknowledged later nothing is known.
	Upto Moment
	// Kept: the next primary has what the former one had then. Missing: it lacks some of
	// it. Neither: that can't be told.
	Kept, Missing bool
}

// Final enters what the primary of the epoch has said in giving up its role: it takes
// no writes any more, so that this is the most that it has acknowledged.
func (b *Book) Final(server string, asked Moment, written position.Position) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if server != b.server || b.newest.At >= asked || !written.Includes(b.newest.Synced) {
		return
	}
	b.newest.At, b.newest.Synced = asked, written
}

// Succession returns, once for each change of the primary, what came of it. ok is false
// where there was none, or the next primary has not been sampled yet.
func (b *Book) Succession() (s Succession, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.outcome == nil {
		return s, false
	}
	s, b.outcome = *b.outcome, nil
	return s, true
}

// leaveLocked keeps what is known of a primary that has been replaced by a server, and
// of that one as a replica.
func (b *Book) leaveLocked(next string) {
	b.outcome = nil
	if b.newest.Synced.IsZero() {
		return // nor is anything known of the one before, but that it may still be judged
	}
	b.former, b.heir = b.newest, Sighting{}
	if s := b.servers[next]; s != nil {
		b.heir = s.applied
	}
}

// judgeLocked compares the first sample of a new primary with the last one of the
// former.
func (b *Book) judgeLocked(q *Sample) {
	was := b.former
	if was.Synced.IsZero() {
		return
	}
	b.former = Sample{}
	s := &Succession{Upto: was.At}
	includes := q.Whole.Includes(was.Synced)
	switch kind := was.Synced.Kind(); {
	case b.heir.Lineage == was.Lineage && b.heir.Applied.Includes(was.Synced):
		s.Kept = true
	case kind == position.GTIDSet, kind == position.GTIDList, q.Lineage == was.Lineage && kind == position.LSN:
		s.Kept, s.Missing = includes, !includes
	case kind == position.LSN:
		// Its own log may have grown past that since.
		s.Missing = !includes
	default:
		s.Kept = includes
	}
	b.outcome = s
}
