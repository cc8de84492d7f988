package evidence_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/sqlreplicated/replicated/internal/evidence"
	"github.com/sqlreplicated/replicated/internal/position"
)

// script plays a conversation with servers to a book. Each line happens ten
// nanoseconds after the one before; a question is answered one nanosecond after it
// was asked.
//
//	primary A [L]    the primary is another server from here on, with lineage L
//	replica R [L]    so are the sightings
//	opened           so are the primary's connection
//	q POS [POS]      a sample: what is durable, and what is written if that is more
//	p POS            a sighting
//	p@N POS          … that was asked for at line N and answered now
//	q@N POS          a sample that was asked for at line N and answered now
//	meet A [L]       a connection to another primary
//	forget
//
// "name: line" gives the moment of a line a name. What must be true after it stands
// behind "=>":
//
//	none             the server has no proof
//	NAME [NAME]      its proof is by that sample, and by that one for all commits
//	diverged
//	first, new, back, outdated, nothing   what the sample, or meeting, has brought about
type script struct {
	t    *testing.T
	kind position.Kind
	book evidence.Book

	line              int
	names             map[string]evidence.Moment
	primary, lineage  string
	opened            evidence.Moment
	replica, replicas string
	change            evidence.Change
	server            *evidence.Server
}

var changes = map[string]evidence.Change{
	"nothing": evidence.Nothing, "first": evidence.First, "new": evidence.NewPrimary, "back": evidence.WentBack, "outdated": evidence.Outdated,
}

func (s *script) now() evidence.Moment { return evidence.Moment(10 * s.line) }

