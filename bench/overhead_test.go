package bench_test

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// BenchmarkOverhead measures against real servers: the bare driver on the
// primary, then ours on the primary alone, then ours on a cluster of three.
//
// Servers and client share one machine. With three nodes the servers' work is
// spread, but so are the machine's processors: this measures what we add to a
// statement, and says nothing of what replicas take off a primary.
func BenchmarkOverhead(b *testing.B) {
	for _, e := range []replicatedtest.Engine{replicatedtest.Postgres, replicatedtest.MariaDB} {
		b.Run(name("engine", e), func(b *testing.B) {
			c := replicatedtest.Start(b, e, replicatedtest.Options{NoStatementLog: true})
			q := setUp(b, c)
			for _, op := range operations {
				for _, g := range concurrency {
					for _, s := range setups {
						b.Run(name("op", op.name)+"/"+name("goroutines", g)+"/"+name("driver", s.name), func(b *testing.B) {
							db := openNodes(b, c, s.nodes)
							measure(b, g, db, op, q)
							if s.nodes == 3 && op.replica {
								servedByReplicas(b, db)
							}
						})
					}
				}
			}
		})
	}
}

// setUp makes the table, on all nodes, and returns the texts of the work.
func setUp(b *testing.B, c *replicatedtest.Cluster) texts {
	b.Helper()
	serial, placeholder := "BIGINT AUTO_INCREMENT PRIMARY KEY", "?"
	if c.Engine() == replicatedtest.Postgres {
		serial, placeholder = "BIGSERIAL PRIMARY KEY", "$1"
	}
	db := c.Primary().DB(b)
	for _, query := range []string{
		"CREATE TABLE items (id " + serial + ", name VARCHAR(60) NOT NULL)",
		"INSERT INTO items (name) VALUES ('bolt')",
	} {
		if _, err := db.ExecContext(b.Context(), query); err != nil {
			b.Fatal(err)
		}
	}
	if err := c.WaitCaughtUp(b.Context()); err != nil {
		b.Fatal(err)
	}
	return texts{
		read:    "SELECT id, name FROM items WHERE id = 1",
		readArg: "SELECT id, name FROM items WHERE id = " + placeholder,
		insert:  "INSERT INTO items (name) VALUES ('nut')",
		update:  "UPDATE items SET name = 'bolt' WHERE id = 1",
	}
}

// openNodes opens the cluster as one of the setups.
func openNodes(b *testing.B, c *replicatedtest.Cluster, nodes int) *sql.DB {
	b.Helper()
	driver, dsn := c.DriverName(), c.Primary().DSN()
	if nodes > 0 {
		// Writes of other benchmarks must hold no read of this one on the primary:
		// under its own name the cluster is another one.
		clusters++
		cluster := fmt.Sprintf("replicated.cluster=bench-%d", clusters)
		driver, dsn = replicated.DriverName, c.DSN(cluster)
		if nodes == 1 {
			dsn = c.DSNAt([]string{c.Primary().Addr()}, cluster)
		}
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	return db
}

var clusters int

// servedByReplicas fails the benchmark if it measured the primary.
func servedByReplicas(b *testing.B, db *sql.DB) {
	b.Helper()
	c, err := replicated.ClusterOf(b.Context(), db)
	if err != nil {
		b.Fatal(err)
	}
	if s := c.Stats(); len(s.Primary) > 0 || s.Replica[replicated.ReasonRead] < uint64(b.N) {
		b.Fatalf("not served by replicas alone: primary %v, replicas %v", s.Primary, s.Replica)
	}
}
