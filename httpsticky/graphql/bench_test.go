package graphql_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/sqlreplicated/replicated/httpsticky/graphql"
)

const typical = `query ProductPage($slug: String!, $first: Int = 20, $after: String) {
  product(slug: $slug) {
    ...ProductFields
    reviews(first: $first, after: $after) {
      pageInfo { hasNextPage endCursor }
      edges { node { id rating body author { name avatarUrl(size: 48) } } }
    }
  }
}
fragment ProductFields on Product {
  id name description price { amount currency } images(first: 4) { url alt }
}`

// BenchmarkWith is what a request costs before its handler runs. The last ones are
// the worst that a client can ask for within the default limits.
func BenchmarkWith(b *testing.B) {
	for _, bb := range []struct {
		name string
		req  *http.Request
	}{
		{"another path", otherPath()},
		{"shorthand", document("{ a }")},
		{"typical", document(typical, `,"variables":{"slug":"x"}`)},
		{"typical, GET", get("query", typical)},
		{"megabyte of variables", document("{ a }", `,"variables":{"x":"`, strings.Repeat("x", 1<<20-100), `"}`)},
		{"too large, declared", document("{ a } #" + strings.Repeat("x", 1<<20))},
		{"megabyte of tokens", document("{" + strings.Repeat("a ", 1<<19-50) + "}")},
		{"megabyte of batch", postJSON("[" + strings.Repeat(`{"query":"{a}"},`, 1<<16-2) + `{}]`)},
		{"megabyte of keys", postJSON("{" + strings.Repeat(`"":0,`, 1<<20/5-4) + `"":0}`)},
		{"megabyte of JSON nesting", postJSON(strings.Repeat("[", 1<<20))},
		{"nested fields", document(strings.Repeat("{a", 999) + strings.Repeat("}", 999))},
	} {
		b.Run(bb.name, func(b *testing.B) {
			var text []byte
			if bb.req.Body != nil {
				text, _ = io.ReadAll(bb.req.Body)
			}
			length := bb.req.ContentLength
			rule, ctx := Rule{}, b.Context()
			body := bytes.NewReader(nil)
			b.ReportAllocs()
			for b.Loop() {
				if text != nil {
					body.Reset(text)
					bb.req.Body, bb.req.ContentLength = io.NopCloser(body), length
				}
				rule.With(ctx, bb.req)
			}
		})
	}
}

func otherPath() *http.Request {
	req := document("{ a }")
	req.URL.Path = "/orders"
	return req
}

// TestOtherRequestsCostNothing: the rule runs for every request of the process.
func TestOtherRequestsCostNothing(t *testing.T) {
	req, ctx := otherPath(), t.Context()
	if n := testing.AllocsPerRun(100, func() { Rule{}.With(ctx, req) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
