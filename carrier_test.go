package replicated_test

import (
	"context"
	"database/sql/driver"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/position"
	"github.com/sqlreplicated/replicated/internal/token"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// metadataMap is a carrier as gRPC's metadata is one with OpenTelemetry: keys in lower
// case, several values each.
type metadataMap map[string][]string

func (m metadataMap) Get(key string) string {
	if v := m[strings.ToLower(key)]; len(v) > 0 {
		return v[0]
	}
	return ""
}
func (m metadataMap) Set(key, value string) { m[strings.ToLower(key)] = []string{value} }

func carriers() map[string]func() replicated.Carrier {
	return map[string]func() replicated.Carrier{
		"map":      func() replicated.Carrier { return textMap{"traceparent": "00-1-2-01"} },
		"header":   func() replicated.Carrier { return http.Header{"Traceparent": {"00-1-2-01"}} },
		"metadata": func() replicated.Carrier { return metadataMap{"traceparent": {"00-1-2-01"}} },
	}
}

// inside runs a test with a writer and a reader in two processes.
func inside(t *testing.T, test func(t *testing.T, f *logs, write func(ctx context.Context), read func(ctx context.Context, role string))) {
	t.Helper()
	inBubble(t, func(t *testing.T, f *logs) {
		writer, reader := twoProcesses(f)
		test(t, f, func(ctx context.Context) { t.Helper(); write(ctx, t, writer) },
			func(ctx context.Context, role string) { t.Helper(); wantOn(ctx, t, reader, role) })
	})
}

// What a sender has written its receiver reads, by whatever carries it; a receiver
// without it does not have to.
func TestCarriersRoundTrip(t *testing.T) {
	safe := regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	for name, carrier := range carriers() {
		t.Run(name, func(t *testing.T) {
			inside(t, func(t *testing.T, f *logs, write func(context.Context), read func(context.Context, string)) {
				c := carrier()
				sender, _ := replicated.WithSession(t.Context())
				must(t, replicated.Inject(sender, c))
				if got := fmt.Sprint(c); strings.Contains(strings.ToLower(got), replicated.TokenKey) {
					t.Errorf("a sender that has written nothing makes it %s", got)
				}
				write(sender)
				must(t, replicated.Inject(sender, c))
				if got := c.Get(replicated.TokenKey); !safe.MatchString(got) {
					t.Errorf("the token %q is not safe everywhere", got)
				}
				if got := c.Get("traceparent"); got != "00-1-2-01" {
					t.Errorf("what others carry has become %q", got)
				}
				receiver, _ := replicated.WithSession(t.Context())
				receiver, err := replicated.Extract(receiver, c)
				must(t, err)
				read(receiver, "primary")
				read(t.Context(), "replica")

				// Passed on by one who wrote nothing, into an empty carrier.
				next := textMap{}
				must(t, replicated.Inject(receiver, next))
				if got := next.Get(replicated.TokenKey); got != c.Get(replicated.TokenKey) {
					t.Errorf("it is passed on as %q, want %q", got, c.Get(replicated.TokenKey))
				}
				f.apply()
				pass(2 * time.Second)
				read(receiver, "replica")
			})
		})
	}
}

// Without a session it is the process that is the sender.
func TestInjectOutsideSessions(t *testing.T) {
	inside(t, func(t *testing.T, f *logs, write func(context.Context), read func(context.Context, string)) {
		write(t.Context())
		c := textMap{}
		// The process is that of other tests too: their clusters are closed, or cannot be
		// asked, and may be too many for one token. What is not exact asks for more.
		_ = replicated.Inject(t.Context(), c)
		receiver, _ := replicated.Extract(t.Context(), c)
		read(receiver, "primary")
		f.apply()
		pass(2 * time.Second)
		read(receiver, "replica")
	})
}

// Where nothing came, nothing changes.
func TestExtractOfNothing(t *testing.T) {
	for name, carrier := range carriers() {
		t.Run(name, func(t *testing.T) {
			ctx, err := replicated.Extract(t.Context(), carrier())
			if err != nil || ctx != t.Context() {
				t.Errorf("another context, error %v", err)
			}
		})
	}
	if ctx, err := replicated.Extract(t.Context(), textMap(nil)); err != nil || ctx != t.Context() {
		t.Errorf("a nil map: another context, error %v", err)
	}
	if ctx, err := replicated.Extract(t.Context(), http.Header(nil)); err != nil || ctx != t.Context() {
		t.Errorf("a nil header: another context, error %v", err)
	}
}

var garbled = []string{
	"x", " ", "AAAA", strings.Repeat("A", 5000), strings.Repeat("A", 1<<20), "\x00\xff", "a\r\nSet-Cookie: b", "%00", "=====", "täglich", "v1.1.1.1",
}

// What can't be read stands for a write that is not known: an error, and a context and a
// session that read what anybody has committed, and no more than that.
func TestMalformedCarriers(t *testing.T) {
	for i, text := range garbled {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			inside(t, func(t *testing.T, f *logs, write func(context.Context), read func(context.Context, string)) {
				write(t.Context())
				c := textMap{replicated.TokenKey: text}
				ctx, err := replicated.Extract(t.Context(), c)
				if err == nil {
					t.Error("Extract has no error")
				}
				read(ctx, "primary")
				adopter, s := replicated.WithSession(t.Context())
				if err := s.AdoptFrom(c); err == nil {
					t.Error("AdoptFrom has no error")
				}
				read(adopter, "primary")
				// It is not passed on as it is.
				next := textMap{}
				_ = replicated.Inject(adopter, next)
				if got := next.Get(replicated.TokenKey); got == text || got == "" {
					t.Errorf("it is passed on as %.20q", got)
				}
				f.apply()
				pass(2 * time.Second)
				read(ctx, "replica")
				read(adopter, "replica")
			})
		})
	}
}

