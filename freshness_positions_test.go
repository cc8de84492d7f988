package replicated_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// Replicas that apply with several threads, out of order where they can: MariaDB
// with slave_parallel_mode=aggressive, MySQL by database. Big transactions hold one
// thread up while others go on.
//
// Verdict: MariaDB's gtid_slave_pos moves in the order of commits; MySQL 5.6 tells
// the place before which nothing is missing (the last checkpoint), which is late,
// not wrong. No read is stale.
func TestParallelApply(t *testing.T) {
	settings := map[replicatedtest.Engine]map[string]string{
		replicatedtest.MariaDB: {"slave_parallel_threads": "4", "slave_parallel_mode": "aggressive"},
		replicatedtest.MySQL:   {"slave_parallel_workers": "4", "slave_checkpoint_period": "10"},
	}
	eachMySQL(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{NoStatementLog: true, ReplicaSettings: settings[e]})
		admin := c.Primary().AdminDB(t)
		var all []*readback
		for _, database := range []string{"one", "two", "three"} {
			mustExec(t, admin, "CREATE DATABASE "+database)
			mustExec(t, admin, "GRANT ALL ON "+database+".* TO "+replicatedtest.AppUser)
			r := newReadback(t, c)
			mustExec(t, admin, fmt.Sprintf("RENAME TABLE app.%s TO %s.%[1]s", r.table, database))
			r.table = database + "." + r.table
			all = append(all, r)
		}
		mustExec(t, admin, "CREATE TABLE one.big (id int PRIMARY KEY, n int NOT NULL)")
		rows := make([]string, 3000)
		for i := range rows {
			rows[i] = fmt.Sprintf("(%d, 0)", i)
		}
		mustExec(t, admin, "INSERT INTO one.big VALUES "+strings.Join(rows, ", "))
		caughtUp(t, c)
		db, _ := all[0].opened(t)

		ctx, cancel := context.WithCancel(t.Context())
		var big, sessions sync.WaitGroup
		big.Go(func() {
			for ctx.Err() == nil {
				if _, err := admin.ExecContext(t.Context(), "UPDATE one.big SET n = n + 1"); err != nil {
					t.Error(err)
					return
				}
			}
		})
		for _, r := range all {
			sessions.Go(func() {
				if n := r.inSessions(db, 3, 30); n == 0 {
					t.Error("replicas served no read")
				}
			})
		}
		sessions.Wait()
		cancel()
		big.Wait()
		for _, r := range all {
			r.while(db, func() {})
			r.until(t.Context(), db, 0, c.Replicas()...)
		}
	})
}

// Many sessions that read what they have just written, as fast as they can, while
// the primary begins new log files. The replicas wait for the disk between logging a
// transaction and showing it, and their clients' default is to be in a transaction.
//
// Verdict: zero stale reads, on MySQL 5.6 too, where gtid_executed has a transaction
// before a reader sees it: places in binary log files do not.
func TestReadBackAcrossLogFiles(t *testing.T) {
	eachMySQL(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{NoStatementLog: true, ReplicaSettings: map[string]string{
			"sync-binlog": "1", "innodb-flush-log-at-trx-commit": "1", "autocommit": "0",
		}})
		r := newReadback(t, c)
		db, _ := r.opened(t)
		admin := c.Primary().AdminDB(t)
		served := 0
		for range 5 {
			var rotating sync.WaitGroup
			rotating.Go(func() {
				if _, err := admin.ExecContext(t.Context(), "FLUSH LOGS"); err != nil {
					t.Error(err)
				}
			})
			served += r.inSessions(db, readbackRows, 30)
			rotating.Wait()
		}
		if served == 0 {
			t.Error("replicas served no read")
		}
		r.until(t.Context(), db, 0, c.Replicas()...)
	})
}

// guessing fails the test unless the handle has said once that nothing can be
// measured, with the reason, and goes by time.
func guessing(t *testing.T, db *sql.DB, h *heard, reason string) {
	t.Helper()
	h.hears(t, replicated.NoticeLagUnmeasured)
	if all := h.all(); len(all) != 1 || !strings.Contains(fmt.Sprint(all[0].Err), reason) {
		t.Errorf("notices %v, want one that names %q", all, reason)
	}
	s := stats(t, db)
	if s.LagMeasured {
		t.Error("lag is said to be measured")
	}
	for _, n := range s.Nodes[1:] {
		if n.Freshness != replicated.FreshnessUnmeasured {
			t.Errorf("the freshness of %s is %v", n.Name, n.Freshness)
		}
	}
}

