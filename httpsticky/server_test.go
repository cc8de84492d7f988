package httpsticky_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/httpsticky"
)

// onServers runs a test against servers of HTTP/1.1 and HTTP/2, with TLS, since
// browsers send secure cookies nowhere else.
func onServers(t *testing.T, h http.Handler, test func(t *testing.T, s *httptest.Server)) {
	for _, two := range []bool{false, true} {
		t.Run(fmt.Sprint("HTTP/", map[bool]string{false: "1.1", true: "2"}[two]), func(t *testing.T) {
			s := httptest.NewUnstartedServer(h)
			s.EnableHTTP2 = two
			s.StartTLS()
			defer s.Close()
			jar, err := cookiejar.New(nil)
			if err != nil {
				t.Fatal(err)
			}
			s.Client().Jar = jar
			s.Client().Timeout = 20 * time.Second
			w := get(t, s, "/none-such-path-to-see-the-protocol")
			if (w.ProtoMajor == 2) != two {
				t.Fatalf("the protocol is %s", w.Proto)
			}
			test(t, s)
		})
	}
}

func send(t *testing.T, s *httptest.Server, r *http.Request) *http.Response {
	t.Helper()
	w, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Body.Close() })
	return w
}

func request(t *testing.T, s *httptest.Server, method, path string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func get(t *testing.T, s *httptest.Server, path string) *http.Response {
	t.Helper()
	return send(t, s, request(t, s, "GET", path))
}

func text(t *testing.T, w *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A real client follows the redirect after its POST, with the cookie that came with
// it.
func TestRedirectAfterPost(t *testing.T) {
	f := newCluster()
	db := f.open(t)
	onServers(t, handler(t, app(t, db), db), func(t *testing.T, s *httptest.Server) {
		w := send(t, s, request(t, s, "POST", "/write"))
		if got := text(t, w); w.Request.URL.Path != "/read" || got != "primary" {
			t.Errorf("%s was served by %s", w.Request.URL.Path, got)
		}
		if len(w.Request.Cookies()) != 1 {
			t.Errorf("the redirected request has the cookies %v", w.Request.Cookies())
		}
		u, _ := url.Parse(s.URL)
		for range 3 {
			text(t, send(t, s, request(t, s, "POST", "/write")))
			if n := len(s.Client().Jar.Cookies(u)); n != 1 {
				t.Errorf("the client has %d cookies", n)
			}
		}
	})
}

// Server-sent events: the header goes out with the first flush, token included, while
// the handler goes on.
func TestServerSentEvents(t *testing.T) {
	f := newCluster()
	db := f.open(t)
	seen := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("POST /events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		insert(t, r.Context(), db)
		w.(http.Flusher).Flush()
		<-seen // until the client has the header
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			<-seen
		}
	})
	onServers(t, handler(t, mux, db), func(t *testing.T, s *httptest.Server) {
		w := send(t, s, request(t, s, "POST", "/events"))
		if len(w.Header["Set-Cookie"]) != 1 {
			t.Errorf("the header is %v", w.Header)
		}
		seen <- struct{}{}
		lines := bufio.NewReader(w.Body)
		for i := range 3 {
			line, err := lines.ReadString('\n')
			if err != nil || line != fmt.Sprintf("data: %d\n", i) {
				t.Fatalf("%q, %v", line, err)
			}
			_, _ = lines.ReadString('\n')
			seen <- struct{}{}
		}
	})
}

// A write after the header went out reaches a client that says it reads trailers in
// one, whether the body was flushed or small enough to be still buffered; where
// there can be none, the response's end is held back.
func TestTrailers(t *testing.T) {
	f := newCluster()
	db := f.open(t)
	var e told
	mux := http.NewServeMux()
	late := func(before func(http.ResponseWriter)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			before(w)
			_, _ = io.WriteString(w, "a body")
			insert(t, r.Context(), db)
		}
	}
	mux.Handle("POST /buffered", late(func(http.ResponseWriter) {}))
	mux.Handle("POST /flushed", late(func(w http.ResponseWriter) { w.(http.Flusher).Flush() }))
	mux.Handle("POST /length", late(func(w http.ResponseWriter) { w.Header().Set("Content-Length", "6") }))
	mux.HandleFunc("POST /none", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNoContent)
		insert(t, r.Context(), db)
	})
	mux.Handle("/read", app(t, db))
	h := handler(t, mux, db, headerOn, observed(&e), func(o *httpsticky.Options) { o.Hold = 10 * time.Millisecond })
	onServers(t, h, func(t *testing.T, s *httptest.Server) {
		for _, path := range []string{"/buffered", "/flushed"} {
			r := request(t, s, "POST", path)
			r.Header.Set("TE", "trailers")
			w := send(t, s, r)
			if got := text(t, w); got != "a body" {
				t.Errorf("%s: the body is %q", path, got)
			}
			token := w.Trailer.Get("Replicated-Sticky")
			if token == "" || len(w.Header["Set-Cookie"]) > 0 {
				t.Errorf("%s: header %v, trailer %v", path, w.Header, w.Trailer)
			}
			e.want(t, httpsticky.EventLateWrite)
			r = request(t, s, "GET", "/read")
			r.Header.Set("Replicated-Sticky", token)
			if got := text(t, send(t, s, r)); got != "primary" {
				t.Errorf("%s: the next read was served by %s", path, got)
			}
			e.want(t)
		}
		// One that does not say so reads none.
		if w := send(t, s, request(t, s, "POST", "/flushed")); text(t, w) != "a body" || len(w.Trailer) != 1 {
			t.Errorf("trailer %v", w.Trailer)
		}
		e.want(t, httpsticky.EventLateWrite, httpsticky.EventHeld)
		for _, path := range []string{"/length", "/none"} {
			r := request(t, s, "POST", path)
			r.Header.Set("TE", "trailers")
			if w := send(t, s, r); len(text(t, w)) > 6 || len(w.Trailer) > 0 {
				t.Errorf("%s: trailer %v", path, w.Trailer)
			}
			// The server ends these responses before the handler has returned.
			e.await(t, 2)
			e.want(t, httpsticky.EventLateWrite, httpsticky.EventHeld)
		}
	})
}

