package replicated_test

import (
	"database/sql"
	"slices"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// A balancer is one address for two replicas, one of which stands still. Evidence goes by
// the server that each connection has reached: no read is stale, and the replica that has
// what is needed is used.
func TestFreshnessBehindABalancer(t *testing.T) {
	c := sharedCluster(t, replicatedtest.Postgres)
	r := newReadback(t, c)
	one, other := c.Replicas()[0], c.Replicas()[1]
	balancer := c.Balancer(t, one, other)
	db := openDSN(t, c.DSNAt([]string{c.Primary().Addr(), balancer.Addr()}, ownFloors(t), lagless))
	measured(t, c, db)
	for _, pair := range [][2]*replicatedtest.Node{{one, other}, {other, one}} {
		still, follows := pair[0], pair[1]
		r.atOnce(t.Context(), db, 0)
		pauseReplica(t, still, func() {
			r.mustWrite(t.Context(), db, 0)
			r.atOnce(t.Context(), db, 0)
			r.until(t.Context(), db, 0, follows)
			for range 10 {
				r.atOnce(t.Context(), db, 0)
			}
			r.while(db, func() {})
			if got := r.reads(t.Context(), db, 0, 50); slices.Contains(got, still.Name()) {
				t.Errorf("reads were served by %v", got)
			}
		})
	}
	if open := balancer.Open(); open > 10 {
		t.Errorf("%d connections are open to the balancer", open)
	}
}

// pauseReplica keeps a replica from applying while f runs.
func pauseReplica(t *testing.T, n *replicatedtest.Node, f func()) {
	t.Helper()
	must(t, n.PauseReplication())
	defer func() {
		if err := n.ResumeReplication(); err != nil {
			t.Error(err)
		}
	}()
	f()
}

// PgBouncer in transaction mode, in front of two servers: a connection has no server of
// its own. That is found out and told once, and no read runs there; one that is stale is
// not to be had, also not before it is found out.
func TestFreshnessBehindAMultiplexingPooler(t *testing.T) {
	c := sharedCluster(t, replicatedtest.Postgres)
	r := newReadback(t, c)
	still := c.Replicas()[0]
	pooler := replicatedtest.StartPgBouncer(t, replicatedtest.PgBouncerConfig{Nodes: c.Replicas(), PoolSize: 2,
		Settings: map[string]string{"server_round_robin": "1"}})
	db, told := listening(t, c.DSNAt([]string{c.Primary().Addr(), pooler.Addr()}, ownFloors(t), lagless))
	pauseReplica(t, still, func() {
		r.while(db, func() {
			// Transactions that stay open take connections of the pooler's away, so that
			// the others go to the other server.
			side := openDSN(t, pooler.DSN("replicated.reads=off"))
			for range 20 {
				tx, err := side.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
				must(t, err)
				queryInt(t, tx, "SELECT count(*) FROM "+r.table)
				r.mustWrite(t.Context(), db, 0)
				r.reads(t.Context(), db, 0, 5)
				must(t, tx.Rollback())
			}
		})
		told.hears(t, replicated.NoticePooler)
		told.hears(t, replicated.NoticeMultiplexed)
		unknown(t, db, pooler.Addr())
		r.only(t.Context(), db, 0, c.Primary())
	})
	if got := told.count(replicated.NoticeMultiplexed); got != 1 {
		t.Errorf("it was told of %d times", got)
	}
	r.only(t.Context(), db, 0, c.Primary()) // for good
}

// PgBouncer in transaction mode in front of one server is what it stands before.
func TestFreshnessBehindAPooler(t *testing.T) {
	c := sharedCluster(t, replicatedtest.Postgres)
	r := newReadback(t, c)
	n := c.Replicas()[0]
	pooler := replicatedtest.StartPgBouncer(t, replicatedtest.PgBouncerConfig{Nodes: c.Replicas()[:1]})
	db, told := listening(t, c.DSNAt([]string{c.Primary().Addr(), pooler.Addr()}, ownFloors(t), lagless))
	r.mustWrite(t.Context(), db, 0)
	r.until(t.Context(), db, 0, n)
	pauseReplica(t, n, func() {
		r.mustWrite(t.Context(), db, 0)
		r.only(t.Context(), db, 0, c.Primary())
		r.while(db, func() {})
	})
	r.while(db, func() {})
	r.until(t.Context(), db, 0, n)
	told.hears(t, replicated.NoticePooler)
	if got := told.count(replicated.NoticeMultiplexed); got != 0 {
		t.Error("one server was taken for several")
	}
}

// apart opens a handle on the shared cluster that shares nothing with any other: it
// reaches the primary by an address of its own, as another process would have floors of
// its own.
func apart(t *testing.T, c *replicatedtest.Cluster, keys ...string) (*sql.DB, *replicated.Cluster, *replicatedtest.NodeProxy) {
	t.Helper()
	proxy := c.Primary().Proxy(t)
	addrs := []string{proxy.Addr()}
	for _, n := range c.Replicas() {
		addrs = append(addrs, n.Addr())
	}
	db := openDSN(t, c.DSNAt(addrs, append(keys, evenly)...))
	cluster, err := replicated.ClusterOf(t.Context(), db)
	must(t, err)
	return db, cluster, proxy
}

// While no primary answers, replicas serve what they are proven to have, for as long as
// the cluster may be blind, and nothing after that.
func TestMaxBlind(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		r := newReadback(t, c)
		var proxies []*replicatedtest.NodeProxy
		handle := func(keys ...string) *sql.DB {
			db, _, proxy := apart(t, c, append(keys, locating)...)
			proxies = append(proxies, proxy)
			return db
		}
		long := handle(lagless, "replicated.max_blind=10m")
		short := handle(lagless, "replicated.max_blind=1s")
		stale := handle(lagless, "replicated.max_blind=1s", "replicated.primary_down=stale")
		all := []*sql.DB{long, short, stale}

		early, _ := replicated.WithSession(t.Context())
		late, _ := replicated.WithSession(t.Context())
		for row, db := range all {
			r.mustWrite(early, db, row)
			r.until(early, db, row, c.Replicas()...)
		}
		resume := pauseReplicas(t, c)
		for row, db := range all {
			r.mustWrite(late, db, row+3)
		}
		for _, p := range proxies {
			p.Refuse()
		}
		for range 20 {
			if node, err := r.read(early, long, 0); err != nil || node == c.Primary().Name() {
				t.Errorf("a read of what replicas are proven to have, by %s: %v", node, err)
			}
			if _, err := r.read(late, long, 3); !notFresh(err) {
				t.Errorf("a read of what they lack: %v, want ErrNotFresh", err)
			}
		}
		eventually(t, 20*time.Second, func() string {
			if _, err := r.read(early, short, 1); !notFresh(err) {
				return "a read that is blind for too long: want ErrNotFresh"
			}
			return ""
		})
		for range 20 {
			if _, err := r.read(early, short, 1); !notFresh(err) {
				t.Errorf("a read that is blind for too long: %v, want ErrNotFresh", err)
			}
			if _, err := r.read(late, short, 4); !notFresh(err) {
				t.Errorf("a read of what they lack: %v, want ErrNotFresh", err)
			}
			r.reads(early, stale, 2, 1)
			queryInt(t, stale, "SELECT count(*) FROM "+r.table) // whatever it lacks
		}
		resume()
		for row, p := range proxies {
			p.Pass()
			r.until(late, all[row], row+3, c.Replicas()...)
		}
	})
}
