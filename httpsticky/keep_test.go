package httpsticky_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/httpsticky"
)

// trusted returns a store in memory that has been there for ever.
func trusted() *store {
	whole := time.Hour
	return &store{inner: httpsticky.NewMemory(0), whole: &whole}
}

func user(t *testing.T, name string) *client {
	c := newClient(t)
	c.header.Set("User", name)
	return c
}

// A store that fails on load: reads are fresh, and nothing fails. After three failures
// in a row it is left alone for a second, then asked by one request at a time.
func TestStoreFailsOnLoad(t *testing.T) {
	inBubble(t, func(t *testing.T, f *cluster, db *sql.DB) {
		var e told
		s := trusted()
		h := handler(t, app(t, db), db, stored(s), observed(&e))
		c := user(t, "7")
		c.reads(h, "replica")
		s.set(func() { s.loadFails = errStore })
		if c.reads(h, "primary"); s.loads != 2 {
			t.Errorf("the store was asked %d times", s.loads)
		}
		if list := e.want(t, httpsticky.EventStoreLoadFailed); !errors.Is(list[0].Err, errStore) {
			t.Errorf("the event says %v", list[0].Err)
		}
		for range 5 {
			f.write(t, db) // so that a fresh read needs the primary
			c.reads(h, "primary")
		}
		if s.loads != 4 {
			t.Errorf("the store was asked %d times while it rests", s.loads)
		}
		e.want(t, httpsticky.EventStoreLoadFailed, httpsticky.EventStoreLoadFailed, httpsticky.EventStoreLoadFailed,
			httpsticky.EventStoreLoadFailed, httpsticky.EventStoreLoadFailed)
		pass(time.Second)
		c.reads(h, "primary")
		c.reads(h, "primary")
		if s.loads != 5 {
			t.Errorf("the store was asked %d times after its rest", s.loads)
		}
		s.set(func() { s.loadFails = nil })
		f.apply()
		pass(3 * time.Second)
		c.reads(h, "replica")
		c.reads(h, "replica")
		if s.loads != 7 {
			t.Errorf("the store was asked %d times when it worked again", s.loads)
		}
		// By all who want, at once.
		s.set(func() { s.hung = true })
		done := make(chan bool)
		for range 3 {
			go func() {
				h.ServeHTTP(httptest.NewRecorder(), c.request("GET", "/read"))
				done <- true
			}()
		}
		for range 3 {
			<-done
		}
		if s.loads != 10 {
			t.Errorf("the store was asked %d times of 3", s.loads-7)
		}
	})
}

// A store that hangs costs the first three requests its timeout, and the others nothing.
func TestStoreHangs(t *testing.T) {
	inBubble(t, func(t *testing.T, f *cluster, db *sql.DB) {
		s := trusted()
		h := handler(t, app(t, db), db, stored(s))
		c := user(t, "7")
		s.set(func() { s.hung = true })
		begin := time.Now()
		for range 100 {
			c.do(h, "GET", "/read")
		}
		if took := time.Since(begin); took != 150*time.Millisecond {
			t.Errorf("100 requests took %v", took)
		}
		pass(time.Second)
		// Many at once: one of them waits.
		begin = time.Now()
		took := make(chan time.Duration)
		for range 20 {
			go func() {
				h.ServeHTTP(httptest.NewRecorder(), c.request("GET", "/read"))
				took <- time.Since(begin)
			}()
		}
		waited := 0
		for range 20 {
			if <-took > 0 {
				waited++
			}
		}
		if waited != 1 {
			t.Errorf("%d requests waited for the store", waited)
		}
		// A write waits once, since the cookie carries the token.
		pass(time.Second)
		begin = time.Now()
		c.do(h, "POST", "/write")
		if took := time.Since(begin); took > 150*time.Millisecond {
			t.Errorf("a write took %v", took)
		}
		c.cookie()
	})
}

// A client that goes away while the store is asked says nothing of the store.
func TestClientGoesAwayWhileStoreIsAsked(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *cluster, db *sql.DB) {
		s := trusted()
		h := handler(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), db, stored(s))
		c := user(t, "7")
		s.set(func() { s.hung = true })
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		h.ServeHTTP(httptest.NewRecorder(), c.request("GET", "/").WithContext(ctx))
		s.set(func() { s.hung = false })
		h.ServeHTTP(httptest.NewRecorder(), c.request("GET", "/"))
		if s.loads != 2 {
			t.Errorf("the store was asked %d times", s.loads)
		}
	})
}

