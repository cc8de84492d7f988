package httpsticky

import (
	"errors"
	"net/http"
	"time"

	"github.com/sqlreplicated/replicated"
)

// handler is what Handler returns. It is immutable but for what it has learned of
// the store and of the log.
type handler struct {
	next    http.Handler
	o       Options
	carrier string // what cookies are signed for
	signer  signer
	rules   *rules  // nil: none
	keeper  *keeper // nil: no store
	logs    logs
}

// Handler returns a handler that gives every request a session, and has next serve
// it: reads of the request see what it has written, and what earlier requests of the
// same user have written, in whatever process they ran.
//
// What was written is given out with the response that wrote, by cookie, header and
// store, and only then: the response to a request that wrote nothing is passed
// through with no header touched. See the package's comment for what is done where
// that fails; nothing that comes with a request makes it fail.
//
// An error names the option that is wrong.
func Handler(next http.Handler, o Options) (http.Handler, error) {
	if next == nil {
		return nil, errors.New("httpsticky: there is no handler")
	}
	o, err := o.normalized()
	if err != nil {
		return nil, err
	}
	h := &handler{
		next: next, o: o,
		carrier: o.Cookie.carrier(),
		signer:  signer{keys: o.Keys, maxAge: o.Cookie.MaxAge},
	}
	if h.rules, err = newRules(o.Rules); err != nil {
		return nil, err
	}
	if o.Store != nil {
		h.keeper = &keeper{store: o.Store, timeout: o.StoreTimeout, ttl: o.Cookie.MaxAge}
	}
	return h, nil
}

// ServeHTTP implements [http.Handler].
//
// A request that neither carries nor makes a token costs six allocations: the
// exchange, three of WithSession, the copy of the request and the writer.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	came := r
	x := &exchange{Context: r.Context(), h: h, r: r}
	x.out.x, x.out.w = x, w
	x.scope, x.session = replicated.WithSession(x)
	x.in = h.take(r, time.Now())
	ctx := h.rules.apply(x.takeIn(), r)
	if h.o.With != nil {
		r = r.WithContext(ctx)
		if last := h.o.With(ctx, r); last != nil {
			ctx = last
		}
	}
	x.r = r.WithContext(ctx)
	completed := false
	defer func() { // a panic goes on, with its stack
		// As without us: the pattern for those around us, and the form, whose files the
		// server removes.
		came.Pattern = x.r.Pattern
		came.Form, came.PostForm, came.MultipartForm = x.r.Form, x.r.PostForm, x.r.MultipartForm
		x.finish(completed)
	}()
	h.next.ServeHTTP(x.out.variant(abilities(w)), x.r)
	completed = true
}
