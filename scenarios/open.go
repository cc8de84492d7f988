package scenarios

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

var basicForms = []form{
	{pattern: "open <settings>", run: (*world).open},
	{pattern: "open", run: (*world).open},
	{pattern: "load <settings>", run: (*world).loads},
	{pattern: "load", run: (*world).loads},
	{pattern: "end load", run: func(w *world, _ args) error { w.endLoad(); return nil }},
	{pattern: "run <duration>", phase: true, run: func(w *world, a args) error { time.Sleep(a.durations[0]); return nil }},
	{pattern: "cease", run: func(w *world, _ args) error { w.endBackground(); return nil }},
}

// open makes the tables, and opens the handle under test. Of the settings
// "proxied=yes" puts a proxy before each node; the others are keys of the DSN
// without "replicated.".
func (w *world) open(a args) error {
	if w.db != nil {
		return errors.New("it is open already")
	}
	if err := w.prepare(); err != nil {
		return err
	}
	var keys []string
	for _, kv := range a.settings {
		if kv[0] != "proxied" {
			keys = append(keys, "replicated."+kv[0]+"="+kv[1])
		}
	}
	keys = append(keys, fmt.Sprintf("replicated.cluster=scenario-%d", runs.Add(1)))
	cfg, err := w.config(a.settings.get("proxied") == "yes", keys)
	if err != nil {
		return err
	}
	connector, err := replicated.NewConnector(cfg)
	if err != nil {
		return err
	}
	w.driver = connector.Cluster()
	w.discovers = cfg.Topology == replicated.TopologyDiscover
	w.db = sql.OpenDB(connector)
	// As many as the load has goroutines: the connections that database/sql would
	// close and open all the time are not what is tested.
	w.db.SetMaxIdleConns(100)
	return w.measured()
}

// tableWriters is for how many writers there are counters.
const tableWriters = 64

func (w *world) prepare() error {
	primary := w.cluster.Primary()
	db, err := sql.Open(w.cluster.DriverName(), primary.DSN())
	if err != nil {
		return err
	}
	defer db.Close()
	for _, statement := range (texts{w.cluster.Engine()}).tables(tableWriters) {
		if _, err := db.ExecContext(w.ctx, statement); err != nil {
			return err
		}
	}
	if err := w.grant(); err != nil {
		return err
	}
	w.cluster.ResetStatements()
	return w.cluster.WaitCaughtUp(w.ctx)
}

// grant lets the user see a PostgreSQL standby's timeline at once after a change of the
// primary, as the driver's documentation recommends: without it replicas serve no reads
// then until their next restart point.
func (w *world) grant() error {
	if w.cluster.Engine() != replicatedtest.Postgres {
		return nil
	}
	db, err := sql.Open(w.cluster.DriverName(), w.cluster.Primary().AdminDSN())
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(w.ctx, "GRANT pg_read_all_stats TO "+replicatedtest.AppUser)
	return err
}

// config describes the cluster with the names that its nodes have here.
func (w *world) config(proxied bool, keys []string) (replicated.Config, error) {
	nodes := w.cluster.Nodes()
	primary := w.cluster.Primary()
	slices.SortStableFunc(nodes, func(x, y *replicatedtest.Node) int {
		return compareBool(y == primary, x == primary)
	})
	var addrs []string
	for _, n := range nodes {
		addr := n.Addr()
		if proxied {
			p, err := replicatedtest.NewProxy(addr)
			if err != nil {
				return replicated.Config{}, err
			}
			w.proxies[n.Name()] = p
			addr = p.Addr()
		}
		addrs = append(addrs, addr)
	}
	cfg, err := replicated.ParseDSN(w.cluster.DSNAt(addrs, keys...))
	if err != nil {
		return cfg, err
	}
	for i, n := range nodes {
		cfg.Nodes[i].Name = n.Name()
	}
	cfg.Observe = &replicated.Observer{Routed: w.routed, NodeState: w.nodeState, Notice: w.notice}
	return cfg, nil
}

func compareBool(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return 1
	default:
		return -1
	}
}

// measured waits until the driver knows how fresh the replicas are, of those that
// let it in.
func (w *world) measured() error {
	conn, err := w.db.Conn(w.ctx) // nothing is asked before the first one
	if err != nil {
		return err
	}
	defer conn.Close()
	return w.wait(20*time.Second, func() string {
		for _, n := range w.driver.Stats().Nodes {
			if n.Role == replicated.RoleReplica && n.Freshness == replicated.FreshnessUnknown && n.Breaker == replicated.BreakerClosed && !n.TurnedAway {
				return "nothing is known of " + n.Name
			}
		}
		return ""
	})
}

// wait waits until there is no complaint, and returns the last one as an error if
// that takes too long.
func (w *world) wait(limit time.Duration, complaint func() string) error {
	end := time.Now().Add(limit)
	for {
		last := complaint()
		if last == "" {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("after %v: %s", limit, last)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// loads starts the load.
func (w *world) loads(a args) error {
	if w.db == nil || w.load != nil {
		return errors.New("a load needs an open handle, and is the only one")
	}
	readers, writers, pause := 56, 8, 200*time.Millisecond
	for _, kv := range a.settings {
		var err error
		switch kv[0] {
		case "readers":
			readers, err = strconv.Atoi(kv[1])
		case "writers":
			writers, err = strconv.Atoi(kv[1])
		case "pause":
			pause, err = durationOf(kv[1])
		default:
			err = fmt.Errorf("%q is none of readers, writers, pause", kv[0])
		}
		if err != nil {
			return err
		}
	}
	if writers > tableWriters {
		return fmt.Errorf("%d writers are more than %d", writers, tableWriters)
	}
	w.load = &load{
		db: w.db, text: texts{w.cluster.Engine()}, tally: w.tally, ledger: w.ledger, pause: pause,
		ctx: w.ctx, stop: make(chan struct{}),
	}
	w.tally.next()
	w.load.start(readers, writers)
	return nil
}

// routed counts where reads ran, and notes when a new primary is known.
func (w *world) routed(e replicated.RouteEvent) {
	if e.Err != nil {
		return
	}
	if e.Class == "read" {
		w.tally.on(e.Node)
	}
	if e.Role == replicated.RolePrimary {
		w.known(e.Node, true)
	}
}

func (w *world) nodeState(e replicated.NodeStateEvent) {
	if e.Err != nil {
		w.transcript.told("driver: %s %v: %v", e.Node, e.State, e.Err)
		return
	}
	w.transcript.told("driver: %s %v", e.Node, e.State)
}

func (w *world) notice(n replicated.Notice) {
	w.mu.Lock()
	w.notices[n.Kind.String()]++
	w.mu.Unlock()
	if n.Kind == replicated.NoticeReadOnlyPrimary {
		w.known(n.Node, false)
	}
	text := "driver: notice " + n.Kind.String()
	if n.Node != "" {
		text += " of " + n.Node
	}
	if n.Err != nil {
		text += ": " + n.Err.Error()
	}
	w.transcript.told("%s", text)
}