// A store that began anew is as one that has lost a token of everybody.
func TestStoreEmptied(t *testing.T) {
	inBubble(t, func(t *testing.T, f *cluster, db *sql.DB) {
		var e told
		s := trusted()
		h := handler(t, app(t, db), db, stored(s), observed(&e), cookieOff)
		c := user(t, "7")
		c.do(h, "POST", "/write")
		e.want(t)
		c.reads(h, "primary")
		s.set(func() { s.inner, s.whole = httpsticky.NewMemory(0), nil })
		for range 3 {
			c.reads(h, "primary")
		}
		e.want(t, httpsticky.EventStoreEmptied)
		f.apply()
		pass(29 * time.Second)
		f.write(t, db)
		c.reads(h, "primary")
		f.apply()
		pass(2 * time.Second)
		f.write(t, db)
		c.reads(h, "replica") // which lacks what nobody has to see
		e.want(t)
		s.set(func() { s.inner = httpsticky.NewMemory(0) })
		c.reads(h, "primary")
		e.want(t, httpsticky.EventStoreEmptied)
	})
}

// A store that takes no token: the cookie carries it, and for the age of tokens this
// process reads fresh with the key.
func TestStoreFailsOnSave(t *testing.T) {
	inBubble(t, func(t *testing.T, f *cluster, db *sql.DB) {
		var e told
		s := trusted()
		h := handler(t, app(t, db), db, stored(s), observed(&e))
		c := user(t, "7")
		s.set(func() { s.saveFails = errStore })
		c.do(h, "POST", "/write")
		e.want(t, httpsticky.EventStoreSaveFailed)
		c.cookie()
		c.reads(h, "primary")
		s.set(func() { s.saveFails = nil })
		pass(time.Second) // its rest
		other := user(t, "7")
		loads := s.loads
		other.reads(h, "primary")
		if s.loads != loads {
			t.Error("the store was asked of what it is known to lack")
		}
		user(t, "8").reads(h, "replica")
		pass(29*time.Second - time.Millisecond)
		f.apply()
		pass(time.Second)
		f.write(t, db)
		other.reads(h, "replica") // the key is safe again
		e.want(t)
	})
}

// Where nothing carries the token, the response waits until the replica has the write.
func TestHeldUntilReplicasHaveIt(t *testing.T) {
	for _, tt := range []struct {
		name string
		key  string
		hold time.Duration
		// when the replica gets the write, and how long the response takes
		apply, most, least time.Duration
		fails              bool
	}{
		{"until the replica has it", "7", 0, 300 * time.Millisecond, 2 * time.Second, 300 * time.Millisecond, false},
		{"for max_lag at most", "7", 0, time.Hour, 5 * time.Second, 4900 * time.Millisecond, false},
		{"for less", "7", time.Second, time.Hour, 1100 * time.Millisecond, time.Second, true},
		{"not at all", "7", -1, time.Hour, 100 * time.Millisecond, 0, true},
		{"without a key", "", 0, 300 * time.Millisecond, 2 * time.Second, 300 * time.Millisecond, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *cluster, db *sql.DB) {
				var e told
				s := trusted()
				s.saveFails = errStore
				h := handler(t, app(t, db), db, stored(s), cookieOff, observed(&e), func(o *httpsticky.Options) { o.Hold = tt.hold })
				c := user(t, tt.key)
				timer := time.AfterFunc(tt.apply, f.apply)
				defer timer.Stop()
				begin := time.Now()
				w := c.do(h, "POST", "/write")
				if took := time.Since(begin); took > tt.most || took < tt.least || w.StatusCode != http.StatusSeeOther {
					t.Errorf("answered %s after %v", w.Status, took)
				}
				want := []httpsticky.EventKind{httpsticky.EventStoreSaveFailed, httpsticky.EventHeld}
				if tt.key == "" {
					want = want[1:]
				}
				if list := e.want(t, want...); len(list) == len(want) && (list[len(list)-1].Err != nil) != tt.fails {
					t.Errorf("the event says %v", list[len(list)-1].Err)
				}
			})
		})
	}
}

// What others have written on the request's behalf is waited for as well.
func TestHeldForWhatWasAdopted(t *testing.T) {
	inBubble(t, func(t *testing.T, f *cluster, db *sql.DB) {
		var e told
		h := handler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() { _, _ = io.WriteString(w, "ok") }()
			ctx, s := replicated.WithSession(t.Context())
			insert(t, ctx, db)
			token, err := s.Token(ctx)
			if err != nil {
				t.Error(err)
			}
			if err := replicated.SessionFromContext(r.Context()).Adopt(token); err != nil {
				t.Error(err)
			}
		}), db, stored(trusted()), cookieOff, observed(&e))
		defer time.AfterFunc(300*time.Millisecond, f.apply).Stop()
		begin := time.Now()
		newClient(t).do(h, "GET", "/")
		if took := time.Since(begin); took < 300*time.Millisecond || took > 5100*time.Millisecond {
			t.Errorf("answered after %v", took)
		}
		e.want(t, httpsticky.EventHeld) // and it wrote nothing in a GET
	})
}

