package replicatedtest_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

// feeder is a query on the primary for the session that feeds its replica.
var feeder = map[replicatedtest.Engine]string{
	replicatedtest.Postgres: "SELECT max(pid) FROM pg_stat_replication",
	replicatedtest.MariaDB:  "SELECT max(id) FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'",
	replicatedtest.MySQL:    "SELECT max(id) FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'",
}

// What waits for a long delay is let go by a short one, on the connection that
// there is, and what waits for a short one is kept by a long one.
func TestDelayHoldsAtOnce(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1, Log: testLog{t}})
		db, n := c.Primary().DB(t), c.Replicas()[0]
		replica, admin := n.DB(t), c.Primary().AdminDB(t)
		execSQL(t, db, "CREATE TABLE t (id int PRIMARY KEY)")
		begin := time.Now()
		must(t, n.Delay(300*time.Millisecond))
		t.Logf("the first delay took %v", time.Since(begin))
		caughtUp(t, c)
		fed := query(t, admin, feeder[e])
		for id := range 2 {
			must(t, n.Delay(2*time.Second))
			execSQL(t, db, fmt.Sprintf("INSERT INTO t VALUES (%d)", id))
			must(t, n.Delay(time.Hour))
			if err := n.WaitCaughtUp(within(t, 2300*time.Millisecond)); err == nil {
				t.Fatal("a row has not waited for an hour")
			}
			begin := time.Now()
			must(t, n.Delay(0))
			changed := time.Since(begin)
			caughtUp(t, c)
			t.Logf("changed in %v, caught up %v after that", changed, time.Since(begin)-changed)
			if got := query(t, replica, "SELECT count(*) FROM t"); got != fmt.Sprint(id+1) {
				t.Errorf("%s rows, want %d", got, id+1)
			}
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("after %v", took)
			}
		}
		if got := query(t, admin, feeder[e]); got != fed {
			t.Errorf("fed by session %s, then by %s", fed, got)
		}
	})
}

// A lag between nothing and two seconds that is another one five times a
// second, while rows are written: the replica shows the rows in order, never
// sooner than the shortest delay allows, and is there at the end.
func TestDelayChangesAllTheTime(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1, NoStatementLog: true})
		db, n := c.Primary().DB(t), c.Replicas()[0]
		replica, admin := n.DB(t), c.Primary().AdminDB(t)
		execSQL(t, db, "CREATE TABLE t (id int PRIMARY KEY)")
		must(t, n.Delay(time.Millisecond))
		caughtUp(t, c)
		fed := query(t, admin, feeder[e])

		var writing sync.WaitGroup
		stop := make(chan struct{})
		written := 0
		writing.Go(func() {
			for ; ; written++ {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := db.Exec(fmt.Sprintf("INSERT INTO t VALUES (%d)", written)); err != nil {
					t.Errorf("write %d: %v", written, err)
					return
				}
			}
		})
		last, moved := 0, 0
		var slowest time.Duration
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for range 20 {
			begin := time.Now()
			if err := n.Delay(time.Duration(rand.IntN(2000)) * time.Millisecond); err != nil {
				t.Error(err)
				break
			}
			slowest = max(slowest, time.Since(begin))
			<-tick.C
			var count, highest int
			if err := replica.QueryRow("SELECT count(*), coalesce(max(id) + 1, 0) FROM t").Scan(&count, &highest); err != nil {
				t.Error(err)
				break
			}
			if count != highest || count < last {
				t.Errorf("%d rows, the highest is number %d, before there were %d", count, highest, last)
			}
			if count > last {
				moved++
			}
			last = count
		}
		close(stop)
		writing.Wait()
		must(t, n.Delay(0))
		begin := time.Now()
		caughtUp(t, c)
		t.Logf("%d rows; a change took %v at most; moved in %d of 20 intervals; caught up after %v", written, slowest, moved, time.Since(begin))
		if got := query(t, replica, "SELECT count(*) FROM t"); got != fmt.Sprint(written) {
			t.Errorf("%s rows of %d", got, written)
		}
		if moved == 0 {
			t.Error("nothing arrived while the delay changed")
		}
		if got := query(t, admin, feeder[e]); got != fed {
			t.Errorf("fed by session %s, then by %s", fed, got)
		}
	})
}
