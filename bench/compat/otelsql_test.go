package compat_test

import (
	"testing"

	"github.com/XSAM/otelsql"
	"github.com/jmoiron/sqlx"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// registerOTel wraps our driver by its name, which opens it with an empty DSN.
func registerOTel(t *testing.T) (name string) {
	t.Helper()
	name, err := otelsql.Register(replicated.DriverName)
	check(t, err)
	return name
}

func openSQLXOverOTel(t *testing.T, c *replicatedtest.Cluster) store {
	return sqlxStore{sqlx.NewDb(open(t, registerOTel(t), dsn(c)), c.DriverName()), c.Engine()}
}

// Through a wrapper the cluster behind a handle is still found, and knows what it
// has routed.
func TestClusterOfSeesThroughOTel(t *testing.T) {
	for _, e := range replicatedtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			c := sharedCluster(t, e)
			db := open(t, registerOTel(t), dsn(c))
			l := beginLog(c)
			for range 4 {
				var one int
				check(t, db.QueryRowContext(request(t), "SELECT 1").Scan(&one))
			}
			l.onReplicas(t, "SELECT 1")

			cluster, err := replicated.ClusterOf(t.Context(), db)
			check(t, err)
			s := cluster.Stats()
			if got := s.Replica[replicated.ReasonRead]; got != 4 {
				t.Errorf("%d reads on replicas by the cluster's count, want 4: %v %v", got, s.Primary, s.Replica)
			}
			if len(s.Nodes) != 3 || s.Nodes[0].Address != c.Primary().Addr() {
				t.Errorf("the cluster's nodes are %+v, want those of the DSN", s.Nodes)
			}
		})
	}
}
