package socket

import (
	"cmp"
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// lookEvery is how often a name should be looked up while its addresses stay. No
	// answer is younger than the resolver's cache lets it be.
	lookEvery = 5 * time.Second

	// lookSoon is the pause after an answer that lacks an address.
	lookSoon = time.Second

	// lookTimeout bounds a lookup.
	lookTimeout = 5 * time.Second

	// lookBriefly bounds the lookup of a dial that can do without.
	lookBriefly = time.Second

	// patience is how long, and missedAnswers in how many answers running, an
	// address has to be missing before it is gone.
	patience      = 3 * time.Second
	missedAnswers = 3

	// A name that answers with some of its addresses in turn makes itself known by
	// those that come back: with the second one, and for as long as rotationMemory
	// after the last, it is given rotationPatience times the longest absence that one
	// has come back from. An absence of more than longestAbsence is none of rotation.
	rotationPatience = 4
	longestAbsence   = time.Minute
	rotationMemory   = 10 * time.Minute

	// An address that has failed is tried after the others for a while, which doubles.
	shunFirst = 5 * time.Second
	shunMost  = time.Minute
)

// Host is what the name of one node's host stands for: its addresses, and how many
// connections each of them has. It is shared by the node's [Dialer]s, which dial
// through it; its name is the first one that they dial. For networks other than
// tcp, for addresses that are numbers, and for any other name it does nothing.
//
// An address is in one of these states.
//
//	state    meaning                             next
//	present  the latest answer has it            missing: an answer lacks it
//	missing  some answers have lacked it         present: an answer has it again
//	                                             gone: for [patience], and in three answers running
//	gone     its connections are not to be used  present: an answer has it again
//
// Lookups that fail change nothing: what was known goes on to be dialled.
//
// The zero Host is ready to use. All methods may be called from any goroutine.
type Host struct {
	several atomic.Bool // it has more than one address

	mu     sync.Mutex
	name   string // "" until something has been dialled by name
	places map[netip.Addr]*place
	latest []*place  // those of the latest answer, in its order
	asked  time.Time // when that was asked for
	ailing time.Time // when a lookup has failed last; zero: none since the latest answer

	absence  time.Duration // the longest that an address has come back from
	returns  int           // how many have come back
	returned time.Time     // the last time

	lookup func(ctx context.Context, name string) ([]netip.Addr, error) // nil: the system's
}

// place is one address of a Host.
type place struct {
	addr    netip.Addr
	gone    atomic.Bool
	surplus atomic.Int32 // so many connections are above its share

	// The Host's mutex guards the rest.

	conns   int       // connections, and attempts under way
	missing time.Time // the first answer that lacked it; zero: it is present
	missed  int       // in so many answers running
	shunned time.Time // until then it is tried after the others
	shun    time.Duration
}

// Look looks the name up, if one is known. It may be called at any time, and
// should be as often as [Host.Pause] says.
func (h *Host) Look(ctx context.Context) error {
	h.mu.Lock()
	known := h.name != ""
	h.mu.Unlock()
	if !known {
		return nil
	}
	return h.look(ctx, lookTimeout)
}

// Pause returns how long to wait until the next [Host.Look]. It is jittered, so
// that many processes do not ask together.
func (h *Host) Pause() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	pause := lookEvery
	for _, p := range h.places {
		if p.missed > 0 && !p.gone.Load() {
			pause = min(max(h.patienceLocked(time.Now())/missedAnswers, lookSoon), lookEvery)
			break
		}
	}
	return pause*4/5 + time.Duration(rand.Int64N(int64(pause)*2/5))
}

func (h *Host) look(ctx context.Context, timeout time.Duration) error {
	lookup := h.lookup
	if lookup == nil {
		lookup = func(ctx context.Context, name string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
		}
	}
	asked := time.Now()
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	addrs, err := lookup(within, h.name) // which never changes once it is known
	if err == nil && len(addrs) == 0 {
		err = &net.DNSError{Err: "no addresses", Name: h.name, IsNotFound: true}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err == nil:
		h.heardLocked(asked, addrs)
	case ctx.Err() == nil || within.Err() == context.DeadlineExceeded:
		h.ailing = time.Now()
		h.shareLocked(h.ailing)
	}
	return err
}

