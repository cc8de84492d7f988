// Package evidence keeps the book on what replicas are proven to have.
//
// The proof is one comparison. At a moment s, read before the question is sent,
// the primary is asked for its position q. Whatever had been acknowledged before
// s is in q, by whomever it was written. A replica whose applied position p
// contains q has all of that: its evidence is s. No other machine's clock takes
// part, and an idle primary makes nobody look late.
//
// A [Book] keeps the primary's samples and, for each server that answers as a
// replica, a [Proof]: the moments up to which its answers lack nothing. A read
// has a [Floor], and one comparison of the two decides. What is not proven is
// unknown, and unknown serves no read.
//
//	a server is   when                                             its proof
//	unverified    it has just been met, or is diverged and has     none
//	              gone back
//	verified      a later sample has all that it had applied       the latest sample that it contains
//	diverged      a later sample lacks something that it had       none
//
// A diverged server stays so while its name stays and it does not go back, also
// where the primary's later samples seem to contain it: a log that was reset gives
// numbers twice. The exception are MySQL's sets, see forgivesLocked. Of a server that
// has gone back only samples that are taken from then on count.
//
// Evidence belongs to connections, not to addresses: a proof holds for those that
// were opened before the position was asked for, and live. A server that has
// crashed comes back with older data under its old name, but on new connections.
//
// All evidence belongs to one epoch, that of one primary and one unbroken history
// of it. Another primary, or a position that has gone back (a restored copy, an
// emptied log), begins a new epoch with an empty book.
package evidence
