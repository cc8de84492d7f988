package replicated_test

import (
	"errors"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// Of a replica that is gone nothing is known, for nothing is connected to it. What it
// would have served counts against the limit of reads on the primary all the same,
// whether it has ever been there or not.
func TestReportA25LimitOfThePrimaryOnServers(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		for _, there := range []bool{false, true} {
			query := "SELECT count(*) FROM " + table(t, c, "id int")
			proxy := c.Replicas()[0].Proxy(t)
			if !there {
				proxy.Refuse()
			}
			db := openDSN(t, c.DSNAt([]string{c.Primary().Addr(), proxy.Addr()}, ownFloors(t), "replicated.primary_read_limit=1"))
			if there {
				measured(t, c, db)
				proxy.Refuse()
			}
			eventually(t, 10*time.Second, func() string {
				queryInt(t, db, query)
				if n := stats(t, db).Nodes[1]; n.Breaker == replicated.BreakerClosed {
					return "the replica is not taken out"
				}
				return ""
			})
			rows, err := db.QueryContext(t.Context(), query)
			if err != nil {
				t.Fatal(err)
			}
			if err := db.QueryRowContext(t.Context(), query).Scan(new(int)); !errors.Is(err, replicated.ErrNoReplica) {
				t.Errorf("there before: %v: error %v, want ErrNoReplica", there, err)
			}
			if err := rows.Close(); err != nil {
				t.Error(err)
			}
			queryInt(t, db, query)
		}
	})
}
