package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sqlreplicated/replicated/redisstore"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// Whatever happens to a server by which it loses what it had, or may have, is
// seen by the next one who reads, in all buckets: also if everything is still
// there, since that can't be known.
func TestLossIsSeen(t *testing.T) {
	for _, c := range []struct {
		name     string
		settings map[string]string
		befall   func(t *testing.T, r *replicatedtest.Redis)
		keeps    bool // what was saved before is still there
	}{
		{name: "killed and empty", befall: func(t *testing.T, r *replicatedtest.Redis) { must(t, r.RestartEmpty()) }},
		{name: "killed with an old snapshot", befall: func(t *testing.T, r *replicatedtest.Redis) {
			must(t, r.Kill())
			must(t, r.Start())
		}},
		{name: "restarted in order with a snapshot", keeps: true, befall: func(t *testing.T, r *replicatedtest.Redis) { must(t, r.Restart()) }},
		{name: "killed with an append-only file", keeps: true, settings: map[string]string{"appendonly": "yes"}, befall: func(t *testing.T, r *replicatedtest.Redis) {
			must(t, r.Kill())
			must(t, r.Start())
		}},
		{name: "flushed", befall: func(t *testing.T, r *replicatedtest.Redis) { do(t, r, "FLUSHALL") }},
		{name: "flushed in the background", befall: func(t *testing.T, r *replicatedtest.Redis) { do(t, r, "FLUSHDB", "ASYNC") }},
		{name: "another database", befall: func(t *testing.T, r *replicatedtest.Redis) { do(t, r, "SWAPDB", "0", "1") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, s := start(t, c.settings)
			keys := []string{"a", "b", "user:1", "user:2"}
			for _, key := range keys {
				age(t, r, s, key)
			}
			must(t, r.Save())
			save(t, s, written("c", 1), keys...)
			for _, key := range keys {
				wantWhole(t, s, key)
			}
			c.befall(t, r)
			for _, key := range keys {
				wantLost(t, s, key)
				if got, _ := load(t, s, key); (got != "") != c.keeps {
					t.Errorf("%s: %q is kept", key, got)
				}
			}
			// Of several buckets the one that counts is the one that has lost most
			// lately.
			age(t, r, s, "a")
			if _, whole := load(t, s, "a", "b"); whole >= life {
				t.Errorf("two buckets, one of which is new, are whole for %v", whole)
			}
			// It stays seen until it is over.
			wantLost(t, s, "b")
			// What is saved from now on is kept.
			save(t, s, written("c", 2), "b")
			if got, _ := load(t, s, "b"); got != written("c", 2) {
				t.Errorf("%q is kept", got)
			}
		})
	}
}

// A save is enough to find it out, so that it is over sooner.
func TestSaveSeesLoss(t *testing.T) {
	r, s := start(t, nil)
	age(t, r, s, "a")
	must(t, r.Restart())
	save(t, s, written("c", 1), "a")
	epoch := do(t, r, "GET", epochOf(s, "a"))
	wantLost(t, s, "a")
	if now := do(t, r, "GET", epochOf(s, "a")); now != epoch {
		t.Errorf("the epoch is %v, it was %v after the save", now, epoch)
	}
}

// Whoever sees a loss first makes it known for all keys, so that each is read fresh
// only once, and for the same time.
func TestLossBeginsEverywhere(t *testing.T) {
	for name, find := range map[string]func(s *redisstore.Store) error{
		"load": func(s *redisstore.Store) error { _, err := s.Load(bg, "a"); return err },
		"save": func(s *redisstore.Store) error { return s.Save(bg, written("c", 1), life, "a") },
	} {
		r, s := start(t, nil)
		must(t, r.RestartEmpty())
		must(t, find(s))
		id := strings.Fields(do(t, r, "GET", epochOf(s, "a")).(string))[0]
		mget := []string{"MGET"}
		for _, name := range do(t, r, "KEYS", "*:epoch").([]any) {
			mget = append(mget, name.(string))
		}
		if len(mget) != 1+redisstore.Buckets {
			t.Errorf("%s: %d buckets have begun", name, len(mget)-1)
		}
		for _, epoch := range do(t, r, mget...).([]any) {
			if !strings.HasPrefix(epoch.(string), id+" ") {
				t.Errorf("%s: an epoch %q", name, epoch)
			}
		}
	}
}

