// Package httpsticky is net/http middleware that lets a user's requests see what
// earlier ones of the same user have written, in whatever process they ran, while
// all other reads go to replicas.
//
//	h, err := httpsticky.Handler(mux, httpsticky.Options{
//		Databases: []*sql.DB{db},
//		Keys:      [][]byte{key}, // at least 32 random bytes, the same in all processes
//	})
//
// Handlers pass on the request's context, as ever:
//
//	db.QueryRowContext(r.Context(), "SELECT …")
//
// # What it does
//
// Every request gets a session (replicated.WithSession). Where the session has
// written, whatever the method of the request, its token is given out with the
// response: by a signed cookie to browsers, by a signed header to API and mobile
// clients (Options.Header), by a [Store] under the user's key, or by several of them.
// The next request brings the token with it, and its reads are served by nodes that
// are proven to have what the token tells of: by replicas, as soon as they have it.
//
// The token is added before the response's header goes out: at the first WriteHeader,
// Write, Flush or ReadFrom, so that a redirect after a POST (303) carries it. The
// response to a request that wrote nothing is passed through with no header touched.
//
// # What is done on faults
//
// No fault of tokens makes a request fail, and none makes a read silently stale:
//
//   - a cookie or header that is forged, malformed, too long, or one of too many: the
//     request's reads see everything that anybody has committed before it
//     (replicated.WithFresh), which replicas may serve that are proven to;
//   - one whose age is up: it is ignored, since by then every replica that serves has
//     what it told of;
//   - a store that fails, hangs, or has begun anew: as for a forged cookie;
//   - a store that takes no token: the cookie or the header carries it alone, else the
//     response is held back until all replicas have what was written, and this process
//     reads fresh with the key for as long as the token would have lived;
//   - a primary that can't be asked for its position: the token asks for everything
//     that anybody has committed by the time that it is read;
//   - a write after the header has gone out: the store carries it, else a trailer; where
//     the client may not read that, the response's end is held back.
//
// [Event] tells of each.
//
// # What it does not do
//
// It knows of statements that run with the request's context, or one derived from
// it, and that have returned when the response's header, or its end, goes out. Work
// that goes on after the handler has returned is not waited for: run it as a job with
// a token in its payload. What is written on a connection that was taken over
// (WebSocket) is told to the store, at the end: there use
// Session.Settle of package replicated before the message that tells of a write.
package httpsticky
