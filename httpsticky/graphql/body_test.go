package graphql_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	. "github.com/sqlreplicated/replicated/httpsticky/graphql"
)

var errLine = errors.New("the line broke")

// bodies are what a handler must be able to read as if nobody had looked, whether
// the decision reads them whole, in part or not at all.
var bodies = []struct{ contentType, text string }{
	{"application/json", `{"query":"query Q { a }","variables":{"a":"mutation"}}`},
	{"application/json", `{"query":"mutation { a }"}` + strings.Repeat(" ", 3000)},
	{"application/json", `{"query":`},
	{"application/json", "\x1f\x8b\x00\xff"},
	{"application/json", ""},
	{"application/graphql", "{ a }"},
	{"text/plain", "anything"},
	{"multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"operations\"\r\n\r\n{\"query\":\"{a}\"}\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"0\"; filename=\"f\"\r\n\r\n" + strings.Repeat("\r\n--", 3000) + "\r\n--b--\r\n"},
	{"multipart/form-data; boundary=b", "no part of it"},
}

// TestTheHandlerReadsWhatWasSent reads bodies that come in pieces of any size and end
// well or not, at any offset, through looks that read more or less of them, in pieces
// of any size.
func TestTheHandlerReadsWhatWasSent(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 4000 {
		sent := bodies[r.IntN(len(bodies))]
		orig := &chunked{data: []byte(sent.text), err: io.EOF, rand: r, atOnce: r.IntN(2) == 0}
		if r.IntN(3) == 0 {
			orig.data, orig.err = orig.data[:r.IntN(len(orig.data)+1)], errLine
		}
		want, wantErr := bytes.Clone(orig.data), orig.err

		req := post(sent.contentType, "")
		req.Body, req.ContentLength = orig, int64(len(sent.text))
		if r.IntN(2) == 0 {
			req.ContentLength = -1
		}
		if r.IntN(4) == 0 {
			req.Header.Set("Content-Encoding", "gzip")
		}
		length := req.ContentLength
		rule := Rule{MaxBody: int64(r.IntN(2 * (len(sent.text) + 1)))}
		v := rule.Decide(req)

		var got []byte
		var err error
		stop := len(sent.text) + 1
		if r.IntN(3) == 0 {
			stop = r.IntN(stop) // the handler closes the body before it has all
		}
		for buf := make([]byte, 1+r.IntN(5000)); err == nil && len(got) < stop; {
			var n int
			n, err = req.Body.Read(buf[:r.IntN(len(buf)+1)])
			got = append(got, buf[:n]...)
		}
		if err == nil {
			want = want[:len(got)]
		} else if err != wantErr {
			t.Fatalf("%+v: %v, want %v", v, err, wantErr)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("%+v: read %d bytes and %v, sent were %d", v, len(got), err, len(want))
		}
		if v.Err != nil && (v.Err != errLine || v.Why != Unreadable) {
			t.Fatalf("%+v", v)
		}
		if err != nil {
			if n, err := req.Body.Read(make([]byte, 1)); n != 0 || err != errEnded {
				t.Fatalf("after the end: %d bytes, %v; want what the original says", n, err)
			}
		}
		if req.ContentLength != length || orig.closed != 0 {
			t.Fatalf("length %d, closed %d times before the handler did", req.ContentLength, orig.closed)
		}
		if err := req.Body.Close(); err != nil || orig.closed != 1 {
			t.Fatalf("Close: %v, %d times", err, orig.closed)
		}
		if n, err := req.Body.Read(make([]byte, 1)); n != 0 || err != errClosed {
			t.Fatalf("after Close: %d bytes, %v", n, err)
		}
	}
}