// copies are a primary, a copy of it, and one address that leads to the former.
type copies struct {
	primary, replica *replicatedtest.Redis
	feed             *replicatedtest.Proxy // between them
	clients          *replicatedtest.Proxy
}

func startCopies(t *testing.T) copies {
	c := copies{primary: replicatedtest.StartRedis(t, replicatedtest.RedisConfig{})}
	var err error
	c.feed, err = replicatedtest.NewProxy(c.primary.Addr())
	must(t, err)
	t.Cleanup(c.feed.Close)
	c.replica = replicatedtest.StartRedis(t, replicatedtest.RedisConfig{Follow: c.feed.Addr()})
	c.clients, err = replicatedtest.NewProxy(c.primary.Addr())
	must(t, err)
	t.Cleanup(c.clients.Close)
	return c
}

// waitCopied waits until the replica has what its primary has.
func (c copies) waitCopied(t *testing.T) {
	t.Helper()
	do(t, c.primary, "SET", "mark", fmt.Sprint(time.Now().UnixNano()))
	want := do(t, c.primary, "GET", "mark")
	eventually(t, "the copy catches up", func() bool { return do(t, c.replica, "GET", "mark") == want })
}

// After a failover to a copy that lagged, with the epoch and all, what is missing
// isn't missed.
func TestFailoverToALaggingCopy(t *testing.T) {
	c := startCopies(t)
	s := openAt(t, c.clients.Addr())
	age(t, c.primary, s, "a")
	c.waitCopied(t)
	c.feed.Stall(replicatedtest.ToClient)
	save(t, s, written("c", 1), "a")
	wantWhole(t, s, "a")
	must(t, c.primary.Kill())
	must(t, c.replica.Promote())
	c.clients.SetTarget(c.replica.Addr())
	eventually(t, "the new primary is reached", func() bool {
		_, err := s.Load(bg, "a")
		return err == nil
	})
	if got, _ := load(t, s, "a"); got != "" {
		t.Fatal("the copy did not lag: the test shows nothing")
	}
	wantLost(t, s, "a")
}

// The first primary, which has run all the time, comes back as the primary, having
// copied from the second, which lacked something, and in which nobody looked.
func TestFailoverThereAndBack(t *testing.T) {
	c := startCopies(t)
	s := openAt(t, c.primary.Addr())
	age(t, c.primary, s, "a")
	c.waitCopied(t)
	c.feed.Stall(replicatedtest.ToClient)
	save(t, s, written("c", 1), "a")
	must(t, c.replica.Promote())
	must(t, c.primary.Follow(c.replica.Addr()))
	must(t, c.primary.Promote())
	eventually(t, "it is reached", func() bool {
		_, err := s.Load(bg, "a")
		return err == nil
	})
	if got, _ := load(t, s, "a"); got != "" {
		t.Fatal("the copy did not lag: the test shows nothing")
	}
	wantLost(t, s, "a")
}

// A replica isn't believed, although it has the epoch of its primary.
func TestReplicaIsRefused(t *testing.T) {
	c := startCopies(t)
	s := openAt(t, c.primary.Addr())
	age(t, c.primary, s, "a")
	c.waitCopied(t)
	client := redis.NewClient(&redis.Options{Addr: c.replica.Addr(), ContextTimeoutEnabled: true, MaxRetries: -1})
	t.Cleanup(func() { client.Close() })
	onReplica, err := redisstore.New(bg, redisstore.Options{Client: client})
	if err == nil || !strings.Contains(err.Error(), "replica") {
		t.Errorf("New: %v", err)
	}
	if kept, err := onReplica.Load(bg, "a"); err == nil {
		t.Errorf("a replica answers %v", kept)
	}
	if err := onReplica.Save(bg, written("c", 1), life, "a"); err == nil {
		t.Error("a replica takes a token")
	}
	// Promoted, it is one like others, and the same client is content.
	must(t, c.replica.Promote())
	save(t, onReplica, written("c", 1), "a")
	wantLost(t, onReplica, "a")
}

