package bench_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated"
)

var fakeTexts = texts{
	read:    "SELECT id, name FROM items WHERE id = 1",
	readArg: "SELECT id, name FROM items WHERE id = ?",
	insert:  "INSERT INTO items (name) VALUES ('nut')",
	update:  "UPDATE items SET name = 'bolt' WHERE id = 1",
}

// openFakes opens a handle on fake servers, the first of them the primary. None
// of ours stands between where nodes is 0.
func openFakes(tb testing.TB, nodes int) (*sql.DB, []*fakeServer) {
	tb.Helper()
	servers := []*fakeServer{new(fakeServer)}
	db := sql.OpenDB(servers[0])
	if nodes > 0 {
		cfg := replicated.Config{Nodes: []replicated.Node{{Connector: servers[0]}}}
		for range nodes - 1 {
			servers = append(servers, new(fakeServer))
			cfg.Nodes = append(cfg.Nodes, replicated.Node{Connector: servers[len(servers)-1]})
		}
		connector, err := replicated.NewConnector(cfg)
		if err != nil {
			tb.Fatal(err)
		}
		db = sql.OpenDB(connector)
	}
	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Error(err)
		}
	})
	return db, servers
}

// setups are what is compared: no driver of ours, then ours with that many nodes.
var setups = []struct {
	name  string
	nodes int
}{
	{"bare", 0},
	{"replicated-1", 1},
	{"replicated-3", 3},
}

// BenchmarkRouting measures what our own work costs: to classify, to choose, to
// borrow and to give back. The servers are fakes that answer at once.
func BenchmarkRouting(b *testing.B) {
	for _, op := range operations {
		for _, g := range concurrency {
			for _, s := range setups {
				b.Run(name("op", op.name)+"/"+name("goroutines", g)+"/"+name("driver", s.name), func(b *testing.B) {
					db, _ := openFakes(b, s.nodes)
					measure(b, g, db, op, fakeTexts)
				})
			}
		}
	}
}

// BenchmarkRoutingByLength shows how the cost grows with the text, every byte of
// which is looked at.
func BenchmarkRoutingByLength(b *testing.B) {
	for _, columns := range []int{1, 10, 100, 1000} {
		q := texts{read: "SELECT " + strings.Repeat("items.name, ", columns) + "id FROM items WHERE id = 1"}
		for _, s := range setups {
			b.Run(name("bytes", len(q.read))+"/"+name("driver", s.name), func(b *testing.B) {
				db, _ := openFakes(b, s.nodes)
				b.SetBytes(int64(len(q.read)))
				measure(b, 1, db, operations[0], q)
			})
		}
	}
}

// What the benchmarks measure is what they say: reads are served by replicas
// where there are any, and everything else by the primary.
func TestOperationsRunWhereTheyShould(t *testing.T) {
	for _, op := range operations {
		t.Run(op.name, func(t *testing.T) {
			db, servers := openFakes(t, 3)
			run, err := op.prepare(t.Context(), db, fakeTexts)
			if err != nil {
				t.Fatal(err)
			}
			const times = 100
			for range times {
				if err := run(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			total := func(s *fakeServer) int64 { return s.queries.Load() + s.execs.Load() }
			primary, replicas := total(servers[0]), total(servers[1])+total(servers[2])
			if op.replica && (primary != 0 || replicas != times) {
				t.Errorf("%d statements ran on the primary and %d on replicas, want all %d on replicas", primary, replicas, times)
			}
			if !op.replica && (primary < times || replicas != 0) {
				t.Errorf("%d statements ran on the primary and %d on replicas, want all on the primary", primary, replicas)
			}
		})
	}
}
