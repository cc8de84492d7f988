package httpsticky_test

import (
	"bytes"
	"database/sql"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/httpsticky"
)

// A redirect after a POST carries the token: the next request reads the write, in
// another process, on the primary until the replica has it, and then on the replica.
func TestReadsOwnWritesAcrossProcesses(t *testing.T) {
	for name, on := range map[string]func(*httpsticky.Options){
		"cookie": func(*httpsticky.Options) {},
		"header": func(o *httpsticky.Options) { cookieOff(o); headerOn(o) },
		"store": func(o *httpsticky.Options) {
			cookieOff(o)
			whole := time.Hour
			stored(&store{inner: httpsticky.NewMemory(0), whole: &whole})(o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *cluster, db *sql.DB) {
				other := f.open(t)
				pass(time.Second)
				var o httpsticky.Options
				on(&o)
				same := func(p *httpsticky.Options) {
					p.Cookie, p.Header, p.Store, p.Key = o.Cookie, o.Header, o.Store, o.Key
				}
				here, there := handler(t, app(t, db), db, same), handler(t, app(t, other), other, same)
				c, stranger := newClient(t), newClient(t)
				c.header.Set("User", "7")
				stranger.header.Set("User", "8")
				c.reads(there, "replica")
				w := c.do(here, "POST", "/write")
				if w.StatusCode != http.StatusSeeOther {
					t.Fatalf("the POST was answered with %s", w.Status)
				}
				if v := w.Header.Get("Replicated-Sticky"); v != "" {
					c.header.Set("Replicated-Sticky", v)
				}
				pass(10 * time.Millisecond)
				c.reads(there, "primary")
				c.reads(here, "primary")
				stranger.reads(there, "replica")
				f.apply()
				pass(3 * time.Second)
				c.reads(there, "replica")
			})
		})
	}
}

// What the session has written counts, not the method.
func TestOnlyWritesGiveTokens(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *cluster, db *sql.DB) {
		var e told
		mux := http.NewServeMux()
		mux.HandleFunc("/plain", func(w http.ResponseWriter, r *http.Request) {
			node(t, r.Context(), db)
			_, _ = io.WriteString(w, "ok")
		})
		mux.HandleFunc("/untracked", func(w http.ResponseWriter, r *http.Request) {
			insert(t, replicated.WithUntracked(r.Context()), db)
			_, _ = io.WriteString(w, "ok")
		})
		mux.HandleFunc("/empty", func(http.ResponseWriter, *http.Request) {})
		h := handler(t, mux, db, headerOn, observed(&e))
		for _, method := range []string{"GET", "HEAD", "POST", "DELETE"} {
			for _, path := range []string{"/plain", "/untracked", "/empty", "/nowhere"} {
				want, got := httptest.NewRecorder(), httptest.NewRecorder()
				mux.ServeHTTP(want, newClient(t).request(method, path))
				h.ServeHTTP(got, newClient(t).request(method, path))
				if w, g := headerText(want), headerText(got); w != g {
					t.Errorf("%s %s: the header is %q, without us %q", method, path, g, w)
				}
			}
		}
		e.want(t)
	})
}

func headerText(w *httptest.ResponseRecorder) string {
	var b bytes.Buffer
	_ = w.Result().Header.Write(&b)
	return b.String()
}

