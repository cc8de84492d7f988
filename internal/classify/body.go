package classify

import "github.com/sqlreplicated/replicated/internal/lex"

// mark is what the walker remembers of a token that lies behind it: the keyword,
// or the kind.
type mark uint16

const tokKind mark = 1 << 12

// Tokens that are no keywords.
const (
	tokStart   = tokKind + 64 // nothing: the beginning of a statement or body
	tokEnding  = tokKind + 65 // a closing parenthesis behind which a call may stand
	tokVarName = tokKind + 66

	tokWord     = tokKind + mark(lex.Word)
	tokName     = tokKind + mark(lex.Name)
	tokQuoted   = tokKind + mark(lex.Quoted)
	tokString   = tokKind + mark(lex.String)
	tokNumber   = tokKind + mark(lex.Number)
	tokParam    = tokKind + mark(lex.Param)
	tokUserVar  = tokKind + mark(lex.UserVar)
	tokLParen   = tokKind + mark(lex.LParen)
	tokRParen   = tokKind + mark(lex.RParen)
	tokRBracket = tokKind + mark(lex.RBracket)
	tokComma    = tokKind + mark(lex.Comma)
	tokDot      = tokKind + mark(lex.Dot)
	tokCast     = tokKind + mark(lex.Cast)
	tokOp       = tokKind + mark(lex.Op)
)

// endsOperand reports whether t surely ends an operand or a table, so that no call
// can begin behind it.
func (t mark) endsOperand() bool {
	switch t {
	case tokWord, tokName, tokQuoted, tokString, tokNumber, tokParam, tokRParen, tokRBracket,
		mark(lex.KwInner), mark(lex.KwLeft), mark(lex.KwRight), mark(lex.KwFull), mark(lex.KwOuter),
		mark(lex.KwCross), mark(lex.KwNatural), mark(lex.KwNull), mark(lex.KwTrue), mark(lex.KwFalse),
		mark(lex.KwEnd):
		return true
	}
	return false
}

// bodyState is the walker's view of the tokens just behind it.
//
// Invariant: prev is the last token. If prev is a word or a name, lead is the
// token before the whole (perhaps qualified) name, nameStart and nameEnd enclose
// its last part, and chained tells that it is qualified, by qual.
type bodyState struct {
	prev, lead         mark
	beforeDot          mark
	nameStart, nameEnd int
	nameKw             lex.Keyword // of the last part, quoted or not, if it matters
	qualStart, qualEnd int
	qualKw             lex.Keyword
	chained            bool

	depth int
	// tables has a bit for each open parenthesis, the innermost lowest: behind it
	// a table's alias may stand. ctes has one for each level whose list of common
	// table expressions is being read. Bits beyond 64 levels are lost, and a lost
	// bit is a zero: the cautious answer.
	tables, ctes uint64
}

