package replicatedtest_test

import (
	"context"
	"database/sql"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

// One client connection, answers from two servers.
func TestPgBouncerInFrontOfTwoServers(t *testing.T) {
	c := replicatedtest.Start(t, replicatedtest.Postgres, replicatedtest.Options{Log: testLog{t}})
	b := replicatedtest.StartPgBouncer(t, replicatedtest.PgBouncerConfig{Nodes: c.Replicas(), PoolSize: 2,
		Settings: map[string]string{"server_round_robin": "1"}})
	db := openBare(t, c.DriverName(), b.DSN())
	conn := openConn(t, db)
	busy, err := openConn(t, db).BeginTx(context.Background(), &sql.TxOptions{ReadOnly: true})
	must(t, err)
	var first, second string
	// While another transaction has one of its two connections, there is the
	// other.
	must(t, busy.QueryRow("SELECT current_setting('port')").Scan(&first))
	second = queryConn(t, conn, "SELECT current_setting('port')")
	if first == second {
		t.Errorf("both connections go to %s", first)
	}
	must(t, busy.Rollback())
	seen := map[string]int{}
	for range 8 {
		seen[queryConn(t, conn, "SELECT current_setting('port')")]++
	}
	if seen[first] == 0 || seen[second] == 0 {
		t.Errorf("answers from %v, want them from both", seen)
	}
	if got := b.Servers().Open(); got != 2 {
		t.Errorf("%d connections to servers", got)
	}
}

// In session mode, in front of one server, it behaves as the server does.
func TestPgBouncerInSessionMode(t *testing.T) {
	c := replicatedtest.Start(t, replicatedtest.Postgres, replicatedtest.Options{Replicas: -1})
	b := replicatedtest.StartPgBouncer(t, replicatedtest.PgBouncerConfig{Nodes: c.Nodes(), Mode: "session"})
	db := openBare(t, c.DriverName(), b.DSN())
	one, other := openConn(t, db), openConn(t, db)
	for conn, zone := range map[*sql.Conn]string{one: "Asia/Tokyo", other: "Europe/Rome"} {
		_, err := conn.ExecContext(context.Background(), "SET TimeZone = '"+zone+"'")
		must(t, err)
	}
	if got := queryConn(t, one, "SHOW TimeZone") + " " + queryConn(t, other, "SHOW TimeZone"); got != "Asia/Tokyo Europe/Rome" {
		t.Errorf("time zones %s", got)
	}
}

// Without the program a test is skipped, or fails where it is required.
func TestPgBouncerMissing(t *testing.T) {
	replicatedtest.Require(t, replicatedtest.Postgres)
	for list, want := range map[string]string{"": "--- SKIP", "pgbouncer": "--- FAIL"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestPgBouncerInSessionMode$", "-test.v")
		cmd.Env = append(os.Environ(), "REPLICATED_TEST_PGBOUNCER=/nonexistent/pgbouncer", "REPLICATED_TEST_REQUIRE="+list)
		out, _ := cmd.CombinedOutput()
		if !strings.Contains(string(out), want) || !strings.Contains(string(out), "/nonexistent/pgbouncer") {
			t.Errorf("required %q: %s", list, out)
		}
	}
}
