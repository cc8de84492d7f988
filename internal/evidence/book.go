package evidence

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sqlreplicated/replicated/internal/position"
)

// Sample is what the primary has said of itself.
type Sample struct {
	// At was read before the question was sent, Answered after the answer, Opened
	// before the connection was asked who it is for the first time.
	At, Answered, Opened Moment
	// Server and Lineage are its identity, see dialect.Identity.
	Server, Lineage string
	// Synced is the position up to which its log is durable, Whole the one up to
	// which it is written. They differ on PostgreSQL only.
	Synced, Whole position.Position
	// Settles is how long it takes at most from an acknowledgement to Synced, for
	// commits that do not wait for it. Zero: that is not known.
	Settles Moment
}

// Sighting is what a server has said of how far it has applied the primary's log.
type Sighting struct {
	// Asked was read before the question was sent, Answered after the answer.
	Asked, Answered Moment
	Server, Lineage string
	Applied         position.Position
	// NeedsLineage is set where positions of different lineages look alike
	// (PostgreSQL): an unknown lineage then proves nothing.
	NeedsLineage bool
	// Exact is set where the lineage is the present one for certain, and not what the
	// server remembers of it.
	Exact bool
}

// Change is what a sample of the primary has brought about.
type Change uint8

// What a sample may bring about.
const (
	Nothing    Change = iota
	First             // the first primary of the book
	NewPrimary        // another server is the primary
	WentBack          // the same primary lacks what it had: its log was reset, or a copy restored
	Outdated          // nothing: the connection leads to what is no longer the primary
)

// Book keeps the evidence of one cluster. The zero Book is empty and ready to use.
// It is safe for concurrent use; proofs are read without its lock.
type Book struct {
	latest atomic.Int64 // Sample.At of the newest sample, Never without one
	epoch  atomic.Uint64

	mu      sync.Mutex
	server  string // the primary's; "" before the first
	lineage string
	began   Moment // when the epoch's primary was met
	reset   bool   // the epoch began because the primary lacked what it had
	// from is when the reason for the epoch was known. What was asked before may be of
	// the time before, and has no part in it.
	from Moment
	// inherited is what the primary had applied, of another lineage, when it was last
	// seen as a replica.
	inherited Sighting
	sampled   Moment // Sample.At of the last sample that was entered, in whatever epoch
	newest    Sample // of the epoch, whether it still counts or not; zero: none
	samples   []Sample
	servers   map[string]*Server

	former  Sample      // the last one of the primary before, until that is judged
	heir    Sighting    // what its successor had applied as a replica
	outcome *Succession // nil: none, or told
}

// Server is a server that answers as a replica.
type Server struct {
	key   string
	proof atomic.Pointer[Proof]

	// What follows is guarded by the book's lock.

	state    state
	last     Sighting // the newest
	applied  Sighting // the newest with a position; it outlives the role of a replica
	waiting  Sighting // the oldest with a position that no sample has confirmed yet; zero: none
	trusted  bool     // has been verified in this epoch
	astray   Sighting // diverged: the newest that a sample has told it of
	exceeded Moment   // diverged: when the first of these samples was taken
	since    Moment   // only samples taken since count; Never: all
	lag      Moment   // how long after its sample the newest proof came
}

type state uint8

const (
	unverified state = iota
	verified
	diverged
)

// Proof returns what the server's answers are proven to have, or nil.
func (s *Server) Proof() *Proof { return s.proof.Load() }

// Key returns the server's identity.
func (s *Server) Key() string { return s.key }

// Latest returns the moment of the primary's newest sample: floors before it are
// covered, and it is up to the replicas to get there.
func (b *Book) Latest() Moment { return Moment(b.latest.Load()) }

// Primary returns the identity of the epoch's primary, "" before the first.
func (b *Book) Primary() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.server
}

// Lineage returns the history that the epoch's samples belong to.
func (b *Book) Lineage() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lineage
}

