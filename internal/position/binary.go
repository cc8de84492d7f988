package position

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// The first byte of an encoded position says what follows. A format never
// changes: another one gets another number.
const (
	formatNone byte = iota // nothing
	formatLSN              // number
	formatGTIDSet
	formatGTIDList
	formatPrimary // GTIDList with a primary
	formatFile
	formatBeat
	formatNowhere // nothing
)

var errEncoding = errors.New("position: not an encoded position")

// AppendBinary appends an encoding of p to b, from which [Decode] gets an equal
// position, the zero one included. It says itself where it ends. An LSN takes at
// most 11 bytes, a MariaDB GTID 3 to 20, a MySQL server 18 and each of its spans
// 2 to 18.
//
// Numbers are unsigned varints of encoding/binary, of which only the shortest
// form is valid. Texts have their length before them. Lists have the number of
// elements before them.
func (p Position) AppendBinary(b []byte) []byte {
	if p.v == nil {
		return append(b, formatNone)
	}
	return p.v.appendBinary(b)
}

// Decode reads a position from the beginning of b and returns what is behind it.
// It accepts what [Position.AppendBinary] can have written and nothing else, so
// that equal positions have equal encodings. b may come from anybody: it takes
// time and memory in proportion to its length.
func Decode(b []byte) (p Position, rest []byte, err error) {
	d := decoder{rest: b}
	p.v = d.value()
	if d.failed {
		return Position{}, nil, errEncoding
	}
	if d.format != 0 {
		return Position{}, nil, fmt.Errorf("position: encoded in an unknown format %d", d.format)
	}
	return p, d.rest, nil
}

func (n lsn) appendBinary(b []byte) []byte {
	return binary.AppendUvarint(append(b, formatLSN), uint64(n))
}

func (nowhere) appendBinary(b []byte) []byte { return append(b, formatNowhere) }

func (h beat) appendBinary(b []byte) []byte {
	b = binary.AppendUvarint(append(b, formatBeat), h.epoch)
	return binary.AppendUvarint(b, h.counter)
}

func (f file) appendBinary(b []byte) []byte {
	b = appendString(append(b, formatFile), f.source)
	if f.empty() {
		return b
	}
	b = appendString(b, f.base)
	b = binary.AppendUvarint(b, f.number)
	return binary.AppendUvarint(b, f.offset)
}

func (l *gtidList) appendBinary(b []byte) []byte {
	if l.primary == 0 {
		return appendList(append(b, formatGTIDList), l.last)
	}
	b = binary.AppendUvarint(append(b, formatPrimary), uint64(l.primary))
	return appendList(appendList(b, l.last), l.logged)
}

func appendList(b []byte, list []mariaGTID) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, g := range list {
		b = binary.AppendUvarint(b, uint64(g.domain))
		b = binary.AppendUvarint(b, uint64(g.server))
		b = binary.AppendUvarint(b, g.number)
	}
	return b
}

