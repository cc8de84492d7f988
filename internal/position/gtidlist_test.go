package position_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/internal/position"
)

func TestParseGTIDList(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "",
		" ":                               "",
		"0-1-100":                         "0-1-100",
		"1-1-20,0-1-100":                  "0-1-100,1-1-20",
		"0-1-100, 1-1-20":                 "0-1-100,1-1-20",
		"0-2-105,0-1-100":                 "0-1-100,0-2-105",
		"4294967295-4294967295-0":         "4294967295-4294967295-0",
		"0-1-18446744073709551615":        "0-1-18446744073709551615",
		"10-1-1,9-1-1,9-10-1,9-9-1,1-1-1": "1-1-1,9-1-1,9-9-1,9-10-1,10-1-1",
	} {
		p, err := position.ParseGTIDList(text)
		if err != nil || p.String() != want || !gtidList(p.String()).Equal(p) {
			t.Errorf("ParseGTIDList(%q) = %q, %v, want %q", text, p, err, want)
		}
	}
	for _, text := range []string{
		"x", ",", "0-1-1,", "0-1", "0-1-", "-1-1", "0--1", "0-1-1-1", "0-1-1 0-1-2", "4294967296-1-1", "0-4294967296-1", "0-1-18446744073709551616", "0-1-01", "00-1-1",
		"0-1--1", "0-1-+1", "0-1-1,0-1-2", "0-1-1,0-1-1", "0 - 1 - 1", strings.Repeat("0-1-1,", 3<<20),
	} {
		if p, err := position.ParseGTIDList(text); err == nil || !p.IsZero() {
			t.Errorf("ParseGTIDList(%.40q) = %q, want an error", text, p)
		}
	}
	for _, test := range []struct {
		pos, state string
		id         uint32
	}{{"0-1-1", "0-1-1", 0}, {"x", "", 1}, {"", "x", 1}, {"0-1-1,0-2-2", "0-1-1,0-2-2", 1}} {
		if p, err := position.MariaDBPrimary(test.pos, test.state, test.id); err == nil || !p.IsZero() {
			t.Errorf("MariaDBPrimary(%q, %q, %d) = %q, want an error", test.pos, test.state, test.id, p)
		}
	}
}

func TestMariaDBContains(t *testing.T) {
	for _, test := range []struct {
		name     string
		p        string
		q        position.Position
		contains bool
		exceeds  bool
	}{
		{"same", "0-1-100", primary("0-1-100", "0-1-100", 1), true, false},
		{"later of the primary", "0-1-101", primary("0-1-100", "0-1-100", 1), true, true},
		{"earlier", "0-1-99", primary("0-1-100", "0-1-100", 1), false, false},
		{"the number alone, of a server in between", "0-2-102", primary("0-1-100", "0-1-100", 1), false, true},
		{"the very number of another server", "0-2-100", primary("0-1-100", "0-1-100", 1), false, true},
		{"the former primary's last", "0-1-100", primary("0-1-100", "0-1-100", 2), true, false},
		{"the new primary's next", "0-2-101", primary("0-1-100", "0-1-100", 2), false, true},
		{"the former primary went on", "0-1-101", primary("0-1-100", "0-1-100", 2), false, true},
		{"the former primary's last, new ones to come", "0-1-100", primary("0-2-101", "0-1-100,0-2-101", 2), false, false},
		{"after reset master", "0-1-40", primary("0-1-1", "0-1-1", 1), true, true},
		{"all domains", "0-1-100,1-1-20", primary("0-1-100,1-1-20", "0-1-100,1-1-20", 1), true, false},
		{"one domain behind", "0-1-100,1-1-19", primary("0-1-100,1-1-20", "0-1-100,1-1-20", 1), false, false},
		{"a domain lacks", "0-1-100", primary("0-1-100,1-1-20", "0-1-100,1-1-20", 1), false, false},
		{"a domain of another primary", "0-1-100,5-9-7", primary("0-1-100", "0-1-100", 1), true, false},
		{"its own higher number was logged before", "0-1-20", primary("0-2-15", "0-1-20,0-2-15", 1), false, false},
		{"its own of the very number", "0-1-100", primary("0-2-100", "0-2-100", 1), false, true},
		// gtid_binlog_state may be from just before 0-1-21 and 0-2-15 were logged.
		{"its own next, which may have been logged before", "0-1-21", primary("0-2-15", "0-1-20,0-2-15", 1), false, true},
		{"token", "0-1-100", gtidList("0-1-100"), true, false},
		{"token and a later one of its writer", "0-1-101", gtidList("0-1-100"), true, true},
		{"token and another writer", "0-2-101", gtidList("0-1-100"), false, true},
		{"token of two writers", "0-2-105", gtidList("0-1-100,0-2-105"), false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := gtidList(test.p)
			if got := p.Contains(test.q); got != test.contains {
				t.Errorf("contains: %t", got)
			}
			if got := p.Exceeds(test.q); got != test.exceeds {
				t.Errorf("exceeds: %t", got)
			}
		})
	}
}

