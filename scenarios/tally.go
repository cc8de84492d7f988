package scenarios

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// tally counts what comes of a load, in phases: each command of a script that takes
// a while is one. It is safe for concurrent use.
type tally struct {
	mu    sync.Mutex
	phase counts // the present one
	total counts // of the phases that have ended
}

// counts are what happened in some time.
type counts struct {
	began time.Time

	reads, writes []time.Duration // of those that succeeded
	worst         slowRead        // also of those that failed
	nodes         map[string]int  // reads that ran there
	events        map[event]int
	errors        map[string]int // by kind of statement and text
}

// slowRead is the slowest of several reads.
type slowRead struct {
	took time.Duration
	kind string
}

// event is something that is counted, beside reads and writes that succeed. Its
// text is its name in scripts.
type event string

const (
	// failedReads have returned an error before their first row.
	failedReads event = "failed reads"
	// refusedReads have returned ErrNotFresh: no node that could be reached was known
	// to have what they were entitled to.
	refusedReads event = "refused reads"
	// brokenRows have ended in an error behind their first row.
	brokenRows event = "broken rows"
	// brokenTransactions are read-only ones that have been begun and have failed: what
	// they see is nowhere but on the node where they began.
	brokenTransactions event = "broken transactions"
	// wrongAnswers have returned without error, and with other rows than there are.
	wrongAnswers event = "wrong answers"
	// failedWrites have certainly not been done, by what was returned.
	failedWrites event = "failed writes"
	// unknownWrites may have been done.
	unknownWrites event = "unknown writes"
)

func newTally() *tally { return &tally{phase: newCounts(), total: newCounts()} }

func newCounts() counts {
	return counts{began: time.Now(), nodes: make(map[string]int), events: make(map[event]int), errors: make(map[string]int)}
}

// read counts a read that returned its rows.
func (t *tally) read(kind string, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.phase.reads = append(t.phase.reads, took)
	t.phase.slow(slowRead{took, kind})
}

// write counts a write that was acknowledged.
func (t *tally) write(took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.phase.writes = append(t.phase.writes, took)
}

// on counts a read that a node has run.
func (t *tally) on(node string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.phase.nodes[node]++
}

// event counts what a statement ended in. took counts among the reads' times if it
// is not 0.
func (t *tally) event(e event, kind string, took time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.phase.events[e]++
	t.phase.slow(slowRead{took, kind})
	if err != nil {
		t.phase.errors[fmt.Sprintf("%s%s%s: %s", e, ofEvent, kind, plain(err))]++
	}
}

// ofEvent is between an event's name and its errors.
const ofEvent = ": "

// ownAddress is our side's address in an error of package net, which is another one
// each time.
var ownAddress = regexp.MustCompile(`127\.0\.0\.1:\d+->`)

func plain(err error) string { return ownAddress.ReplaceAllString(err.Error(), "") }

// next ends the phase and returns what happened in it.
func (t *tally) next() counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	ended := t.phase
	t.phase = newCounts()
	t.total.add(&ended)
	return ended
}

// whole returns what has happened since the beginning.
func (t *tally) whole() counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := newCounts()
	all.add(&t.total)
	all.add(&t.phase)
	return all
}

// why tells the errors of an event, if name is an event's, so that whoever reads no
// more than the test's message knows what went wrong.
func (t *tally) why(name string) string {
	var b strings.Builder
	errors := t.whole().errors
	for _, text := range slices.Sorted(maps.Keys(errors)) {
		if strings.HasPrefix(text, name+ofEvent) {
			fmt.Fprintf(&b, "\n  %d × %s", errors[text], text)
		}
	}
	return b.String()
}

// served returns how many reads a node has run since the beginning.
func (t *tally) served(node string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total.nodes[node] + t.phase.nodes[node]
}

func (c *counts) slow(r slowRead) {
	if r.took > c.worst.took {
		c.worst = r
	}
}

func (c *counts) add(more *counts) {
	c.reads = append(c.reads, more.reads...)
	c.writes = append(c.writes, more.writes...)
	c.slow(more.worst)
	for k, n := range more.nodes {
		c.nodes[k] += n
	}
	for k, n := range more.events {
		c.events[k] += n
	}
	for k, n := range more.errors {
		c.errors[k] += n
	}
}

// empty reports whether nothing has happened.
func (c *counts) empty() bool { return len(c.reads)+len(c.writes)+len(c.events) == 0 }

// String tells the counts in a few lines.
func (c *counts) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "reads: %d, %s", len(c.reads), times(c.reads))
	if c.worst.took > 0 {
		fmt.Fprintf(&b, ", worst %s (%s)", round(c.worst.took), c.worst.kind)
	}
	for _, node := range slices.Sorted(maps.Keys(c.nodes)) {
		fmt.Fprintf(&b, ", %d on %s", c.nodes[node], node)
	}
	fmt.Fprintf(&b, "\nwrites: %d, %s", len(c.writes), times(c.writes))
	if len(c.events) > 0 {
		b.WriteString("\n")
	}
	for i, e := range slices.Sorted(maps.Keys(c.events)) {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s: %d", e, c.events[e])
	}
	const most = 8
	texts := slices.SortedFunc(maps.Keys(c.errors), func(x, y string) int {
		return cmp.Or(c.errors[y]-c.errors[x], strings.Compare(x, y))
	})
	for i, text := range texts {
		if i == most {
			fmt.Fprintf(&b, "\n  … and %d more kinds of errors", len(texts)-most)
			break
		}
		fmt.Fprintf(&b, "\n  %d × %s", c.errors[text], text)
	}
	return b.String()
}

// times tells how long things took.
func times(d []time.Duration) string {
	if len(d) == 0 {
		return "no times"
	}
	return fmt.Sprintf("p50 %s p99 %s max %s", round(quantile(d, 0.5)), round(quantile(d, 0.99)), round(quantile(d, 1)))
}

// quantile returns the time that the part q of them did not exceed, 0 of none.
func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(d))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func round(d time.Duration) time.Duration {
	if d < 10*time.Millisecond {
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Millisecond)
}
