package nethttp

import (
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/sqlreplicated/replicated/examples/lagging"
)

var key = []byte("thirty-two bytes, but not random")

// balanced serves POST requests by one process and all others by another.
func balanced(t *testing.T, posts, others http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			posts.ServeHTTP(w, r)
			return
		}
		others.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server
}

// browser returns a client with cookies of its own, which follows redirects.
func browser(t *testing.T, server *httptest.Server) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: server.Client().Transport, Jar: jar}
}

// add adds a note and returns the page that the redirect leads to, and its address.
func add(t *testing.T, c *http.Client, server *httptest.Server, text string) (status int, page, address string) {
	t.Helper()
	res, err := c.PostForm(server.URL+"/notes", url.Values{"text": {text}})
	if err != nil {
		t.Fatal(err)
	}
	return body(t, res)
}

func get(t *testing.T, c *http.Client, address string) (status int, page, at string) {
	t.Helper()
	res, err := c.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	return body(t, res)
}

func body(t *testing.T, res *http.Response) (status int, page, address string) {
	t.Helper()
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return res.StatusCode, string(b), res.Request.URL.String()
}

func handler(t *testing.T, db *sql.DB) http.Handler {
	t.Helper()
	h, err := New(db, key)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// A note is written in one process, and read in the other by the redirect.
func TestRedirectAfterPost(t *testing.T) {
	c := lagging.Start(t, "CREATE TABLE notes (id serial PRIMARY KEY, text text NOT NULL)")
	writer, reader := lagging.Process(t, c), lagging.Process(t, c)
	server := balanced(t, handler(t, writer), handler(t, reader))
	first := ""
	for i := range 10 {
		want := fmt.Sprint("note ", i)
		status, page, address := add(t, browser(t, server), server, want)
		if status != http.StatusOK || page != want {
			t.Errorf("%s: status %d, %q; want %q", address, status, page, want)
		}
		if i == 0 {
			first = address
		}
	}

	// Somebody else is not bound by that.
	before := lagging.OnReplica(t, reader)
	if _, _, _ = get(t, browser(t, server), first); lagging.OnReplica(t, reader) == before {
		t.Error("the replica does not serve other users' reads")
	}

	// And without the middleware the note is not there yet.
	lagging.Stop(t, c)
	bare := balanced(t, routes(writer), routes(reader))
	if status, _, _ := add(t, browser(t, bare), bare, "too new"); status != http.StatusNotFound {
		t.Errorf("status %d, where the replica cannot have the note", status)
	}
}
