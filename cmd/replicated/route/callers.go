package route

import (
	"cmp"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/record"
)

// maxCallers bounds how many callers are told apart; later ones are counted together.
// A record has more of them only if there are values in their names.
const maxCallers = 10_000

// tally is what records tell of a caller, or of all.
type tally struct {
	statements int64
	by         [fates]int64
	failed     int64 // statements, wherever they ran, and attempts on replicas
	writes     int64
}

// caller is what records tell of one caller.
type caller struct {
	name string
	tally
	whys  map[fateWhy]int64
	wrote map[writeKind]int64
}

// writeKind is what a statement that counts as a write looks like.
type writeKind struct {
	keyword string
	surely  bool // by its text; else it may
}

// recordSummary gathers what the records of processes tell. Its callers are added up over all
// of them.
type recordSummary struct {
	callers   map[string]*caller
	total     caller
	overflow  bool
	notices   map[string]int64
	reasons   map[string]bool
	dropped   int64
	skipped   int64
	processes int64
	from, to  time.Time
}

func newRecordSummary() *recordSummary {
	s := &recordSummary{callers: make(map[string]*caller), notices: make(map[string]int64), reasons: make(map[string]bool)}
	s.total.init()
	return s
}

func (c *caller) init() {
	c.whys, c.wrote = make(map[fateWhy]int64), make(map[writeKind]int64)
}

// read adds a record.
func (s *recordSummary) read(in io.Reader) error {
	skipped, err := record.Read(in, func(l *record.Line) error {
		s.add(l)
		return nil
	})
	s.skipped += skipped
	return err
}

func (s *recordSummary) add(l *record.Line) {
	if s.from.IsZero() || l.At.Before(s.from) {
		s.from = l.At
	}
	if l.At.After(s.to) {
		s.to = l.At
	}
	if l.Began {
		s.processes++
	}
	s.dropped += l.Dropped
	if l.Notice != "" {
		s.notices[l.Notice] += l.N
	}
	if l.Class == "" || framing(l) {
		return
	}
	s.reasons[l.Reason] = true
	f, why := fateOf(l)
	for _, c := range []*caller{&s.total, s.caller(l.Caller)} {
		c.add(l, f, why)
	}
}

// otherCallers stands for those beyond maxCallers.
const otherCallers = "(others)"

func (s *recordSummary) caller(name string) *caller {
	c := s.callers[name]
	if c == nil && len(s.callers) >= maxCallers {
		name, s.overflow = otherCallers, true
		c = s.callers[name]
	}
	if c == nil {
		c = &caller{name: name}
		c.init()
		s.callers[name] = c
	}
	return c
}

func (c *caller) add(l *record.Line, f fate, why string) {
	n := l.N
	c.failed += l.Failed
	if l.Role == replicated.RoleReplica.String() {
		n -= l.Failed // it ran elsewhere then, and that is told of too; or its caller has the error
	}
	if f == fateRefused { // those that failed on the primary too have nothing to lose
		c.by[fateStays] += l.Failed
		c.statements += l.Failed
		n -= l.Failed
	}
	c.statements += n
	c.by[f] += n
	c.whys[fateWhy{f, why}] += n
	if l.Write {
		c.writes += n
		c.wrote[writeKind{l.Keyword, surelyWrites(l.Class)}] += n
	}
}

// writesInGet reports whether the caller is a request that should change nothing, and
// has written.
func (c *caller) writesInGet() bool {
	method, _, _ := strings.Cut(c.name, " ")
	return (method == "GET" || method == "HEAD") && c.writes > 0
}

// sorted returns the callers, those with the most statements first.
func (s *recordSummary) sorted() []*caller {
	list := make([]*caller, 0, len(s.callers))
	for _, c := range s.callers {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *caller) int {
		return cmp.Or(cmp.Compare(b.statements, a.statements), strings.Compare(a.name, b.name))
	})
	return list
}

// counted is how often something was, by a name.
type counted struct {
	what string
	n    int64
}

// why returns the reasons of one fate, the most frequent first.
func (c *caller) why(f fate) []counted {
	var list []counted
	for w, n := range c.whys {
		if w.fate == f && n > 0 {
			list = append(list, counted{w.why, n})
		}
	}
	return byCount(list)
}

// written returns what the caller wrote with, the most frequent first.
func (c *caller) written() []counted {
	var list []counted
	for k, n := range c.wrote {
		what := k.keyword
		if !k.surely {
			what += " (may write)"
		}
		list = append(list, counted{what, n})
	}
	return byCount(list)
}

func byCount(list []counted) []counted {
	slices.SortFunc(list, func(a, b counted) int { return cmp.Or(cmp.Compare(b.n, a.n), strings.Compare(a.what, b.what)) })
	return list
}