// Of spans, the distance from the smallest number at which they could begin and
// how many numbers follow the first are written.
func (s *gtidSet) appendBinary(b []byte) []byte {
	b = binary.AppendUvarint(append(b, formatGTIDSet), uint64(len(s.sources)))
	for i := range s.sources {
		src := &s.sources[i]
		b = binary.BigEndian.AppendUint64(b, src.hi)
		b = binary.BigEndian.AppendUint64(b, src.lo)
		b = appendString(b, src.tag)
		b = binary.AppendUvarint(b, uint64(len(src.spans)))
		least := uint64(1)
		for _, n := range src.spans {
			b = binary.AppendUvarint(b, n.first-least)
			b = binary.AppendUvarint(b, n.last-n.first)
			least = n.last + 2
		}
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decoder reads from the beginning of rest. After a failure it returns zeros.
type decoder struct {
	rest   []byte
	failed bool
	format byte // not known
}

func (d *decoder) value() value {
	switch format := d.byte(); format {
	case formatNone:
		return nil
	case formatLSN:
		return lsn(d.number(math.MaxUint64))
	case formatGTIDSet:
		return d.gtidSet()
	case formatGTIDList:
		return &gtidList{last: d.list()}
	case formatPrimary:
		return d.primary()
	case formatFile:
		return d.file()
	case formatBeat:
		return beat{d.number(math.MaxUint64), d.number(math.MaxUint64)}
	case formatNowhere:
		return nowhere{}
	default:
		d.format = format
		return nil
	}
}

func (d *decoder) gtidSet() *gtidSet {
	const least = 16 + 1 + 1 + 2 // uuid, empty tag, one span
	sources := make([]source, d.count(least))
	for i := range sources {
		src := &sources[i]
		src.hi, src.lo = d.uint64(), d.uint64()
		src.tag = d.text(maxTag)
		d.require(validTag(src.tag) && (i == 0 || sources[i-1].compare(src) < 0))
		src.spans = d.spans()
		if d.failed {
			break
		}
	}
	return &gtidSet{sources}
}

func validTag(tag string) bool {
	for i, c := range []byte(tag) {
		if !tagByte(c, i == 0) || 'A' <= c && c <= 'Z' {
			return false
		}
	}
	return true
}

func (d *decoder) spans() []span {
	spans := make([]span, d.count(2))
	d.require(len(spans) > 0)
	least := uint64(1)
	for i := range spans {
		if least > maxNumber {
			d.failed = true
			break
		}
		spans[i].first = least + d.number(maxNumber-least)
		spans[i].last = spans[i].first + d.number(maxNumber-spans[i].first)
		least = spans[i].last + 2
	}
	return spans
}

func (d *decoder) list() []mariaGTID {
	list := make([]mariaGTID, d.count(3))
	for i := range list {
		list[i].domain = uint32(d.number(math.MaxUint32))
		list[i].server = uint32(d.number(math.MaxUint32))
		list[i].number = d.number(math.MaxUint64)
		if d.require(i == 0 || list[i-1].compare(list[i]) < 0); d.failed {
			break
		}
	}
	return list
}

func (d *decoder) primary() *gtidList {
	l := &gtidList{primary: uint32(d.number(math.MaxUint32)), last: d.list(), logged: d.list()}
	d.require(l.primary != 0)
	for i, g := range l.last {
		number, ok := find(l.logged, g.domain, g.server)
		d.require(ok && number == g.number && (i == 0 || l.last[i-1].domain != g.domain))
	}
	return l
}

func (d *decoder) file() file {
	f := file{source: d.text(maxName)}
	if f.empty() {
		return f
	}
	f.base, f.number, f.offset = d.text(maxName), d.number(math.MaxUint64), d.number(math.MaxUint64)
	d.require(f.base != "")
	return f
}

// require fails the decoder unless ok.
func (d *decoder) require(ok bool) { d.failed = d.failed || !ok }

func (d *decoder) byte() byte {
	if d.require(len(d.rest) >= 1); d.failed {
		return 0
	}
	b := d.rest[0]
	d.rest = d.rest[1:]
	return b
}

func (d *decoder) uint64() uint64 {
	if d.require(len(d.rest) >= 8); d.failed {
		return 0
	}
	n := binary.BigEndian.Uint64(d.rest)
	d.rest = d.rest[8:]
	return n
}

// number reads a varint of the shortest form.
func (d *decoder) number(most uint64) uint64 {
	n, length := binary.Uvarint(d.rest)
	if d.require(length > 0 && n <= most && (length == 1 || d.rest[length-1] != 0)); d.failed {
		return 0
	}
	d.rest = d.rest[length:]
	return n
}

// count reads the number of elements of a list, of which each takes at least
// size bytes: no more are believed than there is room for.
func (d *decoder) count(size int) int {
	return int(d.number(uint64(len(d.rest) / size)))
}

func (d *decoder) text(most uint64) string {
	length := d.number(most)
	if d.require(length <= uint64(len(d.rest))); d.failed {
		return ""
	}
	s := string(d.rest[:length])
	d.rest = d.rest[length:]
	return s
}
