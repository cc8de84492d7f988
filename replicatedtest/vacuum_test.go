package replicatedtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

func TestVacuumCancelsWhatRunsOnAStandby(t *testing.T) {
	c := replicatedtest.Start(t, replicatedtest.Postgres, replicatedtest.Options{
		Replicas: 1, ReplicaSettings: map[string]string{"max_standby_streaming_delay": "0"}, Log: testLog{t},
	})
	db, n := c.Primary().DB(t), c.Replicas()[0]
	execSQL(t, db, `CREATE TABLE "odd name" ("select" int PRIMARY KEY, word text)`)
	execSQL(t, db, `INSERT INTO "odd name" VALUES (1, 'a'), (2, 'b')`)
	caughtUp(t, c)
	replica, admin := openConn(t, n.DB(t)), n.AdminDB(t)
	for range 2 {
		done := make(chan error, 1)
		go func() {
			_, err := replica.ExecContext(context.Background(), `SELECT pg_sleep(30), count(*) FROM "odd name"`)
			done <- err
		}()
		for begin := time.Now(); query(t, admin, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active' AND backend_xmin IS NOT NULL") != "1"; {
			if time.Since(begin) > 10*time.Second {
				t.Fatal("the statement does not run")
			}
		}
		must(t, c.Vacuum(within(t, 10*time.Second), `public."odd name"`))
		select {
		case err := <-done:
			if !hasCode(err, "40001", 0) {
				t.Errorf("error %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("the statement is not cancelled")
		}
	}
	if got := query(t, db, `SELECT string_agg(word, '' ORDER BY word) FROM "odd name"`); got != "ab" {
		t.Errorf("words %q", got)
	}
	execSQL(t, db, `DELETE FROM "odd name"`)
	if err := c.Vacuum(within(t, 10*time.Second), `"odd name"`); err == nil {
		t.Error("a conflict from an empty table")
	}
	if err := c.Vacuum(within(t, 10*time.Second), "no_such_table"); err == nil {
		t.Error("a conflict from no table")
	}
}

func TestVacuumIsPostgreSQLs(t *testing.T) {
	c := replicatedtest.Start(t, replicatedtest.MariaDB, replicatedtest.Options{Replicas: -1})
	if err := c.Vacuum(within(t, 10*time.Second), "t"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("error %v", err)
	}
}
