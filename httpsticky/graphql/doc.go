// Package graphql tells what a GraphQL request over HTTP will run, a query, a
// mutation or a subscription, before its handler runs, and derives the context for
// it. All GraphQL requests have one path and mostly one method, so that rules by
// either see no difference between them:
//
//	httpsticky.Options{
//		With: graphql.Rule{
//			Query: replicated.WithReplica, // with reads=opt-in; otherwise leave it out
//		}.With,
//	}
//
// The document is parsed, by the parser that gqlgen uses, and the operation chosen
// as a server would choose it. The word "mutation" in a comment, in a string, or as
// the name of a field, an alias, a fragment or a query means nothing.
//
// # What it is for
//
// The driver classifies every SQL statement by itself: a write goes to the primary
// whatever this package says, and a session reads its own writes without it. What
// the kind of operation adds is what no statement shows: that a SELECT is the first
// half of a read-modify-write (a mutation: primary), that replicas may be used at
// all (a query, with [replicated.ReadsOptIn]), and that nothing should be written (a
// query, with [replicated.WithReadOnly]).
//
// # What it reads
//
// Requests as the GraphQL-over-HTTP specification has them, and what is common
// beside it: POST (and QUERY) with application/json or any +json type, with
// application/graphql, and with multipart/form-data (file uploads, where only the
// leading "operations" part is read); GET and HEAD with the parameters in the URL;
// batches (a JSON array); documents persisted under a hash or an id. Everything
// else is [Unknown]: other content types, form-urlencoded bodies among them,
// encoded bodies, WebSocket upgrades.
//
// # In doubt
//
// A request is called a query only if every reading of it that a server might
// choose is one. Where readings differ, the answer is [Unknown], or [Mutation]:
//
//   - a JSON key or URL parameter that is there twice, or in another letter case.
//     encoding/json takes the last and ignores case, others the first, or care;
//   - text and a persisted document that differ, text and parameters in the URL of
//     a POST;
//   - several operations where operationName names none of them: then all of them
//     count;
//   - a block string with quotes in it: where it ends is not the same to all lexers;
//   - whatever does not parse, or is larger or has more tokens than is looked at.
//
// # The body
//
// To look at a body is to read it. What was read is kept and read by the handler
// first, byte for byte, then the rest from the connection; an error met on the way
// is met by the handler at the same offset. Nothing else of the request changes:
// not Content-Length, Close, GetBody, trailers. A body is read only when method,
// path, content type, encoding and length have left something to find out, so that
// a client that waits for "100 Continue" is asked for its body no earlier than the
// handler would, and not at all for one that is declared to be too large.
package graphql