func TestMariaDBPositionOfAnotherPrimaryProvesNothing(t *testing.T) {
	q := primary("0-1-100", "0-1-100", 1)
	if p := primary("0-1-101", "0-1-101", 1); !p.Contains(q) {
		t.Error("the primary does not contain its own earlier sample")
	}
	// Its gtid_binlog_pos has its own transactions, not only what it has applied.
	if p := primary("0-2-101", "0-1-100,0-2-101", 2); p.Contains(q) {
		t.Error("a position with the writes of another server counts as a replica's")
	}
	if !q.Equal(primary("0-1-100", "0-1-100", 1)) || q.Equal(primary("0-1-100", "0-1-100", 2)) {
		t.Error("equal takes no account of the primary")
	}
}

func TestMariaDBIncludes(t *testing.T) {
	q := primary("0-2-105,1-2-3", "0-1-100,0-2-105,1-2-3", 2)
	for _, test := range []struct {
		name     string
		t        position.Position
		includes bool
	}{
		{"itself", q, true},
		{"its last sample", primary("0-2-104,1-2-3", "0-1-100,0-2-104,1-2-3", 2), true},
		{"before it was the primary", primary("0-1-100", "0-1-100", 1), true},
		{"token of the former primary", gtidList("0-1-100"), true},
		{"token that was lost with the former primary", gtidList("0-1-101"), false},
		{"merged token", gtidList("0-1-99,0-2-101"), true},
		{"later", gtidList("0-2-106"), false},
		{"another domain", gtidList("2-2-1"), false},
		{"another server", gtidList("0-3-1"), false},
		{"a sample with more in its history", primary("0-2-105", "0-2-105,0-3-7", 2), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := q.Includes(test.t); got != test.includes {
				t.Errorf("%t", got)
			}
		})
	}
	if after := primary("0-2-1", "0-2-1", 2); after.Includes(q) {
		t.Error("a primary includes what it had before RESET MASTER")
	}
}

// What gtid_binlog_pos shows is in gtid_binlog_state a moment later, or was a
// moment before; the position goes by the former.
func TestMariaDBPrimaryReadWhileItWrites(t *testing.T) {
	for name, state := range map[string]string{
		"state read before": "0-1-98,0-2-7",
		"state read after":  "0-1-103,0-2-7",
		"state without it":  "0-2-7",
	} {
		if q := primary("0-1-100", state, 1); !q.Equal(primary("0-1-100", "0-1-100,0-2-7", 1)) || q.Includes(gtidList("0-1-101")) {
			t.Errorf("%s: the sample is not the one of its gtid_binlog_pos", name)
		}
	}
}

func TestMariaDBToken(t *testing.T) {
	q := primary("0-2-105,1-2-3", "0-1-100,0-2-105,0-3-7,1-2-3", 2)
	if got := q.Token(); !got.Equal(gtidList("0-2-105,1-2-3")) {
		t.Errorf("the token is %q", got)
	}
	if got := q.Merge(gtidList("0-1-100,0-2-90,2-1-1")); !got.Equal(gtidList("0-1-100,0-2-105,1-2-3,2-1-1")) {
		t.Errorf("merged with another: %q", got)
	}
}

// randomList returns a gtid_binlog_pos and a gtid_binlog_state that fit together.
func randomList(rnd *rand.Rand) (last, logged string) {
	var lasts, all []string
	for len(all) == 0 {
		for domain := range 2 {
			var servers []string
			for server := range 3 {
				if rnd.IntN(2) == 0 {
					servers = append(servers, fmt.Sprintf("%d-%d-%d", domain, server+1, 1+rnd.IntN(4)))
				}
			}
			if len(servers) > 0 {
				lasts = append(lasts, servers[rnd.IntN(len(servers))])
				all = append(all, servers...)
			}
		}
	}
	return strings.Join(lasts, ","), strings.Join(all, ",")
}

// mariaServer is a server as the model has it: everything it logged, in order,
// and how much of its source's log it has applied.
type mariaServer struct {
	id      uint32
	log     []mariaTx
	next    map[int]uint64 // number of its next transaction in each domain
	applied []mariaTx      // of its source's log, in order: gtid_slave_pos
	at      int            // in its source's log
}

type mariaTx struct {
	domain int
	server uint32
	number uint64
}

func (s *mariaServer) append(tx mariaTx) {
	s.log = append(s.log, tx)
	s.next[tx.domain] = max(s.next[tx.domain], tx.number+1)
}

func (s *mariaServer) write(domain int) {
	s.append(mariaTx{domain, s.id, max(1, s.next[domain])})
}

func (s *mariaServer) apply(source *mariaServer, count int) {
	for ; count > 0 && s.at < len(source.log); count-- {
		tx := source.log[s.at]
		s.at++
		s.applied = append(s.applied, tx)
		s.append(tx)
	}
}