// Early hints are no response: they carry nothing, and what comes after them does.
func TestEarlyHints(t *testing.T) {
	f := newCluster()
	db := f.open(t)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /hints", func(w http.ResponseWriter, r *http.Request) {
		insert(t, r.Context(), db)
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = io.WriteString(w, "x")
	})
	onServers(t, handler(t, mux, db), func(t *testing.T, s *httptest.Server) {
		hints := 0
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
			hints++
			if code != http.StatusEarlyHints || header.Get("Link") == "" || header.Get("Set-Cookie") != "" || header.Get("Cache-Control") != "" {
				t.Errorf("%d with the header %v", code, header)
			}
			return nil
		}})
		w := send(t, s, request(t, s, "POST", "/hints").WithContext(ctx))
		if hints != 1 || len(w.Header["Set-Cookie"]) != 1 {
			t.Errorf("%d early hints, then the header %v", hints, w.Header)
		}
	})
}

// A file is copied as without us: by the server's ReadFrom.
func TestReadFrom(t *testing.T) {
	f := newCluster()
	db := f.open(t)
	path := filepath.Join(t.TempDir(), "file")
	content := strings.Repeat("0123456789", 100_000)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /file", func(w http.ResponseWriter, r *http.Request) {
		insert(t, r.Context(), db)
		file, err := os.Open(path)
		if err != nil {
			t.Error(err)
			return
		}
		defer file.Close()
		if n, err := io.Copy(w, file); n != int64(len(content)) || err != nil {
			t.Errorf("copied %d bytes, %v", n, err)
		}
	})
	mux.HandleFunc("GET /file", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, path) })
	onServers(t, handler(t, mux, db), func(t *testing.T, s *httptest.Server) {
		w := send(t, s, request(t, s, "POST", "/file"))
		if text(t, w) != content || len(w.Header["Set-Cookie"]) != 1 {
			t.Errorf("the header is %v", w.Header)
		}
		if w = get(t, s, "/file"); text(t, w) != content || len(w.Header["Set-Cookie"]) > 0 || w.ContentLength != int64(len(content)) {
			t.Errorf("the header is %v", w.Header)
		}
	})
}

// A WebSocket's upgrade: by WriteHeader(101) the response has the cookie; by a hijack
// alone its own header is sent, and the connection works.
func TestUpgrade(t *testing.T) {
	f := newCluster()
	db := f.open(t)
	var e told
	mux := http.NewServeMux()
	echo := func(w http.ResponseWriter, first string) {
		conn, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = buf.WriteString(first)
		_ = buf.Flush()
		line, _ := buf.ReadString('\n')
		_, _ = buf.WriteString("echo " + line)
		_ = buf.Flush()
	}
	mux.HandleFunc("GET /header", func(w http.ResponseWriter, r *http.Request) {
		insert(t, r.Context(), db)
		w.Header().Set("Upgrade", "websocket")
		w.Header().Set("Connection", "Upgrade")
		w.WriteHeader(http.StatusSwitchingProtocols)
		echo(w, "")
	})
	mux.HandleFunc("GET /raw", func(w http.ResponseWriter, r *http.Request) {
		insert(t, r.Context(), db)
		echo(w, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
	})
	h := handler(t, mux, db, observed(&e), func(o *httpsticky.Options) { o.Hold = 10 * time.Millisecond })
	s := httptest.NewTLSServer(h)
	defer s.Close()
	for path, want := range map[string]struct {
		cookies int
		told    []httpsticky.EventKind
	}{
		"/header": {1, []httpsticky.EventKind{httpsticky.EventWriteInGet}},
		"/raw":    {0, []httpsticky.EventKind{httpsticky.EventLateWrite, httpsticky.EventHeld, httpsticky.EventWriteInGet}},
	} {
		conn, err := tls.Dial("tcp", s.Listener.Addr().String(), s.Client().Transport.(*http.Transport).TLSClientConfig)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", path)
		buf := bufio.NewReader(conn)
		w, err := http.ReadResponse(buf, nil)
		if err != nil {
			t.Fatal(err)
		}
		if w.StatusCode != 101 || len(w.Header["Set-Cookie"]) != want.cookies {
			t.Errorf("%s: %s with the header %v", path, w.Status, w.Header)
		}
		fmt.Fprint(conn, "hello\n")
		if line, err := buf.ReadString('\n'); err != nil || line != "echo hello\n" {
			t.Errorf("%s: %q, %v", path, line, err)
		}
		_, _ = io.Copy(io.Discard, buf) // the handler closes, and returns
		e.await(t, len(want.told))
		e.want(t, want.told...)
	}
}

// A panic ends the connection as without us.
func TestPanicOnServer(t *testing.T) {
	f := newCluster()
	db := f.open(t)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /abort", func(w http.ResponseWriter, r *http.Request) {
		insert(t, r.Context(), db)
		panic(http.ErrAbortHandler)
	})
	onServers(t, handler(t, mux, db), func(t *testing.T, s *httptest.Server) {
		if w, err := s.Client().Do(request(t, s, "POST", "/abort")); err == nil {
			t.Errorf("answered %s", w.Status)
		}
	})
}
