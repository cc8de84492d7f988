package classify

import "github.com/sqlreplicated/replicated/internal/lex"

// markField marks a field of a value, in the way of (x).field.
const markField = lex.MarkOther

// endsOperand reports whether m surely ends an operand or a table, so that no call
// can begin behind it.
func endsOperand(m lex.Mark) bool {
	switch m {
	case lex.MarkWord, lex.MarkName, lex.MarkQuoted, lex.MarkString, lex.MarkNumber, lex.MarkParam, lex.MarkRParen, lex.MarkRBracket,
		mark(lex.KwInner), mark(lex.KwLeft), mark(lex.KwRight), mark(lex.KwFull), mark(lex.KwOuter),
		mark(lex.KwCross), mark(lex.KwNatural), mark(lex.KwNull), mark(lex.KwTrue), mark(lex.KwFalse),
		mark(lex.KwEnd):
		return true
	}
	return false
}

// bodyState is the walker's view of the tokens just behind it.
type bodyState struct{ lex.Trail }

// body goes from the current token to the end of the statement and gathers facts.
// depth is the number of parentheses that were opened before.
func (w *walker) body(depth int) {
	var s bodyState
	s.Uses, s.Prev, s.Depth = &w.words.skim, lex.MarkStart, depth
	s.Operands = 1<<min(uint(depth), 63) - 1
	lx := &w.lx
	k := w.k
	if kw := w.kw; (kw == lex.KwSelect || kw == lex.KwInsert) && !w.stopAtComma {
		// Nearly always, and all that act makes of them at the beginning.
		w.selects = w.selects || kw == lex.KwSelect
		s.Name(mark(kw), kw, lx.Start, lx.End)
		k = lx.Skim(&s.Trail)
	}
	for {
		switch k {
		case lex.Word:
			kw := lx.Kw
			if lx.Dotted {
				s.Prev = w.chain(&s, kw, lex.MarkWord)
				break
			}
			w.word(&s, kw)
		case lex.Name, lex.Quoted:
			kw := lx.QuotedKeyword()
			if lx.Dotted {
				s.Prev = w.chain(&s, kw, lex.MarkOf(k))
				break
			}
			if w.words.uses[kw]&local != 0 {
				w.facts |= factLocal
			}
			if s.Prev == mark(lex.KwUpdate) {
				w.updates(&s, lex.NoKeyword) // in quotes no word is reserved
			}
			s.Name(lex.MarkOf(k), kw, lx.Start, lx.End)
		case lex.LParen:
			if s.Prev == lex.MarkWord {
				w.call(&s) // as paren does
				s.Open(true)
			} else {
				s.Open(w.paren(&s))
			}
		case lex.RParen:
			s.Close()
			if s.Depth < 0 {
				w.facts |= factUnbalanced
			}
		case lex.Comma:
			if w.stopAtComma && s.Depth == 0 {
				w.k, w.kw = k, lex.NoKeyword
				return
			}
			s.Prev = lex.MarkComma
		case lex.UserVar:
			if s.Prev != lex.MarkString && s.Prev != lex.MarkName {
				w.facts |= factUserVar
				if w.facts&factInto != 0 {
					w.facts |= factAssigns
				}
			}
			s.Prev = lex.MarkUserVar
		case lex.SysVar:
			w.sysVar()
			s.Prev = lex.MarkSysVar
		case lex.Assign:
			if s.Prev == lex.MarkUserVar {
				w.facts |= factAssigns
			}
			s.Prev = lex.MarkOp
		case lex.EOF, lex.Semicolon:
			if s.Depth != 0 {
				w.facts |= factUnbalanced
			}
			w.k, w.kw = k, lex.NoKeyword
			return
		default:
			s.Prev = lex.MarkOf(k)
		}
		if w.stopAtComma || s.Prev == mark(lex.KwUpdate) || s.Prev == mark(lex.KwDelete) {
			k = lx.Next() // what follows counts, whatever it is
		} else {
			k = lx.Skim(&s.Trail)
		}
	}
}

// word takes the current word, which is no part of a qualified name but its first.
func (w *walker) word(s *bodyState, kw lex.Keyword) {
	switch s.Prev {
	case mark(lex.KwUpdate):
		w.updates(s, kw)
	case mark(lex.KwDelete):
		if kw == lex.KwFrom && beginsStatement(s.Lead) {
			w.facts |= factModifies
		}
	}
	as := lex.MarkWord
	if kw != lex.NoKeyword {
		as = mark(kw)
		use := w.words.uses[kw]
		if use&local != 0 {
			w.facts |= factLocal
		}
		if use&acts != 0 {
			as = w.act(s, kw)
		}
	}
	s.Name(as, kw, w.lx.Start, w.lx.End)
}

func mark(kw lex.Keyword) lex.Mark { return lex.Mark(kw) }

