package lex

// Kind is a token's kind.
type Kind uint8

const (
	// EOF is the end of the text.
	EOF Kind = iota
	// Word is an unquoted identifier or keyword; Lexer.Kw tells which keyword.
	Word
	// Name is a quoted identifier. Start and End exclude the quotes.
	Name
	// Quoted is what stands in double quotes where that is a string or a name,
	// depending on a mode of the server (MySQL's ANSI_QUOTES). Start and End
	// exclude the quotes.
	Quoted
	// String is a literal in quotes or dollar quotes. Start and End exclude them.
	String
	// Number is a numeric literal, or a MySQL name that begins with a digit.
	Number
	// Param is a placeholder: $1, ?, :name.
	Param
	// UserVar is a MySQL user variable, @name.
	UserVar
	// SysVar is @@; the variable's name follows as words.
	SysVar
	// LParen and the following are single characters.
	LParen
	RParen
	LBracket
	RBracket
	Comma
	Semicolon
	// Cast is ::.
	Cast
	// Assign is :=.
	Assign
	// Op is one character of an operator.
	Op
)

// Note is a set of things that were met on the way and bear on what the text as a
// whole can be.
type Note uint16

const (
	// EscapedQuote: a string holds a quote behind a backslash that ends the string
	// under one mode of the server and not under the other.
	EscapedQuote Note = 1 << iota
	// Conditional: an executable comment of which it is not known whether the
	// server runs it.
	Conditional
	// Divergent: something that PostgreSQL and MySQL cut differently.
	Divergent
	// Unfinished: a literal, a quoted name or a comment does not end, or a
	// character stands where no server accepts it. No server runs a statement
	// that has this.
	Unfinished
	// Strange: bytes of which servers, or character sets, make different things:
	// control characters, invalid UTF-8, Unicode blanks outside literals.
	Strange
	// DateWord: a PostgreSQL literal may be a date that is fixed when the
	// statement is prepared, such as 'now' or 'today'.
	DateWord
	// HintPrimary and HintReplica: a comment holds that wish.
	HintPrimary
	HintReplica
)

// Mode says how the text is cut. The zero value is PostgreSQL with
// standard_conforming_strings on.
type Mode struct {
	// MySQL selects MySQL's lexer instead of PostgreSQL's.
	MySQL bool
	// Escapes: in plain strings a backslash escapes the next character. It is
	// MySQL's default, and PostgreSQL with standard_conforming_strings off.
	Escapes bool
	// AnsiQuotes: with MySQL, a backslash is nothing special in double quotes.
	AnsiQuotes bool
	// Server tells which executable comments run.
	Server Server
	// Limit is the highest version number at which a comment that Server leaves
	// open runs; 0 runs none.
	Limit int
}

// Lexer cuts one text. It is used by value, by one goroutine, after Init.
type Lexer struct {
	src  string
	pos  int
	mode Mode

	// Kw is the keyword of a Word.
	Kw Keyword
	// Dotted: a dot stands before the token, which is therefore, if it is a word,
	// the next part of a qualified name and no keyword.
	Dotted bool
	// Start and End enclose the token's text in the source.
	Start, End int

	// Notes is what was met so far.
	Notes Note
	// Dollar is the highest n of the $n met so far, Marks the count of ? and
	// Named the count of names behind a single : or, with PostgreSQL, @.
	Dollar, Marks, Named int
	// Versions are the distinct numbers of open executable comments, as far as
	// there is room; NumVersions counts them all.
	Versions    [4]int
	NumVersions int

	inExec   bool
	double   Kind  // of what stands in double quotes
	question Kind  // of a question mark
	dates    uint8 // what has to be looked at in strings
	bytes    *skimTable
}

// Unlimited is a Mode.Limit that runs every executable comment.
const Unlimited = 1 << 30

// Init prepares l, which must be zero, to cut src. A byte order mark at the
// beginning is skipped.
func (l *Lexer) Init(src string, mode Mode) {
	l.src, l.mode = src, mode
	l.double, l.question, l.dates, l.bytes = Name, Op, special|dateEnds, &skimPostgres
	if mode.MySQL {
		l.double, l.question, l.dates, l.bytes = Quoted, Param, special, &skimMySQL
	}
	if len(src) >= 3 && src[:3] == "\ufeff" {
		l.pos = 3
	}
}

// Text returns the current token's text, without quotes.
func (l *Lexer) Text() string { return l.src[l.Start:l.End] }

// Pos returns the offset behind the current token.
func (l *Lexer) Pos() int { return l.pos }

