package httpsticky_test

import (
	"context"
	"database/sql"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/httpsticky"
)

// Errors name the option, and both sides of what conflicts.
func TestOptionsErrors(t *testing.T) {
	db := newCluster().open(t)
	slow := newCluster().open(t, func(c *replicated.Config) { c.MaxLag = 40 * time.Second })
	empty, err := sql.Open(replicated.DriverName, "")
	if err != nil {
		t.Fatal(err)
	}
	defer empty.Close()
	store := httpsticky.NewMemory(0)
	unmeasured := newCluster().open(t, func(c *replicated.Config) { c.Tracker, c.Sticky = replicated.TrackerOff, time.Minute })
	nothing := func(ctx context.Context) context.Context { return ctx }
	type options = httpsticky.Options
	for _, tt := range []struct {
		name   string
		change func(*options)
		want   []string // "": no error
	}{
		{"defaults", func(*options) {}, nil},
		{"no databases", func(o *options) { o.Databases = nil }, []string{"Databases is empty", "max_lag"}},
		{"a nil database", func(o *options) { o.Databases = append(o.Databases, nil) }, []string{"Databases[1] is nil"}},
		{"a database without a DSN", func(o *options) { o.Databases = []*sql.DB{empty} }, []string{"Databases[0]"}},
		{"no keys", func(o *options) { o.Keys = nil }, []string{"Keys is empty"}},
		{"no keys for a header", func(o *options) { o.Keys = nil; o.Cookie.Off = true; o.Header = "X" }, []string{"Keys is empty"}},
		{"no keys for a store", func(o *options) { o.Keys = nil; o.Cookie.Off = true; o.Store = store }, nil},
		{"a short key", func(o *options) { o.Keys = append(o.Keys, make([]byte, 31)) }, []string{"Keys[1]", "31", "32"}},
		{"nothing carries", func(o *options) { o.Cookie.Off = true }, []string{"nothing can carry", "Cookie.Off"}},
		{"a key without a store", func(o *options) { o.Key = userOf }, []string{"Key is set", "no Store"}},
		{"a bad header", func(o *options) { o.Header = "a b" }, []string{"Header", `"a b"`}},
		{"max age of max_lag + 5 s", func(o *options) { o.Cookie.MaxAge = 10 * time.Second }, nil},
		{"max age below that", func(o *options) { o.Cookie.MaxAge = 9 * time.Second }, []string{"Cookie.MaxAge is 9s", "at least 10s", "5s (max_lag"}},
		{"the slowest counts", func(o *options) { o.Databases = append(o.Databases, slow); o.Cookie.MaxAge = 44 * time.Second },
			[]string{"Cookie.MaxAge is 44s", "at least 45s", "40s (max_lag"}},
		{"where nothing is measured", func(o *options) { o.Databases = append(o.Databases, unmeasured); o.Cookie.MaxAge = 44 * time.Second },
			[]string{"Cookie.MaxAge is 44s", "at least 1m5s", "1m0s (max_lag, or sticky"}},
		{"the store's TTL too", func(o *options) { o.Cookie = httpsticky.Cookie{Off: true, MaxAge: time.Second}; o.Store = store }, []string{"Cookie.MaxAge is 1s"}},
		{"negative max age", func(o *options) { o.Cookie.MaxAge = -1 }, []string{"Cookie.MaxAge"}},
		{"negative store timeout", func(o *options) { o.StoreTimeout = -1 }, []string{"StoreTimeout is negative"}},
		{"negative token timeout", func(o *options) { o.TokenTimeout = -1 }, []string{"TokenTimeout is negative"}},
		{"__Host- with a path", func(o *options) { o.Cookie = httpsticky.Cookie{Name: "__Host-x", Path: "/a"} }, []string{"drop the cookie __Host-x"}},
		{"__host- with a domain", func(o *options) { o.Cookie = httpsticky.Cookie{Name: "__host-x", Domain: "example.com"} }, []string{"drop the cookie __host-x"}},
		{"__Secure- that is not", func(o *options) { o.Cookie = httpsticky.Cookie{Name: "__Secure-x", Insecure: true} }, []string{"drop the cookie __Secure-x"}},
		{"SameSite=None that is not secure", func(o *options) { o.Cookie = httpsticky.Cookie{SameSite: http.SameSiteNoneMode, Insecure: true} }, []string{"SameSite=None"}},
		{"a bad name", func(o *options) { o.Cookie.Name = "a;b" }, []string{"Options.Cookie"}},
		{"a bad path", func(o *options) { o.Cookie.Path = "/a;b" }, []string{"Options.Cookie"}},
		{"a path that browsers would replace", func(o *options) { o.Cookie.Path = "app" }, []string{`Cookie.Path "app"`, "slash"}},
		{"a bad domain", func(o *options) { o.Cookie.Domain = "a b" }, []string{"Options.Cookie"}},
		{"cookies that are off are not checked", func(o *options) { o.Cookie = httpsticky.Cookie{Off: true, Name: "a;b"}; o.Header = "X" }, nil},
		{"a rule that does nothing", func(o *options) { o.Rules = []httpsticky.Rule{{Pattern: "/"}} }, []string{"Rules[0]", "With is nil"}},
		{"a malformed pattern", func(o *options) { o.Rules = []httpsticky.Rule{{"/", nothing}, {"/{", nothing}} }, []string{"Rules[1]", "/{"}},
		{"patterns that conflict", func(o *options) { o.Rules = []httpsticky.Rule{{"/a/{x}", nothing}, {"/{y}/b", nothing}} }, []string{"Rules[1]: pattern \"/{y}/b\" conflicts"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options{Databases: []*sql.DB{db}, Keys: [][]byte{key1}}
			tt.change(&o)
			h, err := httpsticky.Handler(http.NotFoundHandler(), o)
			if (err == nil) != (tt.want == nil) || (h == nil) != (tt.want != nil) {
				t.Fatalf("the error is %v", err)
			}
			for _, part := range tt.want {
				if text := err.Error(); !strings.HasPrefix(text, "httpsticky: ") || !strings.Contains(text, part) {
					t.Errorf("the error %q does not say %q", text, part)
				}
			}
		})
	}
	if _, err := httpsticky.Handler(nil, options{Databases: []*sql.DB{db}, Keys: [][]byte{key1}}); err == nil {
		t.Error("no handler, and no error")
	}
}

func TestEventKindStrings(t *testing.T) {
	for k, want := range map[httpsticky.EventKind]string{
		0: "unknown", httpsticky.EventTokenRejected: "token-rejected", httpsticky.EventTokenCoarse: "token-coarse",
		httpsticky.EventStoreLoadFailed: "store-load-failed", httpsticky.EventStoreSaveFailed: "store-save-failed",
		httpsticky.EventStoreEmptied: "store-emptied", httpsticky.EventLateWrite: "late-write",
		httpsticky.EventWriteInGet: "write-in-get", httpsticky.EventHeld: "held", httpsticky.EventHeld + 1: "unknown",
	} {
		if got := k.String(); got != want {
			t.Errorf("kind %d is %q, want %q", k, got, want)
		}
	}
}
