package evidence_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/internal/evidence"
	"github.com/sqlreplicated/replicated/internal/position"
)

// sim is a cluster in which everything happens that may: writes, replicas that lag,
// crashes that lose what was applied last, copies, resets of the primary's log,
// failovers that lose writes, answers that come late and out of order. The book sees
// what a driver would see. What it allows is compared with what the servers hold.
type sim struct {
	rnd  *rand.Rand
	kind position.Kind
	book evidence.Book

	clock    evidence.Moment
	primary  *simServer
	replicas []*simServer
	names    int
	timeline int
	last     int
	writes   []simWrite // those that were acknowledged, and not lost

	writer    simConn
	sampler   simConn
	samples   []*simAnswer // under way
	sights    []*simAnswer // under way
	conns     []*simConn
	resets    int // of the primary's log …
	seen      int // … of which the book has been told
	sampledOf *simServer
	known     map[string]*evidence.Server
	flawed    bool // reads go by the server's name, and not by what their connection has met
	trace     []string
	served    int
	refused   int
	diverged  int
}

// simServer is a server: what it holds, in order, and what of that its position
// tells of. A primary's log begins later after it was reset.
type simServer struct {
	name     string
	id       uint32
	timeline int
	holds    []simEntry
	start    int // of the log, or of the primary's log when this copy of it was made
	flushed  int // LSN: how many of holds are durable
	life     int // counts crashes: each ends all connections
	looked   int // the resets, and one, before the last answer that the book was told of
}

type simEntry struct {
	write  int
	server uint32
	number uint64
}

type simWrite struct {
	write int
	acked evidence.Moment
	async bool
}

type simConn struct {
	to     *simServer
	life   int
	opened evidence.Moment
	server *evidence.Server // what the book says it leads to
}

func (c *simConn) alive() bool { return c.to != nil && c.life == c.to.life }

// simAnswer is a question that is under way.
type simAnswer struct {
	conn      simConn
	opens     *simConn // the connection that was opened with the question
	asked     evidence.Moment
	evaluated bool
	name      string
	lineage   string
	synced    position.Position
	whole     position.Position
	own       uint64 // the highest number of its own
	resets    int
	answered  evidence.Moment // never: it is on the wire
}

func newSim(kind position.Kind, seed uint64) *sim {
	s := &sim{rnd: rand.New(rand.NewPCG(seed, uint64(kind))), kind: kind, timeline: 1, known: map[string]*evidence.Server{}}
	s.primary = s.newServer()
	for range 2 + s.rnd.IntN(2) {
		s.replicas = append(s.replicas, s.newServer())
	}
	return s
}

func (s *sim) newServer() *simServer {
	s.names++
	return &simServer{name: fmt.Sprintf("s%d", s.names), id: uint32(s.names), timeline: s.timeline}
}

func (s *sim) tick() evidence.Moment {
	s.clock += evidence.Moment(s.rnd.IntN(3)) // moments may be equal
	return s.clock
}

func (s *sim) note(format string, args ...any) {
	s.trace = append(s.trace, fmt.Sprintf("%d: ", s.clock)+fmt.Sprintf(format, args...))
}

