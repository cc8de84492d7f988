package classify

import (
	"slices"
	"strings"
)

// Definitions is what is known of one database's own functions, operators and
// relations, besides the tables of this package. It is immutable, and safe for
// any number of goroutines. A nil *Definitions knows nothing.
//
// Names are compared without regard to the case of ASCII letters, also in
// PostgreSQL, where quoted ones differ by it: functions whose names differ by
// case alone count as one, and are harmless only if all are. A function whose name
// holds anything but ASCII letters, digits, _ and $ is never known.
type Definitions struct {
	my bool
	// funcs has "name" for a call without a schema, "schema.name" for one with,
	// and "*.name" for one in a schema that is not listed.
	funcs map[string]nameFact
	// shadows: funcs has something to say of a name that the tables hold for
	// harmless.
	shadows bool
	// own are the functions, in small letters and without a schema, that are neither
	// built in nor an extension's, harmless or not: they may look at any relation.
	own map[string]struct{}

	// words are names that make a text something else wherever they stand in it.
	words map[string]fact
	// lengths has, for the first byte of a word in words, a bit for each length.
	lengths [256]uint64
	// symbols are operators with functions that are not known to be harmless.
	symbols []string
	// always holds of every text: what is known cannot be told by words.
	always fact
	scans  bool // words, symbols or always

	sum uint64
}

// nameFact is what is known of a function's name. The zero value is nothing.
type nameFact uint8

const (
	nameHarmless nameFact = iota + 1
	nameUnproven          // may write
	nameWrites            // the user says that it does
)

// NewDefinitions puts together what the catalog tells and what the user says, who has the
// last word: read and write are names of functions, as [PlainName] takes them, that
// only read, and that write. A name in both writes. Without a schema a name stands
// for the functions in all schemas. What the tables of this package hold for
// writing, locking or bound to the session stays that. c may be nil: nothing is
// known of the catalog.
func NewDefinitions(d Dialect, c *Catalog, read, write []string) *Definitions {
	b := builder{
		Definitions: &Definitions{my: d == MySQL || d == MariaDB || d == AnyMySQL, funcs: make(map[string]nameFact), own: make(map[string]struct{}), words: make(map[string]fact)},
		d:           d,
		said:        make(map[string]nameFact),
	}
	for _, name := range read {
		b.said[foldName(unquoted(name))] = nameHarmless
	}
	for _, name := range write {
		b.said[foldName(unquoted(name))] = nameWrites
	}
	if c != nil {
		b.functions(c.Functions)
		b.operators(c.Operators)
	}
	b.sayings()
	if c != nil {
		b.relations(c.Relations)
	}
	b.sum = b.checksum()
	return b.Definitions
}

// Equal reports whether both know the same, so that verdicts made with one hold
// with the other.
func (n *Definitions) Equal(o *Definitions) bool {
	return n == o || n != nil && o != nil && n.sum == o.sum && len(n.funcs) == len(o.funcs) && len(n.words) == len(o.words)
}

// PlainName reports whether s is the name of a function, perhaps behind that of
// its schema and a dot, in a form that [NewDefinitions] takes. Parts may be quoted.
func PlainName(s string) bool {
	parts := strings.Split(unquoted(s), ".")
	for _, p := range parts {
		if len(p) > maxFuncName+1 || !plainPart(p) {
			return false
		}
	}
	return len(parts) <= 2
}

// plainPart reports whether s is ASCII letters, digits, _ and $.
func plainPart(s string) bool { return s != "" && wordEnd(s, 0) == len(s) && ascii(s) }

func unquoted(name string) string {
	parts := strings.Split(name, ".")
	for i, p := range parts {
		if len(p) > 2 && (p[0] == '"' || p[0] == '`') && p[len(p)-1] == p[0] {
			parts[i] = p[1 : len(p)-1]
		}
	}
	return strings.Join(parts, ".")
}

// builder makes Definitions. said are the user's words.
type builder struct {
	*Definitions
	d    Dialect
	said map[string]nameFact
}

// factOf is what the functions of one name in one schema are, all told.
func (b *builder) factOf(f *CatalogFunction) nameFact {
	name := foldName(f.Name)
	all, one := b.said[name], b.said[foldName(f.Schema)+"."+name]
	if said := max(all, one); said != 0 {
		return said
	}
	if f.Trusted {
		// The tables have the last word on what they know, for its declaration
		// is a poor guide: random() is volatile, txid_current() is not.
		switch kind := lookup(b.d, f.Name); {
		case kind == fnHarmless:
			return nameHarmless
		case kind > fnHarmless:
			return nameUnproven
		}
	}
	if f.Harmless {
		return nameHarmless
	}
	return nameUnproven
}

