package app

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"

	"github.com/redis/go-redis/v9"

	"github.com/sqlreplicated/replicated/httpsticky"
	"github.com/sqlreplicated/replicated/httpsticky/graphql"
	"github.com/sqlreplicated/replicated/redisstore"
)

// around puts around the application what the configuration says. end releases it.
func (c Config) around(ctx context.Context, next http.Handler, db *sql.DB, counted *counts) (_ http.Handler, end func() error, err error) {
	end = func() error { return nil }
	o := httpsticky.Options{
		Databases:    []*sql.DB{db},
		Keys:         c.Keys,
		Cookie:       httpsticky.Cookie{MaxAge: c.MaxAge, Off: c.Sticky != Cookie},
		With:         graphql.Rule{}.With,
		StoreTimeout: c.StoreTimeout,
		Observe:      func(e httpsticky.Event) { counted.event(e.Kind.String()) },
	}
	switch c.Sticky {
	case Sessions:
		return inSession(next), end, nil
	case PlainCookie:
		return plainCookie(next), end, nil
	case Cookie:
	case Header:
		o.Header = TokenHeader
	case Store:
		client := redis.NewClient(&redis.Options{Addr: c.Redis, ContextTimeoutEnabled: true})
		end = client.Close
		o.Key = owner
		if o.Store, err = redisstore.New(ctx, redisstore.Options{Client: client}); err != nil {
			return nil, nil, errors.Join(err, end())
		}
	default:
		return nil, nil, fmt.Errorf("unknown: %q", c.Sticky)
	}
	h, err := httpsticky.Handler(next, o)
	return h, end, err
}
