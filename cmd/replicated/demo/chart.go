package demo

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sqlreplicated/replicated"
)

// bucket is the time that one character of a chart stands for.
const bucket = 200 * time.Millisecond

// chart draws the reads that each node answers over time, and what happens.
type chart struct {
	d       *demo
	ctx     context.Context
	began   time.Time
	victim  int           // the node on which the chapter looks
	verdict func() string // the line below the chart
	region  *region

	series [3][]int // reads per bucket
	seen   [3]int   // reads of each node when the last bucket ended
	events []chartEvent
}

type chartEvent struct {
	at   time.Time
	text string
	err  error
}

func (d *demo) newChart(ctx context.Context, victim int) *chart {
	return &chart{d: d, ctx: ctx, began: time.Now(), victim: victim, seen: d.heard.readsOf(), region: d.screen.region()}
}

// event notes what the demo has done, and what came of it.
func (c *chart) event(at time.Time, text string, err error) {
	c.events = append(c.events, chartEvent{at, text, err})
}

// wait draws the chart until the condition holds, or the time is up. It tells
// whether the condition holds.
func (c *chart) wait(limit time.Duration, until func() bool) (bool, error) {
	for deadline := time.Now().Add(limit); ; {
		if until() {
			return true, nil
		}
		left := time.Until(deadline)
		if left <= 0 {
			return false, nil
		}
		if err := pause(c.ctx, min(frame, left)); err != nil {
			return false, err
		}
		c.sample(time.Now())
		c.region.draw(c.lines()...)
	}
}

// start starts a server, and draws the chart meanwhile.
func (c *chart) start(n server) error {
	ended := make(chan error, 1)
	go func() { ended <- n.start() }()
	var err error
	up, werr := c.wait(2*patience, func() bool {
		select {
		case err = <-ended:
			return true
		default:
			return false
		}
	})
	switch {
	case werr != nil:
		return werr
	case !up:
		return fmt.Errorf("a killed server has not come back within %v", 2*patience)
	}
	return err
}

// sample ends the buckets whose time is over. What was read in a pause of the
// drawing is spread over the buckets that the pause took.
func (c *chart) sample(at time.Time) {
	due := int(at.Sub(c.began)/bucket) - len(c.series[0])
	if due <= 0 {
		return
	}
	now := c.d.heard.readsOf()
	for i := range c.series {
		n := now[i] - c.seen[i]
		for k := range due {
			c.series[i] = append(c.series[i], n*(k+1)/due-n*k/due)
		}
	}
	c.seen = now
}

// breaker returns when the victim's breaker went to a state, after a time; the
// zero time if it did not.
func (c *chart) breaker(after time.Time, state replicated.BreakerState) time.Time {
	for _, s := range c.d.heard.changes(after) {
		if s.Node == nodeNames[c.victim] && s.State == state {
			return s.at
		}
	}
	return time.Time{}
}

// chartColumns is how many buckets are drawn.
const chartColumns = 50

// lines returns the chart as it is now.
func (c *chart) lines() []string {
	s := c.d.screen
	top := 1
	for _, series := range c.series {
		top = max(top, slices.Max(append([]int{0}, series[max(0, len(series)-chartColumns):]...)))
	}
	head := fmt.Sprintf("  one character = the reads of %v, %d at most", bucket, top)
	lines := []string{s.paint(dim, head)}
	for i, series := range c.series {
		st := cyan
		if i == 0 {
			st = yellow
		}
		lines = append(lines, "  "+s.left(nodeNames[i], 10)+" "+s.sparkline(series, chartColumns, top, st)+"  "+c.state(i))
	}
	lines = append(lines, "  "+c.verdict(), "")
	return append(lines, c.story()...)
}

// state tells whether a node is in use, by the events.
func (c *chart) state(node int) string {
	s := c.d.screen
	if node == 0 {
		return ""
	}
	state := replicated.BreakerClosed
	for _, ch := range c.d.heard.changes(c.began) {
		if ch.Node == nodeNames[node] {
			state = ch.State
		}
	}
	if state == replicated.BreakerClosed {
		return s.paint(green, "in use")
	}
	return s.paint(red, "taken out")
}

// story is what has happened, in order, with the errors below.
func (c *chart) story() []string {
	s := c.d.screen
	events := slices.Clone(c.events)
	for _, ch := range c.d.heard.changes(c.began) {
		events = append(events, chartEvent{ch.at, fmt.Sprintf("breaker of %s: %s", ch.Node, ch.State), ch.Err})
	}
	slices.SortStableFunc(events, func(a, b chartEvent) int { return a.at.Compare(b.at) })
	var lines []string
	for _, e := range events {
		lines = append(lines, fmt.Sprintf("  %6.2f s  %s", e.at.Sub(c.began).Seconds(), e.text))
		if e.err != nil {
			for _, l := range wrap(e.err.Error(), screenWidth-12) {
				lines = append(lines, s.paint(dim, "            "+l))
			}
		}
	}
	return lines
}

// end writes the chart as it stays.
func (c *chart) end() { c.region.end(c.lines()...) }
