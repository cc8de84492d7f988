package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sqlreplicated/replicated/redisstore"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

func openCluster(t *testing.T, members []*replicatedtest.Redis) *redisstore.Store {
	t.Helper()
	var addrs []string
	for _, r := range members {
		addrs = append(addrs, r.Addr())
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, ContextTimeoutEnabled: true})
	t.Cleanup(func() { client.Close() })
	s, err := redisstore.New(bg, redisstore.Options{Client: client})
	must(t, err)
	return s
}

// owner returns which member has the key.
func owner(t *testing.T, members []*replicatedtest.Redis, s *redisstore.Store, key string) int {
	t.Helper()
	slot := do(t, members[0], "CLUSTER", "KEYSLOT", s.RedisKey(key)).(int64)
	for i := range members {
		if slot < int64((i+1)*16384/len(members)) {
			return i
		}
	}
	panic("no owner")
}

// In a Redis Cluster the keys are spread over all primaries, and several of one call
// may be anywhere. What befalls one primary is seen in what it has, and in
// nothing else.
func TestCluster(t *testing.T) {
	members := replicatedtest.StartRedisCluster(t, 3, replicatedtest.RedisConfig{
		// Those that are there serve what they have.
		Settings: map[string]string{"cluster-require-full-coverage": "no"}})
	s := openCluster(t, members)
	var keys []string
	at := map[int][]string{}
	for i := range 60 {
		key := fmt.Sprint("user:", i)
		keys = append(keys, key)
		o := owner(t, members, s, key)
		at[o] = append(at[o], key)
	}
	if len(at[0]) < 5 || len(at[1]) < 5 || len(at[2]) < 5 {
		t.Fatalf("the keys are spread as %v", at)
	}
	save(t, s, written("c", 1), keys...)
	for i, key := range keys {
		save(t, s, written("d", uint64(i+1)), key)
		if got, _ := load(t, s, key); got != merged(t, written("c", 1), written("d", uint64(i+1))) {
			t.Errorf("%s: %q is kept", key, got)
		}
	}
	all := merged(t, written("c", 1), written("d", 60))
	if got, _ := load(t, s, keys...); got != all {
		t.Errorf("of all keys %q is kept, want %q", got, all)
	}

	// Many tokens of one key, which are swapped.
	for i := range 100 {
		save(t, s, written("e", uint64(i+1)), keys[0])
	}
	if n := do(t, members[owner(t, members, s, keys[0])], "ZCARD", s.RedisKey(keys[0])).(int64); n > redisstore.CrowdedToSave {
		t.Errorf("%d tokens are kept", n)
	}

	for i, key := range []string{at[0][0], at[1][0], at[2][0]} {
		age(t, members[i], s, key)
	}
	must(t, members[1].Kill())
	ctx, cancel := context.WithTimeout(bg, within)
	if _, err := s.Load(ctx, at[1][0], at[0][0]); err == nil {
		t.Error("a primary that was killed answers")
	}
	cancel()
	wantWhole(t, s, at[0][0])
	wantWhole(t, s, at[2][0])
	s.LookAgain() // one that doesn't answer doesn't keep the others from it
	wantWhole(t, s, at[0][0])
	must(t, members[1].RestartEmpty())
	eventually(t, "the primary is back", func() bool {
		_, err := s.Load(bg, at[1][0])
		return err == nil
	})
	wantLost(t, s, at[1][0])
	wantWhole(t, s, at[0][0])
	if _, whole := load(t, s, at[0][0], at[1][0], at[2][0]); whole >= life {
		t.Errorf("with one bucket that is new all are whole for %v", whole)
	}

	// One of several that evicts is one too many.
	do(t, members[2], "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	s.LookAgain()
	if _, err := s.Load(bg, at[0][0]); !errors.Is(err, redisstore.ErrPolicy) {
		t.Errorf("one primary evicts: %v", err)
	}
}