// A server that doesn't answer costs what the context allows, on connections that
// there are and on new ones, and once it answers again nothing is lost.
func TestNoAnswer(t *testing.T) {
	for _, c := range []struct {
		name      string
		hang, end func(t *testing.T, r *replicatedtest.Redis, p *replicatedtest.Proxy)
		lost      bool
	}{
		{name: "hung",
			hang: func(t *testing.T, r *replicatedtest.Redis, _ *replicatedtest.Proxy) { must(t, r.Hang()) },
			end:  func(t *testing.T, r *replicatedtest.Redis, _ *replicatedtest.Proxy) { must(t, r.Resume()) }},
		{name: "behind a network that has stopped",
			hang: func(t *testing.T, _ *replicatedtest.Redis, p *replicatedtest.Proxy) { p.Stall(replicatedtest.BothWays) },
			end:  func(t *testing.T, _ *replicatedtest.Redis, p *replicatedtest.Proxy) { p.Pass() }},
		{name: "behind a network that is gone",
			hang: func(t *testing.T, _ *replicatedtest.Redis, p *replicatedtest.Proxy) { p.Blackhole() },
			end:  func(t *testing.T, _ *replicatedtest.Redis, p *replicatedtest.Proxy) { p.Pass() }},
		{name: "answers slower than is waited",
			hang: func(t *testing.T, _ *replicatedtest.Redis, p *replicatedtest.Proxy) { p.Delay(10 * within) },
			end:  func(t *testing.T, _ *replicatedtest.Redis, p *replicatedtest.Proxy) { p.Pass() }},
		{name: "refuses connections",
			hang: func(t *testing.T, _ *replicatedtest.Redis, p *replicatedtest.Proxy) { p.Refuse() },
			end:  func(t *testing.T, _ *replicatedtest.Redis, p *replicatedtest.Proxy) { p.Pass() }},
		{name: "paused",
			hang: func(t *testing.T, r *replicatedtest.Redis, _ *replicatedtest.Proxy) { must(t, r.Pause(10*within)) },
			end:  func(*testing.T, *replicatedtest.Redis, *replicatedtest.Proxy) {}},
		{name: "killed", lost: true,
			hang: func(t *testing.T, r *replicatedtest.Redis, _ *replicatedtest.Proxy) { must(t, r.Kill()) },
			end:  func(t *testing.T, r *replicatedtest.Redis, _ *replicatedtest.Proxy) { must(t, r.Start()) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := replicatedtest.StartRedis(t, replicatedtest.RedisConfig{})
			p, err := replicatedtest.NewProxy(r.Addr())
			must(t, err)
			t.Cleanup(p.Close)
			s := openAt(t, p.Addr())
			age(t, r, s, "a")
			save(t, s, written("c", 1), "a")
			c.hang(t, r, p)
			// The first uses the connection that there is, the others make new ones.
			for i := range 4 {
				begin := time.Now()
				ctx, cancel := context.WithTimeout(bg, within)
				if i%2 == 0 {
					_, err = s.Load(ctx, "a", "b")
				} else {
					err = s.Save(ctx, written("c", 2), life, "a", "b")
				}
				cancel()
				if err == nil {
					t.Errorf("call %d: no error", i)
				}
				if took := time.Since(begin); took > grace {
					t.Errorf("call %d took %v", i, took)
				}
			}
			c.end(t, r, p)
			eventually(t, "it answers again", func() bool {
				ctx, cancel := context.WithTimeout(bg, grace)
				defer cancel()
				_, err := s.Load(ctx, "a")
				return err == nil
			})
			got, _ := load(t, s, "a")
			if c.lost {
				wantLost(t, s, "a")
			} else {
				wantWhole(t, s, "a")
				if got == "" {
					t.Error("what was saved before is gone")
				}
			}
		})
	}
}

// An application may begin while there is no server, or one that hangs.
func TestBeginsWithoutAServer(t *testing.T) {
	r := replicatedtest.StartRedis(t, replicatedtest.RedisConfig{})
	client := newClient(t, r.Addr())
	must(t, r.Hang())
	ctx, cancel := context.WithTimeout(bg, within)
	defer cancel()
	begin := time.Now()
	s, err := redisstore.New(ctx, redisstore.Options{Client: client})
	if err == nil || s == nil {
		t.Fatalf("%v, %v", s, err)
	}
	if took := time.Since(begin); took > grace {
		t.Errorf("New took %v", took)
	}
	must(t, r.Resume())
	save(t, s, written("c", 1), "a")
	if got, _ := load(t, s, "a"); got != written("c", 1) {
		t.Errorf("%q is kept", got)
	}
}

