package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sqlreplicated/replicated/redisstore"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// What was saved of a key is kept by union, in whatever order, for all who ask,
// and of no other key.
func TestKeepsTheUnion(t *testing.T) {
	r, s := start(t, nil)
	one, two, other := written("c", 100), written("c", 200), written("d", 50)
	save(t, s, two, "a", "b")
	save(t, s, one, "a")
	save(t, s, other, "a")
	elsewhere := openAt(t, r.Addr())
	for _, c := range []struct {
		name string
		keys []string
		want string
	}{
		{"a key with several", []string{"a"}, merged(t, two, other)},
		{"a key with one", []string{"b"}, two},
		{"a key with none", []string{"nobody"}, ""},
		{"several keys", []string{"nobody", "b", "a"}, merged(t, two, other)},
		{"a key twice", []string{"b", "b"}, two},
		{"no key", nil, ""},
	} {
		for who, s := range map[string]*redisstore.Store{"the same store": s, "another": elsewhere} {
			if got, _ := load(t, s, c.keys...); got != c.want {
				t.Errorf("%s, %s: %q, want %q", c.name, who, got, c.want)
			}
		}
	}
}

// Another prefix is another store.
func TestPrefix(t *testing.T) {
	r, s := start(t, nil)
	client := newClient(t, r.Addr())
	other, err := redisstore.New(bg, redisstore.Options{Client: client, Prefix: "app2:"})
	must(t, err)
	save(t, other, written("c", 1), "a")
	if got, _ := load(t, s, "a"); got != "" {
		t.Errorf("kept under another prefix: %q", got)
	}
	for _, name := range do(t, r, "KEYS", "*").([]any) {
		if !strings.HasPrefix(name.(string), "replicated:{b") && !strings.HasPrefix(name.(string), "app2:{b") {
			t.Errorf("a key outside both prefixes: %q", name)
		}
	}
}

// A token lives as long as was asked by the server's clock, not less; a shorter
// life asked later doesn't shorten it; then it is gone, and its memory is free.
func TestForgetsInTime(t *testing.T) {
	r, s := start(t, nil)
	tok := written("c", 100)
	before := time.Now()
	must(t, s.Save(bg, tok, time.Minute, "a"))
	must(t, s.Save(bg, tok, time.Second, "a"))
	score, err := strconv.ParseFloat(do(t, r, "ZSCORE", s.RedisKey("a"), tok).(string), 64)
	must(t, err)
	end := time.UnixMilli(int64(score))
	if end.Before(before.Add(time.Minute)) || end.After(time.Now().Add(time.Minute+time.Second)) {
		t.Errorf("the token ends %v after it was saved", end.Sub(before))
	}
	if at := do(t, r, "PEXPIRETIME", s.RedisKey("a")).(int64); at != int64(score) {
		t.Errorf("the key ends at %d, the token at %d", at, int64(score))
	}

	// Of two, the one that has ended is not read, nor kept when another comes.
	long, short, late := written("c", 1), written("d", 1), written("e", 1)
	must(t, s.Save(bg, long, time.Minute, "b"))
	must(t, s.Save(bg, short, time.Millisecond, "b"))
	eventually(t, "the short one ends", func() bool {
		got, _ := load(t, s, "b")
		return got == long
	})
	must(t, s.Save(bg, late, time.Minute, "b"))
	if n := do(t, r, "ZCARD", s.RedisKey("b")); n != int64(2) {
		t.Errorf("%v tokens are kept, want two", n)
	}
	must(t, s.Save(bg, short, time.Millisecond, "c"))
	eventually(t, "the key ends", func() bool { return do(t, r, "EXISTS", s.RedisKey("c")) == int64(0) })
}

func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not happen that %s", what)
		}
	}
}

