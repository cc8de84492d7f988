package replicated_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"
	"github.com/sqlreplicated/replicated/internal/position"
	"github.com/sqlreplicated/replicated/internal/token"
)

// twoProcesses opens two handles on one cluster. The second one's reads are not bound
// by what the first has written, as in another process.
func twoProcesses(f *logs, changes ...func(*replicated.Config)) (writer, reader *sql.DB) {
	named := func(c *replicated.Config) { c.ClusterName = "shop" }
	writer = f.openLogs(named)
	reader = f.openLogs(append(changes, named, func(c *replicated.Config) { c.Consistency = replicated.ConsistencyEventual })...)
	return writer, reader
}

func tokenOf(ctx context.Context, t *testing.T, db *sql.DB) string {
	t.Helper()
	c, err := replicated.ClusterOf(ctx, db)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := c.Token(ctx)
	if err != nil {
		t.Fatalf("Token: %v", err)
	}
	return tok
}

func withToken(ctx context.Context, t *testing.T, tokens ...string) context.Context {
	t.Helper()
	ctx, err := replicated.WithToken(ctx, tokens...)
	if err != nil {
		t.Fatalf("WithToken: %v", err)
	}
	return ctx
}

func TestTokensCarryWritesToOtherProcesses(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		writer, reader := twoProcesses(f)
		ctx, _ := replicated.WithSession(t.Context())
		if tok := tokenOf(ctx, t, writer); tok != "" {
			t.Errorf("a session that has written nothing has the token %q", tok)
		}
		write(ctx, t, writer)
		tok := tokenOf(ctx, t, writer)
		if tok == "" || len(tok) > 200 {
			t.Fatalf("token %q", tok)
		}
		if again := tokenOf(ctx, t, writer); again != tok {
			t.Errorf("token %q, and then %q", tok, again)
		}
		f.routes()
		wantOn(t.Context(), t, reader, "replica")
		bound := withToken(t.Context(), t, "", tok)
		f.routes()
		wantOn(bound, t, reader, "primary")
		f.wantRoutes("primary token")
		f.apply(1)
		pass(2 * time.Second)
		for range 4 {
			if got := servedBy(bound, t, reader); got != "replica2" {
				t.Errorf("served by %s", got)
			}
		}
		// It is part of the token of whoever has read with it.
		if both := tokenOf(bound, t, reader); both == "" {
			t.Error("the token that came is not passed on")
		}
	})
}

// A token is of what was written in its scope.
func TestTokenScopes(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		writer, _ := twoProcesses(f)
		outer, _ := replicated.WithSession(t.Context())
		inner, _ := replicated.WithSession(outer)
		other, _ := replicated.WithSession(t.Context())
		write(inner, t, writer)
		inside := tokenOf(inner, t, writer)
		if got := tokenOf(outer, t, writer); got != inside {
			t.Errorf("the enclosing session's token is %q, the nested one's %q", got, inside)
		}
		if got := tokenOf(other, t, writer); got != "" {
			t.Errorf("another session has the token %q", got)
		}
		if got := tokenOf(t.Context(), t, writer); got == "" {
			t.Error("outside sessions a token is of all that the process has written")
		}
		f.apply()
		replicated.Wrote(other)
		if got := tokenOf(other, t, writer); got == "" {
			t.Error("a write behind the driver has no token")
		}
	})
}

// The token of a commit that waited for no disk is of what the primary has written.
func TestTokenOfAnAsynchronousCommit(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		writer, _ := twoProcesses(f)
		f.fakes.primary.ReplyContaining("insert into lazy", func(context.Context, *fakedb.Call) (*fakedb.Reply, error) {
			f.set(func() { f.primary.inserted += 5 })
			return &fakedb.Reply{Affected: 1}, nil
		})
		lsn := func() uint64 {
			tok, err := token.Parse(tokenOf(t.Context(), t, writer))
			if err != nil || len(tok) != 1 {
				t.Fatalf("%v, %v", tok, err)
			}
			return tok[0].Position.LSN() / 16
		}
		write(t.Context(), t, writer)
		f.set(func() { f.primary.inserted++ }) // nobody's
		if got := lsn(); got != 1001 {
			t.Errorf("a synchronous commit has the position %d", got)
		}
		tx, err := writer.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		run(t.Context(), t, tx, "SET LOCAL synchronous_commit = off")
		run(t.Context(), t, tx, "INSERT INTO lazy VALUES (1)")
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if got := lsn(); got != 1007 {
			t.Errorf("an asynchronous commit has the position %d", got)
		}
	})
}

