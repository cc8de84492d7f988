package classify

import (
	"slices"
	"strings"
)

// Schema knows what a database does by itself when a relation is read or written:
// it adds to the [Relations] of a text those that the text does not name. It is
// immutable, and safe for any number of goroutines.
//
// It is right as long as nothing has been redefined since its rows were read. What
// no catalog tells remains: an unqualified name is looked for in all schemas but
// the server's own, so it is wrong on a connection whose default database, or
// search path, is one of these; and the declarations of an extension's functions,
// and of those in C, are taken at their word.
type Schema struct {
	d       Dialect
	defs    *Definitions
	symbols []string
	opaque  bool

	nodes []schemaNode
	// exact finds a relation by its name with the schema, byTable all of one name.
	exact   map[Name]int32
	byTable map[string][]int32
}

// schemaNode is a relation, and the relations that it takes along.
type schemaNode struct {
	name                Name
	reads, writes       []int32
	readsAll, writesAll bool
}

// NewSchema puts together what the catalog tells. n is what is known of the
// database's functions, as for [Touches]; it may be nil.
func NewSchema(d Dialect, rows *SchemaRows, n *Definitions) *Schema {
	s := &Schema{d: d, defs: n, symbols: rows.Symbols, opaque: rows.Opaque, exact: make(map[Name]int32), byTable: make(map[string][]int32)}
	for _, symbol := range rows.Symbols {
		if _, ok := spelled[symbol]; ok {
			s.opaque = true // it stands in texts as a word, or as none
		}
	}
	for _, r := range rows.Relations {
		s.node(r)
	}
	for _, r := range rows.ReadsAll {
		s.nodes[s.node(r)].readsAll = true
	}
	for _, r := range rows.WritesAll {
		s.nodes[s.node(r)].writesAll = true
	}
	for i := range rows.Links {
		s.link(&rows.Links[i])
	}
	for i := range rows.Runs {
		s.run(&rows.Runs[i])
	}
	for i := range rows.Views {
		s.view(&rows.Views[i])
	}
	return s
}

// node returns the index of a relation, which it adds if it is new.
func (s *Schema) node(r SchemaName) int32 {
	name := CatalogName(s.d, r.Schema, r.Name)
	if i, ok := s.exact[name]; ok {
		return i
	}
	i := int32(len(s.nodes))
	s.nodes = append(s.nodes, schemaNode{name: name})
	s.exact[name] = i
	s.byTable[name.Table] = append(s.byTable[name.Table], i)
	return i
}

func (s *Schema) link(l *SchemaLink) {
	from := s.node(l.From)
	if CatalogName(s.d, l.To.Schema, l.To.Name).system(s.d) {
		s.nodes[from].readsAll = s.nodes[from].readsAll || l.Read
		return
	}
	to := s.node(l.To)
	if l.Read {
		s.nodes[from].reads = append(s.nodes[from].reads, to)
	}
	if l.Write {
		s.nodes[from].writes = append(s.nodes[from].writes, to)
	}
}

// run takes a function. One that advances a sequence does not look at relations
// otherwise; which one it is, a link tells.
func (s *Schema) run(r *SchemaRun) {
	if r.Trusted && (closedFunction(s.d, r.Function) || r.Write && lookup(s.d, r.Function) == fnSequence) {
		return
	}
	n := &s.nodes[s.node(r.Relation)]
	n.writesAll = true
	n.readsAll = n.readsAll || !r.Write
}

// view takes a view by its text. Whoever writes to one writes to what it is made
// of.
func (s *Schema) view(v *SchemaView) {
	i := s.node(v.SchemaName)
	touched := everything
	if v.Text != "" {
		touched = Touches(s.d, v.Text, s.defs)
	}
	if touched.All || len(touched.Writes) > 0 || s.hides(v.Text) {
		s.nodes[i].readsAll, s.nodes[i].writesAll = true, true
		return
	}
	for _, name := range touched.Reads {
		found := s.find(name)
		if len(found) == 0 {
			s.nodes[i].readsAll, s.nodes[i].writesAll = true, true
		}
		s.nodes[i].reads = append(s.nodes[i].reads, found...)
		s.nodes[i].writes = append(s.nodes[i].writes, found...)
	}
}

// find returns the relations that a name may mean.
func (s *Schema) find(n Name) []int32 {
	if n.Schema == "" {
		return s.byTable[n.Table]
	}
	if i, ok := s.exact[n]; ok {
		return []int32{i}
	}
	return nil
}

// hides reports whether the text may run code that no name in it shows.
func (s *Schema) hides(text string) bool {
	return s.opaque || slices.ContainsFunc(s.symbols, func(symbol string) bool { return strings.Contains(text, symbol) })
}

// Touches is [Touches] with the definitions that the Schema has, and Close of what
// that returns: all that the text reads and writes, be it named in it or not.
func (s *Schema) Touches(text string) Relations {
	r := Touches(s.d, text, s.defs)
	if s.hides(text) {
		return everything
	}
	return s.Close(r)
}

// Close adds to r what the database reads and writes by itself. The names that it
// returns all have their schema, so that two of them are the same relation only
// if they are equal. All is set if a name is not known (a temporary table, or a
// relation newer than the Schema), and if something is touched that may touch
// anything.
func (s *Schema) Close(r Relations) Relations {
	if r.All {
		return everything
	}
	writes, ok := s.reach(r.Writes, func(n *schemaNode) ([]int32, bool) { return n.writes, n.writesAll })
	if !ok {
		return everything
	}
	reads, ok := s.reach(r.Reads, func(n *schemaNode) ([]int32, bool) { return n.reads, n.readsAll })
	if !ok {
		return everything
	}
	// What is written may be read too, in its conditions and for its policies.
	seen, ok := s.reach(writes, func(n *schemaNode) ([]int32, bool) { return n.reads, n.readsAll })
	if !ok {
		return everything
	}
	var written, all nameSet
	for _, n := range writes {
		written.add(n)
	}
	for _, n := range reads {
		all.add(n)
	}
	for _, n := range seen {
		if !written.has(n) {
			all.add(n)
		}
	}
	return Relations{Reads: all.names, Writes: writes}
}

// reach returns the names and all that can be reached from them by the links that
// next returns. It returns false if one is not known, or leads anywhere.
func (s *Schema) reach(names []Name, next func(*schemaNode) (links []int32, all bool)) ([]Name, bool) {
	var found []Name
	seen := make(map[int32]struct{})
	var todo []int32
	for _, n := range names {
		at := s.find(n)
		if len(at) == 0 {
			return nil, false
		}
		todo = append(todo, at...)
	}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if _, ok := seen[i]; ok {
			continue
		}
		seen[i] = struct{}{}
		n := &s.nodes[i]
		links, all := next(n)
		if all {
			return nil, false
		}
		found = append(found, n.name)
		todo = append(todo, links...)
	}
	slices.SortFunc(found, compareNames)
	return found, true
}

func compareNames(a, b Name) int {
	if c := strings.Compare(a.Schema, b.Schema); c != 0 {
		return c
	}
	return strings.Compare(a.Table, b.Table)
}
