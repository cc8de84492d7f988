package replicated_test

import (
	"context"
	"database/sql/driver"
	"strings"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/position"
	"github.com/sqlreplicated/replicated/internal/token"
)

// sessionToken is the token of a session whose primary answers.
func sessionToken(ctx context.Context, t *testing.T, s *replicated.Session) string {
	t.Helper()
	text, err := s.Token(ctx)
	if err != nil {
		t.Errorf("Token: %v", err)
	}
	return text
}

// A session's token is of what it wrote on whatever cluster, and of the tokens that it
// came with, without anybody naming the clusters.
func TestSessionTokenOfAllClusters(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		shop, reader := twoProcesses(f)
		bank := newLogs(t).openLogs(func(c *replicated.Config) { c.ClusterName = "bank" })
		outer, _ := replicated.WithSession(t.Context())
		ctx, s := replicated.WithSession(outer)
		if got := sessionToken(ctx, t, s); got != "" {
			t.Errorf("a session that wrote nothing has the token %q", got)
		}
		wantOn(ctx, t, bank, "replica")
		write(ctx, t, shop)
		one := sessionToken(ctx, t, s)
		if one != tokenOf(ctx, t, shop) {
			t.Errorf("the session's token %q is not the cluster's", one)
		}
		write(ctx, t, bank)
		both := sessionToken(ctx, t, s)
		if want, err := replicated.MergeTokens(one, tokenOf(ctx, t, bank)); err != nil || both != want {
			t.Errorf("the token of two clusters is %q, want %q (%v)", both, want, err)
		}
		if got := sessionToken(outer, t, replicated.SessionFromContext(outer)); got != both {
			t.Errorf("the enclosing session's token is %q, want %q", got, both)
		}
		came := token.Token{{Cluster: token.NameOf("name third"), Position: position.FromLSN(7)}}.String()
		with, _ := replicated.WithSession(withToken(t.Context(), t, came))
		if got := sessionToken(with, t, replicated.SessionFromContext(with)); got != came {
			t.Errorf("the token that came has become %q", got)
		}
		var none *replicated.Session
		if got := sessionToken(withToken(t.Context(), t, came), t, none); got != came {
			t.Errorf("without a session the token that came has become %q", got)
		}
		f.routes()
		wantOn(withToken(t.Context(), t, both), t, reader, "primary")
		f.wantRoutes("primary token")
	})
}

// What was written behind the driver may have gone to any cluster.
func TestSessionTokenOfAWriteBehindTheDriver(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		_, reader := twoProcesses(f)
		ctx, s := replicated.WithSession(t.Context())
		f.set(func() { f.primary.inserted++; f.primary.flushed++ })
		replicated.Wrote(ctx)
		got, _ := s.Token(ctx) // other tests' clusters are closed, or cannot be asked
		wantOn(withToken(t.Context(), t, got), t, reader, "primary")
		f.wantRoutes("primary token")
	})
}

// Where the primary cannot be asked, the token asks for everything.
func TestSessionTokenWithoutAPrimary(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*replicated.Config)
	}{
		{"named", func(c *replicated.Config) { c.ClusterName = "shop" }},
		{"by its identity", func(c *replicated.Config) { c.ClusterName = "" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *logs) {
				writer := f.openLogs(tt.change)
				reader := f.openLogs(tt.change, func(c *replicated.Config) { c.Consistency = replicated.ConsistencyEventual })
				ctx, s := replicated.WithSession(t.Context())
				write(ctx, t, writer)
				f.fakes.primary.Kill()
				f.fakes.primary.Down(driver.ErrBadConn)
				text, err := s.Token(ctx)
				if err == nil || text == "" || len(text) > 100 {
					t.Fatalf("token %q, error %v", text, err)
				}
				f.fakes.primary.Heal()
				pass(2 * time.Second)
				f.routes()
				bound := withToken(t.Context(), t, text)
				wantOn(bound, t, reader, "primary")
				f.wantRoutes("primary token")
				f.apply()
				pass(2 * time.Second)
				wantOn(bound, t, reader, "replica")
			})
		})
	}
}

// A token without positions is short, and asks for no less.
func TestCoarseTokens(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		writer, reader := twoProcesses(f)
		write(t.Context(), t, writer)
		fine := tokenOf(t.Context(), t, writer)
		for _, text := range []string{fine, "malformed", strings.Repeat("A", 5000)} {
			coarse := replicated.CoarseToken(text)
			if coarse == "" || len(coarse) > 30 {
				t.Errorf("token of %d bytes", len(coarse))
			}
			f.routes()
			bound := withToken(t.Context(), t, coarse)
			wantOn(bound, t, reader, "primary")
			f.wantRoutes("primary token")
			f.apply()
			pass(2 * time.Second)
			wantOn(bound, t, reader, "replica")
			write(t.Context(), t, writer) // so that the replicas lack something again
		}
		if got := replicated.CoarseToken(""); got != "" {
			t.Errorf("a token of nothing has become %q", got)
		}
	})
}

// With WithTokenOrPrimary a token that a failover has made void is no error: its reads
// see what there is. A primary of former times is none.
func TestTokenOrPrimary(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(f *logs)
		served bool
	}{
		{"the primary lacks it", func(f *logs) { f.primary.inserted -= 5; f.primary.flushed -= 5 }, true},
		{"a later timeline", func(f *logs) { f.primary.start, f.primary.timeline = 9, 3 }, true},
		{"an earlier timeline", func(f *logs) { f.primary.start, f.primary.timeline = 9, 1 }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *logs) {
				f.set(func() { f.primary.timeline = 2 })
				f.apply()
				writer, reader := twoProcesses(f)
				write(t.Context(), t, writer)
				text := tokenOf(t.Context(), t, writer)
				f.set(func() { tt.change(f) })
				f.fakes.primary.Kill()
				f.apply()
				pass(3 * time.Second)
				bound, err := replicated.WithTokenOrPrimary(t.Context(), text)
				if err != nil {
					t.Fatal(err)
				}
				refusedWith(withToken(t.Context(), t, text), t, reader, replicated.ErrNotFresh)
				if !tt.served {
					refusedWith(bound, t, reader, replicated.ErrNotFresh)
					return
				}
				f.set(func() { f.primary.flushed++; f.primary.inserted++ }) // the replicas lack something
				bound, _ = replicated.WithTokenOrPrimary(t.Context(), text)
				wantOn(bound, t, reader, "primary")
				if n := f.told(replicated.NoticeTokenUnmet); n != 1 {
					t.Errorf("told %d times", n)
				}
				f.apply()
				pass(3 * time.Second)
				wantOn(bound, t, reader, "replica")
			})
		})
	}
}
