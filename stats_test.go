package replicated_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"
	"github.com/sqlreplicated/replicated/internal/faketime"
)

func TestStats(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 2, fakedb.Full)
		db := f.open(func(c *replicated.Config) { c.Nodes[1].Address = "db2:5432" })
		cluster, err := replicated.ClusterOf(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			wantOn(t.Context(), t, db, "replica")
		}
		rows, err := db.QueryContext(t.Context(), plainSelect)
		if err != nil {
			t.Fatal(err)
		}
		run(t.Context(), t, db, "INSERT INTO t VALUES (1)")
		wantOn(t.Context(), t, db, "primary")

		s := cluster.Stats()
		if want := map[replicated.Reason]uint64{replicated.ReasonRead: 5}; !maps.Equal(s.Replica, want) {
			t.Errorf("on replicas %v, want %v", s.Replica, want)
		}
		if want := map[replicated.Reason]uint64{replicated.ReasonWrite: 1, replicated.ReasonProcessWrite: 1}; !maps.Equal(s.Primary, want) {
			t.Errorf("on the primary %v, want %v", s.Primary, want)
		}
		if s.LagMeasured {
			t.Error("lag is not measured")
		}
		if len(s.Nodes) != 3 || s.Nodes[0].Role != replicated.RolePrimary || s.Nodes[1].Address != "db2:5432" || s.Nodes[2].Name != "replica2" {
			t.Errorf("nodes %+v", s.Nodes)
		}
		var idle, inFlight, open int
		for i, n := range s.Nodes {
			if n.Open != f.servers()[i].Stats().OpenConns {
				t.Errorf("%s: %d connections by Stats, %d by the server", n.Name, n.Open, f.servers()[i].Stats().OpenConns)
			}
			idle, inFlight, open = idle+n.Idle, inFlight+int(n.InFlight), open+n.Open
		}
		if idle != 1 || inFlight != 1 {
			t.Errorf("%d idle, %d in flight, want one each", idle, inFlight)
		}
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
		for _, n := range cluster.Stats().Nodes {
			if n.InFlight != 0 {
				t.Errorf("%s: %d in flight after the rows' end", n.Name, n.InFlight)
			}
		}
	})
}

// A statement that failed on one node and ran on another counts on each.
func TestStatsCountAttempts(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 2, fakedb.Full)
		db := f.open()
		cluster, err := replicated.ClusterOf(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range f.replicas {
			r.Down(errors.New("refused"))
		}
		wantOn(t.Context(), t, db, "primary")
		s := cluster.Stats()
		if s.Replica[replicated.ReasonRead] != 2 || s.Primary[replicated.ReasonNoReplica] != 1 {
			t.Errorf("on replicas %v, on the primary %v", s.Replica, s.Primary)
		}
	})
}
