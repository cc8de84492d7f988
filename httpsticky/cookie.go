package httpsticky

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sqlreplicated/replicated"
)

// headerCarrier is what headers are signed for. Cookies are signed for "cookie "
// and the name that theirs begin with.
const headerCarrier = "header"

func (c *Cookie) carrier() string { return "cookie " + c.Name }

// What is looked at of one request. More of it is no user's: what it may have said
// is replaced by a fresh read.
const (
	maxValues = 16
	maxBytes  = 8 << 10

	// maxDeleted is how many cookies a response deletes.
	maxDeleted = 256
)

var errTooMany = errors.New("httpsticky: there are more of them than are looked at")

// arrivals are what came with a request.
type arrivals struct {
	tokens   []string // of values that are signed and not too old
	passed   []string // those of them that a response's own token includes
	coarse   []string // those of headers that ask for everything: it includes them if it must
	cookies  []string // names of the cookies that a response with a token deletes
	whole    []whole  // cookies that ask for everything: it deletes those that its own token stands in for
	trailers bool     // the client reads trailers
	rejected error    // why something was not understood, nil where all was

	values, bytes int // looked at
}

// whole is a cookie that asks for everything.
type whole struct{ name, token string }

// take returns the tokens that came with a request, by cookies and header. It
// allocates nothing where none came.
func (h *handler) take(r *http.Request, now time.Time) (a arrivals) {
	if !h.o.Cookie.Off {
		for _, line := range r.Header["Cookie"] {
			h.takeCookies(&a, line, now)
		}
	}
	if h.o.Header != "" {
		for _, line := range r.Header[h.o.Header] {
			for value := range strings.SplitSeq(line, ",") {
				if value = strings.TrimSpace(value); value != "" {
					a.pass(h.takeValue(&a, headerCarrier, value, now))
				}
			}
		}
		a.trailers = slices.ContainsFunc(r.Header["Te"], func(line string) bool { return strings.Contains(line, "trailers") })
	}
	return a
}

// pass has a response's token include one of a header.
func (a *arrivals) pass(token string) {
	switch {
	case token == "":
	case isCoarse(token):
		a.coarse = append(a.coarse, token)
	default:
		a.passed = append(a.passed, token)
	}
}

func (h *handler) takeCookies(a *arrivals, line string, now time.Time) {
	for line != "" {
		var part string
		part, line, _ = strings.Cut(line, ";")
		name, value, _ := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		if !h.o.Cookie.isOurs(name) {
			continue
		}
		value = strings.TrimSpace(value)
		if n := len(value); n >= 2 && value[0] == '"' && value[n-1] == '"' {
			value = value[1 : n-1]
		}
		token := h.takeValue(a, h.carrier, value, now)
		if isCoarse(token) {
			// It ends by itself: handed on, it would keep a busy user's reads fresh for ever.
			a.whole = append(a.whole, whole{name, token})
			continue
		}
		a.pass(token)
		if len(a.cookies) < maxDeleted && !slices.Contains(a.cookies, name) {
			a.cookies = append(a.cookies, name)
		}
	}
}

// isCoarse tells whether a token has no positions: it asks for everything by the time
// that it is read.
func isCoarse(token string) bool { return token != "" && token == replicated.CoarseToken(token) }

// takeValue returns the token of a value, "" if it is none.
func (h *handler) takeValue(a *arrivals, carrier, value string, now time.Time) string {
	if a.values == maxValues || a.bytes+len(value) > maxBytes {
		a.rejected = errTooMany
		return ""
	}
	a.values++
	a.bytes += len(value)
	token, err := h.signer.verify(carrier, value, now)
	switch {
	case err == nil:
		a.tokens = append(a.tokens, token)
		return token
	case errors.Is(err, errExpired): // every replica that serves has what it told of
	default:
		a.rejected = err
	}
	return ""
}

const (
	suffixChars = "abcdefghijklmnopqrstuvwxyz234567"
	suffixLen   = 6
)

// isOurs tells whether a cookie has a name as freshName makes them.
func (c *Cookie) isOurs(name string) bool {
	if len(name) != len(c.Name)+1+suffixLen || name[:len(c.Name)] != c.Name || name[len(c.Name)] != '-' {
		return false
	}
	for _, b := range []byte(name[len(c.Name)+1:]) {
		if strings.IndexByte(suffixChars, b) < 0 {
			return false
		}
	}
	return true
}

// freshName returns a name that no other response uses: one in a billion would
// collide, and not with those that came in.
func (c *Cookie) freshName(taken []string) string {
	for {
		var suffix [suffixLen]byte
		bits := rand.Uint64()
		for i := range suffix {
			suffix[i] = suffixChars[bits&31]
			bits >>= 5
		}
		if name := c.Name + "-" + string(suffix[:]); !slices.Contains(taken, name) {
			return name
		}
	}
}

// make returns a cookie. One with no age is deleted by the browser.
func (c *Cookie) make(name, value string, age time.Duration) *http.Cookie {
	seconds := int(age / time.Second)
	if seconds == 0 {
		seconds = -1 // Max-Age=0, as package http says it
	}
	return &http.Cookie{
		Name: name, Value: value, MaxAge: seconds,
		Path: c.Path, Domain: c.Domain, SameSite: c.SameSite, Secure: !c.Insecure, HttpOnly: true,
	}
}

// set adds a cookie with the value to a response's header, and deletes the others.
func (c *Cookie) set(header http.Header, value string, others []string) {
	header.Add("Set-Cookie", c.make(c.freshName(others), value, c.MaxAge).String())
	for _, name := range others {
		header.Add("Set-Cookie", c.make(name, "", 0).String())
	}
}
