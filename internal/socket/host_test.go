package socket_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlreplicated/replicated/internal/faketime"
	"github.com/sqlreplicated/replicated/internal/socket"
)

var (
	addrA  = netip.MustParseAddr("192.0.2.1")
	addrB  = netip.MustParseAddr("192.0.2.2")
	addrC  = netip.MustParseAddr("192.0.2.3")
	addrV6 = netip.MustParseAddr("2001:db8::1")
)

// zone answers lookups, with fake time around it.
type zone struct {
	*testing.T
	*socket.Host
	answer func() ([]netip.Addr, error)
}

func newZone(t *testing.T, addrs ...netip.Addr) *zone {
	z := &zone{T: t}
	z.is(addrs...)
	z.Host = socket.Known(func(context.Context, string) ([]netip.Addr, error) { return z.answer() })
	z.look()
	return z
}

func (z *zone) is(addrs ...netip.Addr) {
	z.answer = func() ([]netip.Addr, error) { return addrs, nil }
}

func (z *zone) look() {
	z.Helper()
	if err := z.Look(z.Context()); err != nil {
		z.Fatal(err)
	}
}

// follow looks as often as Pause says, for so long.
func (z *zone) follow(d time.Duration, each func()) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(z.Pause())
		_ = z.Look(z.Context())
		if each != nil {
			each()
		}
	}
}

func (z *zone) opened(want netip.Addr) *socket.Conn {
	z.Helper()
	c, at := z.Open(false)
	if at != want {
		z.Fatalf("%v is dialled, want %v", at, want)
	}
	return c
}

func (z *zone) gone(c *socket.Conn, want bool, when string) {
	z.Helper()
	if c.Gone() != want {
		z.Errorf("%s: Gone() = %v, want %v", when, !want, want)
	}
}

func zoneTest(t *testing.T, test func(t *testing.T)) { faketime.Test(t, test) }

func TestHostFollowsANameThatMoves(t *testing.T) {
	zoneTest(t, func(t *testing.T) {
		z := newZone(t, addrA)
		a := z.opened(addrA)
		z.follow(time.Hour, nil)
		z.gone(a, false, "nothing has moved")
		z.is(addrB)
		moved := time.Now()
		for range 10 { // as dials do it, at one time
			z.look()
		}
		z.gone(a, false, "just moved")
		z.opened(addrB) // new ones lead there at once
		z.follow(time.Minute, func() {
			if took := time.Since(moved); took > 8*time.Second {
				z.gone(a, true, "moved")
			}
		})
		z.is(addrA)
		z.look()
		z.gone(a, false, "moved back")
	})
}

// Switchovers to and fro do not look like a name that answers in turn.
func TestHostFollowsOneMoveAfterTheOther(t *testing.T) {
	zoneTest(t, func(t *testing.T) {
		z := newZone(t, addrA)
		at := addrA
		for i, next := range []netip.Addr{addrB, addrA, addrC, addrB} {
			c := z.opened(at)
			z.is(next)
			z.follow(14*time.Second, nil)
			if !c.Gone() {
				t.Errorf("move %d is not followed", i+1)
			}
			z.follow(25*time.Second, nil)
			at = next
		}
	})
}

func TestHostSurvivesItsResolver(t *testing.T) {
	zoneTest(t, func(t *testing.T) {
		z := newZone(t, addrA, addrB)
		a, at := z.Open(false)
		failure := errors.New("no such host")
		for _, answer := range []func() ([]netip.Addr, error){
			func() ([]netip.Addr, error) { return nil, failure },
			func() ([]netip.Addr, error) { return nil, nil },
		} {
			z.answer = answer
			z.follow(time.Hour, func() { z.gone(a, false, "the resolver fails") })
			if err := z.Look(t.Context()); err == nil {
				t.Error("Look tells nothing of it")
			}
			b, other := z.Open(false)
			if other == at {
				t.Error("what was known is not dialled evenly any more")
			}
			_ = b.Close()
		}
		z.is(at)
		z.follow(time.Minute, nil)
		z.gone(a, false, "the resolver is back")
	})
}

// Answers that hold something else for a moment cost no connection, however long
// ago the first of them was.
func TestHostForgivesTwoAnswers(t *testing.T) {
	zoneTest(t, func(t *testing.T) {
		z := newZone(t, addrA)
		a := z.opened(addrA)
		for range 20 {
			z.is(addrB)
			z.look()
			time.Sleep(time.Hour) // in which nobody asked
			z.look()
			z.gone(a, false, "missing in two answers")
			z.is(addrA)
			z.look()
			z.gone(a, false, "back")
		}
	})
}

