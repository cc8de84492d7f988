// Package classify says what an SQL text does, from the text alone: whether it
// is a proven read, what it leaves behind in the session, whether it opens or
// ends a transaction, whether its prepared form may be kept.
//
// A text is a read only if it is proven one; whatever the tables do not know
// is Unknown, belongs on the primary and counts as a write there.
//
// Touches says which relations a text reads and writes, or that it may be any; a
// Schema adds what the database touches along with them.
package classify
