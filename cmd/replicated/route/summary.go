package route

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// maxGroups bounds how many texts are told apart. Those that come later are counted
// together.
const maxGroups = 50_000

// maxShown is the length to which a text is kept, in bytes.
const maxShown = 500

// amount is how often, and for how long.
type amount struct {
	calls int64
	took  time.Duration
	timed int64 // calls of which the time is known
}

func (a *amount) add(b amount) {
	a.calls += b.calls
	a.took += b.took
	a.timed += b.timed
}

// group is the statements with one form and one fate.
type group struct {
	amount
	text      string // the form, or with values the first text
	why       string
	class     string
	replica   bool
	write     bool
	disguised bool
}

type groupKey struct {
	hash    uint64
	replica bool
	why     string
}

// summary gathers what reports tell.
type summary struct {
	norm   *normalizer
	values bool // texts are shown as they came

	total, replica, primary amount
	writes                  int64
	groups                  map[groupKey]*group
	overflow                int64 // statements whose texts were not told apart
}

func newSummary(norm *normalizer, values bool) *summary {
	return &summary{norm: norm, values: values, groups: make(map[groupKey]*group)}
}

// add counts a statement and returns the group it belongs to.
func (s *summary) add(e *entry, d *decision) *group {
	a := amount{calls: e.calls}
	if e.took >= 0 {
		a.took, a.timed = e.took, e.calls
	}
	if d.Write {
		s.writes += e.calls
	}
	form, hash, ok := s.norm.form(e.text)
	if !ok {
		form = []byte(d.Keyword + " … (a text that cannot be cut for certain)")
		hash = uint64(len(d.Keyword))
	}
	key := groupKey{hash: hash, replica: d.replica, why: d.why}
	g := s.groups[key]
	if g == nil {
		g = s.open(key, form, e, d)
	}
	s.count(g, a)
	return g
}

func (s *summary) open(key groupKey, form []byte, e *entry, d *decision) *group {
	g := &group{why: d.why, class: d.Class, replica: d.replica, write: d.Write, disguised: d.disguised}
	switch {
	case len(s.groups) >= maxGroups:
		s.overflow += e.calls
		key.hash = 0
		if other := s.groups[key]; other != nil {
			return other
		}
		g.text, g.disguised = "(further texts)", false
	case s.values:
		g.text = shorten(strings.Join(strings.Fields(e.text), " "))
	default:
		g.text = shorten(string(form))
	}
	s.groups[key] = g
	return g
}

// count adds to a group, and to the totals it belongs to.
func (s *summary) count(g *group, a amount) {
	g.add(a)
	s.total.add(a)
	if g.replica {
		s.replica.add(a)
	} else {
		s.primary.add(a)
	}
}

// shorten cuts a text between characters, into memory of its own.
func shorten(text string) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	if len(text) <= maxShown {
		return strings.Clone(text)
	}
	return strings.ToValidUTF8(text[:maxShown], "") + "…"
}

// kind is the statements that stay for one reason.
type kind struct {
	amount
	why    string
	groups []*group
}

// byTime tells whether shares and ranks are of time: if it is known of most calls.
func (s *summary) byTime() bool { return s.total.took > 0 && s.total.timed*2 > s.total.calls }

func (s *summary) rank(a, b amount) int {
	if s.byTime() {
		return cmp.Or(cmp.Compare(b.took, a.took), cmp.Compare(b.calls, a.calls))
	}
	return cmp.Or(cmp.Compare(b.calls, a.calls), cmp.Compare(b.took, a.took))
}

func (s *summary) sorted(which func(*group) bool) []*group {
	var list []*group
	for _, g := range s.groups {
		if which(g) {
			list = append(list, g)
		}
	}
	slices.SortFunc(list, func(a, b *group) int {
		return cmp.Or(s.rank(a.amount, b.amount), strings.Compare(a.text, b.text), strings.Compare(a.why, b.why))
	})
	return list
}

// kinds returns what stays on the primary by reason, the most important first, and
// so in each.
func (s *summary) kinds() []*kind {
	byWhy := make(map[string]*kind)
	var list []*kind
	for _, g := range s.sorted(func(g *group) bool { return !g.replica }) {
		k := byWhy[g.why]
		if k == nil {
			k = &kind{why: g.why}
			byWhy[g.why] = k
			list = append(list, k)
		}
		k.add(g.amount)
		k.groups = append(k.groups, g)
	}
	slices.SortFunc(list, func(a, b *kind) int {
		return cmp.Or(s.rank(a.amount, b.amount), strings.Compare(a.why, b.why))
	})
	return list
}

func (s *summary) moving() []*group    { return s.sorted(func(g *group) bool { return g.replica }) }
func (s *summary) disguised() []*group { return s.sorted(func(g *group) bool { return g.disguised }) }
