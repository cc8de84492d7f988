package httpsticky_test

import (
	"bytes"
	"context"
	"database/sql"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/httpsticky"
)

// A client keeps the last value that it got: what a gateway and the service behind it
// have written is all in it, whichever of them tells of its own in a trailer.
func TestTrailerOfAServiceBehind(t *testing.T) {
	behind, front := newCluster(), newCluster()
	backDB, frontDB := behind.open(t), front.open(t)
	for _, tt := range []struct {
		name                  string
		backEarly, frontEarly bool
	}{
		{"both late", false, false},
		{"the gateway before its header", false, true},
		{"the service before its header", true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			written := map[string]string{} // tokens
			write := func(r *http.Request, name string, db *sql.DB) {
				insert(t, r.Context(), db)
				token, err := replicated.SessionFromContext(r.Context()).Token(r.Context())
				if err != nil {
					t.Error(err)
				}
				written[name] = token
			}
			back := httptest.NewServer(handler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if tt.backEarly {
					write(r, "service", backDB)
				}
				_, _ = io.WriteString(w, "a body")
				_ = http.NewResponseController(w).Flush()
				if !tt.backEarly {
					write(r, "service", backDB)
				}
			}), backDB, headerOn, cookieOff))
			defer back.Close()
			u, err := url.Parse(back.URL)
			if err != nil {
				t.Fatal(err)
			}
			proxy := httputil.NewSingleHostReverseProxy(u)
			s := httptest.NewServer(handler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if tt.frontEarly {
					write(r, "gateway", frontDB)
				}
				proxy.ServeHTTP(w, r)
				if !tt.frontEarly {
					write(r, "gateway", frontDB)
				}
			}), frontDB, headerOn, cookieOff))
			defer s.Close()
			r := request(t, s, "POST", "/write")
			r.Header.Set("TE", "trailers")
			w := send(t, s, r)
			if got := text(t, w); got != "a body" {
				t.Fatalf("the body is %q", got)
			}
			if len(w.Trailer["Replicated-Sticky"]) != 1 || len(written) != 2 {
				t.Fatalf("the trailer is %v", w.Trailer)
			}
			token := strings.Split(w.Trailer.Get("Replicated-Sticky"), ".")[2]
			for name, part := range written {
				if all, err := replicated.MergeTokens(token, part); err != nil || all != token {
					t.Errorf("the trailer lacks what the %s has written (%v)", name, err)
				}
			}
		})
	}
}

// Where the handler inside has no store, the key is that of the one around it.
func TestWithKeyInsideAHandlerWithoutStore(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *cluster, db *sql.DB) {
		s := trusted()
		h := handler(t, handler(t, withKey(app(t, db)), db), db, func(o *httpsticky.Options) { o.Store = s })
		c := newClient(t)
		c.header.Set("Tenant", "42")
		c.do(h, "POST", "/write")
		kept, err := s.inner.Load(t.Context(), "tenant:42")
		if err != nil || len(kept.Tokens) == 0 {
			t.Errorf("the store keeps %d tokens of the tenant, %v", len(kept.Tokens), err)
		}
	})
}

// A store that panics when it is to take a token may lack it.
func TestStoreThatPanicsOnSave(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *cluster, db *sql.DB) {
		s := trusted()
		h := handler(t, app(t, db), db, stored(panicking{s}), cookieOff)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("it did not panic")
				}
			}()
			user(t, "7").do(h, "POST", "/write")
		}()
		pass(2 * time.Second)
		user(t, "7").reads(h, "primary")
	})
}

type panicking struct{ httpsticky.Store }

func (panicking) Save(context.Context, string, time.Duration, ...string) error {
	panic("a store of somebody's")
}

// What a handler leaves in its request is there for those around us as without us: the
// pattern, and the form whose files the server removes.
func TestWhatIsLeftInTheRequest(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	db := newCluster().open(t)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /upload/{id}", func(_ http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1); err != nil {
			t.Error(err)
		}
		if files, err := os.ReadDir(os.TempDir()); err != nil || len(files) != 1 {
			t.Errorf("%d files, %v", len(files), err)
		}
	})
	var pattern string
	h := handler(t, mux, db, func(o *httpsticky.Options) {
		o.With = func(ctx context.Context, _ *http.Request) context.Context { return ctx }
	})
	onServers(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		pattern = r.Pattern
	}), func(t *testing.T, s *httptest.Server) {
		var form bytes.Buffer
		m := multipart.NewWriter(&form)
		part, err := m.CreateFormFile("file", "name")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = part.Write(bytes.Repeat([]byte("x"), 11<<20)) // more than what is kept in memory anyway
		_ = m.Close()
		r := request(t, s, "POST", "/upload/7")
		r.Body, r.ContentLength = io.NopCloser(&form), int64(form.Len())
		r.Header.Set("Content-Type", m.FormDataContentType())
		text(t, send(t, s, r))
		s.Close() // the request is over
		if files, err := os.ReadDir(os.TempDir()); err != nil || len(files) > 0 {
			t.Errorf("%d files are left, %v", len(files), err)
		}
		if pattern != "POST /upload/{id}" {
			t.Errorf("the pattern is %q", pattern)
		}
	})
}

