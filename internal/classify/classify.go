package classify

import (
	"slices"

	"github.com/sqlreplicated/replicated/internal/lex"
)

// Classify says what text does. It is a pure function, allocates nothing, and
// takes time linear in the length of text.
//
// The text is cut under the server's default mode. If something was met that
// another mode of the server, or another version of it, would cut differently,
// it is cut again under that mode, and the verdicts are put together so that the
// result holds under each.
func Classify(d Dialect, text string) Verdict { return ClassifyWith(d, text, nil) }

// openNotes are what makes another pass necessary, and openGeneric what makes it
// so where the database is not known.
const (
	openNotes   = lex.Conditional | lex.EscapedQuote
	openGeneric = lex.Divergent
)

// dialectModes are the modes in which texts of a dialect may have to be read.
type dialectModes struct {
	first lex.Mode
	// others are the quotings that a server may have been set to, besides its
	// default.
	others []quoting
}

var modes = [...]dialectModes{
	Generic:  {lex.Mode{Limit: lex.Unlimited}, postgresQuotings[:]},
	Postgres: {lex.Mode{Limit: lex.Unlimited}, postgresQuotings[:]},
	MySQL:    {lex.Mode{MySQL: true, Escapes: true, Limit: lex.Unlimited}, mysqlQuotings[:]},
	MariaDB:  {lex.Mode{MySQL: true, Escapes: true, Limit: lex.Unlimited, Server: lex.ServerMariaDB}, mysqlQuotings[:]},
	AnyMySQL: {lex.Mode{MySQL: true, Escapes: true, Limit: lex.Unlimited, Server: lex.ServerEither}, mysqlQuotings[:]},
}

// quoting is how a mode treats backslashes in quotes.
type quoting struct{ escapes, ansi bool }

var (
	// postgresQuotings: standard_conforming_strings off.
	postgresQuotings = [...]quoting{{escapes: true}}
	// mysqlQuotings: ANSI_QUOTES, then NO_BACKSLASH_ESCAPES, with which
	// ANSI_QUOTES changes nothing.
	mysqlQuotings = [...]quoting{{escapes: true, ansi: true}, {}}
)

// classifyOthers goes on where the first pass, done by w with the verdict v, met
// something that other modes cut differently.
func classifyOthers(d Dialect, text string, m *dialectModes, v Verdict, w *walker) Verdict {
	if w.lx.Notes&(lex.Conditional|lex.EscapedQuote) != 0 {
		v = classifyQuotings(d, text, m, v, w)
	}
	if d != Generic || w.lx.Notes&lex.Divergent == 0 {
		return v
	}
	my := &modes[AnyMySQL]
	var other walker
	other.names = w.names
	var ov Verdict
	other.classify(&ov, Generic, text, my.first)
	if other.lx.Notes&(lex.Conditional|lex.EscapedQuote) != 0 {
		ov = classifyQuotings(Generic, text, my, ov, &other)
	}
	return stricter(v, ov)
}

// classifyQuotings reads the text with each answer to whether its executable
// comments run, and in each quoting that makes a difference.
func classifyQuotings(d Dialect, text string, m *dialectModes, v Verdict, w *walker) Verdict {
	notes := w.lx.Notes
	limits := [6]int{lex.Unlimited}
	n := 1
	if notes&lex.Conditional != 0 {
		versions := w.lx.NumVersions
		if versions > len(w.lx.Versions) || versions > 1 && m.first.Server == lex.ServerEither {
			v = stricter(v, severalConditions(v))
		} else {
			// Comments run up to the server's version: with each of them as the
			// first that does not run, all cases are seen.
			for _, version := range w.lx.Versions[:versions] {
				if version < 0 {
					version = -version - 1
				}
				limits[n] = version - 1
				n++
			}
		}
	}
	for i, limit := range limits[:n] {
		mode := m.first
		mode.Limit = limit
		if i > 0 {
			var other walker
			other.names = w.names
			var ov Verdict
			other.classify(&ov, d, text, mode)
			v = stricter(v, ov)
			if !known(&w.lx, &other.lx) {
				v = stricter(v, severalConditions(v))
			}
			notes |= other.lx.Notes
		}
		if notes&lex.EscapedQuote == 0 {
			continue
		}
		for _, q := range m.others {
			mode.Escapes, mode.AnsiQuotes = q.escapes, q.ansi
			var other walker
			other.names = w.names
			var ov Verdict
			other.alternate = true
			other.classify(&ov, d, text, mode)
			v = stricter(v, ov)
			if !known(&w.lx, &other.lx) {
				v = stricter(v, severalConditions(v))
			}
		}
	}
	return v
}

// known reports whether a further pass has met the conditions of the first only. A
// comment that holds a quote may hide others in one pass that show in the next,
// and all cases of these have not been looked at.
func known(first, other *lex.Lexer) bool {
	if other.NumVersions > len(other.Versions) {
		return false
	}
	seen := first.Versions[:min(first.NumVersions, len(first.Versions))]
	for _, v := range other.Versions[:other.NumVersions] {
		if !slices.Contains(seen, v) {
			return false
		}
	}
	return true
}

func severalConditions(v Verdict) Verdict {
	return Verdict{Class: Unknown, Effect: Stamps, Params: -1, Keyword: v.Keyword, Reason: "executable comments under several conditions"}
}

// classify makes one pass over the text. w and v must be zero, but for alternate and names.
func (w *walker) classify(v *Verdict, d Dialect, text string, m lex.Mode) {
	w.open(d, text, m)
	w.text(v)
}

// open prepares w, which must be zero, but for alternate and names, for a pass. It is
// small enough to be inlined.
func (w *walker) open(d Dialect, text string, m lex.Mode) {
	w.lx.Init(text, m)
	w.d, w.my, w.gen = d, m.MySQL, d == Generic
	w.grammar = &grammars[d]
}

// grammar has the tables of a dialect.
type grammar struct {
	tbl   *table
	words *wordTable
}

var grammars = [...]grammar{
	Generic:  {&genericTable, &genericWords},
	Postgres: {&postgresTable, &postgresWords},
	MySQL:    {&mysqlTable, &mysqlWords},
	MariaDB:  {&mysqlTable, &mysqlWords},
	AnyMySQL: {&mysqlTable, &mysqlWords},
}

// stricter returns a verdict that holds whichever of two holds: the effects of
// both, and no read unless both are. One that is empty, because no server in that
// mode or version runs anything of the text, does not count.
func stricter(a, b Verdict) Verdict {
	v := a
	switch {
	case b.Class == Empty:
	case a.Class == Empty:
		v = b
	default:
		if a.Replica() && !b.Replica() {
			v = b
		}
		v.Effect = pinsWin(a.Effect | b.Effect)
		v.Vars = a.Vars | b.Vars
		v.Cacheable = a.Cacheable && b.Cacheable
		if a.Params != b.Params {
			v.Params = -1
		}
	}
	if a.Hint == HintPrimary || b.Hint == HintPrimary {
		v.Hint = HintPrimary
	}
	return v
}