// run takes so many steps. It returns what was wrong, or "".
func (s *sim) run(steps int) string {
	s.clock = 1
	for range steps {
		if s.flawed && s.rnd.IntN(20) == 0 {
			s.crash()
		}
		switch n := s.rnd.IntN(100); {
		case n < 20:
			s.write()
		case n < 40:
			s.apply()
		case n < 50:
			s.askPrimary()
		case n < 62:
			s.askReplica()
		case n < 80:
			for range 1 + s.rnd.IntN(4) {
				s.answer()
			}
		case n < 82:
			s.open()
		case n < 83:
			s.crash()
		case n < 84 && s.rnd.IntN(3) == 0:
			s.copy(s.replicas[s.rnd.IntN(len(s.replicas))])
		case n < 85 && s.rnd.IntN(4) == 0:
			s.resetLog()
		case n < 86 && s.rnd.IntN(4) == 0:
			s.failover()
		case n < 87 && s.rnd.IntN(20) == 0:
			s.note("forget")
			s.book.Forget()
		default:
			if wrong := s.read(); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}

// logged returns what the server's position tells of.
func (v *simServer) logged() []simEntry { return v.holds[v.start:] }

// write has the primary acknowledge a write, over a connection that has met it.
func (s *sim) write() {
	if s.blocked() {
		return
	}
	if !s.writer.alive() || s.writer.to != s.primary || s.book.Primary() != s.primary.name {
		s.writer = simConn{to: s.primary, life: s.primary.life, opened: s.tick()}
		if s.book.Meet(s.primary.name, s.lineage(s.primary), s.writer.opened) == evidence.Outdated {
			s.writer = simConn{} // another one was opened at the same moment
			return
		}
	}
	p := s.primary
	s.last++
	e := simEntry{write: s.last, server: p.id, number: s.number()}
	p.holds = append(p.holds, e)
	async := s.kind == position.LSN && s.rnd.IntN(2) == 0
	if !async {
		p.flushed = len(p.holds)
	}
	s.writes = append(s.writes, simWrite{e.write, s.tick(), async})
	s.note("write %d-%d async=%v acked", e.server, e.number, async)
}

// number returns that of the primary's next write.
func (s *sim) number() uint64 {
	if s.kind == position.GTIDSet {
		return s.primary.highest(s.primary.id) + 1
	}
	highest := uint64(0)
	for _, e := range s.primary.logged() {
		highest = max(highest, e.number)
	}
	return highest + 1
}

// highest returns the highest number that a server has written in the log.
func (v *simServer) highest(server uint32) (n uint64) {
	for _, e := range v.logged() {
		if e.server == server {
			n = max(n, e.number)
		}
	}
	return n
}

// blocked tells whether a write would hide what nobody can see by positions: numbers
// that were given twice, before a server that has the first ones was looked at.
func (s *sim) blocked() bool {
	if s.seen < s.resets && len(s.primary.logged()) > 0 {
		return true
	}
	for _, r := range s.replicas {
		if r.start >= s.primary.start {
			continue
		}
		known := false
		for _, c := range s.conns {
			known = known || c.to == r && r.looked > s.resets && s.seen == s.resets && c.server != nil && s.book.Diverged(c.server)
		}
		if old := r.highest(s.primary.id); !known && old > 0 && s.number() >= old {
			return true
		}
	}
	return false
}

// apply has some replica apply a few more entries, if its server would.
func (s *sim) apply() {
	if s.kind == position.LSN && s.rnd.IntN(3) == 0 {
		s.primary.flushed = len(s.primary.holds)
	}
	r := s.replicas[s.rnd.IntN(len(s.replicas))]
	for range s.rnd.IntN(10) {
		e, ok := s.next(r)
		if !ok {
			return
		}
		r.holds, r.timeline = append(r.holds, e), s.primary.timeline
		r.flushed = len(r.holds)
		s.note("%s applies %d-%d", r.name, e.server, e.number)
	}
}

// next returns what the primary would send.
func (s *sim) next(r *simServer) (simEntry, bool) {
	p := s.primary
	if r.start < p.start && r.highest(p.id) == 0 {
		return simEntry{}, false // it would miss what came before the reset, and nobody could tell
	}
	switch n := len(r.holds); s.kind {
	case position.LSN:
		if n < p.flushed && slices.Equal(r.holds, p.holds[:n]) {
			return p.holds[n], true
		}
	case position.GTIDSet:
		for _, e := range p.logged() {
			if !slices.ContainsFunc(r.logged(), func(x simEntry) bool { return x.server == e.server && x.number == e.number }) {
				return e, true
			}
		}
	default:
		after := -1
		if log := r.logged(); len(log) > 0 {
			last := log[len(log)-1]
			after = slices.IndexFunc(p.logged(), func(e simEntry) bool { return e.server == last.server && e.number == last.number })
			if after < 0 {
				return simEntry{}, false // it asks for what the primary's log does not have
			}
		}
		if after+1 < len(p.logged()) {
			return p.logged()[after+1], true
		}
	}
	return simEntry{}, false
}

func (s *sim) lineage(v *simServer) string {
	if s.kind != position.LSN {
		return ""
	}
	return fmt.Sprintf("sys/%d", v.timeline)
}

// position returns what the server says, as a primary or as a replica.
func (s *sim) position(v *simServer, primary bool, n int) position.Position {
	log := v.holds[v.start:max(n, v.start)]
	switch s.kind {
	case position.LSN:
		return position.FromLSN(uint64(100 + 8*n))
	case position.GTIDSet:
		var parts []string
		for _, e := range log {
			parts = append(parts, fmt.Sprintf("%08x-0000-0000-0000-000000000000:%d", e.server, e.number))
		}
		return must(position.ParseGTIDSet(strings.Join(parts, ",")))
	}
	last, state := "", map[uint32]string{}
	for _, e := range log {
		last = fmt.Sprintf("0-%d-%d", e.server, e.number)
		state[e.server] = last
	}
	if primary {
		return must(position.MariaDBPrimary(last, strings.Join(slices.Collect(maps.Values(state)), ","), v.id))
	}
	return must(position.ParseGTIDList(last))
}

func must(p position.Position, err error) position.Position {
	if err != nil {
		panic(err)
	}
	return p
}

func (s *sim) askPrimary() {
	if len(s.samples) > 0 {
		return
	}
	if !s.sampler.alive() {
		s.sampler = simConn{to: s.primary, life: s.primary.life, opened: s.tick()}
	}
	s.clock++
	s.samples = append(s.samples, &simAnswer{conn: s.sampler, asked: s.clock})
}

// askReplica asks over a connection that is open.
func (s *sim) askReplica() {
	if len(s.conns) == 0 || len(s.sights) > 4 {
		return
	}
	c := s.conns[s.rnd.IntN(len(s.conns))]
	if c.alive() {
		s.sights = append(s.sights, &simAnswer{conn: *c, asked: s.tick()})
	}
}

// open opens a connection to a replica, with a question.
func (s *sim) open() {
	s.conns = slices.DeleteFunc(s.conns, func(c *simConn) bool { return !c.alive() })
	if len(s.conns) > 8 {
		s.conns = s.conns[1:]
	}
	r := s.replicas[s.rnd.IntN(len(s.replicas))]
	c := &simConn{to: r, life: r.life, opened: s.tick()}
	if s.flawed {
		c.server = s.known[r.name]
	}
	s.conns = append(s.conns, c)
	s.sights = append(s.sights, &simAnswer{conn: *c, opens: c, asked: c.opened})
}

// answer takes a question one step further: the server answers, the answer arrives,
// the book is told.
func (s *sim) answer() {
	list := &s.sights
	if s.rnd.IntN(2) == 0 {
		list = &s.samples
	}
	if len(*list) == 0 {
		return
	}
	i := s.rnd.IntN(len(*list))
	a := (*list)[i]
	v, primary := a.conn.to, list == &s.samples
	switch {
	case !a.evaluated && !a.conn.alive():
		*list = slices.Delete(*list, i, i+1)
	case !a.evaluated:
		a.evaluated, a.name, a.lineage, a.resets = true, v.name, s.lineage(v), s.resets
		a.whole, a.own = s.position(v, primary, len(v.holds)), v.highest(v.id)
		a.synced = a.whole
		if primary && s.kind == position.LSN {
			a.synced = s.position(v, true, v.flushed)
		}
	case a.answered == evidence.Never:
		a.answered = s.tick()
	default:
		*list = slices.Delete(*list, i, i+1)
		if primary {
			s.sampled(a)
		} else {
			s.sighted(a)
		}
	}
}

func (s *sim) sampled(a *simAnswer) {
	change := s.book.Sampled(evidence.Sample{At: a.asked, Answered: a.answered, Opened: a.conn.opened, Server: a.name, Lineage: a.lineage, Synced: a.synced, Whole: a.whole})
	s.note("sample of %s at %d: %v/%v: %v", a.name, a.asked, a.synced, a.whole, change)
	if change == evidence.Outdated {
		s.sampler = simConn{}
		return
	}
	s.seen = max(s.seen, a.resets)
	if s.sampledOf = nil; a.own > 2 {
		s.sampledOf = a.conn.to
	}
}

func (s *sim) sighted(a *simAnswer) {
	v := s.book.Sighted(evidence.Sighting{
		Asked: a.asked, Answered: a.answered, Server: a.name, Lineage: a.lineage,
		NeedsLineage: s.kind == position.LSN, Exact: true, Applied: a.whole,
	})
	if s.book.Diverged(v) {
		s.diverged++
	}
	if a.conn.alive() && a.resets == s.resets {
		a.conn.to.looked = s.resets + 1
	}
	s.known[a.name] = v
	s.note("sighting of %s at %d: %v: proof %+v, diverged %v", a.name, a.asked, a.whole, v.Proof(), s.book.Diverged(v))
	if a.opens != nil {
		a.opens.server = v
	}
}

// crash ends all connections to a replica, which has lost what it had applied last.
func (s *sim) crash() {
	r := s.replicas[s.rnd.IntN(len(s.replicas))]
	keep := max(r.start, len(r.holds)-s.rnd.IntN(12))
	if r.start < s.primary.start {
		// It has numbers that were given twice. Could it go back to where the primary has
		// got with them by now, nothing would tell it from a copy.
		keep = len(r.holds)
	}
	r.holds = slices.Clone(r.holds[:keep])
	r.flushed = keep
	r.life++
	s.note("%s crashes, and holds %d", r.name, keep)
}

// copy makes a replica a copy of the primary, of now or of a while ago. It keeps its
// name, where that is not of a process.
func (s *sim) copy(r *simServer) {
	p := s.primary
	end := len(p.holds)
	if s.kind == position.LSN {
		end = p.flushed
	}
	end = max(p.start, end-s.rnd.IntN(4))
	if end > len(p.holds) {
		return
	}
	r.holds, r.start, r.flushed, r.timeline = slices.Clone(p.holds[:end]), p.start, end, p.timeline
	r.life++
	r.looked = 0
	if s.kind == position.LSN {
		s.names++
		r.name = fmt.Sprintf("s%d", s.names)
	}
	s.note("%s is a copy of the primary with %d entries", r.name, end)
}

// resetLog has the primary's numbers begin again. That can be told if a sample has
// seen higher ones.
func (s *sim) resetLog() {
	if s.kind == position.LSN || s.seen < s.resets || s.sampledOf != s.primary {
		return
	}
	s.primary.start = len(s.primary.holds)
	s.resets++
	s.note("RESET MASTER")
}

// failover makes a replica the primary. What it lacks is lost. It is left out where
// numbers would be given twice, and nobody could tell: where not all replicas are
// copies of a primary whose log was reset, or some have more of what the next one
// wrote in an earlier term than it has itself.
func (s *sim) failover() {
	i := s.rnd.IntN(len(s.replicas))
	r, old := s.replicas[i], s.primary
	twice := func(v *simServer) bool { return v.start < old.start || v.highest(r.id) > r.highest(r.id) }
	if slices.ContainsFunc(s.replicas, twice) || twice(old) || s.seen < s.resets || len(r.logged()) == 0 {
		return
	}
	s.sampledOf = nil
	s.writes = slices.DeleteFunc(s.writes, func(w simWrite) bool { return !r.has(w.write) })
	s.timeline++
	s.primary, r.timeline, r.flushed = r, s.timeline, len(r.holds)
	s.replicas[i] = old
	if s.rnd.IntN(2) == 0 {
		old.life++ // else it goes on, and does not know
	}
	for _, c := range s.conns {
		if c.to == r {
			c.to = &simServer{life: -1} // no replica any more
		}
	}
	s.note("%s is the primary", r.name)
}

func (v *simServer) has(write int) bool {
	return slices.ContainsFunc(v.holds, func(e simEntry) bool { return e.write == write })
}

// read reads over a connection, if the book allows it.
func (s *sim) read() string {
	if len(s.conns) == 0 {
		return ""
	}
	c := s.conns[s.rnd.IntN(len(s.conns))]
	if !c.alive() || c.server == nil {
		return ""
	}
	proof := c.server.Proof()
	f := evidence.All(max(s.clock-evidence.Moment(s.rnd.IntN(200)), 0))
	if proof != nil && s.rnd.IntN(3) > 0 { // as much as it claims to have
		f = evidence.Floor{Any: max(proof.Synced-1, 0), Async: max(proof.Whole-1, 0)}
	}
	if !proof.Past(f) || !s.flawed && !proof.HoldsFor(c.opened) {
		s.refused++
		return ""
	}
	s.served++
	for _, w := range s.writes {
		if need := f.Any; w.acked <= need && !(w.async && w.acked > f.Async) && !c.to.has(w.write) {
			return fmt.Sprintf("a read with floor %+v over a connection of %d to %s (proof %+v) lacks a write that was acknowledged at %d\n%s",
				f, c.opened, c.to.name, *proof, w.acked, strings.Join(s.trace[max(0, len(s.trace)-20000):], "\n"))
		}
	}
	return ""
}

var simKinds = []position.Kind{position.LSN, position.GTIDSet, position.GTIDList}

const simSteps = 3000

var seed = flag.Uint64("seed", 0, "seed of the first simulation; 0: any")

// What the book allows to be read shows everything up to the read's floor, whatever
// happens to the servers.
func TestAllowedReadsLackNothing(t *testing.T) {
	runs := 40
	if testing.Short() {
		runs = 10
	}
	first := *seed
	if first == 0 {
		first = rand.Uint64() >> 1
	}
	for _, kind := range simKinds {
		t.Run(kind.String(), func(t *testing.T) {
			served, refused, diverged := 0, 0, 0
			for i := range runs {
				s := newSim(kind, first+uint64(i))
				if wrong := s.run(simSteps); wrong != "" {
					t.Fatalf("seed %d: %s", first+uint64(i), wrong)
				}
				served, refused, diverged = served+s.served, refused+s.refused, diverged+s.diverged
			}
			t.Logf("from seed %d: %d reads served, %d refused, %d sightings of diverged servers", first, served, refused, diverged)
			if served < 10*runs || refused < 100*runs || kind != position.LSN && diverged == 0 {
				t.Error("the runs show little")
			}
		})
	}
}

// A reader that does not look which connections a proof is about is found out: after
// a crash there is less on the new ones.
func TestSimulationFindsStaleReads(t *testing.T) {
	for _, kind := range simKinds {
		t.Run(kind.String(), func(t *testing.T) {
			for seed := range uint64(300) {
				s := newSim(kind, seed)
				s.flawed = true
				if s.run(simSteps) != "" {
					return
				}
			}
			t.Error("nothing was found")
		})
	}
}