// What is written is saved also while the store rests: that the cookie has it tells
// the user's other devices nothing.
func TestSavesWhileTheStoreRests(t *testing.T) {
	for name, cookies := range map[string]func(*httpsticky.Options){"cookies": func(*httpsticky.Options) {}, "none": cookieOff} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, _ *cluster, db *sql.DB) {
				var e told
				s := trusted()
				h := handler(t, app(t, db), db, stored(s), cookies, observed(&e))
				s.set(func() { s.loadFails = errStore })
				for range 2 {
					user(t, "7").do(h, "GET", "/read")
				}
				user(t, "7").do(h, "POST", "/write")
				if s.saves != 1 {
					t.Errorf("the store was asked %d times", s.saves)
				}
				e.want(t, httpsticky.EventStoreLoadFailed, httpsticky.EventStoreLoadFailed, httpsticky.EventStoreLoadFailed)
			})
		})
	}
}

// A store that panics is asked again when it has rested.
func TestStoreThatPanics(t *testing.T) {
	inBubble(t, func(t *testing.T, f *cluster, db *sql.DB) {
		s := trusted()
		h := handler(t, app(t, db), db, stored(s))
		c := user(t, "7")
		for range 5 {
			s.set(func() { s.panics = true })
			func() {
				defer func() { _ = recover() }()
				c.do(h, "GET", "/read")
			}()
			pass(2 * time.Second)
		}
		s.set(func() { s.panics = false })
		f.apply()
		pass(3 * time.Second)
		before := s.loads
		c.reads(h, "replica")
		if s.loads != before+1 {
			t.Error("it is not asked any more")
		}
	})
}

// withKey serves what is given with WithKey for the tenant that the header names.
func withKey(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if tenant := r.Header.Get("Tenant"); tenant != "" {
			r = r.WithContext(httpsticky.WithKey(r.Context(), "tenant:"+tenant))
		}
		next.ServeHTTP(w, r)
	})
}

// With WithKey, what one user of a tenant has written all others of it read; those of
// others are not kept from replicas.
func TestWithKey(t *testing.T) {
	inBubble(t, func(t *testing.T, f *cluster, db *sql.DB) {
		var e told
		other := f.open(t)
		pass(time.Second)
		s := trusted()
		same := func(o *httpsticky.Options) { o.Store, o.Observe = s, e.observe }
		here, there := handler(t, withKey(app(t, db)), db, same), handler(t, withKey(app(t, other)), other, same)
		member := func(tenant string) *client {
			c := newClient(t)
			c.header.Set("Tenant", tenant)
			return c
		}
		member("42").do(here, "POST", "/write")
		member("42").reads(there, "primary")
		member("43").reads(there, "replica")
		newClient(t).reads(there, "replica")
		f.apply()
		pass(3 * time.Second)
		member("42").reads(there, "replica")
		e.want(t)

		// No cookie tells the others: where the store fails, the response waits.
		s.set(func() { s.saveFails = errStore })
		defer time.AfterFunc(300*time.Millisecond, f.apply).Stop()
		begin := time.Now()
		member("42").do(here, "POST", "/write")
		if took := time.Since(begin); took < 300*time.Millisecond {
			t.Errorf("answered after %v", took)
		}
		e.want(t, httpsticky.EventStoreSaveFailed, httpsticky.EventHeld)
	})
}

// Whenever the key is given, what the request writes is saved under it.
func TestWithKeyAtAnyTime(t *testing.T) {
	for name, serve := range map[string]func(t *testing.T, db *sql.DB, w http.ResponseWriter, r *http.Request){
		"before the write": func(t *testing.T, db *sql.DB, _ http.ResponseWriter, r *http.Request) {
			insert(t, httpsticky.WithKey(r.Context(), "k"), db)
		},
		"after the write": func(t *testing.T, db *sql.DB, _ http.ResponseWriter, r *http.Request) {
			insert(t, r.Context(), db)
			httpsticky.WithKey(r.Context(), "k")
		},
		"after the header": func(t *testing.T, db *sql.DB, w http.ResponseWriter, r *http.Request) {
			insert(t, r.Context(), db)
			_, _ = io.WriteString(w, "x")
			httpsticky.WithKey(r.Context(), "k")
		},
		"write after the header": func(t *testing.T, db *sql.DB, w http.ResponseWriter, r *http.Request) {
			ctx := httpsticky.WithKey(r.Context(), "k")
			_, _ = io.WriteString(w, "x")
			insert(t, ctx, db)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, _ *cluster, db *sql.DB) {
				s := trusted()
				h := handler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(t, db, w, r) }), db, stored(s), cookieOff)
				user(t, "7").do(h, "POST", "/")
				for _, key := range []string{"k", "7"} {
					kept, err := s.inner.Load(t.Context(), key)
					if err != nil || len(kept.Tokens) == 0 {
						t.Errorf("the store keeps %d tokens of %q, %v", len(kept.Tokens), key, err)
					}
				}
			})
		})
	}
}

