package history_test

import (
	"slices"
	"testing"

	"github.com/sqlreplicated/replicated/internal/history"
)

// client is one goroutine of the simulated program: it opens a session or none,
// holds a connection or none, and does some things there.
type client struct {
	*system
	process int32
	session history.SessionID
	conn    int64
	steps   int
}

func (c *client) visit() {
	if c.over {
		return
	}
	c.session, c.conn = 0, 0
	if c.rng.IntN(3) > 0 {
		c.openSession(0)
		if c.rng.IntN(2) == 0 {
			c.openSession(c.session)
		}
	}
	if c.rng.IntN(3) == 0 {
		c.conn = c.next()
	}
	c.steps = c.rng.IntN(20)
	c.after(100, c.step)
}

func (c *client) openSession(parent history.SessionID) {
	c.h.Parents = append(c.h.Parents, parent)
	c.session = history.SessionID(len(c.h.Parents) - 1)
}

// step does one thing, and when that has returned the next.
func (c *client) step() {
	if c.steps--; c.steps < 0 || c.over {
		c.after(50, c.visit)
		return
	}
	switch parent := c.h.Parents[c.session]; {
	case parent != 0 && c.rng.IntN(10) == 0:
		c.session = parent
	case c.conn != 0 && c.rng.IntN(10) == 0:
		c.openSession(0)
	}
	switch n := c.rng.IntN(40); {
	case n < 5:
		c.write()
	case n < 7:
		c.transaction()
	case n == 7:
		c.takeToken()
	case n < 10:
		c.snapshot()
	default:
		c.read()
	}
}

func (c *client) event(k history.Kind, key int64) history.Event {
	return history.Event{
		Kind: k, Process: c.process, Session: c.session, Conn: c.conn, Key: key,
		Called: c.now, Outcome: history.Acked,
	}
}

func (c *client) record(e history.Event) {
	if e.Returned == 0 {
		e.Returned = c.now
	}
	c.h.Events = append(c.h.Events, e)
}

func (c *client) key() int64 { return 1 + c.rng.Int64N(simKeys) }

// commit makes the next version of the key.
func (c *client) commit(e *history.Event) {
	e.Version = c.state(e.Key, len(c.log)).version + 1
	c.log = append(c.log, entry{at: c.now, key: e.Key, version: e.Version, value: e.Value, deleted: e.Kind == history.Delete})
}

// write is a statement of its own. One in eight is given up before it returns, and
// takes effect much later or never.
func (c *client) write() {
	e := c.event(history.Write, c.key())
	e.Value = c.next()
	if c.rng.IntN(8) == 0 {
		e.Kind, e.Value = history.Delete, 0
	}
	if c.rng.IntN(8) == 0 {
		c.giveUp(e)
		return
	}
	c.after(20, func() { c.apply(e) })
}

// apply waits until nobody holds the row.
func (c *client) apply(e history.Event) {
	if c.locks[e.Key] {
		c.after(10, func() { c.apply(e) })
		return
	}
	if c.flaw == writesTwice && c.rng.IntN(3) == 0 {
		c.commit(&e)
	}
	c.commit(&e)
	c.after(20, func() {
		c.raise(c)
		c.record(e)
		c.after(30, c.step)
	})
}

func (c *client) giveUp(e history.Event) {
	e.Outcome = history.Unknown
	if c.rng.IntN(2) == 0 {
		late := &client{system: c.system} // nobody waits for it
		var apply func()
		apply = func() {
			if c.locks[e.Key] {
				c.after(10, apply)
				return
			}
			done := e
			late.commit(&done)
		}
		c.after(500, apply)
	}
	c.after(20, func() {
		c.record(e)
		c.after(30, c.step)
	})
}

// transaction writes a key once or twice, reads it, and ends in some way.
func (c *client) transaction() {
	id, key := c.next(), c.key()
	begun := c.now
	if c.locks[key] {
		c.after(10, c.step)
		return
	}
	c.locks[key] = true
	var writes []history.Event
	var last entry
	for range 1 + c.rng.IntN(2) {
		e := c.event(history.Write, key)
		e.Tx, e.Value = id, c.next()
		e.Version = c.state(key, len(c.log)).version + 1 + int64(len(writes))
		e.Returned = e.Called + 1
		writes = append(writes, e)
		last = entry{key: key, version: e.Version, value: e.Value}
		c.record(e)
		if c.flaw == stampsBeforeCommit {
			c.raise(c)
		}
	}
	if c.flaw == readsUncommitted {
		c.log = append(c.log, entry{at: c.now, key: key, version: last.version, value: last.value})
	}
	c.after(20, func() {
		r := c.event(history.Read, key)
		r.Tx, r.Version, r.Value, r.Claim.Since = id, last.version, last.value, begun
		r.Returned = c.now + 1
		c.record(r)
		c.after(20, func() { c.end(id, writes) })
	})
}

