package replicatedtest_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

func TestNodeSettingsReachOneServer(t *testing.T) {
	settings := map[replicatedtest.Engine][2]string{
		replicatedtest.Postgres: {"deadlock_timeout", "SHOW deadlock_timeout"},
		replicatedtest.MariaDB:  {"sort_buffer_size", "SELECT @@global.sort_buffer_size"},
		replicatedtest.MySQL:    {"sort_buffer_size", "SELECT @@global.sort_buffer_size"},
	}
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		s := settings[e]
		unit := map[bool]string{true: "ms"}[e == replicatedtest.Postgres]
		value := func(n int) string { return fmt.Sprint(300000 + n) }
		c := replicatedtest.Start(t, e, replicatedtest.Options{
			Settings:        map[string]string{s[0]: value(1)},
			ReplicaSettings: map[string]string{s[0]: value(2)},
			NodeSettings:    map[string]map[string]string{"node3": {s[0]: value(3)}},
		})
		check := func() {
			t.Helper()
			for i, n := range c.Nodes() {
				if got := query(t, n.DB(t), s[1]); got != value(i+1)+unit {
					t.Errorf("%s: %s = %s, want %s", n, s[0], got, value(i+1))
				}
			}
		}
		check()
		// They are a node's in whatever role.
		must(t, c.Nodes()[0].Stop())
		must(t, c.Nodes()[1].Promote())
		must(t, c.Nodes()[0].Follow(c.Nodes()[1]))
		must(t, c.Nodes()[1].Stop())
		must(t, c.Nodes()[1].Start())
		check()
	})
}

func TestNodeSettingsOfNoNode(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		replicatedtest.Require(t, e)
		for _, name := range []string{"node4", "node0", "node2x", "primary", ""} {
			c, err := replicatedtest.StartContext(context.Background(), e, replicatedtest.Options{NodeSettings: map[string]map[string]string{name: {}}})
			if err == nil {
				c.Close()
				t.Errorf("settings of %q are taken", name)
			}
		}
	})
}

// Replicas that apply in parallel, and what waits for them.
func TestParallelApply(t *testing.T) {
	for e, settings := range map[replicatedtest.Engine]map[string]string{
		replicatedtest.MariaDB: {"slave_parallel_mode": "aggressive", "slave_parallel_threads": "4"},
		replicatedtest.MySQL:   {"slave_parallel_workers": "4"},
	} {
		t.Run(e.String(), func(t *testing.T) {
			c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1, ReplicaSettings: settings, Log: testLog{t}})
			primary, n := c.Primary(), c.Replicas()[0]
			for name, value := range settings {
				if got := query(t, n.DB(t), "SELECT @@global."+name); got != value {
					t.Errorf("%s = %s, want %s", name, got, value)
				}
			}
			workers := "SELECT count(*) FROM information_schema.processlist WHERE user = 'system user'"
			if got := query(t, n.AdminDB(t), workers); got < "6" || len(got) > 1 {
				t.Errorf("%s replication threads, want the receiver, the coordinator and 4 that apply", got)
			}
			admin := primary.AdminDB(t)
			const schemas, rows = 4, 50
			for i := range schemas {
				execSQL(t, admin, fmt.Sprintf("CREATE DATABASE s%d", i))
				execSQL(t, admin, fmt.Sprintf("CREATE TABLE s%d.t (id int PRIMARY KEY)", i))
			}
			for range 3 {
				var writing sync.WaitGroup
				for i := range schemas {
					writing.Go(func() {
						for id := range rows {
							if _, err := admin.Exec(fmt.Sprintf("REPLACE INTO s%d.t VALUES (%d)", i, id)); err != nil {
								t.Error(err)
							}
						}
					})
				}
				writing.Wait()
				caughtUp(t, c)
				for i := range schemas {
					if got := query(t, n.AdminDB(t), fmt.Sprintf("SELECT count(*) FROM s%d.t", i)); got != fmt.Sprint(rows) {
						t.Errorf("schema %d has %s rows, want %d", i, got, rows)
					}
				}
				execSQL(t, admin, fmt.Sprintf("DELETE FROM s%d.t", 0))
				caughtUp(t, c)
				if got := query(t, n.AdminDB(t), "SELECT count(*) FROM s0.t"); got != "0" {
					t.Errorf("%s rows after the deletion", got)
				}
			}
		})
	}
}
