package scenarios

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// ledger knows of each write of the load: by its number, which is in the database
// if the write was done, when it was begun, and what was returned. It is safe for
// concurrent use.
type ledger struct {
	mu      sync.Mutex
	entries []entry     // number 1 first
	missed  []int64     // writes that their own session did not see
	acks    []time.Time // when writes were acknowledged, in order
}

// entry is one write.
type entry struct {
	begun   time.Time
	outcome outcome
}

// outcome is what the writer knows of a write. The zero value is unknown, which a
// write is until it returns.
type outcome uint8

const (
	unknown outcome = iota
	acknowledged
	failed // certainly not done
)

// begin gives out the number of a write that is about to be sent.
func (l *ledger) begin() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, entry{begun: time.Now()})
	return int64(len(l.entries))
}

// end notes what a write has returned.
func (l *ledger) end(id int64, o outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries[id-1].outcome = o
	if o == acknowledged {
		l.acks = append(l.acks, time.Now())
	}
}

// miss notes that the session of a write did not see it afterwards.
func (l *ledger) miss(id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.missed = append(l.missed, id)
}

// acknowledged returns how many writes have been acknowledged.
func (l *ledger) acknowledged() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acks)
}

// ackSince returns when the first write since a moment was acknowledged.
func (l *ledger) ackSince(at time.Time) (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i, _ := slices.BinarySearchFunc(l.acks, at, time.Time.Compare)
	if i == len(l.acks) {
		return time.Time{}, false
	}
	return l.acks[i], true
}

// begun returns when the write was begun, and whether there is one.
func (l *ledger) begun(id int64) (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if id < 1 || id > int64(len(l.entries)) {
		return time.Time{}, false
	}
	return l.entries[id-1].begun, true
}

// audit is what a database's rows say of a ledger.
type audit struct {
	lost    []int64 // acknowledged, and not there
	doubled []int64 // there more than once
	phantom []int64 // said to have failed, or never begun, and there
	stale   []int64 // there, and their session did not see them
}

// audit compares the ledger with how often each number is in the database.
func (l *ledger) audit(rows map[int64]int) audit {
	l.mu.Lock()
	defer l.mu.Unlock()
	var a audit
	for i, e := range l.entries {
		id := int64(i + 1)
		n := rows[id]
		if n == 0 && e.outcome == acknowledged {
			a.lost = append(a.lost, id)
		}
		if n > 0 && e.outcome == failed {
			a.phantom = append(a.phantom, id)
		}
	}
	for _, id := range l.missed {
		if rows[id] > 0 { // else it is lost, and nobody can see it
			a.stale = append(a.stale, id)
		}
	}
	for id, n := range rows {
		if n > 1 {
			a.doubled = append(a.doubled, id)
		}
		if id < 1 || id > int64(len(l.entries)) {
			a.phantom = append(a.phantom, id)
		}
	}
	slices.Sort(a.doubled)
	slices.Sort(a.phantom)
	return a
}

func (a audit) String() string {
	return fmt.Sprintf("lost: %s, doubled: %s, phantoms: %s, not seen: %s", some(a.lost), some(a.doubled), some(a.phantom), some(a.stale))
}

// some tells how many there are, and the first of them.
func some(ids []int64) string {
	const most = 10
	switch {
	case len(ids) == 0:
		return "0"
	case len(ids) > most:
		return fmt.Sprintf("%d %v…", len(ids), ids[:most])
	default:
		return fmt.Sprintf("%d %v", len(ids), ids)
	}
}