// A token that was cut off, or of which one character has changed, is not taken for
// another one.
func TestTokensThatWereDamagedOnTheWay(t *testing.T) {
	inside(t, func(t *testing.T, _ *logs, write func(context.Context), _ func(context.Context, string)) {
		sender, _ := replicated.WithSession(t.Context())
		write(sender)
		c := textMap{}
		must(t, replicated.Inject(sender, c))
		text := c[replicated.TokenKey]
		for i := 1; i < len(text); i++ {
			if _, err := replicated.Extract(t.Context(), textMap{replicated.TokenKey: text[:i]}); err == nil {
				t.Errorf("the first %d of %d characters are taken", i, len(text))
			}
			other := byte('A')
			if text[i] == other {
				other = 'z'
			}
			if _, err := replicated.Extract(t.Context(), textMap{replicated.TokenKey: text[:i] + string(other) + text[i+1:]}); err == nil {
				t.Errorf("with another character at %d it is taken", i)
			}
		}
	})
}

// The caller reads what its callee has written for it, and so do the sessions around it
// and inside it.
func TestAdoptFrom(t *testing.T) {
	for name, carrier := range carriers() {
		t.Run(name, func(t *testing.T) {
			inside(t, func(t *testing.T, f *logs, write func(context.Context), read func(context.Context, string)) {
				outer, _ := replicated.WithSession(t.Context())
				caller, s := replicated.WithSession(outer)
				nested, _ := replicated.WithSession(caller)
				must(t, s.AdoptFrom(carrier())) // of a callee that wrote nothing
				read(caller, "replica")
				response := carrier()
				callee, _ := replicated.WithSession(t.Context())
				write(callee)
				must(t, replicated.Inject(callee, response))
				must(t, s.AdoptFrom(response))
				read(caller, "primary")
				read(outer, "primary")
				read(nested, "primary")
				read(t.Context(), "replica")
				if s.Wrote() {
					t.Error("it counts as the caller's own write")
				}
				f.apply()
				pass(2 * time.Second)
				read(caller, "replica")
			})
		})
	}
}

// A caller without a session has nothing that could keep it: the process does.
func TestAdoptFromWithoutASession(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		t.Cleanup(replicated.ForgetWritesBehind)
		db := f.openLogs()
		none := replicated.SessionFromContext(t.Context())
		must(t, none.AdoptFrom(textMap{}))
		wantOn(t.Context(), t, db, "replica")
		f.set(func() { f.primary.inserted++; f.primary.flushed++ }) // another process's write
		text := replicated.CoarseToken("of another process")
		must(t, none.AdoptFrom(textMap{replicated.TokenKey: text}))
		wantOn(t.Context(), t, db, "primary")
		f.apply()
		pass(2 * time.Second)
		wantOn(t.Context(), t, db, "replica")
	})
}

// Where the primary can't be asked, the receiver reads what anybody has committed by the
// time that it comes.
func TestInjectWithoutAPrimary(t *testing.T) {
	inside(t, func(t *testing.T, f *logs, write func(context.Context), read func(context.Context, string)) {
		sender, _ := replicated.WithSession(t.Context())
		write(sender)
		f.fakes.primary.Kill()
		f.fakes.primary.Down(driver.ErrBadConn)
		c := textMap{}
		if err := replicated.Inject(sender, c); err == nil {
			t.Error("no error")
		}
		f.fakes.primary.Heal()
		pass(2 * time.Second)
		receiver, err := replicated.Extract(t.Context(), c)
		must(t, err)
		read(receiver, "primary")
		f.apply()
		pass(2 * time.Second)
		read(receiver, "replica")
	})
}

