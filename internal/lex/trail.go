package lex

// Mark is what remains of a token that lies behind a reader: the keyword, if it
// was one, or else the kind.
type Mark uint16

const markKind = Mark(NumKeywords)

// Marks of tokens that are no keywords. MarkStart is none at all: the beginning.
const (
	MarkStart    = markKind + Mark(EOF)
	MarkWord     = markKind + Mark(Word)
	MarkName     = markKind + Mark(Name)
	MarkQuoted   = markKind + Mark(Quoted)
	MarkString   = markKind + Mark(String)
	MarkNumber   = markKind + Mark(Number)
	MarkParam    = markKind + Mark(Param)
	MarkUserVar  = markKind + Mark(UserVar)
	MarkSysVar   = markKind + Mark(SysVar)
	MarkLParen   = markKind + Mark(LParen)
	MarkRParen   = markKind + Mark(RParen)
	MarkRBracket = markKind + Mark(RBracket)
	MarkComma    = markKind + Mark(Comma)
	MarkCast     = markKind + Mark(Cast)
	MarkOp       = markKind + Mark(Op)

	// MarkEnding is a closing parenthesis behind which a call may stand; the others
	// are MarkRParen.
	MarkEnding = MarkOp + 1
	// MarkOther is for the reader to use.
	MarkOther = MarkOp + 2

	// NumMarks is the size of a table that is indexed by mark.
	NumMarks = MarkOther + 1
)

// MarkOf returns the mark of a token that is no keyword.
func MarkOf(k Kind) Mark { return markKind + Mark(k) }

// Keyword returns the keyword that m marks; ok is false if it marks none.
func (m Mark) Keyword() (k Keyword, ok bool) { return Keyword(m), m < markKind }

// Trail is what a reader knows of the tokens behind it. At the beginning Prev is
// MarkStart and Uses is set.
//
// Prev is the last token. If that is a word or a name, Lead is the token before
// the whole, perhaps qualified, name; Start and End enclose the name's last part,
// and Kw is the keyword that this part spells, whether it is one there or not.
// Chained tells that the name has several parts; Qual is then the keyword that the
// part before the last spells.
type Trail struct {
	Prev, Lead Mark
	Kw, Qual   Keyword
	Chained    bool
	Start, End int

	// Depth is the number of parentheses that are open.
	Depth int
	// Operands has a bit for each of them, the innermost lowest: what it encloses is
	// an operand or a table, behind which no call can begin. Lists has one for each
	// level whose list of common table expressions is being read. Bits beyond 64
	// levels are lost, and a lost bit is a zero: the cautious answer.
	Operands, Lists uint64

	// Uses is what marks mean to the reader.
	Uses *Uses
}

// Name takes a word or a name that is the first part of a name.
func (t *Trail) Name(as Mark, kw Keyword, start, end int) {
	t.Prev, t.Lead, t.Kw, t.Chained, t.Start, t.End = as, t.Prev, kw, false, start, end
}

// Part takes a word or a name as the next part of the name before it.
func (t *Trail) Part(as Mark, kw Keyword, start, end int) {
	t.Prev, t.Qual, t.Kw, t.Chained, t.Start, t.End = as, t.Kw, kw, true, start, end
}

// Open takes an opening parenthesis; operand tells what it is going to enclose.
func (t *Trail) Open(operand bool) {
	t.Depth++
	t.Operands <<= 1
	if operand {
		t.Operands |= 1
	}
	t.Lists <<= 1
	t.Prev = MarkLParen
}

// Close takes a closing parenthesis.
func (t *Trail) Close() {
	t.Depth--
	t.Prev = MarkEnding
	if t.Operands&1 != 0 {
		t.Prev = MarkRParen
	}
	t.Operands >>= 1
	t.Lists >>= 1
}

// Use is a set of things that a token means to the reader, of which Skim has to know.
type Use uint8

const (
	// Stops: the reader looks at the keyword itself.
	Stops Use = 1 << iota
	// Encloses: a parenthesis behind it encloses an operand or a table, and means
	// nothing else.
	Encloses
	// Qualifies: the token behind it is not known to enclose, whatever it is.
	Qualifies
	// Names: the token is a name.
	Names
	// Introduces: a parenthesis behind a name behind it is none of a call, and
	// encloses as well.
	Introduces
)

// Uses has the use of each mark.
type Uses [NumMarks]Use
