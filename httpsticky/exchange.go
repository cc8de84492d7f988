package httpsticky

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/caller"
)

// exchange is one request with its response. It is also the context below the one
// that the handler gets, and answers there who runs the statements: one object for
// all, since every request pays for it.
type exchange struct {
	context.Context // the request's, as it came

	h       *handler
	r       *http.Request // as it is passed on
	session *replicated.Session
	scope   context.Context // x with the session and without tokens: what is asked in it is the session's own
	in      arrivals
	out     response

	// given is how much the session had changed by when its token was last given out, in
	// whatever way. Like what follows up to mu it belongs to the goroutine that writes
	// the response.
	given  uint64
	told   string // the token that was given out last
	coarse bool   // the primary could not be asked

	mu    sync.Mutex // guards what follows: WithKey may be called by any goroutine
	keys  []string   // whose tokens the store is to keep
	own   bool       // keys[0] is of Options.Key
	saved int        // so many of keys have been saved to, as of given
}

type exchangeKey struct{}

// Value implements [context.Context].
func (x *exchange) Value(key any) any {
	switch key.(type) {
	case exchangeKey:
		return x
	case caller.Key:
		return (*name)(x)
	}
	return x.Context.Value(key)
}

// name is an exchange as a fmt.Stringer: who runs its statements.
type name exchange

// String is called where somebody is told of a statement or an event, by when
// http.ServeMux has left its pattern in the request.
func (n *name) String() string { return (*exchange)(n).caller() }

func (x *exchange) caller() string {
	method := x.r.Method
	switch method {
	case "":
		method = http.MethodGet
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace:
	default:
		method = "OTHER" // names must be few, whatever clients send
	}
	switch pattern := x.r.Pattern; {
	case pattern == "":
		return method + " (unmatched)"
	case strings.Contains(pattern, " "): // with a method
		return pattern
	default:
		return method + " " + pattern
	}
}

// takeIn returns the context with what the request's tokens ask for.
func (x *exchange) takeIn() context.Context {
	ctx := x.scope
	if len(x.in.tokens) > 0 {
		var err error
		if ctx, err = replicated.WithTokenOrPrimary(ctx, x.in.tokens...); err != nil {
			x.in.rejected = err
		}
	}
	if x.in.rejected != nil {
		// What was carried may have been the user's. The read is as fresh as the
		// primary's, and yet a forger has nothing of it: replicas may serve it.
		ctx = replicated.WithFresh(ctx)
		x.tell(EventTokenRejected, x.in.rejected)
	}
	if x.h.o.Key != nil {
		if key := x.h.o.Key(x.r); key != "" {
			x.addKey(key, true)
			ctx = x.load(ctx, key)
		}
	}
	return ctx
}

// written returns the token of what the session has written or adopted so far.
func (x *exchange) written() string {
	limit := x.h.o.TokenTimeout
	if x.coarse {
		limit = 0 // what is known will do: the primary has been waited for
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.scope), limit)
	defer cancel()
	token, err := x.session.Token(ctx)
	if err != nil && !x.coarse {
		x.coarse = true
		x.tell(EventTokenCoarse, err)
	}
	return token
}

// news is what is to be given out.
type news struct {
	any    bool     // there is something
	wrote  bool     // it is not only that there are further keys
	token  string   // made last: the primary may be asked
	keys   []string // that it is to be saved to
	shared bool     // some of them may be others' too
	own    bool     // what is saved tells the user himself
}

func (x *exchange) news() (n news) {
	changes := x.session.Changes() // before the token is made, which may have more
	known := changes == x.given
	x.mu.Lock()
	defer x.mu.Unlock()
	from := 0
	if known {
		from = x.saved
	}
	if changes == 0 || known && from == len(x.keys) {
		return n
	}
	n.keys = slices.Clone(x.keys[from:])
	x.given, x.saved = changes, len(x.keys)
	n.any, n.wrote = true, !known
	n.shared = len(n.keys) > 1 || len(n.keys) == 1 && (from > 0 || !x.own)
	// Where neither cookies nor headers are on, users are known by no more than keys.
	n.own = x.own || known || x.h.o.Cookie.Off && x.h.o.Header == ""
	return n
}

// giveWithHeader gives out what was written before the response's header goes out.
func (x *exchange) giveWithHeader() {
	n := x.news()
	if !n.any {
		return
	}
	n.token = x.written()
	x.told = n.token
	sent := x.send(n.token)
	saved := x.save(n.token, n.keys)
	// A cookie tells its own user. Of a key that others read by it tells nobody.
	if !sent && !saved || n.shared && !saved {
		x.hold()
	}
}