// last is what gtid_slave_pos and gtid_binlog_pos have, the last of each domain;
// all what gtid_binlog_state has, the last of each server in it.
func lastAndAll(log []mariaTx) (last, all string) {
	byDomain, byServer := map[int]mariaTx{}, map[[2]uint64]mariaTx{}
	for _, tx := range log {
		byDomain[tx.domain] = tx
		byServer[[2]uint64{uint64(tx.domain), uint64(tx.server)}] = tx
	}
	var lasts, alls []string
	for _, tx := range byDomain {
		lasts = append(lasts, fmt.Sprintf("%d-%d-%d", tx.domain, tx.server, tx.number))
	}
	for _, tx := range byServer {
		alls = append(alls, fmt.Sprintf("%d-%d-%d", tx.domain, tx.server, tx.number))
	}
	return strings.Join(lasts, ","), strings.Join(alls, ",")
}

// byNumber is the rule of MASTER_GTID_WAIT: a domain's number alone.
func byNumber(p, q string) bool {
	numbers := map[string]uint64{}
	read := func(s string, f func(domain string, number uint64)) {
		for part := range strings.SplitSeq(s, ",") {
			var domain, number uint64
			var server uint32
			if _, err := fmt.Sscanf(part, "%d-%d-%d", &domain, &server, &number); err == nil {
				f(fmt.Sprint(domain), number)
			}
		}
	}
	read(p, func(domain string, number uint64) { numbers[domain] = number })
	yes := q != ""
	read(q, func(domain string, number uint64) { yes = yes && numbers[domain] >= number })
	return yes
}

// TestMariaDBContainsMeansApplied plays clusters in which servers write out of
// turn: a chain whose middle writes, a primary that was a replica and logged
// numbers out of order, several domains. Whenever the replica at the end of the
// chain is said to contain a sample of the primary, it has applied all of it.
func TestMariaDBContainsMeansApplied(t *testing.T) {
	rnd := rand.New(rand.NewPCG(4, 4))
	var yes, wrongByNumber, missed, complete int
	for round := range 4000 {
		domains := 1 + rnd.IntN(2)
		first := &mariaServer{id: 1, next: map[int]uint64{}}
		// The primary's log begins with what it replicated, with holes and out of
		// order as without gtid_strict_mode.
		for range rnd.IntN(6) {
			if rnd.IntN(2) == 0 {
				first.write(rnd.IntN(domains))
			} else if tx := (mariaTx{rnd.IntN(domains), 3 + rnd.Uint32N(2), 1 + rnd.Uint64N(12)}); !slices.ContainsFunc(first.log, func(o mariaTx) bool {
				return o.domain == tx.domain && o.server == tx.server && o.number >= tx.number
			}) {
				first.append(tx)
			}
		}
		chain := []*mariaServer{first}
		for id := range 1 + uint32(rnd.IntN(2)) {
			chain = append(chain, &mariaServer{id: 2 + 10*id, next: map[int]uint64{}})
		}
		middleWrites := rnd.IntN(2) == 0
		for range 30 {
			switch i := rnd.IntN(len(chain) + 1); {
			case i == len(chain) && len(chain) > 2 && middleWrites:
				chain[1].write(rnd.IntN(domains))
			case i == 0 || i == len(chain):
				first.write(rnd.IntN(domains))
			default:
				chain[i].apply(chain[i-1], 1+rnd.IntN(3))
			}
			end := chain[len(chain)-1]
			// A sample of any moment, since samples are kept.
			sample := first.log[:rnd.IntN(len(first.log)+1)]
			pos, state := lastAndAll(sample)
			p, _ := lastAndAll(end.applied)
			has := !slices.ContainsFunc(sample, func(tx mariaTx) bool { return !slices.Contains(end.applied, tx) })
			contains := gtidList(p).Contains(primary(pos, state, first.id))
			if contains && !has {
				t.Fatalf("round %d: %q contains %q (%q), but lacks some of it: %v of %v", round, p, pos, state, end.applied, sample)
			}
			now, nowState := lastAndAll(first.log)
			if len(chain) == 2 && gtidList(p).Exceeds(primary(now, nowState, first.id)) {
				t.Fatalf("round %d: %q exceeds its primary's %q (%q)", round, p, now, nowState)
			}
			if byNumber(p, pos) && !has {
				wrongByNumber++
			}
			if contains {
				yes++
			}
			if has && len(sample) > 0 && len(chain) == 2 {
				complete++
				if !contains {
					missed++
				}
			}
		}
	}
	if yes < 10000 || wrongByNumber < 100 {
		t.Errorf("the clusters show little: %d contained, %d times the number alone would have been wrong", yes, wrongByNumber)
	}
	// Where one of the two last transactions was not the primary's own, a direct
	// replica cannot tell how far it is, unless it is the very one. The next write
	// ends that.
	if missed*4 > complete {
		t.Errorf("%d of %d direct replicas that have everything are not seen to", missed, complete)
	}
	t.Logf("%d contained; by number alone %d wrong; %d of %d not seen", yes, wrongByNumber, missed, complete)
}
