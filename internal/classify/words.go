package classify

import "github.com/sqlreplicated/replicated/internal/lex"

// wordUse is a set of things that a keyword means inside a statement.
type wordUse uint16

const (
	// opensParen: before a parenthesis the word is syntax, never a function's
	// name.
	opensParen wordUse = 1 << iota
	// maybeOpens: before a parenthesis it is syntax in some places only; see
	// walker.isSyntax.
	maybeOpens
	// acts: the word by itself means something; see walker.act.
	acts
	// local: a relation whose content belongs to one server or session.
	local
	// namesTables: PostgreSQL does not reserve the word, so that a table may have
	// its name, although no function can.
	namesTables
)

// wordTable has the uses of each keyword in one dialect, and what of it the lexer
// has to know to go over tokens that mean nothing here.
type wordTable struct {
	uses [lex.NumKeywords]wordUse
	skim lex.Uses
	// plain has the verdict on a text that is one query or write, by its leading
	// keyword, with nothing in it that changes it.
	plain [lex.NumKeywords]Verdict
}

func (t *wordTable) add(use wordUse, words ...lex.Keyword) {
	for _, w := range words {
		t.uses[w] |= use
	}
}

// done fills in skim, from uses and from what walker.paren does, and plain.
func (t *wordTable) done(rules *table) {
	for kw, ru := range rules {
		if ru.parse == parseQuery || ru.parse == parseWrite {
			t.plain[kw] = Verdict{Class: ru.class, Effect: ru.effect, Cacheable: true, Keyword: lex.Keyword(kw).String(), Reason: ru.reason}
		}
	}
	for kw := range lex.NumKeywords {
		if t.uses[kw]&(acts|local) != 0 {
			t.skim[kw] |= lex.Stops
		}
		if t.uses[kw]&opensParen != 0 && kw != lex.KwTop && kw != lex.KwOperator {
			t.skim[kw] |= lex.Encloses
		}
	}
	t.skim[lex.KwDistinct] |= lex.Qualifies // DISTINCT ON (…)
	for _, m := range []lex.Mark{lex.MarkStart, lex.MarkString, lex.MarkParam, lex.MarkLParen, lex.MarkComma, lex.MarkCast, lex.MarkOp} {
		t.skim[m] |= lex.Encloses
	}
	for m := range lex.NumMarks {
		switch {
		case introduces(m):
			t.skim[m] |= lex.Introduces
		case m == lex.MarkWord, m == lex.MarkName, m == lex.MarkQuoted:
			t.skim[m] |= lex.Names
		}
	}
}

// introduces reports whether a name behind m, and a parenthesis behind that, are no
// call: the name is that of a type, a table or an alias.
func introduces(m lex.Mark) bool {
	switch m {
	case mark(lex.KwAs), lex.MarkCast, mark(lex.KwTablesample), mark(lex.KwOrdinality), mark(lex.KwInto):
		return true
	}
	return false
}

// actingWords have a meaning inside a statement in some dialect.
var actingWords = []lex.Keyword{
	lex.KwFor, lex.KwInto, lex.KwUpdate, lex.KwShare, lex.KwKey, lex.KwNo,
	lex.KwInsert, lex.KwDelete, lex.KwMerge, lex.KwReplace,
	lex.KwWith, lex.KwSelect, lex.KwValues, lex.KwTable,
	lex.KwTemp, lex.KwTemporary, lex.KwOutfile, lex.KwDumpfile,
	lex.KwSqlCalcFoundRows, lex.KwProcesslist, lex.KwUserVariables, lex.KwHold,
}