// body goes from the current token to the end of the statement and gathers facts.
// depth is the number of parentheses that were opened before.
func (w *walker) body(depth int) {
	var s bodyState
	s.prev, s.depth = tokStart, depth
	s.tables = 1<<min(uint(depth), 63) - 1
	lx := &w.lx
	words := w.words
	for k := w.k; ; k = lx.Next() {
		switch k {
		case lex.Word:
			kw := lx.Kw
			if s.prev == tokDot {
				w.chain(&s, kw)
				s.prev = tokWord
				continue
			}
			if s.prev == mark(lex.KwUpdate) && !w.my {
				w.updates(&s, kw)
			}
			s.chained = false
			s.nameStart, s.nameEnd, s.nameKw = lx.Start, lx.End, kw
			if kw == lex.NoKeyword {
				s.lead, s.prev = s.prev, tokWord
				continue
			}
			t := mark(kw)
			if use := words[kw]; use&(acts|local) != 0 {
				if use&local != 0 {
					w.facts |= factLocal
				}
				if use&acts != 0 {
					t = w.act(&s, kw)
				}
			}
			s.lead, s.prev = s.prev, t
		case lex.Name, lex.Quoted:
			kw := lex.NoKeyword
			if n := lx.End - lx.Start; n >= len("pg_locks")-1 {
				if c := lx.Text()[0] | 0x20; c == 'p' || c == 'i' || c == 'u' {
					kw = lex.LookupKeyword(lx.Text())
					if words[kw]&local != 0 {
						w.facts |= factLocal
					}
				}
			}
			if s.prev == tokDot {
				w.chain(&s, kw)
			} else {
				if s.prev == mark(lex.KwUpdate) && !w.my {
					w.updates(&s, kw)
				}
				s.chained = false
				s.nameStart, s.nameEnd, s.nameKw = lx.Start, lx.End, kw
				s.lead = s.prev
			}
			s.prev = tokKind + mark(k)
		case lex.Dot:
			s.beforeDot, s.prev = s.prev, tokDot
		case lex.LParen:
			s.depth++
			bit := w.paren(&s)
			s.tables = s.tables<<1 | bit
			s.ctes <<= 1
			s.prev = tokLParen
		case lex.RParen:
			s.depth--
			if s.depth < 0 {
				w.facts |= factUnbalanced
			}
			s.prev = tokEnding
			if s.tables&1 != 0 {
				s.prev = tokRParen
			}
			s.tables >>= 1
			s.ctes >>= 1
		case lex.Comma:
			if w.stopAtComma && s.depth == 0 {
				w.k, w.kw = k, lex.NoKeyword
				return
			}
			s.prev = tokComma
		case lex.UserVar:
			if s.prev != tokString && s.prev != tokName {
				w.facts |= factUserVar
				if w.facts&factInto != 0 {
					w.facts |= factAssigns
				}
			}
			s.prev = tokUserVar
		case lex.SysVar:
			w.sysVar()
			s.prev = tokVarName
		case lex.Assign:
			if s.prev == tokUserVar {
				w.facts |= factAssigns
			}
			s.prev = tokOp
		case lex.EOF, lex.Semicolon:
			if s.depth != 0 {
				w.facts |= factUnbalanced
			}
			w.k, w.kw = k, lex.NoKeyword
			return
		default:
			s.prev = tokKind + mark(k)
		}
	}
}

// chain takes the current word or name as the next part of a qualified name.
func (w *walker) chain(s *bodyState, kw lex.Keyword) {
	s.chained = true
	s.qualStart, s.qualEnd, s.qualKw = s.nameStart, s.nameEnd, s.nameKw
	s.nameStart, s.nameEnd, s.nameKw = w.lx.Start, w.lx.End, kw
	switch s.beforeDot {
	case tokRParen, tokEnding, tokRBracket, tokParam:
		// PostgreSQL calls a function of one argument also when it is written
		// like a field: ('s'::regclass).nextval.
		s.qualKw = lex.NoKeyword
		if kind := lookup(w.d, w.lx.Text()); kind > fnHarmless {
			w.function(kind)
		}
		return
	}
	if w.words[kw]&local != 0 {
		w.facts |= factLocal
	}
	switch s.qualKw {
	case lex.NoKeyword:
	case lex.KwPgTemp, lex.KwPgTempN:
		if !w.my || w.gen {
			w.facts |= factPgTemp
		}
	case lex.KwPerformanceSchema:
		if w.my || w.gen {
			w.facts |= factLocal
		}
	case lex.KwInformationSchema:
		if w.my && !replicatedSchema(w.lx.Text()) {
			w.facts |= factLocal
		}
	}
	if (kw == lex.KwNextval || kw == lex.KwCurrval) && w.d != Postgres && w.d != MySQL {
		// MariaDB reads seq.nextval as a call under sql_mode=ORACLE.
		w.facts |= factSequence
	}
}

