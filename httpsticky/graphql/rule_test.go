package graphql_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	. "github.com/sqlreplicated/replicated/httpsticky/graphql"
)

type ctxKey struct{}

func mark(with string) func(context.Context) context.Context {
	return func(ctx context.Context) context.Context { return context.WithValue(ctx, ctxKey{}, with) }
}

func TestEachKindHasItsContext(t *testing.T) {
	rule := Rule{Query: mark("q"), Mutation: mark("m"), Subscription: mark("s"), Unknown: mark("u")}
	for doc, want := range map[string]string{"{a}": "q", "mutation{a}": "m", "subscription{a}": "s", "{": "u"} {
		if got := rule.With(t.Context(), document(doc)).Value(ctxKey{}); got != want {
			t.Errorf("%s: got %v, want %s", doc, got, want)
		}
	}
}

func TestThenHasTheLastWord(t *testing.T) {
	rule := Rule{Query: mark("q"), Then: func(ctx context.Context, v Verdict) context.Context {
		return mark(ctx.Value(ctxKey{}).(string) + " " + v.String())(ctx)
	}}
	if got, want := rule.With(t.Context(), document("query Q{a}")).Value(ctxKey{}), "q query Q"; got != want {
		t.Errorf("got %v, want %s", got, want)
	}
	rule.Match = func(*http.Request) bool { return false }
	if rule.With(t.Context(), document("query Q{a}")) != t.Context() {
		t.Error("called for a request that is not concerned")
	}
}

func TestAQueryKeepsItsContextUnlessTold(t *testing.T) {
	if ctx := (Rule{}).With(t.Context(), document("{a}")); ctx != t.Context() {
		t.Error("not the context that was given")
	}
}

// TestStrings pins what goes into logs and metrics.
func TestStrings(t *testing.T) {
	for v, want := range map[Verdict]string{
		{}:                              "unknown",
		{Why: NotGraphQL}:               "unknown (not a GraphQL request)",
		{Why: Encoded}:                  "unknown (encoded body)",
		{Why: TooLarge}:                 "unknown (too large)",
		{Why: Unreadable, Err: errLine}: "unknown (body not readable)",
		{Why: Malformed}:                "unknown (malformed)",
		{Why: Ambiguous}:                "unknown (ambiguous)",
		{Why: NoOperation}:              "unknown (no operation)",
		{Why: NotPersisted}:             "unknown (not a known persisted document)",
		{Why: HookFailed}:               "unknown (persisted documents not available)",
		{Why: 200}:                      "unknown (Reason(200))",
		{Kind: Query}:                   "query",
		{Kind: Mutation, Name: "M"}:     "mutation M",
		{Kind: Subscription, Name: "S"}: "subscription S",
		{Kind: 200}:                     "Kind(200)",
	} {
		if got := v.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for _, k := range []Kind{Query, Mutation, Subscription} {
		if KindOf(k.String()) != k {
			t.Errorf("%s is not read back", k)
		}
	}
	for _, text := range strings.Fields("unknown Query fragment") {
		if KindOf(text) != Unknown {
			t.Errorf("%q has a kind", text)
		}
	}
}
