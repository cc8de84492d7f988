package httpsticky

import (
	"context"

	"github.com/sqlreplicated/replicated"
)

// WithKey makes reads that run with the returned context see what has been written
// under the key ("tenant:42", "order:7", "user:3"), by anybody's requests that had
// it too, in whatever process; and what this request writes, before the call or after
// it, is saved under it. ctx is that of a request inside [Handler], or derived from
// it. The store is asked at once, for which Options.StoreTimeout is waited.
//
// Where the store can't carry a write, the response is held back until all replicas
// have it, since no cookie tells other users. So the key of the user himself is better
// given by Options.Key, where there is a choice.
//
// Outside a request, and where there is no store, there is nothing to ask: the
// context is that of replicated.WithFresh. With the key "" it is ctx.
//
// It is safe for concurrent use.
func WithKey(ctx context.Context, key string) context.Context {
	if key == "" {
		return ctx
	}
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	for x != nil && x.h.keeper == nil { // a Handler around this one may have a store
		x, _ = x.Context.Value(exchangeKey{}).(*exchange)
	}
	if x == nil {
		return replicated.WithFresh(ctx)
	}
	x.addKey(key, false)
	return x.load(ctx, key)
}

// addKey has what the request writes saved to a key.
func (x *exchange) addKey(key string, own bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, k := range x.keys {
		if k == key {
			return
		}
	}
	x.keys = append(x.keys, key)
	x.own = x.own || own
}

// load returns ctx with what the store keeps of a key.
func (x *exchange) load(ctx context.Context, key string) context.Context {
	tokens, fresh, tell, err := x.h.keeper.load(x.Context, key)
	if len(tokens) > 0 {
		var malformed error
		if ctx, malformed = replicated.WithTokenOrPrimary(ctx, tokens...); malformed != nil {
			x.tell(EventStoreLoadFailed, malformed) // and the context is fresh
		}
	}
	if tell != 0 {
		x.tell(tell, err)
	}
	if fresh {
		ctx = replicated.WithFresh(ctx)
	}
	return ctx
}

// save saves a token to keys, and tells whether the store keeps it.
func (x *exchange) save(token string, keys []string) bool {
	if len(keys) == 0 {
		return false
	}
	// Without the session: what a store writes to a database is not the request's.
	err := x.h.keeper.save(context.WithoutCancel(x.Context), token, keys)
	if err != nil {
		x.tell(EventStoreSaveFailed, err)
	}
	return err == nil
}
