package replicatedtest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// PgBouncerConfig says what a PgBouncer is like. Nodes is all that must be set.
type PgBouncerConfig struct {
	// Nodes are the PostgreSQL servers behind it. Of several, each connection
	// that it makes goes to the next one in turn, so that one client may get
	// answers from all of them.
	Nodes []*Node

	// Mode is pool_mode: "session", "transaction" or "statement". Empty means
	// "transaction".
	Mode string

	// PoolSize is default_pool_size, the number of connections to servers for
	// each user and database. 0 means 4.
	PoolSize int

	// Settings are further settings of the section [pgbouncer], as in
	// {"server_reset_query_always": "1"}. They win over what the package sets.
	Settings map[string]string
}

// PgBouncer is a running PgBouncer. Make one with [StartPgBouncer].
type PgBouncer struct {
	c        *Cluster
	port     *port
	dir      string
	guard    *watchdog
	proc     *process
	balancer *Proxy
}

// StartPgBouncer starts a PgBouncer, which ends with the test: before the
// cluster, if it was started after that. It knows [AppUser] and [AdminUser].
//
// Without the program pgbouncer the test is skipped, or fails if
// REPLICATED_TEST_REQUIRE lists pgbouncer. REPLICATED_TEST_PGBOUNCER names the
// program; otherwise it is looked for in PATH and in the usual directories.
func StartPgBouncer(tb testing.TB, cfg PgBouncerConfig) *PgBouncer {
	tb.Helper()
	if len(cfg.Nodes) == 0 || cfg.Nodes[0].c.engine != Postgres {
		tb.Fatal("replicatedtest: PgBouncer needs PostgreSQL nodes")
	}
	program, err := findPgBouncer()
	require(tb, "pgbouncer", err)
	b := &PgBouncer{c: cfg.Nodes[0].c}
	tb.Cleanup(b.close)
	if err := b.start(program, cfg); err != nil {
		tb.Fatalf("replicatedtest: PgBouncer: %v\n%s", err, b.log())
	}
	return b
}

// Addr is where clients find it, as "127.0.0.1:20123".
func (b *PgBouncer) Addr() string { return b.port.addr() }

// Port is the port of [PgBouncer.Addr].
func (b *PgBouncer) Port() int { return b.port.number }

// DSN is [Node.DSN] through the PgBouncer.
func (b *PgBouncer) DSN(keys ...string) string { return b.c.DSNAt([]string{b.Addr()}, keys...) }

// Servers is what stands between the PgBouncer and its servers: by
// [Proxy.Redirect] it gets others, by [Proxy.Cut] it makes its connections anew.
func (b *PgBouncer) Servers() *Proxy { return b.balancer }

func findPgBouncer() (string, error) {
	if program := os.Getenv("REPLICATED_TEST_PGBOUNCER"); program != "" {
		if _, err := os.Stat(program); err != nil {
			return "", fmt.Errorf("replicatedtest: no PgBouncer: %w", err)
		}
		return program, nil
	}
	if found := candidates("pgbouncer"); len(found) > 0 {
		return found[0], nil
	}
	return "", fmt.Errorf("replicatedtest: no PgBouncer: the program pgbouncer is neither in PATH nor in the usual install directories")
}

func (b *PgBouncer) start(program string, cfg PgBouncerConfig) (err error) {
	as, err := unprivileged("pgbouncer", "postgres") // it refuses to run as root
	if err != nil {
		return err
	}
	if b.port, err = leasePort(); err != nil {
		return err
	}
	if b.dir, err = scratchDir(as); err != nil {
		return err
	}
	if b.guard, err = startWatchdog(b.dir); err != nil {
		return err
	}
	// It knows one port for all hosts of a database, and our servers have one
	// host: a balancer makes them one address.
	var targets []string
	for _, n := range cfg.Nodes {
		targets = append(targets, n.Addr())
	}
	if b.balancer, err = NewBalancer(targets...); err != nil {
		return err
	}
	ini, err := b.configure(cfg)
	if err != nil {
		return err
	}
	out, err := os.Create(b.logFile())
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(program, ini)
	cmd.Dir = "/"
	cmd.Env = []string{"LC_ALL=C", "TZ=UTC", "PATH=/usr/bin:/bin"}
	cmd.Stdout, cmd.Stderr = out, out
	detach(cmd, as)
	if b.proc, err = startProcess(cmd); err != nil {
		return err
	}
	b.guard.runs(b.proc.pid)
	deadline := time.Now().Add(startTimeout)
	for {
		conn, err := net.Dial("tcp", b.Addr())
		if err == nil {
			return conn.Close()
		}
		if time.Now().After(deadline) {
			return err
		}
		if b.proc.waitEnd(5 * time.Millisecond) {
			return fmt.Errorf("it ended while starting (%v)", b.proc.err)
		}
	}
}

// configure writes the files that PgBouncer reads and returns the main one.
func (b *PgBouncer) configure(cfg PgBouncerConfig) (string, error) {
	users := filepath.Join(b.dir, "users")
	text := fmt.Sprintf("%q %q\n%q %q\n", AppUser, AppPassword, AdminUser, AdminPassword)
	if err := os.WriteFile(users, []byte(text), 0o644); err != nil {
		return "", err
	}
	mode, size := cfg.Mode, cfg.PoolSize
	if mode == "" {
		mode = "transaction"
	}
	if size == 0 {
		size = 4
	}
	host, port, err := net.SplitHostPort(b.balancer.Addr())
	if err != nil {
		return "", err
	}
	lines := []string{
		"[databases]",
		fmt.Sprintf("* = host=%s port=%s", host, port),
		"[pgbouncer]",
		"listen_addr = 127.0.0.1",
		"listen_port = " + strconv.Itoa(b.port.number),
		"unix_socket_dir =",
		"auth_type = plain",
		"auth_file = " + users,
		"pool_mode = " + mode,
		"default_pool_size = " + strconv.Itoa(size),
		"max_client_conn = 200",
		// A server that is back is tried soon.
		"server_login_retry = 1",
	}
	for name, value := range cfg.Settings {
		lines = append(lines, name+" = "+value)
	}
	ini := filepath.Join(b.dir, "pgbouncer.ini")
	return ini, os.WriteFile(ini, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}

func (b *PgBouncer) logFile() string { return filepath.Join(b.dir, "pgbouncer.log") }

// log is what it last said.
func (b *PgBouncer) log() string {
	text, _ := os.ReadFile(b.logFile())
	return lastLines(string(text), 20)
}

// close undoes whatever start has come to.
func (b *PgBouncer) close() {
	if b.proc != nil {
		_ = b.proc.kill()
		b.guard.gone(b.proc.pid)
	}
	if b.balancer != nil {
		b.balancer.Close()
	}
	if b.guard != nil {
		b.guard.finish()
	}
	if b.dir != "" {
		_ = os.RemoveAll(b.dir) // if somebody killed the watchdog
	}
	if b.port != nil {
		b.port.release()
	}
}