// giveLate gives out what was written after the header had gone out, or before the
// connection was taken over. Whether there is anything to hold back is the caller's to
// say: somebody may be waiting for the response's end.
func (x *exchange) giveLate(trailers, awaited bool) {
	n := x.news()
	if !n.any {
		if trailers {
			x.amendTrailer()
		}
		return
	}
	n.token = x.written()
	x.told = n.token
	if n.wrote {
		x.tell(EventLateWrite, nil)
	}
	saved := x.save(n.token, n.keys)
	told := saved && n.own
	if !told && trailers && x.h.o.Header != "" && x.out.addTrailer(x.h.o.Header, x.trailer(n.token)) {
		told = x.in.trailers // hardly any client reads them
	}
	if awaited && (!told || n.shared && !saved) {
		x.hold()
	}
}

// send puts the token into the response's header.
func (x *exchange) send(token string) bool {
	o := &x.h.o
	if o.Cookie.Off && o.Header == "" {
		return false
	}
	header := x.out.w.Header()
	if o.Header != "" {
		x.passOn(header[o.Header])
		header.Set(o.Header, x.sign(headerCarrier, x.headerToken(token)))
	}
	if !o.Cookie.Off {
		all := x.union(token)
		o.Cookie.set(header, x.sign(x.h.carrier, all), x.included(all))
	}
	// A cookie keeps no shared cache from storing a response (RFC 9111, section 7.3),
	// and handing it, with the cookie, to others.
	if len(header["Cache-Control"]) == 0 {
		header.Set("Cache-Control", "private")
	}
	return true
}

// passOn has our own values include those of a response that is passed on.
func (x *exchange) passOn(values []string) {
	for _, value := range values {
		if theirs, err := x.h.signer.verify(headerCarrier, value, time.Now()); err == nil {
			x.in.pass(theirs)
		}
	}
}

// trailer returns the value of a trailer. The client keeps it in place of the header's,
// and of a trailer of the service behind.
func (x *exchange) trailer(token string) string {
	header := x.out.w.Header()
	x.passOn(header[x.h.o.Header]) // or our own, which changes nothing
	x.passOn(header[http.TrailerPrefix+x.h.o.Header])
	return x.sign(headerCarrier, x.headerToken(token))
}

// amendTrailer has the trailer of a service behind tell of what our header has told.
func (x *exchange) amendTrailer() {
	if x.told == "" || x.h.o.Header == "" {
		return
	}
	name := http.TrailerPrefix + x.h.o.Header
	if header := x.out.w.Header(); len(header[name]) > 0 {
		header.Set(name, x.trailer(x.told))
	}
}

// everything is a token that asks for all that anybody has committed, on every
// cluster, by the time that it is read.
var everything = replicated.CoarseToken("?")

// union returns a token of at most maxToken bytes with what came in and what was
// written. It has positions for all of it, or for nothing: what asks for everything is
// not handed on, but ends with its age.
func (x *exchange) union(token string) string {
	if x.in.rejected != nil {
		return everything // in place of what was not understood, which is deleted
	}
	all, err := replicated.MergeTokens(append(slices.Clone(x.in.passed), token)...)
	if err != nil {
		return everything
	}
	coarse := x.coarse || isCoarse(token)
	if len(all) > maxToken && !coarse {
		x.tell(EventTokenCoarse, errOversized)
		coarse = true
	}
	if coarse {
		all = replicated.CoarseToken(all)
	}
	if len(all) > maxToken {
		return everything
	}
	return all
}

// included returns the names of the cookies that a token stands in for. One that asks
// for everything is among them where the token asks for the same.
func (x *exchange) included(all string) []string {
	names := slices.Clip(x.in.cookies)
	for _, c := range x.in.whole {
		if both, err := replicated.MergeTokens(all, c.token); all == everything || err == nil && both == all {
			names = append(names, c.name)
		}
	}
	return names
}

// headerToken returns the union for a header. The client drops the value that it has
// sent, so that what asks for everything in it is handed on: it may be of a cluster that
// only a service behind has.
func (x *exchange) headerToken(token string) string {
	all := x.union(token)
	if len(x.in.coarse) == 0 {
		return all
	}
	all, err := replicated.MergeTokens(append(slices.Clone(x.in.coarse), all)...)
	if err != nil || len(all) > maxToken {
		return everything
	}
	return all
}

func (x *exchange) sign(carrier, token string) string {
	return x.h.signer.sign(carrier, token, time.Now())
}

// finish gives out what is left when the handler has returned, or has panicked.
func (x *exchange) finish(completed bool) {
	if m := x.r.Method; (m == http.MethodGet || m == http.MethodHead || m == "") && x.session.Wrote() {
		x.tell(EventWriteInGet, nil)
	}
	switch {
	case !x.out.gone:
		// Whoever recovers from a panic may yet send a response with this header.
		x.out.goOut()
	case x.out.hijacked:
		x.giveLate(false, false)
	default:
		// A response that is broken off has neither trailers nor an end.
		x.giveLate(completed, completed)
	}
}