// Reader endpoints answer with one of their members, or a few, in turn. The
// connections to the others stay, and dials go to all evenly.
func TestHostWhoseNameAnswersInTurn(t *testing.T) {
	for name, members := range map[string]int{"one of three": 1, "two of three": 2} {
		t.Run(name, func(t *testing.T) {
			zoneTest(t, func(t *testing.T) {
				all := []netip.Addr{addrA, addrB, addrC}
				z := newZone(t, addrA)
				z.answer = func() ([]netip.Addr, error) {
					rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
					return append([]netip.Addr(nil), all[:members]...), nil
				}
				z.follow(10*time.Minute, nil) // it gets to know the name
				count := make(map[netip.Addr]int)
				var conns []*socket.Conn
				for range 30 {
					c, at := z.Open(true)
					conns = append(conns, c)
					count[at]++
				}
				for _, a := range all {
					if count[a] != 10 {
						t.Errorf("30 connections lead to %v", count)
					}
				}
				closed := 0
				z.follow(time.Hour, func() {
					for _, c := range conns {
						if c.Gone() || c.Surplus() {
							closed++
						}
					}
				})
				if closed > 10 {
					t.Errorf("within an hour connections were to be closed %d times", closed)
				}
				// One who must not reach what the name no longer says gets what it says now.
				now := all[:members]
				z.answer = func() ([]netip.Addr, error) { return now, nil }
				z.look()
				for range 10 {
					if _, at := z.Open(false); at != now[0] && at != now[len(now)-1] {
						t.Errorf("%v is dialled, which is not in the answer", at)
					}
				}
				// What is taken out for good is noticed, if late.
				z.answer = func() ([]netip.Addr, error) { return []netip.Addr{addrA}, nil }
				z.follow(6*time.Minute, nil)
				for _, c := range conns {
					c.Surplus() // some of addrA's may be above a share of before
				}
				gone := 0
				for _, c := range conns {
					if c.Gone() {
						gone++
					}
				}
				if gone != 20 {
					t.Errorf("%d of 30 connections are gone with two of three members", gone)
				}
			})
		})
	}
}

func TestHostSharesConnectionsOut(t *testing.T) {
	zoneTest(t, func(t *testing.T) {
		z := newZone(t, addrA)
		var conns []*socket.Conn
		for range 8 {
			conns = append(conns, z.opened(addrA))
		}
		shed := func(cs []*socket.Conn) (n int) {
			for _, c := range cs {
				if c.Surplus() {
					n++
					_ = c.Close()
					_ = c.Close() // counts once
				}
			}
			return n
		}
		if n := shed(conns); n != 0 {
			t.Errorf("%d connections are too many to the only address", n)
		}
		z.is(addrA, addrB, addrA)
		z.look()
		if n := shed(conns); n != 4 {
			t.Errorf("%d of 8 connections make way for the second address, want 4", n)
		}
		var others []*socket.Conn
		for range 4 {
			others = append(others, z.opened(addrB))
		}
		z.look()
		if n := shed(append(conns, others...)); n != 0 {
			t.Errorf("%d of evenly spread connections make way", n)
		}
		z.Open(false)
		z.look()
		if n := shed(append(conns, others...)); n != 0 {
			t.Errorf("%d connections make way where one is odd", n)
		}
	})
}

// next is where the next dial would lead.
func (z *zone) next() netip.Addr {
	c, at := z.Open(false)
	_ = c.Close()
	return at
}

// The address with the fewest connections may be the one that nobody can connect to.
func TestHostTriesAFailingAddressLast(t *testing.T) {
	zoneTest(t, func(t *testing.T) {
		z := newZone(t, addrA, addrB)
		a, at := z.Open(false)
		b, _ := z.Open(false)
		b.Shun()
		_ = b.Close()
		for range 4 {
			if z.next() != at {
				t.Fatal("the address that fails is dialled first")
			}
			z.opened(at)
		}
		z.look()
		if a.Surplus() {
			t.Error("a connection makes way for an address that fails")
		}
		time.Sleep(10 * time.Second)
		if z.next() == at {
			t.Error("it is not tried again")
		}
		z.answer = func() ([]netip.Addr, error) { return nil, errors.New("server misbehaving") }
		if err := z.Look(t.Context()); err == nil { // which is no reason not to spread
			t.Error("Look tells nothing of it")
		}
		if !a.Surplus() {
			t.Error("and it has no share again")
		}
	})
}

// Addresses of the two families may be one server's.
func TestHostKeepsToOneFamily(t *testing.T) {
	zoneTest(t, func(t *testing.T) {
		mapped := netip.AddrFrom16(addrA.As16()) // as some resolvers have it
		z := newZone(t, addrV6, mapped, addrV6)
		for range 5 {
			c := z.opened(addrV6)
			z.look()
			if c.Surplus() {
				t.Error("a connection makes way for an address of the other family")
			}
		}
		c, _ := z.Open(false)
		c.Shun()
		a := z.opened(addrA)
		z.is(mapped, addrV6)
		z.look()
		z.opened(addrA)
		z.is(addrV6)
		z.follow(time.Minute, nil)
		z.gone(a, true, "its address is not in the answers any more")
	})
}

// An answer that was overtaken is not the latest.
func TestHostIgnoresLateAnswers(t *testing.T) {
	zoneTest(t, func(t *testing.T) {
		z := newZone(t, addrA)
		time.Sleep(time.Second)
		z.answer = func() ([]netip.Addr, error) {
			time.Sleep(3 * time.Second)
			return []netip.Addr{addrA}, nil
		}
		var late sync.WaitGroup
		late.Go(z.look)
		synctest.Wait()
		time.Sleep(time.Second)
		z.is(addrB)
		z.look()
		late.Wait()
		z.opened(addrB)
	})
}

func TestHostWithoutAName(t *testing.T) {
	var h socket.Host
	if err := h.Look(t.Context()); err != nil {
		t.Error(err)
	}
	if d := h.Pause(); d < 4*time.Second || d > 6*time.Second {
		t.Errorf("Pause() = %v", d)
	}
	c := socket.Wrap(nil)
	c.Shun()
	if c.Gone() || c.Surplus() {
		t.Error("a connection that was not dialled by name is to be closed")
	}
}
