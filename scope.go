package replicated

import (
	"slices"
	"sync"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/evidence"
)

// touch is what a statement touches, for floors that are kept by table. A nil
// *touch touches everything, and so does every statement with ScopeAll.
type touch struct {
	reads  []classify.Name
	writes []classify.Name
}

// and returns what two statements touch together.
func (t *touch) and(u *touch) *touch {
	switch {
	case t == nil || u == nil:
		return nil
	case t == u || u.has(t):
		return u
	default:
		return &touch{reads: united(t.reads, u.reads), writes: united(t.writes, u.writes)}
	}
}

// has tells whether u touches nothing that t does not.
func (t *touch) has(u *touch) bool {
	lacks := func(names []classify.Name) func(classify.Name) bool {
		return func(n classify.Name) bool { return !slices.Contains(names, n) }
	}
	return !slices.ContainsFunc(u.reads, lacks(t.reads)) && !slices.ContainsFunc(u.writes, lacks(t.writes))
}

// united returns the names of both lists, each once.
func united(a, b []classify.Name) []classify.Name {
	all := slices.Clone(a)
	for _, n := range b {
		if !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	return all
}

// ledger is what was written in one scope: as a whole, and by table. The zero
// ledger is empty. It is not safe for concurrent use; see ledgers.
type ledger struct {
	any    floor                   // the last write of all
	wide   floor                   // the last one of which it is not known what it touched
	tables map[classify.Name]floor // the last one to each other table
}

// maxTables bounds what a ledger keeps apart. Beyond that all count as written.
const maxTables = 4096

func (l *ledger) raise(to floor, t *touch) {
	l.any = l.any.Max(to)
	if t == nil || len(l.tables)+len(t.writes) > maxTables {
		l.wide = l.wide.Max(to)
		return
	}
	if l.tables == nil {
		l.tables = make(map[classify.Name]floor, len(t.writes))
	}
	for _, n := range t.writes {
		l.tables[n] = l.tables[n].Max(to)
	}
}

// floor returns the floor of a read of what t touches.
func (l *ledger) floor(t *touch) floor {
	if t == nil {
		return l.any
	}
	f := l.wide
	for _, n := range t.reads {
		f = f.Max(l.tables[n])
	}
	return f
}

// ledgers is a ledger for any number of goroutines. What is asked of everything
// takes no lock.
type ledgers struct {
	any stamps

	mu     sync.RWMutex
	ledger ledger
}

func (l *ledgers) raise(at moment, async bool, t *touch) {
	to := floorAt(at, async)
	l.mu.Lock()
	l.ledger.raise(to, t)
	l.mu.Unlock()
	l.any.raise(at, async)
}

func (l *ledgers) floor(t *touch) floor {
	if t == nil {
		return l.any.load()
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.ledger.floor(t)
}

// floorAt is the floor of one write that was acknowledged at that moment.
func floorAt(at moment, async bool) floor {
	if async {
		return evidence.All(at)
	}
	return floor{Any: at}
}

// touches remembers what texts touch, by one state of the catalog. It is safe for
// concurrent use.
type touches struct {
	mu     sync.RWMutex
	schema *classify.Schema
	texts  map[string]*touch
}

// maxTexts bounds what is remembered; then it begins anew.
const maxTexts = 4096

// of returns what a text touches; nil for everything.
func (ts *touches) of(s *classify.Schema, text string) *touch {
	if s == nil {
		return nil
	}
	ts.mu.RLock()
	t, known := ts.texts[text]
	known = known && ts.schema == s
	ts.mu.RUnlock()
	if known {
		return t
	}
	if r := s.Touches(text); r.All {
		t = nil
	} else {
		t = &touch{reads: r.Reads, writes: r.Writes}
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.schema != s || len(ts.texts) >= maxTexts {
		ts.schema, ts.texts = s, make(map[string]*touch)
	}
	ts.texts[text] = t
	return t
}

// touch returns what a text touches, where floors are kept by table; nil for
// everything. What the catalog tells holds until something is redefined.
func (c *Cluster) touch(text string) *touch {
	if c.cfg.Scope != ScopeTable {
		return nil
	}
	return c.touches.of(c.catalog.schema(), text)
}

// wrote is touch for a statement that is going to write; nil for everything, and
// where the text does not tell what it is that it writes to. It tells too by what
// schema that is so.
func (c *Cluster) wrote(text string) (*touch, *classify.Schema) {
	if c.cfg.Scope != ScopeTable {
		return nil, nil
	}
	s := c.catalog.schema()
	if t := c.touches.of(s, text); t != nil && len(t.writes) > 0 {
		return t, s
	}
	return nil, nil
}

// touched takes back what was thought that a statement would write to, if the
// schema has been changed meanwhile: a trigger may have run that was not there.
func (c *Conn) touched(w *work) {
	if w.touch != nil && c.cluster.catalog.schema() != w.schema {
		w.touch = nil
	}
}
