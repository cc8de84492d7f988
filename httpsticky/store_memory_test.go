package httpsticky_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/httpsticky"
	"github.com/sqlreplicated/replicated/internal/faketime"
	"github.com/sqlreplicated/replicated/internal/position"
	"github.com/sqlreplicated/replicated/internal/token"
)

// storedToken is the token of a write of cluster "c" at the position.
func storedToken(cluster string, at uint64) string {
	return token.Token{{Cluster: token.NameOf(cluster), Lineage: "1/1", Position: position.FromLSN(at)}}.String()
}

func mustMerge(t testing.TB, tokens ...string) string {
	t.Helper()
	all, err := replicated.MergeTokens(tokens...)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func mustSave(t testing.TB, s httpsticky.Store, token string, ttl time.Duration, keys ...string) {
	t.Helper()
	if err := s.Save(context.Background(), token, ttl, keys...); err != nil {
		t.Fatal(err)
	}
}

// loadAll returns the union of what is kept, and for how long all has been kept.
func loadAll(t testing.TB, s httpsticky.Store, keys ...string) (string, time.Duration) {
	t.Helper()
	kept, err := s.Load(context.Background(), keys...)
	if err != nil {
		t.Fatal(err)
	}
	return mustMerge(t, kept.Tokens...), kept.Whole
}

// What was saved of a key is kept by union, in whatever order, and of no other.
func TestMemoryKeepsTheUnion(t *testing.T) {
	m := httpsticky.NewMemory(10)
	one, two, other := storedToken("c", 100), storedToken("c", 200), storedToken("d", 50)
	mustSave(t, m, two, time.Minute, "a", "b")
	mustSave(t, m, one, time.Minute, "a")
	mustSave(t, m, other, time.Minute, "a")
	for _, c := range []struct {
		name string
		keys []string
		want string
	}{
		{"a key with several", []string{"a"}, mustMerge(t, two, other)},
		{"a key with one", []string{"b"}, two},
		{"a key with none", []string{"nobody"}, ""},
		{"several keys", []string{"nobody", "b", "a"}, mustMerge(t, two, other)},
		{"no key", nil, ""},
	} {
		if got, _ := loadAll(t, m, c.keys...); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A token ends when its life does, not before, and a later one of the key
// doesn't shorten it.
func TestMemoryForgetsInTime(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		m := httpsticky.NewMemory(10)
		tok := storedToken("c", 100)
		mustSave(t, m, tok, 30*time.Second, "a")
		time.Sleep(10 * time.Second)
		mustSave(t, m, tok, 5*time.Second, "a")
		time.Sleep(20*time.Second - 1)
		if got, _ := loadAll(t, m, "a"); got != tok {
			t.Errorf("just before the end of its life: %q", got)
		}
		time.Sleep(time.Nanosecond)
		if got, whole := loadAll(t, m, "a"); got != "" || whole != 30*time.Second {
			t.Errorf("after its life: %q, whole for %v", got, whole)
		}
		// What begins anew has nothing of what has ended.
		late := storedToken("d", 1)
		mustSave(t, m, late, time.Second, "a")
		if got, _ := loadAll(t, m, "a"); got != late {
			t.Errorf("begun anew: %q, want %q", got, late)
		}
	})
}

// What doesn't fit is dropped, the shortest life first, and it is admitted. What
// has ended makes room without a word.
func TestMemoryAdmitsWhatItDrops(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		m := httpsticky.NewMemory(2)
		tok := storedToken("c", 100)
		whole := func(want time.Duration) {
			t.Helper()
			if _, got := loadAll(t, m); got != want {
				t.Errorf("whole for %v, want %v", got, want)
			}
		}
		mustSave(t, m, tok, time.Minute, "long")
		mustSave(t, m, tok, 10*time.Second, "short")
		time.Sleep(10 * time.Second)
		mustSave(t, m, tok, time.Minute, "third") // in place of short
		whole(10 * time.Second)
		if got, _ := loadAll(t, m, "long"); got != tok {
			t.Error("a key is lost although there was room")
		}
		time.Sleep(time.Second)
		mustSave(t, m, tok, time.Minute, "fourth")
		whole(0)
		if got, _ := loadAll(t, m, "long"); got != "" {
			t.Error("the key with the shortest life is still there")
		}
		if a, _ := loadAll(t, m, "third"); a != tok {
			t.Error("a key with a longer life was dropped")
		}
		time.Sleep(3 * time.Second)
		whole(3 * time.Second)
		// The new one itself may be what has the shortest life.
		mustSave(t, m, tok, time.Second, "fifth")
		whole(0)
	})
}

