package replicated_test

import (
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// Replicas, or a primary, in another part of the world: opening a connection takes
// longer than a probe may take. They are found, and serve, all the same; also in their
// roles.
func TestNodesALongWayOff(t *testing.T) {
	eachDriver(t, func(t *testing.T, e replicatedtest.Engine) {
		c := sharedCluster(t, e)
		r := newReadback(t, c)
		const oneWay = 120 * time.Millisecond
		var addrs []string
		for _, n := range c.Nodes() {
			p := n.Proxy(t)
			p.Delay(oneWay)
			addrs = append(addrs, p.Addr())
		}
		db := openDSN(t, c.DSNAt(addrs, ownFloors(t), "replicated.topology=discover", locating, evenly))
		db.SetMaxIdleConns(4)
		ctx, _ := replicated.WithSession(t.Context())
		r.mustWrite(ctx, db, 0)
		began := time.Now()
		r.until(ctx, db, 0, c.Replicas()...)
		t.Logf("both replicas served after %v", time.Since(began).Round(time.Millisecond))
		for _, n := range stats(t, db).Nodes {
			if n.Breaker != replicated.BreakerClosed {
				t.Errorf("the breaker of %s is %v", n.Name, n.Breaker)
			}
		}
	})
}