// The cookie's attributes, and what keeps shared caches from handing it out.
func TestCookieAttributes(t *testing.T) {
	inBubble(t, func(t *testing.T, f *cluster, db *sql.DB) {
		for _, tt := range []struct {
			name   string
			cookie httpsticky.Cookie
			want   string // after the value
			prefix string
		}{
			{"defaults", httpsticky.Cookie{}, "; Path=/; Max-Age=30; HttpOnly; Secure; SameSite=Lax", "__Host-replicated-"},
			{"all set", httpsticky.Cookie{Name: "app", Path: "/a", Domain: "example.com", SameSite: http.SameSiteStrictMode, MaxAge: 9500*time.Millisecond + time.Minute},
				"; Path=/a; Domain=example.com; Max-Age=70; HttpOnly; Secure; SameSite=Strict", "app-"},
			{"insecure", httpsticky.Cookie{Insecure: true}, "; Path=/; Max-Age=30; HttpOnly; SameSite=Lax", "replicated-"},
			{"with a path", httpsticky.Cookie{Path: "/a"}, "; Path=/a; Max-Age=30; HttpOnly; Secure; SameSite=Lax", "replicated-"},
		} {
			step(t, tt.name, func() {
				h := handler(t, app(t, db), db, func(o *httpsticky.Options) { o.Cookie = tt.cookie })
				c := newClient(t)
				w := c.do(h, "POST", "/write")
				line := w.Header.Get("Set-Cookie")
				name, _, _ := strings.Cut(line, "=")
				_, attributes, _ := strings.Cut(line, ";")
				if !strings.HasPrefix(name, tt.prefix) || len(name) != len(tt.prefix)+6 || ";"+attributes != tt.want {
					t.Errorf("the cookie is %q", line)
				}
				if got := w.Header.Get("Cache-Control"); got != "private" {
					t.Errorf("Cache-Control is %q", got)
				}
				// The next response that writes deletes it, with the same attributes.
				gone := c.do(h, "POST", "/write").Header["Set-Cookie"]
				if want := name + "=" + strings.Replace(tt.want, tt.want[strings.Index(tt.want, "Max-Age=")+8:strings.Index(tt.want, "; HttpOnly")], "0", 1); len(gone) != 2 || gone[1] != want {
					t.Errorf("the cookie is deleted by %q, want %q", gone, want)
				}
				c.cookie()
			})
		}
		caching := handler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "no-store")
			insert(t, r.Context(), db)
		}), db)
		if got := newClient(t).do(caching, "POST", "/").Header["Cache-Control"]; len(got) != 1 || got[0] != "no-store" {
			t.Errorf("the application's Cache-Control has become %q", got)
		}
	})
}

// Responses to parallel requests arrive in any order, and neither overwrites what the
// other one has told: the reader sees the union.
func TestParallelWritesReordered(t *testing.T) {
	for _, swapped := range []bool{false, true} {
		inBubble(t, func(t *testing.T, f *cluster, db *sql.DB) {
			h := handler(t, app(t, db), db)
			c := newClient(t)
			c.do(h, "POST", "/write")
			f.apply()
			pass(3 * time.Second)
			first, second := c.request("POST", "/write"), c.request("POST", "/write")
			one, two := httptest.NewRecorder(), httptest.NewRecorder()
			h.ServeHTTP(one, first)
			f.apply() // but not the second write
			pass(3 * time.Second)
			h.ServeHTTP(two, second)
			late, last := one.Result(), two.Result()
			if swapped {
				late, last = last, late
			}
			c.keep(late)
			c.keep(last)
			if len(c.jar) != 2 {
				t.Errorf("the client has %d cookies, want those of both responses", len(c.jar))
			}
			c.reads(h, "primary")
			// A third write merges them into one cookie, which asks for all three.
			c.do(h, "POST", "/write")
			c.cookie()
			c.reads(h, "primary")
			f.apply()
			pass(3 * time.Second)
			c.reads(h, "replica")
		})
	}
}

// What came in stays in what is given out: a write on a cluster that this request
// does not even use.
func TestUnionOfClusters(t *testing.T) {
	inBubble(t, func(t *testing.T, f *cluster, db *sql.DB) {
		g := newCluster()
		second := g.open(t)
		pass(time.Second)
		both := func(o *httpsticky.Options) { o.Databases = []*sql.DB{db, second} }
		first, other := handler(t, app(t, db), db, both), handler(t, app(t, second), second, both)
		c := newClient(t)
		c.do(first, "POST", "/write")
		c.do(other, "POST", "/write")
		c.cookie()
		c.reads(first, "primary")
		c.reads(other, "primary")
		f.apply()
		pass(3 * time.Second)
		c.reads(first, "replica")
		c.reads(other, "primary")
	})
}

