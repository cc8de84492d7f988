package replicatedtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// serverLog is the file with what a server says on standard error, in the
// node's directory.
const serverLog = "server.log"

// Node is one server of a [Cluster].
type Node struct {
	c    *Cluster
	name string
	dir  string
	port *port
	log  statementLog

	// mu is held during each change of the server, however long it takes.
	mu    sync.Mutex
	apply time.Duration // the delay that was asked for
	unfed bool          // StopReceiving is in force
	still bool          // MariaDB and MySQL: follow nobody when starting
	link  *Proxy        // between a delayed MySQL replica and its source; nil until needed
	built int           // how often the data was replaced by another node's
	taken int           // snapshots

	// stateMu guards what may be read while a change is under way. It is taken
	// after mu and held briefly. Only holders of mu write these fields, so that
	// they may read them without stateMu.
	stateMu sync.Mutex
	source  *Node    // whom a replica follows; nil on a primary
	proc    *process // nil when not started
	hung    bool
}

// startCommand is how to start a server.
type startCommand struct {
	*exec.Cmd
	as *account // whom the command is started as
}

// nodeName is the name of the node that is started as number i, from 0.
func nodeName(i int) string { return fmt.Sprintf("node%d", i+1) }

func newNode(c *Cluster, i int) (*Node, error) {
	port, err := leasePort()
	if err != nil {
		return nil, err
	}
	n := &Node{c: c, name: nodeName(i), port: port}
	n.dir = filepath.Join(c.dir, n.name)
	n.log.path, n.log.parser = c.db.logFile(n), c.db.parser()
	if err := os.Mkdir(n.dir, 0o755); err != nil {
		return nil, err
	}
	return n, c.db.account().own(n.dir)
}

// Name returns "node1" for the first primary, "node2" and so on for the
// replicas.
func (n *Node) Name() string { return n.name }

// Addr returns the address on which the server listens, as "127.0.0.1:20123".
// It stays for the life of the cluster.
func (n *Node) Addr() string { return n.port.addr() }

// Port returns the port of [Node.Addr].
func (n *Node) Port() int { return n.port.number }

// String returns name and address.
func (n *Node) String() string { return n.name + " (" + n.Addr() + ")" }

// DSN returns the DSN of this node alone for [AppUser], in the grammar of the
// bare driver. keys are added as they are ("parseTime=true").
func (n *Node) DSN(keys ...string) string {
	return n.c.db.dsn([]string{n.Addr()}, AppUser, AppPassword, Database, keys)
}

// AdminDSN is [Node.DSN] for [AdminUser], a superuser who bypasses read_only.
func (n *Node) AdminDSN(keys ...string) string {
	return n.c.db.dsn([]string{n.Addr()}, AdminUser, AdminPassword, Database, keys)
}

// DB opens [Node.DSN] with the bare driver. It is closed when the test ends.
func (n *Node) DB(tb testing.TB) *sql.DB {
	tb.Helper()
	return openDB(tb, n.c.db.driverName(), n.DSN())
}

// AdminDB opens [Node.AdminDSN] with the bare driver. It is closed when the
// test ends.
func (n *Node) AdminDB(tb testing.TB) *sql.DB {
	tb.Helper()
	return openDB(tb, n.c.db.driverName(), n.AdminDSN())
}

func openDB(tb testing.TB, driver, dsn string) *sql.DB {
	tb.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { db.Close() })
	return db
}

// IsReplica reports whether the node follows another one.
func (n *Node) IsReplica() bool {
	n.stateMu.Lock()
	defer n.stateMu.Unlock()
	return n.source != nil
}

// setRole makes the node a replica of the source, or a primary if that is nil.
// It is called with mu held.
func (n *Node) setRole(source *Node) {
	n.stateMu.Lock()
	defer n.stateMu.Unlock()
	n.source = source
}

// Running reports whether the server's main process is there, hung or not.
func (n *Node) Running() bool { return n.process() != nil }

// Hung reports whether [Node.Hang] has stopped the server.
func (n *Node) Hung() bool {
	n.stateMu.Lock()
	defer n.stateMu.Unlock()
	return n.hung
}

// Pid returns the process number of the server's main process, 0 if it does
// not run.
func (n *Node) Pid() int {
	if p := n.process(); p != nil {
		return p.pid
	}
	return 0
}

// process returns the running process, or nil.
func (n *Node) process() *process {
	n.stateMu.Lock()
	defer n.stateMu.Unlock()
	if n.proc == nil || n.proc.ended() {
		return nil
	}
	return n.proc
}

func (n *Node) setProcess(p *process) {
	n.stateMu.Lock()
	defer n.stateMu.Unlock()
	n.proc, n.hung = p, false
}

// Start starts the server again after [Node.Stop] or [Node.Kill], in the role
// that it had, and waits until it takes connections. It does nothing if the
// server runs.
func (n *Node) Start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	return n.wrap("start", n.startLocked(ctx))
}

// startLocked starts the server, if it does not run, and waits until it takes
// connections. A replica receives then, whatever it did before.
func (n *Node) startLocked(ctx context.Context) error {
	if n.process() != nil {
		return nil
	}
	return n.startUnfedLocked(ctx, false)
}

