package position_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/internal/position"
)

// pairs are positions of which the first contains the second, as a sampler
// compares them.
func pairs() []struct {
	name string
	p, q position.Position
} {
	var holes strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&holes, ":%d-%d", 10*i+1, 10*i+8)
	}
	return []struct {
		name string
		p, q position.Position
	}{
		{"LSN", lsn("16/B374D849"), lsn("16/B374D848")},
		{"GTIDSet", gtidSet(uuidA + ":1-90000001"), gtidSet(uuidA + ":1-90000000")},
		{"GTIDSet/3servers", gtidSet(uuidA + ":1-900:950-999," + uuidB + ":1-70," + uuidC + ":1-5"), gtidSet(uuidA + ":1-900:950," + uuidB + ":1-70," + uuidC + ":1-5")},
		{"GTIDSet/1000holes", gtidSet(uuidA + holes.String()), gtidSet(uuidA + holes.String())},
		{"GTIDList", gtidList("0-1-101"), primary("0-1-100", "0-1-100", 1)},
		{"GTIDList/2domains", gtidList("0-2-106,1-2-20"), primary("0-2-105,1-2-20", "0-1-100,0-2-105,1-1-7,1-2-20", 2)},
		{"File", position.FilePosition(uuidA, "binlog.000002", 4), position.FilePosition(uuidA, "binlog.000001", 4)},
		{"Beat", position.BeatPosition(1, 8), position.BeatPosition(1, 7)},
	}
}

func BenchmarkContains(b *testing.B) {
	for _, pair := range pairs() {
		b.Run(pair.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !pair.p.Contains(pair.q) {
					b.Fatal("not contained")
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	var holes strings.Builder
	for holes.Len() < 1<<20 {
		fmt.Fprintf(&holes, ":%d", 2000000-holes.Len())
	}
	for _, bench := range []struct {
		name, text string
		parse      func(string) (position.Position, error)
	}{
		{"LSN", "16/B374D848", position.ParseLSN},
		{"GTIDSet", uuidA + ":1-90000001," + uuidB + ":1-70", position.ParseGTIDSet},
		{"GTIDSet/1MiB", uuidA + holes.String(), position.ParseGTIDSet},
		{"GTIDList", "0-1-101,1-1-20", position.ParseGTIDList},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(bench.text)))
			for b.Loop() {
				if _, err := bench.parse(bench.text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A sampler compares every node many times a second.
func TestComparisonsDoNotAllocate(t *testing.T) {
	for _, pair := range pairs() {
		if n := testing.AllocsPerRun(100, func() {
			if !pair.p.Contains(pair.q) || pair.q.Exceeds(pair.p) || !pair.p.Contains(pair.p) && pair.q.Includes(pair.p) {
				t.Errorf("%s: not contained", pair.name)
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations", pair.name, n)
		}
	}
}