// A new key is added behind the old one, then before it, then the old one goes.
func TestKeyRotation(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *cluster, db *sql.DB) {
		var e told
		with := func(keys ...[]byte) http.Handler {
			return handler(t, app(t, db), db, observed(&e), func(o *httpsticky.Options) { o.Keys = keys })
		}
		c := newClient(t)
		c.do(with(key1), "POST", "/write")
		for _, keys := range [][][]byte{{key1, key2}, {key2, key1}} {
			c.reads(with(keys...), "primary")
			e.want(t)
		}
		c.do(with(key2, key1), "POST", "/write")
		c.reads(with(key2), "primary")
		e.want(t)
		c.do(with(key1), "GET", "/read") // one that has lost its key
		e.want(t, httpsticky.EventTokenRejected)
	})
}

// changed keys of the caller's are not ours.
func TestOptionsAreCopied(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *cluster, db *sql.DB) {
		var e told
		key := bytes.Clone(key1)
		h := handler(t, app(t, db), db, observed(&e), func(o *httpsticky.Options) { o.Keys = [][]byte{key} })
		c := newClient(t)
		c.do(h, "POST", "/write")
		copy(key, key2)
		c.reads(h, "primary")
		e.want(t)
	})
}

// Tokens whose age is up are ignored, those from the future are as of now, and
// neither pins anybody.
func TestAgesAndClocks(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *cluster, db *sql.DB) {
		var e told
		h := handler(t, app(t, db), db, observed(&e))
		c := newClient(t)
		c.do(h, "POST", "/write")
		name, value := c.cookie()
		token := strings.Split(value, ".")[2]
		for _, tt := range []struct {
			name   string
			issued time.Duration // from now
			want   string
		}{
			{"now", 0, "primary"},
			{"in the future", time.Hour, "primary"},
			{"in the far future", 1 << 62, "primary"},
			{"within its age", -29 * time.Second, "primary"},
			{"by a clock that is behind", -5 * time.Minute, "primary"},
			{"too old", -331 * time.Second, "replica"},
			{"ages ago", -1 << 62, "replica"},
		} {
			step(t, tt.name, func() {
				c := newClient(t)
				at := time.Now().Add(tt.issued)
				c.jar[name] = cookie{httpsticky.Sign(key1, carrier, token, at), time.Now().Add(time.Hour)}
				c.reads(h, tt.want)
				e.want(t)
			})
		}
	})
}

