package replicatedtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// How long the package waits for a server before it gives up. They are far
// above what an idle machine needs, since tests share machines.
const (
	startTimeout = 90 * time.Second
	stopTimeout  = 20 * time.Second
	opTimeout    = 30 * time.Second
)

// Cluster is a primary and its replicas. Make one with [Start] or
// [StartContext].
type Cluster struct {
	engine  Engine
	options Options
	db      database
	dir     string
	guard   *watchdog
	nodes   []*Node
	begin   time.Time // for the log

	// roles is held while Switchover or Failover gives out roles, however long
	// that takes. It is taken before the nodes' mutexes.
	roles sync.Mutex

	mu      sync.Mutex // guards what follows; held briefly, never during I/O
	primary *Node
	closed  bool

	logMu sync.Mutex // one line at a time in Options.Log
}

// Start starts a cluster that ends with the test. It skips the test if the
// engine is not available (see [Require]) and fails it if a server does not
// start.
func Start(tb testing.TB, e Engine, o Options) *Cluster {
	tb.Helper()
	Require(tb, e)
	c, err := StartContext(context.Background(), e, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Log(c.report())
		}
		if err := c.Close(); err != nil {
			tb.Errorf("closing the cluster: %v", err)
		}
	})
	return c
}

// StartContext starts a cluster outside a test. All its replicas follow the
// primary when it returns. ctx bounds the start; the cluster runs until
// [Cluster.Close] or the end of the process.
func StartContext(ctx context.Context, e Engine, o Options) (*Cluster, error) {
	db, err := newDatabase(e)
	if err != nil {
		return nil, err
	}
	if err := o.check(db); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	template, err := db.template(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := scratchDir(db.account())
	if err != nil {
		return nil, err
	}
	c := &Cluster{engine: e, options: o, db: db, dir: dir, begin: time.Now()}
	if c.guard, err = startWatchdog(dir); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	if err := c.start(ctx, template); err != nil {
		err = fmt.Errorf("%w\n%s", err, c.report())
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, template string) error {
	c.logf("starting %s in %s", c.db.name(), c.dir)
	id := randomID()
	for i := range 1 + c.options.replicas() {
		n, err := newNode(c, i)
		if err != nil {
			return err
		}
		c.nodes = append(c.nodes, n)
	}
	primary := c.nodes[0]
	c.setPrimary(primary)
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	primaryUp := make(chan struct{})
	return c.each(c.nodes, func(n *Node) (err error) {
		defer func() {
			if err != nil {
				err = n.wrap("start", err)
				giveUp() // nobody waits for what will not come
			}
		}()
		n.mu.Lock()
		defer n.mu.Unlock()
		if n != primary {
			n.setRole(primary)
		}
		if err := c.db.layout(n, template, id); err != nil {
			return err
		}
		if err := n.startLocked(ctx); err != nil {
			return err
		}
		if n == primary {
			close(primaryUp)
			return nil
		}
		select {
		case <-primaryUp:
		case <-ctx.Done():
			return fmt.Errorf("no primary to follow: %w", ctx.Err())
		}
		return c.db.attach(ctx, n, true)
	})
}

// each runs f for all nodes at once and joins the errors.
func (c *Cluster) each(nodes []*Node, f func(*Node) error) error {
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() { errs[i] = f(n) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Close ends all servers at once, without waiting for their clients, and
// removes their files. Further calls do nothing.
func (c *Cluster) Close() error {
	c.mu.Lock()
	closed := c.closed
	c.closed = true
	c.mu.Unlock()
	if closed {
		return nil
	}
	err := c.each(c.nodes, func(n *Node) error { return n.close() })
	c.guard.finish()
	if _, e := os.Stat(c.dir); e == nil {
		// The watchdog removes it; if somebody killed the watchdog, we do.
		err = errors.Join(err, os.RemoveAll(c.dir))
	}
	c.logf("stopped %s", c.db.name())
	return err
}

// Engine returns the kind of servers.
func (c *Cluster) Engine() Engine { return c.engine }

// Version returns the name and version of the servers, as in
// "PostgreSQL 15.3".
func (c *Cluster) Version() string { return c.db.name() }

// DriverName returns the name of the bare driver that understands the nodes'
// DSNs: "postgres" (lib/pq) or "mysql" (go-sql-driver). The driver is
// registered, since this package imports it.
func (c *Cluster) DriverName() string { return c.db.driverName() }

// Primary returns the node that was promoted last, at first the first node.
func (c *Cluster) Primary() *Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.primary
}

// Nodes returns all nodes in the order in which they were started, which
// stays.
func (c *Cluster) Nodes() []*Node { return append([]*Node(nil), c.nodes...) }

// Replicas returns the nodes that follow another one, running or not. A former
// primary is among them once it follows the new one.
func (c *Cluster) Replicas() []*Node {
	var list []*Node
	for _, n := range c.nodes {
		if n.IsReplica() {
			list = append(list, n)
		}
	}
	return list
}

// Node returns the node of the name ("node1", …) or at the address
// ("127.0.0.1:20123"), or nil.
func (c *Cluster) Node(nameOrAddr string) *Node {
	for _, n := range c.nodes {
		if n.name == nameOrAddr || n.Addr() == nameOrAddr {
			return n
		}
	}
	return nil
}

// DSN returns a DSN with all nodes, the primary first, in the grammar of the
// replicated driver:
//
//	app:…@tcp(127.0.0.1:20001,127.0.0.1:20002,127.0.0.1:20003)/app?replicated.max_lag=1s
//	postgres://app:…@127.0.0.1:20001,127.0.0.1:20002,127.0.0.1:20003/app?sslmode=disable&replicated.max_lag=1s
//
// keys are added as they are ("replicated.max_lag=1s", "parseTime=true").
func (c *Cluster) DSN(keys ...string) string { return c.DSNAt(c.addrs(), keys...) }

// AdminDSN is [Cluster.DSN] for [AdminUser], who bypasses read_only.
func (c *Cluster) AdminDSN(keys ...string) string {
	return c.db.dsn(c.addrs(), AdminUser, AdminPassword, Database, keys)
}

// DSNAt is [Cluster.DSN] with other addresses, such as those of proxies in
// front of the nodes.
func (c *Cluster) DSNAt(addrs []string, keys ...string) string {
	return c.db.dsn(addrs, AppUser, AppPassword, Database, keys)
}

func (c *Cluster) addrs() []string {
	primary := c.Primary()
	addrs := []string{primary.Addr()}
	for _, n := range c.nodes {
		if n != primary {
			addrs = append(addrs, n.Addr())
		}
	}
	return addrs
}

// WaitCaughtUp waits until every running replica has applied everything that
// the primary had when it was called. A replica that is down, or that hangs,
// is passed over.
func (c *Cluster) WaitCaughtUp(ctx context.Context) error {
	var running []*Node
	for _, n := range c.Replicas() {
		if n.Running() && !n.Hung() {
			running = append(running, n)
		}
	}
	return c.each(running, func(n *Node) error { return n.WaitCaughtUp(ctx) })
}

// ResetStatements makes [Node.Statements] of all nodes begin anew.
func (c *Cluster) ResetStatements() {
	for _, n := range c.nodes {
		n.ResetStatements()
	}
}

func (c *Cluster) setPrimary(n *Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.primary = n
}

func (c *Cluster) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

func (c *Cluster) logf(format string, args ...any) {
	if c.options.Log == nil {
		return
	}
	c.logMu.Lock()
	defer c.logMu.Unlock()
	fmt.Fprintf(c.options.Log, "replicatedtest: %6.3fs "+format+"\n", append([]any{time.Since(c.begin).Seconds()}, args...)...)
}

// report is what the servers last said, for the message of a failure. It
// leaves out statements, which may be large, and which Statements gives.
func (c *Cluster) report() string {
	var b strings.Builder
	for _, n := range c.nodes {
		data, err := os.ReadFile(filepath.Join(n.dir, serverLog))
		if err != nil {
			continue
		}
		const last = 12
		var said, errors []string
		for line := range strings.Lines(string(data[max(0, len(data)-64<<10):])) {
			if statementLine.MatchString(line) {
				continue
			}
			if strings.Contains(line, "ERROR") || strings.Contains(line, "FATAL") {
				errors = append(errors, line)
			}
			said = append(said, line)
		}
		// An error may have been followed by a long farewell.
		if len(said) > last {
			errors = slices.DeleteFunc(errors, func(line string) bool { return slices.Contains(said[len(said)-last:], line) })
			said = append(errors[max(0, len(errors)-last):], said[len(said)-last:]...)
		}
		fmt.Fprintf(&b, "--- last words of %s:\n%s", n, strings.Join(said, ""))
	}
	return b.String()
}

var statementLine = regexp.MustCompile(`^\t|LOG:  (?:statement|execute|duration)|STATEMENT:  `)
