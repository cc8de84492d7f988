package graphql_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	. "github.com/sqlreplicated/replicated/httpsticky/graphql"
)

var documents = []string{
	`{ a }`, `query Q { a }`, `mutation M { a(b: "}") }`, `mutation{a}`, `subscription{a}`,
	"# mutation\n{ a }", "{ a } # \r mutation { a }", `{ a(b: """ \""" mutation { x } """) }`,
	`query Q { a } mutation M { a }`, `query Q { a } mutation Q { a }`, `mutation Q { a } query Q { a }`, `query Q { a } mutation { a }`,
	`"""{ """"query {` + "\na }", `{ a(b: [""" x """", " ]) } mutation M { c } #", """ """]) }`,
	`fragment mutation on T { a } { ...mutation }`,
	`query mutation($a: In = {b: ["{"]}) @mutation(a: {b: "}"}) { mutation: query @include(if: true) }`,
	"\ufeff,mutation", `"desc" mutation M { a }`, `""" { """ query { a }`, `{ a(b: "\\\"") } mutation { b }`, `{`, `type T { a: Int }`,
}

// FuzzBody sends any bytes as any kind of body. Whatever is decided, the handler
// reads them as they were, and no server of servers_test.go that is sent them runs a
// mutation where a query was announced.
func FuzzBody(f *testing.F) {
	for _, doc := range documents {
		f.Add([]byte(`{"query":`+quote(doc)+`,"operationName":"M"}`), byte(0), uint16(1000))
		f.Add([]byte(doc), byte(1), uint16(1000))
		f.Add([]byte(`[{"query":`+quote(doc)+`},{"query":"{a}"}]`), byte(0), uint16(1000))
		f.Add([]byte("--b\r\nContent-Disposition: form-data; name=\"operations\"\r\n\r\n{\"query\":"+quote(doc)+"}\r\n--b--\r\n"), byte(2), uint16(1000))
	}
	f.Add([]byte(`{"query":"{a}","Query":"mutation{a}"}`), byte(0), uint16(20))
	f.Add([]byte(`{"query":"{a}","query":"mutation{a}"}`), byte(0), uint16(1000))
	f.Add([]byte(`{"query":"mutation{a}","query":"{a}"}`), byte(0), uint16(1000))
	f.Add([]byte(`{"query":"query Q{a}mutation{b}","OperationName":"Q"}`), byte(0), uint16(1000))
	f.Add([]byte(`{"query":"{a}","variables":{"a":"`+strings.Repeat("x", 2000)+`"}}`), byte(0), uint16(5000))
	f.Add([]byte(`{"query":"query A{a}mutation B{b}","operationName":"A","operationName":"B"}`), byte(0), uint16(1000))
	f.Add([]byte(`{"query":"{a}"}{"query":"mutation{a}"}`), byte(0), uint16(1000))
	f.Add([]byte("\ufeff"+`{"extensions":{"persistedQuery":{"sha256Hash":"mutation{a}"}},"id":"{b}","\u0071uery":null}`), byte(0), uint16(1000))
	f.Add([]byte("\x1f\x8b"), byte(4), uint16(1000))
	types := []string{"application/json", "application/graphql", "multipart/form-data; boundary=b"}
	f.Fuzz(func(t *testing.T, sent []byte, kind byte, maxBody uint16) {
		req := post(types[int(kind&3)%len(types)], "")
		if kind&4 != 0 {
			req.Header.Set("Content-Encoding", "gzip")
		}
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(sent)), -1
		rule := Rule{MaxBody: int64(maxBody), Persisted: fuzzStore}
		v := rule.Decide(req)
		got, err := io.ReadAll(req.Body)
		if err != nil || !bytes.Equal(got, sent) {
			t.Fatalf("the handler reads %q, %v", got, err)
		}
		if v.Kind == Mutation || v.Kind == Unknown {
			return
		}
		switch kind & 3 {
		case 1:
			if op := (request{Query: string(sent)}).runs(); op != "" && op != v.Kind.String() {
				t.Errorf("called %v, runs as %s", v, op)
			}
		case 0, 3:
			for i, read := range readers {
				for _, r := range read(sent) {
					if op := r.runs(); op != "" && op != v.Kind.String() {
						t.Errorf("called %v, runs as %s on server %d", v, op, i)
					}
				}
			}
		}
	})
}

// fuzzStore has every document under itself.
func fuzzStore(_ context.Context, id string) (string, bool, error) {
	switch {
	case id == "":
		return "", false, errors.New("asked for nothing")
	case id[0] == 'x':
		return "", false, nil
	}
	return id, true, nil
}

// FuzzURL does with a GET what FuzzBody does with a POST.
func FuzzURL(f *testing.F) {
	for _, doc := range documents {
		f.Add(get("query", doc, "operationName", "M").URL.RawQuery)
	}
	f.Add("query={a}&query=mutation{a}")
	f.Add("query=mutation{a}&query={a}")
	f.Add("query={a};query=mutation{a}&Query=%7b")
	f.Add(`extensions={"persistedQuery":{"sha256Hash":"x"}}&id=mutation{a}`)
	f.Fuzz(func(t *testing.T, rawQuery string) {
		req := get()
		req.URL.RawQuery = rawQuery
		v := Rule{Persisted: fuzzStore}.Decide(req)
		if v.Kind == Mutation || v.Kind == Unknown {
			return
		}
		for i, r := range fromURL(req) {
			if op := r.runs(); op != "" && op != v.Kind.String() {
				t.Errorf("called %v, runs as %s on server %d", v, op, i)
			}
		}
	})
}

// FuzzDocument compares the package with a scanner that knows only brackets, strings
// and comments. A document of which all operations are mutations is never called
// anything else, however it is sent and whichever operation is named.
func FuzzDocument(f *testing.F) {
	for _, doc := range documents {
		f.Add(doc, "M")
		f.Add(doc, "Q")
	}
	f.Fuzz(func(t *testing.T, doc, name string) {
		if !utf8.ValidString(doc) || !utf8.ValidString(name) {
			return
		}
		_, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: doc}, 15000)
		ops := topLevel(doc)
		for _, req := range []*http.Request{
			document(doc, `,"operationName":`, quote(name)),
			get("query", doc, "operationName", name),
		} {
			v := Rule{}.Decide(req)
			if v.Why == Ambiguous && strings.Contains(doc, `"""`) {
				continue // where its strings end is disputed
			}
			if (err != nil || len(ops) == 0) != (v.Kind == Unknown && v.Why != Ambiguous) {
				t.Fatalf("%v, error %v, operations %q", v, err, ops)
			}
			if err != nil {
				continue
			}
			var counts []string
			for _, op := range ops {
				if name != "" && strings.HasSuffix(op, " "+name) {
					counts = append(counts, op)
				}
			}
			if len(counts) == 0 {
				counts = ops
			}
			if want := worst(counts); v.Kind != want {
				t.Errorf("%v, want %v of %q", v, want, counts)
			}
		}
	})
}

// worst returns the kind of operations that all count.
func worst(ops []string) Kind {
	count := map[string]int{}
	for _, op := range ops {
		keyword, _, _ := strings.Cut(op, " ")
		count[keyword]++
	}
	switch {
	case count["mutation"] > 0:
		return Mutation
	case len(count) == 1:
		return KindOf(ops[0][:strings.IndexByte(ops[0], ' ')])
	}
	return Unknown
}
