// Package cacherefill is a cache before the database, in each of several processes. A
// trigger of the table notifies all of them of a change, and they fill it again.
package cacherefill

import (
	"context"
	"database/sql"
	"strconv"
	"sync"

	"github.com/lib/pq"

	"github.com/sqlreplicated/replicated"
)

// Prices is the cache of one process.
type Prices struct {
	DB    *sql.DB
	items sync.Map // of *item by id
}

type item struct {
	mu    sync.Mutex // held while it is read, so that many who ask cost one read
	price int64
	known bool
}

// Get returns a price, from the cache if it is there. What is not is read WithFresh: a
// replica that lacks the last write would put the old price back for ever, since its
// notification has been. With replicated.wait a replica that has it by then serves that.
func (p *Prices) Get(ctx context.Context, id int64) (int64, error) {
	v, _ := p.items.LoadOrStore(id, new(item))
	i := v.(*item)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.known {
		return i.price, nil
	}
	return i.fill(replicated.WithFresh(ctx), p.DB, id)
}

func (i *item) fill(ctx context.Context, db *sql.DB, id int64) (int64, error) {
	err := db.QueryRowContext(ctx, "SELECT price FROM items WHERE id = $1", id).Scan(&i.price)
	i.known = err == nil
	return i.price, err
}

// Listen drops what notifications tell of, and reads it again, until the listener is
// closed. After a lost connection (nil) anything may have changed.
func (p *Prices) Listen(ctx context.Context, l *pq.Listener) {
	for n := range l.Notify {
		if n == nil {
			p.items.Clear()
		} else if id, err := strconv.ParseInt(n.Extra, 10, 64); err == nil {
			p.items.Delete(id) // a refill that goes on fills what nobody finds any more
			_, _ = p.Get(ctx, id)
		}
	}
}
