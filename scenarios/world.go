package scenarios

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// Run runs the script on a cluster of one of its engines that was started with its
// Options, and logs the transcript. It fails the test where an expectation is not
// met, and ends at the first command that cannot be done.
//
// It undoes what the script has done to the servers, and reports whether the
// cluster is whole: the first node is the primary, all others follow it and have
// caught up. Only then may another script run on it. A cluster is for one script
// at a time.
func (s *Script) Run(t testing.TB, c *replicatedtest.Cluster) (whole bool) {
	t.Helper()
	w := &world{
		t: t, script: s, cluster: c,
		transcript: newTranscript(),
		tally:      newTally(),
		ledger:     new(ledger),
		proxies:    make(map[string]*replicatedtest.Proxy),
		undo:       make(map[string]func() error),
		notices:    make(map[string]int),
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	defer w.cancel()
	w.transcript.did("%s, %s", s.Name, c.Version())
	ok := w.all(s.commands)
	if ok && w.db != nil {
		w.always()
	}
	w.close()
	whole = w.heal() && ok
	t.Logf("\n%s", w.transcript)
	return whole
}

// world is what a script acts on: the cluster, the handle under test and its load.
type world struct {
	t          testing.TB
	script     *Script
	cluster    *replicatedtest.Cluster
	transcript *transcript
	tally      *tally
	ledger     *ledger
	ctx        context.Context
	cancel     context.CancelFunc

	// What follows belongs to the goroutine that runs the script.
	db        *sql.DB
	driver    *replicated.Cluster
	discovers bool // replicated.topology=discover
	load      *load
	proxies   map[string]*replicatedtest.Proxy // by node; empty without "proxied=yes"
	last      counts                           // the last phase
	line      int                              // of the script
	audited   *audit
	former    *replicatedtest.Node // the primary before the last change

	background sync.WaitGroup // what goes on by "every"
	cease      []func()

	mu      sync.Mutex
	undo    map[string]func() error // by what was done, to which node
	notices map[string]int          // by kind
	changes []*change
}

// runs gives each run of a script floors of its own: what earlier ones wrote on the
// same servers holds none of its reads.
var runs atomic.Int64

// all does the commands in turn, and reports whether each could be done.
func (w *world) all(commands []command) bool {
	for _, c := range commands {
		for i := range c.repeat {
			w.transcript.did("— %d of %d", i+1, c.repeat)
			if !w.all(c.block) {
				return false
			}
		}
		switch {
		case c.form == nil:
		case c.every > 0:
			w.transcript.did("%s", c.text)
			w.again(c)
		default:
			if !w.one(c) {
				return false
			}
		}
	}
	return true
}

// aWhile is how long a command takes that is a phase of its own whatever it is.
const aWhile = 300 * time.Millisecond

func (w *world) one(c command) bool {
	w.line = c.line
	if c.args.expected.op == "" {
		w.transcript.did("%s%s", c.text, w.resolved(c.args.nodes))
	}
	began := time.Now()
	if err := c.form.run(w, c.args); err != nil {
		w.transcript.did("CANNOT: %v", err)
		w.t.Errorf("%s:%d: %s: %v", w.script.Name, c.line, c.text, err)
		return false
	}
	if time.Since(began) > aWhile || c.form.phase {
		w.phase()
	}
	return true
}

// resolved tells which nodes are meant.
func (w *world) resolved(names []string) string {
	text := ""
	for _, name := range names {
		if n, err := w.node(name); err == nil && n.Name() != name {
			text += " (" + n.Name() + ")"
		}
	}
	return text
}

// phase ends a phase and notes what happened in it.
func (w *world) phase() {
	w.last = w.tally.next()
	if !w.last.empty() {
		w.transcript.told("%s", &w.last)
	}
}

// again does a command again and again in the background.
func (w *world) again(c command) {
	ctx, cancel := context.WithCancel(w.ctx)
	w.cease = append(w.cease, cancel)
	w.background.Go(func() {
		for ctx.Err() == nil {
			if err := c.form.run(w, c.args); err != nil && ctx.Err() == nil {
				w.transcript.did("CANNOT: %s: %v", c.text, err)
				w.t.Errorf("%s:%d: %s: %v", w.script.Name, c.line, c.text, err)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(c.every):
			}
		}
	})
}

func (w *world) endBackground() {
	for _, cancel := range w.cease {
		cancel()
	}
	w.background.Wait()
	w.cease = nil
}

// endLoad ends the load and its last phase.
func (w *world) endLoad() {
	if w.load == nil {
		return
	}
	w.load.end()
	w.load = nil
	if rest := w.tally.next(); !rest.empty() {
		w.transcript.told("until the load has ended:\n%s", &rest)
	}
}

// close ends all that goes on by itself. The handle is closed while what was done
// to the servers is still in force: Close must not hang because of it.
func (w *world) close() {
	w.endBackground()
	w.endLoad()
	if w.db != nil {
		began := time.Now()
		if err := w.db.Close(); err != nil {
			w.t.Errorf("%s: closing the handle: %v", w.script.Name, err)
		}
		if took := time.Since(began); took > opTime/3 {
			w.t.Errorf("%s: closing the handle took %v", w.script.Name, took)
		}
	}
	for _, p := range w.proxies {
		p.Close()
	}
}

// toUndo notes how to undo what was done to a node. A nil function means that it is
// undone.
func (w *world) toUndo(what string, n *replicatedtest.Node, undo func() error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := what + " " + n.Name()
	if undo == nil {
		delete(w.undo, key)
		return
	}
	if _, done := w.undo[key]; !done {
		w.undo[key] = undo
	}
}

// undone undoes it now, if it was done.
func (w *world) undone(what string, n *replicatedtest.Node) error {
	w.mu.Lock()
	key := what + " " + n.Name()
	undo := w.undo[key]
	delete(w.undo, key)
	w.mu.Unlock()
	if undo == nil {
		return fmt.Errorf("there is nothing to undo: %s", key)
	}
	return undo()
}

// heal undoes everything, and reports whether the cluster is whole.
func (w *world) heal() bool {
	w.mu.Lock()
	undo := maps.Clone(w.undo)
	w.mu.Unlock()
	whole := true
	// Hung servers go on before anything else is asked of them, and what is down
	// is started before that.
	for _, first := range []string{"hung ", "down ", ""} {
		for _, key := range slices.Sorted(maps.Keys(undo)) {
			if strings.HasPrefix(key, first) {
				whole = undo[key]() == nil && whole
				delete(undo, key)
			}
		}
	}
	nodes := w.cluster.Nodes()
	if !whole || w.cluster.Primary() != nodes[0] || len(w.cluster.Replicas()) != len(nodes)-1 {
		return false
	}
	for _, n := range nodes {
		whole = whole && n.Running()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return whole && w.cluster.WaitCaughtUp(ctx) == nil
}

// node returns the node that a script names so now.
func (w *world) node(name string) (*replicatedtest.Node, error) {
	var n *replicatedtest.Node
	switch {
	case name == "primary":
		n = w.cluster.Primary()
	case name == "former":
		n = w.former
	case strings.HasPrefix(name, "replica"):
		var i int
		if _, err := fmt.Sscanf(name, "replica%d", &i); err == nil {
			if all := w.cluster.Replicas(); i <= len(all) {
				n = all[i-1]
			}
		}
	default:
		n = w.cluster.Node(name)
	}
	if n == nil {
		return nil, fmt.Errorf("there is no %s", name)
	}
	return n, nil
}

// on makes a command of what is done to a node.
func on(do func(*world, *replicatedtest.Node, args) error) func(*world, args) error {
	return func(w *world, a args) error {
		n, err := w.node(a.nodes[0])
		if err != nil {
			return err
		}
		return do(w, n, a)
	}
}
