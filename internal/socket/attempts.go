package socket

import (
	"context"
	"net"
	"net/netip"
	"time"
)

// stagger is how long an attempt to reach one address of a name may take before
// the next one is tried beside it. RFC 8305 has 250 ms, the net package 300 ms.
const stagger = 300 * time.Millisecond

// named splits off the name of the address if it is this host's, and makes the first
// one so.
func (h *Host) named(network, address string) (port string, ok bool) {
	if h == nil || network != "tcp" {
		return "", false
	}
	name, port, err := net.SplitHostPort(address)
	if err != nil || name == "" {
		return "", false
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return "", false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.name == "" {
		h.name = name
	}
	return port, h.name == name
}

// dial connects to one of the name's addresses: to that with the fewest
// connections, or to the next if that fails or is slow. everyMember allows those
// that the latest answer lacks because the name answers with some in turn.
//
// The attempt counts as a connection of the place until [Host.leave].
func (h *Host) dial(ctx context.Context, nd *net.Dialer, port string, everyMember bool) (net.Conn, *place, error) {
	if err := h.ready(ctx); err != nil {
		return nil, nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
	}
	return h.race(ctx, nd, port, h.queue(everyMember))
}

// ready looks the name up for a dial. Where addresses are known already, a resolver
// that fails or hangs costs a dial little, and those that follow nothing.
func (h *Host) ready(ctx context.Context) error {
	h.mu.Lock()
	known := len(h.latest) > 0
	ailing := !h.ailing.IsZero() && time.Since(h.ailing) < 3*lookEvery
	h.mu.Unlock()
	if !known {
		return h.look(ctx, lookTimeout)
	}
	if !ailing {
		timeout := lookBriefly
		if limit, ok := ctx.Deadline(); ok {
			timeout = min(timeout, time.Until(limit)/2)
		}
		_ = h.look(ctx, timeout) // what is known will do
	}
	return ctx.Err()
}

// attempt is what has come of dialling one address.
type attempt struct {
	conn net.Conn
	at   int // in the order
	err  error
}

// race dials the addresses one after the other, the next one as soon as one has
// failed or has taken longer than stagger, and returns the first connection, or the
// first error. The first address has been entered; all but the winner are left.
func (h *Host) race(ctx context.Context, nd *net.Dialer, port string, order []*place) (net.Conn, *place, error) {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan attempt, len(order))
	begun := 0
	begin := func() {
		i, p := begun, order[begun]
		begun++
		if i > 0 {
			h.enter(p)
		}
		go func() {
			c, err := nd.DialContext(within, "tcp", net.JoinHostPort(p.addr.String(), port))
			results <- attempt{c, i, err}
		}()
	}
	begin()
	timer := time.NewTimer(stagger)
	defer timer.Stop()
	var (
		won   *attempt
		first error
	)
	for ended := 0; ended < begun; {
		again := false
		select {
		case <-timer.C:
			again = true
		case a := <-results:
			ended++
			switch {
			case a.err == nil && won == nil:
				won = &a
				cancel() // the others end at once, and are waited for
				continue
			case a.err == nil:
				_ = a.conn.Close()
			case won == nil:
				if first == nil {
					first = a.err
				}
				again = true
			}
			h.leave(order[a.at])
			if won == nil && ctx.Err() != context.Canceled || won != nil && a.at < won.at {
				h.failed(order[a.at])
			}
		}
		if again && won == nil && begun < len(order) && ctx.Err() == nil {
			begin()
			timer.Reset(stagger)
		}
	}
	if won == nil {
		return nil, nil, first
	}
	return won.conn, order[won.at], nil
}
