package graphql_test

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	. "github.com/sqlreplicated/replicated/httpsticky/graphql"
)

// rivals are the ways in which middlewares and proxies tell mutations from queries
// without a parser. Each takes a request's method and the text of its document.
var rivals = map[string]func(method, doc string) bool{
	"by the verb":              func(method, _ string) bool { return method == http.MethodPost },
	"the word in the text":     func(_, doc string) bool { return strings.Contains(doc, "mutation") },
	"the word at the start":    func(_, doc string) bool { return strings.HasPrefix(strings.TrimSpace(doc), "mutation") },
	"the word in front of a {": func(_, doc string) bool { return mutationBrace.MatchString(doc) },
	"the word on a line":       func(_, doc string) bool { return mutationLine.MatchString(doc) },
	"the word after a brace": func(_, doc string) bool {
		return mutationAfterBrace.MatchString(strings.TrimSpace(stringsAndComments.ReplaceAllString(doc, "")))
	},
}

var (
	mutationBrace      = regexp.MustCompile(`mutation[^{]*\{`)
	mutationLine       = regexp.MustCompile(`(?m)^\s*mutation\b`)
	mutationAfterBrace = regexp.MustCompile(`(?:^|}\s*)mutation\b`)
	stringsAndComments = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|#.*`)
)

// TestWhatRivalsTakeForMutations has a document for each of their mistakes, and for
// each document somebody who makes one.
func TestWhatRivalsTakeForMutations(t *testing.T) {
	wrong := map[string]int{}
	for _, tt := range []struct {
		doc  string
		want Kind
	}{
		{`{ viewer { name } }`, Query}, // by POST, as clients send it
		{"# replaces the old mutation\n{ viewer { name } }", Query},
		{`query { search(text: "mutation { x }") }`, Query},
		{`query mutationLog { log }`, Query},
		{`{ mutation: viewer { name } }`, Query},
		{"{\n  mutation {\n    id\n  }\n}", Query},
		{`{ a { b } mutation { c } }`, Query},
		{"query {\n  a(note: \"\"\"\n    mutation\n  \"\"\") }", Query},
		{"# saves the cart\nmutation { save }", Mutation},
		{"query Q { a }\nmutation M { b }", Mutation},
		{`fragment F on Cart { id } mutation { save { ...F } }`, Mutation},
		{"query Q { a },mutation M { b }", Mutation},
		{"\ufeffmutation { save }", Mutation},
		{`"saves the cart" mutation { save }`, Mutation},
	} {
		v := decide(t, Rule{}, document(tt.doc))
		if v.Kind != tt.want {
			t.Errorf("%q: %v, want %v", tt.doc, v, tt.want)
		}
		mistaken := false
		for name, isMutation := range rivals {
			if isMutation(http.MethodPost, tt.doc) != (tt.want == Mutation) {
				wrong[name]++
				mistaken = true
			}
		}
		if !mistaken {
			t.Errorf("%q: nobody gets this wrong", tt.doc)
		}
	}
	for name := range rivals {
		if wrong[name] == 0 {
			t.Errorf("%s is never wrong", name)
		}
	}
	t.Log(wrong)
}

// TestOfTwoOperationsTheNamedOneCounts: the text alone cannot tell.
func TestOfTwoOperationsTheNamedOneCounts(t *testing.T) {
	const doc = "query Q { a }\nmutation M { b }"
	for name, want := range map[string]Kind{"Q": Query, "M": Mutation} {
		if v := decide(t, Rule{}, document(doc, `,"operationName":"`, name, `"`)); v.Kind != want {
			t.Errorf("%s: %v", name, v)
		}
	}
}

// TestAMiddlewareThatEatsTheBody shows what goes wrong without handing it on: the
// usual look at a body leaves none for the handler.
func TestAMiddlewareThatEatsTheBody(t *testing.T) {
	req := document("{ a }")
	want := `{"query":"{ a }"}`
	if v := (Rule{}).Decide(req); v.Kind != Query {
		t.Fatal(v)
	}
	for range 2 { // also where two rules look at it
		(Rule{}).Decide(req)
	}
	if got, err := io.ReadAll(req.Body); string(got) != want {
		t.Errorf("the handler reads %q, %v", got, err)
	}
}