// Writers of the same key at once lose nothing of each other, and a key doesn't
// grow, whether it is read meanwhile or not. What is kept in place of many asks for
// all of them.
func TestManyWriters(t *testing.T) {
	r, s := start(t, nil)
	for _, read := range []bool{true, false} {
		key := fmt.Sprint("read ", read)
		var all []string
		var mu sync.Mutex
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				for i := range 40 {
					tok := written(fmt.Sprint("cluster", w%3), uint64(1+w*1000+i))
					if err := s.Save(bg, tok, life, key); err != nil {
						t.Error(err)
					}
					mu.Lock()
					all = append(all, tok)
					mu.Unlock()
					if read {
						if _, err := s.Load(bg, key); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		wg.Wait()
		if n := do(t, r, "ZCARD", s.RedisKey(key)).(int64); n > redisstore.CrowdedToSave+8 {
			t.Errorf("%s: %d tokens are kept", key, n)
		}
		got, _ := load(t, s, key)
		if got != merged(t, all...) {
			t.Errorf("%s: kept %q, want %q", key, got, merged(t, all...))
		}
		if n := do(t, r, "ZCARD", s.RedisKey(key)).(int64); n > redisstore.CrowdedToRead {
			t.Errorf("%s: %d tokens are kept after a read", key, n)
		}
		if ttl := do(t, r, "PTTL", s.RedisKey(key)).(int64); ttl <= 0 || ttl > life.Milliseconds()+10 {
			t.Errorf("%s: it ends in %d ms", key, ttl)
		}
	}
}

// What stands for many lives as long as the one that lives longest, and what has
// been replaced meanwhile isn't brought back.
func TestUnionLivesLongest(t *testing.T) {
	r, s := start(t, nil)
	for i := range redisstore.CrowdedToRead + 1 {
		must(t, s.Save(bg, written("c", uint64(i+1)), life+time.Duration(i%5)*time.Minute, "a"))
	}
	before := do(t, r, "ZREVRANGE", s.RedisKey("a"), "0", "0", "WITHSCORES").([]any)
	load(t, s, "a")
	after := do(t, r, "ZRANGE", s.RedisKey("a"), "0", "-1", "WITHSCORES").([]any)
	if len(after) != 2 || after[1] != before[1] {
		t.Errorf("the one that lives longest was %v, now there is %v", before, after)
	}
}

// More tokens than are read are admitted.
func TestTooManyTokensToRead(t *testing.T) {
	r, s := start(t, nil)
	age(t, r, s, "a")
	add := []string{"ZADD", s.RedisKey("a")}
	for i := range redisstore.MaxTokens {
		add = append(add, "9000000000000", written("c", uint64(i+1)))
	}
	do(t, r, add...)
	wantWhole(t, s, "a")
	// That Load has made one of them.
	add = append(add, "9000000000000", written("c", 1<<40))
	do(t, r, add...)
	if got, whole := load(t, s, "a"); whole != 0 || got == "" {
		t.Errorf("whole for %v", whole)
	}
}

// What isn't a token isn't kept, and what may break the store isn't taken.
func TestRefuses(t *testing.T) {
	r, s := start(t, nil)
	for name, c := range map[string]struct {
		token string
		ttl   time.Duration
	}{
		"garbage": {"garbage-4711", time.Minute},
		"no life": {written("c", 1), 0},
		"long":    {strings.Repeat("A", 5000), time.Minute},
	} {
		if err := s.Save(bg, c.token, c.ttl, "a"); err == nil || strings.Contains(err.Error(), c.token) {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, s.Save(bg, "", time.Minute, "a")) // asks for nothing
	must(t, s.Save(bg, written("c", 1), time.Minute))
	if n := do(t, r, "EXISTS", s.RedisKey("a")); n != int64(0) {
		t.Error("something is kept")
	}

	addr := r.Addr()
	for name, o := range map[string]redisstore.Options{
		"no client":   {},
		"braces":      {Client: redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true}), Prefix: "a{b}"},
		"no deadline": {Client: redis.NewClient(&redis.Options{Addr: addr})},
		"no deadlines in a cluster": {
			Client: redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{addr}})},
		"a ring": {Client: redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": addr}, ContextTimeoutEnabled: true})},
	} {
		if s, err := redisstore.New(bg, o); err == nil || s != nil {
			t.Errorf("%s: %v, %v", name, s, err)
		}
		if c, ok := o.Client.(interface{ Close() error }); ok {
			must(t, c.Close())
		}
	}
}

// A server that has forgotten the scripts is taught them again, in all buckets at
// once.
func TestScriptsAreForgotten(t *testing.T) {
	r, s := start(t, nil)
	age(t, r, s, "a")
	keys := []string{"a", "b", "c", "d"}
	do(t, r, "SCRIPT", "FLUSH")
	save(t, s, written("c", 1), keys...)
	do(t, r, "SCRIPT", "FLUSH")
	if got, _ := load(t, s, keys...); got != written("c", 1) {
		t.Errorf("kept %q", got)
	}
	wantWhole(t, s, "a")
}

