package graphql_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/httpsticky/graphql"
)

// Then is where verdicts are seen. Here they also name the statements of a request,
// for events and reports: with GraphQL all requests have one path.
func ExampleRule() {
	rule := graphql.Rule{
		Query: replicated.WithReplica,
		Then: func(ctx context.Context, v graphql.Verdict) context.Context {
			fmt.Println(v)
			return replicated.WithCaller(ctx, "graphql "+v.String())
		},
	}
	for _, body := range []string{
		`{"query": "query ProductPage { product { mutation } }"}`,
		`{"query": "# not a query {\n mutation AddToCart { add }"}`,
		`{"query": "query A { a } mutation B { b }", "operationName": "A"}`,
		`[{"query": "{ a }"}, {"query": "mutation { b }"}]`,
		`{"query": "{ a }", "Query": "mutation { b }"}`,
		`{"extensions": {"persistedQuery": {"version": 1, "sha256Hash": "4ef8d269"}}}`,
	} {
		req := httptest.NewRequest(http.MethodPost, "/graphql", strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		rule.With(req.Context(), req)
	}
	// Output:
	// query ProductPage
	// mutation AddToCart
	// query A
	// mutation
	// unknown (ambiguous)
	// unknown (not a known persisted document)
}

// Documents that are fixed when clients are built are a map.
func ExampleRule_persisted() {
	documents := map[string]string{"cart-1": "query Cart { cart { items } }"}
	rule := graphql.Rule{
		Persisted: func(_ context.Context, id string) (string, bool, error) {
			document, ok := documents[id]
			return document, ok, nil
		},
	}
	req := httptest.NewRequest(http.MethodGet, "/graphql?documentId=cart-1", nil)
	fmt.Println(rule.Decide(req))
	// Output: query Cart
}

// A server that serves many operations on one WebSocket connection tells of each in
// a hook (gqlgen: AroundOperations, with graphql.GetOperationContext).
func ExampleRule_Apply() {
	type operation struct{ keyword, name string }
	rule := graphql.Rule{
		Match: func(r *http.Request) bool { return r.URL.Path == "/graphql" && r.Header.Get("Upgrade") == "" },
	}
	around := func(ctx context.Context, op operation, next func(context.Context)) {
		next(rule.Apply(ctx, graphql.Verdict{Kind: graphql.KindOf(op.keyword), Name: op.name}))
	}
	around(context.Background(), operation{"query", "Cart"}, func(ctx context.Context) {
		fmt.Println("as it was:", ctx == context.Background())
	})
	around(context.Background(), operation{"mutation", "AddToCart"}, func(ctx context.Context) {
		fmt.Println("as it was:", ctx == context.Background())
	})
	// Output:
	// as it was: true
	// as it was: false
}
