package position

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// ParseGTIDSet reads MySQL's notation of a set:
//
//	set:      '' | uuid_set { , uuid_set }
//	uuid_set: uuid { : item }
//	item:     number | number-number | tag
//
// as gtid_executed prints it, with blanks and line breaks between the parts. A
// tag, of MySQL 8.3 and later, is for the numbers that follow it up to the next
// tag or uuid. Sets may be out of order and overlap.
//
// What the server would read in a way of its own is an error: a uuid without
// numbers, doubled commas, a span that ends before it begins, and numbers in
// octal or hexadecimal. So are texts longer than 16 MiB.
func ParseGTIDSet(s string) (Position, error) {
	if len(s) > maxText {
		return Position{}, errTooLong(s)
	}
	p := gtidParser{text: s}
	if err := p.set(); err != nil {
		return Position{}, err
	}
	return Position{&gtidSet{normalize(p.sources)}}, nil
}

type gtidParser struct {
	text    string
	at      int
	sources []source
}

func (p *gtidParser) set() error {
	p.blanks()
	if p.at == len(p.text) {
		return nil
	}
	for {
		if err := p.uuidSet(); err != nil {
			return err
		}
		if p.at == len(p.text) {
			return nil
		}
		if !p.accept(',') {
			return p.want("a comma")
		}
	}
}

func (p *gtidParser) uuidSet() error {
	var src source
	if !p.uuid(&src) {
		return p.want("a uuid")
	}
	for p.accept(':') {
		if p.at < len(p.text) && tagByte(p.text[p.at], true) {
			if src.tag != "" || len(src.spans) > 0 {
				if len(src.spans) == 0 {
					return p.want("a number")
				}
				p.sources = append(p.sources, src)
			}
			src.spans = nil
			if src.tag = p.tag(); len(src.tag) > maxTag {
				return p.want("a shorter tag")
			}
			continue
		}
		first, ok := p.number()
		last := first
		if ok && p.accept('-') {
			last, ok = p.number()
		}
		if !ok || first < 1 || last < first {
			return p.want("a number")
		}
		src.spans = append(src.spans, span{first, last})
	}
	if len(src.spans) == 0 {
		return p.want("a number")
	}
	p.sources = append(p.sources, src)
	return nil
}

// uuid reads the form with four dashes.
func (p *gtidParser) uuid(src *source) bool {
	const length = 36
	if len(p.text)-p.at < length {
		return false
	}
	for i, c := range []byte(p.text[p.at : p.at+length]) {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if c != '-' {
				return false
			}
			continue
		}
		digit, ok := hexDigit(c)
		if !ok {
			return false
		}
		src.hi = src.hi<<4 | src.lo>>60
		src.lo = src.lo<<4 | uint64(digit)
	}
	p.at += length
	p.blanks()
	return true
}

// tag reads a tag, which the server knows in lower case alone (Tag::normalize in
// libs/mysql/gtids/tag.h).
func (p *gtidParser) tag() string {
	begin := p.at
	for p.at < len(p.text) && tagByte(p.text[p.at], false) {
		p.at++
	}
	tag := strings.ToLower(p.text[begin:p.at])
	p.blanks()
	return tag
}

func tagByte(c byte, first bool) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || !first && '0' <= c && c <= '9'
}

func (p *gtidParser) number() (uint64, bool) {
	begin := p.at
	for p.at < len(p.text) && '0' <= p.text[p.at] && p.text[p.at] <= '9' {
		p.at++
	}
	n, ok := decimal(p.text[begin:p.at], maxNumber)
	p.blanks()
	return n, ok
}

// accept skips a separator and the blanks behind it.
func (p *gtidParser) accept(c byte) bool {
	if p.at == len(p.text) || p.text[p.at] != c {
		return false
	}
	p.at++
	p.blanks()
	return true
}

func (p *gtidParser) blanks() {
	for p.at < len(p.text) && strings.IndexByte(" \t\n\v\f\r", p.text[p.at]) >= 0 {
		p.at++
	}
}

func (p *gtidParser) want(what string) error {
	if p.at == len(p.text) {
		return fmt.Errorf("position: GTID set ends where there should be %s", what)
	}
	return fmt.Errorf("position: GTID set: there should be %s before %s", what, quote(p.text[p.at:]))
}

// normalize puts sources and spans in order, and joins what belongs together. It
// takes the time of sorting only for what is out of order.
func normalize(list []source) []source {
	order := func(a, b source) int { return a.compare(&b) }
	if !slices.IsSortedFunc(list, order) {
		slices.SortFunc(list, order)
	}
	out := list[:0]
	for _, src := range list {
		if n := len(out); n > 0 && out[n-1].compare(&src) == 0 {
			out[n-1].spans = append(out[n-1].spans, src.spans...)
		} else {
			out = append(out, src)
		}
	}
	for i := range out {
		out[i].spans = join(out[i].spans)
	}
	return out
}

func join(spans []span) []span {
	order := func(a, b span) int { return cmp.Compare(a.first, b.first) }
	if !slices.IsSortedFunc(spans, order) {
		slices.SortFunc(spans, order)
	}
	out := spans[:0]
	for _, s := range spans {
		out = add(out, s)
	}
	return out
}
