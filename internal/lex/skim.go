package lex

// Mark is what remains of a token that lies behind a reader: the keyword, if it
// was one, or else the kind.
type Mark uint16

const markKind Mark = 1 << 12

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
	// MarkOther is for the reader to use.
	MarkOther = markKind + 255
)

// MarkOf returns the mark of a token that is no keyword.
func MarkOf(k Kind) Mark { return markKind + Mark(k) }

// Keyword returns the keyword that m marks; ok is false if it marks none.
func (m Mark) Keyword() (k Keyword, ok bool) { return Keyword(m), m < markKind }

// Trail is what a reader knows of the tokens just behind it.
//
// Prev is the last token. If that is a word or a name, Lead is the token before
// the whole, perhaps qualified, name; Start and End enclose the name's last part,
// and Kw is the keyword that this part spells, whether it is one there or not.
// Chained tells that the name has several parts.
type Trail struct {
	Prev, Lead Mark
	Kw         Keyword
	Chained    bool
	Start, End int
}

// Stops says of which keywords a reader wants to know.
type Stops [NumKeywords]bool

// Skim goes over tokens that mean little by themselves, keeping trail, and returns
// the first that the reader has to look at, as Next does: a keyword that stops
// names, a parenthesis, anything with a keyword in a qualified name, whatever is
// rare. It is Next and the reader's bookkeeping in one loop, for speed; a reader
// that takes each token from Next has to arrive at the same trail.
func (l *Lexer) Skim(trail *Trail, stops *Stops) Kind {
	src, i := l.src, l.pos
	prev, lead, kw, chained, from, to := trail.Prev, trail.Lead, trail.Kw, trail.Chained, trail.Start, trail.End
	for {
		for i < len(src) && class[src[i]] == clsSpace {
			i++
		}
		if i >= len(src) {
			break
		}
		start := i
		c := src[i]
		i++
		switch class[c] {
		case clsLetter:
			for i < len(src) && isWordByte(src[i]) {
				i++
			}
			if i < len(src) && (src[i] >= 0x80 || i-start == 1 && (src[i] == '\'' || src[i] == '&')) {
				i = start
				goto next
			}
			word, mark := NoKeyword, MarkWord
			if mayBeKeyword(c, src[i-1], i-start) {
				if word = keyword(src, start, i); word != NoKeyword {
					if stops[word] {
						l.pos, l.Start, l.End, l.Kw, l.Dotted = i, start, i, word, false
						trail.Prev, trail.Lead, trail.Kw, trail.Chained, trail.Start, trail.End = prev, lead, kw, chained, from, to
						return Word
					}
					mark = Mark(word)
				}
			}
			prev, lead, kw, chained, from, to = mark, prev, word, false, start, i
		case clsDot:
			if i >= len(src) || !prev.isName() || kw != NoKeyword {
				i = start
				goto next
			}
			part := i
			switch c := src[i]; class[c] {
			case clsLetter:
				for i < len(src) && isWordByte(src[i]) {
					i++
				}
				if i < len(src) && src[i] >= 0x80 || i-part == 1 && i < len(src) && (src[i] == '\'' || src[i] == '&') ||
					mayBeKeyword(c, src[i-1], i-part) && keyword(src, part, i) != NoKeyword {
					i = start
					goto next
				}
				prev, from, to = MarkWord, part, i
			case clsDouble, clsBacktick:
				end := i + 1
				for end < len(src) && inQuotes[src[end]]&special == 0 {
					end++
				}
				if !l.plainName(c, i+1, end) {
					i = start
					goto next
				}
				prev, from, to = l.nameMark(c), i+1, end
				i = end + 1
			case clsStar:
				if l.inExec {
					i = start
					goto next
				}
				i++
				prev = MarkOp
				continue
			default:
				i = start
				goto next
			}
			chained = true
		case clsDouble, clsBacktick:
			for i < len(src) && inQuotes[src[i]]&special == 0 {
				i++
			}
			if !l.plainName(c, start+1, i) {
				i = start
				goto next
			}
			prev, lead, kw, chained, from, to = l.nameMark(c), prev, NoKeyword, false, start+1, i
			i++
		case clsLParen, clsRParen:
			l.pos, l.Start, l.End, l.Dotted = i, start, i, false
			trail.Prev, trail.Lead, trail.Kw, trail.Chained, trail.Start, trail.End = prev, lead, kw, chained, from, to
			if c == '(' {
				return LParen
			}
			return RParen
		case clsComma:
			prev = MarkComma
		case clsOp:
			prev = MarkOp
		case clsStar:
			if l.inExec {
				i = start
				goto next
			}
			prev = MarkOp
		case clsSingle:
			for i < len(src) && inQuotes[src[i]]&l.dates == 0 {
				i++
			}
			if i+1 >= len(src) || src[i] != '\'' || src[i+1] == '\'' {
				i = start
				goto next
			}
			i++
			prev = MarkString
		case clsDigit:
			for i < len(src) && isDigit(src[i]) {
				i++
			}
			if i < len(src) && (isWordByte(src[i]) || src[i] == '.' || src[i] >= 0x80) {
				i = start
				goto next
			}
			prev = MarkNumber
		case clsDollar:
			n := 0
			for i < len(src) && isDigit(src[i]) && i-start < 6 {
				n = n*10 + int(src[i]-'0')
				i++
			}
			if l.mode.MySQL || i-start < 2 || i-start == 6 {
				i = start
				goto next
			}
			l.Dollar = max(l.Dollar, n)
			prev = MarkParam
		case clsQuestion:
			l.Marks++
			prev = MarkOf(l.question)
		default:
			i = start
			goto next
		}
	}
next:
	trail.Prev, trail.Lead, trail.Kw, trail.Chained, trail.Start, trail.End = prev, lead, kw, chained, from, to
	l.pos = i
	return l.Next()
}