// startStillLocked is startLocked for a server that is about to be told whom to
// follow: it does not go on with whom it followed before.
func (n *Node) startStillLocked(ctx context.Context) error {
	n.still = true
	defer func() { n.still = false }()
	return n.startLocked(ctx)
}

// startUnfedLocked starts the server that does not run, as one that receives
// nothing if unfed is true.
func (n *Node) startUnfedLocked(ctx context.Context, unfed bool) error {
	if n.c.isClosed() {
		return errors.New("the cluster is closed")
	}
	n.unfed = unfed
	cmd, err := n.c.db.command(n)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(filepath.Join(n.dir, serverLog), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Dir = n.dir
	detach(cmd.Cmd, cmd.as)
	p, err := startProcess(cmd.Cmd)
	if err != nil {
		return err
	}
	n.c.guard.runs(p.pid)
	n.setProcess(p)
	n.c.logf("%s: started, process %d, %s", n.name, p.pid, n.Addr())

	begin := time.Now()
	for {
		err := n.c.db.ready(ctx, n)
		if err == nil {
			n.c.logf("%s: ready after %v", n.name, time.Since(begin).Round(time.Millisecond))
			return nil
		}
		select {
		case <-p.done:
			n.ended(p)
			return fmt.Errorf("the server ended while starting (%v)", p.err)
		case <-ctx.Done():
			return fmt.Errorf("the server does not become ready: %w", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// ended notes that the process is no more. Called with mu held.
func (n *Node) ended(p *process) {
	n.c.guard.gone(p.pid)
	n.setProcess(nil)
}

// Stop ends the server as an administrator would: it disconnects its clients
// and finishes its work. It does nothing if the server does not run.
func (n *Node) Stop() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.wrap("stop", n.stopLocked())
}

func (n *Node) stopLocked() error {
	p := n.process()
	if p == nil {
		return nil
	}
	if n.Hung() {
		if err := p.resume(); err != nil {
			return err
		}
	}
	if err := n.c.db.stop(n); err != nil && !p.ended() {
		return err
	}
	if !p.waitEnd(stopTimeout) {
		// A primary waits for its standbys, and one of them may hang.
		n.c.logf("%s: does not stop, killing it", n.name)
		if err := p.kill(); err != nil {
			return err
		}
	}
	n.c.logf("%s: stopped", n.name)
	n.ended(p)
	return nil
}

// Kill ends all processes of the server with SIGKILL, as a crash would. It
// does nothing if the server does not run.
func (n *Node) Kill() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.process()
	if p == nil {
		return nil
	}
	if err := p.kill(); err != nil {
		return n.wrap("kill", err)
	}
	n.c.logf("%s: killed", n.name)
	n.ended(p)
	return nil
}

// KillBackend ends one session of the server by its number: pg_backend_pid()
// on PostgreSQL, CONNECTION_ID() on MariaDB and MySQL. The client sees what it
// sees when an administrator terminates its session; see [Node.CrashBackend] for
// a session that dies.
func (n *Node) KillBackend(id int64) error {
	ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
	defer cancel()
	return n.wrap("kill backend", n.c.db.killBackend(ctx, n, id))
}

// KillBackends ends all sessions of [AppUser] and [AdminUser] and returns how
// many there were. It returns when the server does not list them any more.
func (n *Node) KillBackends() (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
	defer cancel()
	count, err := n.c.db.killBackends(ctx, n)
	return count, n.wrap("kill backends", err)
}

// Hang stops all processes of the server with SIGSTOP: connections stay open,
// new ones are accepted by the system, and nothing is ever answered.
func (n *Node) Hang() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.process()
	if p == nil {
		return n.wrap("hang", errNotRunning)
	}
	if err := p.hang(); err != nil {
		return n.wrap("hang", err)
	}
	n.stateMu.Lock()
	n.hung = true
	n.stateMu.Unlock()
	n.c.logf("%s: hung", n.name)
	return nil
}

// Resume lets a server go on after [Node.Hang].
func (n *Node) Resume() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.process()
	if p == nil {
		return n.wrap("resume", errNotRunning)
	}
	if err := p.resume(); err != nil {
		return n.wrap("resume", err)
	}
	n.stateMu.Lock()
	n.hung = false
	n.stateMu.Unlock()
	n.c.logf("%s: resumed", n.name)
	return nil
}

// Connections returns how many connections of [AppUser] the server has now.
func (n *Node) Connections() (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
	defer cancel()
	var count int
	err := n.withConn(ctx, func(ctx context.Context, conn *sql.Conn) (err error) {
		count, err = n.c.db.connections(ctx, conn)
		return err
	})
	return count, n.wrap("connections", err)
}

// close ends the server for good.
func (n *Node) close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var err error
	if p := n.process(); p != nil {
		_ = p.resume()
		if n.c.db.quit(n) != nil || !p.waitEnd(stopTimeout/4) {
			err = p.kill()
		}
		n.ended(p)
	}
	if n.link != nil {
		n.link.Close()
	}
	n.port.release()
	return err
}

var errNotRunning = errors.New("the server does not run")

// wrap names the node and the operation.
func (n *Node) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("replicatedtest: %s of %s: %w", op, n, err)
}

func randomID() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	// The sign bit stays clear: PostgreSQL shows the number signed in places.
	return binary.LittleEndian.Uint64(b[:]) >> 1
}