func (s *script) pos(text string, primary bool) position.Position {
	s.t.Helper()
	var (
		p   position.Position
		err error
	)
	switch {
	case text == "''" && s.kind == position.GTIDSet:
		p, err = position.ParseGTIDSet("")
	case text == "''":
		p, err = position.ParseGTIDList("")
	case text == "-":
	case s.kind == position.LSN:
		p, err = position.ParseLSN(text)
	case s.kind == position.File:
		source, offset, _ := strings.Cut(text, ":")
		n, _ := strconv.ParseUint(offset, 10, 64)
		p = position.FilePosition(source, "binlog.000001", n)
	case s.kind == position.GTIDSet:
		var sets []string
		for part := range strings.SplitSeq(text, "+") { // u1:1-5
			id, spans, _ := strings.Cut(part, ":")
			sets = append(sets, fmt.Sprintf("0000000%s-0000-0000-0000-000000000000:%s", id[1:], spans))
		}
		p, err = position.ParseGTIDSet(strings.Join(sets, ","))
	case primary: // "last" or "last;state"
		last, state, _ := strings.Cut(text, ";")
		p, err = position.MariaDBPrimary(last, state, 1)
	default:
		p, err = position.ParseGTIDList(text)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

// asked returns the line that "q@N" names, or the present one.
func (s *script) asked(verb string) evidence.Moment {
	if _, name, ok := strings.Cut(verb, "@"); ok {
		at, known := s.names[name]
		if !known {
			s.t.Fatalf("no line %q", name)
		}
		return at
	}
	return s.now()
}

func (s *script) play(text string) {
	s.t.Helper()
	s.names = map[string]evidence.Moment{}
	s.primary, s.opened, s.replica = "A", 1, "R"
	for line := range strings.Lines(text) {
		s.line++
		do, want, _ := strings.Cut(strings.TrimSpace(line), "=>")
		if name, rest, ok := strings.Cut(do, ": "); ok {
			s.names[name] = s.now()
			do = rest
		}
		if words := strings.Fields(do); len(words) > 0 {
			s.do(words[0], append(words[1:], "", ""))
		}
		if want = strings.TrimSpace(want); want != "" {
			s.check(line, strings.Fields(want))
		}
	}
}

func (s *script) do(verb string, args []string) {
	s.t.Helper()
	switch {
	case verb == "primary":
		s.primary, s.lineage, s.opened = args[0], args[1], s.now()
	case verb == "replica":
		s.replica, s.replicas = args[0], args[1]
	case verb == "meet":
		s.change = s.book.Meet(args[0], args[1], s.now())
	case verb == "forget":
		s.book.Forget()
	case verb[0] == 'q':
		q := evidence.Sample{At: s.asked(verb), Answered: s.now() + 1, Opened: s.opened, Server: s.primary, Lineage: s.lineage}
		q.Synced = s.pos(args[0], true)
		q.Whole = q.Synced
		if args[1] != "" {
			q.Whole = s.pos(args[1], true)
		}
		s.change = s.book.Sampled(q)
	case verb[0] == 'p':
		s.server = s.book.Sighted(evidence.Sighting{
			Asked: s.asked(verb), Answered: s.now() + 1, Server: s.replica, Lineage: s.replicas,
			NeedsLineage: s.kind == position.LSN, Exact: true, Applied: s.pos(args[0], false),
		})
	case verb == ".":
	default:
		s.t.Fatalf("%q?", verb)
	}
}

func (s *script) check(line string, want []string) {
	s.t.Helper()
	if change, ok := changes[want[0]]; ok {
		if s.change != change {
			s.t.Errorf("%s: change %d", strings.TrimSpace(line), s.change)
		}
		if want = want[1:]; len(want) == 0 {
			return
		}
	}
	proof := s.server.Proof()
	if want[0] == "none" || want[0] == "diverged" {
		if proof != nil || s.book.Diverged(s.server) != (want[0] == "diverged") {
			s.t.Errorf("%s: proof %+v, diverged %v", strings.TrimSpace(line), proof, s.book.Diverged(s.server))
		}
		return
	}
	synced := s.names[want[0]]
	whole := synced
	if len(want) > 1 {
		whole = s.names[want[1]]
	}
	if proof == nil || proof.Synced != synced || proof.Whole != whole {
		s.t.Errorf("%s: proof %+v, want by the samples of %d and %d", strings.TrimSpace(line), proof, synced, whole)
	}
}

func TestBook(t *testing.T) {
	for _, tt := range []struct {
		name string
		kind position.Kind
		text string
	}{
		{"a server is verified by a later sample", position.GTIDList, `
			q 0-1-5 => first
			p 0-1-5 => none
			. => none
			s: q 0-1-6
			p 0-1-6 => s
			s2: q 0-1-7 => s
			p 0-1-6 => s
			p 0-1-7 => s2
			s3: q 0-1-7 => s2
			p 0-1-7 => s3`},
		{"the sample that verifies counts, if the server contains it", position.GTIDList, `
			q 0-1-5
			p 0-1-5
			s: q 0-1-5 => s`},
		{"a sample that was begun before the answer verifies nothing", position.GTIDList, `
			q 0-1-5
			a: .
			p 0-1-9 => none
			q@a 0-1-9 => none
			s: q 0-1-9 => s`},
		{"what has been lost is not proven", position.GTIDList, `
			s: q 0-1-3
			s2: q 0-1-5
			p 0-1-5
			s3: q 0-1-5 => s3
			p 0-1-4 => s
			p 0-1-2 => none
			p 0-1-5 => s3`},
		{"an answer that was overtaken says nothing", position.GTIDList, `
			s: q 0-1-3
			a: q 0-1-5
			p 0-1-5
			s3: q 0-1-5 => s3
			b: .
			p 0-1-3 => s
			p@b 0-1-5 => s`},
		{"a sample that was overtaken is dropped", position.GTIDList, `
			a: .
			q 0-1-5
			q@a 0-1-4 => nothing
			p 0-1-5
			s: q 0-1-6
			p 0-1-6 => s`},
		{"… also into an empty book", position.GTIDList, `
			q 0-1-5
			a: .
			q 0-1-1 => back
			forget
			q@a 0-1-6 => nothing
			p 0-1-6
			q 0-1-7
			p 0-1-6 => none`},
		{"another lineage", position.LSN, `
			primary A sys/2
			replica R sys/1
			q 0/500
			p 0/900 => none
			q 0/900 => none
			replica R sys/2
			p 0/900 => none
			s: q 0/900 => s
			replica R sys/1
			p 0/900 => none`},
		{"an unknown lineage", position.LSN, `
			q 0/500
			p 0/500
			q 0/500 => none`},
		{"a reset log: an empty position", position.GTIDList, `
			q 0-1-40
			p 0-1-40
			s: q 0-1-40 => s
			q '' => back none
			p 0-1-40 => none
			q 0-1-1 => nothing diverged
			q 0-1-2 => diverged`},
		{"a reset log: lower numbers, which catch up", position.GTIDList, `
			q 0-1-40
			p 0-1-40
			s: q 0-1-40 => s
			q 0-1-1 => back none
			p 0-1-40 => none
			q 0-1-2 => diverged
			q 0-1-50
			p 0-1-50 => diverged
			q 0-1-51 => diverged
			p 0-1-10 => none
			q 0-1-51 => none
			p 0-1-50 => none
			s2: q 0-1-51 => none
			p 0-1-51 => s2`},
		{"a reset log of MySQL: lower numbers, which catch up", position.GTIDSet, `
			q u1:1-40
			p u1:1-40
			s: q u1:1-40 => s
			q u1:1 => back none
			p u1:1-40 => none
			q u1:1-2 => diverged
			q u1:1-50
			p u1:1-50 => diverged
			q u1:1-50 => diverged`},
		{"what was asked before a reset was known is of the time before", position.GTIDList, `
			q 0-1-40
			a: .
			q 0-1-10 => back
			p@a 0-1-10 => none
			q 0-1-10 => none
			p 0-1-10 => none
			s: q 0-1-10 => s`},
		{"diverged by a chain", position.GTIDList, `
			q 0-1-12;0-1-12
			p 0-18-14 => none
			q 0-1-12;0-1-12 => diverged
			q 0-1-15;0-1-15
			p 0-18-14 => diverged`},
		{"… for as long as a write of the middle is what it applied last", position.GTIDList, `
			q 0-1-12;0-1-12
			p 0-1-12
			s: q 0-1-12;0-1-12 => s
			p 0-18-14
			p 0-1-13 => s
			q 0-1-13;0-1-13 => diverged
			p 0-1-13 => none
			s2: q 0-1-13;0-1-13 => s2`},
		{"a verified server may diverge", position.GTIDList, `
			q 0-1-5
			p 0-1-5
			s: q 0-1-5 => s
			p 0-1-9 => s
			q 0-1-8 => diverged
			p 0-1-9 => diverged`},
		{"a verified replica of MySQL may be ahead for any time", position.GTIDSet, `
			q u1:1-5
			p u1:1-5
			s: q u1:1-5 => s
			p u1:1-6
			q u1:1-5 => diverged
			p u1:1-6 => diverged
			s2: q u1:1-6 => s2`},
		{"one that has just been met may, for a moment", position.GTIDSet, `
			q u1:1-5
			p u1:1-6
			q u1:1-5 => diverged
			p u1:1-6
			s: q u1:1-6 => s`},
		{"side by side, the one with less may be the earlier", position.GTIDList, `
			q 0-1-5
			a: .
			b: .
			p@a 0-1-9
			q 0-1-6 => diverged
			p@b 0-1-4 => diverged
			q 0-1-9 => diverged
			p 0-1-9 => diverged
			q 0-1-9 => diverged`},
		{"an empty position of a replica is no first one", position.GTIDList, `
			q 0-1-5
			p '' => none
			q 0-1-5 => none
			p 0-1-9 => none
			q 0-1-6 => diverged`},
		{"a replica without a position", position.GTIDList, `
			q 0-1-5
			p - => none
			q 0-1-5 => none
			p 0-1-5
			s: q 0-1-5 => s
			p - => none
			p 0-1-5 => s`},
		{"another primary", position.GTIDList, `
			q 0-1-5
			p 0-1-5
			s: q 0-1-5 => s
			old: meet B => new none
			q 0-1-5 => outdated none
			p 0-1-5 => none
			primary B
			s2: q 0-1-5 => nothing s2
			primary A
			q 0-1-5 => new none`},
		{"a promotion is another primary", position.LSN, `
			primary A sys/1
			replica R sys/1
			q 0/500
			p 0/500
			s: q 0/500 => s
			primary A sys/2
			q 0/500 => new none
			p 0/500 => none
			q 0/500 => none`},
		{"what was written is more than what is durable", position.LSN, `
			primary A sys/1
			replica R sys/1
			s: q 0/500 0/600
			p 0/500
			s2: q 0/600 0/700 => s never
			p 0/600 => s2 s
			p 0/700 => s2
			s3: q 0/700 0/800
			p 0/750 => s3 s2`},
		{"a log of another server", position.File, `
			q A:100
			p B:100 => none
			q A:200 => diverged
			p A:200 => none
			s: q A:200
			p A:200 => s`},
		{"a suspended machine", position.GTIDList, `
			q 0-1-5
			p 0-1-5
			s: q 0-1-5 => s
			forget => none
			p 0-1-5 => none
			s2: q 0-1-5 => nothing s2
			p 0-1-9
			q 0-1-5 => diverged
			forget => diverged
			q 0-1-9
			p 0-1-9 => diverged
			q 0-1-9 => diverged
			forget
			q 0-1-2 => back none`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := script{t: t, kind: tt.kind}
			s.play(tt.text)
		})
	}
}

func sample(at evidence.Moment, lsn uint64) evidence.Sample {
	p := position.FromLSN(lsn)
	return evidence.Sample{At: at, Answered: at, Opened: 1, Server: "A", Lineage: "s/1", Synced: p, Whole: p}
}

func sighting(at evidence.Moment, server string, lsn uint64) evidence.Sighting {
	return evidence.Sighting{Asked: at, Answered: at, Server: server, Lineage: "s/1", NeedsLineage: true, Exact: true, Applied: position.FromLSN(lsn)}
}

// A replica of MySQL that was ahead when it was met, and for long, is not forgiven.
func TestAheadForLong(t *testing.T) {
	set := func(text string) position.Position { return must(position.ParseGTIDSet(text)) }
	const id = "00000001-0000-0000-0000-000000000000"
	for _, tt := range []struct {
		after evidence.Moment
		want  bool
	}{{10e9, false}, {10e9 + 1, true}} {
		var b evidence.Book
		at := func(m evidence.Moment, q string) {
			b.Sampled(evidence.Sample{At: m, Answered: m, Opened: 1, Server: "A", Synced: set(q), Whole: set(q)})
		}
		at(10, id+":1-5")
		s := b.Sighted(evidence.Sighting{Asked: 20, Answered: 20, Server: "R", Applied: set(id + ":1-6")})
		at(30, id+":1-5")
		b.Sighted(evidence.Sighting{Asked: 40, Answered: 40, Server: "R", Applied: set(id + ":1-6")})
		at(30+tt.after, id+":1-6")
		if got := b.Diverged(s); got != tt.want {
			t.Errorf("after %d ns: diverged %v", tt.after, got)
		}
	}
}

// Of a server that lags, older and older samples are the proof, told less exactly
// with age, and never too late.
func TestSamplesAreThinnedOut(t *testing.T) {
	var b evidence.Book
	const n = 5000
	b.Sampled(sample(10, 100))
	s := b.Sighted(sighting(11, "R", 100))
	for i := 1; i < n; i++ {
		b.Sampled(sample(evidence.Moment(10+10*i), uint64(100+i)))
	}
	if b.Latest() != 10*n {
		t.Errorf("the newest sample is of %d, want %d", b.Latest(), 10*n)
	}
	at := evidence.Moment(10 * n)
	for i := n - 1; i >= 0; i-- {
		at++
		b.Sighted(sighting(at, "R", uint64(100+i)))
		exact := evidence.Moment(10 + 10*i)
		behind := 10*n - exact
		p := s.Proof()
		if p == nil || p.Synced > exact || exact-p.Synced > behind/8+10 {
			t.Fatalf("%d ns behind: proof %+v, the latest possible is %d", behind, p, exact)
		}
		if behind < 200 && p.Synced != exact {
			t.Fatalf("%d ns behind: proof %+v, want the exact one, %d", behind, p, exact)
		}
	}
	found, ok := b.Find(position.FromLSN(100), "s/1")
	if !ok || found != 10 {
		t.Errorf("the oldest sample is of %d, %v", found, ok)
	}
}

func TestServersAreBounded(t *testing.T) {
	var b evidence.Book
	b.Sampled(sample(10, 100))
	first := b.Sighted(sighting(11, "0", 100))
	b.Sampled(sample(12, 100))
	if first.Proof() == nil || first.Key() != "0" {
		t.Fatal("not verified")
	}
	for i := 1; i <= 128; i++ {
		b.Sighted(sighting(evidence.Moment(20+i), strconv.Itoa(i), 100))
	}
	if first.Proof() != nil {
		t.Error("the server that was seen longest ago still has a proof, which nobody keeps up to date")
	}
	if again := b.Sighted(sighting(1000, "0", 100)); again == first || again.Proof() != nil {
		t.Error("a server that was forgotten is not met anew")
	}
}

func TestFind(t *testing.T) {
	lsn := position.FromLSN
	t.Run("oldest sample that includes it", func(t *testing.T) {
		var b evidence.Book
		if _, ok := b.Find(lsn(100), "s/1"); ok {
			t.Error("found in an empty book")
		}
		b.Sampled(sample(10, 100))
		b.Sampled(sample(20, 200))
		b.Sampled(sample(30, 300))
		for want, p := range map[evidence.Moment]uint64{10: 100, 20: 101, 30: 300} {
			if at, ok := b.Find(lsn(p), "s/1"); !ok || at != want {
				t.Errorf("Find(%d) = %d, %v, want %d", p, at, ok, want)
			}
		}
		for _, p := range []position.Position{lsn(301), {}, position.BeatPosition(1, 1)} {
			if at, ok := b.Find(p, "s/1"); ok {
				t.Errorf("Find(%v) = %d", p, at)
			}
		}
		if at, ok := b.Find(lsn(100), "s/2"); ok {
			t.Errorf("found in another lineage, at %d", at)
		}
	})
	for _, tt := range []struct {
		name             string
		had              string // its lineage, as a replica
		exact            bool
		next             string
		token            string
		includes, beyond bool
	}{
		{"promoted", "s/1", false, "s/2", "s/1", true, false},
		{"promoted, exactly", "s/1", true, "s/2", "s/1", true, false},
		{"promoted past a timeline", "s/1", true, "s/3", "s/1", true, false},
		{"its control file may have been late", "s/1", false, "s/3", "s/1", false, false},
		{"another system", "s/1", false, "t/2", "s/1", false, false},
		{"another token", "s/1", true, "s/2", "s/0", false, false},
		{"no lineage", "", false, "s/2", "", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b evidence.Book
			q := sample(10, 500)
			q.Lineage = "s/1"
			b.Sampled(q)
			p := sighting(11, "R", 400)
			p.Lineage, p.Exact = tt.had, tt.exact
			b.Sighted(p)
			// Promoted, and still asked as a replica, it has no position of one.
			b.Sighted(evidence.Sighting{Asked: 12, Answered: 12, Server: "R", Lineage: tt.next, NeedsLineage: true, Exact: true})
			if change := b.Meet("R", tt.next, 20); change != evidence.NewPrimary {
				t.Fatalf("change %d", change)
			}
			if _, ok := b.Find(lsn(400), tt.token); ok {
				t.Error("found before a sample")
			}
			q = sample(21, 450)
			q.Opened, q.Server, q.Lineage = 20, "R", tt.next
			b.Sampled(q)
			for p, want := range map[uint64]bool{400: tt.includes, 401: tt.beyond} {
				if at, ok := b.Find(lsn(p), tt.token); ok != want || ok && at != 21 {
					t.Errorf("Find(%d) = %d, %v, want %v", p, at, ok, want)
				}
			}
		})
	}
}

