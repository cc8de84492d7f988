package httpsticky

import (
	"context"
	"errors"
	"hash/maphash"
	"reflect"
	"sync"
	"time"
)

// keeper is the store with what this process has learned of it.
type keeper struct {
	store   Store
	timeout time.Duration
	ttl     time.Duration
	rest    rest
	unsafe  unsafeKeys // where unsafeOf can't have the store

	mu    sync.Mutex
	began time.Time // the latest that the store was seen to have begun anew, within ttl
}

var (
	errResting  = errors.New("httpsticky: the store has failed, and is not asked for a while")
	errPanicked = errors.New("httpsticky: the store has panicked")
)

// load returns the tokens of a key, and whether that is not all that may have been
// saved, so that reads have to be fresh; then with what is to be told of it, 0 if
// it is known already.
func (k *keeper) load(ctx context.Context, key string) (tokens []string, fresh bool, tell EventKind, err error) {
	now := time.Now()
	if k.unsafeKeys(false).has(now, key) {
		return nil, true, 0, nil
	}
	if !k.rest.enter(now) {
		return nil, true, EventStoreLoadFailed, errResting
	}
	var kept Kept
	err = k.ask(ctx, func(ctx context.Context) (err error) {
		kept, err = k.store.Load(ctx, key)
		return err
	})
	switch {
	case err != nil:
		return nil, true, EventStoreLoadFailed, err
	case kept.Whole >= k.ttl:
		return kept.Tokens, false, 0, nil
	case k.anew(kept.Whole):
		return kept.Tokens, true, EventStoreEmptied, nil
	default:
		return kept.Tokens, true, 0, nil
	}
}

// save saves a token to keys, also while the store rests: others may need it.
func (k *keeper) save(ctx context.Context, token string, keys []string) error {
	err := errPanicked
	defer func() {
		if err != nil {
			k.unsafeKeys(true).add(time.Now(), k.ttl, keys)
		}
	}()
	err = k.ask(ctx, func(ctx context.Context) error { return k.store.Save(ctx, token, k.ttl, keys...) })
	return err
}

// ask has the store do something, for so long as it may take.
func (k *keeper) ask(ctx context.Context, do func(context.Context) error) (err error) {
	limited, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	err = errPanicked
	defer func() { k.rest.leave(time.Now(), err, ctx.Err() != nil) }()
	err = do(limited)
	return err
}

// anew tells whether it was not known yet that the store began when it says.
func (k *keeper) anew(whole time.Duration) bool {
	began := time.Now().Add(-whole)
	k.mu.Lock()
	defer k.mu.Unlock()
	if !began.After(k.began.Add(time.Second)) { // but for what the question took
		return false
	}
	k.began = began
	return true
}

const (
	// restTime is how long a store that has failed is left alone.
	restTime = time.Second
	// restAfter is how many calls in a row have to fail before that: a single one may
	// have been this process's, that came late.
	restAfter = 3
)

// rest keeps requests from waiting for a store that does not answer.
//
//	state    event             next     what
//	working  restAfter fail    resting  nobody asks for restTime
//	resting  restTime is over  resting  one request at a time asks
//	resting  a call succeeds   working  all ask
//	resting  a call fails      resting  nobody asks for restTime
//
// The zero rest is working.
type rest struct {
	mu     sync.Mutex
	failed int // in a row
	until  time.Time
	asking bool
}

func (r *rest) restingLocked() bool { return r.failed >= restAfter }

func (r *rest) enter(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.restingLocked() {
		return true
	}
	if r.asking || now.Before(r.until) {
		return false
	}
	r.asking = true
	return true
}

// leave is called after every call. That the caller gave up says nothing of the
// store.
func (r *rest) leave(now time.Time, err error, gaveUp bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asking = false
	switch {
	case err == nil:
		r.failed = 0
	case !gaveUp:
		r.failed = min(r.failed+1, restAfter)
		r.until = now.Add(restTime)
	}
}

// maxUnsafe bounds what is remembered of a store that takes nothing.
const maxUnsafe = 10_000

var seed = maphash.MakeSeed()

func hashOf(key string) uint64 { return maphash.String(seed, key) }

// unsafeKeys are the keys that the store may lack a token of, with when that stops to
// matter. More than maxUnsafe of them are all keys. They are kept as hashes, whatever
// their length: of two with the same both are unsafe.
type unsafeKeys struct {
	mu    sync.Mutex
	until map[uint64]time.Time
	all   time.Time
}

// unsafeOf has the unsafe keys of the stores that have failed: other Handlers of this
// process may have the same store.
var unsafeOf sync.Map // of *unsafeKeys by Store

// unsafeKeys returns those of the store, nil if there are none yet and none are to be.
func (k *keeper) unsafeKeys(add bool) *unsafeKeys {
	if !reflect.ValueOf(k.store).Comparable() {
		return &k.unsafe
	}
	u, ok := unsafeOf.Load(k.store)
	switch {
	case ok:
	case add:
		u, _ = unsafeOf.LoadOrStore(k.store, new(unsafeKeys))
	default:
		return nil
	}
	return u.(*unsafeKeys)
}

func (u *unsafeKeys) has(now time.Time, key string) bool {
	if u == nil {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return now.Before(u.until[hashOf(key)]) || now.Before(u.all)
}

func (u *unsafeKeys) add(now time.Time, ttl time.Duration, keys []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	until := now.Add(ttl)
	if now.Before(u.all) {
		u.all = until
		return
	}
	if len(u.until)+len(keys) > maxUnsafe {
		for key, at := range u.until {
			if !now.Before(at) {
				delete(u.until, key)
			}
		}
	}
	if len(u.until)+len(keys) > maxUnsafe {
		u.all = until
		return
	}
	if u.until == nil {
		u.until = make(map[uint64]time.Time)
	}
	for _, key := range keys {
		u.until[hashOf(key)] = until
	}
}