// Meet takes note of a writable server in the primary's place, to which a
// connection was opened at that moment. Another one than the epoch's begins a new
// epoch, unless the connection is older than the epoch, or not provably younger: then
// it leads to where the primary was, for all we know.
func (b *Book) Meet(server, lineage string, opened Moment) Change {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.meetLocked(server, lineage, opened)
}

func (b *Book) meetLocked(server, lineage string, opened Moment) Change {
	switch {
	case b.server == server && b.lineage == lineage:
		return Nothing
	case b.server != "" && opened <= b.began:
		return Outdated
	}
	change := NewPrimary
	if b.server == "" {
		change = First
	}
	b.server, b.lineage, b.began = server, lineage, opened
	b.leaveLocked(server)
	b.inherited = Sighting{}
	if s := b.servers[server]; s != nil && (s.applied.Exact || succeeds(lineage, s.applied.Lineage)) {
		b.inherited = s.applied
	}
	b.emptyLocked(false)
	if change == NewPrimary {
		b.from = opened
	}
	return change
}

// succeeds tells whether a server of this lineage came straight from the other.
// Lineages of PostgreSQL end in the number of a timeline. A server that is promoted
// takes the next number after that of its own timeline, so that this holds even
// where the server knew its own timeline no better than its control file, which may
// still have had the one before.
func succeeds(lineage, other string) bool {
	i, j := strings.LastIndexByte(lineage, '/'), strings.LastIndexByte(other, '/')
	if i < 0 || j < 0 || lineage[:i] != other[:j] {
		return false
	}
	n, err1 := strconv.ParseUint(lineage[i+1:], 10, 32)
	m, err2 := strconv.ParseUint(other[j+1:], 10, 32)
	return err1 == nil && err2 == nil && n == m+1
}

// emptyLocked begins an epoch: nothing that was proven holds any more.
func (b *Book) emptyLocked(reset bool) {
	b.dropLocked()
	b.reset, b.newest = reset, Sample{}
	for _, s := range b.servers {
		s.state, s.last, s.applied, s.waiting = unverified, Sighting{}, Sighting{}, Sighting{}
		s.trusted, s.since = false, Never
	}
}

// dropLocked drops all samples and proofs.
func (b *Book) dropLocked() {
	b.samples = nil
	b.epoch.Add(1)
	b.latest.Store(int64(Never))
	for _, s := range b.servers {
		s.proof.Store(nil)
	}
}

// Forget drops all evidence. The primary stays the same, and so do the servers that
// have diverged from it.
func (b *Book) Forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dropLocked()
	for _, s := range b.servers {
		s.waiting = Sighting{}
		if s.state == verified {
			s.state = unverified
		}
	}
}

// Sampled enters a sample of the primary. One that has been overtaken by a later
// one is dropped. A position that is empty or missing proves nothing and is not
// kept.
func (b *Book) Sampled(q Sample) Change {
	b.mu.Lock()
	defer b.mu.Unlock()
	change := b.meetLocked(q.Server, q.Lineage, q.Opened)
	if change == Outdated || q.At <= b.sampled {
		return change
	}
	b.sampled = q.At
	if before := &b.newest; !before.Whole.IsZero() && !(q.Synced.Includes(before.Synced) && q.Whole.Includes(before.Whole)) {
		b.emptyLocked(true)
		change, b.from = WentBack, q.Answered
	}
	if q.Whole.IsZero() || q.Whole.IsEmpty() || q.Synced.IsZero() || q.Synced.IsEmpty() {
		return change
	}
	b.keepLocked(q)
	b.newest = q
	b.judgeLocked(&q)
	b.latest.Store(int64(q.At))
	for _, s := range b.servers {
		b.confirmLocked(s, q)
	}
	return change
}

