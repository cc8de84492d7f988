package classify

import (
	"strings"

	"github.com/sqlreplicated/replicated/internal/lex"
)

// paren looks at what stands before an opening parenthesis. It reports whether the
// closing one ends an operand or a table, so that a name and a parenthesis behind
// it are no call but an alias with a list of columns. SELECT DISTINCT ON (…) and
// TOP (…) are the exceptions: an expression follows. What it says true to without
// more is in [wordTable.skim] too.
func (w *walker) paren(s *bodyState) bool {
	switch s.Prev {
	case lex.MarkRParen, lex.MarkEnding:
		s.Lists &^= 1 // behind a list of WITH: the query itself, in parentheses
		return true
	case lex.MarkWord, lex.MarkName, lex.MarkQuoted:
		w.call(s)
		return true
	case lex.MarkNumber, lex.MarkRBracket, markField:
		w.facts |= factUnknown // a MySQL name that begins with a digit, or in brackets
		return true
	case mark(lex.KwOn):
		return s.Lead != mark(lex.KwDistinct)
	case mark(lex.KwTop):
		if w.gen {
			return false
		}
	case mark(lex.KwOperator):
		w.facts |= factOperator
		return true
	}
	if kw, ok := s.Prev.Keyword(); ok && !w.isSyntax(kw, s.Lead) {
		w.call(s)
	}
	return true
}

// call looks at the name before a parenthesis, which is the name of a function
// unless its place makes it that of a type, a table's alias or a WITH.
func (w *walker) call(s *bodyState) {
	if w.words.skim[s.Lead]&lex.Introduces != 0 {
		return
	}
	switch s.Lead {
	case mark(lex.KwWith), mark(lex.KwRecursive), lex.MarkComma:
		if s.Lists&1 != 0 {
			return
		}
	}
	name := w.lx.Slice(s.Start, s.End)
	kind := lookup(w.d, name)
	if s.Lead == lex.MarkRParen && kind <= fnHarmless {
		return
	}
	quoted := s.Prev == lex.MarkName || s.Prev == lex.MarkQuoted
	if kind == fnHarmless && !quoted && !s.Chained && w.names == nil {
		return // nearly always
	}
	if kind == fnHarmless {
		switch {
		case s.Chained && (w.my || s.Qual != lex.KwPgCatalog):
			kind = fnUnknown
		case quoted && (w.my || w.gen || hasUpper(name)):
			kind = fnUnknown // a stored function may have the name
		}
	} else if s.Chained && w.my {
		kind = fnUnknown // db.get_lock is a stored function
	} else if s.Chained && s.Qual != lex.KwPgCatalog && kind != fnUnknown {
		// Extensions are installed in any schema; a user's function of the same
		// name is no worse than unknown.
		w.facts |= factUnknown
	}
	if w.names != nil && kind <= fnHarmless {
		schema := ""
		if s.Chained {
			schema = w.qualifier(s)
		}
		kind = w.names.kind(kind, schema, name, s.Chained)
	}
	w.function(kind)
}

// function notes what a call of a function of the given kind is.
func (w *walker) function(kind funcKind) {
	switch kind {
	case fnHarmless:
	case fnSequence:
		w.facts |= factSequence
	case fnAdvisory:
		w.facts |= factAdvisory
	case fnSession:
		w.facts |= factSession
	case fnSetConfig:
		w.facts |= factConfig
		if !w.configIsLocal() {
			w.facts |= factConfigKeep
		}
	case fnPins:
		w.facts |= factPins
	case fnWrite:
		w.facts |= factWrites
	case fnServer:
		w.facts |= factServer
	case fnText:
		w.facts |= factText
	default:
		w.facts |= factUnknown
	}
}

// configIsLocal reports whether the set_config whose parenthesis is the current
// token plainly lasts for the transaction only: its third argument is true. It
// looks ahead, once in a statement, so that nesting costs no more than length.
func (w *walker) configIsLocal() bool {
	if w.configSeen {
		return false
	}
	w.configSeen = true
	ahead := w.lx
	depth, commas := 1, 0
	for {
		switch ahead.Next() {
		case lex.EOF, lex.Semicolon:
			return false
		case lex.LParen:
			depth++
		case lex.RParen:
			depth--
			if depth == 0 {
				return false
			}
		case lex.Comma:
			if depth == 1 {
				commas++
			}
			if commas != 2 {
				continue
			}
			switch ahead.Next() {
			case lex.Word:
				return ahead.Kw == lex.KwTrue && ahead.Next() == lex.RParen
			case lex.String:
				t := ahead.Text()
				return (strings.EqualFold(t, "t") || strings.EqualFold(t, "true")) && ahead.Next() == lex.RParen
			}
			return false
		}
	}
}

func hasUpper(s string) bool {
	for i := 0; i < len(s); i++ {
		if 'A' <= s[i] && s[i] <= 'Z' {
			return true
		}
	}
	return false
}
