package lex

import (
	"strings"
	"unicode/utf8"
)

// plainString cuts a string in single quotes; i is behind the opening quote.
func (l *Lexer) plainString(i int) Kind {
	src, j := l.src, i
	for j < len(src) && inQuotes[src[j]]&l.dates == 0 {
		j++
	}
	if j+1 < len(src) && src[j] == '\'' && src[j+1] != '\'' {
		l.pos, l.Start, l.End = j+1, i, j
		return String
	}
	end := l.quoted(i, '\'', l.mode.Escapes, l.dates)
	if end < 0 {
		return l.unfinished(i, String)
	}
	l.pos, l.Start, l.End = end+1, i, end
	return String
}

// doubleQuoted cuts what stands in double quotes; i is behind the first of them.
func (l *Lexer) doubleQuoted(i int) Kind {
	end := l.quoted(i, '"', l.mode.MySQL && l.mode.Escapes && !l.mode.AnsiQuotes, special)
	if end < 0 {
		return l.unfinished(i, l.double)
	}
	l.pos, l.Start, l.End = end+1, i, end
	return l.double
}

// backtick cuts a MySQL name in backticks; i is behind the first of them.
func (l *Lexer) backtick(i int) Kind {
	l.Notes |= Divergent
	if !l.mode.MySQL {
		// PostgreSQL knows the character as an operator.
		l.pos, l.Start, l.End = i, i-1, i
		return Op
	}
	end := l.quoted(i, '`', false, special)
	if end < 0 {
		return l.unfinished(i, Name)
	}
	l.pos, l.Start, l.End = end+1, i, end
	return Name
}

func (l *Lexer) unfinished(i int, k Kind) Kind {
	l.Notes |= Unfinished
	l.pos, l.Start, l.End = len(l.src), i, len(l.src)
	return k
}

// quoted returns the place of the quote q that ends what begins at start, or -1.
// A doubled quote stands for itself. With escapes a backslash takes the next
// character with it.
// look says which bytes have to be looked at.
func (l *Lexer) quoted(start int, q byte, escapes bool, look uint8) int {
	src, i := l.src, start
	wide := false
	for {
		for i < len(src) && inQuotes[src[i]]&look == 0 {
			i++
		}
		if i >= len(src) {
			return -1
		}
		switch c := src[i]; {
		case c == q:
			if !escapes && q != '`' && i > start && src[i-1] == '\\' && oddRun(src[start:i]) {
				l.Notes |= EscapedQuote
			}
			if i+1 < len(src) && src[i+1] == q {
				i += 2
				continue
			}
			if wide && !utf8.ValidString(src[start:i]) {
				l.Notes |= Strange
			}
			return i
		case c == '\\' && q != '`':
			l.Notes |= Divergent
			if escapes {
				i++
				if i < len(src) && src[i] == q {
					l.Notes |= EscapedQuote
				}
			}
		case c == 0:
			l.Notes |= Strange
		case c >= 0x80:
			wide = true
		case look&dateEnds != 0 && dateWordEnds(src, uint(start), uint(i)):
			l.Notes |= DateWord
		}
		i++
	}
}

// oddRun reports whether s ends in an odd number of backslashes.
func oddRun(s string) bool {
	n := len(s) - len(strings.TrimRight(s, "\\"))
	return n%2 == 1
}

// prefixed cuts PostgreSQL's strings and names with a prefix of one letter, which
// stands at start: E'…', U&'…' and U&"…". The others (B, X, N) need nothing, since
// their quotes end like a plain string's. ok is false if there is no such prefix.
func (l *Lexer) prefixed(start int) (k Kind, ok bool) {
	src := l.src
	switch src[start] | 0x20 {
	case 'e':
		if l.mode.MySQL || src[start+1] != '\'' {
			return 0, false
		}
		l.Notes |= Divergent
		return l.escapeString(start + 2), true
	case 'u':
		if l.mode.MySQL || src[start+1] != '&' || start+2 >= len(src) {
			return 0, false
		}
		i := start + 3
		q := src[start+2]
		if q != '\'' && q != '"' {
			return 0, false
		}
		l.Notes |= Divergent
		k = String
		if q == '"' {
			// The name is spelt in code points, so that it cannot be compared.
			k = Name
			l.Notes |= Strange
		}
		end := l.quoted(i, q, q == '\'' && l.mode.Escapes, l.dates)
		if end < 0 {
			return l.unfinished(i, k), true
		}
		if strings.IndexByte(src[i:end], '\\') >= 0 {
			l.Notes |= DateWord
		}
		l.pos, l.Start, l.End = end+1, i, end
		return k, true
	}
	return 0, false
}

// escapeString cuts PostgreSQL's E'…'; i is behind the quote. A string that goes
// on behind a line break goes on as an escape string.
func (l *Lexer) escapeString(i int) Kind {
	start := i
	for {
		notes := l.Notes
		end := l.quoted(i, '\'', true, l.dates)
		if end < 0 {
			return l.unfinished(i, String)
		}
		// Escapes are sure here, whatever the mode.
		l.Notes = l.Notes&^EscapedQuote | notes&EscapedQuote
		if strings.IndexByte(l.src[i:end], '\\') >= 0 {
			l.Notes |= DateWord
		}
		l.pos, l.Start, l.End = end+1, start, end
		next := l.continued(end + 1)
		if next < 0 {
			return String
		}
		l.Notes |= DateWord
		i = next
	}
}

// continued returns the place behind the quote with which a string goes on, or -1:
// PostgreSQL joins two strings that only blanks with a line break, and line
// comments, separate.
func (l *Lexer) continued(i int) int {
	src := l.src
	newline := false
	for i < len(src) {
		switch c := src[i]; {
		case c == '\n' || c == '\r':
			newline = true
			i++
		case class[c] == clsSpace:
			i++
		case c == '-' && i+1 < len(src) && src[i+1] == '-':
			i = l.lineEnd(i)
		case c == '\'' && newline:
			return i + 1
		default:
			return -1
		}
	}
	return -1
}

// dateWordEnds reports whether now, today, tomorrow or yesterday, in any case and
// as a word of its own, ends at src[i] in the literal that begins at start.
func dateWordEnds(src string, start, i uint) bool {
	return (i+1 >= uint(len(src)) || !isLetter(src[i+1])) && endsInDateWord(src[start:i+1])
}

// endsInDateWord does so for a literal that ends behind the word.
func endsInDateWord(s string) bool {
	for _, w := range [...]string{"now", "today", "tomorrow", "yesterday"} {
		if hasSuffixFold(s, w) {
			return len(s) == len(w) || !isLetter(s[len(s)-len(w)-1])
		}
	}
	return false
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// hasDateWord reports whether s holds one of those words.
func hasDateWord(s string) bool {
	for i := range uint(len(s)) {
		if inQuotes[s[i]] == dateEnds && dateWordEnds(s, 0, i) {
			return true
		}
	}
	return false
}

// hasSuffixFold reports whether s ends in the lower-case letters suffix, in any
// case.
func hasSuffixFold(s, suffix string) bool {
	if len(s) < len(suffix) {
		return false
	}
	s = s[len(s)-len(suffix):]
	for i := len(suffix) - 1; i >= 0; i-- {
		if s[i]|0x20 != suffix[i] {
			return false
		}
	}
	return true
}
