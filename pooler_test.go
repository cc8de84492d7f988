package replicated_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// pgbouncer puts a PgBouncer in transaction mode before a node and returns its
// address. It runs with further lines of configuration, until the test ends.
func pgbouncer(t *testing.T, n *replicatedtest.Node, config ...string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("pgbouncer is not installed: run scripts/setup")
	}
	dir, err := os.MkdirTemp("", "pgbouncer")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	address := closedPort(t)
	host, port, _ := net.SplitHostPort(address)
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // read by the user it runs as
			t.Fatal(err)
		}
		return path
	}
	users := write("users", fmt.Sprintf("%q %q\n", replicatedtest.AppUser, replicatedtest.AppPassword))
	ini := write("ini", strings.Join(append([]string{
		"[databases]",
		fmt.Sprintf("* = host=127.0.0.1 port=%d", n.Port()),
		"[pgbouncer]",
		"listen_addr = " + host, "listen_port = " + port, "unix_socket_dir =",
		"auth_type = plain", "auth_file = " + users,
		"pool_mode = transaction", "default_pool_size = 3", "max_client_conn = 200",
	}, config...), "\n"))
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // likewise
		t.Fatal(err)
	}
	args := []string{"-q", ini}
	if os.Geteuid() == 0 { // which it refuses to run as
		args = append([]string{"-u", "nobody"}, args...)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	var output strings.Builder
	cmd.Stderr = &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	eventually(t, 10*time.Second, func() string {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return fmt.Sprintf("PgBouncer does not answer: %v\n%s", err, output.String())
		}
		_ = conn.Close()
		return ""
	})
	return address
}

// Behind a pooler that multiplexes, sessions are not ours: what one connection
// sets, another application meets. So nothing is set there: no fence, no settings;
// it is found out and told once, and reads are still spread.
func TestTransactionPooler(t *testing.T) {
	for name, config := range map[string][]string{
		"refuses the start-up parameter":  nil,
		"swallows the start-up parameter": {"ignore_startup_parameters = extra_float_digits,default_transaction_read_only"},
	} {
		t.Run(name, func(t *testing.T) {
			c := sharedCluster(t, replicatedtest.Postgres)
			name := table(t, c, "id int")
			var addrs []string
			for _, n := range c.Nodes() {
				addrs = append(addrs, pgbouncer(t, n, config...))
			}
			cfg, err := replicated.ParseDSN(c.DSNAt(addrs, "replicated.consistency=eventual"))
			if err != nil {
				t.Fatal(err)
			}
			var mu sync.Mutex
			var told []string
			cfg.Observe = &replicated.Observer{Notice: func(n replicated.Notice) {
				mu.Lock()
				defer mu.Unlock()
				if n.Kind == replicated.NoticePooler {
					told = append(told, n.Node)
				}
			}}
			db := openConfig(t, cfg)
			measured(t, c, db)
			other := openDSN(t, c.DSNAt(addrs[:1]))
			for i := range 20 {
				queryInt(t, db, "SELECT 10 + count(*) FROM "+name)
				mustExec(t, other, fmt.Sprintf("INSERT INTO %s (id) VALUES (%d)", name, i))
				mustExec(t, db, fmt.Sprintf("INSERT INTO %s (id) VALUES (%d)", name, 100+i))
			}
			if n := queryInt(t, bare(t, c.Primary()), "SELECT count(*) FROM "+name); n != 40 {
				t.Errorf("%d rows after 40 writes of two applications", n)
			}
			onlyReplicas(t, c, "SELECT 10")
			mu.Lock()
			slices.Sort(told)
			if len(told) == 0 || len(slices.Compact(slices.Clone(told))) != len(told) {
				t.Errorf("poolers were told of for %v, want once for each node", told)
			}
			mu.Unlock()

			// Settings can't be carried through it: a read that needs them stays.
			conn, give := checkOut(t, db)
			defer give()
			mustExec(t, conn, "SET TIME ZONE 'Asia/Tokyo'")
			queryInt(t, conn, "SELECT 30 + count(*) FROM "+name)
			onlyPrimary(t, c, "SELECT 30")
		})
	}
}