func TestABodyThatFailsIsUnknown(t *testing.T) {
	req := postJSON("")
	req.Body, req.ContentLength = &chunked{data: []byte(`{"query":"{a}"}`), err: errLine}, -1
	if got, want := (Rule{}).Decide(req), (Verdict{Why: Unreadable, Err: errLine}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	req = post("multipart/form-data; boundary=b", "")
	req.Body, req.ContentLength = &chunked{data: []byte("--b\r\nConte"), err: errLine}, -1
	if got, want := (Rule{}).Decide(req), (Verdict{Why: Unreadable, Err: errLine}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// idle is a reader that breaks the contract: it never comes to an end.
type idle struct{ chunked }

func (*idle) Read([]byte) (int, error) { return 0, nil }

func TestAReaderThatGivesNothingIsGivenUp(t *testing.T) {
	for _, contentType := range []string{"application/json", "multipart/form-data; boundary=b"} {
		req := post(contentType, "")
		req.Body, req.ContentLength = new(idle), -1
		if got := (Rule{}).Decide(req); got.Kind != Unknown {
			t.Errorf("%s: %+v", contentType, got)
		}
	}
}

func TestNoMoreIsReadThanIsLookedAt(t *testing.T) {
	upload := bodies[7].text
	for _, tt := range []struct {
		name        string
		contentType string
		encoding    string
		text        string
		length      int64
		most        int
	}{
		{"not GraphQL", "text/plain", "", "text", -1, 0},
		{"declared too large", "application/json", "", strings.Repeat(" ", 2000), 2000, 0},
		{"other encoding", "application/json", "br", "{}", -1, 0},
		{"gzip", "application/json", "gzip", "\x1f\x8b" + strings.Repeat("\x00", 999), -1, 512},
		{"too large", "application/json", "", strings.Repeat(" ", 2000), -1, 1001},
		{"upload", "multipart/form-data; boundary=b", "", upload, int64(len(upload)), 1001},
	} {
		t.Run(tt.name, func(t *testing.T) {
			orig := &chunked{data: []byte(tt.text), err: io.EOF}
			req := post(tt.contentType, "")
			req.Header.Set("Content-Encoding", tt.encoding)
			req.Body, req.ContentLength = orig, tt.length
			v := Rule{MaxBody: 1000}.Decide(req)
			if orig.read > tt.most {
				t.Errorf("%v: read %d bytes, want at most %d", v, orig.read, tt.most)
			}
			if tt.most == 0 && req.Body != io.ReadCloser(orig) {
				t.Error("the body was replaced")
			}
		})
	}
}

func TestRequestsOfOtherPathsAreLeftAlone(t *testing.T) {
	touched := func(ctx context.Context) context.Context { return context.WithValue(ctx, ctxKey{}, 1) }
	for _, tt := range []struct {
		rule Rule
		path string
		want bool
	}{
		{Rule{}, "/graphql", true},
		{Rule{}, "/graphql/", false},
		{Rule{}, "/", false},
		{Rule{Path: "/query"}, "/query", true},
		{Rule{Path: "/query"}, "/graphql", false},
		{Rule{Path: "/api/"}, "/api", true},
		{Rule{Path: "/api/"}, "/api/v2", true},
		{Rule{Path: "/api/"}, "/apis", false},
		{Rule{Path: "/"}, "/any", true},
		{Rule{Match: func(r *http.Request) bool { return r.Host == "example.com" }}, "/any", true},
		{Rule{Match: func(r *http.Request) bool { return r.Host == "graph.example.com" }}, "/graphql", false},
	} {
		tt.rule.Query = touched
		req := document("{ a }")
		req.URL.Path = tt.path
		orig := req.Body
		ctx := tt.rule.With(t.Context(), req)
		if got := ctx.Value(ctxKey{}) != nil; got != tt.want {
			t.Errorf("Path %q, request for %s: concerned %t", tt.rule.Path, tt.path, got)
		}
		if !tt.want && (ctx != t.Context() || req.Body != orig) {
			t.Errorf("Path %q, request for %s: not left alone", tt.rule.Path, tt.path)
		}
	}
}

func TestGetBodyStays(t *testing.T) {
	req, err := http.NewRequest(http.MethodPost, "/graphql", strings.NewReader(`{"query":"{a}"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if v := (Rule{}).Decide(req); v.Kind != Query {
		t.Fatal(v)
	}
	again, err := req.GetBody()
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(again); string(text) != `{"query":"{a}"}` {
		t.Errorf("%q, %v", text, err)
	}
}

// TestCloseWhileReading is for the race detector: bodies of net/http allow it.
func TestCloseWhileReading(t *testing.T) {
	for range 200 {
		req := postJSON(strings.Repeat(" ", 2000))
		req.Body, req.ContentLength = &locked{ReadCloser: req.Body}, -1
		Rule{MaxBody: 1000}.Decide(req)
		var both sync.WaitGroup
		both.Go(func() { _, _ = io.Copy(io.Discard, req.Body) })
		both.Go(func() { _ = req.Body.Close() })
		both.Wait()
	}
}

type locked struct {
	mu sync.Mutex
	io.ReadCloser
}

func (l *locked) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ReadCloser.Read(p)
}

func (l *locked) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ReadCloser.Close()
}

// serve runs a server whose handler has the rule look first, as httpsticky does.
func serve(t *testing.T, rule Rule, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(r.Context())
		ctx := rule.With(r.Context(), r)
		handler(w, r.WithContext(ctx))
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func TestOverARealConnection(t *testing.T) {
	text := `{"query":"mutation { a }","variables":{"x":"` + strings.Repeat("x", 200_000) + `"}}`
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		for _, maxBody := range []int64{0, 1000} { // read whole, read in part
			t.Run(fmt.Sprintf("%s, MaxBody %d", protocol, maxBody), func(t *testing.T) {
				s := serve(t, Rule{MaxBody: maxBody}, func(w http.ResponseWriter, r *http.Request) {
					got, err := io.ReadAll(r.Body)
					if err != nil || string(got) != text {
						t.Errorf("read %d bytes, %v", len(got), err)
					}
					if r.Proto != protocol || r.Trailer.Get("Checksum") != "42" || r.ContentLength != -1 {
						t.Errorf("%s, trailers %v, length %d", r.Proto, r.Trailer, r.ContentLength)
					}
					if err := r.Body.Close(); err != nil {
						t.Error(err)
					}
					if _, err := r.Body.Read(make([]byte, 1)); !errors.Is(err, http.ErrBodyReadAfterClose) && protocol == "HTTP/1.1" {
						t.Errorf("after Close: %v", err)
					}
				})
				client := s.Client()
				if protocol == "HTTP/1.1" {
					client.Transport.(*http.Transport).ForceAttemptHTTP2 = false
					client.Transport.(*http.Transport).TLSClientConfig.NextProtos = []string{"http/1.1"}
				}
				for range 2 { // the second time on the same connection
					req, err := http.NewRequest(http.MethodPost, s.URL+"/graphql", io.MultiReader(strings.NewReader(text)))
					if err != nil {
						t.Fatal(err)
					}
					req.Header.Set("Content-Type", "application/json")
					req.Trailer = http.Header{"Checksum": {"42"}}
					res, err := client.Do(req)
					if err != nil {
						t.Fatal(err)
					}
					_ = res.Body.Close()
				}
			})
		}
	}
}

// TestExpectContinue: a client that waits to be asked for its body is not asked
// where the body is not looked at, and the handler refuses it unread.
func TestExpectContinue(t *testing.T) {
	for _, tt := range []struct {
		name        string
		contentType string
		length      int
		want        string
	}{
		{"too large", "application/json", 2 << 20, "HTTP/1.1 413 Request Entity Too Large"},
		{"not GraphQL", "text/plain", 10, "HTTP/1.1 413 Request Entity Too Large"},
		{"looked at", "application/json", 10, "HTTP/1.1 100 Continue"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				Rule{}.With(r.Context(), r)
				w.WriteHeader(http.StatusRequestEntityTooLarge)
			}))
			defer s.Close()
			conn, err := net.Dial("tcp", s.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "POST /graphql HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Type: %s\r\nContent-Length: %s\r\n\r\n",
				tt.contentType, strconv.Itoa(tt.length))
			line, err := bufio.NewReader(conn).ReadString('\n')
			if got := strings.TrimSpace(line); got != tt.want {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}
