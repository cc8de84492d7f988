package redisstore_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/position"
	"github.com/sqlreplicated/replicated/internal/token"
	"github.com/sqlreplicated/replicated/redisstore"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

const (
	life = 30 * time.Second

	// within is what httpsticky gives a call. Tests share machines, so that what
	// must end then is given more.
	within = 50 * time.Millisecond
	grace  = 2 * time.Second
)

var bg = context.Background()

// clientLog is what the client says by itself, in all tests.
var clientLog logLines

func TestMain(m *testing.M) {
	redis.SetLogger(&clientLog)
	os.Exit(m.Run())
}

type logLines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logLines) Printf(_ context.Context, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(&l.text, format+"\n", args...)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func do(t testing.TB, r *replicatedtest.Redis, command ...string) any {
	t.Helper()
	answer, err := r.Do(command...)
	if err != nil {
		t.Fatalf("%s: %v", command[0], err)
	}
	return answer
}

// written is the token of a write of the cluster at the position.
func written(cluster string, at uint64) string {
	return token.Token{{Cluster: token.NameOf(cluster), Lineage: "7412345678901234567/1", Position: position.FromLSN(at)}}.String()
}

// newClient returns a client of the server at the address, as a store needs it.
func newClient(t testing.TB, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	t.Cleanup(func() { client.Close() })
	return client
}

// openAt returns a store in the server at the address.
func openAt(t testing.TB, addr string) *redisstore.Store {
	t.Helper()
	s, err := redisstore.New(bg, redisstore.Options{Client: newClient(t, addr)})
	must(t, err)
	return s
}

// start starts a server and opens a store in it.
func start(t testing.TB, settings map[string]string) (*replicatedtest.Redis, *redisstore.Store) {
	t.Helper()
	r := replicatedtest.StartRedis(t, replicatedtest.RedisConfig{Settings: settings})
	return r, openAt(t, r.Addr())
}

func save(t testing.TB, s *redisstore.Store, token string, keys ...string) {
	t.Helper()
	must(t, s.Save(bg, token, life, keys...))
}

// load returns the union of what is kept, and for how long all has been kept.
func load(t testing.TB, s *redisstore.Store, keys ...string) (string, time.Duration) {
	t.Helper()
	kept, err := s.Load(bg, keys...)
	must(t, err)
	return merged(t, kept.Tokens...), kept.Whole
}

func merged(t testing.TB, tokens ...string) string {
	t.Helper()
	all, err := replicated.MergeTokens(tokens...)
	must(t, err)
	return all
}

// age makes the bucket of the key one that has been whole for an hour.
func age(t testing.TB, r *replicatedtest.Redis, s *redisstore.Store, key string) {
	t.Helper()
	load(t, s, key)
	id, since, _ := strings.Cut(do(t, r, "GET", epochOf(s, key)).(string), " ")
	ms, err := strconv.ParseInt(since, 10, 64)
	must(t, err)
	do(t, r, "SET", epochOf(s, key), fmt.Sprint(id, " ", ms-time.Hour.Milliseconds()))
	wantWhole(t, s, key)
}

func epochOf(s *redisstore.Store, key string) string {
	name := s.RedisKey(key)
	return name[:strings.LastIndex(name, ":")+1] + "epoch"
}

// wantWhole is an error if the store thinks that it may have lost something
// lately, wantLost if it doesn't.
func wantWhole(t testing.TB, s *redisstore.Store, key string) {
	t.Helper()
	if _, whole := load(t, s, key); whole < time.Hour-time.Second || whole > time.Hour+10*time.Minute {
		t.Errorf("whole for %v, want an hour", whole)
	}
}

func wantLost(t testing.TB, s *redisstore.Store, key string) {
	t.Helper()
	if _, whole := load(t, s, key); whole >= life {
		t.Errorf("whole for %v, want less than the life of a token", whole)
	}
}