// A server whose memory is full says so to writers, serves readers, and has lost
// nothing.
func TestFull(t *testing.T) {
	r, s := start(t, nil)
	for _, key := range []string{"a", "b"} {
		age(t, r, s, key)
	}
	save(t, s, written("c", 1), "a")
	do(t, r, "DEL", epochOf(s, "c"))
	fill(t, r)
	for range 2 {
		err := s.Save(bg, written("c", 2), life, "a", "b")
		if err == nil || !strings.Contains(err.Error(), "OOM") {
			t.Errorf("a full server takes a token: %v", err)
		}
	}
	wantWhole(t, s, "a")
	if got, _ := load(t, s, "a", "b"); got != written("c", 1) {
		t.Errorf("%q is kept", got)
	}
	// A bucket that has no epoch can't be given one, and isn't thought to be
	// whole.
	if kept, err := s.Load(bg, "c"); err == nil {
		t.Errorf("a bucket without an epoch: %+v", kept)
	}
	do(t, r, "CONFIG", "SET", "maxmemory", "0")
	save(t, s, written("c", 2), "a")
	wantWhole(t, s, "a")
	wantLost(t, s, "c")
}

// fill gives the server no more memory than it has taken.
func fill(t *testing.T, r *replicatedtest.Redis) {
	t.Helper()
	do(t, r, "CONFIG", "SET", "maxmemory", "1mb")
	if _, err := r.Do("SET", "x", "1"); err == nil || !strings.Contains(err.Error(), "OOM") {
		t.Fatalf("the server is not full: %v", err)
	}
}

// A server that may evict keys is refused from the beginning, and as soon as it is
// seen later; what it has evicted until then is admitted when it is content again.
func TestEvictionIsRefused(t *testing.T) {
	r, s := start(t, nil)
	age(t, r, s, "a")
	for _, policy := range []string{"allkeys-lru", "volatile-ttl", "volatile-lru"} {
		do(t, r, "CONFIG", "SET", "maxmemory-policy", policy)
		client := newClient(t, r.Addr())
		late, err := redisstore.New(bg, redisstore.Options{Client: client})
		if !errors.Is(err, redisstore.ErrPolicy) || !strings.Contains(err.Error(), policy) || late == nil {
			t.Errorf("%s: %v, %v", policy, late, err)
		}
		trusting, err := redisstore.New(bg, redisstore.Options{Client: client, TrustPolicy: true})
		must(t, err)
		wantWhole(t, trusting, "a")
		s.LookAgain()
		for range 2 { // one looks, the other one is told
			if _, err := s.Load(bg, "a"); !errors.Is(err, redisstore.ErrPolicy) {
				t.Errorf("%s: Load: %v", policy, err)
			}
			if err := s.Save(bg, written("c", 1), life, "a"); !errors.Is(err, redisstore.ErrPolicy) {
				t.Errorf("%s: Save: %v", policy, err)
			}
		}
	}
	do(t, r, "CONFIG", "SET", "maxmemory-policy", "noeviction")
	s.LookAgain()
	wantWhole(t, s, "a") // nothing was evicted

	// The policy is right again before anybody has looked.
	save(t, s, written("c", 1), "a")
	epoch := do(t, r, "GET", epochOf(s, "a"))
	do(t, r, "CONFIG", "SET", "maxmemory-policy", "volatile-ttl")
	do(t, r, "CONFIG", "SET", "maxmemory", "1mb")
	_, _ = r.Do("SET", "x", "1")
	do(t, r, "CONFIG", "SET", "maxmemory", "0")
	do(t, r, "CONFIG", "SET", "maxmemory-policy", "noeviction")
	if do(t, r, "EXISTS", s.RedisKey("a")) != int64(0) || do(t, r, "GET", epochOf(s, "a")) != epoch {
		t.Fatal("the token was not evicted, or the epoch was: the test shows nothing")
	}
	s.LookAgain()
	wantLost(t, s, "a")
	wantLost(t, openAt(t, r.Addr()), "a") // a process that begins later
}

// A clock that was set back doesn't make anything whole, and is got over.
func TestClockSetBack(t *testing.T) {
	r, s := start(t, nil)
	age(t, r, s, "a")
	id, _, _ := strings.Cut(do(t, r, "GET", epochOf(s, "a")).(string), " ")
	for _, epoch := range []string{
		fmt.Sprint(id, " ", time.Now().Add(time.Hour).UnixMilli()),
		id, "", id + " -1", "garbage 1",
	} {
		do(t, r, "SET", epochOf(s, "a"), epoch)
		wantLost(t, s, "a")
		if now := do(t, r, "GET", epochOf(s, "a")); now == epoch {
			t.Errorf("the epoch is still %q", epoch)
		}
	}
}
