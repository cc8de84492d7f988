package httpsticky_test

import (
	"bufio"
	"database/sql"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/httpsticky"
)

// optional tells which optional interfaces a writer has.
func optional(w http.ResponseWriter) (has [5]bool) {
	_, has[0] = w.(http.Flusher)
	_, has[1] = w.(http.Hijacker)
	_, has[2] = w.(io.ReaderFrom)
	_, has[3] = w.(http.Pusher)
	_, has[4] = w.(interface{ CloseNotify() <-chan bool })
	return has
}

// The writer that a handler gets has the optional interfaces of the wrapped one, and
// no others.
func TestOptionalInterfacesAreExact(t *testing.T) {
	all := httpsticky.Variants(httptest.NewRecorder())
	if len(all) != 32 {
		t.Fatalf("%d variants", len(all))
	}
	for want, w := range all {
		if got := optional(w); got != want {
			t.Errorf("a writer has %v, want %v", got, want)
		}
		if _, ok := w.(io.StringWriter); !ok {
			t.Errorf("%v: no StringWriter", want)
		}
		if _, ok := w.(interface{ FlushError() error }); ok != want[0] {
			t.Errorf("%v: FlushError %v", want, ok)
		}
		if _, ok := w.(interface{ Unwrap() http.ResponseWriter }); !ok {
			t.Errorf("%v: no Unwrap", want)
		}
	}
	// Those of net/http, and one that can do nothing.
	db := newCluster().open(t)
	check := func(w http.ResponseWriter, r *http.Request) {
		want := optional(w)
		handler(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if got := optional(w); got != want {
				t.Errorf("%s: the writer has %v, want %v", r.Proto, got, want)
			}
		}), db).ServeHTTP(w, r)
	}
	onServers(t, http.HandlerFunc(check), func(t *testing.T, s *httptest.Server) {
		get(t, s, "/")
	})
	check(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	check(struct{ http.ResponseWriter }{httptest.NewRecorder()}, httptest.NewRequest("GET", "/", nil))
}

// recorder notes what reaches it, and whether the token was there by then.
type recorder struct {
	http.ResponseWriter
	calls []string
}

func (r *recorder) note(call string) {
	if len(r.Header()["Set-Cookie"]) == 0 {
		call += " without a cookie"
	}
	r.calls = append(r.calls, call)
}
func (r *recorder) WriteHeader(code int)        { r.note("WriteHeader"); r.ResponseWriter.WriteHeader(code) }
func (r *recorder) Write(p []byte) (int, error) { r.note("Write"); return r.ResponseWriter.Write(p) }
func (r *recorder) WriteString(s string) (int, error) {
	r.note("WriteString")
	return io.WriteString(r.ResponseWriter, s)
}
func (r *recorder) FlushError() error { r.note("FlushError"); return errFlush }
func (r *recorder) Flush()            { r.note("Flush") }
func (r *recorder) ReadFrom(src io.Reader) (int64, error) {
	r.note("ReadFrom")
	return io.Copy(r.ResponseWriter, src)
}
func (r *recorder) Push(target string, _ *http.PushOptions) error {
	r.calls = append(r.calls, "Push "+target)
	return nil
}
func (r *recorder) CloseNotify() <-chan bool {
	r.calls = append(r.calls, "CloseNotify")
	return nil
}
func (r *recorder) SetReadDeadline(time.Time) error {
	r.calls = append(r.calls, "SetReadDeadline")
	return nil
}

var errFlush = errors.New("the flush has failed")

