package position_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/internal/position"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// readPrimary reads a primary's position.
func readPrimary(ctx context.Context, conn *sql.Conn) (position.Position, error) {
	var state, pos string
	var id uint32
	if err := conn.QueryRowContext(ctx, "SELECT @@gtid_binlog_state, @@gtid_binlog_pos, @@server_id").Scan(&state, &pos, &id); err != nil {
		return position.Position{}, err
	}
	return position.MariaDBPrimary(pos, state, id)
}

// readReplica reads a replica's position.
func readReplica(ctx context.Context, conn *sql.Conn) (position.Position, error) {
	var pos string
	if err := conn.QueryRowContext(ctx, "SELECT @@gtid_slave_pos").Scan(&pos); err != nil {
		return position.Position{}, err
	}
	return position.ParseGTIDList(pos)
}

func mustRead(t *testing.T, ctx context.Context, conn *sql.Conn, read func(context.Context, *sql.Conn) (position.Position, error)) position.Position {
	t.Helper()
	p, err := read(ctx, conn)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestMariaDBChainWithWritesInTheMiddle: in the chain n0, n1, n2 the last server
// is past the number of a transaction that it does not have. The server's own
// MASTER_GTID_WAIT says that it has it.
func TestMariaDBChainWithWritesInTheMiddle(t *testing.T) {
	cluster := replicatedtest.Start(t, replicatedtest.MariaDB, replicatedtest.Options{
		NoStatementLog: true,
		Settings:       map[string]string{"gtid-strict-mode": "OFF"},
	})
	nodes := cluster.Nodes()
	ctx, n0 := session(t, nodes[0].AdminDB(t))
	_, n1 := session(t, nodes[1].AdminDB(t))
	_, n2 := session(t, nodes[2].AdminDB(t))
	run(t, ctx, n0, "CREATE TABLE chain (who varchar(10))", "INSERT INTO chain VALUES ('first')")
	if err := cluster.WaitCaughtUp(ctx); err != nil {
		t.Fatal(err)
	}
	if p, q := mustRead(t, ctx, n2, readReplica), mustRead(t, ctx, n0, readPrimary); !p.Contains(q) || p.Exceeds(q) {
		t.Fatalf("n2 at %q does not contain %q, which it has", p, q)
	}
	if err := nodes[2].Follow(nodes[1]); err != nil {
		t.Fatal(err)
	}

	// n1 does not get the primary's row, and writes two of its own.
	if err := nodes[1].PauseReplication(); err != nil {
		t.Fatal(err)
	}
	run(t, ctx, n1, "INSERT INTO chain VALUES ('middle')", "INSERT INTO chain VALUES ('middle')")
	if err := nodes[2].WaitCaughtUp(ctx); err != nil {
		t.Fatal(err)
	}
	run(t, ctx, n0, "INSERT INTO chain VALUES ('last')")

	q := mustRead(t, ctx, n0, readPrimary)
	p := mustRead(t, ctx, n2, readReplica)
	var waited, rows int
	ask(t, ctx, n2, "SELECT MASTER_GTID_WAIT('"+q.String()+"', 0.2)", &waited)
	ask(t, ctx, n2, "SELECT count(*) FROM chain WHERE who = 'last'", &rows)
	if waited != 0 || rows != 0 {
		t.Fatalf("n2 at %q: MASTER_GTID_WAIT(%q) = %d with %d rows; the case is not what it should be", p, q, waited, rows)
	}
	if p.Contains(q) || p.Contains(q.Token()) {
		t.Errorf("n2 at %q contains %q, without the row", p, q)
	}
	if !p.Exceeds(q) {
		t.Errorf("n2 at %q does not exceed %q, although it has rows that the primary lacks", p, q)
	}

	if err := nodes[1].ResumeReplication(); err != nil {
		t.Fatal(err)
	}
	got := await(t, ctx, gtidList(q.String()), func() position.Position { return mustRead(t, ctx, n2, readReplica) })
	ask(t, ctx, n2, "SELECT count(*) FROM chain WHERE who = 'last'", &rows)
	if !got.Contains(q) || rows != 1 {
		t.Errorf("n2 at %q has %d rows and contains %q: %t", got, rows, q, got.Contains(q))
	}
}

// TestMariaDBAfterResetMaster: the numbers begin anew, and what the replica has
// is more by number.
func TestMariaDBAfterResetMaster(t *testing.T) {
	cluster := replicatedtest.Start(t, replicatedtest.MariaDB, replicatedtest.Options{Replicas: 1, NoStatementLog: true})
	ctx, primary := session(t, cluster.Primary().AdminDB(t))
	_, replica := session(t, cluster.Replicas()[0].AdminDB(t))
	run(t, ctx, primary, "CREATE TABLE t (n int)", "INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)")
	if err := cluster.WaitCaughtUp(ctx); err != nil {
		t.Fatal(err)
	}
	before, p := mustRead(t, ctx, primary, readPrimary), mustRead(t, ctx, replica, readReplica)
	run(t, ctx, primary, "RESET MASTER")
	if q := mustRead(t, ctx, primary, readPrimary); !q.IsEmpty() || p.Contains(q) || q.Includes(before) {
		t.Errorf("after RESET MASTER the primary is at %q, and %q contains that", q, p)
	}
	run(t, ctx, primary, "INSERT INTO t VALUES (3)")
	q := mustRead(t, ctx, primary, readPrimary)
	if q.Includes(before) {
		t.Errorf("%q includes %q, which was reset", q, before)
	}
	if !p.Exceeds(q) {
		t.Errorf("the replica's %q does not exceed %q", p, q)
	}
}

// TestMariaDBReplicaContainsWhatItShows compares positions with what a reader
// sees, while the primary is written to.
func TestMariaDBReplicaContainsWhatItShows(t *testing.T) {
	cluster := replicatedtest.Start(t, replicatedtest.MariaDB, replicatedtest.Options{
		Replicas:       1,
		NoStatementLog: true,
		Settings:       map[string]string{"slave-parallel-threads": "4", "slave-parallel-mode": "aggressive"},
	})
	ctx, conn := session(t, cluster.Primary().AdminDB(t))
	run(t, ctx, conn, "CREATE TABLE counter (n bigint)", "INSERT INTO counter VALUES (0)")
	watch(t, cluster, watched{
		write: "UPDATE counter SET n = n + 1", read: "SELECT n FROM counter",
		primary: readPrimary, replica: readReplica,
	})
}

// TestMariaDBStateIsReadBeforePosition: a query reads its variables from left to
// right, so that gtid_binlog_state on the left is never ahead. That is what
// MariaDBPrimary asks for.
func TestMariaDBStateIsReadBeforePosition(t *testing.T) {
	cluster := replicatedtest.Start(t, replicatedtest.MariaDB, replicatedtest.Options{Replicas: -1, NoStatementLog: true})
	ctx, conn := session(t, cluster.Primary().AdminDB(t))
	run(t, ctx, conn, "CREATE TABLE counter (n bigint)", "INSERT INTO counter VALUES (0)")
	_, writer := session(t, cluster.Primary().AdminDB(t))
	_, other := session(t, cluster.Primary().AdminDB(t))
	stop := make(chan struct{})
	stopped := make(chan error, 2)
	for i, conn := range []*sql.Conn{writer, other} {
		go func() {
			for {
				select {
				case <-stop:
					stopped <- nil
					return
				default:
				}
				// Several servers' numbers in one log.
				text := "SET STATEMENT server_id = 77 FOR UPDATE counter SET n = n + 1"
				if i == 0 {
					text = "UPDATE counter SET n = n + 1"
				}
				if _, err := conn.ExecContext(ctx, text); err != nil {
					stopped <- err
					return
				}
			}
		}()
	}
	numbers := func(list string) map[string]string {
		m := map[string]string{}
		for part := range strings.SplitSeq(list, ",") {
			cut := strings.LastIndexByte(part, '-')
			m[part[:cut]] = part[cut+1:]
		}
		return m
	}
	longer := func(a, b string) bool { return len(a) > len(b) || len(a) == len(b) && a > b }
	var ahead, behind int
	for range 4000 {
		var state, pos, again string
		ask(t, ctx, conn, "SELECT @@gtid_binlog_state, @@gtid_binlog_pos, @@gtid_binlog_state AS again", &state, &pos, &again)
		last := pos[strings.LastIndexByte(pos, '-')+1:]
		for _, number := range numbers(state) {
			if longer(number, last) {
				ahead++
			}
		}
		for _, number := range numbers(again) {
			if longer(number, last) {
				behind++
			}
		}
	}
	close(stop)
	for range 2 {
		if err := <-stopped; err != nil {
			t.Errorf("writing: %v", err)
		}
	}
	if ahead > 0 {
		t.Errorf("gtid_binlog_state was ahead of gtid_binlog_pos %d times although it was read first", ahead)
	}
	t.Logf("read after gtid_binlog_pos, it was ahead %d times of 4000", behind)
}
