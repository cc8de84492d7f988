package replicated_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

const (
	readerName  = "reader.replicated.test"
	primaryName = "primary.replicated.test"
)

// crowd reads from so many goroutines until stop is called, which returns the errors.
func (r *readback) crowd(ctx context.Context, db writing, readers int) (stop func() []error) {
	ctx, cancel := context.WithCancel(ctx)
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs []error
	)
	for i := range readers {
		wg.Go(func() {
			for ctx.Err() == nil {
				if _, err := r.read(ctx, db, i%readbackRows); err != nil && ctx.Err() == nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
			}
		})
	}
	return func() []error {
		cancel()
		wg.Wait()
		return errs
	}
}

// shares counts who serves the next so many reads.
func (r *readback) shares(t *testing.T, reads int) map[string]int {
	t.Helper()
	r.mu.Lock()
	r.served = nil
	r.mu.Unlock()
	out := make(map[string]int)
	eventually(t, 30*time.Second, func() string {
		sum := 0
		r.mu.Lock()
		defer r.mu.Unlock()
		for node, n := range r.served {
			sum += n
			out[node] = n
		}
		if sum < reads {
			return fmt.Sprintf("%d of %d reads", sum, reads)
		}
		return ""
	})
	return out
}

// A reader endpoint that gains a second server, and then loses the first one.
//
// Verdict: the new server has about half the reads within seconds, the one that has
// gone has none, and no connection, and no read fails.
func TestReportA32ReaderEndpointWhoseMembersChange(t *testing.T) {
	eachDriver(t, func(t *testing.T, e replicatedtest.Engine) {
		noGoroutineLeak(t)
		c := replicatedtest.Start(t, e, replicatedtest.Options{NoStatementLog: true})
		r := newReadback(t, c)
		first, second := c.Replicas()[0], c.Replicas()[1]
		dns := newNameserver(t)
		at, port := members(t, first.Addr(), second.Addr())
		dns.is(readerName, at[0].Addr)
		db := openDSN(t, c.DSNAt([]string{c.Primary().Addr(), readerName + ":" + port}, locating, lagless, ownFloors(t)))
		db.SetMaxIdleConns(8)
		measured(t, c, db)
		stop := r.crowd(t.Context(), db, 8)
		if got := r.shares(t, 200); got[second.Name()] > 0 || got[first.Name()] == 0 {
			t.Errorf("reads ran on %v, where the name leads to %s", got, first.Name())
		}

		dns.is(readerName, at[0].Addr, at[1].Addr)
		changed := time.Now()
		eventually(t, 40*time.Second, func() string {
			got := r.shares(t, 400)
			if share := float64(got[second.Name()]) / float64(got[first.Name()]+got[second.Name()]); !(share > 0.35 && share < 0.65) {
				return fmt.Sprintf("reads ran on %v, where the name leads to both", got)
			}
			return ""
		})
		t.Logf("both serve after %v", time.Since(changed).Round(time.Millisecond))

		dns.is(readerName, at[1].Addr)
		changed = time.Now()
		eventually(t, 40*time.Second, func() string {
			if n := at[0].open(); n > 0 {
				return fmt.Sprintf("%d connections lead to an address that the name has no longer", n)
			}
			return ""
		})
		t.Logf("the first one is left after %v", time.Since(changed).Round(time.Millisecond))
		if got := r.shares(t, 200); got[first.Name()] > 0 || got[second.Name()] == 0 {
			t.Errorf("reads ran on %v, where the name leads to %s", got, second.Name())
		}
		if errs := stop(); len(errs) > 0 {
			t.Errorf("%d reads failed, the first with: %v", len(errs), errs[0])
		}
		must(t, db.Close())
		eventually(t, 10*time.Second, func() string {
			if n := at[1].open(); n > 0 {
				return fmt.Sprintf("%d connections are left", n)
			}
			return ""
		})
	})
}

// takeover makes the second node the primary, beside the first one, which lives on
// and takes writes. The third follows the new one.
func takeover(t *testing.T, c *replicatedtest.Cluster) (old, next *replicatedtest.Node) {
	t.Helper()
	old, next, third := c.Nodes()[0], c.Nodes()[1], c.Nodes()[2]
	caughtUp(t, c)
	must(t, next.Promote())
	must(t, third.Repoint(next))
	return old, next
}

// The name of the primary moves, while the old server lives on and takes whatever
// comes over connections that lead to it.
//
// Verdict: within seconds no connection that is used leads there, the sampler's
// included, whether freshness is measured or not. Reads see what is written from
// then on.
func TestPrimaryWhoseNameMoves(t *testing.T) {
	t.Run("measured", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, e replicatedtest.Engine) { primaryNameMoves(t, e, []string{lagless}) })
	})
	t.Run("unmeasured", func(t *testing.T) {
		primaryNameMoves(t, replicatedtest.MariaDB, []string{"replicated.tracker=off", "replicated.sticky=1m"})
	})
}