// However much is saved, no more is kept than there is room for: the heap
// and the map agree under a random load, by a model.
func TestMemoryAgainstModel(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		type life struct{ end time.Time }
		m := httpsticky.NewMemory(8)
		model := map[string]life{}
		begin := time.Now()
		whole := begin
		tok := storedToken("c", 1)
		seed := uint32(1)
		draw := func(n uint32) uint32 { seed = seed*1664525 + 1013904223; return seed >> 8 % n }
		for i := range 3000 {
			time.Sleep(time.Duration(draw(1000)) * time.Millisecond)
			now := time.Now()
			for key, l := range model {
				if !l.end.After(now) {
					delete(model, key)
				}
			}
			// No two end at once.
			key, ttl := fmt.Sprint("key", draw(20)), time.Duration(1+draw(20000))*time.Millisecond+time.Duration(i)
			mustSave(t, m, tok, ttl, key)
			if end := now.Add(ttl); end.After(model[key].end) {
				model[key] = life{end}
			}
			if len(model) > 8 {
				first := ""
				for key, l := range model {
					if first == "" || l.end.Before(model[first].end) {
						first = key
					}
				}
				delete(model, first)
				whole = now
			}
			for i := range 20 {
				key := fmt.Sprint("key", i)
				_, want := model[key]
				if got, since := loadAll(t, m, key); (got == tok) != want || since != now.Sub(whole) {
					t.Fatalf("%s: kept %v, want %v; whole for %v, want %v", key, got == tok, want, since, now.Sub(whole))
				}
			}
		}
		if whole.Equal(begin) {
			t.Error("nothing was ever dropped: the test shows nothing")
		}
	})
}

// What isn't a token isn't kept, and the error doesn't repeat it.
func TestMemoryRefuses(t *testing.T) {
	m := httpsticky.NewMemory(0)
	for name, c := range map[string]struct {
		token string
		ttl   time.Duration
	}{
		"garbage": {"garbage-4711", time.Minute},
		"no life": {storedToken("c", 1), 0},
		"long":    {strings.Repeat("A", 5000), time.Minute},
	} {
		err := m.Save(context.Background(), c.token, c.ttl, "user-4712")
		if err == nil {
			t.Errorf("%s: no error", name)
		} else if strings.Contains(err.Error(), "471") || strings.Contains(err.Error(), c.token) {
			t.Errorf("%s: the error tells too much: %v", name, err)
		}
		if got, _ := loadAll(t, m, "user-4712"); got != "" {
			t.Errorf("%s: %q is kept", name, got)
		}
	}
	mustSave(t, m, "", time.Minute, "user-4712") // asks for nothing
	if kept, _ := m.Load(context.Background(), "user-4712"); len(kept.Tokens) != 0 {
		t.Errorf("an empty token is kept: %q", kept.Tokens)
	}
}

// A union too long for a token asks for everything, not for less.
func TestMemoryUnionTooLong(t *testing.T) {
	m := httpsticky.NewMemory(1)
	for i := range 600 {
		mustSave(t, m, storedToken(fmt.Sprint("cluster", i), 1<<40), time.Minute, "a")
	}
	kept, _ := m.Load(context.Background(), "a")
	every := replicated.CoarseToken("of every cluster")
	if len(kept.Tokens) != 1 || len(kept.Tokens[0]) > 4096 || mustMerge(t, kept.Tokens[0], every) != kept.Tokens[0] {
		t.Errorf("%q is kept", kept.Tokens)
	}
}

// Writers of one key at once lose none of each other's tokens.
func TestMemoryAtOnce(t *testing.T) {
	m := httpsticky.NewMemory(100)
	var all []string
	for i := range 32 {
		all = append(all, storedToken(fmt.Sprint(i%4), uint64(i+1)))
	}
	var wg sync.WaitGroup
	for _, tok := range all {
		wg.Go(func() {
			mustSave(t, m, tok, time.Minute, "a", tok[:20])
			_, _ = m.Load(context.Background(), "a")
		})
	}
	wg.Wait()
	slices.Reverse(all)
	if got, _ := loadAll(t, m, "a"); got != mustMerge(t, all...) {
		t.Errorf("kept %q, want %q", got, mustMerge(t, all...))
	}
}

func BenchmarkMemory(b *testing.B) {
	tok := storedToken("c", 1<<40)
	b.Run("Load", func(b *testing.B) {
		m := httpsticky.NewMemory(0)
		mustSave(b, m, tok, time.Hour, "user:1")
		b.ReportAllocs()
		for b.Loop() {
			_, _ = m.Load(context.Background(), "user:1")
		}
	})
	b.Run("Save", func(b *testing.B) {
		m := httpsticky.NewMemory(0)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			mustSave(b, m, tok, time.Hour, "user:1")
		}
	})
	b.Run("SaveFull", func(b *testing.B) {
		m := httpsticky.NewMemory(10_000)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			mustSave(b, m, tok, time.Hour, fmt.Sprint("user:", i))
		}
	})
}
