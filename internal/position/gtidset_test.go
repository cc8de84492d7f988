package position_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/internal/position"
)

func TestParseGTIDSet(t *testing.T) {
	upper := strings.ToUpper(uuidC)
	for _, test := range []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"blanks", " \n\t", ""},
		{"one", uuidA + ":1", uuidA + ":1"},
		{"span", uuidA + ":1-5", uuidA + ":1-5"},
		{"span of one", uuidA + ":5-5", uuidA + ":5"},
		{"as gtid_executed prints it", uuidA + ":1-5,\n" + uuidB + ":1-3:7", uuidA + ":1-5," + uuidB + ":1-3:7"},
		{"blanks everywhere", " " + uuidA + " : 1 - 5 : 7 , " + uuidB + ":1 ", uuidA + ":1-5:7," + uuidB + ":1"},
		{"upper case", upper + ":1", uuidC + ":1"},
		{"out of order", uuidB + ":9:1-3," + uuidA + ":1", uuidA + ":1," + uuidB + ":1-3:9"},
		{"neighbours", uuidA + ":4-5:1-3:6", uuidA + ":1-6"},
		{"overlap", uuidA + ":1-9:3-4:5-12:2", uuidA + ":1-12"},
		{"a server twice", uuidA + ":1," + uuidB + ":1," + uuidA + ":2", uuidA + ":1-2," + uuidB + ":1"},
		{"highest number", uuidA + ":1-9223372036854775806:9223372036854775806", uuidA + ":1-9223372036854775806"},
		{"tag", uuidA + ":tag_1:1-5", uuidA + ":tag_1:1-5"},
		{"tags behind numbers", uuidA + ":1-3:a:1:b:2-3:5", uuidA + ":1-3:a:1:b:2-3:5"},
		{"tags out of order", uuidA + ":b:2:a:1:b:3," + uuidA + ":1", uuidA + ":1:a:1:b:2-3"},
		{"tag in upper case", uuidA + ":Domain_1:117", uuidA + ":domain_1:117"},
		{"longest tag", uuidA + ":_" + strings.Repeat("x9", 15) + "z:1", uuidA + ":_" + strings.Repeat("x9", 15) + "z:1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := position.ParseGTIDSet(test.text)
			if err != nil {
				t.Fatal(err)
			}
			if p.String() != test.want {
				t.Errorf("%q, want %q", p, test.want)
			}
			if again := gtidSet(p.String()); !again.Equal(p) {
				t.Errorf("what it prints is read as %q", again)
			}
		})
	}
}

func TestParseGTIDSetRefuses(t *testing.T) {
	for _, text := range []string{
		"x", ",", uuidA, uuidA + ":", uuidA + ":0", uuidA + ":0-5", uuidA + ":5-4", uuidA + ":1-", uuidA + ":-5", uuidA + ":1--2", uuidA + ":1:",
		uuidA + ":9223372036854775807", uuidA + ":1-9223372036854775807", uuidA + ":18446744073709551617", uuidA + ":99999999999999999999999",
		uuidA + ":010", uuidA + ":0x10", uuidA + ":+1", uuidA + ":1 2", uuidA + ":1,", "," + uuidA + ":1", uuidA + ":1,," + uuidB + ":1", uuidA + ":1;" + uuidB + ":1",
		uuidA[:35] + ":1", uuidA + "0:1", strings.ReplaceAll(uuidA, "-", "") + ":1", "{" + uuidA + "}:1", "g" + uuidA[1:] + ":1",
		uuidA + ":tag", uuidA + ":tag:", uuidA + ":a:b:1", uuidA + ":1:tag", uuidA + ":9a:1", uuidA + ":a-b:1", uuidA + ":é:1", uuidA + ":" + strings.Repeat("x", 33) + ":1",
		uuidA + ":1\x00", "ANONYMOUS",
	} {
		if p, err := position.ParseGTIDSet(text); err == nil || !p.IsZero() {
			t.Errorf("%q is read as %q", text, p)
		}
	}
}

func TestGTIDSetRules(t *testing.T) {
	for _, test := range []struct {
		name, p, q        string
		contains, exceeds bool
	}{
		{"same", uuidA + ":1-5", uuidA + ":1-5", true, false},
		{"more", uuidA + ":1-6", uuidA + ":1-5", true, true},
		{"less", uuidA + ":1-4", uuidA + ":1-5", false, false},
		{"hole", uuidA + ":1-3:5-9", uuidA + ":1-9", false, false},
		{"hole elsewhere", uuidA + ":1-3:5-9", uuidA + ":5-9", true, true},
		{"span over a hole", uuidA + ":1-3:5-9", uuidA + ":3-5", false, true},
		{"own transactions of the replica", uuidA + ":1-5," + uuidB + ":1-2", uuidA + ":1-5", true, false},
		{"a former primary went on", uuidA + ":1-6," + uuidB + ":1-2", uuidA + ":1-5," + uuidB + ":1-9", false, true},
		{"lacks a server", uuidA + ":1-5", uuidA + ":1-5," + uuidB + ":1", false, false},
		{"a tag is another stream", uuidA + ":1-5", uuidA + ":t:1-5", false, true},
		{"lacks a tag", uuidA + ":1-5", uuidA + ":1-5:t:1", false, false},
		{"a tag that the primary lacks", uuidA + ":1-5:t:1", uuidA + ":1-5", true, true},
		{"a tag between two others", uuidA + ":1:b:1", uuidA + ":1:a:1:c:1", false, true},
		{"the last of many tags", uuidA + ":1:a:1:b:1:c:2", uuidA + ":1:a:1:b:1:c:1", false, true},
		{"tags alike", uuidA + ":a:1:b:1:c:1", uuidA + ":1:a:1:b:1:c:1", false, false},
		{"after reset master", uuidA + ":1-40", uuidA + ":1", true, true},
		{"far apart", uuidC + ":1", uuidA + ":1", false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, q := gtidSet(test.p), gtidSet(test.q)
			if got := p.Contains(q); got != test.contains {
				t.Errorf("contains: %t", got)
			}
			if got := p.Exceeds(q); got != test.exceeds {
				t.Errorf("exceeds: %t", got)
			}
		})
	}
}