// isName reports whether m marks the part of a name behind which a dot separates
// it from the next.
func (m Mark) isName() bool { return m == MarkWord || m == MarkName || m == MarkQuoted }

// plainName reports whether what goes from i to end, behind the quote q, is a name
// that ends there with q and is not to be looked at: one with quotes in it, at the
// end of the text, or such that it may be a keyword that matters in quotes.
func (l *Lexer) plainName(q byte, i, end int) bool {
	src := l.src
	if end+1 >= len(src) || src[end] != q || src[end+1] == q || q == '`' && !l.mode.MySQL {
		return false
	}
	if q == '`' && l.Notes&Divergent == 0 {
		l.Notes |= Divergent // once: a store for each name is felt
	}
	return end-i < minQuotedKeyword || !mayMeanQuoted(src[i:end])
}

// mayMeanQuoted reports whether a quoted name, of minQuotedKeyword bytes at least,
// may be a keyword that means something in quotes. Names of columns that begin
// like one (created_at, user_id, password) are common, and are told by length.
func mayMeanQuoted(name string) bool {
	n := len(name)
	switch name[0] | 0x20 {
	case 'p':
		return name[1]|0x20 == 'g' || n == len("processlist") || n == len("performance_schema")
	case 'c', 'n':
		return n == len("currval")
	case 'i':
		return n == len("information_schema")
	case 'u':
		return n == len("user_variables")
	}
	return false
}

func (l *Lexer) nameMark(q byte) Mark {
	if q == '`' {
		return MarkName
	}
	return MarkOf(l.double)
}

// minQuotedKeyword is the length of the shortest of the keywords that mean
// something in quotes too: the relations that belong to one server, pg_temp, the
// schemas of metadata, and MariaDB's seq.nextval and seq.currval. All begin with
// p, i, u, n or c.
const minQuotedKeyword = len("pg_temp")

// QuotedKeyword returns the keyword that a quoted name is, if it is one that means
// something in quotes too; else NoKeyword.
func (l *Lexer) QuotedKeyword() Keyword {
	if l.End-l.Start < minQuotedKeyword || !mayMeanQuoted(l.src[l.Start:l.End]) {
		return NoKeyword
	}
	return keyword(l.src, l.Start, l.End)
}