func TestAfter(t *testing.T) {
	var b evidence.Book
	b.Sampled(sample(10, 100))
	b.Sampled(sample(20, 200))
	for m, want := range map[evidence.Moment]evidence.Moment{0: 10, 9: 10, 10: 20, 19: 20, 20: 0} {
		q, ok := b.After(m)
		if ok != (want != 0) || q.At != want {
			t.Errorf("After(%d) = %d, %v", m, q.At, ok)
		}
	}
}

// What the pace of sampling goes by.
func TestProgress(t *testing.T) {
	var b evidence.Book
	epoch := b.Epoch()
	b.Sampled(sample(10, 100))
	if b.Epoch() == epoch || b.Primary() != "A" || b.Lineage() != "s/1" || b.Unconfirmed() {
		t.Errorf("epoch %d, primary %s, lineage %s", b.Epoch(), b.Primary(), b.Lineage())
	}
	p := sighting(11, "R", 100)
	p.Answered = 14
	s := b.Sighted(p)
	if !b.Unconfirmed() || b.Contains(s) || !b.OfLineage(s) {
		t.Error("a server that was just met waits for a sample")
	}
	b.Sampled(sample(20, 100))
	if b.Unconfirmed() || !b.Contains(s) {
		t.Error("the sample verifies it")
	}
	b.Sampled(sample(30, 200))
	if b.Contains(s) {
		t.Error("it does not have the newest sample")
	}
	p = sighting(31, "R", 200)
	p.Answered = 37
	b.Sighted(p)
	if b.Lag(s) != 7 {
		t.Errorf("lag %d, want 7", b.Lag(s))
	}
	p = sighting(41, "R", 200)
	p.Lineage = "s/2"
	if b.Sighted(p); b.OfLineage(s) {
		t.Error("another lineage is not told")
	}
}

// Proofs are read, samples and sightings entered, by any number of goroutines.
func TestConcurrentUse(t *testing.T) {
	var (
		b   evidence.Book
		all sync.WaitGroup
	)
	const n = 2000
	for g := range 4 {
		all.Go(func() {
			for i := range n {
				at := evidence.Moment(10*i + g + 1)
				name := strconv.Itoa(i % 3)
				switch {
				case g == 0:
					b.Sampled(sample(at, uint64(100+i)))
				case i%100 == 99 && g == 1:
					b.Forget()
				default:
					s := b.Sighted(sighting(at, name, uint64(100+i)))
					if p := s.Proof(); p != nil && p.Whole > p.Synced {
						t.Error("torn")
					}
					b.Find(position.FromLSN(uint64(i)), "s/1")
					b.After(at)
					b.Contains(s)
					b.Lag(s)
					b.Unconfirmed()
				}
			}
		})
	}
	all.Wait()
}