// model is a set written the plain way: every transaction of it.
type model map[transaction]bool

type transaction struct {
	uuid, tag string
	number    uint64
}

func randomSet(rnd *rand.Rand) model {
	m := model{}
	for len(m) == 0 {
		for _, uuid := range []string{uuidA, uuidNearA, uuidC} {
			for _, tag := range []string{"", "t", "u"} {
				if rnd.IntN(3) != 0 {
					continue
				}
				density := rnd.IntN(10)
				for number := range uint64(8) {
					if rnd.IntN(10) <= density {
						m[transaction{uuid, tag, number + 1}] = true
					}
				}
			}
		}
	}
	return m
}

// text writes the set with its numbers in any order, as spans here and there.
func (m model) text(rnd *rand.Rand) string {
	var parts []string
	for tx := range m {
		last := tx
		for rnd.IntN(3) > 0 && m[transaction{last.uuid, last.tag, last.number + 1}] {
			last.number++
		}
		text := tx.uuid
		if tx.tag != "" {
			text += ":" + tx.tag
		}
		parts = append(parts, fmt.Sprintf("%s:%d-%d", text, tx.number, last.number))
	}
	slices.Sort(parts) // maps are not in the order of rnd
	rnd.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	return strings.Join(parts, ",")
}

func (m model) has(tx transaction) bool { return m[tx] }

func (m model) superset(q model) bool {
	for tx := range q {
		if !m.has(tx) {
			return false
		}
	}
	return true
}

func (m model) exceeds(q model) bool {
	known := map[string]bool{}
	for tx := range q {
		known[tx.uuid] = true
	}
	for tx := range m {
		if known[tx.uuid] && !q.has(tx) {
			return true
		}
	}
	return false
}

func (m model) union(q model) model {
	u := model{}
	for _, set := range []model{m, q} {
		for tx := range set {
			u[tx] = true
		}
	}
	return u
}

func TestGTIDSetsAgainstModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	var contained, exceeding int
	for range 20000 {
		a, b := randomSet(rnd), randomSet(rnd)
		if rnd.IntN(2) == 0 {
			a = a.union(b)
		}
		p, q := gtidSet(a.text(rnd)), gtidSet(b.text(rnd))
		if got, want := p.Contains(q), a.superset(b); got != want {
			t.Fatalf("%q contains %q: %t", p, q, got)
		}
		if got, want := p.Exceeds(q), a.exceeds(b); got != want {
			t.Fatalf("%q exceeds %q: %t", p, q, got)
		}
		if got, want := p.Merge(q), gtidSet(a.union(b).text(rnd)); !got.Equal(want) {
			t.Fatalf("%q and %q merged are %q, want %q", p, q, got, want)
		}
		if !p.Equal(gtidSet(a.text(rnd))) || p.Equal(q) != (a.superset(b) && b.superset(a)) {
			t.Fatalf("%q and %q: equal", p, q)
		}
		if p.Contains(q) {
			contained++
		}
		if p.Exceeds(q) {
			exceeding++
		}
	}
	if contained < 2000 || contained > 18000 || exceeding < 2000 || exceeding > 18000 {
		t.Errorf("the random sets show little: %d contained, %d exceeding", contained, exceeding)
	}
}

// TestGTIDSetsOfHostileLength reads a mebibyte of the shortest parts, in the
// orders that are worst for somebody who inserts them one by one.
func TestGTIDSetsOfHostileLength(t *testing.T) {
	const size = 1 << 20
	for name, next := range map[string]func(i int) string{
		"descending numbers": func(i int) string { return fmt.Sprintf(":%d", 1000001-2*i) },
		"one number":         func(int) string { return ":1" },
		"descending uuids":   func(i int) string { return fmt.Sprintf(",%08x%s:1", 1<<30-i, uuidA[8:]) },
		"one uuid":           func(i int) string { return fmt.Sprintf(",%s:%d", uuidA, 1000001-2*i) },
		"two uuids":          func(i int) string { return fmt.Sprintf(",%s:%d", []string{uuidA, uuidB}[i%2], 1000001-2*i) },
		"tags":               func(i int) string { return fmt.Sprintf(":t%d:1", 1000000-i) },
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			b.WriteString(uuidA + ":1000003")
			count := 0
			for ; b.Len() < size; count++ {
				b.WriteString(next(count))
			}
			p, err := position.ParseGTIDSet(b.String())
			if err != nil {
				t.Fatal(err)
			}
			if !p.Contains(p) || p.Exceeds(p) || !p.Merge(p).Equal(p) {
				t.Error("the set is not itself")
			}
			encoded := p.AppendBinary(nil)
			q, rest, err := position.Decode(encoded)
			if err != nil || len(rest) > 0 || !q.Equal(p) {
				t.Errorf("the encoding of %d bytes is not that of the set: %v", len(encoded), err)
			}
		})
	}
	if _, err := position.ParseGTIDSet(strings.Repeat(" ", 16<<20) + uuidA + ":1"); err == nil {
		t.Error("a text without bounds is read")
	}
}
