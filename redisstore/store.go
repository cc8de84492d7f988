package redisstore

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/httpsticky"
)

const (
	defaultPrefix = "replicated:"

	// buckets is how many parts of the keys there are that have an epoch each. It
	// is part of the names of keys, and so of what all processes must agree on.
	buckets = 256

	// Of a key with more tokens than these, the reader and the writer put their
	// union in place of them. Writers do it later: mostly a reader has been there
	// before.
	crowdedToRead = 16
	crowdedToSave = 32

	// maxTokens is how many tokens of a key are read. It takes some hundred writers
	// of one key at the same moment to have more; what is kept then counts as not
	// whole.
	maxTokens = 128

	// maxToken is the longest token that can be read.
	maxToken = 4096
)

// Client is what a Store needs of a client. *redis.Client, those that
// redis.NewFailoverClient makes included, and *redis.ClusterClient have it. A
// *redis.Ring is refused: when it leaves a server out and takes it in again, the
// server doesn't know of what it has missed.
type Client interface {
	Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd
	EvalSha(ctx context.Context, sha1 string, keys []string, args ...any) *redis.Cmd
	Pipelined(ctx context.Context, fn func(redis.Pipeliner) error) ([]redis.Cmder, error)
	Info(ctx context.Context, sections ...string) *redis.StringCmd
}

var (
	_ Client = (*redis.Client)(nil)
	_ Client = (*redis.ClusterClient)(nil)
)

// Options of a Store.
type Options struct {
	// Client leads to the primary: all of the store's commands are scripts that
	// may write. Required. It stays the caller's, who closes it, and must have
	// ContextTimeoutEnabled: without that go-redis lets a server that hangs hold a
	// request for ReadTimeout, whatever the request's context says.
	Client Client

	// Prefix begins the name of each key in Redis; "" means "replicated:". All
	// processes that are to see each other's writes have the same. No braces: they
	// would decide where Redis Cluster keeps the key.
	Prefix string

	// TrustPolicy says that the server never evicts keys, without looking: for
	// one whose INFO does not tell maxmemory_policy and evicted_keys, or may not
	// be asked. If it does evict, reads may be stale, and nothing tells of it.
	// The scripts need INFO replication all the same.
	TrustPolicy bool
}

// Store is a httpsticky.Store in Redis. Make one with New. It may be used by any
// number of goroutines.
type Store struct {
	client Client
	prefix string
	policy *policy // nil: trusted
}

var _ httpsticky.Store = (*Store)(nil)

// New returns a Store and asks the server whether it can be one.
//
// With an error about the options there is no Store. With any other error there is
// one, which is of use: the server can't be reached now, or evicts keys
// ([ErrPolicy]), or refuses a command. It is asked again by later calls, which fail
// until it can serve. So an application may take the error for a reason to end, or
// log it, and have its reads fresh until Redis is there.
func New(ctx context.Context, o Options) (*Store, error) {
	s := &Store{client: o.Client, prefix: o.Prefix}
	if s.prefix == "" {
		s.prefix = defaultPrefix
	}
	if strings.ContainsAny(s.prefix, "{}") {
		return nil, errors.New("redisstore: Options.Prefix has braces")
	}
	switch c := o.Client.(type) {
	case nil:
		return nil, errors.New("redisstore: no Options.Client")
	case *redis.Ring:
		return nil, errors.New("redisstore: Options.Client is a redis.Ring, whose servers can't tell what they have missed; use a Client or a ClusterClient")
	case *redis.Client:
		if !c.Options().ContextTimeoutEnabled {
			return nil, errTimeouts
		}
	case *redis.ClusterClient:
		if !c.Options().ContextTimeoutEnabled {
			return nil, errTimeouts
		}
	}
	if !o.TrustPolicy {
		s.policy = &policy{}
	}
	// A load of no user's key: it tells whether the scripts may run.
	_, err := s.Load(ctx, "")
	return s, err
}

var errTimeouts = errors.New("redisstore: Options.Client ignores the deadlines of contexts; set ContextTimeoutEnabled in its options")

// Load returns the tokens that are kept of the keys. It takes one round trip, and
// a second one where a key has many.
func (s *Store) Load(ctx context.Context, keys ...string) (httpsticky.Kept, error) {
	if err := s.evicts(ctx); err != nil {
		return httpsticky.Kept{}, wrap("load", err)
	}
	calls := s.calls(keys, maxTokens+1)
	if err := s.run(ctx, loadScript, calls); err != nil {
		return httpsticky.Kept{}, wrap("load", err)
	}
	kept := httpsticky.Kept{Whole: s.unevicted()}
	begun := false
	for _, c := range calls {
		ms, tokens, err := readLoad(c)
		if err != nil {
			return httpsticky.Kept{}, wrap("load", err)
		}
		begun = begun || ms < 0
		// Both ends of it are rounded down.
		kept.Whole = min(kept.Whole, time.Duration(max(0, ms-1))*time.Millisecond)
		for i, list := range tokens {
			if len(list) > maxTokens {
				kept.Whole = 0
			}
			if len(list) > crowdedToRead {
				list = s.swap(ctx, c.keys[1+i], list)
			}
			kept.Tokens = append(kept.Tokens, list...)
		}
	}
	if begun {
		s.begin(ctx)
	}
	return kept, nil
}