// Whatever sends the header, the token is there before it, and the call reaches the
// wrapped writer as it was made.
func TestWhatSendsTheHeader(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		do         func(t *testing.T, w http.ResponseWriter)
	}{
		{"WriteHeader", "WriteHeader", func(_ *testing.T, w http.ResponseWriter) { w.WriteHeader(http.StatusSeeOther) }},
		{"Write", "Write", func(_ *testing.T, w http.ResponseWriter) { _, _ = w.Write([]byte("x")) }},
		{"Write of nothing", "Write", func(_ *testing.T, w http.ResponseWriter) { _, _ = w.Write(nil) }},
		{"WriteString", "WriteString", func(_ *testing.T, w http.ResponseWriter) { _, _ = io.WriteString(w, "x") }},
		{"Flush", "FlushError", func(_ *testing.T, w http.ResponseWriter) { w.(http.Flusher).Flush() }},
		{"ResponseController.Flush", "FlushError", func(t *testing.T, w http.ResponseWriter) {
			if err := http.NewResponseController(w).Flush(); !errors.Is(err, errFlush) {
				t.Errorf("the flush's error is %v", err)
			}
		}},
		{"ReadFrom", "ReadFrom", func(_ *testing.T, w http.ResponseWriter) {
			_, _ = io.Copy(w, struct{ io.Reader }{strings.NewReader("x")})
		}},
		{"the handler's end", "", func(*testing.T, http.ResponseWriter) {}},
		{"a push and a deadline", "Push /x,CloseNotify,SetReadDeadline,Write", func(t *testing.T, w http.ResponseWriter) {
			if err := w.(http.Pusher).Push("/x", nil); err != nil {
				t.Error(err)
			}
			w.(interface{ CloseNotify() <-chan bool }).CloseNotify()
			if err := http.NewResponseController(w).SetReadDeadline(time.Time{}); err != nil {
				t.Error(err)
			}
			_, _ = w.Write(nil)
		}},
		{"early hints", "WriteHeader without a cookie,WriteHeader", func(_ *testing.T, w http.ResponseWriter) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusOK)
		}},
		{"switching protocols", "WriteHeader", func(_ *testing.T, w http.ResponseWriter) { w.WriteHeader(http.StatusSwitchingProtocols) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, _ *cluster, db *sql.DB) {
				w := &recorder{ResponseWriter: httptest.NewRecorder()}
				h := handler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					insert(t, r.Context(), db)
					tt.do(t, w)
				}), db)
				h.ServeHTTP(w, httptest.NewRequest("POST", "/", nil))
				if got := strings.Join(w.calls, ","); got != tt.want {
					t.Errorf("the calls are %q, want %q", got, tt.want)
				}
				if n := len(w.Header()["Set-Cookie"]); n != 1 {
					t.Errorf("%d cookies are set", n)
				}
			})
		})
	}
}

// bare hides all but Unwrap, as other middleware's wrappers do.
type bare struct{ w http.ResponseWriter }

func (b bare) Header() http.Header         { return b.w.Header() }
func (b bare) Write(p []byte) (int, error) { return b.w.Write(p) }
func (b bare) WriteHeader(code int)        { b.w.WriteHeader(code) }
func (b bare) Unwrap() http.ResponseWriter { return b.w }

// http.ResponseController finds what a wrapper hides, and no header goes out behind
// our back.
func TestFlushPastWrappers(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *cluster, db *sql.DB) {
		rec := httptest.NewRecorder()
		h := handler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, ok := w.(http.Flusher); ok {
				t.Error("the writer pretends to flush")
			}
			insert(t, r.Context(), db)
			if err := http.NewResponseController(bare{w}).Flush(); err != nil {
				t.Error(err)
			}
			if !rec.Flushed || len(rec.Result().Header["Set-Cookie"]) != 1 {
				t.Error("flushed without a cookie")
			}
		}), db)
		h.ServeHTTP(bare{rec}, httptest.NewRequest("POST", "/", nil))

		// What can't be flushed, or taken over, sends no header either.
		rec = httptest.NewRecorder()
		h = handler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c := http.NewResponseController(w)
			if err := c.Flush(); !errors.Is(err, http.ErrNotSupported) {
				t.Errorf("the flush's error is %v", err)
			}
			if _, _, err := c.Hijack(); !errors.Is(err, http.ErrNotSupported) {
				t.Errorf("the hijack's error is %v", err)
			}
			insert(t, r.Context(), db)
		}), db)
		h.ServeHTTP(struct{ http.ResponseWriter }{rec}, httptest.NewRequest("POST", "/", nil))
		if len(rec.Header()["Set-Cookie"]) != 1 {
			t.Error("no cookie is set")
		}
	})
}

// hijackable is a writer whose connection can be taken over.
type hijackable struct {
	http.ResponseWriter
	fails error
}

func (h hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, h.fails }