func primaryNameMoves(t *testing.T, e replicatedtest.Engine, keys []string) {
	const conns = 6
	noGoroutineLeak(t)
	c := replicatedtest.Start(t, e, replicatedtest.Options{NoStatementLog: true})
	r := newReadback(t, c)
	dns := newNameserver(t)
	at, port := members(t, c.Nodes()[0].Addr(), c.Nodes()[1].Addr())
	dns.is(primaryName, at[0].Addr)
	db := openDSN(t, c.DSNAt([]string{primaryName + ":" + port, c.Nodes()[2].Addr()}, append(keys, locating, ownFloors(t))...))
	db.SetMaxIdleConns(conns)
	ctx, _ := replicated.WithSession(t.Context())
	write := func(conn *sql.Conn, row int) { _ = r.write(ctx, conn, row) }
	everyConn(t, db, conns, write)
	if at[0].open() < conns || at[1].open() > 0 {
		t.Errorf("%d and %d connections, before", at[0].open(), at[1].open())
	}

	old, next := takeover(t, c)
	dns.is(primaryName, at[1].Addr)
	moved := time.Now()
	eventually(t, 40*time.Second, func() string {
		everyConn(t, db, conns, write)
		if n := at[0].open(); n > 0 {
			return fmt.Sprintf("%d connections lead to where the primary was", n)
		}
		return ""
	})
	t.Logf("nothing leads to the old primary after %v", time.Since(moved).Round(time.Millisecond))

	values := func(n *replicatedtest.Node) string {
		var all []string
		db := bare(t, n)
		for row := range conns {
			all = append(all, fmt.Sprint(queryInt(t, db, fmt.Sprintf("SELECT v FROM %s WHERE id = %d", r.table, row))))
		}
		return strings.Join(all, " ")
	}
	before := values(old)
	r.primary.Store(next)
	r.forget() // what the old one has taken in the meantime is lost
	for range 20 {
		everyConn(t, db, conns, func(conn *sql.Conn, row int) {
			r.writeAndRead(ctx, t, conn, row)
		})
	}
	if after := values(old); after != before {
		t.Errorf("the old primary was written to: %s, then %s", before, after)
	}
	must(t, db.Close())
}

// writeAndRead reads back what it writes, where the driver likes and on the primary.
func (r *readback) writeAndRead(ctx context.Context, t *testing.T, conn *sql.Conn, row int) {
	if err := r.write(ctx, conn, row); err != nil {
		t.Errorf("a write: %v", err)
		return
	}
	for _, ctx := range []context.Context{ctx, replicated.WithPrimary(ctx)} {
		if _, err := r.read(ctx, conn, row); err != nil {
			t.Errorf("a read: %v", err)
		}
	}
}

// A resolver that fails, or hangs, harms nothing: neither the connections that there
// are nor those that are opened, and nobody waits for it when the handle is closed.
func TestResolverThatFails(t *testing.T) {
	c := sharedCluster(t, replicatedtest.Postgres) // names are resolved before any driver is asked
	noGoroutineLeak(t)
	r := newReadback(t, c)
	dns := newNameserver(t)
	at, port := members(t, c.Nodes()[0].Addr(), c.Nodes()[1].Addr(), c.Nodes()[2].Addr())
	dns.is(primaryName, at[0].Addr)
	dns.is(readerName, at[1].Addr, at[2].Addr)
	db := openDSN(t, c.DSNAt([]string{primaryName + ":" + port, readerName + ":" + port}, locating, lagless, ownFloors(t)))
	db.SetMaxIdleConns(8)
	measured(t, c, db)
	stop := r.crowd(t.Context(), db, 4)
	for _, mode := range []nameserverMode{nameserverFails, nameserverHangs} {
		r.shares(t, 50)
		dns.set(mode)
		asked := dns.questions()
		eventually(t, 30*time.Second, func() string { // each name has been asked for in vain
			if n := dns.questions() - asked; n < 4 {
				return fmt.Sprintf("the resolver was asked %d times", n)
			}
			return ""
		})
		for _, m := range at[1:] {
			m.cut() // what is opened now is opened without the resolver
		}
		r.mustWrite(t.Context(), db, readbackRows-1)
		eventually(t, 20*time.Second, func() string { // at first its breaker has opened
			if got := r.shares(t, 100); got[c.Nodes()[1].Name()] == 0 || got[c.Nodes()[2].Name()] == 0 {
				return fmt.Sprintf("reads ran on %v, without the resolver", got)
			}
			return ""
		})
	}
	if errs := stop(); len(errs) > 0 {
		t.Errorf("%d reads failed, the first with: %v", len(errs), errs[0])
	}
	began := time.Now()
	must(t, db.Close())
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("closing the handle took %v", took)
	}
}

// An address that leads to another server from now on, with the old one still there,
// as a virtual address or a balancer does it: no name tells. With nothing written,
// and so no connection opened for a statement, it is the sampler's own that notices,
// when its time is over.
func TestPrimaryBehindAnAddressThatMoves(t *testing.T) {
	eachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{NoStatementLog: true})
		r := newReadback(t, c)
		address := c.Primary().Proxy(t)
		db, heard := listening(t, c.DSNAt([]string{address.Addr(), c.Nodes()[2].Addr()}, locating, lagless, ownFloors(t), "replicated.replica_max_lifetime=2s"))
		measured(t, c, db)
		conn, err := db.Conn(t.Context())
		must(t, err)
		r.writeAndRead(t.Context(), t, conn, 0)
		must(t, conn.Close())
		_, next := takeover(t, c)
		address.Redirect(next.Addr())
		heard.hears(t, replicated.NoticePrimaryChanged)
		r.primary.Store(next)
		conn, err = db.Conn(t.Context()) // the same, with a connection to the old primary
		must(t, err)
		defer conn.Close()
		r.writeAndRead(t.Context(), t, conn, 0)
	})
}

// everyConn does something on so many connections of the pool at once, with a row of
// its own for each.
func everyConn(t *testing.T, db *sql.DB, conns int, do func(conn *sql.Conn, row int)) {
	t.Helper()
	var wg, begun sync.WaitGroup
	begun.Add(conns)
	for row := range conns {
		wg.Go(func() {
			conn, err := db.Conn(t.Context())
			begun.Done()
			begun.Wait()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			do(conn, row)
		})
	}
	wg.Wait()
}