// chain takes the current word or name as the next part of a qualified name, and
// returns what to remember it by: as, unless it is a field.
func (w *walker) chain(s *bodyState, kw lex.Keyword, as lex.Mark) lex.Mark {
	before := s.Prev
	s.Part(as, kw, w.lx.Start, w.lx.End)
	switch before {
	case lex.MarkRParen, lex.MarkEnding, lex.MarkRBracket, lex.MarkParam, markField:
		// PostgreSQL calls a function of one argument also when it is written
		// like a field: ('s'::regclass).nextval.
		s.Qual = lex.NoKeyword
		if kind := lookup(w.d, w.lx.Text()); kind > fnHarmless {
			w.function(kind)
		}
		return markField // the same goes for a field of the field
	}
	if w.words.uses[kw]&local != 0 {
		w.facts |= factLocal
	}
	switch s.Qual {
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
	return as
}

// updates decides whether the UPDATE behind the walker, followed by a name, begins
// a statement inside a WITH. In PostgreSQL the word may be a column, a table or an
// alias, but not where a statement can begin.
func (w *walker) updates(s *bodyState, kw lex.Keyword) {
	if w.my {
		return // the word alone was enough
	}
	if kw != lex.NoKeyword && w.words.uses[kw]&(opensParen|namesTables) == opensParen && kw != lex.KwOnly {
		return // a reserved word: the name of no table
	}
	if beginsStatement(s.Lead) {
		w.facts |= factModifies
	}
}

// beginsStatement reports whether a statement inside a WITH may begin behind m.
func beginsStatement(m lex.Mark) bool {
	switch m {
	case lex.MarkComma, lex.MarkOp, lex.MarkCast, mark(lex.KwSelect), mark(lex.KwDistinct), mark(lex.KwAll),
		mark(lex.KwFrom), mark(lex.KwJoin), mark(lex.KwWith), mark(lex.KwRecursive), mark(lex.KwBy),
		mark(lex.KwAs), mark(lex.KwWhere), mark(lex.KwAnd), mark(lex.KwOr), mark(lex.KwNot):
		return false
	}
	return true
}

// leaveWith notes that the list of a WITH is over, if the current keyword, which
// may also name something, stands where the statement behind it begins.
func (w *walker) leaveWith(s *bodyState) {
	if s.Prev != lex.MarkComma && s.Prev != mark(lex.KwWith) && s.Prev != mark(lex.KwRecursive) {
		s.Lists &^= 1
	}
}

// act does what an acting word means and returns the token to remember it by.
func (w *walker) act(s *bodyState, kw lex.Keyword) lex.Mark {
	switch kw {
	case lex.KwFor:
		if s.Prev == mark(lex.KwAs) && !w.my && !w.gen {
			return lex.MarkWord // a label
		}
		if s.Prev == mark(lex.KwValue) && (s.Lead == mark(lex.KwNext) || s.Lead == mark(lex.KwPrevious)) {
			w.facts |= factSequence
		}
	case lex.KwInto:
		if s.Prev == mark(lex.KwAs) && !w.my && !w.gen {
			return lex.MarkWord
		}
		if s.Prev == mark(lex.KwInsert) || s.Prev == mark(lex.KwMerge) {
			w.facts |= factModifies
		} else {
			w.facts |= factInto
		}
	case lex.KwUpdate:
		w.leaveWith(s)
		if s.Prev == mark(lex.KwFor) {
			w.facts |= factLocks
			return lex.MarkWord
		}
		if s.Prev == mark(lex.KwKey) || s.Prev == mark(lex.KwAs) && !w.my {
			return lex.MarkWord
		}
		if w.my || w.gen {
			w.facts |= factModifies
		}
	case lex.KwShare:
		// LOCK need not be seen: where a name or number before it ends is the server's
		// affair, and nothing else has SHARE behind IN.
		if s.Prev == mark(lex.KwFor) || s.Prev == mark(lex.KwIn) {
			w.facts |= factLocks
			if w.my || w.gen {
				w.facts |= factShares
			}
		}
	case lex.KwKey, lex.KwNo:
		if s.Prev == mark(lex.KwFor) {
			w.facts |= factLocks
		}
	case lex.KwInsert, lex.KwMerge, lex.KwReplace:
		w.leaveWith(s)
	case lex.KwDelete:
		w.leaveWith(s)
		if w.my || w.gen {
			w.facts |= factModifies
		}
	case lex.KwWith:
		if s.Prev == lex.MarkStart || s.Prev == lex.MarkLParen {
			s.Lists |= 1
		}
	case lex.KwSelect, lex.KwValues, lex.KwTable:
		if kw == lex.KwSelect || s.Prev == lex.MarkLParen {
			w.selects = true
		}
		s.Lists &^= 1
	case lex.KwTemp, lex.KwTemporary:
		switch s.Prev {
		case mark(lex.KwInto), mark(lex.KwLocal), mark(lex.KwGlobal):
			w.facts |= factIntoTemp
		}
	case lex.KwOutfile, lex.KwDumpfile:
		if s.Prev == mark(lex.KwInto) {
			w.facts |= factOutfile
		}
	case lex.KwSqlCalcFoundRows:
		if w.my || w.gen {
			w.facts |= factFoundRows
		}
	case lex.KwProcesslist, lex.KwUserVariables:
		switch s.Prev {
		case mark(lex.KwFrom), mark(lex.KwJoin), lex.MarkComma:
			if w.my {
				w.facts |= factLocal
			}
		}
	case lex.KwHold:
		if s.Prev == mark(lex.KwWith) {
			w.facts |= factHold
		}
	}
	return mark(kw)
}
