package position

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"
)

// gtidSet is a set of global transaction identifiers of MySQL: for each server
// that wrote, and each tag that it wrote with, the numbers of its transactions.
// See "GTID Format and Storage" in the reference manual, and sql/rpl_gtid_set.cc.
//
// Invariant: sources are in ascending order and none is twice; each has at least
// one span; spans are in ascending order, and between two of them is a number
// that neither has.
type gtidSet struct{ sources []source }

// source is a server's uuid with a tag, and the numbers under which it has
// written.
type source struct {
	hi, lo uint64 // the uuid, big-endian
	tag    string // MySQL 8.3 and later; "" for transactions without
	spans  []span
}

// span is the numbers first to last, both included.
type span struct{ first, last uint64 }

const (
	// maxNumber is the highest number of a transaction: GNO_END - 1 in
	// sql/rpl_gtid.h, where GNO_END is the highest signed number of 64 bits.
	maxNumber = 1<<63 - 2
	// maxTag is the length of a tag (Tag in libs/mysql/gtids/tag.h).
	maxTag = 32
)

// compare orders by uuid and tag, as the server prints them.
func (s *source) compare(t *source) int {
	if c := s.compareUUID(t); c != 0 {
		return c
	}
	return cmp.Compare(s.tag, t.tag)
}

func (s *source) compareUUID(t *source) int {
	if s.hi != t.hi {
		return cmp.Compare(s.hi, t.hi)
	}
	return cmp.Compare(s.lo, t.lo)
}

func (s *gtidSet) kind() Kind   { return GTIDSet }
func (s *gtidSet) empty() bool  { return len(s.sources) == 0 }
func (s *gtidSet) token() value { return s }

func (s *gtidSet) equal(v value) bool {
	return slices.EqualFunc(s.sources, v.(*gtidSet).sources, func(a, b source) bool {
		return a.compare(&b) == 0 && slices.Equal(a.spans, b.spans)
	})
}

func (s *gtidSet) includes(t value) bool { return s.contains(t) }

// contains reports whether s is a superset, in one pass over both.
func (s *gtidSet) contains(v value) bool {
	have := s.sources
	for i := range v.(*gtidSet).sources {
		want := &v.(*gtidSet).sources[i]
		for len(have) > 0 && have[0].compare(want) < 0 {
			have = have[1:]
		}
		if len(have) == 0 || have[0].compare(want) != 0 || !covers(have[0].spans, want.spans) {
			return false
		}
	}
	return true
}

// covers reports whether every number of q is in p. Since neighbours in p are
// apart, each span of q must be inside one of p.
func covers(p, q []span) bool {
	for _, want := range q {
		for len(p) > 0 && p[0].last < want.first {
			p = p[1:]
		}
		if len(p) == 0 || p[0].first > want.first || p[0].last < want.last {
			return false
		}
	}
	return true
}

// exceeds reports whether s has transactions that q lacks from a server, with
// whatever tag, of which q has any.
func (s *gtidSet) exceeds(v value) bool {
	known := v.(*gtidSet).sources
	for i := range s.sources {
		have := &s.sources[i]
		for len(known) > 0 && known[0].compareUUID(have) < 0 {
			known = known[1:]
		}
		if len(known) == 0 {
			return false
		}
		if known[0].compareUUID(have) != 0 {
			continue
		}
		// One source of the uuid stays, for the next tag of s to find.
		tags := known
		for len(tags) > 1 && tags[1].compareUUID(have) == 0 && tags[0].tag < have.tag {
			tags = tags[1:]
		}
		if tags[0].tag != have.tag || !covers(tags[0].spans, have.spans) {
			return true
		}
		known = tags
	}
	return false
}

func (s *gtidSet) merge(v value) value {
	p, q := s.sources, v.(*gtidSet).sources
	out := make([]source, 0, max(len(p), len(q)))
	for len(p) > 0 && len(q) > 0 {
		switch c := p[0].compare(&q[0]); {
		case c < 0:
			out, p = append(out, p[0]), p[1:]
		case c > 0:
			out, q = append(out, q[0]), q[1:]
		default:
			both := p[0]
			both.spans = unite(p[0].spans, q[0].spans)
			out, p, q = append(out, both), p[1:], q[1:]
		}
	}
	return &gtidSet{append(append(out, p...), q...)}
}

// unite merges two ordered lists of spans.
func unite(p, q []span) []span {
	out := make([]span, 0, max(len(p), len(q)))
	for len(p) > 0 || len(q) > 0 {
		if len(q) == 0 || len(p) > 0 && p[0].first <= q[0].first {
			out, p = add(out, p[0]), p[1:]
		} else {
			out, q = add(out, q[0]), q[1:]
		}
	}
	return out
}

// add appends a span that does not begin before the last one, or extends that.
// Numbers are too small for last+1 to overflow.
func add(spans []span, s span) []span {
	if n := len(spans); n > 0 && s.first <= spans[n-1].last+1 {
		spans[n-1].last = max(spans[n-1].last, s.last)
		return spans
	}
	return append(spans, s)
}

// appendText writes what the server would print, without its line breaks: uuids
// in lower case, and a server's tags behind its uuid
// (encode_impl in libs/mysql/gtids/strconv/gtid_text_format_conv.h).
func (s *gtidSet) appendText(b []byte) []byte {
	for i := range s.sources {
		src := &s.sources[i]
		if i == 0 || src.compareUUID(&s.sources[i-1]) != 0 {
			if i > 0 {
				b = append(b, ',')
			}
			b = src.appendUUID(b)
		}
		if src.tag != "" {
			b = append(append(b, ':'), src.tag...)
		}
		for _, n := range src.spans {
			b = strconv.AppendUint(append(b, ':'), n.first, 10)
			if n.last > n.first {
				b = strconv.AppendUint(append(b, '-'), n.last, 10)
			}
		}
	}
	return b
}

func (s *source) appendUUID(b []byte) []byte {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:8], s.hi)
	binary.BigEndian.PutUint64(raw[8:], s.lo)
	for i, c := range raw {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, []byte{c})
	}
	return b
}
