package lex

// Classes of bytes. Those up to clsDollar may stand inside a word.
const (
	clsLetter uint8 = iota // A-Z a-z _
	clsDigit
	clsDollar
	clsSpace
	clsComma
	clsDot
	clsLParen
	clsRParen
	clsLBracket
	clsRBracket
	clsSemicolon
	clsSingle   // '
	clsDouble   // "
	clsBacktick // `
	clsAt
	clsHash
	clsQuestion
	clsColon
	clsDash
	clsSlash
	clsStar
	clsBackslash
	clsOp
	clsHigh // 0x80 and above: letters in every dialect
	clsOdd  // control bytes and NUL
)

var class = buildClass()

func buildClass() (t [256]uint8) {
	for i := range t {
		t[i] = clsOdd
	}
	for c := 'a'; c <= 'z'; c++ {
		t[c], t[c-'a'+'A'] = clsLetter, clsLetter
	}
	t['_'] = clsLetter
	for c := '0'; c <= '9'; c++ {
		t[c] = clsDigit
	}
	for _, c := range " \t\n\v\f\r" {
		t[c] = clsSpace
	}
	for _, c := range "+<>=~!%^&|{}" {
		t[c] = clsOp
	}
	for c := 0x80; c <= 0xff; c++ {
		t[c] = clsHigh
	}
	for c, k := range map[byte]uint8{
		'$': clsDollar, ',': clsComma, '.': clsDot, '(': clsLParen, ')': clsRParen,
		'[': clsLBracket, ']': clsRBracket, ';': clsSemicolon, '\'': clsSingle,
		'"': clsDouble, '`': clsBacktick, '@': clsAt, '#': clsHash, '?': clsQuestion,
		':': clsColon, '-': clsDash, '/': clsSlash, '*': clsStar, '\\': clsBackslash,
	} {
		t[c] = k
	}
	return t
}

// What has to be looked at inside quotes.
const (
	special  uint8 = 1 << iota // quotes, backslash, NUL and bytes above 0x7f
	dateEnds                   // the last letters of now, tomorrow, today, yesterday
)

var inQuotes = buildInQuotes()

func buildInQuotes() (t [256]uint8) {
	for i := 0x80; i < 0x100; i++ {
		t[i] = special
	}
	for _, c := range "'\"`\\\x00" {
		t[c] = special
	}
	for _, c := range "wWyY" {
		t[c] = dateEnds
	}
	return t
}

// isWordByte reports whether c is an ASCII byte that may go on a word.
func isWordByte(c byte) bool { return class[c] <= clsDollar }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
