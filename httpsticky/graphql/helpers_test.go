package graphql_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/httpsticky/graphql"
)

// post is a POST of a body with a content type. Its length is not declared unless a
// test sets it.
func post(contentType, body string) *http.Request {
	req := httptest.NewRequest(http.MethodPost, "/graphql", strings.NewReader(body))
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	return req
}

func postJSON(body string) *http.Request { return post("application/json", body) }

// document is a POST of a document alone.
func document(text string, rest ...string) *http.Request {
	return postJSON(`{"query":` + quote(text) + strings.Join(rest, "") + `}`)
}

func get(params ...string) *http.Request {
	req := httptest.NewRequest(http.MethodGet, "/graphql", nil)
	values := req.URL.Query()
	for i := 0; i < len(params); i += 2 {
		values.Add(params[i], params[i+1])
	}
	req.URL.RawQuery = values.Encode()
	return req
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// decide asks for a verdict, and fails the test if the handler would not read the
// body that the client has sent.
func decide(t testing.TB, rule graphql.Rule, req *http.Request) graphql.Verdict {
	t.Helper()
	var read bytes.Buffer // what came off the connection, whoever read it
	if req.Body != nil {
		req.Body = io.NopCloser(io.TeeReader(req.Body, &read))
	}
	v := rule.Decide(req)
	if req.Body != nil {
		got, err := io.ReadAll(req.Body)
		if err != nil || !bytes.Equal(got, read.Bytes()) {
			t.Errorf("the handler reads %.200q, %v; sent was %.200q", got, err, read.Bytes())
		}
	}
	if (v.Kind == graphql.Unknown) == (v.Why == graphql.None) {
		t.Errorf("kind and reason do not fit: %+v", v)
	}
	return v
}

// chunked is a body that comes in pieces of any size, at times in none, ends with
// err, and counts what is asked of it. Once it has ended it says errEnded.
type chunked struct {
	data   []byte
	err    error
	rand   *rand.Rand
	atOnce bool // the error comes with the last bytes

	read   int // bytes given out
	ended  bool
	closed int
}

var (
	errEnded  = errors.New("read after the end")
	errClosed = errors.New("read after close")
)

func (c *chunked) Read(p []byte) (int, error) {
	if c.closed > 0 {
		return 0, errClosed
	}
	if c.ended {
		return 0, errEnded
	}
	if len(p) == 0 {
		return 0, nil
	}
	n := min(len(p), len(c.data))
	if c.rand != nil && n > 0 {
		n = c.rand.IntN(n + 1)
	}
	copy(p, c.data[:n])
	c.data, c.read = c.data[n:], c.read+n
	if len(c.data) == 0 && (n == 0 || c.atOnce) {
		c.ended = true
		return n, c.err
	}
	return n, nil
}

func (c *chunked) Close() error {
	c.closed++
	return nil
}