// What isn't signed, or isn't looked at, never fails a request: its reads are fresh,
// which replicas may serve once they are proven to be. The next response that writes
// deletes it, and asks for everything in its place.
func TestRejectedTokens(t *testing.T) {
	inBubble(t, func(t *testing.T, f *cluster, db *sql.DB) {
		var e told
		h := handler(t, app(t, db), db, observed(&e), headerOn)
		c := newClient(t)
		c.do(h, "POST", "/write")
		_, good := c.cookie()
		token := strings.Split(good, ".")[2]
		now := time.Now()
		flip := func(i int) string {
			b := []byte(good)
			b[i] ^= 1
			return string(b)
		}
		for name, value := range map[string]string{
			"empty":                   "",
			"rubbish":                 "rubbish",
			"only dots":               "...",
			"unknown version":         "v2" + good[2:],
			"no mac":                  good[:strings.LastIndexByte(good, '.')+1],
			"cut off":                 good[:len(good)-1],
			"longer":                  good + "A",
			"a line break in the mac": good[:len(good)-1] + "\n" + good[len(good)-1:],
			"changed version":         flip(1),
			"changed date":            flip(4),
			"changed token":           flip(20),
			"changed mac":             flip(len(good) - 5),
			"another key":             httpsticky.Sign(key2, carrier, token, now),
			"made for a header":       httpsticky.Sign(key1, "header", token, now),
			"made for another name":   httpsticky.Sign(key1, "cookie x", token, now),
			"signed, but no token":    httpsticky.Sign(key1, carrier, "rubbish", now),
			"oversized":               httpsticky.Sign(key1, carrier, strings.Repeat("A", 4000), now),
		} {
			step(t, name, func() {
				c := newClient(t)
				f.apply()
				pass(time.Second)
				r := c.request("GET", "/read")
				r.Header.Set("Cookie", "other=x; __Host-replicated-aaaaaa="+value)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				// Nothing has been proven since: the primary, which everybody has asked
				// who reads fresh.
				if got := w.Body.String(); w.Code != 200 || got != "primary" {
					t.Errorf("answered %d, served by %s", w.Code, got)
				}
				e.want(t, httpsticky.EventTokenRejected)
				r = c.request("POST", "/write")
				r.Header.Set("Cookie", "__Host-replicated-aaaaaa="+value)
				w = httptest.NewRecorder()
				h.ServeHTTP(w, r)
				e.want(t, httpsticky.EventTokenRejected)
				c.keep(w.Result())
				_, got := c.cookie()
				if got := strings.Split(got, ".")[2]; got != replicated.CoarseToken("?") {
					t.Errorf("the next token is %q", got)
				}
			})
		}
	})
}

// More than is looked at is rejected as a whole, after so much of it.
func TestTooMuch(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *cluster, db *sql.DB) {
		h := handler(t, app(t, db), db)
		value := httpsticky.Sign(key1, carrier, storedToken("c", 1), time.Now())
		r := httptest.NewRequest("GET", "/read", nil)
		for i := range httpsticky.MaxValues + 5 {
			r.AddCookie(&http.Cookie{Name: "__Host-replicated-aaaaa" + string(rune('a'+i)), Value: value})
		}
		got := httpsticky.Take(h, r, time.Now())
		if got.Rejected == nil || got.Values != httpsticky.MaxValues || len(got.Cookies) != httpsticky.MaxValues+5 {
			t.Errorf("of too many cookies %d are looked at, and %d to be deleted; error %v", got.Values, len(got.Cookies), got.Rejected)
		}
		r.Header["Cookie"] = []string{strings.Repeat("__Host-replicated-aaaaaa="+strings.Repeat("x", 1000)+"; ", 12)}
		if got := httpsticky.Take(h, r, time.Now()); got.Rejected == nil || got.Bytes > httpsticky.MaxBytes {
			t.Errorf("of long cookies %d bytes are looked at, error %v", got.Bytes, got.Rejected)
		}
		// No token of ours is as long as that, though it is signed.
		long := httpsticky.Sign(key1, carrier, strings.Repeat("A", httpsticky.MaxToken+64), time.Now())
		r.Header["Cookie"] = []string{"__Host-replicated-aaaaaa=" + long}
		if got := httpsticky.Take(h, r, time.Now()); got.Rejected == nil || len(got.Tokens) > 0 {
			t.Errorf("taken in: %+v", got)
		}
		// Cookies of other names are none of ours.
		r.Header["Cookie"] = []string{`a=b; __Host-replicated=x; __Host-replicated-AAAAAA=x; __Host-replicated-aaaaaaa=x; __Host-replicated-aaaaa=x; ` +
			`__Host-replicated-aaaaaa="` + value + `"`}
		if got := httpsticky.Take(h, r, time.Now()); got.Rejected != nil || got.Values != 1 || len(got.Tokens) != 1 {
			t.Errorf("taken in: %+v", got)
		}
	})
}

