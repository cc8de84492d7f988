package httpsticky_test

import (
	"bytes"
	"context"
	"database/sql"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/httpsticky"
)

type ruleKey struct{}

func mark(name string) func(context.Context) context.Context {
	return func(ctx context.Context) context.Context {
		before, _ := ctx.Value(ruleKey{}).(string)
		return context.WithValue(ctx, ruleKey{}, before+name)
	}
}

// The most specific rule is applied, as by http.ServeMux, and to paths that the mux
// would redirect the rule of where it would.
func TestRules(t *testing.T) {
	db := newCluster().open(t)
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, _ := r.Context().Value(ruleKey{}).(string)
		_, _ = io.WriteString(w, got)
	})
	h := handler(t, next, db, func(o *httpsticky.Options) {
		o.Rules = []httpsticky.Rule{
			{Pattern: "/reports/", With: mark("reports")},
			{Pattern: "POST /reports/", With: mark("post")},
			{Pattern: "GET /reports/{id}/live", With: mark("live")},
			{Pattern: "GET example.com/", With: mark("host")},
			{Pattern: "DELETE /things", With: httpsticky.Wishes(mark("a"), mark("b"))},
		}
	})
	for _, tt := range []struct{ method, url, want string }{
		{"GET", "http://x/", ""},
		{"GET", "http://x/report", ""},
		{"GET", "http://x/reports/", "reports"},
		{"GET", "http://x/reports/1", "reports"},
		{"GET", "http://x/reports", "reports"},
		{"GET", "http://x//reports/../reports/1", "reports"},
		{"POST", "http://x/reports/1", "post"},
		{"GET", "http://x/reports/1/live", "live"},
		{"GET", "http://example.com/x", "host"},
		{"GET", "http://example.com:8080/x", "host"},
		{"DELETE", "http://x/things", "ab"},
		{"GET", "http://x/things", ""}, // of another method
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(tt.method, tt.url, nil))
		if got := w.Body.String(); got != tt.want {
			t.Errorf("%s %s: rule %q, want %q", tt.method, tt.url, got, tt.want)
		}
	}
}

// Rules route, and come after tokens.
func TestRulesRoute(t *testing.T) {
	inBubble(t, func(t *testing.T, f *cluster, db *sql.DB) {
		mux := app(t, db)
		mux.HandleFunc("GET /pinned", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, node(t, r.Context(), db)) })
		h := handler(t, mux, db, func(o *httpsticky.Options) {
			o.Rules = []httpsticky.Rule{{Pattern: "/pinned", With: replicated.WithPrimary}}
		})
		c := newClient(t)
		c.reads(h, "replica")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, c.request("GET", "/pinned"))
		if got := w.Body.String(); got != "primary" {
			t.Errorf("served by %s", got)
		}
	})
}

// With has the last word, sees the context, and may replace the body of the request
// that is passed on, and not the caller's.
func TestWith(t *testing.T) {
	db := newCluster().open(t)
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mark, _ := r.Context().Value(ruleKey{}).(string)
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, mark+" "+string(body))
	})
	for _, none := range []bool{false, true} {
		h := handler(t, next, db, func(o *httpsticky.Options) {
			o.Rules = []httpsticky.Rule{{Pattern: "/", With: mark("rule")}}
			o.With = func(ctx context.Context, r *http.Request) context.Context {
				if replicated.SessionFromContext(ctx) == nil || r.Context() != ctx {
					t.Error("not the request's context")
				}
				body, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(bytes.NewReader(bytes.ToUpper(body)))
				if none {
					return nil
				}
				return mark("+with")(ctx)
			}
		})
		r, w := httptest.NewRequest("POST", "/", strings.NewReader("body")), httptest.NewRecorder()
		before := r.Body
		h.ServeHTTP(w, r)
		want := "rule+with BODY"
		if none {
			want = "rule BODY"
		}
		if got := w.Body.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if r.Body != before {
			t.Error("the caller's request was changed")
		}
	}
}

// Who runs a statement is the mux's pattern, with the method: never a path.
func TestCaller(t *testing.T) {
	f := newCluster()
	var mu sync.Mutex
	var callers []string
	db := f.open(t, func(c *replicated.Config) {
		c.Observe = &replicated.Observer{Routed: func(e replicated.RouteEvent) {
			mu.Lock()
			defer mu.Unlock()
			callers = append(callers, e.Caller)
		}}
	})
	mux := http.NewServeMux()
	read := func(_ http.ResponseWriter, r *http.Request) { node(t, r.Context(), db) }
	mux.HandleFunc("GET /orders/{id}", read)
	mux.HandleFunc("/any/{id}", read)
	mux.HandleFunc("/named", func(_ http.ResponseWriter, r *http.Request) {
		node(t, replicated.WithCaller(r.Context(), "a name"), db)
	})
	withMux, plain := handler(t, mux, db), handler(t, http.HandlerFunc(read), db)
	for _, tt := range []struct {
		h                    http.Handler
		method, target, want string
	}{
		{withMux, "GET", "/orders/1", "GET /orders/{id}"},
		{withMux, "PUT", "/any/1", "PUT /any/{id}"},
		{withMux, "GET", "/named", "a name"},
		{plain, "GET", "/orders/1", "GET (unmatched)"},
		{plain, "", "/orders/1", "GET (unmatched)"},
		{plain, "BREW", "/orders/1", "OTHER (unmatched)"},
	} {
		callers = nil
		r := httptest.NewRequest("GET", tt.target, nil)
		r.Method = tt.method
		tt.h.ServeHTTP(httptest.NewRecorder(), r)
		if len(callers) != 1 || callers[0] != tt.want {
			t.Errorf("%s %s: the caller is %q, want %q", tt.method, tt.target, callers, tt.want)
		}
	}
}
