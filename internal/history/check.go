package history

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Level tells whose writes a read is entitled to. The levels are the driver's.
type Level uint8

const (
	// LevelProcess: its connection's, its sessions', those of its process made
	// outside sessions, and without a session all of its process.
	LevelProcess Level = iota
	// LevelSession: its connection's and its sessions'.
	LevelSession
	// LevelEventual: its connection's.
	LevelEventual
)

// Span is a stretch of time, ends included.
type Span struct{ From, To Moment }

// Options tell what was promised. The zero Options promise read-your-writes at
// LevelProcess, whatever reads claim, and no bound on lag.
type Options struct {
	Level Level

	// MaxLag bounds the staleness of every read that claims no other bound.
	// 0: no bound.
	MaxLag time.Duration

	// Unreachable are the times at which no primary could be reached. For reads
	// that were called then, lag is measured to their beginning.
	Unreachable []Span

	// Dense: the versions of each key begin at 1 and have no gaps, so that a gap
	// that no write of unknown outcome explains is a write that took effect twice.
	Dense bool
}

// Check returns what in the history breaks the promise, in the order in which the
// reads were called, at most one violation for a read and clause. It takes
// n log n steps for n events.
//
// A write that is acknowledged must say its Version, or some read must show its
// Value: else the checker can't know where it stands and demands nothing for it.
func Check(h *History, o Options) []Violation {
	c := &checker{
		h: h, o: o, txs: transactions(h), reported: make(map[finding]bool),
		best: make(map[scope]*Event), byValue: make(map[int64]*Event), values: make(map[int64]int64),
	}
	for _, events := range byKey(h) {
		c.key(events)
	}
	slices.SortStableFunc(c.found, func(a, b Violation) int { return cmp.Compare(a.when(), b.when()) })
	return c.found
}

// byKey groups the reads and writes of each key.
func byKey(h *History) [][]*Event {
	all := make([]*Event, 0, len(h.Events))
	for i := range h.Events {
		if e := &h.Events[i]; e.Kind != TxEnd {
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b *Event) int { return cmp.Compare(a.Key, b.Key) })
	var groups [][]*Event
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].Key == all[0].Key {
			n++
		}
		groups = append(groups, all[:n:n])
		all = all[n:]
	}
	return groups
}

// tx is what is known of a transaction.
type tx struct {
	end      *Event // nil: its end was not recorded, which counts as unknown
	contexts []SessionID
}

// transactions gathers ends and contexts: when a transaction commits, its writes
// belong to the session of its BeginTx and to those of every statement inside.
func transactions(h *History) map[int64]*tx {
	txs := make(map[int64]*tx)
	for i := range h.Events {
		e := &h.Events[i]
		if e.Tx == 0 {
			continue
		}
		t := txs[e.Tx]
		if t == nil {
			t = new(tx)
			txs[e.Tx] = t
		}
		if !slices.Contains(t.contexts, e.Session) {
			t.contexts = append(t.contexts, e.Session)
		}
		if e.Kind == TxEnd {
			t.end = e
		}
	}
	return txs
}

// fate is what became of a write, for everybody outside its transaction.
type fate uint8

const (
	undecided fate = iota // due to nobody, and seeing it is no fault
	effective             // it took effect
	undone                // it never will
)

func (c *checker) fateOf(w *Event) fate {
	switch {
	case w.Outcome == Failed && w.Version == 0:
		return undone
	case w.Outcome == Unknown:
		if w.Tx != 0 && c.outcomeOf(w.Tx) == Failed {
			return undone
		}
		return undecided
	case w.Tx == 0:
		return effective
	}
	switch c.outcomeOf(w.Tx) {
	case Acked:
		return effective
	case Failed:
		return undone
	default:
		return undecided
	}
}

func (c *checker) outcomeOf(tx int64) Outcome {
	if t := c.txs[tx]; t != nil && t.end != nil {
		return t.end.Outcome
	}
	return Unknown
}

func sameTx(a, b *Event) bool { return a.Tx != 0 && a.Tx == b.Tx }

// checker holds the state of one Check: of all keys, and of the one at hand.
type checker struct {
	h        *History
	o        Options
	txs      map[int64]*tx
	found    []Violation
	reported map[finding]bool

	// Of the key at hand.
	versions map[*Event]int64 // of writes that did not say theirs, learned from reads
	deletes  []*Event
	byValue  map[int64]*Event // writes
	values   map[int64]int64  // version → value
	points   []point
	best     map[scope]*Event // the highest version that had returned in each scope
	acked    []*Event         // effective writes that had returned, by version
	kept     map[*Event]*Event
}

// version returns the version that a write made, 0 if that is not known.
func (c *checker) version(w *Event) int64 {
	if w.Version != 0 {
		return w.Version
	}
	return c.versions[w]
}

func (c *checker) key(events []*Event) {
	c.learn(events)
	c.integrity(events)
	c.sweep(events)
}

// learn finds out the versions of writes that did not say theirs, and which writes
// deleted the key.
func (c *checker) learn(events []*Event) {
	c.versions, c.deletes = nil, c.deletes[:0]
	clear(c.byValue)
	missing := false
	for _, e := range events {
		if e.Kind == Read {
			continue
		}
		if e.Value != 0 {
			c.byValue[e.Value] = e
		}
		missing = missing || e.Version == 0 && e.Outcome == Acked
		if e.Kind == Delete {
			c.deletes = append(c.deletes, e)
		}
	}
	if !missing {
		return
	}
	c.versions = make(map[*Event]int64)
	for _, e := range events {
		if e.Kind != Read || e.Outcome != Acked || e.Value == 0 {
			continue
		}
		if w := c.byValue[e.Value]; w != nil && w.Version == 0 {
			c.versions[w] = max(c.versions[w], e.Version)
		}
	}
}

// shown returns the highest version of which the read may have been. A key that is
// not there may be so because of the last delete that may have been seen.
func (c *checker) shown(r *Event) int64 {
	if r.Version != 0 {
		return r.Version
	}
	var highest int64
	for _, d := range c.deletes {
		if d.Called >= r.Returned || c.fateOf(d) == undone && !sameTx(d, r) {
			continue
		}
		if c.version(d) == 0 {
			return math.MaxInt64
		}
		highest = max(highest, c.version(d))
	}
	return highest
}
