package graphql_test

import (
	"database/sql"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/httpsticky"

	. "github.com/sqlreplicated/replicated/httpsticky/graphql"
)

// TestInsideHTTPSticky runs a small server as users build it: httpsticky around a
// handler that reads the body, and reads the database in every operation.
func TestInsideHTTPSticky(t *testing.T) {
	db, last := cluster(t, replicated.ReadsAuto)
	read := func(r *http.Request) {
		rows, err := db.QueryContext(r.Context(), "SELECT 1")
		if err != nil {
			t.Error(err)
			return
		}
		_ = rows.Close()
	}
	app := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		read(r)
		where := last().Role.String()
		if strings.Contains(string(text), "save") {
			if _, err := db.ExecContext(r.Context(), "UPDATE t SET a = 1"); err != nil {
				t.Error(err)
			}
		}
		_, _ = io.WriteString(w, where+" "+string(text))
	})
	h, err := httpsticky.Handler(app, httpsticky.Options{
		Databases: []*sql.DB{db},
		Keys:      [][]byte{[]byte("an example key of thirty-two by.")},
		With:      Rule{}.With,
	})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewTLSServer(h)
	defer s.Close()
	client := s.Client()
	if client.Jar, err = cookiejar.New(nil); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		body   string
		where  string // the read of the request runs
		cookie bool   // the response sets one
	}{
		{`{"query":"{ cart }"}`, "replica", false},
		{`{"query":"mutation { save }"}`, "primary", true},  // a read before its write
		{`{"query":"{ cart }"}`, "primary", false},          // its own write, by the cookie
		{`{"query":"mutation { noop }"}`, "primary", false}, // wrote nothing
	} {
		res, err := client.Post(s.URL+"/graphql", "application/json", strings.NewReader(step.body))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || string(text) != step.where+" "+step.body {
			t.Errorf("%s: got %q, %v; want a read on the %s", step.body, text, err, step.where)
		}
		if got := len(res.Cookies()) > 0; got != step.cookie {
			t.Errorf("%s: cookie %t, want %t", step.body, got, step.cookie)
		}
	}
}