const (
	// maxSamples bounds the book. Samples are thinned out with age.
	maxSamples = 256
	// finest is into how many parts an age is divided at most: a replica that is
	// minutes behind has its lag told some seconds too high.
	finest = 32
)

func (b *Book) keepLocked(q Sample) {
	if len(b.samples) >= maxSamples {
		for parts := Moment(finest); len(b.samples) > maxSamples*3/4; parts /= 2 {
			b.samples = thinned(b.samples, parts)
		}
	}
	b.samples = append(b.samples, q)
}

// thinned leaves out samples that are too close to the next one for their age. The
// first and the last one stay.
func thinned(samples []Sample, parts Moment) []Sample {
	kept := make([]Sample, 0, maxSamples)
	last := len(samples) - 1
	newest, next := samples[last].At, samples[last].At
	for i := last; i >= 0; i-- {
		if s := samples[i]; i == last || i == 0 || (next-s.At)*parts >= newest-s.At {
			kept = append(kept, s)
			next = s.At
		}
	}
	slices.Reverse(kept)
	return kept
}

// confirmLocked compares what a server had applied with a sample that was begun
// later: the primary must have all of it.
func (b *Book) confirmLocked(s *Server, q Sample) {
	p := s.waiting
	if p.Applied.IsZero() || p.Answered >= q.At {
		return
	}
	s.waiting = Sighting{}
	switch {
	case p.Applied.Exceeds(q.Whole):
		if s.state != diverged {
			s.state, s.exceeded = diverged, q.At
		}
		s.astray = p
		s.proof.Store(nil)
		return
	case s.state == diverged && !b.forgivesLocked(s, p.Applied.Kind(), q.At):
		return
	case s.state == unverified && s.since != Never:
		s.since = q.At
	case s.state == verified:
		return
	}
	s.state, s.trusted = verified, true
	s.proof.Store(b.proveLocked(s))
}

// slowestCommit is how long the primary of a server that is not known yet may take
// to commit what replicas have applied: the time for which semi-synchronous
// replication waits by default (rpl_semi_sync_source_timeout).
const slowestCommit = Moment(10e9)

// forgivesLocked tells whether a diverged server may have been ahead of its primary
// only. A replica of MySQL may apply what the primary has logged and not yet
// committed, for as long as it waits for the acknowledgement of another one. Once
// the primary has it, nothing is amiss: no identifier is given twice, unless the
// primary's log was reset. Then it may have come to have the same numbers, for other
// transactions. That is known where the book has seen the reset, and is likely where
// a server was ahead for long when it was met.
func (b *Book) forgivesLocked(s *Server, kind position.Kind, at Moment) bool {
	return kind == position.GTIDSet && (s.trusted || !b.reset && at-s.exceeded <= slowestCommit)
}

func (b *Book) comparableLocked(p *Sighting) bool {
	return p.Lineage == b.lineage && (p.Lineage != "" || !p.NeedsLineage)
}

// Sighted enters what a server has said, and returns the server. A proof replaces
// the one before, also by an earlier moment: what has been lost is not proven.
func (b *Book) Sighted(p Sighting) *Server {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.servers[p.Server]
	if s == nil {
		s = &Server{key: p.Server}
		b.addLocked(s)
	}
	if p.Asked < s.last.Asked || p.Asked <= b.from {
		return s // overtaken by a later question, or by an epoch
	}
	s.last = p
	if !p.Applied.IsZero() && !p.Applied.IsEmpty() {
		b.appliedLocked(s, p)
	}
	if s.state == verified {
		proof := b.proveLocked(s)
		if old := s.proof.Load(); proof != nil && (old == nil || proof.Synced > old.Synced) {
			s.lag = p.Answered - proof.Synced
		}
		s.proof.Store(proof)
	}
	return s
}

