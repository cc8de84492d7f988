package history

import (
	"fmt"
	"strings"
	"time"
)

// Clause is a part of the promise. The zero Clause is none.
type Clause uint8

// The clauses; see the package comment.
const (
	ReadYourWrites Clause = iota + 1
	Tokens
	Fresh
	BoundedStaleness
	MonotonicReads
	Integrity
	AtMostOnce
)

// String returns the clause in the words of the promise.
func (c Clause) String() string {
	switch c {
	case ReadYourWrites:
		return "read your writes"
	case Tokens:
		return "token"
	case Fresh:
		return "fresh read"
	case BoundedStaleness:
		return "bounded staleness"
	case MonotonicReads:
		return "monotonic reads"
	case Integrity:
		return "integrity"
	case AtMostOnce:
		return "at most once"
	default:
		return "unknown"
	}
}

// Violation is a read that did not get what it was entitled to, or a write that
// can't have happened as recorded.
type Violation struct {
	Clause Clause
	// Read is the event at fault. Nil where a write is.
	Read *Event
	// Write is what the read missed, or what is wrong. May be nil.
	Write *Event

	// Where the read missed the write:
	needed   int64  // the write's version
	returned Moment // when it had returned
	due      Moment // before which it had to
	because  scope

	detail string   // in other cases, what is wrong
	counts [3]int64 // versions, writes known, writes in doubt

	h *History
}

// finding tells violations apart: a read has at most one of each clause.
type finding struct {
	read, write *Event
	clause      Clause
}

func (c *checker) report(v Violation) {
	f := finding{read: v.Read, clause: v.Clause}
	if v.Read == nil {
		f.write = v.Write
	}
	if c.reported[f] {
		return
	}
	c.reported[f] = true
	v.h = c.h
	c.found = append(c.found, v)
}

// when is the moment by which violations are ordered.
func (v Violation) when() Moment {
	if v.Read != nil {
		return v.Read.Called
	}
	return v.Write.Called
}

// String tells what happened, in several lines, for a person.
func (v Violation) String() string {
	var b strings.Builder
	switch {
	case v.needed != 0:
		fmt.Fprintf(&b, "%v: key %d: %s seen, version %d had to be", v.Clause, v.Read.Key, versionOf(v.Read), v.needed)
	case v.counts[0] != 0:
		fmt.Fprintf(&b, "%v: key %d: version %d reached by %d writes that took effect and %d that may have", v.Clause, v.key(), v.counts[0], v.counts[1], v.counts[2])
	default:
		fmt.Fprintf(&b, "%v: key %d: %s", v.Clause, v.key(), v.detail)
	}
	if v.Read != nil {
		fmt.Fprintf(&b, "\n  read:  %s", v.describe(v.Read))
	}
	if v.Write != nil {
		fmt.Fprintf(&b, "\n  write: %s", v.describe(v.Write))
	}
	if v.needed != 0 {
		fmt.Fprintf(&b, "\n  due:   %s", v.reason())
	}
	return b.String()
}

func (v Violation) key() int64 {
	if v.Read != nil {
		return v.Read.Key
	}
	return v.Write.Key
}

// versionOf puts into words what an event shows or made.
func versionOf(e *Event) string {
	switch {
	case e.Version != 0 && e.Value != 0:
		return fmt.Sprintf("version %d (value %d)", e.Version, e.Value)
	case e.Version != 0:
		return fmt.Sprintf("version %d", e.Version)
	case e.Kind == Read:
		return "no such key"
	case e.Value != 0:
		return fmt.Sprintf("a version not known to the writer (value %d)", e.Value)
	default:
		return "a version not known to the writer"
	}
}

// describe tells who did what, where and when.
func (v Violation) describe(e *Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s by worker %d of process %d, %s", versionOf(e), e.Worker, e.Process, v.inSession(e.Session))
	if e.Conn != 0 {
		fmt.Fprintf(&b, ", connection %d", e.Conn)
	}
	if e.Tx != 0 {
		fmt.Fprintf(&b, ", transaction %d", e.Tx)
	}
	if e.Where != "" {
		fmt.Fprintf(&b, ", on %s", e.Where)
	}
	fmt.Fprintf(&b, ", called %v, returned %v", e.Called, e.Returned)
	if e.Claim.Since != 0 {
		fmt.Fprintf(&b, ", snapshot asked for %v", e.Claim.Since)
	}
	if e.Kind != Read {
		fmt.Fprintf(&b, ", %v", e.Outcome)
	}
	return b.String()
}

func (v Violation) inSession(s SessionID) string {
	chain := v.h.chain(s)
	if len(chain) == 0 {
		return "outside any session"
	}
	text := fmt.Sprintf("session %d", chain[0])
	for _, outer := range chain[1:] {
		text += fmt.Sprintf(" inside %d", outer)
	}
	return text
}

// reason tells why the read was entitled to the write.
func (v Violation) reason() string {
	var whose string
	switch v.because.kind {
	case ofTx:
		whose = "the read's own transaction made it"
	case ofConn:
		whose = fmt.Sprintf("it was made on the read's connection, %d", v.because.id)
	case ofSession:
		whose = fmt.Sprintf("it was made in session %d", v.because.id)
	case outside:
		whose = fmt.Sprintf("process %d made it outside any session", v.because.id)
	case ofProcess:
		whose = fmt.Sprintf("process %d made it", v.because.id)
	case ofAnybody:
		whose = "it was made"
	case seenBySess:
		whose = fmt.Sprintf("session %d had seen it when it had been acknowledged", v.because.id)
	}
	var before string
	switch v.Clause {
	case Tokens:
		before = fmt.Sprintf("the token was taken at %v", v.due)
	case Fresh:
		before = fmt.Sprintf("everything up to %v was asked for", v.due)
	case BoundedStaleness:
		before = fmt.Sprintf("%v, the oldest that the read may have been", v.due)
	default:
		before = "the read began"
	}
	return fmt.Sprintf("%s and it had returned at %v, %v before %s", whose, v.returned, round(v.due-v.returned), before)
}

func round(d time.Duration) time.Duration { return d.Round(time.Microsecond) }
