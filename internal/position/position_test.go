package position_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/sqlreplicated/replicated/internal/position"
)

// must is for texts that the test itself has written.
func must(p position.Position, err error) position.Position {
	if err != nil {
		panic(err)
	}
	return p
}

func lsn(s string) position.Position      { return must(position.ParseLSN(s)) }
func gtidSet(s string) position.Position  { return must(position.ParseGTIDSet(s)) }
func gtidList(s string) position.Position { return must(position.ParseGTIDList(s)) }
func primary(pos, state string, id uint32) position.Position {
	return must(position.MariaDBPrimary(pos, state, id))
}

const (
	uuidA     = "11111111-1111-1111-1111-111111111111"
	uuidNearA = "11111111-1111-1111-8888-111111111111"
	uuidB     = "22222222-2222-2222-2222-222222222222"
	uuidC     = "cccccccc-cccc-cccc-cccc-cccccccccccc"
)

// samples has a few positions of each kind, none of them zero or empty, which
// differ among each other.
func samples() map[position.Kind][]position.Position {
	return map[position.Kind][]position.Position{
		position.LSN:     {lsn("0/1"), lsn("16/B374D848"), lsn("FFFFFFFF/FFFFFFFF")},
		position.GTIDSet: {gtidSet(uuidA + ":1-5"), gtidSet(uuidA + ":1-5:7"), gtidSet(uuidA + ":1-5:x:1," + uuidB + ":3")},
		position.GTIDList: {
			gtidList("0-1-5"), gtidList("0-1-6"), gtidList("0-2-7,1-1-1"),
			primary("0-1-7", "0-1-7", 1), primary("0-1-7", "0-1-7,0-2-3", 1), primary("0-1-7", "0-1-7", 2),
		},
		position.File: {
			position.FilePosition(uuidA, "binlog.000001", 4), position.FilePosition(uuidA, "binlog.000001", 120),
			position.FilePosition(uuidA, "binlog.000002", 4), position.FilePosition(uuidB, "binlog.000002", 4),
			position.FilePosition(uuidA, "other.000002", 4),
		},
		position.Beat: {position.BeatPosition(1, 0), position.BeatPosition(1, 7), position.BeatPosition(2, 7)},
	}
}

func empties() map[position.Kind]position.Position {
	return map[position.Kind]position.Position{
		position.LSN:      lsn("0/0"),
		position.GTIDSet:  gtidSet(""),
		position.GTIDList: gtidList(""),
		position.File:     position.FilePosition(uuidA, "", 0),
		position.Beat:     position.BeatPosition(0, 3),
	}
}

func TestZeroAndEmptyPositionsProveNothing(t *testing.T) {
	nothing := []position.Position{{}}
	for _, p := range empties() {
		nothing = append(nothing, p)
	}
	for _, p := range nothing {
		for _, list := range samples() {
			for _, q := range append(list, nothing...) {
				for _, pair := range [][2]position.Position{{p, q}, {q, p}} {
					if pair[0].Contains(pair[1]) || pair[0].Exceeds(pair[1]) || pair[0].Includes(pair[1]) {
						t.Errorf("%v %q and %v %q: contains, exceeds or includes", pair[0].Kind(), pair[0], pair[1].Kind(), pair[1])
					}
				}
			}
		}
	}
}

func TestZeroIsNotEmpty(t *testing.T) {
	var zero position.Position
	if !zero.IsZero() || zero.IsEmpty() || zero.Kind() != position.None || zero.String() != "" || zero.LSN() != 0 {
		t.Error("the zero Position is not what it says")
	}
	if !zero.Token().IsZero() || !zero.Merge(zero).IsZero() || !zero.Equal(zero) {
		t.Error("the zero Position does not stay zero")
	}
	for kind, p := range empties() {
		if p.IsZero() || !p.IsEmpty() || p.Kind() != kind || p.Equal(zero) || zero.Equal(p) || !p.Equal(p) {
			t.Errorf("%v: an empty position is not what it says", kind)
		}
	}
	for kind, list := range samples() {
		for _, p := range list {
			if p.IsZero() || p.IsEmpty() || p.Kind() != kind || p.String() == "" {
				t.Errorf("%v %q is not what it says", kind, p)
			}
		}
	}
}

func TestKindStrings(t *testing.T) {
	want := []string{"none", "lsn", "gtid set", "gtid list", "file", "beat", "nowhere", "kind(7)"}
	for i, text := range want {
		if got := position.Kind(i).String(); got != text {
			t.Errorf("Kind(%d) is %q, want %q", i, got, text)
		}
	}
}

func TestKindsDoNotMix(t *testing.T) {
	all := samples()
	for pk, ps := range all {
		for qk, qs := range all {
			if pk == qk {
				continue
			}
			p, q := ps[0], qs[0]
			if p.Contains(q) || p.Includes(q) || p.Equal(q) || p.Merge(q).Kind() != position.Nowhere {
				t.Errorf("%v and %v are compared", pk, qk)
			}
			if !p.Exceeds(q) {
				t.Errorf("%v does not exceed %v: a replica whose position is in other terms is not the primary's", pk, qk)
			}
		}
	}
}