// A session whose calls run at the same time: it has what all of them have written, and
// what it passes on never misses what it had when it was asked.
func TestCarriersConcurrently(t *testing.T) {
	inside(t, func(t *testing.T, f *logs, write func(context.Context), read func(context.Context, string)) {
		caller, s := replicated.WithSession(t.Context())
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 10 {
					request, response := textMap{}, textMap{}
					if err := replicated.Inject(caller, request); err != nil {
						t.Error(err)
					}
					at, err := replicated.Extract(t.Context(), request)
					if err != nil {
						t.Error(err)
					}
					callee, _ := replicated.WithSession(at)
					write(callee)
					if err := replicated.Inject(callee, response); err != nil {
						t.Error(err)
					}
					if err := s.AdoptFrom(response); err != nil {
						t.Error(err)
					}
					mine, passed := response[replicated.TokenKey], textMap{}
					if err := replicated.Inject(caller, passed); err != nil {
						t.Error(err)
					}
					both, err := replicated.MergeTokens(mine, passed[replicated.TokenKey])
					if err != nil || both != passed[replicated.TokenKey] {
						t.Errorf("what the session passes on lacks what it has adopted: %v", err)
					}
				}
			})
		}
		wg.Wait()
		read(caller, "primary")
		c := textMap{}
		must(t, replicated.Inject(caller, c))
		if n := len(c[replicated.TokenKey]); n > 200 {
			t.Errorf("80 responses have made a token of %d bytes", n)
		}
		f.apply()
		pass(2 * time.Second)
		read(caller, "replica")
	})
}

// Responses that come on several processors at once are all kept.
func TestAdoptFromConcurrently(t *testing.T) {
	const callees, calls = 8, 200
	ctx, s := replicated.WithSession(t.Context())
	of := func(callee, call int) string {
		return token.Token{{Cluster: token.NameOf(fmt.Sprint(callee)), Lineage: "4711/1", Position: position.FromLSN(uint64(16 * call))}}.String()
	}
	var last []string
	var wg sync.WaitGroup
	for callee := range callees {
		last = append(last, of(callee, calls))
		wg.Go(func() {
			for call := range calls {
				if err := s.AdoptFrom(textMap{replicated.TokenKey: of(callee, call+1)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	want, err := replicated.MergeTokens(last...)
	must(t, err)
	c := textMap{}
	must(t, replicated.Inject(ctx, c))
	if got := c[replicated.TokenKey]; got != want {
		t.Errorf("of %d calls %q is left, want %q", callees*calls, got, want)
	}
}

// A call over HTTP, and back: the callee reads what its caller has written, and the
// caller what its callee has, while replicas stand still. One that adopts nothing reads
// an old row.
func TestCarriersOverHTTPOnServers(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		name := table(t, c, "id int PRIMARY KEY, v int")
		mustExec(t, bare(t, c.Primary()), "INSERT INTO "+name+" (id, v) VALUES (1, 0)")
		caughtUp(t, c)
		callers, _ := process(t, c)
		callees, _ := process(t, c)
		bump, query := "UPDATE "+name+" SET v = v + 1 WHERE id = 1", "SELECT v FROM "+name+" WHERE id = 1"
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			err := replicated.Run(r.Context(), func(ctx context.Context) error {
				ctx, err := replicated.Extract(ctx, r.Header)
				if err != nil {
					return err
				}
				var v int
				if err := callees.QueryRowContext(ctx, query).Scan(&v); err != nil {
					return err
				}
				if v != 1 {
					return fmt.Errorf("the callee reads %d, where its caller has written 1", v)
				}
				if _, err := callees.ExecContext(ctx, bump); err != nil {
					return err
				}
				return replicated.Inject(ctx, w.Header())
			})
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		}))
		defer server.Close()
		resume := pauseReplicas(t, c)
		ctx, s := replicated.WithSession(t.Context())
		mustExecIn(ctx, t, callers, bump)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, nil)
		must(t, err)
		must(t, replicated.Inject(ctx, req.Header))
		res, err := server.Client().Do(req)
		must(t, err)
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			var text [200]byte
			n, _ := res.Body.Read(text[:])
			t.Fatalf("the call failed: %s", text[:n])
		}

		// Once replicas have the caller's own write, and not the callee's, only the
		// response's token stands between it and an old row.
		other := inSession(t)
		wantInt(other, t, callers, 0, query)
		must(t, replicated.SessionFromContext(other).AdoptFrom(res.Header))
		wantInt(other, t, callers, 2, query)
		must(t, s.AdoptFrom(res.Header))
		wantInt(ctx, t, callers, 2, query)
		resume()
		proven(t, callers)
		c.ResetStatements()
		wantInt(ctx, t, callers, 2, query)
		onlyReplicas(t, c, query)
	})
}
