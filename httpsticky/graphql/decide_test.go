package graphql_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"

	. "github.com/sqlreplicated/replicated/httpsticky/graphql"
)

type decided struct {
	name string
	req  *http.Request
	rule Rule
	want Verdict
}

func query(name string) Verdict    { return Verdict{Kind: Query, Name: name} }
func mutation(name string) Verdict { return Verdict{Kind: Mutation, Name: name} }
func unknown(why Reason) Verdict   { return Verdict{Why: why} }

func run(t *testing.T, cases []decided) {
	t.Helper()
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			if got := decide(t, tt.rule, tt.req); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestTheOperationDecidesNotTheText(t *testing.T) {
	run(t, []decided{
		{name: "shorthand", req: document(`{ a }`), want: query("")},
		{name: "query", req: document(`query Q($id: ID! = 1) @live { a(id: $id) { b } }`), want: query("Q")},
		{name: "mutation", req: document(`mutation M { a }`), want: mutation("M")},
		{name: "mutation without a name", req: document(`mutation{a}`), want: mutation("")},
		{name: "subscription", req: document(`subscription S { a }`), want: Verdict{Kind: Subscription, Name: "S"}},
		{name: "mutation in a comment", req: document("# mutation { a }\n{ a }"), want: query("")},
		{name: "mutation after a comment", req: document("# query { a }\nmutation { a }"), want: mutation("")},
		{name: "mutation after a comment that a carriage return ends", req: document("# query {\rmutation { a }"), want: mutation("")},
		{name: "mutation in a string", req: document(`{ a(b: "} mutation { x }") }`), want: query("")},
		{name: "mutation in a block string", req: document("{ a(b: \"\"\"\n} mutation { x }\n\"\"\") }"), want: query("")},
		{name: "empty strings", req: document(`{ a(b: "", c: """""", d: ["a""b"]) }`), want: query("")},
		{name: "query in a string", req: document(`mutation { a(b: "query { x }") }`), want: mutation("")},
		{name: "field named mutation", req: document(`{ mutation { query } }`), want: query("")},
		{name: "alias named mutation", req: document(`{ mutation: a }`), want: query("")},
		{name: "argument and variable named mutation", req: document(`query ($mutation: Int) { a(mutation: $mutation) }`), want: query("")},
		{name: "query named mutation", req: document(`query mutation { a }`), want: query("mutation")},
		{name: "mutation named query", req: document(`mutation query { a }`), want: mutation("query")},
		{name: "fragment named mutation", req: document(`fragment mutation on T { a } { ...mutation }`), want: query("")},
		{name: "fragments first, mutation last", req: document(`fragment F on T { a } mutation M { ...F }`), want: mutation("M")},
		{name: "directive and enum named mutation", req: document(`{ a(b: mutation) @mutation }`), want: query("")},
		{name: "default value with braces", req: document(`mutation ($a: In = {b: {c: 1}}) { a }`), want: mutation("")},
		{name: "no space at all", req: document(`query{a}fragment F on T{a}`), want: query("")},
		{name: "commas as space", req: document(`,,mutation,M,{a}`), want: mutation("M")},
		{name: "byte order mark in the document", req: document("\ufeffmutation { a }"), want: mutation("")},
		{name: "description before the operation", req: document(`"query { x }" mutation M { a }`), want: mutation("M")},
		{name: "escaped characters in JSON", req: postJSON(`{"qu\u0065ry":"mut\u0061tion\u0020{a}"}`), want: mutation("")},
		{name: "name of 64 bytes", req: document(`query ` + strings.Repeat("q", 64) + `{ a }`), want: query(strings.Repeat("q", 64))},
		{name: "name of 65 bytes", req: document(`query ` + strings.Repeat("q", 65) + `{ a }`), want: query("")},

		{name: "fragments only", req: document(`fragment mutation on T { a }`), want: unknown(NoOperation)},
		{name: "comments only", req: document(`# mutation`), want: unknown(NoOperation)},
		{name: "empty document", req: document(``), want: unknown(NoOperation)},
		{name: "not a document", req: document(`query {`), want: unknown(Malformed)},
		{name: "second operation does not parse", req: document(`{ a } mutation`), want: unknown(Malformed)},
		{name: "schema", req: document(`type T { a: Int }`), want: unknown(Malformed)},
		{name: "control character in a comment", req: document("{ a } # \x00 mutation { a }"), want: unknown(Malformed)},
	})
}

// TestWhereStringsEnd has documents that are a query to one lexer, and hold a
// mutation to another.
func TestWhereStringsEnd(t *testing.T) {
	run(t, []decided{
		{name: "four quotes end a block string", want: unknown(Ambiguous),
			req: document(`{ a(b: [""" x """", " ]) } mutation M { c } #", """ """]) }`, `,"operationName":"M"`)},
		{name: "no block strings", want: unknown(Ambiguous),
			req: document(`{ a(x: [""" p " ]) } mutation M { b } #"""]) }`, `,"operationName":"M"`)},
		{name: "escaped quotes", req: document(`{ a(b: """ \""" } mutation { x } """) }`), want: unknown(Ambiguous)},
		{name: "seven quotes", req: document(`{ a(b: """""""""") }`), want: unknown(Ambiguous)},
		{name: "a description", req: document(`"""{ """"query {` + "\na }"), want: unknown(Ambiguous)},
		{name: "in a comment", req: document("{ a } # \"\"\"\"\n"), want: query("")},
	})
}

func TestOperationName(t *testing.T) {
	const both = `query Q { a } mutation M { a }`
	named := func(doc, name string) *http.Request { return document(doc, `,"operationName":`, name) }
	run(t, []decided{
		{name: "chooses the query", req: named(both, `"Q"`), want: query("Q")},
		{name: "chooses the mutation", req: named(both, `"M"`), want: mutation("M")},
		{name: "missing", req: document(both), want: mutation("")},
		{name: "null", req: named(both, `null`), want: mutation("")},
		{name: "empty", req: named(both, `""`), want: mutation("")},
		{name: "unknown", req: named(both, `"X"`), want: mutation("")},
		{name: "in another case", req: named(both, `"q"`), want: mutation("")},
		{name: "unknown, queries only", req: named(`query A { a } query B { b }`, `"X"`), want: query("")},
		{name: "missing, queries only", req: document(`query A { a } query B { b }`), want: query("")},
		{name: "missing, query and subscription", req: document(`query A { a } subscription B { b }`), want: unknown(Ambiguous)},
		{name: "of the only operation", req: named(`mutation M { a }`, `"M"`), want: mutation("M")},
		{name: "not of the only operation", req: named(`mutation M { a }`, `"Q"`), want: mutation("M")},
		{name: "there twice", req: named(`query Q { a } mutation Q { a }`, `"Q"`), want: mutation("")},
		{name: "chooses beside one without a name", req: named(`{ a } mutation M { a }`, `"M"`), want: mutation("M")},
		{name: "no string", req: named(both, `1`), want: unknown(Malformed)},
		{name: "first in the object", req: postJSON(`{"operationName":"Q","variables":{"query":"mutation{a}"},"query":` + quote(both) + `}`), want: query("Q")},
	})
}

func TestJSON(t *testing.T) {
	run(t, []decided{
		{name: "variables of all kinds", req: document(`{ a }`, `,"variables":{"a":[1,-2.5e3,true,null,"]}\"",{}],"b":{"query":"x"}}`), want: query("")},
		{name: "space everywhere", req: postJSON(" {\t\"query\"\n:\r\"{ a }\" , \"variables\" : { } } \n"), want: query("")},
		{name: "byte order mark", req: postJSON("\ufeff" + `{"query":"mutation { a }"}`), want: mutation("")},
		{name: "strange keys", req: postJSON(`{"":1,"queryx":"mutation{a}","quer":2,"query":"{a}","\\\"":[]}`), want: query("")},
		{name: "other charset of the same bytes", req: post("application/json; charset=UTF-8", `{"query":"{a}"}`), want: query("")},
		{name: "+json", req: post("application/graphql+json", `{"query":"{a}"}`), want: query("")},

		{name: "key twice", req: postJSON(`{"query":"{a}","query":"mutation{a}"}`), want: unknown(Ambiguous)},
		{name: "key twice, escaped", req: postJSON(`{"query":"{a}","\u0071uery":"{a}"}`), want: unknown(Ambiguous)},
		{name: "key in two cases", req: postJSON(`{"query":"{a}","Query":"mutation{a}"}`), want: unknown(Ambiguous)},
		{name: "key in another case", req: postJSON(`{"QUERY":"{a}"}`), want: unknown(Ambiguous)},
		{name: "key that folds by Unicode", req: document(`{ a }`, `,"exten`+"\u017f"+`ions":{}`), want: unknown(Ambiguous)},
		{name: "operationName twice", req: document(`query A{a} mutation B{a}`, `,"operationName":"A","operationName":"B"`), want: unknown(Ambiguous)},
		{name: "hash twice", req: postJSON(`{"extensions":{"persistedQuery":{"sha256Hash":"a","sha256Hash":"b"}}}`), want: unknown(Ambiguous)},

		{name: "two values", req: postJSON(`{"query":"{a}"}{"query":"mutation{a}"}`), want: unknown(Malformed)},
		{name: "unfinished", req: postJSON(`{"query":"{a}"`), want: unknown(Malformed)},
		{name: "empty body", req: postJSON(` `), want: unknown(Malformed)},
		{name: "not an object", req: postJSON(`"{a}"`), want: unknown(Malformed)},
		{name: "null", req: postJSON(`null`), want: unknown(Malformed)},
		{name: "query no string", req: postJSON(`{"query":["{a}"]}`), want: unknown(Malformed)},
		{name: "query null", req: postJSON(`{"query":null}`), want: unknown(NoOperation)},
		{name: "empty object", req: postJSON(`{}`), want: unknown(NoOperation)},
		{name: "extensions no object", req: document(`{ a }`, `,"extensions":1`), want: unknown(Malformed)},
		{name: "extensions null", req: document(`{ a }`, `,"extensions":null`), want: query("")},
		{name: "not UTF-8", req: postJSON("{\"query\":\"{a} #\xff\"}"), want: unknown(Malformed)},
		{name: "UTF-16", req: postJSON("\xff\xfe{\x00}\x00"), want: unknown(Malformed)},
		{name: "nested beyond reason", req: document(`{ a }`, `,"variables":`, strings.Repeat("[", 20000), strings.Repeat("]", 20000)), want: unknown(Malformed)},
	})
}

func TestBatch(t *testing.T) {
	q, m, s := `{"query":"query Q{a}"}`, `{"query":"mutation M{a}"}`, `{"query":"subscription S{a}"}`
	batch := func(items ...string) *http.Request { return postJSON("[" + strings.Join(items, ",") + "]") }
	many := func(n int, item string) []string { return strings.Split(strings.Repeat(item+"\n", n-1)+item, "\n") }
	run(t, []decided{
		{name: "of one", req: batch(q), want: query("Q")},
		{name: "of queries", req: batch(q, q), want: query("Q")},
		{name: "of different queries", req: batch(q, `{"query":"query R{a}"}`), want: query("")},
		{name: "one mutation, last", req: batch(q, q, m), want: mutation("")},
		{name: "one mutation, first", req: batch(m, q), want: mutation("")},
		{name: "a mutation and nonsense", req: batch(`1`, m), want: mutation("")},
		{name: "a query and nonsense", req: batch(q, `1`), want: unknown(Malformed)},
		{name: "query and subscription", req: batch(q, s), want: unknown(Ambiguous)},
		{name: "with ids of the client", req: batch(`{"id":"1","query":"{a}"}`, `{"id":2,"query":"{b}"}`), want: query("")},
		{name: "empty", req: batch(), want: unknown(NoOperation)},
		{name: "nested", req: batch(`[` + q + `]`), want: unknown(Malformed)},
		{name: "a hundred", req: batch(many(100, q)...), want: query("Q")},
		{name: "a hundred and one", req: batch(many(101, q)...), want: unknown(TooLarge)},
		{name: "a hundred and one, with a mutation", req: batch(append(many(100, q), m)...), want: unknown(TooLarge)},
		{name: "tokens count together", req: batch(q, q, q), rule: Rule{MaxTokens: 14}, want: unknown(TooLarge)},
		{name: "tokens that suffice", req: batch(q, q, q), rule: Rule{MaxTokens: 15}, want: query("Q")},
	})
}

func TestURL(t *testing.T) {
	head := get("query", "{a}")
	head.Method = http.MethodHead
	withBody := get("query", "{a}")
	withBody.Body, withBody.ContentLength = postJSON(`{"query":"mutation{a}"}`).Body, -1
	semicolon := get("query", "{a}")
	semicolon.URL.RawQuery += ";query=mutation{a}"
	run(t, []decided{
		{name: "query", req: get("query", "query Q{a}", "variables", `{"a":1}`, "cachebuster", "1"), want: query("Q")},
		{name: "mutation, which no server may run", req: get("query", "mutation M{a}"), want: mutation("M")},
		{name: "operationName", req: get("query", "query Q{a} mutation M{a}", "operationName", "Q"), want: query("Q")},
		{name: "HEAD", req: head, want: query("")},
		{name: "nothing", req: get(), want: unknown(NoOperation)},
		{name: "twice", req: get("query", "{a}", "query", "mutation{a}"), want: unknown(Ambiguous)},
		{name: "in another case", req: get("query", "{a}", "QUERY", "mutation{a}"), want: unknown(Ambiguous)},
		{name: "with a body", req: withBody, want: unknown(Ambiguous)},
		{name: "semicolon", req: semicolon, want: unknown(Malformed)},
		{name: "not UTF-8", req: get("query", "{a} #\xff"), want: unknown(Malformed)},
		{name: "extensions that are no JSON", req: get("query", "{a}", "extensions", "{"), want: unknown(Malformed)},
		{name: "empty extensions", req: get("query", "{a}", "extensions", ""), want: query("")},
	})
}

func TestPostWithParametersInTheURL(t *testing.T) {
	at := func(req *http.Request, rawQuery string) *http.Request {
		req.URL.RawQuery = rawQuery
		return req
	}
	const both = `query Q { a } mutation M { a }`
	run(t, []decided{
		{name: "others", req: at(document(`{ a }`), "debug=1&id=7"), want: query("")},
		{name: "query", req: at(document(`{ a }`), "query={a}"), want: unknown(Ambiguous)},
		{name: "document", req: at(document(`{ a }`), "documentId=x"), want: unknown(Ambiguous)},
		{name: "the same name", req: at(document(both, `,"operationName":"Q"`), "operationName=Q"), want: query("Q")},
		{name: "another name", req: at(document(both, `,"operationName":"Q"`), "operationName=M"), want: mutation("")},
		{name: "a name that only the URL has", req: at(document(both), "operationName=Q"), want: mutation("")},
		{name: "a name for the only operation", req: at(document(`query Q{a}`), "operationName=Q"), want: query("Q")},
	})
}

func TestOtherBodies(t *testing.T) {
	with := func(req *http.Request, key string, values ...string) *http.Request {
		req.Header[key] = values
		return req
	}
	method := func(method string) *http.Request {
		req := document(`{ a }`)
		req.Method = method
		return req
	}
	empty := httptest.NewRequest(http.MethodPost, "/graphql", nil)
	empty.Header.Set("Content-Type", "application/json")
	const q = `{"query":"{a}"}`
	run(t, []decided{
		{name: "application/graphql", req: post("application/graphql", "# mutation\nquery Q { a }"), want: query("Q")},
		{name: "application/graphql, mutation", req: post("application/graphql; charset=utf-8", "mutation M { a }"), want: mutation("M")},
		{name: "application/graphql, JSON in it", req: post("application/graphql", q), want: unknown(Malformed)},
		{name: "application/graphql, not UTF-8", req: post("application/graphql", "{a} #\xff"), want: unknown(Malformed)},
		{name: "method QUERY", req: method("QUERY"), want: query("")},
		{name: "method PUT", req: method("PUT"), want: unknown(NotGraphQL)},
		{name: "method OPTIONS", req: method("OPTIONS"), want: unknown(NotGraphQL)},
		{name: "accepts application/graphql-response+json", req: with(document(`{a}`), "Accept", "application/graphql-response+json"), want: query("")},
		{name: "accepts a stream", req: with(document(`subscription{a}`), "Accept", "text/event-stream"), want: Verdict{Kind: Subscription}},
		{name: "HTTP/2 without TLS", req: with(document(`{a}`), "Upgrade", "h2c"), want: query("")},
		{name: "HTTP/2 without TLS, or another", req: with(document(`{a}`), "Upgrade", "h2c, websocket"), want: unknown(NotGraphQL)},
		{name: "upgrade", req: with(get("query", "{a}"), "Upgrade", "websocket"), want: unknown(NotGraphQL)},
		{name: "no body", req: empty, want: unknown(NotGraphQL)},
		{name: "no content type", req: post("", q), want: unknown(NotGraphQL)},
		{name: "two content types", req: with(document(`{a}`), "Content-Type", "application/json", "application/graphql"), want: unknown(Ambiguous)},
		{name: "broken content type", req: post("application/json; charset", q), want: unknown(NotGraphQL)},
		{name: "text", req: post("text/plain", q), want: unknown(NotGraphQL)},
		{name: "form", req: post("application/x-www-form-urlencoded", "query=%7Ba%7D"), want: unknown(NotGraphQL)},
		{name: "charset UTF-7", req: post("application/json; charset=utf-7", q), want: unknown(Encoded)},
		{name: "gzip", req: with(postJSON("\x1f\x8b\x08\x00"), "Content-Encoding", "gzip"), want: unknown(Encoded)},
		{name: "gzip, decoded before", req: with(document(`{a}`), "Content-Encoding", "GZIP"), want: query("")},
		{name: "gzip, empty", req: with(postJSON(" "), "Content-Encoding", "gzip"), want: unknown(Malformed)},
		{name: "identity", req: with(document(`{a}`), "Content-Encoding", "identity"), want: query("")},
		{name: "brotli", req: with(document(`{a}`), "Content-Encoding", "br"), want: unknown(Encoded)},
		{name: "gzip twice", req: with(document(`{a}`), "Content-Encoding", "gzip, gzip"), want: unknown(Encoded)},
	})
}

func TestLimits(t *testing.T) {
	const text = `{"query":"{a}"}`
	declared := func(n int64) *http.Request {
		req := postJSON(text)
		req.ContentLength = n
		return req
	}
	atOnce := func(text string) *http.Request {
		req := declared(-1)
		req.Body = io.NopCloser(iotest.DataErrReader(strings.NewReader(text)))
		return req
	}
	deep := strings.Repeat("{a", 5000) + strings.Repeat("}", 5000)
	wide := "{" + strings.Repeat("a ", 15000) + "}"
	run(t, []decided{
		{name: "a body of MaxBody", req: declared(-1), rule: Rule{MaxBody: int64(len(text))}, want: query("")},
		{name: "a byte more", req: declared(-1), rule: Rule{MaxBody: int64(len(text)) - 1}, want: unknown(TooLarge)},
		{name: "a byte more, with the end", req: atOnce(text), rule: Rule{MaxBody: int64(len(text)) - 1}, want: unknown(TooLarge)},
		{name: "a byte more, declared", req: postJSON(text), rule: Rule{MaxBody: int64(len(text)) - 1}, want: unknown(TooLarge)},
		{name: "length that is not true", req: declared(1 << 60), rule: Rule{MaxBody: 1<<63 - 1}, want: query("")},
		{name: "no body is read", req: declared(-1), rule: Rule{MaxBody: -1}, want: unknown(NotGraphQL)},
		{name: "no body is read, URL", req: get("query", "{a}"), rule: Rule{MaxBody: -1}, want: query("")},
		{name: "more than a megabyte", req: document(`{a} #` + strings.Repeat("x", 1<<20)), want: unknown(TooLarge)},
		{name: "nearly a megabyte", req: document(`{a} #` + strings.Repeat("x", 1<<20-100)), want: query("")},
		{name: "tokens", req: document(wide), want: unknown(TooLarge)},
		{name: "tokens that are allowed", req: document(wide), rule: Rule{MaxTokens: 15002}, want: query("")},
		{name: "tokens without bound", req: document(wide), rule: Rule{MaxTokens: -1}, want: query("")},
		{name: "tokens of a mutation", req: document("mutation" + wide), want: unknown(TooLarge)},
		{name: "nested beyond reason", req: document(deep), rule: Rule{MaxTokens: -1}, want: unknown(Malformed)},
	})
}

func TestPersisted(t *testing.T) {
	hash := func(doc string) string { s := sha256.Sum256([]byte(doc)); return hex.EncodeToString(s[:]) }
	const q, m = `query Q { a }`, `mutation M { a }`
	errHook := errors.New("the store is down")
	apq := func(hash string) string {
		return `"extensions":{"persistedQuery":{"version":1,"sha256Hash":` + quote(hash) + `}}`
	}
	var asked []string
	type key struct{}
	with := Rule{Persisted: func(ctx context.Context, id string) (string, bool, error) {
		if ctx.Value(key{}) != "request" {
			t.Error("Persisted is not called with the request's context")
		}
		asked = append(asked, id)
		switch id {
		case hash(q), "q":
			return q, true, nil
		case hash(m), "m":
			return m, true, nil
		case "broken":
			return "{", true, nil
		case "down":
			return q, true, errHook
		}
		return "", false, nil
	}}
	for _, tt := range []struct {
		name  string
		req   *http.Request
		rule  Rule
		want  Verdict
		asked string
	}{
		{"hash of a query", postJSON(`{` + apq(hash(q)) + `}`), with, query("Q"), hash(q)},
		{"hash of a mutation", postJSON(`{"query":null,` + apq(hash(m)) + `}`), with, mutation("M"), hash(m)},
		{"hash in a URL", get("extensions", `{"persistedQuery":{"version":1,"sha256Hash":"`+hash(q)+`"}}`), with, query("Q"), hash(q)},
		{"hash that is not known", postJSON(`{` + apq("x") + `}`), with, unknown(NotPersisted), "x"},
		{"hash, without a hook", postJSON(`{` + apq(hash(q)) + `}`), Rule{}, unknown(NotPersisted), ""},
		{"hash and text, which registers it", document(q, `,`, apq(hash(q))), with, query("Q"), ""},
		{"hash and text, without a hook", document(m, `,`, apq(hash(m))), Rule{}, mutation("M"), ""},
		{"hash of a mutation, text of a query", document(q, `,`, apq(hash(m))), with, mutation(""), hash(m)},
		{"the same, without a hook", document(q, `,`, apq(hash(m))), Rule{}, unknown(NotPersisted), ""},
		{"hash of nothing known, text", document(q, `,`, apq("x")), with, query("Q"), "x"},
		{"documentId", postJSON(`{"documentId":"q"}`), with, query("Q"), "q"},
		{"documentId that is the text's hash", document(q, `,"documentId":"sha256:`+hash(q)+`"`), Rule{}, query("Q"), ""},
		{"doc_id", postJSON(`{"doc_id":"m"}`), with, mutation("M"), "m"},
		{"id", postJSON(`{"id":"m","operationName":"M"}`), with, mutation("M"), "m"},
		{"id in a URL", get("id", "q"), with, query("Q"), "q"},
		{"id of a mutation, text of a query", document(q, `,"id":"m"`), with, mutation(""), "m"},
		{"id and text, without a hook", document(q, `,"id":"m"`), Rule{}, query("Q"), ""},
		{"id that is a number", postJSON(`{"id":1}`), with, unknown(NoOperation), ""},
		{"several that agree", postJSON(`{"id":"q","documentId":"q"}`), with, query("Q"), "q"},
		{"several that do not", postJSON(`{"id":"q","documentId":"m"}`), with, mutation(""), "m q"},
		{"several, one not known", postJSON(`{"id":"q","documentId":"x"}`), with, unknown(NotPersisted), "x q"},
		{"in a batch", postJSON(`[{"id":"q"},{"id":"m"}]`), with, mutation(""), "q m"},
		{"stored document that does not parse", postJSON(`{"id":"broken"}`), with, unknown(Malformed), "broken"},
		{"hook that fails", postJSON(`{"id":"down"}`), with, Verdict{Why: HookFailed, Err: errHook}, "down"},
		{"hook that fails beside a text", document(q, `,"documentId":"down"`), with, Verdict{Why: HookFailed, Err: errHook}, "down"},
		{"id of 1025 bytes", postJSON(`{"id":"` + strings.Repeat("x", 1025) + `"}`), with, unknown(TooLarge), ""},
		{"hash that is no string", postJSON(`{"extensions":{"persistedQuery":{"sha256Hash":1}}}`), with, unknown(Malformed), ""},
		{"persistedQuery null", document(q, `,"extensions":{"persistedQuery":null}`), with, query("Q"), ""},
		{"other extensions", document(q, `,"extensions":{"tracing":{"sha256Hash":"m"}}`), with, query("Q"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked = nil
			req := tt.req.WithContext(context.WithValue(t.Context(), key{}, "request"))
			if got := decide(t, tt.rule, req); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if got := strings.Join(asked, " "); got != tt.asked {
				t.Errorf("asked for %q, want %q", got, tt.asked)
			}
		})
	}
}

func TestUpload(t *testing.T) {
	inURL := func(req *http.Request, key, value string) *http.Request {
		req.URL.RawQuery = url.Values{key: {value}}.Encode()
		return req
	}
	const kind = `multipart/form-data; boundary=b`
	operations := func(headers, json string) string {
		return "--b\r\nContent-Disposition: form-data; name=\"operations\"\r\n" + headers + "\r\n" + json + "\r\n"
	}
	const rest = "--b\r\nContent-Disposition: form-data; name=\"map\"\r\n\r\n{\"0\":[\"variables.file\"]}\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"0\"; filename=\"mutation.txt\"\r\nContent-Type: text/plain\r\n\r\nmutation { a }\r\n--b--\r\n"
	file := "--b\r\nContent-Disposition: form-data; name=\"0\"; filename=\"f\"\r\n\r\n" + strings.Repeat("x", 1<<21) + "\r\n--b--\r\n"
	const q, m = `{"query":"query Q($f:Upload){a}","variables":{"f":null}}`, `{"query":"mutation M($f:Upload!){a(f:$f)}","variables":{"f":null}}`
	run(t, []decided{
		{name: "mutation", req: post(kind, operations("", m)+rest), want: mutation("M")},
		{name: "query", req: post(kind, operations("", q)+rest), want: query("Q")},
		{name: "batch", req: post(kind, operations("", "["+q+","+m+"]")+rest), want: mutation("")},
		{name: "with a type", req: post(kind, operations("Content-Type: application/json; charset=utf-8\r\n", q)+rest), want: query("Q")},
		{name: "another one in the URL", req: inURL(post(kind, operations("", q)+rest), "operations", m), want: unknown(Ambiguous)},
		{name: "preamble", req: post(kind, "mutation { a }\r\n"+operations("", q)+rest), want: query("Q")},
		{name: "large files behind it", req: post(kind, operations("", m)+file), want: mutation("M")},
		{name: "operations larger than MaxBody", req: post(kind, operations("", m)+rest), rule: Rule{MaxBody: 100}, want: unknown(TooLarge)},
		{name: "map first", req: post(kind, rest[:strings.Index(rest, "--b\r\nContent-Disposition: form-data; name=\"0\"")]+operations("", q)+"--b--\r\n"), want: unknown(NotGraphQL)},
		{name: "operations as a file", req: post(kind, strings.Replace(operations("", q), `"operations"`, `"operations"; filename="f"`, 1)+rest), want: unknown(NotGraphQL)},
		{name: "in quoted-printable", req: post(kind, operations("Content-Transfer-Encoding: quoted-printable\r\n", q)+rest), want: unknown(Encoded)},
		{name: "in UTF-16", req: post(kind, operations("Content-Type: application/json; charset=utf-16\r\n", q)+rest), want: unknown(Encoded)},
		{name: "no boundary", req: post(`multipart/form-data`, operations("", q)+rest), want: unknown(NotGraphQL)},
		{name: "other boundary", req: post(`multipart/form-data; boundary=c`, operations("", q)+rest), want: unknown(Malformed)},
		{name: "unfinished", req: post(kind, operations("", q)), want: unknown(Malformed)},
		{name: "not JSON", req: post(kind, operations("", "{")+rest), want: unknown(Malformed)},
		{name: "no part", req: post(kind, "--b--\r\n"), want: unknown(Malformed)},
	})
}
