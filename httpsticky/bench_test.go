package httpsticky_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/httpsticky"
)

// discard is a writer that costs nothing.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Flush()                      {}

// plain returns what serves one request that neither carries nor makes a token, with
// everything on that costs it nothing.
func plain(t testing.TB) func() {
	db := newCluster().open(t)
	body := []byte("ok")
	h := handler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if replicated.SessionFromContext(r.Context()) == nil {
			t.Error("no session")
		}
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write(body)
	}), db, headerOn, func(o *httpsticky.Options) { o.Observe = func(httpsticky.Event) { t.Error("an event") } })
	r := httptest.NewRequest("GET", "/orders/1", nil)
	r.Header.Set("Cookie", "session=0123456789abcdef; theme=dark; __Host-replicated=x")
	w := &discard{header: http.Header{}}
	return func() { h.ServeHTTP(w, r) }
}

func BenchmarkPlainRequest(b *testing.B) {
	serve := plain(b)
	b.ReportAllocs()
	for b.Loop() {
		serve()
	}
}

// A request that carries a cookie: what checking it costs.
func BenchmarkRequestWithCookie(b *testing.B) {
	db := newCluster().open(b)
	h := handler(b, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), db)
	r := httptest.NewRequest("GET", "/orders/1", nil)
	w1 := httptest.NewRecorder()
	handler(b, app(b, db), db).ServeHTTP(w1, httptest.NewRequest("POST", "/write", nil))
	r.AddCookie(w1.Result().Cookies()[0])
	w := &discard{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(w, r)
	}
}

func TestPlainRequestAllocations(t *testing.T) {
	if got := testing.AllocsPerRun(1000, plain(t)); got > 6 {
		t.Errorf("a request that neither carries nor makes a token costs %v allocations, want 6 at most", got)
	}
}