// updates decides whether the UPDATE behind the walker, followed by a name, begins
// a statement inside a WITH. In PostgreSQL the word may be a column, a table or an
// alias, but not where a statement can begin.
func (w *walker) updates(s *bodyState, kw lex.Keyword) {
	if kw != lex.NoKeyword && w.words[kw]&opensParen != 0 && kw != lex.KwOnly {
		return // a reserved word: the name of no table
	}
	if beginsStatement(s.lead) {
		w.facts |= factModifies
	}
}

// beginsStatement reports whether a statement inside a WITH may begin behind t.
func beginsStatement(t mark) bool {
	switch t {
	case tokComma, tokOp, tokCast, tokDot, mark(lex.KwSelect), mark(lex.KwDistinct), mark(lex.KwAll),
		mark(lex.KwFrom), mark(lex.KwJoin), mark(lex.KwWith), mark(lex.KwRecursive), mark(lex.KwBy),
		mark(lex.KwAs), mark(lex.KwWhere), mark(lex.KwAnd), mark(lex.KwOr), mark(lex.KwNot):
		return false
	}
	return true
}

// act does what an acting word means and returns the token to remember it by.
func (w *walker) act(s *bodyState, kw lex.Keyword) mark {
	switch kw {
	case lex.KwFor:
		if s.prev == mark(lex.KwAs) && !w.my && !w.gen {
			return tokWord // a label
		}
		if s.prev == mark(lex.KwValue) && (s.lead == mark(lex.KwNext) || s.lead == mark(lex.KwPrevious)) {
			w.facts |= factSequence
		}
	case lex.KwInto:
		if s.prev == mark(lex.KwAs) && !w.my && !w.gen {
			return tokWord
		}
		if s.prev == mark(lex.KwInsert) || s.prev == mark(lex.KwMerge) {
			w.facts |= factModifies
		} else {
			w.facts |= factInto
		}
	case lex.KwUpdate:
		if s.prev == mark(lex.KwFor) {
			w.facts |= factLocks
			return tokWord
		}
		if s.prev == mark(lex.KwKey) || s.prev == mark(lex.KwAs) && !w.my {
			return tokWord
		}
		if w.my || w.gen {
			w.facts |= factModifies
		}
	case lex.KwShare:
		if s.prev == mark(lex.KwFor) || s.prev == mark(lex.KwIn) && s.lead == mark(lex.KwLock) {
			w.facts |= factLocks
		}
	case lex.KwKey, lex.KwNo:
		if s.prev == mark(lex.KwFor) {
			w.facts |= factLocks
		}
	case lex.KwDelete:
		if w.my || w.gen {
			w.facts |= factModifies
		}
	case lex.KwFrom:
		if s.prev == mark(lex.KwDelete) && beginsStatement(s.lead) {
			w.facts |= factModifies
		}
	case lex.KwWith:
		if s.prev == tokStart || s.prev == tokLParen {
			s.ctes |= 1
		}
	case lex.KwSelect, lex.KwValues, lex.KwTable:
		s.ctes &^= 1
	case lex.KwTemp, lex.KwTemporary:
		switch s.prev {
		case mark(lex.KwInto), mark(lex.KwLocal), mark(lex.KwGlobal):
			w.facts |= factIntoTemp
		}
	case lex.KwOutfile, lex.KwDumpfile:
		if s.prev == mark(lex.KwInto) {
			w.facts |= factOutfile
		}
	case lex.KwGroup:
		w.grouped = true
	case lex.KwSqlCalcFoundRows:
		if w.my || w.gen {
			w.facts |= factFoundRows
		}
	case lex.KwProcesslist, lex.KwUserVariables:
		switch s.prev {
		case mark(lex.KwFrom), mark(lex.KwJoin), tokComma:
			if w.my {
				w.facts |= factLocal
			}
		}
	case lex.KwHold:
		if s.prev == mark(lex.KwWith) {
			w.facts |= factHold
		}
	}
	return mark(kw)
}
