package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqlreplicated/replicated"
)

// withoutPrimary is the fourth chapter: the primary is killed and comes back.
// Meanwhile replicas serve the reads that need no newer data than they have.
func (d *demo) withoutPrimary(ctx context.Context) error {
	d.screen.chapter(4, "The primary is killed, and comes back")
	if took := time.Since(d.began); took > lateHour {
		d.screen.line(fmt.Sprintf("  Left out: %.0f s have passed, and the demo ends within 45.", took.Seconds()))
		d.promises.skip("Reads go on without the primary", "left out for want of time")
		return nil
	}
	d.screen.line(fmt.Sprintf("  %d people read all the time, each in a session without writes.", readers))
	d.screen.line("")
	p := &primaryOutage{chart: d.newChart(ctx, 0), load: d.startLoad(ctx, false), teller: driverTeller{d.observed, d.bank}}
	p.chart.verdict = p.load.verdict
	err := p.run(ctx)
	p.load.end()
	p.chart.end()
	if err != nil {
		return err
	}
	failed, cause := p.load.failures()
	reads := int(p.load.reads.Load())
	d.promises.because("Reads go on without the primary", failed == 0 && reads > 0, outOf(failed, reads)+" failed", cause)
	figure := fmt.Sprintf("paid in %d, read %d", p.paidBefore, p.seen)
	if errors.Is(p.seenErr, replicated.ErrNotFresh) {
		figure = "refused with ErrNotFresh"
	} else if p.seenErr != nil {
		figure = "refused with an error"
	}
	honest := errors.Is(p.seenErr, replicated.ErrNotFresh) || p.seenErr == nil && p.seen == p.paidBefore
	d.promises.because("Nobody sees less than he has written", honest, figure, p.seenErr)
	ok := p.downErr != nil && p.upErr == nil && p.final == p.paidAfter
	d.promises.because("A write is done once, or fails", ok, fmt.Sprintf("paid in %d, in the account %d", p.paidAfter, p.final), p.upErr)
	return nil
}

// primaryOutage is what happens around the primary's death, in the account
// primaryAcct.
type primaryOutage struct {
	chart  *chart
	load   *load
	teller teller

	paidBefore int   // acknowledged before the death, by a user who then looks
	seen       int   // what that user is shown while the primary is down
	seenErr    error // … or told
	downErr    error // of a write while the primary is down
	upErr      error // of a write after its return
	paidAfter  int   // acknowledged in all
	final      int   // in the account in the end
}

func (p *primaryOutage) run(ctx context.Context) error {
	c := p.chart
	if _, err := c.wait(c.d.pace.calm/2, never); err != nil {
		return err
	}
	primary := c.d.servers.nodes()[0]
	user, _ := replicated.WithSession(ctx)
	if err := p.teller.deposit(user, primaryAcct); err != nil {
		return err
	}
	p.paidBefore = 1
	if err := primary.kill(); err != nil {
		return err
	}
	c.event(time.Now(), "primary killed", nil)
	p.seen, p.seenErr = p.teller.balance(user, primaryAcct)
	p.seen -= firstBalance
	c.event(time.Now(), "who has just paid in, reads: "+word(p.seenErr), p.seenErr)
	other, _ := replicated.WithSession(ctx)
	p.downErr = p.teller.deposit(other, primaryAcct)
	c.event(time.Now(), "a write: "+word(p.downErr), p.downErr)
	if _, err := c.wait(c.d.pace.primary, never); err != nil {
		return err
	}

	if err := c.start(primary); err != nil {
		return err
	}
	c.event(time.Now(), "primary started again", nil)
	again, _ := replicated.WithSession(ctx)
	p.upErr = p.teller.deposit(again, primaryAcct)
	p.paidAfter = p.paidBefore
	if p.upErr == nil {
		p.paidAfter++
	}
	c.event(time.Now(), "a write: "+word(p.upErr), p.upErr)
	final, err := p.teller.balance(replicated.WithPrimary(again), primaryAcct)
	if err != nil {
		return err
	}
	p.final = final - firstBalance
	_, err = c.wait(c.d.pace.calm/2, never)
	return err
}

// word says whether a call was done.
func word(err error) string {
	if err == nil {
		return "done"
	}
	return "refused"
}