// Where the session around the handler's has written, the primary is asked for what the
// request has only adopted as well: no longer than for anything else, and it is told.
func TestAdoptedInsideASessionThatWrote(t *testing.T) {
	inBubble(t, func(t *testing.T, f *cluster, db *sql.DB) {
		var e told
		behind := replicated.CoarseToken("of every cluster")
		h := handler(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if err := replicated.SessionFromContext(r.Context()).Adopt(behind); err != nil {
				t.Error(err)
			}
		}), db, observed(&e), func(o *httpsticky.Options) { o.TokenTimeout = 50 * time.Millisecond })
		ctx, _ := replicated.WithSession(t.Context())
		insert(t, ctx, db)
		f.silence(true)
		begin := time.Now()
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "POST", "/", nil))
		if took := time.Since(begin); took > 50*time.Millisecond {
			t.Errorf("answered after %v", took)
		}
		f.silence(false)
		e.want(t, httpsticky.EventTokenCoarse)
	})
}

// Clients keep a header's value for good, longer than anybody keeps a key: one whose age
// is up is ignored, whatever has signed it.
func TestHeaderOfAKeyThatIsGone(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *cluster, db *sql.DB) {
		var e told
		c := newClient(t)
		w := c.do(handler(t, app(t, db), db, headerOn, cookieOff), "POST", "/write")
		token := strings.Split(w.Header.Get("Replicated-Sticky"), ".")[2]
		h := handler(t, app(t, db), db, headerOn, cookieOff, observed(&e), func(o *httpsticky.Options) { o.Keys = [][]byte{key2} })
		c.header.Set("Replicated-Sticky", httpsticky.Sign(key1, "header", token, time.Now().Add(-331*time.Second)))
		c.reads(h, "replica")
		e.want(t)
		c.header.Set("Replicated-Sticky", httpsticky.Sign(key1, "header", token, time.Now().Add(-329*time.Second)))
		c.reads(h, "primary")
		e.want(t, httpsticky.EventTokenRejected)
	})
}

// Tokens that ask for everything do not pile up either, however often the user writes.
func TestCoarseCookiesDoNotPileUp(t *testing.T) {
	inBubble(t, func(t *testing.T, f *cluster, db *sql.DB) {
		var e told
		h := handler(t, app(t, db), db, observed(&e), func(o *httpsticky.Options) { o.TokenTimeout = time.Millisecond })
		c := newClient(t)
		for range 20 {
			f.silence(true)
			c.do(h, "POST", "/write")
			f.silence(false)
			pass(time.Second)
		}
		for _, event := range e.list {
			if event.Kind != httpsticky.EventTokenCoarse {
				t.Errorf("told %v: %v", event.Kind, event.Err)
			}
		}
		c.cookie()
		c.reads(h, "primary")
	})
}

// A key that is given after the header has gone out is no write.
func TestKeyAfterTheHeaderIsNoLateWrite(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *cluster, db *sql.DB) {
		var e told
		s := trusted()
		h := handler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			insert(t, r.Context(), db)
			_, _ = io.WriteString(w, "x")
			httpsticky.WithKey(r.Context(), "k")
		}), db, stored(s), observed(&e))
		user(t, "7").do(h, "POST", "/")
		e.want(t)
		if kept, err := s.inner.Load(t.Context(), "k"); err != nil || len(kept.Tokens) != 1 {
			t.Errorf("the store keeps %d tokens, %v", len(kept.Tokens), err)
		}
	})
}

// A response that is not chunked has no trailer: its end is held back.
func TestNoTrailerWithoutChunks(t *testing.T) {
	db := newCluster().open(t)
	var e told
	s := httptest.NewServer(handler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Transfer-Encoding", "identity")
		_, _ = io.WriteString(w, "x")
		insert(t, r.Context(), db)
	}), db, headerOn, cookieOff, observed(&e), func(o *httpsticky.Options) { o.Hold = 10 * time.Millisecond }))
	defer s.Close()
	r := request(t, s, "POST", "/")
	r.Header.Set("TE", "trailers")
	if w := send(t, s, r); text(t, w) != "x" || len(w.Trailer) > 0 {
		t.Errorf("the trailer is %v", w.Trailer)
	}
	s.Close()
	e.want(t, httpsticky.EventLateWrite, httpsticky.EventHeld)
}

// A token that a store has not taken is known to all handlers of the process that have
// the store.
func TestSaveThatFailedInAnotherHandler(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *cluster, db *sql.DB) {
		s := trusted()
		one, other := handler(t, app(t, db), db, stored(s)), handler(t, app(t, db), db, stored(s))
		s.set(func() { s.saveFails = errStore })
		user(t, "7").do(one, "POST", "/write")
		s.set(func() { s.saveFails = nil })
		user(t, "7").reads(other, "primary")
		user(t, "8").reads(other, "replica")
	})
}

// A store that can't be told from others by comparison is one as well.
func TestStoreThatCannotBeCompared(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *cluster, db *sql.DB) {
		s := trusted()
		h := handler(t, app(t, db), db, stored(uncomparable{s, nil}))
		s.set(func() { s.saveFails = errStore })
		user(t, "7").do(h, "POST", "/write")
		user(t, "7").reads(h, "primary")
	})
}

type uncomparable struct {
	httpsticky.Store
	_ []int
}