func (c *client) end(id int64, writes []history.Event) {
	e := c.event(history.TxEnd, 0)
	e.Tx, e.Outcome = id, history.Outcome(c.rng.IntN(3))
	if c.rng.IntN(2) == 0 {
		e.Outcome = history.Acked
	}
	c.after(20, func() {
		if e.Outcome == history.Acked || e.Outcome == history.Unknown && c.rng.IntN(2) == 0 {
			if c.flaw != readsUncommitted {
				for _, w := range writes {
					c.log = append(c.log, entry{at: c.now, key: w.Key, version: w.Version, value: w.Value})
				}
			}
		}
		delete(c.locks, writes[0].Key)
		c.after(20, func() {
			if c.flaw != stampsBeforeCommit {
				c.raise(c)
			}
			c.record(e)
			c.after(30, c.step)
		})
	})
}

// takeToken leaves a token for all clients to find.
func (c *client) takeToken() {
	c.tokens = append(c.tokens, history.Token{Process: c.process, Session: c.session, Taken: c.now})
	c.tokens = slices.Clone(c.tokens[max(0, len(c.tokens)-3):])
	c.after(20, c.step)
}

func (c *client) claim() history.Claim {
	var cl history.Claim
	switch c.rng.IntN(12) {
	case 0:
		cl.Fresh = c.now
	case 1:
		cl.MaxLag = moment(c.rng, simMaxLag)
	case 2:
		cl.Tokens = c.tokens
	case 3, 4, 5, 6:
		cl.Monotonic = true
	}
	return cl
}

func (c *client) read() {
	e := c.event(history.Read, c.key())
	e.Claim = c.claim()
	floor := c.floor(c, e.Claim)
	c.after(20, func() {
		c.show(&e, c.choose(floor, e.Claim))
		c.after(20, func() { c.returned(e) })
	})
}

func (c *client) returned(e history.Event) {
	if e.Claim.Monotonic {
		for id := c.session; id != 0; id = c.h.Parents[id] {
			c.lastRead[id] = c.now
		}
	}
	c.record(e)
	c.after(30, c.step)
}

// show lets the read see the first n entries of the log.
func (c *client) show(e *history.Event, n int) {
	if at := c.state(e.Key, n); !at.deleted {
		e.Version, e.Value = at.version, at.value
	}
}

// snapshot is a read-only transaction: what it sees is settled when it begins.
func (c *client) snapshot() {
	begun, id, claim := c.now, c.next(), c.claim()
	claim.Since = begun
	floor := c.floor(c, claim)
	c.after(20, func() {
		n := c.choose(floor, claim)
		left := 2 + c.rng.IntN(2)
		var one func()
		one = func() {
			e := c.event(history.Read, c.key())
			e.Tx, e.Claim = id, claim
			c.show(&e, n)
			if left--; left > 0 {
				c.after(20, func() {
					c.record(e)
					one()
				})
				return
			}
			c.after(20, func() { c.returned(e) })
		}
		one()
	})
}

var simOptions = history.Options{MaxLag: simMaxLag, Dense: true}

// A driver that keeps the promise is never accused.
func TestCorrectSystemHasNoViolations(t *testing.T) {
	for seed := range uint64(25) {
		found := history.Check(simulate(seed, none, 5000), simOptions)
		if len(found) > 0 {
			t.Fatalf("seed %d: %d violations, the first:\n%v", seed, len(found), found[0])
		}
	}
}

// Each driver that leaves one thing out is found out, by the clause that is about
// that thing.
func TestFlawedSystemsAreFound(t *testing.T) {
	for f, want := range map[flaw]history.Clause{
		ignoresConn:         history.ReadYourWrites,
		ignoresSession:      history.ReadYourWrites,
		ignoresOuterSession: history.ReadYourWrites,
		ignoresOutside:      history.ReadYourWrites,
		ignoresProcess:      history.ReadYourWrites,
		ignoresFresh:        history.Fresh,
		ignoresToken:        history.Tokens,
		ignoresLag:          history.BoundedStaleness,
		ignoresMonotonic:    history.MonotonicReads,
		stampsBeforeCommit:  history.ReadYourWrites,
		readsUncommitted:    history.Integrity,
		writesTwice:         history.AtMostOnce,
	} {
		found := history.Check(simulate(1, f, 20_000), simOptions)
		counts := make(map[history.Clause]int)
		for _, v := range found {
			counts[v.Clause]++
		}
		if counts[want] == 0 {
			t.Errorf("flaw %d: found %v, want %v", f, counts, want)
		}
		for clause := range counts {
			if clause != want && f != readsUncommitted { // which breaks more than one
				t.Errorf("flaw %d: found %v, want nothing but %v", f, counts, want)
			}
		}
	}
}

func TestLaggingSystemBreaksEveryClauseOfReads(t *testing.T) {
	counts := make(map[history.Clause]int)
	for _, v := range history.Check(simulate(1, ignoresEverything, 20_000), simOptions) {
		counts[v.Clause]++
	}
	for _, clause := range []history.Clause{history.ReadYourWrites, history.Tokens, history.Fresh, history.BoundedStaleness, history.MonotonicReads} {
		if counts[clause] == 0 {
			t.Errorf("no violation of %v: %v", clause, counts)
		}
	}
}
