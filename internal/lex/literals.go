package lex

import (
	"strings"
	"unicode/utf8"
)

// plainString cuts a string in single quotes; i is behind the opening quote.
func (l *Lexer) plainString(i int) Kind {
	end := l.quoted(i, '\'', l.mode.Escapes)
	if end < 0 {
		return l.unfinished(i, String)
	}
	return l.literal(i, end, end+1)
}

// literal ends a String token whose content is src[start:end].
func (l *Lexer) literal(start, end, pos int) Kind {
	if !l.mode.MySQL && l.Notes&DateWord == 0 && end-start >= len("now") && hasDateWord(l.src[start:end]) {
		l.Notes |= DateWord
	}
	l.pos, l.Start, l.End = pos, start, end
	return String
}

// doubleQuoted cuts what stands in double quotes; i is behind the first of them.
func (l *Lexer) doubleQuoted(i int) Kind {
	end := l.quoted(i, '"', l.mode.MySQL && l.mode.Escapes && !l.mode.AnsiQuotes)
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
	end := l.quoted(i, '`', false)
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
func (l *Lexer) quoted(start int, q byte, escapes bool) int {
	src, i := l.src, start
	wide := false
	for {
		for i < len(src) && plain[src[i]] {
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
		end := l.quoted(i, q, q == '\'' && l.mode.Escapes)
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
		end := l.quoted(i, '\'', true)
		if end < 0 {
			return l.unfinished(i, String)
		}
		// Escapes are sure here, whatever the mode.
		l.Notes = l.Notes&^EscapedQuote | notes&EscapedQuote
		if strings.IndexByte(l.src[i:end], '\\') >= 0 {
			l.Notes |= DateWord
		}
		l.literal(start, end, end+1)
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

// hasDateWord reports whether a literal holds now, today, tomorrow or yesterday,
// in any case.
func hasDateWord(s string) bool {
	for i := 0; i+3 <= len(s); i++ {
		switch s[i] | 0x20 {
		case 'n':
			if s[i+1]|0x20 == 'o' && s[i+2]|0x20 == 'w' {
				return true
			}
		case 't':
			if s[i+1]|0x20 == 'o' && (hasFold(s[i+2:], "day") || hasFold(s[i+2:], "morrow")) {
				return true
			}
		case 'y':
			if hasFold(s[i+1:], "esterday") {
				return true
			}
		}
	}
	return false
}

// hasFold reports whether s begins with the lower-case letters prefix, in any case.
func hasFold(s, prefix string) bool {
	if len(s) < len(prefix) {
		return false
	}
	for i := 0; i < len(prefix); i++ {
		if s[i]|0x20 != prefix[i] {
			return false
		}
	}
	return true
}
