package replicated_test

import (
	"sync"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/position"
	"github.com/sqlreplicated/replicated/internal/token"
)

// What a callee wrote on behalf of a session its later reads see, and those of the
// sessions around it; nobody else's.
func TestAdoptedTokens(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		writer, reader := twoProcesses(f)
		outer, outside := replicated.WithSession(t.Context())
		ctx, s := replicated.WithSession(outer)
		wantOn(ctx, t, reader, "replica")
		write(t.Context(), t, writer)
		text := tokenOf(t.Context(), t, writer)
		if err := s.Adopt("", text); err != nil {
			t.Fatal(err)
		}
		f.routes()
		wantOn(ctx, t, reader, "primary")
		f.wantRoutes("primary token")
		wantOn(outer, t, reader, "primary")
		wantOn(t.Context(), t, reader, "replica")
		if other, _ := replicated.WithSession(t.Context()); true {
			wantOn(other, t, reader, "replica")
		}
		if s.Wrote() || outside.Wrote() {
			t.Error("what others have written counts as the session's")
		}
		for _, got := range []string{sessionToken(ctx, t, s), sessionToken(outer, t, outside), tokenOf(ctx, t, reader)} {
			if got != text {
				t.Errorf("it is passed on as %q, want %q", got, text)
			}
		}
		f.apply()
		pass(2 * time.Second)
		wantOn(ctx, t, reader, "replica")

		// The next response brings a newer one.
		write(t.Context(), t, writer)
		if err := s.Adopt(tokenOf(t.Context(), t, writer)); err != nil {
			t.Fatal(err)
		}
		wantOn(ctx, t, reader, "primary")
	})
}

// However many responses a session adopts, what it keeps stays small, and what has been
// found of a token is not looked for again.
func TestAdoptedTokensAreMerged(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		_, reader := twoProcesses(f)
		ctx, s := replicated.WithSession(t.Context())
		var wg sync.WaitGroup
		at := func(n int) string {
			return token.Token{{Cluster: token.NameOf("name shop"), Lineage: "4711/1", Position: position.FromLSN(uint64(16 * n))}}.String()
		}
		for g := range 4 {
			wg.Go(func() {
				for i := range 100 {
					if err := s.Adopt(at(4*i + g + 1)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if got, want := sessionToken(ctx, t, s), at(400); got != want {
			t.Errorf("of 400 tokens %q is left, want the last, %q", got, want)
		}
		wantOn(ctx, t, reader, "replica")
	})
}

// A response whose token can't be read has told of a write all the same.
func TestAdoptedTokenThatIsMalformed(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		writer, reader := twoProcesses(f)
		write(t.Context(), t, writer)
		ctx, s := replicated.WithSession(t.Context())
		if err := s.Adopt("x"); err == nil {
			t.Error("it is taken")
		}
		wantOn(ctx, t, reader, "primary")
		f.apply()
		pass(2 * time.Second)
		wantOn(ctx, t, reader, "replica")
	})
}

// Where there is no session to keep a token, the process keeps it.
func TestAdoptedTokenOutsideSessions(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		t.Cleanup(replicated.ForgetWritesBehind)
		db := f.openLogs()
		wantOn(t.Context(), t, db, "replica")
		f.set(func() { f.primary.inserted++; f.primary.flushed++ }) // another process's write
		if err := replicated.SessionFromContext(t.Context()).Adopt(replicated.CoarseToken("x")); err != nil {
			t.Fatal(err)
		}
		wantOn(t.Context(), t, db, "primary")
		f.apply()
		pass(2 * time.Second)
		wantOn(t.Context(), t, db, "replica")
	})
}