// Next moves to the next token and returns its kind. At the end of the text it
// returns EOF, also when called again.
func (l *Lexer) Next() Kind {
	src, i := l.src, l.pos
	l.Dotted = false
again:
	for i < len(src) && class[src[i]] == clsSpace {
		i++
	}
	if i >= len(src) {
		return l.eof()
	}
	start := i
	c := src[i]
	kind := Op
	i++
	switch class[c] {
	case clsLetter:
		for i < len(src) && isWordByte(src[i]) {
			i++
		}
		if i < len(src) {
			if c := src[i]; c >= 0x80 {
				return l.wideWord(start, i)
			} else if i-start == 1 && (c == '\'' || c == '&') {
				if k, ok := l.prefixed(start); ok {
					return k
				}
			}
		}
		l.pos, l.Start, l.End = i, start, i
		l.Kw = keyword(src, uint(start), uint(i))
		return Word
	case clsComma:
		kind = Comma
	case clsDot:
		if i < len(src) && isDigit(src[i]) && !l.afterName(start) {
			return l.fraction(start, i)
		}
		l.Dotted = true
		goto again
	case clsLParen:
		kind = LParen
	case clsRParen:
		kind = RParen
	case clsLBracket:
		kind = LBracket
	case clsRBracket:
		kind = RBracket
	case clsSemicolon:
		kind = Semicolon
	case clsDigit:
		return l.number(start)
	case clsSingle:
		return l.plainString(i)
	case clsDouble:
		for i < len(src) && inQuotes[src[i]]&special == 0 {
			i++
		}
		if i+1 < len(src) && src[i] == '"' && src[i+1] != '"' {
			l.pos, l.Start, l.End = i+1, start+1, i
			return l.double
		}
		return l.doubleQuoted(start + 1)
	case clsBacktick:
		for i < len(src) && inQuotes[src[i]]&special == 0 {
			i++
		}
		if i+1 < len(src) && src[i] == '`' && src[i+1] != '`' && l.mode.MySQL {
			l.pos, l.Start, l.End = i+1, start+1, i
			l.Notes |= Divergent
			return Name
		}
		return l.backtick(start + 1)
	case clsDollar:
		return l.dollar(start)
	case clsQuestion:
		// PostgreSQL knows the character as an operator only.
		l.Marks++
		if l.mode.MySQL {
			kind = Param
		}
	case clsColon:
		if i < len(src) {
			switch src[i] {
			case ':':
				if !l.mode.MySQL {
					i++
					kind = Cast
				}
			case '=':
				i++
				kind = Assign
			default:
				if class[src[i]] == clsLetter {
					l.Named++
				}
			}
		}
	case clsAt:
		if l.mode.MySQL {
			return l.variable(i)
		}
		l.Notes |= Divergent
		if i < len(src) && class[src[i]] == clsLetter {
			l.Named++
		}
	case clsHash:
		l.Notes |= Divergent
		if l.mode.MySQL {
			i = l.lineComment(i)
			goto again
		}
	case clsDash:
		if i < len(src) && src[i] == '-' {
			if l.dashComment(i + 1) {
				i = l.lineComment(i + 1)
				goto again
			}
		}
	case clsSlash:
		if i < len(src) && src[i] == '*' {
			i = l.blockComment(i + 1)
			goto again
		}
	case clsStar:
		if l.inExec && i < len(src) && src[i] == '/' {
			l.inExec = false
			i++
			goto again
		}
	case clsBackslash:
		// MySQL knows \N as a way to write NULL, and nothing else.
		l.Notes |= Divergent
		if l.mode.MySQL && i < len(src) && src[i] == 'N' {
			i++
			kind = Number
		} else {
			l.Notes |= Unfinished
		}
	case clsHigh:
		return l.wideWord(start, start)
	case clsOdd:
		l.Notes |= Strange
	}
	l.pos, l.Start, l.End = i, start, i
	return kind
}

func (l *Lexer) eof() Kind {
	if l.inExec {
		l.Notes |= Unfinished
		l.inExec = false
	}
	l.pos, l.Start, l.End = len(l.src), len(l.src), len(l.src)
	return EOF
}

// afterName reports whether the byte before pos ends a name, so that a dot there
// separates two names instead of beginning a number.
func (l *Lexer) afterName(pos int) bool {
	if pos == 0 {
		return false
	}
	c := l.src[pos-1]
	return isWordByte(c) || c >= 0x80 || c == '`' || c == '"'
}

// Slice returns the source between two offsets.
func (l *Lexer) Slice(start, end int) string { return l.src[start:end] }