// heardLocked takes an answer, and then tells how connections should be spread.
func (h *Host) heardLocked(asked time.Time, addrs []netip.Addr) {
	if asked.Before(h.asked) {
		return // it was overtaken by a later one
	}
	now := time.Now()
	h.asked, h.ailing = asked, time.Time{}
	h.latest = h.latest[:0:0]
	for _, a := range addrs {
		p := h.places[a.Unmap()]
		switch {
		case p == nil:
			if h.places == nil {
				h.places = make(map[netip.Addr]*place)
			}
			p = &place{addr: a.Unmap()}
			h.places[p.addr] = p
		case slices.Contains(h.latest, p):
			continue
		case p.missed > 0:
			h.cameBackLocked(now, now.Sub(p.missing))
			p.missed, p.missing = 0, time.Time{}
			p.gone.Store(false)
		}
		h.latest = append(h.latest, p)
	}
	wait := h.patienceLocked(now)
	for a, p := range h.places {
		if slices.Contains(h.latest, p) {
			continue
		}
		if p.missed++; p.missed == 1 {
			p.missing = now
		}
		absent := now.Sub(p.missing)
		if p.missed >= missedAnswers && absent >= wait {
			p.gone.Store(true)
			if p.conns == 0 && absent > longestAbsence {
				delete(h.places, a)
			}
		}
	}
	h.several.Store(len(h.places) > 1)
	h.shareLocked(now)
}

func (h *Host) cameBackLocked(now time.Time, absence time.Duration) {
	if absence > longestAbsence {
		return
	}
	if now.Sub(h.returned) > rotationMemory {
		h.absence, h.returns = 0, 0
	}
	h.absence, h.returned = max(h.absence, absence), now
	h.returns++
}

// Several tells whether the name has more than one address.
func (h *Host) Several() bool { return h.several.Load() }

// rotatesLocked tells whether the name answers with some of its addresses in turn.
// One that comes back once may have been a move, and the move back.
func (h *Host) rotatesLocked(now time.Time) bool {
	return h.returns >= 2 && now.Sub(h.returned) <= rotationMemory
}

func (h *Host) patienceLocked(now time.Time) time.Duration {
	if h.rotatesLocked(now) {
		return max(patience, rotationPatience*h.absence)
	}
	return patience
}

// membersLocked returns the addresses to dial: those of the latest answer, or, of a
// name that answers with some in turn, all that are not gone.
func (h *Host) membersLocked(now time.Time) []*place {
	members := slices.Clone(h.latest)
	if h.rotatesLocked(now) {
		for _, p := range h.places {
			if p.missed > 0 && !p.gone.Load() {
				members = append(members, p)
			}
		}
	}
	return members
}

// shareLocked counts for each address how many connections it has above its share.
// Addresses that fail have no share, and neither has the family of addresses that
// the system does not prefer.
func (h *Host) shareLocked(now time.Time) {
	for _, p := range h.places {
		p.surplus.Store(0)
	}
	members := slices.DeleteFunc(h.membersLocked(now), func(p *place) bool {
		return now.Before(p.shunned) || h.otherFamilyLocked(p)
	})
	if len(members) < 2 {
		return
	}
	total := 0
	for _, p := range members {
		total += p.conns
	}
	share := (total + len(members) - 1) / len(members)
	for _, p := range members {
		p.surplus.Store(int32(max(p.conns-share, 0)))
	}
}

// otherFamilyLocked tells an address that is not of the family that the system puts
// first: it may be the same server's, and lead nowhere.
func (h *Host) otherFamilyLocked(p *place) bool {
	return p.addr.Is4() != h.latest[0].addr.Is4()
}

// queue returns the addresses in the order in which they should be tried, and
// counts an attempt of the first one already, so that dials at the same time spread.
func (h *Host) queue(everyMember bool) []*place {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	order := slices.Clone(h.latest)
	if everyMember {
		order = h.membersLocked(now)
	}
	rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	last := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(order, func(a, b *place) int {
		return cmp.Or(
			last(now.Before(a.shunned))-last(now.Before(b.shunned)),
			last(h.otherFamilyLocked(a))-last(h.otherFamilyLocked(b)),
			a.conns-b.conns,
		)
	})
	order[0].conns++
	return order
}

func (h *Host) enter(p *place) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p.conns++
}

func (h *Host) leave(p *place) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p.conns--
}

// failed has an address tried after the others for a while.
func (h *Host) failed(p *place) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if now.Before(p.shunned) {
		return // known, from a dial at the same time
	}
	p.shun = min(max(2*p.shun, shunFirst), shunMost)
	p.shunned = now.Add(p.shun)
}

// served takes note of an address over which a connection has been opened.
func (h *Host) served(p *place) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p.shun, p.shunned = 0, time.Time{}
}
