// Package position compares how far the histories of two servers reach: does a
// replica have everything that its primary had, has it something that the
// primary lacks, does one sample of a primary include an earlier one.
//
// A [Position] is read from a server in one query and then compared with
// others, in terms of the database: a place in PostgreSQL's write-ahead log, a
// set of MySQL's global transaction identifiers, a list of MariaDB's, a place in
// a binary log file, or the counter of a heartbeat row. In doubt every answer is
// the one that keeps a read on the primary.
//
// The package knows nothing of connections, clocks or lineages: that two
// positions belong to one history (PostgreSQL's system identifier and timeline,
// the primary's identity, its epoch) is for the caller to know before it
// compares them.
package position

import "fmt"

// Kind tells in which terms a position is. Two positions of different kinds
// cannot be compared.
type Kind uint8

const (
	// None is the kind of the zero [Position].
	None Kind = iota
	// LSN is a place in the write-ahead log of PostgreSQL.
	LSN
	// GTIDSet is a set of global transaction identifiers of MySQL.
	GTIDSet
	// GTIDList is a list of global transaction identifiers of MariaDB.
	GTIDList
	// File is a place in a binary log file of MySQL.
	File
	// Beat is the counter of a heartbeat row.
	Beat
	// Nowhere is where no server ever is: the merger of positions that cannot be
	// compared. It contains nothing and nothing contains it, itself included.
	Nowhere
)

// String returns "none", "lsn", "gtid set", "gtid list", "file", "beat" or
// "nowhere".
func (k Kind) String() string {
	switch k {
	case None:
		return "none"
	case LSN:
		return "lsn"
	case GTIDSet:
		return "gtid set"
	case GTIDList:
		return "gtid list"
	case File:
		return "file"
	case Beat:
		return "beat"
	case Nowhere:
		return "nowhere"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Position is how far a server's history reaches. It is an immutable value that
// any number of goroutines may share. The zero Position is "no position": it
// contains nothing and nothing contains it.
//
// Positions are compared with [Position.Equal], not with ==, which compares
// where some of them are stored.
type Position struct{ v value }

// value is what a kind of position has to know. Methods with an argument get
// one of their own kind, and neither receiver nor argument is empty.
type value interface {
	kind() Kind
	// empty reports that the position holds no transaction at all.
	empty() bool
	equal(value) bool
	contains(q value) bool
	exceeds(q value) bool
	includes(t value) bool
	// merge returns nowhere if no position includes both.
	merge(q value) value
	token() value
	appendText([]byte) []byte
	// appendBinary appends the format byte and what follows it.
	appendBinary([]byte) []byte
}

// IsZero reports whether p is no position.
func (p Position) IsZero() bool { return p.v == nil }

// IsEmpty reports whether p is a position at which nothing has happened yet: an
// empty GTID set, LSN 0/0, no file. It proves nothing, since a server also has
// it after its history was thrown away (RESET MASTER). The zero Position is not
// empty, it is none.
func (p Position) IsEmpty() bool { return p.v != nil && p.v.empty() }

// Kind returns the terms that p is in, [None] for the zero Position.
func (p Position) Kind() Kind {
	if p.v == nil {
		return None
	}
	return p.v.kind()
}

// String returns p in the server's notation, "" for the zero Position and for
// empty sets and lists.
func (p Position) String() string {
	if p.v == nil {
		return ""
	}
	return string(p.v.appendText(nil))
}

// Equal reports whether p and q are the same position. Zero positions are equal.
func (p Position) Equal(q Position) bool {
	if p.v == nil || q.v == nil {
		return p.v == nil && q.v == nil
	}
	return p.v.kind() == q.v.kind() && p.v.equal(q.v)
}

// meets reports whether a question about p and q has an answer.
func (p Position) meets(q Position) bool {
	return p.v != nil && q.v != nil && p.v.kind() == q.v.kind() && !p.v.empty() && !q.v.empty()
}

// Contains reports whether everything up to q, which was sampled on the primary,
// has been applied by the server at p. It is false if one of them is zero or
// empty, or if they are of different kinds.
//
//   - PostgreSQL: p is not before q.
//   - MySQL: p is a superset of q.
//   - MariaDB: in every domain of q, p has q's last GTID, or, if that is the
//     primary's own, a later one of its own; see [MariaDBPrimary].
//   - File and offset: p is not before q in the log of the same server.
//   - Heartbeat: p has at least q's counter, of the same epoch.
//
// It does not allocate.
func (p Position) Contains(q Position) bool {
	return p.meets(q) && p.v.contains(q.v)
}

// Exceeds reports whether p, of a replica, holds what q, a later sample of its
// primary, lacks. Then the replica has another history than its primary: it has
// diverged, or follows somebody else.
//
//   - PostgreSQL: p is after q.
//   - MySQL: p has transactions that q lacks from a server of which q has any. A
//     replica's own transactions are no divergence in this sense. A primary that
//     waits for semi-synchronous replicas, or is slow to finish a commit, has a
//     transaction in its gtid_executed later than they have: only what exceeds
//     for longer than a commit can take is divergence.
//   - MariaDB: in a domain that q has, p's last GTID is of a server that q has
//     never logged, or later than q's last one of that server.
//   - File and offset, heartbeat: p is after q, or from the log of another
//     server, or of another epoch.
//
// It is true for positions of different kinds, and false if one is zero or
// empty: then there is nothing to tell.
func (p Position) Exceeds(q Position) bool {
	if p.IsZero() || q.IsZero() || p.IsEmpty() || q.IsEmpty() {
		return false
	}
	return p.v.kind() != q.v.kind() || p.v.exceeds(q.v)
}

// Includes reports whether q, sampled on the primary, has everything that t has:
// an earlier sample of the same primary, or a token. A primary that does not
// include its own earlier sample has lost history. It is false if one of them is
// zero or empty, or if they are of different kinds: whoever compares successive
// samples leaves out the empty ones.
//
// It is [Position.Contains] for all kinds but MariaDB's, where a primary's sample
// has the last GTID of every server that ever wrote to its log, and t is
// compared with those.
func (p Position) Includes(t Position) bool {
	return p.meets(t) && p.v.includes(t.v)
}

// Merge returns the least position that includes p and q, for tokens: the later
// LSN, file or beat, the union of sets, of MariaDB's lists the highest number of
// each server of a domain. A zero or empty position adds nothing. Where no
// position includes both (different kinds, logs of different servers, different
// epochs) the result is of the kind [Nowhere], and stays so.
func (p Position) Merge(q Position) Position {
	switch {
	case q.v == nil || q.v.empty() && p.v != nil:
		return p.Token()
	case p.v == nil || p.v.empty():
		return q.Token()
	case p.v.kind() != q.v.kind():
		return Position{nowhere{}}
	}
	return Position{p.v.merge(q.v)}
}

// Token returns the part of p that says what a server must have to include p. It
// is p itself, but for a sample of a MariaDB primary, which it makes shorter.
func (p Position) Token() Position {
	if p.v == nil {
		return p
	}
	return Position{p.v.token()}
}
