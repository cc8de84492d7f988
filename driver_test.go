package replicated_test

import (
	"testing"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

// A plain program: it writes, it reads, and by the servers' own logs its writes
// ran on the primary and its reads on the replicas, both of them. What it has just
// written it reads there again once they have it.
func TestReadsRunOnReplicasAndWritesOnThePrimary(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		name := table(t, c, "id int PRIMARY KEY, v int")
		c.ResetStatements()
		db := open(t, c)

		for range 60 {
			queryInt(t, db, "SELECT count(*) FROM "+name+" WHERE v >= "+placeholder(c.Engine(), 1), 0)
		}
		resume := pauseReplicas(t, c)
		mustExec(t, db, "INSERT INTO "+name+" (id, v) VALUES ("+placeholder(c.Engine(), 1)+", 7)", 1)
		if got := queryInt(t, db, "SELECT v + 0 FROM "+name); got != 7 {
			t.Errorf("read %d after writing 7", got)
		}
		resume()
		proven(t, db)
		if got := queryInt(t, db, "SELECT v + 1 FROM "+name); got != 8 {
			t.Errorf("read 1 + %d after writing 7", got-1)
		}

		onlyReplicas(t, c, "SELECT count(*) FROM "+name)
		if got := ranOn(c, "SELECT count(*) FROM "+name); len(got) != len(c.Replicas()) {
			t.Errorf("60 reads ran on %v only", got)
		}
		onlyPrimary(t, c, "INSERT INTO "+name)
		onlyPrimary(t, c, "SELECT v + 0 FROM "+name)
		onlyReplicas(t, c, "SELECT v + 1 FROM "+name)
	})
}
