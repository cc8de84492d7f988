package scenarios

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

// change is a change of the primary, or a restart of it.
type change struct {
	former, now *replicatedtest.Node
	// accepts is when the new primary was first seen to accept writes, resumed when
	// the load's first write since then was acknowledged.
	accepts, resumed time.Time
	// sent is what the former primary was sent since then, by its own log, read up to
	// the mark; no more is added when it is the primary again.
	sent []replicatedtest.Statement
	mark replicatedtest.Mark
	over bool
	// known is when the driver is known to know of it. Guarded by world.mu; zero until
	// then.
	known time.Time
}

// accepting bounds how long a change may take until the new primary accepts writes,
// and resuming how long after that until a write is acknowledged.
const (
	accepting = 60 * time.Second
	resuming  = 30 * time.Second
)

// change does what makes one of the candidates the primary, and waits until the
// load's writes are acknowledged again. It measures how long that takes from when
// the new primary accepts writes, be act done by then or not.
func (w *world) change(candidates []*replicatedtest.Node, act func() error) error {
	former := w.cluster.Primary()
	w.readLogs()
	c := &change{former: former, mark: former.Mark()}
	w.mu.Lock()
	w.changes = append(w.changes, c)
	w.mu.Unlock()

	ctx, cancel := context.WithTimeout(w.ctx, accepting)
	defer cancel()
	first := make(chan time.Time, len(candidates))
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	for _, n := range candidates {
		watching.Go(func() { w.watchWritable(ctx, n, n == former, first) })
	}
	if err := act(); err != nil {
		return err
	}
	w.mu.Lock()
	c.now = w.cluster.Primary()
	for _, earlier := range w.changes {
		earlier.over = earlier.over || earlier.former == c.now
	}
	w.mu.Unlock()
	if former != c.now {
		w.former = former
	}
	select {
	case c.accepts = <-first:
	case <-ctx.Done():
		return fmt.Errorf("%s does not accept writes", c.now.Name())
	}
	w.transcript.told("%s accepts writes since %s ago", c.now.Name(), round(time.Since(c.accepts)))
	if w.load == nil || !w.follows(c.now) {
		return nil
	}
	err := w.wait(resuming, func() string {
		at, ok := w.ledger.ackSince(c.accepts)
		if !ok {
			return "no write is acknowledged since " + c.now.Name() + " accepts them"
		}
		c.resumed = at
		return ""
	})
	if err == nil {
		w.transcript.told("the first write was acknowledged %s after that", round(c.resumed.Sub(c.accepts)))
	}
	return err
}

// watchWritable has a node do writes with its own driver until one is acknowledged, and
// tells when that was: with synchronous replication a server that is no longer
// read-only may have to wait for a replica first. away: it must have been gone before.
func (w *world) watchWritable(ctx context.Context, n *replicatedtest.Node, away bool, first chan<- time.Time) {
	db, err := sql.Open(w.cluster.DriverName(), n.DSN())
	if err != nil {
		return
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for ctx.Err() == nil {
		asked, giveUp := context.WithTimeout(ctx, 5*time.Second)
		_, err := db.ExecContext(asked, "INSERT INTO trials (n) VALUES (1)")
		giveUp()
		away = away && err == nil
		if err == nil && !away {
			first <- time.Now()
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// follows reports whether the driver is to write to the node when that is the primary:
// with static topology it knows one primary only.
func (w *world) follows(n *replicatedtest.Node) bool {
	return w.discovers || n.Name() == w.driver.Stats().Nodes[0].Name
}

// known notes that the driver knows of the last change: a statement has run on a node as
// the primary that was not it before, or a former primary was found to be read-only.
func (w *world) known(node string, asPrimary bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.changes) == 0 {
		return
	}
	c := w.changes[len(w.changes)-1]
	if c.known.IsZero() && (c.former.Name() != node) == asPrimary {
		c.known = time.Now()
	}
}

// readLogs adds to each change what its former primary has been sent meanwhile.
func (w *world) readLogs() {
	for _, c := range w.changes {
		if !c.over {
			mark := c.former.Mark() // before: what comes in between is read twice, not never
			c.sent = append(c.sent, c.former.StatementsSince(c.mark)...)
			c.mark = mark
		}
	}
}

// strays returns the writes that a former primary was sent, by its own log, although
// they were begun when the driver knew of the change.
func (w *world) strays() map[string][]int64 {
	w.readLogs()
	w.mu.Lock()
	defer w.mu.Unlock()
	found := make(map[string][]int64)
	for _, c := range w.changes {
		if c.known.IsZero() || c.now == c.former {
			continue
		}
		node := c.former.Name()
		for _, s := range c.sent {
			id, ok := writeOf(s.Text)
			if !ok || s.User != replicatedtest.AppUser || slices.Contains(found[node], id) {
				continue
			}
			if begun, ok := w.ledger.begun(id); ok && begun.After(c.known) {
				found[node] = append(found[node], id)
			}
		}
	}
	return found
}

// writeOf returns the number of the write that a statement's text is.
func writeOf(text string) (id int64, ok bool) {
	_, rest, ok := strings.Cut(text, ledgerMark)
	if !ok {
		return 0, false
	}
	digits, _, ok := strings.Cut(rest, " ")
	if !ok {
		return 0, false
	}
	id, err := strconv.ParseInt(digits, 10, 64)
	return id, err == nil
}
