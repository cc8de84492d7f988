package httpsticky_test

import (
	"database/sql"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/httpsticky"
)

func body(t *testing.T, w *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(w.Body)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

// What a service behind has written is part of the header of a gateway that has
// written too.
func TestHeaderOfAServiceBehind(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *cluster, db *sql.DB) {
		behind := newCluster()
		backDB := behind.open(t)
		pass(time.Second)
		back := handler(t, app(t, backDB), backDB, headerOn, cookieOff)
		front := handler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			insert(t, r.Context(), db)
			rec := httptest.NewRecorder()
			back.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), r.Method, r.URL.Path, nil))
			for name, values := range rec.Result().Header {
				w.Header()[name] = values
			}
			w.WriteHeader(rec.Code)
		}), db, headerOn, cookieOff)
		c := newClient(t)
		w := c.do(front, "POST", "/write")
		c.header["Replicated-Sticky"] = w.Header["Replicated-Sticky"]
		if got := body(t, c.do(back, "GET", "/read")); got != "primary" {
			t.Errorf("the next read behind was served by the %s", got)
		}
	})
}

// A cluster may be given a name while tokens are on their way: PostgreSQL's has an
// identity of its own.
func TestClusterThatIsGivenAName(t *testing.T) {
	for name, first := range map[string]bool{"old to new": true, "new to old": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *cluster, named *sql.DB) {
				unnamed := f.open(t, func(c *replicated.Config) { c.ClusterName = "" })
				pass(time.Second)
				from, to := unnamed, named
				if !first {
					from, to = named, unnamed
				}
				c := newClient(t)
				c.do(handler(t, app(t, from), from), "POST", "/write")
				if got := body(t, c.do(handler(t, app(t, to), to), "GET", "/read")); got != "primary" {
					t.Errorf("served by the %s", got)
				}
			})
		})
	}
}

// However many responses come at once, all their cookies are gone after the next.
func TestCookiesDoNotPileUp(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *cluster, db *sql.DB) {
		h := handler(t, app(t, db), db)
		var jar []*http.Cookie // oldest first, as browsers send them (RFC 6265, section 5.4)
		for burst := range 4 {
			line := ""
			for _, k := range jar {
				line += "; " + k.Name + "=" + k.Value
			}
			if len(jar) > 40 {
				t.Fatalf("before burst %d there are %d cookies", burst, len(jar))
			}
			for range 40 {
				r := httptest.NewRequest("POST", "/write", nil)
				r.Header.Set("Cookie", strings.TrimPrefix(line, "; "))
				rec := httptest.NewRecorder()
				h.ServeHTTP(rec, r)
				for _, k := range rec.Result().Cookies() {
					jar = slices.DeleteFunc(jar, func(o *http.Cookie) bool { return o.Name == k.Name })
					if k.MaxAge > 0 {
						jar = append(jar, k)
					}
				}
			}
			pass(2 * time.Second)
			jar = slices.DeleteFunc(jar, func(k *http.Cookie) bool { // those that ask for everything end by their age
				return strings.Contains(k.Value, replicated.CoarseToken("?"))
			})
		}
	})
}

// What asks for everything ends with its age, however often the user writes: his reads
// go to replicas again.
func TestNothingIsFreshForEver(t *testing.T) {
	inBubble(t, func(t *testing.T, f *cluster, db *sql.DB) {
		for name, prepare := range map[string]func(*client){
			"rejected": func(c *client) { c.jar["__Host-replicated-aaaaaa"] = cookie{"x", time.Now().Add(time.Hour)} },
			"coarse": func(c *client) {
				f.silence(true)
				c.do(handler(t, app(t, db), db), "POST", "/write")
				f.silence(false)
			},
		} {
			step(t, name, func() {
				h := handler(t, app(t, db), db)
				c := newClient(t)
				prepare(c)
				by := make(map[string]int)
				for range 12 {
					c.do(h, "POST", "/write")
					f.apply()
					pass(10 * time.Second)
					by[body(t, c.do(h, "GET", "/read"))]++
				}
				if by["replica"] < 8 {
					t.Errorf("of the reads of two minutes %v", by)
				}
			})
		}
	})
}

// So is one without positions, of a cluster that the gateway does not have.
func TestCoarseHeaderOfAServiceBehind(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *cluster, db *sql.DB) {
		behind := replicated.CoarseToken("of every cluster")
		h := handler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			insert(t, r.Context(), db)
			w.Header().Set("Replicated-Sticky", httpsticky.Sign(key1, "header", behind, time.Now()))
		}), db, headerOn, cookieOff)
		token := strings.Split(newClient(t).do(h, "POST", "/").Header.Get("Replicated-Sticky"), ".")[2]
		if all, err := replicated.MergeTokens(token, behind); err != nil || all != token {
			t.Errorf("%q lacks what the service's asks for (%v)", token, err)
		}
	})
}
