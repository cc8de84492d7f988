// Package parsers holds benchmarks of the classifier beside SQL parsers, on the
// same statements in one run, so that what counts is a ratio and not a number of
// one machine, and benchmarks of caches of verdicts. It is a module of its own, in
// a workspace of its own, because the parsers are heavy: none of them is a
// dependency of the driver, nor of its other benchmarks.
//
//	go test -run '^$' -bench 'Short|Long' -count 10
//	go test -run '^$' -bench Cache -count 10
//
// PostgreSQL's own parser is C: it needs cgo and half a minute to compile. It takes
// part with -tags pgquery.
//
// The comparison is not of equals. A parser makes a tree of which a program can
// ask anything; the classifier answers one question, and makes nothing. It is the
// comparison that somebody makes who could route statements with either.
package parsers
