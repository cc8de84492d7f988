package chi

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/examples/lagging"
	"github.com/sqlreplicated/replicated/httpsticky"
)

// shared is a store that both processes use and that has been up for long. In the first
// minute of a new one all keyed reads are fresh, since it may have been emptied.
type shared struct{ *httpsticky.Memory }

func (s shared) Load(ctx context.Context, keys ...string) (httpsticky.Kept, error) {
	kept, err := s.Memory.Load(ctx, keys...)
	kept.Whole = 24 * time.Hour
	return kept, err
}

// request answers a request of a user who has no cookie.
func request(t *testing.T, h http.Handler, method, path string) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
	if w.Code != http.StatusOK {
		t.Errorf("%s %s: status %d", method, path, w.Code)
	}
	return w.Body.String()
}

// What one user of a tenant has written, another one reads in another process.
func TestTenantsReadWhatTheirUsersWrite(t *testing.T) {
	c := lagging.Start(t, "CREATE TABLE orders (id serial PRIMARY KEY, tenant text NOT NULL)")
	writer, reader := lagging.Process(t, c), lagging.Process(t, c)
	store := shared{httpsticky.NewMemory(0)}
	process := func(db *sql.DB) http.Handler {
		h, err := New(db, []byte(strings.Repeat("k", 32)), store)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	a, b := process(writer), process(reader)
	lagging.Stop(t, c)
	for n := 1; n <= 5; n++ {
		request(t, a, "POST", "/tenants/one/orders/")
		if got := request(t, b, "GET", "/tenants/one/orders/"); got != fmt.Sprint(n) {
			t.Errorf("after %d orders of the tenant another user sees %s", n, got)
		}
		if got := request(t, b, "GET", "/admin/orders"); got != fmt.Sprint(n) {
			t.Errorf("after %d orders the administrator sees %s", n, got)
		}
	}
	// Nobody else is bound by that.
	for _, path := range []string{"/tenants/two/orders/", "/report"} {
		before := lagging.OnReplica(t, reader)
		if got := request(t, b, "GET", path); got != "0" || lagging.OnReplica(t, reader) != before+1 {
			t.Errorf("%s shows %s, and the replica has not served it", path, got)
		}
	}
}