// What a token tells of may be lost; then it is not passed over.
func TestTokenOfALostWrite(t *testing.T) {
	for _, tt := range []struct {
		name string
		lose func(f *logs)
		down replicated.PrimaryDownMode
		want string
	}{
		{"the primary lacks it", func(f *logs) { f.primary.inserted -= 5; f.primary.flushed -= 5 }, 0, "ErrNotFresh"},
		{"another timeline", func(f *logs) { f.primary.start, f.primary.timeline = 9, 2 }, 0, "ErrNotFresh"},
		{"stale reads are welcome", func(f *logs) { f.primary.start, f.primary.timeline = 9, 2 }, replicated.PrimaryDownStale, "served"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *logs) {
				writer, reader := twoProcesses(f, func(c *replicated.Config) { c.PrimaryDown = tt.down })
				write(t.Context(), t, writer)
				bound := withToken(t.Context(), t, tokenOf(t.Context(), t, writer))
				wantOn(bound, t, reader, "primary")
				f.set(func() { tt.lose(f) })
				f.fakes.primary.Kill()
				f.apply()
				pass(3 * time.Second)
				if tt.want == "served" {
					for range 3 {
						wantOn(bound, t, reader, "replica")
					}
					if n := f.told(replicated.NoticeTokenUnmet); n != 1 {
						t.Errorf("told %d times", n)
					}
					return
				}
				refusedWith(bound, t, reader, replicated.ErrNotFresh)
				refusedWith(replicated.WithPrimary(bound), t, reader, replicated.ErrNotFresh)
				wantOn(t.Context(), t, reader, "replica")
			})
		})
	}
}

// A replica that has applied what a token tells of, and was promoted, still has it.
func TestTokenAcrossAPromotion(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		writer, reader := twoProcesses(f)
		write(t.Context(), t, writer)
		tok := tokenOf(t.Context(), t, writer)
		f.apply()
		pass(2 * time.Second)
		write(t.Context(), t, writer)
		lost := tokenOf(t.Context(), t, writer)
		f.set(func() { // the first replica takes the primary's place and name
			promoted := f.standby[0]
			promoted.readOnly, promoted.timeline, promoted.flushed, promoted.inserted = false, 2, promoted.replayed+9, promoted.replayed+9
			f.primary = promoted
			f.standby[0].system = 1 // it is there no more
		})
		f.fakes.primary.Kill()
		f.replicas[0].Down(driver.ErrBadConn)
		f.apply(1)
		pass(3 * time.Second)
		wantOn(withToken(t.Context(), t, tok), t, reader, "replica")
		refusedWith(withToken(t.Context(), t, lost), t, reader, replicated.ErrNotFresh)
		refusedWith(withToken(t.Context(), t, tok, lost), t, reader, replicated.ErrNotFresh)
	})
}

func TestTokenOfAnotherCluster(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		_, reader := twoProcesses(f)
		foreign := token.Token{{Cluster: token.NameOf("name other"), Lineage: "4712/1", Position: position.FromLSN(1 << 40)}}.String()
		wantOn(withToken(t.Context(), t, foreign), t, reader, "replica")
	})
}

