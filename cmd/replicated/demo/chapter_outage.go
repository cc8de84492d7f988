package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/sqlreplicated/replicated"
)

// patience is how long the demo waits for something that should have happened.
const patience = 8 * time.Second

// outage is the third chapter: a replica is killed under load and comes back.
func (d *demo) outage(ctx context.Context) error {
	d.screen.chapter(3, "A replica is killed under load, and comes back")
	d.screen.line(fmt.Sprintf("  %d people read all the time, one pays in, and %s dies.", readers, nodeNames[1]))
	d.screen.line("")
	o := &outageRun{chart: d.newChart(ctx, 1), load: d.startLoad(ctx, true), victim: d.servers.nodes()[1]}
	o.chart.verdict = o.load.verdict
	err := o.run()
	o.load.end()
	o.chart.end()
	if err != nil {
		return err
	}
	failed, cause := o.load.failures()
	reads := int(o.load.reads.Load())
	slowest := time.Duration(o.load.slowest.Load())
	d.promises.because("A killed replica costs nobody a read", failed == 0 && reads > 0,
		fmt.Sprintf("%s failed, slowest %d ms", outOf(failed, reads), slowest.Milliseconds()), cause)
	figure := "not taken out"
	switch {
	case o.returned:
		figure = fmt.Sprintf("out in %d ms, back in %.1f s", o.out.Milliseconds(), o.in.Seconds())
	case o.out > 0:
		figure = fmt.Sprintf("out in %d ms, not back", o.out.Milliseconds())
	}
	d.promises.add("It is taken out, and taken back", o.returned, figure)
	return nil
}

// outageRun is what happens to the victim.
type outageRun struct {
	chart  *chart
	load   *load
	victim server

	out      time.Duration // from its death to the opening of its breaker
	in       time.Duration // from its start to the closing
	returned bool          // it has served reads after that
}

// run kills the victim and brings it back. What does not happen in time is left
// out: the promises tell.
func (o *outageRun) run() error {
	c := o.chart
	if _, err := c.wait(c.d.pace.calm, never); err != nil {
		return err
	}
	killed := time.Now()
	if err := o.victim.kill(); err != nil {
		return err
	}
	c.event(killed, nodeNames[1]+" killed", nil)
	opened, err := c.wait(patience, func() bool { return !c.breaker(killed, replicated.BreakerOpen).IsZero() })
	if err != nil {
		return err
	}
	if opened {
		o.out = c.breaker(killed, replicated.BreakerOpen).Sub(killed)
	}
	if _, err := c.wait(c.d.pace.outage, never); err != nil {
		return err
	}

	starting := time.Now()
	if err := c.start(o.victim); err != nil {
		return err
	}
	up := time.Now()
	c.event(up, nodeNames[1]+" started again", nil)
	if !opened {
		return nil
	}
	closed, err := c.wait(patience, func() bool { return !c.breaker(starting, replicated.BreakerClosed).IsZero() })
	if err != nil || !closed {
		return err
	}
	o.in = max(0, c.breaker(starting, replicated.BreakerClosed).Sub(up))
	const some = 25 // reads by which one sees that it is in use again
	enough := c.d.heard.readsOf()[1] + some
	if o.returned, err = c.wait(patience, func() bool { return c.d.heard.readsOf()[1] >= enough }); err != nil {
		return err
	}
	_, err = c.wait(c.d.pace.calm, never)
	return err
}

func never() bool { return false }
