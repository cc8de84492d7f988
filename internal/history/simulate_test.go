package history_test

import (
	"container/heap"
	"math/rand/v2"
	"slices"

	"github.com/sqlreplicated/replicated/internal/history"
)

// system is a simulated cluster with a driver that keeps the promise as the design
// says: floors are moments, and a replica is past a floor when it has what the
// primary had then. Each flaw leaves one thing out.
//
// Everything happens at moments of a simulated clock, many clients at once: a
// statement is called, takes effect later on the node, and returns later still.
type system struct {
	rng    *rand.Rand
	flaw   flaw
	now    history.Moment
	queue  schedule
	h      *history.History
	number int64
	over   bool

	log      []entry // what the primary has committed, in order
	locks    map[int64]bool
	replicas []replica

	conns    map[int64]history.Moment
	sessions map[history.SessionID]history.Moment
	lastRead map[history.SessionID]history.Moment
	outside  map[int32]history.Moment
	all      map[int32]history.Moment
	tokens   []history.Token // the last ones taken, for whoever finds them
}

type entry struct {
	at      history.Moment
	key     int64
	version int64
	value   int64
	deleted bool
}

type replica struct {
	lag     history.Moment
	applied int // entries of the log
}

// flaw is what a flawed driver ignores.
type flaw uint8

const (
	none flaw = iota
	ignoresConn
	ignoresSession
	ignoresOuterSession
	ignoresOutside
	ignoresProcess
	ignoresFresh
	ignoresToken
	ignoresLag
	ignoresMonotonic
	ignoresEverything
	stampsBeforeCommit // a transaction's writes count when they return, not when it commits
	readsUncommitted
	writesTwice
	flaws
)

const (
	simMaxLag   = 300
	simReplicas = 3
	simKeys     = 6
	simClients  = 12
)

type schedule []appointment

type appointment struct {
	at history.Moment
	n  int64
	do func()
}

func (s schedule) Len() int { return len(s) }
func (s schedule) Less(i, j int) bool {
	return s[i].at < s[j].at || s[i].at == s[j].at && s[i].n < s[j].n
}
func (s schedule) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *schedule) Push(a any)   { *s = append(*s, a.(appointment)) }
func (s *schedule) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}

func (s *system) next() int64 { s.number++; return s.number }

// after does something up to so many ticks later.
func (s *system) after(most int, do func()) {
	heap.Push(&s.queue, appointment{at: s.now + moment(s.rng, most), n: s.next(), do: do})
}

// simulate runs clients until so many events are recorded, or a few more.
func simulate(seed uint64, f flaw, events int) *history.History {
	s := &system{
		rng: rand.New(rand.NewPCG(seed, uint64(f))), flaw: f, now: 1,
		h:     &history.History{Parents: make([]history.SessionID, 1)},
		locks: make(map[int64]bool), replicas: make([]replica, simReplicas),
		conns: make(map[int64]history.Moment), sessions: make(map[history.SessionID]history.Moment),
		lastRead: make(map[history.SessionID]history.Moment),
		outside:  make(map[int32]history.Moment), all: make(map[int32]history.Moment),
	}
	for i := range simClients {
		c := &client{system: s, process: int32(i % 2)}
		s.after(10, c.visit)
	}
	s.after(10, s.weather)
	for len(s.queue) > 0 { // the end: everybody finishes what he has begun
		a := heap.Pop(&s.queue).(appointment)
		s.now, s.over = a.at, len(s.h.Events) >= events
		s.replicate()
		a.do()
	}
	return s.h
}

// weather changes the replicas' lag.
func (s *system) weather() {
	s.replicas[s.rng.IntN(simReplicas)].lag = history.Moment(s.rng.IntN(1 + 2*simMaxLag*s.rng.IntN(2)))
	if !s.over {
		s.after(200, s.weather)
	}
}

// replicate moves the replicas on, never back.
func (s *system) replicate() {
	for i := range s.replicas {
		r := &s.replicas[i]
		r.applied = max(r.applied, s.committedBefore(s.now-r.lag))
	}
}

func (s *system) committedBefore(at history.Moment) int {
	n, _ := slices.BinarySearchFunc(s.log, at, func(e entry, at history.Moment) int {
		if e.at < at {
			return -1
		}
		return 1
	})
	return n
}

// state returns the key after the first n entries of the log.
func (s *system) state(key int64, n int) entry {
	for i := n - 1; i >= 0; i-- {
		if s.log[i].key == key {
			return s.log[i]
		}
	}
	return entry{key: key, deleted: true}
}

func (s *system) raise(c *client) {
	at := s.now
	s.all[c.process] = at
	if c.conn != 0 {
		s.conns[c.conn] = at
	}
	if c.session == 0 {
		s.outside[c.process] = at
	}
	for id := c.session; id != 0; id = s.h.Parents[id] {
		s.sessions[id] = at
		if s.flaw == ignoresOuterSession {
			return
		}
	}
}

// floor is what a read of the client has to be past, when it is called now.
func (s *system) floor(c *client, cl history.Claim) history.Moment {
	var floor history.Moment
	raise := func(m history.Moment, by flaw) {
		if s.flaw != by {
			floor = max(floor, m)
		}
	}
	raise(s.conns[c.conn], ignoresConn)
	for id := c.session; id != 0; id = s.h.Parents[id] {
		raise(s.sessions[id], ignoresSession)
		if cl.Monotonic {
			raise(s.lastRead[id], ignoresMonotonic)
		}
	}
	raise(s.outside[c.process], ignoresOutside)
	if c.session == 0 {
		raise(s.all[c.process], ignoresProcess)
	}
	raise(cl.Fresh, ignoresFresh)
	for _, t := range cl.Tokens {
		raise(t.Taken, ignoresToken) // a position at or after the session's last write
	}
	return floor
}

// choose returns how many entries of the log the read sees: a replica's, if one
// is past the floor and within the bound, or all.
func (s *system) choose(floor history.Moment, cl history.Claim) int {
	bound := cl.MaxLag
	if bound == 0 {
		bound = simMaxLag
	}
	need := s.committedBefore(floor)
	if s.flaw != ignoresLag {
		need = max(need, s.committedBefore(s.now-bound))
	}
	for _, i := range s.rng.Perm(simReplicas) {
		if s.flaw == ignoresEverything || s.replicas[i].applied >= need {
			return s.replicas[i].applied
		}
	}
	return len(s.log)
}
