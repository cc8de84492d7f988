package history

import "time"

// Moment is a point in time, counted from the beginning of the history. The zero
// Moment is "not given"; a [Recorder] hands out none.
type Moment = time.Duration

// SessionID names a session of the history. The zero SessionID is no session.
type SessionID int32

// History is what was recorded. Events may stand in any order.
type History struct {
	Events []Event
	// Parents holds, at each SessionID, the session around that one, or zero.
	// Sessions that it does not reach have no parent.
	Parents []SessionID
}

// parent returns the session around s.
func (h *History) parent(s SessionID) SessionID {
	if int(s) >= len(h.Parents) {
		return 0
	}
	return h.Parents[s]
}

// chain returns s and the sessions around it, from the inside out.
func (h *History) chain(s SessionID) []SessionID {
	var all []SessionID
	for ; s != 0; s = h.parent(s) {
		all = append(all, s)
	}
	return all
}

// Kind is what a statement does. The zero Kind is none.
type Kind uint8

const (
	// Read shows the version of a key.
	Read Kind = iota + 1
	// Write makes a version of a key.
	Write
	// Delete makes a version of a key, which reads see as version 0.
	Delete
	// TxEnd is the end of a transaction: acknowledged if it has committed, failed
	// if it was rolled back. Until then its writes are seen in it alone.
	TxEnd
)

// String returns the kind in lower case.
func (k Kind) String() string {
	switch k {
	case Read:
		return "read"
	case Write:
		return "write"
	case Delete:
		return "delete"
	case TxEnd:
		return "end of transaction"
	default:
		return "unknown"
	}
}

// Outcome is what a statement returned.
type Outcome uint8

const (
	// Unknown: it may have taken effect, may yet, or never. It is due to nobody.
	Unknown Outcome = iota
	// Acked: it returned without an error.
	Acked
	// Failed: it returned an error, and what it did is decided: nothing where
	// Version is 0. Where it is not, the write had taken effect all the same (a
	// procedure that ends in SIGNAL, failing DDL that commits what went before),
	// which counts like any other: errors do not mean "nothing written".
	Failed
)

// String returns the outcome in lower case.
func (o Outcome) String() string {
	switch o {
	case Unknown:
		return "outcome unknown"
	case Acked:
		return "acknowledged"
	case Failed:
		return "failed"
	default:
		return "unknown"
	}
}

// Event is one statement on one key. A statement on several keys is as many
// events with the same times.
type Event struct {
	Kind    Kind
	Outcome Outcome

	// Untracked: nobody asked to read this write back (WithUntracked). It counts
	// for everybody's bound on lag and for nobody's own writes.
	Untracked bool

	// Who: the goroutine, for people; the process, which sets of floors tell apart;
	// the session of the context.
	Worker  int32
	Process int32
	Session SessionID

	// Conn is the check-out of a connection that is held for more than one
	// statement, unique in the history. 0: none.
	Conn int64
	// Tx is the transaction, unique in the history. 0: none.
	Tx int64

	Key int64
	// Version is the one that a write made or a read saw. 0 in a read: the key was
	// not there. 0 in a write: not known to who wrote it; if a read shows its Value,
	// that tells.
	Version int64
	// Value is what was written, unique among all writes of the history, or what a
	// read showed. 0: not recorded.
	Value int64

	Called, Returned Moment

	// Claim is what a read is entitled to beside its scope.
	Claim Claim

	// Where is the node that ran it, for people and statistics. May be empty.
	Where string
}

// Claim is what a read is entitled to beside its scope, and what it waives. The
// zero Claim changes nothing.
type Claim struct {
	// Since is when the read's snapshot was asked for, in transactions that have
	// one: it is entitled to what had returned before that, and to what its own
	// transaction wrote. 0: when it was called.
	Since Moment
	// Fresh is when WithFresh was called: the read is entitled to everything that
	// anybody had written by then. 0: not asked for.
	Fresh Moment
	// MaxLag replaces Options.MaxLag. 0: it does not.
	MaxLag time.Duration
	// Stale: the read waives its scope, not its bound on lag (WithStaleReads).
	Stale bool
	// Monotonic: the session's reads are to be monotonic.
	Monotonic bool
	// Tokens that the read carries.
	Tokens []Token
}

// Token stands for everything that a session had written when the token was
// taken, or a process where it was taken outside any session.
type Token struct {
	Process int32
	Session SessionID
	Taken   Moment // when its making was called
}

// due is the moment before which writes had to return for the read to be entitled
// to them.
func (e *Event) due() Moment {
	if e.Claim.Since != 0 {
		return e.Claim.Since
	}
	return e.Called
}