// Before a connection is taken over, what was written is saved, or waited for: its
// new owner may send no header of ours.
func TestHijack(t *testing.T) {
	for _, hidden := range []bool{false, true} {
		inBubble(t, func(t *testing.T, f *cluster, db *sql.DB) {
			var e told
			var fails error
			var held time.Duration
			s := trusted()
			next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				insert(t, r.Context(), db)
				begin := time.Now()
				if _, _, err := http.NewResponseController(w).Hijack(); !errors.Is(err, fails) {
					t.Errorf("the error is %v", err)
				}
				held = time.Since(begin)
			})
			serve := func(h http.Handler) http.Header {
				w := http.ResponseWriter(hijackable{httptest.NewRecorder(), fails})
				if hidden {
					w = bare{w}
				}
				h.ServeHTTP(w, user(t, "7").request("GET", "/"))
				return w.Header()
			}
			defer time.AfterFunc(300*time.Millisecond, f.apply).Stop()
			serve(handler(t, next, db, observed(&e)))
			if held < 290*time.Millisecond {
				t.Errorf("the connection was handed over after %v", held)
			}
			e.want(t, httpsticky.EventLateWrite, httpsticky.EventHeld, httpsticky.EventWriteInGet)

			serve(handler(t, next, db, observed(&e), stored(s)))
			if held > 100*time.Millisecond || s.saves != 1 {
				t.Errorf("the connection was handed over after %v, and %d saves", held, s.saves)
			}
			e.want(t, httpsticky.EventLateWrite, httpsticky.EventWriteInGet)

			// Where it can't be taken over the response goes on.
			fails = http.ErrNotSupported
			if len(serve(handler(t, next, db, observed(&e)))["Set-Cookie"]) != 1 {
				t.Error("no cookie was set")
			}
			e.want(t, httpsticky.EventWriteInGet)
		})
	}
}

// A write after the header has gone out: the store has it, or the response's end is
// held back.
func TestLateWrites(t *testing.T) {
	inBubble(t, func(t *testing.T, f *cluster, db *sql.DB) {
		var e told
		s := trusted()
		late := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "x")
			insert(t, r.Context(), db)
		})
		c := user(t, "7")
		c.do(handler(t, late, db, observed(&e), stored(s)), "POST", "/")
		e.want(t, httpsticky.EventLateWrite)
		user(t, "7").reads(handler(t, app(t, db), db, stored(s)), "primary")
		if len(c.jar) > 0 {
			t.Error("a cookie was set after the header")
		}

		defer time.AfterFunc(300*time.Millisecond, f.apply).Stop()
		begin := time.Now()
		c.do(handler(t, late, db, observed(&e)), "POST", "/")
		if took := time.Since(begin); took < 300*time.Millisecond {
			t.Errorf("the response ended after %v", took)
		}
		e.want(t, httpsticky.EventLateWrite, httpsticky.EventHeld)

		// What went out with the header is no late write, nor is nothing.
		early := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			insert(t, r.Context(), db)
			_, _ = io.WriteString(w, "x")
			f.write(t, db) // somebody else's
			pass(time.Second)
			node(t, r.Context(), db)
		})
		c.do(handler(t, early, db, observed(&e)), "POST", "/")
		e.want(t)
		// A second write after the first one went out is.
		twice := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			insert(t, r.Context(), db)
			_, _ = io.WriteString(w, "x")
			insert(t, r.Context(), db)
		})
		c.do(handler(t, twice, db, observed(&e), stored(s)), "POST", "/")
		e.want(t, httpsticky.EventLateWrite)
	})
}

// A handler that panics has written all the same: the store has it, who recovers sends
// a response with the cookie, and the panic goes on as it was.
func TestPanics(t *testing.T) {
	for _, value := range []any{"a panic", http.ErrAbortHandler} {
		for _, late := range []bool{false, true} {
			inBubble(t, func(t *testing.T, _ *cluster, db *sql.DB) {
				var e told
				s := trusted()
				h := handler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if late {
						_, _ = io.WriteString(w, "x")
					}
					insert(t, r.Context(), db)
					panic(value)
				}), db, stored(s), observed(&e))
				rec := httptest.NewRecorder()
				func() {
					defer func() {
						if got := recover(); got != value {
							t.Errorf("recovered %v", got)
						}
						http.Error(rec, "failed", http.StatusInternalServerError)
					}()
					h.ServeHTTP(rec, user(t, "7").request("POST", "/"))
				}()
				user(t, "7").reads(handler(t, app(t, db), db, stored(s)), "primary")
				if n := len(rec.Result().Header["Set-Cookie"]); (n == 1) == late {
					t.Errorf("late %v: %d cookies", late, n)
				}
				if late {
					e.want(t, httpsticky.EventLateWrite)
				} else {
					e.want(t)
				}
				// Nobody waits for the end of a response that is broken off.
				if !late {
					return
				}
				h = handler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.WriteString(w, "x")
					insert(t, r.Context(), db)
					panic(value)
				}), db, observed(&e), headerOn)
				begin := time.Now()
				rec = httptest.NewRecorder()
				func() {
					defer func() { _ = recover() }()
					h.ServeHTTP(rec, newClient(t).request("POST", "/"))
				}()
				if took := time.Since(begin); took > 100*time.Millisecond || rec.Flushed {
					t.Errorf("the panic was passed on after %v, flushed %v", took, rec.Flushed)
				}
				e.want(t, httpsticky.EventLateWrite)
			})
		}
	}
}
