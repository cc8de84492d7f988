package httpsticky

import (
	"context"
	"time"
)

// Store keeps tokens by key (a user, a tenant, a business key) where neither
// cookie nor header can carry them, or where other users' reads of the same
// thing are to see a write too. NewMemory is one for a single process; module
// redisstore has one for many.
//
// A Store is used by many goroutines at once. Both methods must end when ctx
// does: Options.StoreTimeout bounds each call.
type Store interface {
	// Load returns the tokens that are kept of the keys. Keys of which nothing
	// is kept are no error.
	Load(ctx context.Context, keys ...string) (Kept, error)

	// Save adds the token to what is kept of each key, by union: what others
	// saved of the key stays, whatever order the calls arrive in. The token may
	// be forgotten after ttl, and not before. An error means that it may not be
	// kept of one of the keys.
	Save(ctx context.Context, token string, ttl time.Duration, keys ...string) error
}

// Kept is what a Store knows of some keys.
type Kept struct {
	// Tokens are those of all the keys, in any order.
	Tokens []string

	// Whole is how long the store is known to have kept everything it was given
	// of the keys: since it began, or since it last lost something (a restart,
	// an eviction, a failover). Zero says that it may have lost something just
	// now. As long as Whole is shorter than the life of tokens, an absent token
	// doesn't prove that nothing was written, and reads are fresh.
	Whole time.Duration
}