// appliedLocked takes note of a position.
func (b *Book) appliedLocked(s *Server, p Sighting) {
	// Of two answers that were asked for side by side the one with less may be the
	// earlier.
	if s.state == diverged && !p.Applied.Includes(s.astray.Applied) && p.Asked > s.astray.Answered {
		// It has gone back: perhaps it is a new copy. Numbers that were given twice must
		// not prove anything, so it begins anew with later samples.
		s.state, s.trusted, s.since, s.waiting = unverified, false, p.Answered, Sighting{}
	}
	s.applied = p
	if s.waiting.Applied.IsZero() && b.comparableLocked(&p) {
		s.waiting = p
	}
}

// proveLocked finds the latest samples that the server contains, by what it said
// last.
func (b *Book) proveLocked(s *Server) *Proof {
	p := &s.last
	if p.Applied.IsZero() || !b.comparableLocked(p) {
		return nil
	}
	proof := &Proof{Read: p.Asked}
	for i := len(b.samples) - 1; i >= 0; i-- {
		q := &b.samples[i]
		if s.since != Never && q.At < s.since {
			break
		}
		if proof.Synced == Never && p.Applied.Contains(q.Synced) {
			proof.Synced = q.At
			if q.Settles > 0 {
				proof.Settled = max(q.At-q.Settles, Never)
			}
		}
		if proof.Synced != Never && p.Applied.Contains(q.Whole) {
			proof.Whole = q.At
			proof.Settled = max(proof.Settled, q.At)
			return proof
		}
	}
	if proof.Synced == Never {
		return nil
	}
	return proof
}

// maxServers bounds the book where servers come and go under ever new identities.
const maxServers = 128

func (b *Book) addLocked(s *Server) {
	if b.servers == nil {
		b.servers = make(map[string]*Server)
	}
	if len(b.servers) >= maxServers {
		var oldest *Server
		for _, t := range b.servers {
			if oldest == nil || t.last.Asked < oldest.last.Asked {
				oldest = t
			}
		}
		oldest.proof.Store(nil)
		delete(b.servers, oldest.key)
	}
	b.servers[s.key] = s
}

// Unconfirmed tells whether some server waits for a first sample that is begun
// after its answer.
func (b *Book) Unconfirmed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.servers {
		if s.state == unverified && !s.waiting.Applied.IsZero() {
			return true
		}
	}
	return false
}

// Diverged tells whether the server has applied what the primary lacks.
func (b *Book) Diverged(s *Server) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return s.state == diverged
}

// OfLineage tells whether what the server said last can be compared with the
// primary's samples.
func (b *Book) OfLineage(s *Server) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.comparableLocked(&s.last)
}

// Lag returns how long it usually takes from a sample to its proof on the server.
func (b *Book) Lag(s *Server) Moment {
	b.mu.Lock()
	defer b.mu.Unlock()
	return s.lag
}

// Contains tells whether the server had applied the newest sample when it was last
// asked.
func (b *Book) Contains(s *Server) bool {
	p := s.Proof()
	return p != nil && p.Synced != Never && p.Synced == b.Latest()
}

// Find returns the moment of the oldest sample that includes a position, which
// some sample of the cluster had: a token's. What the primary had applied while it
// was a replica it has in every sample.
func (b *Book) Find(t position.Position, lineage string) (at Moment, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if lineage != b.lineage {
		if len(b.samples) > 0 && lineage == b.inherited.Lineage && b.inherited.Applied.Includes(t) {
			return b.samples[0].At, true
		}
		return Never, false
	}
	for i := range b.samples {
		if b.samples[i].Whole.Includes(t) {
			return b.samples[i].At, true
		}
	}
	return Never, false
}

// Epoch counts the epochs. What Find has found holds for one.
func (b *Book) Epoch() uint64 { return b.epoch.Load() }

// After returns the oldest sample that was begun after m: it has what had been
// acknowledged by then.
func (b *Book) After(m Moment) (Sample, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.samples {
		if b.samples[i].At > m {
			return b.samples[i], true
		}
	}
	return Sample{}, false
}
