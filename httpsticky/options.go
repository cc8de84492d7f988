package httpsticky

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"github.com/sqlreplicated/replicated"
)

// Options say how tokens travel from one request of a user to the next. [Handler]
// checks and copies them; later changes have no effect.
type Options struct {
	// Databases are the handles that the requests use, on every cluster that
	// replicas serve reads of. Required: their max_lag says how long a token must
	// live. (Of processes whose max_lag differs the greatest one counts: see
	// Cookie.MaxAge.)
	Databases []*sql.DB

	// Keys sign cookies and headers with HMAC-SHA-256: the first one signs, all of
	// them verify, so that a new key is first added at the end everywhere, then
	// moved to the front, and the old one removed Cookie.MaxAge later. At least one,
	// each of at least 32 random bytes, the same in all processes. Required unless
	// Cookie.Off is set and Header is empty.
	Keys [][]byte

	// Cookie is how browsers carry tokens. Zero: on, with defaults.
	Cookie Cookie

	// Header is the request and response header by which API and mobile clients
	// carry tokens, such as "Replicated-Sticky": they send the last one that they
	// got. It is signed like the cookie, and so must not be the one by which
	// replicated.Inject sends tokens that are not. Empty: none.
	Header string

	// Store keeps tokens by key. Nil: none.
	Store Store

	// Key returns the store's key of a request: who the user is. It is called
	// before the handler, so that what it needs has to be in the request by then;
	// from inside, use [WithKey]. "" says that there is none. Nil: none.
	Key func(*http.Request) string

	// Rules say what reads of which requests ask for. Of those whose pattern matches
	// a request the most specific one is applied, as by http.ServeMux.
	Rules []Rule

	// With has the last word on a request's context. It is called once, with the
	// context that the handler is to get and the request that is passed on, of which
	// it may replace the body. Nil: nothing.
	With func(context.Context, *http.Request) context.Context

	// Observe is told what happens to tokens. It is called on the request's
	// goroutines, possibly many at a time, and delays them while it runs. Nil:
	// nobody.
	Observe func(Event)

	// Logger is told the same, of each kind of event at most once a second.
	// Nil: nobody.
	Logger *slog.Logger

	// StoreTimeout bounds each call of Store. Zero: 50 ms.
	StoreTimeout time.Duration

	// Hold is how long a response is held back at most where nothing can carry its
	// token: until every replica has what was written (Session.Settle of package
	// replicated), whether the client still waits or not. Zero: the greatest max_lag of
	// Databases (or sticky, where nothing is measured), after which no replica that
	// serves lacks it. A server's WriteTimeout must leave room for it. Less may let go too early, which an event tells.
	// Negative: it is not held back at all.
	Hold time.Duration

	// TokenTimeout is how long the primary is waited for when it is asked for its
	// position. A token that is made without it asks for everything that anybody has
	// committed by the time that it is read. Zero: 1 s.
	TokenTimeout time.Duration
}

// Cookie is how browsers carry tokens. Every response that wrote sets a cookie with
// a name of its own, so that responses to parallel requests overwrite nothing of
// each other, and deletes those that came in, whose tokens it includes. They are
// HttpOnly.
type Cookie struct {
	// Off: no cookies are read or set.
	Off bool

	// Name is what the names of the cookies begin with; a hyphen and six random
	// characters follow. Empty: "__Host-replicated" where a browser accepts that
	// (Secure, Path "/", no Domain), else "replicated".
	Name string

	// Path and Domain are the cookies' attributes. Empty: Path is "/", and there is
	// no Domain: the cookies are the host's own.
	Path, Domain string

	// SameSite is the cookies' attribute. Zero: Lax.
	SameSite http.SameSite

	// Insecure leaves out the attribute Secure, for development without TLS.
	Insecure bool

	// MaxAge is how long a token is carried, by cookies, headers and the store: it
	// must be 5 s more than the greatest max_lag of Databases (or sticky, where
	// nothing is measured, with replicated.tracker=off), since for so long a replica may serve reads that lacks what was
	// written. Whole seconds, else it is
	// rounded up. Zero: the least, but no less than 30 s.
	MaxAge time.Duration
}

const (
	leastKey     = 32
	leastMargin  = 5 * time.Second
	leastMaxAge  = 30 * time.Second
	storeTimeout = 50 * time.Millisecond
	tokenTimeout = time.Second
)

// normalized checks o and fills in its defaults.
func (o Options) normalized() (Options, error) {
	longest, err := o.longestLag()
	if err != nil {
		return o, err
	}
	if err := o.Cookie.normalize(longest); err != nil {
		return o, err
	}
	if err := o.checkCarriers(); err != nil {
		return o, err
	}
	o.Header = textproto.CanonicalMIMEHeaderKey(o.Header)
	keys := make([][]byte, len(o.Keys))
	for i, k := range o.Keys {
		keys[i] = slices.Clone(k)
	}
	o.Keys = keys
	for _, d := range []struct {
		name    string
		value   *time.Duration
		instead time.Duration
	}{
		{"StoreTimeout", &o.StoreTimeout, storeTimeout},
		{"TokenTimeout", &o.TokenTimeout, tokenTimeout},
	} {
		if *d.value < 0 {
			return o, fmt.Errorf("httpsticky: Options.%s is negative", d.name)
		}
		if *d.value == 0 {
			*d.value = d.instead
		}
	}
	if o.Hold == 0 {
		o.Hold = longest
	}
	return o, nil
}