// reservedSyntax cannot be the name of a function in any of the dialects.
var reservedSyntax = []lex.Keyword{
	lex.KwAll, lex.KwAnalyse, lex.KwAnalyze, lex.KwAnd, lex.KwAny, lex.KwArray, lex.KwAs, lex.KwAsc,
	lex.KwAsymmetric, lex.KwBetween, lex.KwCase, lex.KwCast, lex.KwCheck, lex.KwCoalesce,
	lex.KwCollate, lex.KwDefault, lex.KwDesc, lex.KwDistinct, lex.KwElse, lex.KwEnd, lex.KwExcept,
	lex.KwExists, lex.KwExtract, lex.KwFetch, lex.KwFor, lex.KwFrom, lex.KwGreatest, lex.KwGroup,
	lex.KwGrouping, lex.KwHaving, lex.KwIlike, lex.KwIn, lex.KwIntersect, lex.KwInterval, lex.KwInto,
	lex.KwIs, lex.KwLateral, lex.KwLeast, lex.KwLeft, lex.KwLike, lex.KwLimit, lex.KwNot, lex.KwNull,
	lex.KwNullif, lex.KwOffset, lex.KwOn, lex.KwOnly, lex.KwOr, lex.KwOrder, lex.KwOverlay,
	lex.KwPosition, lex.KwReturning, lex.KwRight, lex.KwRow, lex.KwSelect, lex.KwSimilar, lex.KwSome,
	lex.KwSubstring, lex.KwSymmetric, lex.KwTable, lex.KwThen, lex.KwTo, lex.KwTreat, lex.KwTrim,
	lex.KwUnion, lex.KwUnique, lex.KwUsing, lex.KwValues, lex.KwVariadic, lex.KwWhen, lex.KwWhere,
	lex.KwWindow, lex.KwWith, lex.KwXmltable, lex.KwXmlnamespaces, lex.KwJsonTable,
	lex.KwReplace, lex.KwTimestamp, lex.KwTime,
}

// typeWords are types that take a length; the functions of those names convert.
var typeWords = []lex.Keyword{
	lex.KwBigint, lex.KwBit, lex.KwChar, lex.KwCharacter, lex.KwDec, lex.KwDecimal, lex.KwFloat,
	lex.KwInt, lex.KwInteger, lex.KwNchar, lex.KwNumeric, lex.KwReal, lex.KwSmallint, lex.KwVarchar,
	lex.KwTimestamptz, lex.KwTimetz, lex.KwVarying,
}

// tableWords are the words of reservedSyntax that PostgreSQL calls "non-reserved
// (cannot be function or type)", or does not know. So are all typeWords.
var tableWords = []lex.Keyword{
	lex.KwBetween, lex.KwCoalesce, lex.KwExists, lex.KwExtract, lex.KwGreatest, lex.KwGrouping,
	lex.KwInterval, lex.KwJsonTable, lex.KwLeast, lex.KwNullif, lex.KwOverlay, lex.KwPosition,
	lex.KwReplace, lex.KwRow, lex.KwSubstring, lex.KwTime, lex.KwTimestamp, lex.KwTreat,
	lex.KwTrim, lex.KwValues, lex.KwXmlnamespaces, lex.KwXmltable,
}

// placedWords are syntax before a parenthesis in certain places.
var placedWords = []lex.Keyword{
	lex.KwBy, lex.KwOver, lex.KwFilter, lex.KwSets, lex.KwMaterialized,
	lex.KwFirst, lex.KwNext, lex.KwZone, lex.KwEscape, lex.KwJoin, lex.KwColumns, lex.KwPassing,
	lex.KwOverlaps, lex.KwRepeatable, lex.KwMinus,
}

// isSyntax reports whether the word kw, which stands before a parenthesis and
// behind the token before, is syntax there. Behind what ends an operand no call
// can begin, which is what makes this sound for words that may be function names.
func (w *walker) isSyntax(kw lex.Keyword, before lex.Mark) bool {
	use := w.words.uses[kw]
	if use&opensParen != 0 {
		return true
	}
	if use&maybeOpens == 0 {
		return false
	}
	switch kw {
	case lex.KwBy:
		return before == mark(lex.KwOrder) || before == mark(lex.KwGroup) || before == mark(lex.KwPartition)
	case lex.KwSets:
		return before == mark(lex.KwGrouping)
	case lex.KwMaterialized:
		return before == mark(lex.KwAs) || before == mark(lex.KwNot)
	case lex.KwFirst, lex.KwNext:
		return before == mark(lex.KwFetch)
	case lex.KwZone:
		return before == mark(lex.KwTime)
	case lex.KwOver, lex.KwFilter, lex.KwRepeatable:
		return before == lex.MarkRParen || w.my
	}
	return endsOperand(before)
}
