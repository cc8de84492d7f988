package replicatedtest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"
)

// RedisConfig says what a Redis server is like. The zero value is a primary
// that writes nothing to disk by itself.
type RedisConfig struct {
	// Follow is the address of the server that this one is a replica of, as
	// "127.0.0.1:20123"; of a [Proxy] in front of it, so that the replica can be
	// made to lag. "" makes a primary.
	Follow string

	// Settings are further directives of redis.conf, as in
	// {"maxmemory": "3mb", "appendonly": "yes"}. They win over what the package
	// sets.
	Settings map[string]string
}

// Redis is a Redis server, or one of a compatible kind, on loopback. Make one
// with [StartRedis] or [StartRedisCluster]. Its methods may be called from any
// goroutine; those that change it wait for each other.
type Redis struct {
	program string
	as      *account
	cfg     RedisConfig
	port    *port
	bus     *port // of a member of a Redis Cluster, else nil
	dir     string
	guard   *watchdog

	mu   sync.Mutex // held during each change of the server, however long it takes
	proc *process   // nil while it does not run
}

// StartRedis starts a Redis server, which ends with the test. A replica has
// copied what its primary has when StartRedis returns. Without the program
// redis-server (7.0 or newer) the test is skipped, or fails if
// REPLICATED_TEST_REQUIRE lists redis. REPLICATED_TEST_REDIS names the program,
// which may be valkey-server; otherwise it is looked for in PATH and in the
// usual directories.
func StartRedis(tb testing.TB, cfg RedisConfig) *Redis {
	tb.Helper()
	RequireRedis(tb)
	r, err := newRedis(cfg, false)
	tb.Cleanup(func() { r.close(tb) })
	if err == nil {
		err = r.Start()
	}
	if err == nil && cfg.Follow != "" {
		err = r.waitInfo("replication", "master_link_status:up")
	}
	if err != nil {
		tb.Fatalf("replicatedtest: Redis: %v\n%s", err, r.log())
	}
	return r
}

// RequireRedis skips the test if there is no Redis server program, or fails it
// if REPLICATED_TEST_REQUIRE lists redis. [StartRedis] does this by itself.
func RequireRedis(tb testing.TB) {
	tb.Helper()
	_, err := findRedis()
	require(tb, "redis", err)
}

func findRedis() (string, error) {
	if program := os.Getenv("REPLICATED_TEST_REDIS"); program != "" {
		if _, err := os.Stat(program); err != nil {
			return "", fmt.Errorf("replicatedtest: no Redis: %w", err)
		}
		return program, nil
	}
	for _, name := range []string{"redis-server", "valkey-server"} {
		if found := candidates(name); len(found) > 0 {
			return found[0], nil
		}
	}
	return "", errors.New("replicatedtest: no Redis: the program redis-server is neither in PATH nor in the usual install directories")
}

// newRedis prepares a server. Its result can be closed also with an error.
func newRedis(cfg RedisConfig, cluster bool) (r *Redis, err error) {
	r = &Redis{cfg: cfg}
	if r.program, err = findRedis(); err != nil {
		return r, err
	}
	if r.as, err = unprivileged("redis", "valkey", "postgres"); err != nil {
		return r, err
	}
	if r.port, err = leasePort(); err != nil {
		return r, err
	}
	if cluster {
		if r.bus, err = leasePort(); err != nil {
			return r, err
		}
	}
	if r.dir, err = scratchDir(r.as); err != nil {
		return r, err
	}
	if r.guard, err = startWatchdog(r.dir); err != nil {
		return r, err
	}
	return r, r.configure()
}

func (r *Redis) configure() error {
	settings := map[string]string{
		"port":           strconv.Itoa(r.port.number),
		"bind":           "127.0.0.1",
		"protected-mode": "no",
		"daemonize":      "no",
		"dir":            r.dir,
		"save":           `""`,
		// The watchdog knows a server by its command line.
		"set-proc-title": "no",
		// A replica gets its copy at once.
		"repl-diskless-sync-delay": "0",
	}
	if r.cfg.Follow != "" {
		host, port, err := net.SplitHostPort(r.cfg.Follow)
		if err != nil {
			return err
		}
		settings["replicaof"] = host + " " + port
	}
	if r.bus != nil {
		settings["cluster-enabled"] = "yes"
		settings["cluster-port"] = strconv.Itoa(r.bus.number)
		settings["cluster-node-timeout"] = "2000"
	}
	for name, value := range r.cfg.Settings {
		settings[name] = value
	}
	var text bytes.Buffer
	for name, value := range settings {
		fmt.Fprintln(&text, name, value)
	}
	return os.WriteFile(filepath.Join(r.dir, "redis.conf"), text.Bytes(), 0o644)
}

// Addr is where clients find it, as "127.0.0.1:20123". It stays.
func (r *Redis) Addr() string { return r.port.addr() }

// Port is the port of [Redis.Addr].
func (r *Redis) Port() int { return r.port.number }

// Pid is the number of the server's process, 0 while it does not run.
func (r *Redis) Pid() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.proc == nil {
		return 0
	}
	return r.proc.pid
}

// Start starts the server again after [Redis.Kill], with what it had on disk:
// what [Redis.Save] wrote last, or, with appendonly, what it had. It does
// nothing if the server runs.
func (r *Redis) Start() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wrap("start", r.startLocked())
}

