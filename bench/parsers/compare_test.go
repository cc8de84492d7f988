package parsers_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// BenchmarkShort measures statements as ORMs send them.
func BenchmarkShort(b *testing.B) { compare(b, shortStatements) }

// BenchmarkLong measures a read of 10 KiB and a write of 1 MiB.
func BenchmarkLong(b *testing.B) { compare(b, longStatements) }

// compare measures each statement with the classifier and with the parsers of its
// dialect. "cpu-ns/op" is processor time, that of the garbage collector included:
// unlike ns/op, it is not longer where other programs want the processor as well.
// A parser's line tells in "x-faster" how many times as much of it the parser takes
// as the classifier does.
func compare(b *testing.B, statements []statement) {
	for _, s := range statements {
		prefix := fmt.Sprintf("dialect=%v/statement=%s/bytes=%d/parser=", s.dialect, s.name, len(s.sql))
		b.Run(prefix+"classify", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(s.sql)))
			start := cpuTime()
			for b.Loop() {
				classify.Classify(s.dialect, s.sql)
			}
			b.ReportMetric(float64(cpuTime()-start)/float64(b.N), "cpu-ns/op")
		})
		for _, c := range competitors {
			if c.dialect != s.dialect {
				continue
			}
			b.Run(prefix+c.name, func(b *testing.B) {
				p := c.open(b)
				b.ReportAllocs()
				b.SetBytes(int64(len(s.sql)))
				// The classifier is measured just before and just after, whatever
				// -count and -bench say: a processor is not always as fast.
				before := classifierTime(s)
				start := cpuTime()
				for b.Loop() {
					if err := p.parse(s.sql); err != nil {
						b.Fatal(err)
					}
				}
				theirs := float64(cpuTime()-start) / float64(b.N)
				ours := (before + classifierTime(s)) / 2
				b.ReportMetric(theirs, "cpu-ns/op")
				b.ReportMetric(theirs/ours, "x-faster")
			})
		}
	}
}

// classifierTime returns how many nanoseconds of processor time the classifier
// takes for the statement, as the mean of 20 ms.
func classifierTime(s statement) float64 {
	const atLeast = 20 * time.Millisecond
	// Looking at the clock must not count.
	batch := 1 + 1_000_000/len(s.sql)
	n := 0
	start := cpuTime()
	for {
		for range batch {
			classify.Classify(s.dialect, s.sql)
		}
		n += batch
		if d := cpuTime() - start; d >= atLeast {
			return float64(d) / float64(n)
		}
	}
}

// Like is compared with like: the parsers understand every statement, and the
// classifier comes to the same decision as their trees allow. One that gives up
// early would look fast.
func TestDecisionsAgree(t *testing.T) {
	for _, s := range slices.Concat(shortStatements, longStatements) {
		t.Run(fmt.Sprintf("%v/%s", s.dialect, s.name), func(t *testing.T) {
			v := classify.Classify(s.dialect, s.sql)
			if v.Replica() != s.replica || v.Class == classify.Unknown {
				t.Errorf("classified as %v (%s), want replica=%t", v.Class, v.Reason, s.replica)
			}
			for _, c := range competitors {
				if c.dialect != s.dialect {
					continue
				}
				p := c.open(t)
				if err := p.parse(s.sql); err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
				if got, err := p.reads(s.sql); got != s.replica || err != nil {
					t.Errorf("%s: read=%t, %v, want read=%t", c.name, got, err, s.replica)
				}
			}
		})
	}
}

func TestStatementsHaveTheLengthTheyClaim(t *testing.T) {
	for _, s := range shortStatements {
		if n := len(s.sql); n < 80 || n > 300 {
			t.Errorf("%v/%s has %d bytes, want 80 to 300", s.dialect, s.name, n)
		}
	}
	for _, s := range longStatements {
		if n := len(s.sql); n < 10<<10 || s.name == "insert-rows" && n < 1<<20 {
			t.Errorf("%v/%s has %d bytes, want 10 KiB for keys, 1 MiB for rows", s.dialect, s.name, n)
		}
	}
}
