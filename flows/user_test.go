package flows_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqlreplicated/replicated/flows/app"
)

// flow is how a user behaves: writes, and reads what is written.
type flow struct {
	reads int
	// span is how long the reads take on average: their pauses are random, between
	// nothing and twice the mean.
	span time.Duration
}

var (
	// usual has the reads of some pages after a write.
	usual = flow{reads: 24, span: 8 * time.Second}
	// hasty has as many writes again in the same time, for what happens to writes.
	hasty = flow{reads: 12, span: 3 * time.Second}
)

const (
	// think is what passes before the first read, as in a page that loads its parts.
	think = 10 * time.Millisecond
	// apart is what lies between writes whose responses are reordered.
	apart = 150 * time.Millisecond
)

func (f flow) pause() time.Duration { return rand.N(2 * f.span / time.Duration(f.reads)) }

// user has a value for each slot that rises with each flow, and knows what has been
// acknowledged.
type user struct {
	visitor
	*tally
	flow
	name string

	sent, acknowledged []acknowledgement // by slot
}

// acknowledgement is the newest value of a slot, and when it came to be.
type acknowledgement struct {
	value atomic.Int64
	at    atomic.Int64 // Unix, in nanoseconds
}

func newUser(v visitor, t *tally, f flow, name string, slots int) *user {
	return &user{visitor: v, tally: t, flow: f, name: name, sent: make([]acknowledgement, slots), acknowledged: make([]acknowledgement, slots)}
}

// run writes a new value to each slot, side by side, and reads.
func (u *user) run(ctx context.Context) {
	var tabs sync.WaitGroup
	posting := ctx
	if len(u.sent) > 1 {
		posting = withLine(ctx, &line{expected: len(u.sent)})
	}
	for slot := range u.sent {
		tabs.Go(func() {
			sleep(ctx, time.Duration(slot)*apart+rand.N(apart/4))
			u.post(posting, slot)
		})
	}
	if len(u.sent) > 1 { // and another one looks on
		tabs.Go(func() { u.look(ctx, 3) })
	}
	tabs.Wait()
	sleep(ctx, think)
	u.look(ctx, u.flow.reads)
	u.tally.flows.Add(1)
}

func (u *user) look(ctx context.Context, n int) {
	for range n {
		if ctx.Err() != nil || u.seenEnough() {
			return
		}
		entitled := u.entitled()
		begin := time.Now()
		found, err := u.read(ctx)
		if err != nil {
			u.failed("read", err)
		} else {
			u.tally.reads.add(time.Since(begin))
			u.compare(found, entitled)
		}
		sleep(ctx, u.pause())
	}
}

// post writes the slot's next value, and sees what it is shown in answer.
func (u *user) post(ctx context.Context, slot int) {
	note := app.Note{Slot: slot, Value: u.sent[slot].value.Add(1)}
	var entitled []int64
	begin := time.Now()
	shown, read, err := u.write(ctx, note, func() {
		u.tally.writes.add(time.Since(begin))
		u.acknowledged[slot].value.Store(note.Value)
		u.acknowledged[slot].at.Store(time.Now().UnixNano())
		entitled = u.entitled()
		begin = time.Now()
	})
	switch {
	case err != nil:
		u.failed("write", err)
	case read:
		u.tally.reads.add(time.Since(begin))
		u.compare(shown, entitled)
	}
}

// entitled is what a read that begins now must see, by slot.
func (u *user) entitled() []int64 {
	values := make([]int64, len(u.acknowledged))
	for i := range u.acknowledged {
		values[i] = u.acknowledged[i].value.Load()
	}
	return values
}

// compare counts a read as stale where a value is older than what the user had been told
// is there. A newer one is another tab's.
func (u *user) compare(found []app.Note, entitled []int64) {
	got := make([]int64, len(entitled))
	for _, n := range found {
		if n.Slot < 0 || n.Slot >= len(got) || n.Value > u.sent[n.Slot].value.Load() {
			u.failed("read", fmt.Errorf("%s: %v, which nobody wrote", u.name, n))
			return
		}
		got[n.Slot] = n.Value
	}
	for slot, want := range entitled {
		if got[slot] < want {
			ago := time.Since(time.Unix(0, u.acknowledged[slot].at.Load()))
			u.staleRead(fmt.Sprintf("%s: slot %d is %d, and %d was acknowledged at least %v ago", u.name, slot, got[slot], want, ago.Round(time.Millisecond)))
			return
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
