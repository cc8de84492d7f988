package httpsticky_test

import (
	"bytes"
	"database/sql"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/httpsticky"
)

// A clock that is set back does not silence the log until it is there again.
func TestLogWhenTheClockIsSetBack(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	got := httpsticky.Admitted(at, at.Add(time.Second/2), at.Add(-time.Hour), at.Add(-time.Hour+time.Second/2), at.Add(-time.Hour+time.Second))
	if want := []bool{true, false, true, false, true}; !slices.Equal(got, want) {
		t.Errorf("the lines are %v, want %v", got, want)
	}
}

// The log has a line a second of each kind at most, with its level, and neither key nor
// value nor path.
func TestLog(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *cluster, db *sql.DB) {
		var b bytes.Buffer
		var e told
		s := trusted()
		mux := http.NewServeMux()
		mux.HandleFunc("GET /orders/{id}", func(_ http.ResponseWriter, r *http.Request) { insert(t, r.Context(), db) })
		h := handler(t, mux, db, stored(s), observed(&e), func(o *httpsticky.Options) {
			o.Logger = slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
		s.set(func() { s.loadFails, s.saveFails = errStore, errStore })
		c := user(t, "a-secret-key")
		for range 3 {
			c.do(h, "GET", "/orders/a-secret-path")
		}
		c.jar["__Host-replicated-aaaaaa"] = cookie{"a-secret-value", time.Now().Add(time.Minute)}
		c.do(h, "GET", "/orders/a-secret-path")
		lines := func() (n map[string]int) {
			n = map[string]int{}
			for line := range strings.Lines(b.String()) {
				for _, part := range strings.Fields(line) {
					if strings.HasPrefix(part, "level=") {
						n[part]++
					}
				}
			}
			return n
		}
		// The store on load and on save, the cookie, the write in a GET.
		if got := lines(); got["level=WARN"] != 2 || got["level=INFO"] != 1 || got["level=DEBUG"] != 1 {
			t.Errorf("the log is\n%s", b.String())
		}
		// The key is not asked of once it is known to be unsafe.
		if n := len(e.list); n != 1+4+1+4 {
			t.Errorf("%d events were told", n)
		}
		pass(time.Second)
		c.do(h, "GET", "/orders/a-secret-path")
		if got := lines(); got["level=WARN"] != 3 || got["level=DEBUG"] != 2 {
			t.Errorf("a second later the log is\n%s", b.String())
		}
		if strings.Contains(b.String(), "secret") || !strings.Contains(b.String(), `caller="GET /orders/{id}"`) {
			t.Errorf("the log is\n%s", b.String())
		}
	})
}