// A key of a tenant tells the user himself nothing where he has a cookie: what came too
// late for that is waited for.
func TestLateWriteUnderASharedKey(t *testing.T) {
	inBubble(t, func(t *testing.T, f *cluster, db *sql.DB) {
		var e told
		late := withKey(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "x")
			insert(t, r.Context(), db)
		}))
		c := newClient(t)
		c.header.Set("Tenant", "42")
		defer time.AfterFunc(300*time.Millisecond, f.apply).Stop()
		begin := time.Now()
		c.do(handler(t, late, db, stored(trusted()), observed(&e)), "POST", "/")
		if took := time.Since(begin); took < 300*time.Millisecond {
			t.Errorf("answered after %v", took)
		}
		e.want(t, httpsticky.EventLateWrite, httpsticky.EventHeld)
		// Where there are no cookies, keys are all that users are known by.
		begin = time.Now()
		c.do(handler(t, late, db, stored(trusted()), observed(&e), cookieOff), "POST", "/")
		if took := time.Since(begin); took > 100*time.Millisecond {
			t.Errorf("answered after %v", took)
		}
		e.want(t, httpsticky.EventLateWrite)
	})
}

// Where there is no store to ask, reads are fresh, which is more.
func TestWithKeyWithoutStore(t *testing.T) {
	inBubble(t, func(t *testing.T, f *cluster, db *sql.DB) {
		h := handler(t, withKey(app(t, db)), db)
		c := newClient(t)
		c.reads(h, "replica")
		c.header.Set("Tenant", "42")
		c.reads(h, "primary")
		pass(3 * time.Second)
		ctx, _ := replicated.WithSession(t.Context())
		f.write(t, db)
		if got := node(t, httpsticky.WithKey(ctx, "tenant:42"), db); got != "primary" {
			t.Errorf("outside a request the read was served by %s", got)
		}
		if httpsticky.WithKey(ctx, "") != ctx {
			t.Error("no key, and another context")
		}
	})
}

// The keys that are remembered are bounded: more of them are all.
func TestUnsafeKeysAreBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, f *cluster, db *sql.DB) {
		s := trusted()
		s.saveFails = errStore
		h := handler(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.Method == "GET" {
				return
			}
			ctx := r.Context()
			for i := range httpsticky.MaxUnsafe + 1 {
				ctx = httpsticky.WithKey(ctx, fmt.Sprint("k", i))
			}
			insert(t, ctx, db)
		}), db, stored(s), func(o *httpsticky.Options) { o.Hold = -1 })
		user(t, "7").do(h, "POST", "/")
		pass(time.Second) // its rest
		loads := s.loads
		for _, name := range []string{"7", "8"} {
			user(t, name).do(h, "GET", "/") // all keys are unsafe: nothing is asked
		}
		if s.loads != loads {
			t.Errorf("the store was asked %d times", s.loads-loads)
		}
		pass(30 * time.Second)
		user(t, "8").do(h, "GET", "/")
		if s.loads != loads+1 {
			t.Errorf("the store was asked %d times when the keys were safe again", s.loads-loads)
		}
	})
}

// However long keys are, what is remembered of them is not.
func TestUnsafeKeysAreShort(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *cluster, db *sql.DB) {
		s := trusted()
		s.saveFails = errStore
		h := handler(t, app(t, db), db, stored(s))
		heap := func() int64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		before := heap()
		for i := range 64 {
			user(t, fmt.Sprint(i)+strings.Repeat("x", 1<<20)).do(h, "POST", "/write")
		}
		if grown := heap() - before; grown > 16<<20 {
			t.Errorf("%d MiB are kept of 64 keys", grown>>20)
		}
		user(t, "63"+strings.Repeat("x", 1<<20)).reads(h, "primary")
		runtime.KeepAlive(h)
	})
}