func (r *Redis) startLocked() error {
	if r.proc != nil {
		return nil
	}
	out, err := os.OpenFile(r.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(r.program, filepath.Join(r.dir, "redis.conf"))
	cmd.Dir = r.dir
	cmd.Env = []string{"LC_ALL=C", "TZ=UTC", "PATH=/usr/bin:/bin"}
	cmd.Stdout, cmd.Stderr = out, out
	detach(cmd, r.as)
	proc, err := startProcess(cmd)
	if err != nil {
		return err
	}
	r.guard.runs(proc.pid)
	r.proc = proc
	deadline := time.Now().Add(startTimeout)
	for {
		_, err := r.Do("PING") // fails while it loads its data
		if err == nil {
			return nil
		}
		if proc.waitEnd(5 * time.Millisecond) {
			r.endedLocked()
			return fmt.Errorf("it ended while starting (%v)", proc.err)
		}
		if time.Now().After(deadline) {
			return err
		}
	}
}

func (r *Redis) endedLocked() {
	r.guard.gone(r.proc.pid)
	r.proc = nil
}

// Kill ends the server with SIGKILL, as a crash would. It does nothing if the
// server does not run.
func (r *Redis) Kill() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wrap("kill", r.killLocked())
}

func (r *Redis) killLocked() error {
	if r.proc == nil {
		return nil
	}
	if err := r.proc.kill(); err != nil {
		return err
	}
	r.endedLocked()
	return nil
}

// Restart ends the server in order, which saves its data, and starts it with
// them.
func (r *Redis) Restart() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.save(); err != nil {
		return r.wrap("restart", err)
	}
	if err := r.killLocked(); err != nil {
		return r.wrap("restart", err)
	}
	return r.wrap("restart", r.startLocked())
}

// RestartEmpty kills the server and starts it without data. A member of a
// Redis Cluster stays a member.
func (r *Redis) RestartEmpty() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.killLocked(); err != nil {
		return r.wrap("restart", err)
	}
	for _, name := range []string{"dump.rdb", "appendonlydir"} {
		if err := os.RemoveAll(filepath.Join(r.dir, name)); err != nil {
			return r.wrap("restart", err)
		}
	}
	return r.wrap("restart", r.startLocked())
}

// Hang stops the server with SIGSTOP: connections stay open, new ones are
// accepted by the system, and nothing is ever answered.
func (r *Redis) Hang() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.proc == nil {
		return r.wrap("hang", errNotRunning)
	}
	return r.wrap("hang", r.proc.hang())
}

// Resume lets a server go on after [Redis.Hang].
func (r *Redis) Resume() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.proc == nil {
		return r.wrap("resume", errNotRunning)
	}
	return r.wrap("resume", r.proc.resume())
}

// Pause makes the server answer nobody for so long (CLIENT PAUSE). It can't be
// cut short, and goes on with what it was asked meanwhile.
func (r *Redis) Pause(d time.Duration) error {
	_, err := r.Do("CLIENT", "PAUSE", strconv.FormatInt(d.Milliseconds(), 10), "ALL")
	return r.wrap("pause", err)
}

// Save writes the data to disk, for a later [Redis.Kill] and [Redis.Start].
func (r *Redis) Save() error { return r.wrap("save", r.save()) }

func (r *Redis) save() error {
	_, err := r.Do("SAVE")
	return err
}

// Promote makes a replica a primary, with what it has got so far.
func (r *Redis) Promote() error {
	_, err := r.Do("REPLICAOF", "NO", "ONE")
	return r.wrap("promote", err)
}

// Follow makes the server a replica of the one at the address, and waits until
// it has copied that one's data. Its own are lost.
func (r *Redis) Follow(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = r.Do("REPLICAOF", host, port)
	}
	if err == nil {
		err = r.waitInfo("replication", "master_link_status:up")
	}
	return r.wrap("follow", err)
}

// waitInfo waits until INFO has the line.
func (r *Redis) waitInfo(section, line string) error { return r.waitFor(line, "INFO", section) }

// waitFor waits until the answer of a command, a text, has the line.
func (r *Redis) waitFor(line string, command ...string) error {
	deadline := time.Now().Add(opTimeout)
	for {
		answer, err := r.Do(command...)
		if text, _ := answer.(string); err == nil && bytes.Contains([]byte("\n"+text), []byte("\n"+line+"\r\n")) {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.Join(fmt.Errorf("no %q", line), err)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (r *Redis) logFile() string { return filepath.Join(r.dir, serverLog) }

// log is what it last said.
func (r *Redis) log() string {
	text, _ := os.ReadFile(r.logFile())
	return lastLines(string(text), 20)
}

func (r *Redis) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("replicatedtest: %s of Redis at %s: %w", op, r.Addr(), err)
}

// close undoes whatever the start has come to.
func (r *Redis) close(tb testing.TB) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if tb.Failed() && r.dir != "" {
		tb.Logf("--- last words of Redis:\n%s", r.log())
	}
	if r.proc != nil {
		if err := r.killLocked(); err != nil {
			tb.Errorf("replicatedtest: Redis: %v", err)
		}
	}
	if r.guard != nil {
		r.guard.finish()
	}
	if r.dir != "" {
		_ = os.RemoveAll(r.dir) // if somebody killed the watchdog
	}
	for _, p := range []*port{r.port, r.bus} {
		if p != nil {
			p.release()
		}
	}
}
