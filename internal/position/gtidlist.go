package position

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// mariaGTID is a global transaction identifier of MariaDB, as in "0-1-100": the
// domain (an independent stream), the server that wrote it, its number. A server
// gives its own transactions higher numbers than all that it has logged in the
// domain (rpl_binlog_state::update_with_next_gtid in sql/rpl_gtid.cc); servers
// that write at once give the same numbers.
type mariaGTID struct {
	domain, server uint32
	number         uint64
}

// compare orders by domain and server.
func (g mariaGTID) compare(h mariaGTID) int {
	if g.domain != h.domain {
		return cmp.Compare(g.domain, h.domain)
	}
	return cmp.Compare(g.server, h.server)
}

// gtidList is a position of MariaDB. The lists are ordered by domain and server
// and name no server of a domain twice.
type gtidList struct {
	// last has the last GTID of each domain; that of a token that was merged may
	// have several servers of a domain.
	last []mariaGTID

	// primary is the server_id of the primary that the position was sampled on,
	// or 0 for a replica's position and for a token.
	primary uint32

	// logged has the last GTID of each server that wrote to the primary's log,
	// domain by domain, those of last among them. Nil if primary is 0.
	logged []mariaGTID
}

// ParseGTIDList reads a replica's gtid_slave_pos, or a token:
// "0-1-100,1-1-20". Blanks are allowed after commas.
//
// gtid_current_pos and a replica's gtid_binlog_pos are not what a replica has
// applied: they have its own transactions, whose numbers hide that others are
// missing.
func ParseGTIDList(s string) (Position, error) {
	list, err := parseMariaGTIDs(s)
	if err != nil {
		return Position{}, err
	}
	return Position{&gtidList{last: list}}, nil
}

// MariaDBPrimary returns the position of a primary from its gtid_binlog_pos,
// gtid_binlog_state and server_id. Both variables come from one query that
// reads gtid_binlog_state first (in the select list: to the left), so that what
// it has is in gtid_binlog_pos too; the other way round [Position.Includes] would
// find a transaction that the sample does not stand for.
//
// A replica contains the position if, in each domain, it has applied the very
// GTID that the primary logged last, or, where that is the primary's own, a later
// one of its own. The number alone does not tell: in a chain of servers where the
// middle one writes too, numbers of two servers grow side by side, and the last
// replica may be past a number without having the transaction (MASTER_GTID_WAIT
// goes by the number).
func MariaDBPrimary(binlogPos, binlogState string, serverID uint32) (Position, error) {
	if serverID == 0 {
		return Position{}, fmt.Errorf("position: a primary of MariaDB without a server_id")
	}
	last, err := parseMariaGTIDs(binlogPos)
	if err != nil {
		return Position{}, err
	}
	for i := range last[:max(len(last), 1)-1] {
		if last[i].domain == last[i+1].domain {
			return Position{}, fmt.Errorf("position: gtid_binlog_pos has a domain twice: %s", quote(binlogPos))
		}
	}
	logged, err := parseMariaGTIDs(binlogState)
	if err != nil {
		return Position{}, err
	}
	// The last GTID of a domain is that server's last one (element::last_gtid
	// points to it), whatever happened between the two readings.
	return Position{&gtidList{last: last, primary: serverID, logged: overwrite(logged, last)}}, nil
}

// parseMariaGTIDs reads a list and orders it. The server prints no blanks, and
// numbers of 32, 32 and 64 bits (gtid_parser_helper in sql/rpl_gtid.cc).
func parseMariaGTIDs(s string) ([]mariaGTID, error) {
	if len(s) > maxText {
		return nil, errTooLong(s)
	}
	if strings.TrimSpace(s) == "" {
		return nil, nil
	}
	list := make([]mariaGTID, 0, strings.Count(s, ",")+1)
	for part := range strings.SplitSeq(s, ",") {
		gtid, ok := parseMariaGTID(strings.TrimSpace(part))
		if !ok {
			return nil, fmt.Errorf("position: not a GTID of MariaDB: %s", quote(part))
		}
		list = append(list, gtid)
	}
	slices.SortFunc(list, mariaGTID.compare)
	for i := range list[1:] {
		if list[i].compare(list[i+1]) == 0 {
			return nil, fmt.Errorf("position: domain %d and server %d twice in a GTID list", list[i].domain, list[i].server)
		}
	}
	return list, nil
}