// TestLaws checks what holds for all positions of a kind, whatever they mean.
func TestLaws(t *testing.T) {
	for kind, generate := range generators {
		t.Run(kind.String(), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(1, uint64(kind)))
			for range 3000 {
				checkLaws(t, generate(rnd), generate(rnd), generate(rnd))
				if t.Failed() {
					return
				}
			}
		})
	}
	for _, list := range samples() {
		for _, p := range list {
			for _, q := range list {
				for _, r := range list {
					checkLaws(t, p, q, r)
				}
			}
		}
	}
}

func checkLaws(t *testing.T, p, q, r position.Position) {
	t.Helper()
	fail := func(law string) { t.Errorf("%s: p %q, q %q, r %q", law, p, q, r) }
	if !p.Includes(p) || p.Exceeds(p) || !p.Equal(p) {
		fail("a position includes itself and does not exceed itself")
	}
	if p.Includes(q) && q.Includes(r) && !p.Includes(r) {
		fail("includes is transitive")
	}
	if p.Equal(q) != (string(p.AppendBinary(nil)) == string(q.AppendBinary(nil))) {
		fail("equal positions have equal encodings")
	}
	if p.Equal(q) != q.Equal(p) || p.Equal(q) && !p.Includes(q) {
		fail("equal is symmetric and means the same history")
	}
	if !p.Includes(p.Token()) || !p.Token().Token().Equal(p.Token()) {
		fail("a position includes its token")
	}
	if p.Kind() != position.GTIDList && p.Contains(q) != p.Includes(q) {
		fail("contains is includes")
	}
	if p.Contains(q) && p.Exceeds(q) != !q.Includes(p) && p.Kind() != position.GTIDSet && p.Kind() != position.GTIDList {
		fail("in a total order what is more exceeds")
	}
	if q.Includes(p) && p.Exceeds(q) {
		fail("what is included does not exceed")
	}
	m := p.Merge(q)
	if !m.Equal(q.Merge(p)) || !p.Merge(p).Equal(p.Token()) {
		fail("merge is commutative and idempotent")
	}
	if a, b := m.Merge(r), p.Merge(q.Merge(r)); !a.Equal(b) {
		fail(fmt.Sprintf("merge is associative: %q and %q", a, b))
	}
	if (r.Includes(p.Token()) && r.Includes(q.Token())) != r.Includes(m) {
		fail(fmt.Sprintf("the merger %q is the least that includes both", m))
	}
	if m.Kind() != position.Nowhere && (!m.Includes(p.Token()) || !m.Includes(q.Token())) {
		fail(fmt.Sprintf("the merger %q includes both", m))
	}
}

func TestNothingReachesNowhere(t *testing.T) {
	nowhere := position.FilePosition(uuidA, "binlog.000001", 4).Merge(position.FilePosition(uuidB, "binlog.000002", 4))
	if nowhere.Kind() != position.Nowhere || nowhere.IsZero() || nowhere.IsEmpty() || nowhere.String() != "nowhere" {
		t.Fatalf("the merger of two logs is %v %q", nowhere.Kind(), nowhere)
	}
	all := []position.Position{{}, nowhere}
	for kind, list := range samples() {
		all = append(append(all, list...), empties()[kind])
	}
	for _, p := range all {
		if p.Contains(nowhere) || nowhere.Contains(p) || p.Includes(nowhere) || nowhere.Includes(p) {
			t.Errorf("%v %q has to do with nowhere", p.Kind(), p)
		}
		if !p.Merge(nowhere).Equal(nowhere) || !nowhere.Merge(p).Equal(nowhere) {
			t.Errorf("nowhere gets lost in the merger with %v %q", p.Kind(), p)
		}
	}
	if !nowhere.Token().Equal(nowhere) {
		t.Error("its token is somewhere")
	}
}

func TestMergeWithNothingIsTheToken(t *testing.T) {
	for kind, list := range samples() {
		empty := empties()[kind]
		for _, p := range list {
			for _, nothing := range []position.Position{{}, empty} {
				if !p.Merge(nothing).Equal(p.Token()) || !nothing.Merge(p).Equal(p.Token()) {
					t.Errorf("%v %q merged with nothing is something else", kind, p)
				}
			}
		}
		if !empty.Merge(position.Position{}).Equal(empty) || !(position.Position{}).Merge(empty).Equal(empty) || !empty.Merge(empty).Equal(empty) {
			t.Errorf("%v: empty merged with nothing is not empty", kind)
		}
	}
}

// generators make random positions that have something to do with each other.
var generators = map[position.Kind]func(*rand.Rand) position.Position{
	position.LSN: func(rnd *rand.Rand) position.Position { return position.FromLSN(1 + rnd.Uint64N(5)) },
	position.GTIDSet: func(rnd *rand.Rand) position.Position {
		return gtidSet(randomSet(rnd).text(rnd))
	},
	position.GTIDList: func(rnd *rand.Rand) position.Position {
		last, logged := randomList(rnd)
		if rnd.IntN(2) == 0 {
			return gtidList(last)
		}
		return primary(last, logged, 1+rnd.Uint32N(3))
	},
	position.File: func(rnd *rand.Rand) position.Position {
		source := []string{uuidA, uuidB}[rnd.IntN(2)*rnd.IntN(2)]
		return position.FilePosition(source, fmt.Sprintf("binlog.%06d", 1+rnd.IntN(2)), 4+rnd.Uint64N(3))
	},
	position.Beat: func(rnd *rand.Rand) position.Position {
		return position.BeatPosition(1+uint64(rnd.IntN(2)*rnd.IntN(2)), rnd.Uint64N(4))
	},
}