// longestLag returns how long a write may take to be on all replicas that serve.
func (o *Options) longestLag() (longest time.Duration, err error) {
	if len(o.Databases) == 0 {
		return 0, errors.New("httpsticky: Options.Databases is empty: how long tokens have to live follows from max_lag of the databases")
	}
	for i, db := range o.Databases {
		if db == nil {
			return 0, fmt.Errorf("httpsticky: Options.Databases[%d] is nil", i)
		}
		c, err := replicated.ClusterOf(context.Background(), db)
		if err != nil {
			return 0, fmt.Errorf("httpsticky: Options.Databases[%d]: %w", i, err)
		}
		if c == nil {
			return 0, fmt.Errorf("httpsticky: Options.Databases[%d] has no cluster: its DSN is empty", i)
		}
		longest = max(longest, c.LongestLag())
	}
	return longest, nil
}

func (o *Options) checkCarriers() error {
	if o.Cookie.Off && o.Header == "" && o.Store == nil {
		return errors.New("httpsticky: nothing can carry a token: Cookie.Off is set, and there is neither Header nor Store")
	}
	if o.Key != nil && o.Store == nil {
		return errors.New("httpsticky: Options.Key is set, but there is no Store")
	}
	if o.Header != "" && !isToken(o.Header) {
		return fmt.Errorf("httpsticky: Options.Header %q is no name of a header", o.Header)
	}
	if strings.EqualFold(o.Header, replicated.TokenKey) {
		return fmt.Errorf("httpsticky: Options.Header %q is what replicated.Inject sends tokens by, which are not signed: choose another one, such as Replicated-Sticky", o.Header)
	}
	if (!o.Cookie.Off || o.Header != "") && len(o.Keys) == 0 {
		return errors.New("httpsticky: Options.Keys is empty: cookies and headers are signed")
	}
	for i, k := range o.Keys {
		if len(k) < leastKey {
			return fmt.Errorf("httpsticky: Options.Keys[%d] has %d bytes, which is less than %d", i, len(k), leastKey)
		}
	}
	return nil
}

func (c *Cookie) normalize(longest time.Duration) error {
	least := roundUp(longest + leastMargin)
	if c.MaxAge == 0 {
		c.MaxAge = max(least, leastMaxAge)
	}
	c.MaxAge = roundUp(c.MaxAge)
	if c.MaxAge < least {
		return fmt.Errorf("httpsticky: Cookie.MaxAge is %v, and has to be at least %v: %v (max_lag, or sticky where nothing is measured) + %v, since for so long a replica may serve reads that lacks what was written",
			c.MaxAge, least, longest, leastMargin)
	}
	if c.Off {
		return nil
	}
	if c.Path == "" {
		c.Path = "/"
	}
	if c.SameSite == 0 || c.SameSite == http.SameSiteDefaultMode {
		c.SameSite = http.SameSiteLaxMode
	}
	hostOnly := !c.Insecure && c.Path == "/" && c.Domain == ""
	switch {
	case c.Name != "":
	case hostOnly:
		c.Name = "__Host-replicated"
	default:
		c.Name = "replicated"
	}
	if c.Path[0] != '/' { // RFC 6265, section 5.2.4
		return fmt.Errorf("httpsticky: Cookie.Path %q does not begin with a slash: browsers would take the directory of the request that has written in its place", c.Path)
	}
	// RFC 6265bis, sections 4.1.3 and 5.7: browsers drop what breaks these rules,
	// and say nothing.
	if hasPrefixFold(c.Name, "__Host-") && !hostOnly {
		return fmt.Errorf("httpsticky: browsers drop the cookie %s unless it is secure, has Path \"/\" and no Domain", c.Name)
	}
	if hasPrefixFold(c.Name, "__Secure-") && c.Insecure {
		return fmt.Errorf("httpsticky: browsers drop the cookie %s, since Cookie.Insecure is set", c.Name)
	}
	if c.SameSite == http.SameSiteNoneMode && c.Insecure {
		return errors.New("httpsticky: browsers drop cookies with SameSite=None, since Cookie.Insecure is set")
	}
	if err := c.make(c.Name+"-", "v", c.MaxAge).Valid(); err != nil {
		return fmt.Errorf("httpsticky: Options.Cookie: %w", err)
	}
	return nil
}

// roundUp returns d in whole seconds.
func roundUp(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// isToken tells whether s may name a header (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}