// Neither keys nor tokens are in the names of what is kept, in errors or in what
// the client logs, whatever goes wrong.
func TestTellsNothing(t *testing.T) {
	const key = "user-4711@example.com"
	r, s := start(t, nil)
	tok := written("c", 4711)
	save(t, s, tok, key)
	for _, name := range do(t, r, "KEYS", "*").([]any) {
		if strings.Contains(name.(string), "4711") || len(name.(string)) > 64 {
			t.Errorf("the name of a key: %q", name)
		}
	}
	var said []string
	note := func(what string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(bg, within)
		defer cancel()
		_, err1 := s.Load(ctx, key)
		err2 := s.Save(ctx, tok, life, key)
		if err1 == nil || err2 == nil {
			t.Errorf("%s: no error: %v, %v", what, err1, err2)
			return
		}
		said = append(said, err1.Error(), err2.Error())
	}
	do(t, r, "SET", s.RedisKey(key), "of another type")
	note("a key of another type")
	must(t, r.Hang())
	note("a server that hangs")
	must(t, r.Kill())
	note("no server")

	// A server whose administrator has taken the commands away repeats what it
	// was asked.
	r = replicatedtest.StartRedis(t, replicatedtest.RedisConfig{Settings: map[string]string{"rename-command": `EVALSHA ""`}})
	client := newClient(t, r.Addr())
	s, err := redisstore.New(bg, redisstore.Options{Client: client})
	if err == nil || s == nil {
		t.Fatalf("without EVALSHA: %v, %v", s, err)
	}
	note("a server without EVALSHA")
	name := strings.TrimPrefix(s.RedisKey(key), "replicated:")
	for _, text := range append(said, clientLog.String()) {
		if strings.Contains(text, "4711") || strings.Contains(text, tok[:8]) || strings.Contains(text, name) {
			t.Errorf("it tells too much: %s", text)
		}
	}
}

// These rights are all that a user of Redis needs, for a Redis with a list of them.
func TestRightsNeeded(t *testing.T) {
	const rights = "~replicated:* -@all +eval +evalsha +info +time +get +set +zadd +zcard +zrangebyscore +zrem +zremrangebyscore +zrevrange +zscore +pexpireat"
	documented, err := os.ReadFile("../docs/stores.md")
	must(t, err)
	if !strings.Contains(string(documented), rights) {
		t.Errorf("docs/stores.md doesn't name the rights %q", rights)
	}
	r := replicatedtest.StartRedis(t, replicatedtest.RedisConfig{})
	do(t, r, append([]string{"ACL", "SETUSER", "app", "on", ">secret"}, strings.Fields(rights)...)...)
	client := redis.NewClient(&redis.Options{Addr: r.Addr(), ContextTimeoutEnabled: true, Username: "app", Password: "secret"})
	t.Cleanup(func() { client.Close() })
	s, err := redisstore.New(bg, redisstore.Options{Client: client})
	must(t, err)
	var all []string
	for i := range 3 * redisstore.CrowdedToSave {
		all = append(all, written("c", uint64(i+1)))
		save(t, s, all[i], "a", "b")
	}
	if got, _ := load(t, s, "a"); got != merged(t, all...) {
		t.Errorf("kept %q", got)
	}
	if n := do(t, r, "ZCARD", s.RedisKey("b")).(int64); n > redisstore.CrowdedToSave {
		t.Errorf("%d tokens are kept: they could not be swapped", n)
	}
}

// An error of a call whose time has run out says so.
func TestErrorsAreWrapped(t *testing.T) {
	r, s := start(t, nil)
	must(t, r.Hang())
	ctx, cancel := context.WithTimeout(bg, within)
	defer cancel()
	if _, err := s.Load(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) && !isTimeout(err) {
		t.Errorf("%v", err)
	}
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// answering is a client of something that gives scripts an answer of its own.
type answering struct{ redisstore.Client }

func (answering) EvalSha(ctx context.Context, _ string, _ []string, _ ...any) *redis.Cmd {
	answer := redis.NewCmd(ctx)
	answer.SetVal([]any{})
	return answer
}

// An answer that no script gives is an error.
func TestAnswerWithNothingInIt(t *testing.T) {
	s, err := redisstore.New(bg, redisstore.Options{Client: answering{}, TrustPolicy: true})
	if err == nil {
		t.Error("no error of New")
	}
	if _, err := s.Load(bg, "k"); err == nil {
		t.Error("no error of a load")
	}
	if err := s.Save(bg, written("c", 1), life, "k"); err == nil {
		t.Error("no error of a save")
	}
}
