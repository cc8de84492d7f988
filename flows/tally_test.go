package flows_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqlreplicated/replicated/flows/app"
)

// tally counts what users of one variant have met.
type tally struct {
	enough        int // stale reads, at which to stop; 0: never
	flows         atomic.Int64
	reads, writes durations

	mu       sync.Mutex
	stale    int
	failures int
	told     []string // the first of both
}

const toldAtMost = 10

func (t *tally) staleRead(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stale++
	t.tellLocked("stale: " + what)
}

func (t *tally) failed(what string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failures++
	t.tellLocked("failed: " + what + ": " + err.Error())
}

func (t *tally) tellLocked(what string) {
	if len(t.told) < toldAtMost {
		t.told = append(t.told, what)
	}
}

func (t *tally) seenEnough() bool {
	stale, _ := t.bad()
	return t.enough > 0 && stale >= t.enough
}

// bad returns how many reads were stale, and how many requests failed.
func (t *tally) bad() (stale, failures int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stale, t.failures
}

// durations are those of requests.
type durations struct {
	mu  sync.Mutex
	all []time.Duration
}

func (d *durations) add(took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, took)
}

func (d *durations) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.all)
}

// quantiles returns the median, and what 99 of 100 stay below.
func (d *durations) quantiles() (median, p99 time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.all) == 0 {
		return 0, 0
	}
	slices.Sort(d.all)
	return d.all[len(d.all)/2], d.all[len(d.all)*99/100]
}

// outcome is a row of the table of results.
type outcome struct {
	name string
	*tally
	app.Stats // of both processes, while the users were there
}

// share is the part of the reads that replicas served.
func (o outcome) share() float64 {
	replica, primary := total(o.Replica), total(o.Primary)
	return float64(replica) / float64(max(replica+primary, 1))
}

func total(m map[string]int64) (n int64) {
	for _, v := range m {
		n += v
	}
	return n
}

// table shows outcomes as Markdown does.
func table(rows []outcome) string {
	var b strings.Builder
	b.WriteString("| variant | flows | writes | reads | stale | failed | on replicas | read p50 | p99 | write p50 | p99 |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, o := range rows {
		stale, failures := o.bad()
		r50, r99 := o.tally.reads.quantiles()
		w50, w99 := o.tally.writes.quantiles()
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %.1f %% | %s | %s | %s | %s |\n", o.name, o.flows.Load(), o.tally.writes.count(),
			o.tally.reads.count(), stale, failures, 100*o.share(), brief(r50), brief(r99), brief(w50), brief(w99))
	}
	return b.String()
}

// details say why reads ran on the primary, what the middleware told of, and what
// went wrong.
func (o outcome) details() string {
	var b strings.Builder
	fmt.Fprintf(&b, "primary: %s; middleware: %s", list(o.Primary), list(o.Events))
	for _, what := range o.told {
		b.WriteString("\n" + what)
	}
	return b.String()
}

func list(m map[string]int64) string {
	words := []string{}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		words = append(words, fmt.Sprintf("%s %d", k, m[k]))
	}
	return strings.Join(append(words, ""), " ")
}

func brief(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}