// begin makes all buckets begin that have to, where one has been found to: what
// befalls a server befalls them all, and the sooner each begins, the sooner it is
// over. One that isn't reached begins when it is.
func (s *Store) begin(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	calls := make([]*call, buckets)
	for i := range calls {
		calls[i] = &call{keys: []string{s.bucket(i) + epochName}, args: []any{0}}
	}
	_ = s.run(ctx, loadScript, calls)
}

// Save adds the token to what is kept of each key. It takes one round trip, and
// two more where a key has many that nobody reads. After an error some of the keys
// may have it.
func (s *Store) Save(ctx context.Context, token string, ttl time.Duration, keys ...string) error {
	// By union with nothing it is seen to be well formed.
	token, err := replicated.MergeTokens(token)
	switch {
	case err != nil:
		return wrap("save", err)
	case ttl <= 0:
		return wrap("save", errors.New("a token without a life"))
	case len(token) > maxToken:
		return wrap("save", errors.New("the token is too long to be read"))
	case token == "" || len(keys) == 0:
		return nil
	}
	if err := s.evicts(ctx); err != nil {
		return wrap("save", err)
	}
	// The server's milliseconds may have begun before.
	calls := s.calls(keys, token, ttl.Milliseconds()+2)
	if err := s.run(ctx, saveScript, calls); err != nil {
		return wrap("save", err)
	}
	begun := false
	for _, c := range calls {
		answer, err := c.answer.Int64Slice()
		if err == nil && len(answer) != 2 {
			err = errAnswer
		}
		if err != nil {
			return wrap("save", err)
		}
		begun = begun || answer[0] < 0
		if answer[1] > crowdedToSave {
			s.thin(ctx, c.keys)
		}
	}
	if begun {
		s.begin(ctx)
	}
	return nil
}

// thin makes one token of those of each key, as a Load does. That is a favour to
// others: the token is kept also if it fails.
func (s *Store) thin(ctx context.Context, keys []string) {
	c := &call{keys: keys, args: []any{maxTokens}}
	if s.run(ctx, loadScript, []*call{c}) != nil {
		return
	}
	_, tokens, err := readLoad(c)
	if err != nil {
		return
	}
	for i, list := range tokens {
		if len(list) > crowdedToRead {
			s.swap(ctx, keys[1+i], list)
		}
	}
}

// swap puts the union of the tokens in their place and returns it, or the tokens
// if that can't be had.
func (s *Store) swap(ctx context.Context, key string, tokens []string) []string {
	all, err := replicated.MergeTokens(tokens...)
	if err != nil || len(all) > maxToken {
		return tokens // one of them is malformed, and nobody has saved it by this package
	}
	args := []any{all}
	for _, t := range tokens {
		args = append(args, t)
	}
	// Without it the next one who comes does it.
	_ = s.run(ctx, swapScript, []*call{{keys: []string{key}, args: args}})
	return []string{all}
}

// RedisKey returns the name under which Redis has the tokens of a key, for somebody
// who looks for them there.
func (s *Store) RedisKey(key string) string {
	bucket, name := s.place(key)
	return bucket + name
}

// place returns the beginning of the names of all keys in the key's bucket, and
// the rest of its own. The bytes of the hash that choose the bucket are not part of
// the name.
func (s *Store) place(key string) (bucket, name string) {
	sum := sha256.Sum256([]byte(key))
	return s.bucket(int(sum[0]) % buckets), base64.RawURLEncoding.EncodeToString(sum[1:17])
}

// bucket returns the beginning of the names of all keys in the bucket. What is in
// braces decides where Redis Cluster keeps them.
func (s *Store) bucket(n int) string { return s.prefix + "{b" + strconv.Itoa(n) + "}:" }

// epochName is the rest of the name of a bucket's epoch. Keys have longer names.
const epochName = "epoch"

// calls returns one call for each bucket that the keys are in.
func (s *Store) calls(keys []string, args ...any) []*call {
	var calls []*call
	of := make(map[string]*call, len(keys))
	for _, key := range keys {
		bucket, name := s.place(key)
		c := of[bucket]
		if c == nil {
			c = &call{keys: []string{bucket + epochName}, args: args}
			of[bucket] = c
			calls = append(calls, c)
		}
		c.keys = append(c.keys, bucket+name)
	}
	return calls
}

// readLoad reads the answer of a load: for how many milliseconds the bucket is
// whole, -1 if that begins now, and the tokens of each key.
func readLoad(c *call) (ms int64, tokens [][]string, err error) {
	answer, err := c.answer.Slice()
	if err != nil {
		return 0, nil, err
	}
	if len(answer) != len(c.keys) {
		return 0, nil, errAnswer
	}
	ms, ok := answer[0].(int64)
	if !ok {
		return 0, nil, errAnswer
	}
	for _, entry := range answer[1:] {
		members, ok := entry.([]any)
		if !ok {
			return 0, nil, errAnswer
		}
		list := make([]string, len(members))
		for i, m := range members {
			if list[i], ok = m.(string); !ok {
				return 0, nil, errAnswer
			}
		}
		tokens = append(tokens, list)
	}
	return ms, tokens, nil
}

var errAnswer = errors.New("the server's answer is not what the script returns")

// wrap says what failed. What a server answers is not wrapped, and is cut off where
// it repeats what it was asked ("unknown command 'EVALSHA', with args beginning
// with: …").
func wrap(op string, err error) error {
	var answer redis.Error
	if errors.As(err, &answer) {
		text, _, _ := strings.Cut(answer.Error(), ", with args")
		return fmt.Errorf("redisstore: %s: the server answers: %s", op, text)
	}
	return fmt.Errorf("redisstore: %s: %w", op, err)
}
