package httpsticky_test

import (
	"context"
	"database/sql"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/httpsticky"
)

func (f *cluster) applyTo(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replayed = n
}

func (f *cluster) at() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.flushed
}

// elsewhere reads as a process does that has been told nothing.
func elsewhere(t *testing.T, db *sql.DB) string {
	t.Helper()
	ctx, _ := replicated.WithSession(t.Context())
	return node(t, ctx, db)
}

// noStore is the option of a store that takes nothing, and no cookies.
func noStore(o *httpsticky.Options) {
	s := trusted()
	s.saveFails = errStore
	stored(s)(o)
	cookieOff(o)
}

// What a session has adopted since it wrote is waited for as well.
func TestHeldForWhatWasAdoptedSince(t *testing.T) {
	inBubble(t, func(t *testing.T, f *cluster, db *sql.DB) {
		other := f.open(t)
		pass(time.Second)
		mux := app(t, db)
		mux.HandleFunc("POST /both", func(_ http.ResponseWriter, r *http.Request) {
			insert(t, r.Context(), db)
			own := f.at()
			f.applyTo(own)
			pass(2 * time.Second)
			callee, session := replicated.WithSession(t.Context())
			insert(t, callee, other)
			token, err := session.Token(callee)
			if err == nil {
				err = replicated.SessionFromContext(r.Context()).Adopt(token)
			}
			if err != nil {
				t.Error(err)
			}
			f.applyTo(own) // and no more
			pass(300 * time.Millisecond)
		})
		user(t, "7").do(handler(t, mux, db, noStore), "POST", "/both")
		if got := elsewhere(t, other); got != "primary" {
			t.Errorf("let go, and a read elsewhere was served by the %s, at %d of %d", got, f.replayed, f.flushed)
		}
	})
}

// Replicas that the handle doesn't know may serve others.
func TestHeldForReplicasThatOthersHave(t *testing.T) {
	alone := func(c *replicated.Config) { c.Nodes = c.Nodes[:1] }
	for name, change := range map[string]func(*replicated.Config){
		"another handle's":  func(*replicated.Config) {},
		"another process's": func(c *replicated.Config) { c.ClusterName = "" }, // its floors are apart
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *cluster, reader *sql.DB) {
				writer := f.open(t, alone, change)
				pass(time.Second)
				began := time.Now()
				user(t, "7").do(handler(t, app(t, writer), writer, noStore), "POST", "/write")
				if took := time.Since(began); took < 5*time.Second {
					t.Errorf("let go after %v; a read elsewhere is served by the %s, at %d of %d", took, elsewhere(t, reader), f.replayed, f.flushed)
				}
			})
		})
	}
}

// A deadline that somebody has set around the handler does not end it.
func TestHeldBeyondTheRequestsDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T, f *cluster, db *sql.DB) {
		var e told
		h := handler(t, app(t, db), db, noStore, observed(&e))
		began := time.Now()
		user(t, "7").do(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), 100*time.Millisecond)
			defer cancel()
			h.ServeHTTP(w, r.WithContext(ctx))
		}), "POST", "/write")
		if took := time.Since(began); took < 5*time.Second {
			t.Errorf("let go after %v, at %d of %d", took, f.replayed, f.flushed)
		}
	})
}

// A second write is one also where tokens have no positions, and look alike.
func TestHeldForEachWrite(t *testing.T) {
	for name, coarse := range map[string]bool{"positions": false, "none": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *cluster, db *sql.DB) {
				other := f.open(t)
				pass(time.Second)
				var e told
				h := handler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					f.silence(coarse)
					insert(t, r.Context(), db)
					_, _ = io.WriteString(w, "x")
					f.silence(false)
					f.apply()
					pass(20 * time.Millisecond)
					f.silence(coarse)
					insert(t, r.Context(), db)
				}), db, noStore, observed(&e))
				newClient(t).do(h, "POST", "/")
				f.silence(false)
				kinds := make(map[httpsticky.EventKind]int)
				for _, x := range e.list {
					kinds[x.Kind]++
				}
				if kinds[httpsticky.EventHeld] != 2 || kinds[httpsticky.EventLateWrite] != 1 {
					t.Errorf("told of %v", kinds)
				}
				pass(100 * time.Millisecond)
				if got := elsewhere(t, other); got != "primary" {
					t.Errorf("a read elsewhere was served by the %s, at %d of %d", got, f.replayed, f.flushed)
				}
			})
		})
	}
}