func parseMariaGTID(s string) (g mariaGTID, ok bool) {
	domain, rest, ok1 := strings.Cut(s, "-")
	server, number, ok2 := strings.Cut(rest, "-")
	d, ok3 := decimal(domain, 1<<32-1)
	v, ok4 := decimal(server, 1<<32-1)
	n, ok5 := decimal(number, 1<<64-1)
	return mariaGTID{uint32(d), uint32(v), n}, ok1 && ok2 && ok3 && ok4 && ok5
}

// overwrite returns list with the entries of by, which are added or replace
// those of the same domain and server.
func overwrite(list, by []mariaGTID) []mariaGTID {
	return union(list, by, func(_, b uint64) uint64 { return b })
}

// union merges two ordered lists. Where both name a server, number chooses.
func union(p, q []mariaGTID, number func(p, q uint64) uint64) []mariaGTID {
	out := make([]mariaGTID, 0, len(p)+len(q))
	for len(p) > 0 && len(q) > 0 {
		switch c := p[0].compare(q[0]); {
		case c < 0:
			out, p = append(out, p[0]), p[1:]
		case c > 0:
			out, q = append(out, q[0]), q[1:]
		default:
			both := p[0]
			both.number = number(p[0].number, q[0].number)
			out, p, q = append(out, both), p[1:], q[1:]
		}
	}
	return append(append(out, p...), q...)
}

// find returns the number of a domain's server in an ordered list.
func find(list []mariaGTID, domain, server uint32) (number uint64, ok bool) {
	i, ok := slices.BinarySearchFunc(list, mariaGTID{domain: domain, server: server}, mariaGTID.compare)
	if !ok {
		return 0, false
	}
	return list[i].number, true
}

// history is everything the position says it has.
func (l *gtidList) history() []mariaGTID {
	if l.primary != 0 {
		return l.logged
	}
	return l.last
}

func (l *gtidList) kind() Kind  { return GTIDList }
func (l *gtidList) empty() bool { return len(l.last) == 0 }

func (l *gtidList) equal(v value) bool {
	q := v.(*gtidList)
	return l.primary == q.primary && slices.Equal(l.last, q.last) && slices.Equal(l.logged, q.logged)
}

// contains: see [MariaDBPrimary]. The position of another primary is no
// replica's, and proves nothing.
func (l *gtidList) contains(v value) bool {
	q := v.(*gtidList)
	if l.primary != 0 {
		return l.primary == q.primary && l.includes(q)
	}
	for _, want := range q.last {
		if !l.reaches(want, q) {
			return false
		}
	}
	return true
}

// reaches reports whether the replica at l has applied want, the last GTID of a
// domain of q.
func (l *gtidList) reaches(want mariaGTID, q *gtidList) bool {
	number, ok := find(l.last, want.domain, want.server)
	switch {
	case !ok || number < want.number:
		return false
	case number == want.number:
		return true
	case q.primary == 0:
		return true // a token is of its writer's log, where this one came later
	default:
		// Another server's later one may have come by another way. After another
		// server's last one, the primary's own next would do as well, if it were known
		// which that is: the primary may have logged that server's after a higher one
		// of its own, and it does not tell both at the same moment.
		return want.server == q.primary
	}
}

func (l *gtidList) exceeds(v value) bool {
	history := v.(*gtidList).history()
	for _, have := range l.last {
		if !knowsDomain(history, have.domain) {
			// Of another primary, which a replica may follow as well.
			continue
		}
		if number, ok := find(history, have.domain, have.server); !ok || number < have.number {
			return true
		}
	}
	return false
}

func knowsDomain(list []mariaGTID, domain uint32) bool {
	i, _ := slices.BinarySearchFunc(list, mariaGTID{domain: domain}, mariaGTID.compare)
	return i < len(list) && list[i].domain == domain
}

func (l *gtidList) includes(v value) bool {
	history := l.history()
	for _, want := range v.(*gtidList).history() {
		if number, ok := find(history, want.domain, want.server); !ok || number < want.number {
			return false
		}
	}
	return true
}

func (l *gtidList) merge(v value) value {
	q := v.(*gtidList)
	return &gtidList{last: union(l.last, q.last, func(a, b uint64) uint64 { return max(a, b) })}
}

// token leaves out which servers wrote before the last one: a primary that has
// the last transaction of a domain has those that were logged before it.
func (l *gtidList) token() value {
	if l.primary == 0 {
		return l
	}
	return &gtidList{last: l.last}
}

func (l *gtidList) appendText(b []byte) []byte {
	for i, g := range l.last {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, uint64(g.domain), 10)
		b = strconv.AppendUint(append(b, '-'), uint64(g.server), 10)
		b = strconv.AppendUint(append(b, '-'), g.number, 10)
	}
	return b
}
