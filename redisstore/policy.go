package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrPolicy is returned by New, and by each call, while a server may evict keys
// when its memory is full.
var ErrPolicy = errors.New("the server may evict keys, which would look as if nobody had written: set maxmemory-policy noeviction")

const (
	policyEvery = time.Minute
	policyAgain = time.Second // after one that found something amiss
)

// policy is what is known of whether the servers evict keys. The calls themselves
// look, once a minute one of them, so that there is no goroutine to end.
type policy struct {
	mu      sync.Mutex // held briefly, never during I/O
	next    time.Time  // when somebody is to look
	err     error      // what was seen last
	evicted map[string]int64
	lost    time.Time // when an eviction was seen last; zero: never
}

// reading is what a server says.
type reading struct {
	server  string // this run of it
	policy  string
	evicted int64
}

// evicts returns an error if a server is known to evict keys, or if it isn't known
// that it does not.
func (s *Store) evicts(ctx context.Context) error {
	p := s.policy
	if p == nil {
		return nil
	}
	now := time.Now()
	p.mu.Lock()
	if now.Before(p.next) {
		defer p.mu.Unlock()
		return p.err
	}
	p.next = now.Add(policyAgain)
	if p.evicted == nil {
		p.err = errUnasked // for those who come before the answer
	}
	p.mu.Unlock()

	readings, err := s.readings(ctx)
	if err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.next = now // the next call looks
		return err
	}
	return p.judge(readings, now)
}

var errUnasked = errors.New("the server has not said yet whether it evicts keys")

func (p *policy) judge(readings []reading, now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = nil
	counts := map[string]int64{}
	for _, r := range readings {
		if r.policy != "noeviction" {
			p.err = fmt.Errorf("%w (it is %s)", ErrPolicy, r.policy)
		}
		counts[r.server] = r.evicted
		// Of a server seen for the first time it isn't known when it was.
		if r.evicted > p.evicted[r.server] {
			p.lost = now
		}
	}
	p.evicted = counts
	if p.err == nil {
		p.next = now.Add(policyEvery)
	}
	return p.err
}

// unevicted returns for how long nothing is known to have been evicted.
func (s *Store) unevicted() time.Duration {
	p := s.policy
	if p == nil {
		return math.MaxInt64
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lost.IsZero() {
		return math.MaxInt64
	}
	return time.Since(p.lost)
}

// readings asks all servers. One of several that doesn't answer is passed over:
// what it has can't be read now, and once it can, it was restarted or is asked
// within a minute.
func (s *Store) readings(ctx context.Context) ([]reading, error) {
	cluster, ok := s.client.(interface {
		ForEachMaster(context.Context, func(context.Context, *redis.Client) error) error
	})
	if !ok {
		r, err := readPolicy(ctx, s.client)
		return []reading{r}, err
	}
	var mu sync.Mutex
	var readings []reading
	var failed error
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
		r, err := readPolicy(ctx, c)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failed = err
		} else {
			readings = append(readings, r)
		}
		return nil
	})
	if len(readings) > 0 {
		return readings, nil
	}
	return nil, errors.Join(err, failed)
}

func readPolicy(ctx context.Context, c interface {
	Info(context.Context, ...string) *redis.StringCmd
}) (r reading, err error) {
	info, err := c.Info(ctx).Result()
	if err != nil {
		return r, err
	}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		switch name {
		case "run_id":
			r.server = value
		case "maxmemory_policy":
			r.policy = value
		case "evicted_keys":
			r.evicted, err = strconv.ParseInt(value, 10, 64)
		}
	}
	if err != nil || r.server == "" || r.policy == "" {
		return r, errors.New("the server's INFO doesn't tell its maxmemory_policy and run_id: if it is known never to evict keys, set Options.TrustPolicy")
	}
	return r, nil
}
