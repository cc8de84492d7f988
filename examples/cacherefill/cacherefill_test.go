package cacherefill

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/lib/pq"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/examples/lagging"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

var schema = []string{
	"CREATE TABLE items (id bigint PRIMARY KEY, price bigint NOT NULL)",
	"INSERT INTO items SELECT n, 0 FROM generate_series(1, 10) n",
	`CREATE FUNCTION notify_price() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN PERFORM pg_notify('prices', COALESCE(NEW.id, OLD.id)::text); RETURN NULL; END $$`,
	"CREATE TRIGGER notify_price AFTER INSERT OR UPDATE OR DELETE ON items FOR EACH ROW EXECUTE FUNCTION notify_price()",
}

// listen has a cache listen until the test ends.
func listen(t *testing.T, c *replicatedtest.Cluster, p *Prices) {
	t.Helper()
	l := pq.NewListener(c.Primary().DSN(), 10*time.Millisecond, time.Second, nil)
	if err := l.Listen("prices"); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Listen(t.Context(), l)
	}()
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		<-done
	})
}

// shows waits until the cache has a price, by what it was told alone: it is not asked for
// what is not there.
func shows(t *testing.T, p *Prices, id, want int64) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		v, found := p.items.Load(id)
		if found {
			i := v.(*item)
			i.mu.Lock()
			got, known := i.price, i.known
			i.mu.Unlock()
			if known && got == want {
				return
			}
			if known && got != want && time.Now().After(deadline) {
				t.Fatalf("the cache has the price %d, want %d", got, want)
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the cache has no price, want %d", want)
		}
	}
}

// A process that is notified of a change fills its cache with what has changed, though the
// replica does not have it yet.
func TestRefillAfterANotification(t *testing.T) {
	c := lagging.Start(t, schema...)
	editor, viewer := lagging.Process(t, c), lagging.Process(t, c, "replicated.wait=200ms")
	p := &Prices{DB: viewer}
	if got, err := p.Get(t.Context(), 1); err != nil || got != 0 {
		t.Fatal(got, err)
	}
	listen(t, c, p)
	set := func(id, price int64) {
		t.Helper()
		if _, err := editor.ExecContext(t.Context(), "UPDATE items SET price = $2 WHERE id = $1", id, price); err != nil {
			t.Fatal(err)
		}
	}
	for price := int64(1); price <= 5; price++ {
		set(1, price)
		shows(t, p, 1, price)
	}
	if _, err := editor.ExecContext(t.Context(), "DELETE FROM items WHERE id = 2"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Get(replicated.WithFresh(t.Context()), 2); !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("what was deleted: %v", err)
	}

	// From here on the replica has nothing that is new. A refill that does not ask for it
	// brings the old price back, and nothing tells of that.
	lagging.Stop(t, c)
	set(3, 7)
	shows(t, p, 3, 7)
	naive := new(item)
	if got, err := naive.fill(t.Context(), viewer, 3); err != nil || got != 0 {
		t.Fatalf("without WithFresh the price is %d, %v: the replica is not behind", got, err)
	}
	p.items.Store(int64(3), naive)
	if err := c.Replicas()[0].Delay(0); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitCaughtUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := p.Get(t.Context(), 3); err != nil || got != 0 {
		t.Errorf("long after that the cache has %d, %v", got, err)
	}

	// Once the replica keeps up, refills are its work.
	before := lagging.OnReplica(t, viewer)
	for deadline := time.Now().Add(20 * time.Second); lagging.OnReplica(t, viewer) == before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the replica serves no refill")
		}
		p.items.Delete(int64(4))
		if got, err := p.Get(t.Context(), 4); err != nil || got != 0 {
			t.Fatal(got, err)
		}
	}
}