// A client may send several headers' values, as one or as several, and each is
// checked.
func TestSeveralHeaders(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *cluster, db *sql.DB) {
		h := handler(t, app(t, db), db, headerOn)
		value := httpsticky.Sign(key1, "header", replicated.CoarseToken("?"), time.Now())
		for _, tt := range []struct {
			values   []string
			tokens   int
			rejected bool
		}{
			{[]string{value}, 1, false},
			{[]string{value + ", " + value, value}, 3, false},
			{[]string{value + ", rubbish"}, 1, true},
			{[]string{" , "}, 0, false},
		} {
			r := httptest.NewRequest("GET", "/read", nil)
			r.Header["Replicated-Sticky"] = tt.values
			if got := httpsticky.Take(h, r, time.Now()); len(got.Tokens) != tt.tokens || (got.Rejected != nil) != tt.rejected {
				t.Errorf("%q: taken in: %+v", tt.values, got)
			}
		}
	})
}

// Where the primary can't be asked, the token asks for everything.
func TestTokenWithoutPrimary(t *testing.T) {
	inBubble(t, func(t *testing.T, f *cluster, db *sql.DB) {
		var e told
		f.silence(true)
		short := handler(t, app(t, db), db, observed(&e), func(o *httpsticky.Options) { o.TokenTimeout = 100 * time.Millisecond })
		begin := time.Now()
		newClient(t).do(short, "POST", "/write")
		if took := time.Since(begin); took != 100*time.Millisecond {
			t.Errorf("answered after %v", took)
		}
		e.want(t, httpsticky.EventTokenCoarse)
		h := handler(t, app(t, db), db, observed(&e))
		c := newClient(t)
		begin = time.Now()
		w := c.do(h, "POST", "/write")
		if took := time.Since(begin); w.StatusCode != http.StatusSeeOther || took > time.Second {
			t.Errorf("answered %s after %v", w.Status, took)
		}
		if list := e.want(t, httpsticky.EventTokenCoarse); len(list) == 1 && list[0].Err == nil {
			t.Error("the event doesn't say why")
		}
		_, value := c.cookie()
		if token := strings.Split(value, ".")[2]; token != replicated.CoarseToken(token) {
			t.Errorf("the token is %q", token)
		}
		f.silence(false)
		pass(10 * time.Second)
		c.reads(h, "primary")
		f.apply()
		pass(time.Second)
		c.reads(h, "primary") // of what comes later it can't be known that it was not meant
		pass(time.Second)
	})
}

// Tokens too long for a cookie are replaced by shorter ones that ask for more.
func TestLongTokens(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *cluster, db *sql.DB) {
		var e told
		mux := app(t, db)
		var tokens []string
		for range 22 {
			g := newCluster()
			other := g.open(t)
			pass(time.Second)
			ctx, s := replicated.WithSession(t.Context())
			insert(t, ctx, other)
			token, err := s.Token(ctx)
			if err != nil {
				t.Fatal(err)
			}
			tokens = append(tokens, token)
		}
		mux.HandleFunc("POST /calls", func(_ http.ResponseWriter, r *http.Request) {
			if err := replicated.SessionFromContext(r.Context()).Adopt(tokens...); err != nil {
				t.Error(err)
			}
		})
		h := handler(t, mux, db, observed(&e))
		c := newClient(t)
		c.do(h, "POST", "/calls")
		e.want(t, httpsticky.EventTokenCoarse)
		_, value := c.cookie()
		token := strings.Split(value, ".")[2]
		if len(token) > httpsticky.MaxToken || token == "" {
			t.Errorf("the token has %d bytes", len(token))
		}
		all, err := replicated.MergeTokens(tokens...)
		if err != nil || len(all) <= httpsticky.MaxToken {
			t.Fatalf("the token would have had %d bytes: nothing was tested (%v)", len(all), err)
		}
		if want := replicated.CoarseToken(all); token != want {
			t.Errorf("the token is %q, want %q", token, want)
		}
	})
}

