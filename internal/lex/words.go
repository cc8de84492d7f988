package lex

import (
	"strings"
	"unicode/utf8"
)

// wideWord cuts a word that has bytes above 0x7f: its part up to i has been seen.
func (l *Lexer) wideWord(start, i int) Kind {
	src := l.src
	for i < len(src) && (isWordByte(src[i]) || src[i] >= 0x80) {
		i++
	}
	if l.strange(src[start:i]) {
		l.Notes |= Strange
	}
	l.pos, l.Start, l.End = i, start, i
	l.Kw = NoKeyword
	return Word
}

// strange reports whether a word may be something else to a server. On a MySQL
// connection in latin1 the last byte of "à" in UTF-8 is a blank: in "àLOCK" a
// keyword follows it.
func (l *Lexer) strange(word string) bool {
	if !utf8.ValidString(word) || strings.IndexFunc(word, isWideBlank) >= 0 {
		return true
	}
	for i := strings.IndexByte(word, latin1Blank); l.mode.MySQL && i >= 0; i = strings.IndexByte(word, latin1Blank) {
		word = word[i+1:]
		if word != "" && isWordByte(word[0]) {
			return true
		}
	}
	return false
}

const latin1Blank = 0xa0

// isWideBlank reports whether r looks like a blank without being ASCII. The
// servers take these for letters, people take them for blanks.
func isWideBlank(r rune) bool {
	switch {
	case r == 0x85, r == 0xa0, r == 0x1680, 0x2000 <= r && r <= 0x200f,
		0x2028 <= r && r <= 0x202f, r == 0x205f, r == 0x2060, r == 0x3000, r == 0xfeff:
		return true
	}
	return false
}

// number cuts a numeric literal that begins with a digit. In MySQL a word may
// begin with a digit too; it comes back as a Number, since it is no keyword.
//
// What matters is where the number ends: PostgreSQL before version 15 reads 1FOR
// as 1 FOR, MySQL as one name; both read 1.FOR as 1. FOR.
func (l *Lexer) number(start int) Kind {
	src, i := l.src, start
	for i < len(src) && isDigit(src[i]) {
		i++
	}
	if i < len(src) {
		switch c := src[i]; {
		case c == '.':
			return l.fraction(start, i+1)
		case c|0x20 == 'e' && l.exponent(i) > i:
			i = l.exponent(i) // here a number ends in MySQL too: 1e1LOCK is 1e1 LOCK
		case isWordByte(c) || c >= 0x80:
			l.Notes |= Divergent
			if l.mode.MySQL {
				i = l.mysqlName(i)
			}
		}
	}
	l.pos, l.Start, l.End = i, start, i
	return Number
}

// mysqlName goes to the end of a MySQL name that began with a digit.
func (l *Lexer) mysqlName(i int) int {
	from := i
	for i < len(l.src) && (isWordByte(l.src[i]) || l.src[i] >= 0x80) {
		i++
	}
	if l.strange(l.src[from:i]) {
		l.Notes |= Strange
	}
	return i
}

// fraction cuts the rest of a number behind its decimal point.
func (l *Lexer) fraction(start, i int) Kind {
	src := l.src
	for i < len(src) && isDigit(src[i]) {
		i++
	}
	if i < len(src) && src[i]|0x20 == 'e' {
		i = l.exponent(i)
	}
	l.pos, l.Start, l.End = i, start, i
	return Number
}

// exponent returns the end of the exponent whose e stands at i, or i if what
// follows is none.
func (l *Lexer) exponent(i int) int {
	src, j := l.src, i+1
	if j < len(src) && (src[j] == '+' || src[j] == '-') {
		j++
	}
	if j >= len(src) || !isDigit(src[j]) {
		return i
	}
	for j < len(src) && isDigit(src[j]) {
		j++
	}
	return j
}

// dollar cuts what begins with a dollar: a placeholder, a dollar quote, or, in
// MySQL, a name.
func (l *Lexer) dollar(start int) Kind {
	src, i := l.src, start+1
	if i < len(src) && isDigit(src[i]) && !l.mode.MySQL {
		n := 0
		for i < len(src) && isDigit(src[i]) {
			if n < 1<<20 {
				n = n*10 + int(src[i]-'0')
			}
			i++
		}
		l.Dollar = max(l.Dollar, n)
		l.pos, l.Start, l.End = i, start, i
		return Param
	}
	l.Notes |= Divergent
	if l.mode.MySQL {
		// MySQL 9 has dollar quotes, older versions have names with dollars.
		l.Notes |= Strange
		for i < len(src) && isWordByte(src[i]) {
			i++
		}
		l.pos, l.Start, l.End = i, start, i
		l.Kw = NoKeyword
		return Word
	}
	for i < len(src) && (class[src[i]] < clsDollar || src[i] >= 0x80) {
		i++
	}
	if i >= len(src) || src[i] != '$' {
		l.Notes |= Unfinished
		l.pos, l.Start, l.End = start+1, start, start+1
		return Op
	}
	tag := src[start : i+1]
	end := strings.Index(src[i+1:], tag)
	if end < 0 {
		l.Notes |= Unfinished
		l.pos, l.Start, l.End = len(src), i+1, len(src)
		return String
	}
	if hasDateWord(src[i+1 : i+1+end]) {
		l.Notes |= DateWord
	}
	l.pos, l.Start, l.End = i+1+end+len(tag), i+1, i+1+end
	return String
}

// variable cuts a MySQL variable; i is behind its first @.
func (l *Lexer) variable(i int) Kind {
	src, start := l.src, i-1
	if i < len(src) && src[i] == '@' {
		l.pos, l.Start, l.End = i+1, start, i+1
		return SysVar
	}
	if i < len(src) {
		switch c := src[i]; {
		case c == '\'':
			l.plainString(i + 1)
			return UserVar
		case c == '"':
			l.doubleQuoted(i + 1)
			return UserVar
		case c == '`':
			l.backtick(i + 1)
			return UserVar
		}
	}
	for i < len(src) && (isWordByte(src[i]) || src[i] == '.' || src[i] >= 0x80) {
		i++
	}
	if !utf8.ValidString(src[start:i]) || strings.IndexFunc(src[start:i], isWideBlank) >= 0 {
		l.Notes |= Strange
	}
	l.pos, l.Start, l.End = i, start, i
	return UserVar
}
