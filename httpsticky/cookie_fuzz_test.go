package httpsticky_test

import (
	"database/sql"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/httpsticky"
)

// carrier is what cookies of the default name are signed for.
const carrier = "cookie __Host-replicated"

// fuzzed returns a handler to take in with, without any server.
func fuzzed(t testing.TB) http.Handler {
	c, err := replicated.NewConnector(replicated.Config{
		ClusterName: "fuzz", Driver: "postgres",
		Nodes: []replicated.Node{{Name: "primary", Connector: newCluster().primary.Connector(0)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(c)
	t.Cleanup(func() { _ = db.Close() })
	return handler(t, http.NotFoundHandler(), db, headerOn, func(o *httpsticky.Options) { o.Keys = [][]byte{key1, key2} })
}

// Whatever a request brings: no panic, no token that was not signed for where it is
// found, and no more work than is allowed.
func FuzzCookie(f *testing.F) {
	now := time.Unix(1_800_000_000, 0)
	token := replicated.CoarseToken("?")
	signed := map[string][]string{ // that were ever made, by carrier
		carrier:  {httpsticky.Sign(key1, carrier, token, now), httpsticky.Sign(key2, carrier, token, now.Add(time.Hour)), httpsticky.Sign(key1, carrier, token, now.Add(-time.Minute))},
		"header": {httpsticky.Sign(key1, "header", token, now)},
	}
	for _, v := range append(slices.Clone(signed[carrier]), signed["header"][0], "", "v1...", "v1.0.a.", "v2.x.y.z", `"v1"`,
		httpsticky.Sign(key1, carrier, "", now), httpsticky.Sign(make([]byte, 32), carrier, token, now)) {
		f.Add("__Host-replicated-aaaaaa="+v, v)
		f.Add("a=b; __Host-replicated-aaaaaa="+v+"; __Host-replicated-bbbbbb=\""+v+"\"", v+","+v)
	}
	f.Add(strings.Repeat("__Host-replicated-aaaaaa=v1.a.b.c;", 40), strings.Repeat("x", 10_000))
	h := fuzzed(f)
	f.Fuzz(func(t *testing.T, cookies, header string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header["Cookie"] = []string{cookies}
		r.Header["Replicated-Sticky"] = []string{header}
		got := httpsticky.Take(h, r, now)
		if got.Values > httpsticky.MaxValues || got.Bytes > httpsticky.MaxBytes || len(got.Cookies) > httpsticky.MaxValues {
			t.Errorf("too much work: %+v", got)
		}
		// Each token that was accepted stands in for one value that was made.
		made := 0
		for c, list := range signed {
			for _, v := range list {
				where := cookies
				if c == "header" {
					where = header
				}
				made += strings.Count(where, v)
			}
		}
		if len(got.Tokens) > made {
			t.Errorf("%d tokens were accepted of %d that were made", len(got.Tokens), made)
		}
		for _, accepted := range got.Tokens {
			if accepted != token {
				t.Errorf("%q was accepted", accepted)
			}
		}
		for _, name := range got.Cookies {
			if len(name) != len("__Host-replicated-")+6 || strings.ContainsAny(name, " ;,=\"\r\n") {
				t.Errorf("the cookie %q would be deleted", name)
			}
		}
	})
}

// No change of one byte of what was signed is accepted, whatever the token, the keys
// and the time; what was signed is, until its age is up.
func TestSignedValuesProperty(t *testing.T) {
	h := fuzzed(t)
	random := rand.New(rand.NewPCG(1, 2))
	const chars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."
	take := func(value string, at time.Time) httpsticky.Taken {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header["Cookie"] = []string{"__Host-replicated-aaaaaa=" + value}
		return httpsticky.Take(h, r, at)
	}
	for range 2000 {
		token := make([]byte, 1+random.IntN(httpsticky.MaxToken))
		for i := range token {
			token[i] = chars[random.IntN(len(chars)-1)]
		}
		issued := time.Unix(random.Int64N(1<<33), 0)
		value := httpsticky.Sign([][]byte{key1, key2}[random.IntN(2)], carrier, string(token), issued)
		age := time.Duration(random.Int64N(int64(330 * time.Second))).Truncate(time.Second)
		if got := take(value, issued.Add(age)); len(got.Tokens) != 1 || got.Tokens[0] != string(token) || got.Rejected != nil {
			t.Fatalf("%s after %v: %+v", value, age, got)
		}
		if got := take(value, issued.Add(331*time.Second+age)); len(got.Tokens) != 0 || got.Rejected != nil {
			t.Fatalf("%s is too old: %+v", value, got)
		}
		changed := []byte(value)
		i := random.IntN(len(changed))
		for changed[i] == value[i] {
			changed[i] = chars[random.IntN(len(chars))]
		}
		if got := take(string(changed), issued); len(got.Tokens) != 0 || got.Rejected == nil {
			t.Fatalf("%s, changed to %s, was accepted: %+v", value, changed, got)
		}
	}
}
