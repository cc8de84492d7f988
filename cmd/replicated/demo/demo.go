package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sqlreplicated/replicated"
)

// The times of the demo. The window is for servers that do not tell how far they
// have got. It has to be longer than the replicas usually lag: the driver cannot
// measure that there, so the demo knows it for its servers.
const (
	lag    = 300 * time.Millisecond  // how far the replicas are kept behind
	sticky = 1500 * time.Millisecond // replicated.sticky

	timeLimit = 41 * time.Second // for all, cleaning up excepted
	slowStart = 12 * time.Second // a start that takes longer shortens the rest
	lateHour  = 30 * time.Second // after so long the last chapter is left out
)

// pace is how long things are shown. A busy machine has less time for an audience,
// and a test needs none.
type pace struct {
	row     time.Duration // after a row of a table, on a terminal
	rounds  int           // visits of each user in the second chapter
	visit   time.Duration // how often a user comes
	calm    time.Duration // before and after an outage
	outage  time.Duration // at least so long is a replica down
	primary time.Duration // so long is the primary down
}

var (
	showPace = pace{row: 90 * time.Millisecond, rounds: 20, visit: 160 * time.Millisecond,
		calm: 1300 * time.Millisecond, outage: 1800 * time.Millisecond, primary: 1500 * time.Millisecond}
	shortPace = pace{rounds: 6, visit: 20 * time.Millisecond,
		calm: 300 * time.Millisecond, outage: 500 * time.Millisecond, primary: 300 * time.Millisecond}
)

// demo is one run.
type demo struct {
	screen  *screen
	engines []engine
	pace    pace
	began   time.Time

	// ours builds the application whose reads are compared with those of the naive
	// split. Nil: one on the driver. A test puts in one that is naive itself, to
	// see the demo fail.
	ours func(*demo, *sql.DB) teller

	servers  servers
	bank     bank
	heard    *listener
	observed *sql.DB // opened with an Observer: it tells of each statement
	measured bool    // the driver knows how far the replicas have got
	promises promises
}

// run shows all chapters. Its error says that a promise was broken, or why the
// demo could not be shown to its end. All that it started is gone when it returns.
func (d *demo) run(ctx context.Context) (err error) {
	d.began = time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, timeLimit, fmt.Errorf("not done after %v: this machine is too busy for a demo", timeLimit))
	defer cancel()
	defer d.screen.close()

	d.screen.title("replicated", "one database handle, a primary and two replicas")
	if d.servers, err = d.start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.servers.close()) }()
	if err := d.open(); err != nil {
		return err
	}
	defer d.observed.Close()
	if d.measured, err = d.known(ctx, d.observed); err != nil {
		return err
	}

	for _, chapter := range []func(context.Context) error{d.routing, d.staleness, d.outage, d.withoutPrimary, d.goodbye} {
		if err := chapter(ctx); err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if !errors.Is(err, context.Canceled) { // who interrupts has seen enough
				d.summary(false)
			}
			return err
		}
	}
	d.summary(true)
	return d.promises.err()
}

// start starts the first engine that can be. That it is not the first choice is
// said on the screen.
func (d *demo) start(ctx context.Context) (servers, error) {
	var problems []error
	for _, e := range d.engines {
		wait := d.screen.region()
		wait.draw("", "  starting "+e.name+" …")
		began := time.Now()
		s, err := e.start(ctx)
		if err == nil {
			d.bank = s.bank()
			if err = s.prepare(ctx, d.bank.schema, lag); err == nil {
				wait.end("", fmt.Sprintf("  %s, three nodes, started in %.1f s", s.title(), time.Since(began).Seconds()))
				d.screen.note(s.note())
				if time.Since(d.began) > slowStart {
					d.screen.note("That was slow: the machine is busy, and what follows is cut short.")
					d.pace = shortPace
				}
				return s, nil
			}
			err = errors.Join(err, s.close())
		}
		wait.end()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		problems = append(problems, fmt.Errorf("%s: %w", e.name, err))
		if len(d.engines) > 1 {
			first, _, _ := strings.Cut(err.Error(), "\n")
			d.screen.note(fmt.Sprintf("no %s: %s", e.name, first))
		}
	}
	return nil, errors.Join(problems...)
}

// keys are the settings of the demo's handles.
func (d *demo) keys() []string { return append(d.servers.keys(), "replicated.breaker_open=500ms") }

// open opens the observed handle: by connector, since no DSN can carry an
// Observer.
func (d *demo) open() error {
	dsn := d.servers.dsn(d.keys()...)
	d.screen.code(
		`db, err := sql.Open("replicated",`,
		`    "`+d.servers.shown()+`"+`,
		`    "`+d.servers.separator()+strings.Join(d.keys(), "&")+`")`,
	)
	cfg, err := replicated.ParseDSN(dsn)
	if err != nil {
		return err
	}
	for i := range cfg.Nodes {
		cfg.Nodes[i].Name = nodeNames[i]
	}
	d.heard = newListener()
	cfg.Observe = d.heard.observer()
	connector, err := replicated.NewConnector(cfg)
	if err != nil {
		return err
	}
	d.observed = sql.OpenDB(connector)
	d.observed.SetMaxIdleConns(maxIdle)
	return nil
}

// known waits until something is proven of each replica, so that it can serve reads,
// or until it is clear that nothing can be. It reports which.
func (d *demo) known(ctx context.Context, db *sql.DB) (measured bool, err error) {
	cluster, err := replicated.ClusterOf(ctx, db)
	if err != nil {
		return false, err
	}
	conn, err := db.Conn(ctx) // before the first one nobody is asked
	if err != nil {
		return false, err
	}
	defer conn.Close()
	for deadline := time.Now().Add(patience); ; {
		stats := cluster.Stats()
		if !slices.ContainsFunc(stats.Nodes[1:], func(n replicated.NodeStats) bool { return n.Freshness == replicated.FreshnessUnknown }) {
			return stats.LagMeasured, nil
		}
		if time.Now().After(deadline) {
			return false, fmt.Errorf("after %v nothing is proven of the replicas: %+v", patience, stats.Nodes)
		}
		if err := pause(ctx, pollEvery); err != nil {
			return false, err
		}
	}
}

// pollEvery is how often the demo looks whether something has come about.
const pollEvery = 5 * time.Millisecond

// maxIdle keeps database/sql from closing connections that the demo's goroutines
// take turns with: it keeps two unless told.
const maxIdle = 32

// nodeNames are the names of the nodes, the primary first.
var nodeNames = []string{"primary", "replica 1", "replica 2"}

// goodbye closes the handle and has the servers count what is left.
func (d *demo) goodbye(ctx context.Context) error {
	if err := d.observed.Close(); err != nil {
		return err
	}
	left := 0
	for deadline := time.Now().Add(3 * time.Second); ; {
		left = 0
		for _, n := range d.servers.nodes() {
			count, err := n.connections()
			if err != nil {
				return err
			}
			left += count
		}
		if left == 0 || time.Now().After(deadline) {
			break
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	d.promises.add("Close leaves no connection behind", left == 0, fmt.Sprintf("%d, %s", left, d.servers.word()))
	return nil
}

// pause waits, or returns the reason why there is no more time.
func pause(ctx context.Context, t time.Duration) error {
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