// A user without REPLICATION CLIENT on MySQL 5.6, where only that privilege shows
// positions.
//
// Verdict: replicated.sticky takes over, with one notice that names the privilege;
// with tracker=position the primary serves all reads.
func TestWithoutReplicationClient(t *testing.T) {
	c := sharedCluster(t, replicatedtest.MySQL)
	if !strings.HasPrefix(c.Version(), "MySQL 5.6.") {
		t.Skipf("%s shows its position to everybody", c.Version())
	}
	r := newReadback(t, c)
	admin := c.Primary().AdminDB(t)
	mustExec(t, admin, "GRANT SELECT, UPDATE, EXECUTE ON app.* TO 'bystander' IDENTIFIED BY 'bystander-Pa55word'")
	t.Cleanup(func() { _, _ = admin.ExecContext(context.WithoutCancel(t.Context()), "DROP USER 'bystander'") })
	caughtUp(t, c)
	dsn := func(keys ...string) string {
		return strings.Replace(c.DSN(append(keys, locating, lagless)...),
			replicatedtest.AppUser+":"+replicatedtest.AppPassword, "bystander:bystander-Pa55word", 1)
	}
	ctx := t.Context()

	db, h := listening(t, dsn("replicated.sticky=1h", ownFloors(t)))
	r.until(ctx, db, 0, c.Replicas()...)
	guessing(t, db, h, "REPLICATION CLIENT")
	r.mustWrite(ctx, db, 0)
	r.while(db, func() { r.only(ctx, db, 0, c.Primary()) })
	if n := len(h.all()); n != 1 {
		t.Errorf("notices %v", h.all())
	}

	strict, h := listening(t, dsn("replicated.tracker=position", ownFloors(t)+"2"))
	r.only(ctx, strict, 0, c.Primary())
	h.hears(t, replicated.NoticeLagUnmeasured)
	r.only(ctx, strict, 0, c.Primary())
	r.mustWrite(ctx, strict, 0)
	r.only(ctx, strict, 0, c.Primary())
	if all := h.all(); len(all) != 1 || !strings.Contains(fmt.Sprint(all[0].Err), "REPLICATION CLIENT") {
		t.Errorf("notices %v", all)
	}
}

// A primary without a binary log, to which something else than its own replication
// brings replicas up.
//
// Verdict: it has no position; replicated.sticky takes over, with one notice.
func TestPrimaryWithoutABinaryLog(t *testing.T) {
	start := func(settings map[string]string) *replicatedtest.Cluster {
		return replicatedtest.Start(t, replicatedtest.MariaDB, replicatedtest.Options{Replicas: -1, NoStatementLog: true, Settings: settings})
	}
	logless, other := start(map[string]string{"skip-log-bin": "1", "log-slave-updates": "0"}), start(nil)
	for _, c := range []*replicatedtest.Cluster{logless, other} {
		mustExec(t, c.Primary().DB(t), "CREATE TABLE t (n int)")
	}
	mustExec(t, other.Primary().DB(t), "INSERT INTO t VALUES (1)") // so that it can be told
	ctx := t.Context()
	db, h := listening(t, logless.DSNAt([]string{logless.Primary().Addr(), other.Primary().Addr()}, "replicated.sticky=1h"))
	eventually(t, 20*time.Second, func() string {
		if n := queryInt(t, db, "SELECT count(*) FROM t"); n != 1 {
			return "the replica has not served a read"
		}
		return ""
	})
	guessing(t, db, h, "log_bin")
	if _, err := db.ExecContext(ctx, "INSERT INTO t VALUES (1), (2), (3)"); err != nil {
		t.Fatal(err)
	}
	for range 30 {
		if n := queryInt(t, db, "SELECT count(*) FROM t"); n != 3 {
			t.Fatalf("%d rows: not the primary's", n)
		}
	}
	if n := len(h.all()); n != 1 {
		t.Errorf("notices %v", h.all())
	}
}