// What a call's server has written on the request's behalf is given out, though the
// request itself wrote nothing.
func TestAdoptedTokensAreGivenOut(t *testing.T) {
	inBubble(t, func(t *testing.T, f *cluster, db *sql.DB) {
		other := f.open(t)
		pass(time.Second)
		mux := app(t, db)
		mux.HandleFunc("GET /call", func(w http.ResponseWriter, r *http.Request) {
			ctx, s := replicated.WithSession(t.Context()) // the server of the call
			insert(t, ctx, other)
			token, err := s.Token(ctx)
			if err != nil {
				t.Error(err)
			}
			if err := replicated.SessionFromContext(r.Context()).Adopt(token); err != nil {
				t.Error(err)
			}
			_, _ = io.WriteString(w, "ok")
		})
		h := handler(t, mux, db)
		c := newClient(t)
		c.do(h, "GET", "/call")
		c.cookie()
		c.reads(h, "primary")
		f.apply()
		pass(3 * time.Second)
		c.reads(h, "replica")
	})
}

// A GET handler writes to a table of sessions: the statement goes to the primary and
// nothing fails; an event names the endpoint. Only where it was asked for
// (WithReadOnly) is the write refused.
func TestReportA36WriteInsideGet(t *testing.T) {
	inBubble(t, func(t *testing.T, f *cluster, db *sql.DB) {
		var e told
		mux := http.NewServeMux()
		get := func(w http.ResponseWriter, r *http.Request) {
			if _, err := db.ExecContext(r.Context(), "UPDATE sessions SET seen = now()"); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		}
		mux.HandleFunc("GET /pages/{id}", get)
		mux.HandleFunc("GET /reports/", get)
		h := handler(t, mux, db, observed(&e), func(o *httpsticky.Options) {
			o.Rules = []httpsticky.Rule{{Pattern: "GET /reports/", With: replicated.WithReadOnly}}
		})
		c := newClient(t)
		for _, method := range []string{"GET", "HEAD"} {
			if w := c.do(h, method, "/pages/1234"); w.StatusCode != 200 {
				t.Errorf("%s: %s", method, w.Status)
			}
			list := e.want(t, httpsticky.EventWriteInGet)
			if len(list) == 1 && list[0].Caller != "GET /pages/{id}" {
				t.Errorf("the event names %q", list[0].Caller)
			}
		}
		c.cookie()
		if n := len(f.replica.Texts()); n > 0 {
			for _, text := range f.replica.Texts() {
				if strings.HasPrefix(text, "UPDATE") {
					t.Error("the write went to the replica")
				}
			}
		}
		if w := c.do(h, "GET", "/reports/1"); w.StatusCode != http.StatusInternalServerError {
			t.Errorf("a write that was forbidden: %s", w.Status)
		}
		e.want(t)
	})
}

// Middleware that sets a cookie on every response keeps a CDN from caching: ours sets
// none without a write, whatever the request carries.
func TestReportA38NoCookieWithoutWrite(t *testing.T) {
	inBubble(t, func(t *testing.T, f *cluster, db *sql.DB) {
		h := handler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "POST" {
				insert(t, r.Context(), db)
			}
			w.Header().Set("Cache-Control", "public, max-age=60")
			_, _ = io.WriteString(w, node(t, r.Context(), db))
		}), db, headerOn)
		c := newClient(t)
		check := func() {
			t.Helper()
			w := c.do(h, "GET", "/")
			if len(w.Header) != 2 || w.Header.Get("Cache-Control") != "public, max-age=60" || w.Header.Get("Content-Type") == "" {
				t.Errorf("a response without a write has the header %v", w.Header)
			}
		}
		check()
		if len(c.do(h, "POST", "/").Header["Set-Cookie"]) != 1 {
			t.Error("a write sets no cookie: nothing was tested")
		}
		check() // carrying a cookie
		c.jar["__Host-replicated-aaaaaa"] = cookie{"rubbish", time.Now().Add(time.Hour)}
		check()
		f.apply()
		pass(time.Minute)
		check() // one whose age is up
	})
}