func (b *builder) functions(list []CatalogFunction) {
	for i := range list {
		f := &list[i]
		if !plainPart(f.Name) {
			continue // nothing is known of it, whatever it is
		}
		name := foldName(f.Name)
		fact := b.factOf(f)
		if !f.Trusted {
			b.own[name] = struct{}{}
		}
		b.funcs[name] = max(b.funcs[name], fact)
		if key := foldName(f.Schema) + "." + name; plainPart(f.Schema) {
			b.funcs[key] = max(b.funcs[key], fact)
		}
		if fact != nameHarmless {
			if lookup(b.d, name) == fnHarmless {
				b.shadows = true
			}
			if f.Field {
				b.word(f.Name, factUnknown)
			}
		}
	}
}

// sayings adds what the user says of functions that the catalog has not, or that
// are called with a schema it has not.
func (b *builder) sayings() {
	for key, fact := range b.said {
		schema, name, qualified := strings.Cut(key, ".")
		if !qualified {
			name = schema
			b.funcs["*."+name] = fact
			b.funcs[name] = fact
		} else {
			fact = max(fact, b.said[name])
			b.funcs[key] = fact
			if fact == nameWrites {
				b.funcs[name] = nameWrites // the call without a schema may mean it
			}
		}
		if fact == nameWrites && lookup(b.d, name) == fnHarmless {
			b.shadows = true
		}
	}
}

// spelled are operators that are also written as words, and those words; "" where
// too much is written with them (IN, CASE, USING, BETWEEN, ORDER BY) to tell.
var spelled = map[string]string{
	"~~": "like", "!~~": "like", "~~*": "ilike", "!~~*": "ilike", "~": "similar", "!~": "similar",
	"=": "", "<>": "", "<": "", "<=": "", ">": "", ">=": "",
}

func (b *builder) operators(list []CatalogOperator) {
	for i := range list {
		o := &list[i]
		if b.factOf(&o.Function) == nameHarmless {
			continue
		}
		if !slices.Contains(b.symbols, o.Symbol) {
			b.symbols = append(b.symbols, o.Symbol)
		}
		b.scans = true
		switch word, ok := spelled[o.Symbol]; {
		case ok && word == "":
			b.always |= factOperator
		case ok:
			b.word(word, factOperator)
		}
	}
}

func (b *builder) relations(list []CatalogRelation) {
	var views []*CatalogRelation // not known to be more than what they read
	for i := range list {
		r := &list[i]
		switch {
		case r.Local:
			b.word(r.Name, factLocal)
		case r.Runs.Name != "":
			if b.factOf(&r.Runs) != nameHarmless {
				b.word(r.Name, factView)
			}
		case r.Text != "":
			if v := ClassifyWith(b.d, r.Text, b.Definitions); !v.Replica() {
				b.word(r.Name, viewFact(v))
			} else {
				views = append(views, r)
			}
		}
	}
	// Views over views, until no more are found.
	for found := b.scans; found; {
		found = false
		views = slices.DeleteFunc(views, func(r *CatalogRelation) bool {
			f := b.scan(r.Text)
			if f == 0 {
				return false
			}
			if f&factView == 0 && f != factLocal {
				f = factView
			}
			b.word(r.Name, f)
			found = true
			return true
		})
	}
}

// viewFact is what a view is whose text has the verdict v.
func viewFact(v Verdict) fact {
	if v.Class == Show && v.Effect == 0 {
		return factLocal
	}
	return factView
}

// word has every text that holds the name become what the fact says. Of a name in
// which there is more than letters and digits the longest piece stands for the
// whole; if there is none, every text is taken to hold it.
func (b *builder) word(name string, f fact) {
	b.scans = true
	longest := ""
	for i := 0; i < len(name); {
		end := wordEnd(name, i)
		if end-i > len(longest) {
			longest = name[i:end]
		}
		i = max(end, i+1)
	}
	if longest == "" {
		b.always |= f
		return
	}
	key := foldName(longest)
	b.words[key] |= f
	b.lengths[key[0]] |= lengthBit(len(key)) // of no use to a word that is not ASCII
}

// checksum is the same for the same content, in whatever order it came.
func (b *builder) checksum() uint64 {
	sum := uint64(b.always)
	for name, f := range b.funcs {
		sum += mixed('f', name, uint64(f))
	}
	for name := range b.own {
		sum += mixed('o', name, 0)
	}
	for word, f := range b.words {
		sum += mixed('w', word, uint64(f))
	}
	for _, s := range b.symbols {
		sum += mixed('s', s, 0)
	}
	return sum
}

// mixed is the FNV-1a hash of the three.
func mixed(kind byte, s string, value uint64) uint64 {
	const prime = 1099511628211
	h := (14695981039346656037 ^ uint64(kind)) * prime
	for i := 0; i < len(s); i++ {
		h = (h ^ uint64(s[i])) * prime
	}
	return mixWord(h, value)
}