// A token that is cut short asks for everything by the time that it is read.
func TestTokenWithoutAPosition(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		_, reader := twoProcesses(f)
		pass(time.Second)
		bound := withToken(t.Context(), t, token.Token{{Cluster: token.NameOf("name shop"), Lineage: "4711/1"}}.String())
		wantOn(bound, t, reader, "primary")
		pass(100 * time.Millisecond)
		wantOn(bound, t, reader, "replica")
	})
}

// A token that cannot be read is an error, and its context of use all the same: it
// reads what there is by now.
func TestMalformedTokens(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		writer, reader := twoProcesses(f)
		write(t.Context(), t, writer)
		good := tokenOf(t.Context(), t, writer)
		f.apply()
		pass(2 * time.Second)
		for _, bad := range []string{"x", good[:len(good)-1], good + good, strings.Repeat("A", 5000), "ü"} {
			ctx, err := replicated.WithToken(t.Context(), bad, good)
			if err == nil {
				t.Errorf("%.20q is taken", bad)
				continue
			}
			if strings.Contains(err.Error(), good) {
				t.Errorf("the error shows the token: %v", err)
			}
			wantOn(ctx, t, reader, "primary")
			pass(100 * time.Millisecond)
			wantOn(ctx, t, reader, "replica")
			if merged, err := replicated.MergeTokens(good, bad); err == nil || merged != "" {
				t.Errorf("%.20q is merged to %q", bad, merged)
			}
		}
	})
}

func TestMergeTokens(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		writer, reader := twoProcesses(f)
		write(t.Context(), t, writer)
		first := tokenOf(t.Context(), t, writer)
		f.apply()
		write(t.Context(), t, writer)
		second := tokenOf(t.Context(), t, writer)
		for _, tokens := range [][]string{{first, second}, {second, first}, {"", second, "", first, second}} {
			got, err := replicated.MergeTokens(tokens...)
			if err != nil || got != second {
				t.Errorf("merged to %q, %v; want the later one, %q", got, err, second)
			}
		}
		if got, err := replicated.MergeTokens(); got != "" || err != nil {
			t.Errorf("of nothing: %q, %v", got, err)
		}
		pass(2 * time.Second)
		wantOn(withToken(t.Context(), t, first), t, reader, "replica")
		wantOn(withToken(t.Context(), t, second, first), t, reader, "primary")
	})
}

// With no primary there is no token to be had, and none is honoured that is not known;
// neither waits for ever.
func TestTokensWhileThePrimaryIsDown(t *testing.T) {
	for name, breaks := range map[string]func(f *logs){
		"down":      func(f *logs) { f.fakes.primary.Down(driver.ErrBadConn) },
		"read-only": func(f *logs) { f.set(func() { f.primary.readOnly = true }) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *logs) {
				writer, reader := twoProcesses(f)
				write(t.Context(), t, writer)
				known := tokenOf(t.Context(), t, writer)
				write(t.Context(), t, writer)
				unknown := tokenOf(t.Context(), t, writer)
				bound := withToken(t.Context(), t, known)
				f.set(func() { f.primary.flushed--; f.primary.inserted-- })
				wantOn(bound, t, reader, "primary") // the reader has seen as much now
				f.apply()
				pass(2 * time.Second)
				write(t.Context(), t, writer)
				breaks(f)
				began := time.Now()
				c, err := replicated.ClusterOf(t.Context(), writer)
				if err != nil {
					t.Fatal(err)
				}
				if tok, err := c.Token(t.Context()); err == nil {
					t.Errorf("token %q", tok)
				} else if _, ok := errors.AsType[*replicated.NodeError](err); !ok {
					t.Errorf("the error does not name the node: %v", err)
				}
				refusedWith(withToken(t.Context(), t, unknown), t, reader, replicated.ErrNotFresh)
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("it took %v", took)
				}
				wantOn(bound, t, reader, "replica")
				ctx, cancel := context.WithTimeout(t.Context(), 0)
				defer cancel()
				if _, err := c.Token(ctx); !errors.Is(err, context.DeadlineExceeded) && err == nil {
					t.Errorf("Token without time: %v", err)
				}
			})
		})
	}
}
