package lex

import "strings"

// Server tells which executable comments a lexer for MySQL runs.
type Server uint8

const (
	// ServerMySQL is MySQL 5.6 or later: /*! runs, with a version up to 50600 it
	// surely runs, with a higher one it is open. /*M! is a comment.
	ServerMySQL Server = iota
	// ServerMariaDB is MariaDB 10.5 or later: /*! and /*M! run with a version up
	// to 100500; 50700 to 99999 are MySQL's and /*! does not run with those; a
	// higher version is open.
	ServerMariaDB
	// ServerEither is one of the two.
	ServerEither
)

const (
	oldestMySQL   = 50600
	oldestMariaDB = 100500
	mysqlOnlyFrom = 50700
	mysqlOnlyTo   = 99999
)

// dashComment reports whether the two dashes before i begin a comment. In MySQL a
// blank, a control character or the end has to follow.
func (l *Lexer) dashComment(i int) bool {
	if i >= len(l.src) || l.src[i] <= ' ' || l.src[i] == 0x7f {
		return true
	}
	l.Notes |= Divergent
	return !l.mode.MySQL
}

// lineComment skips to the end of the line.
func (l *Lexer) lineComment(i int) int {
	end := l.lineEnd(i)
	if l.mode.MySQL && strings.IndexByte(l.src[i:end], 0) >= 0 {
		// A NUL byte ends the comment too.
		l.Notes |= Strange
	}
	if strings.IndexByte(l.src[i:min(end+1, len(l.src))], '\r') >= 0 {
		l.Notes |= Divergent
	}
	return end
}

// lineEnd returns the place of the line break that ends a line comment: a carriage
// return does in PostgreSQL only.
func (l *Lexer) lineEnd(i int) int {
	if !l.mode.MySQL {
		for i < len(l.src) && l.src[i] != '\n' && l.src[i] != '\r' {
			i++
		}
		return i
	}
	if n := strings.IndexByte(l.src[i:], '\n'); n >= 0 {
		return i + n
	}
	return len(l.src)
}

// blockComment skips a comment, or the opening of an executable comment that runs.
// i is behind the opening slash and star; it returns where lexing goes on.
func (l *Lexer) blockComment(i int) int {
	if i < len(l.src) && (l.src[i] == '!' || l.src[i] == 'M' && i+1 < len(l.src) && l.src[i+1] == '!') {
		l.Notes |= Divergent
		if l.mode.MySQL {
			return l.execComment(i)
		}
	}
	end := l.commentEnd(i, !l.mode.MySQL)
	if end < 0 {
		l.Notes |= Unfinished
		return len(l.src)
	}
	l.hint(l.src[i : end-2])
	return end
}

// commentEnd returns the place behind the star and slash that end a comment, or -1.
func (l *Lexer) commentEnd(i int, nested bool) int {
	src, depth := l.src, 1
	for {
		n := strings.IndexByte(src[i:], '/')
		if n < 0 {
			return -1
		}
		slash := i + n
		switch {
		case slash > i && src[slash-1] == '*':
			depth--
			if depth == 0 {
				return slash + 1
			}
			i = slash + 1
		case slash+1 < len(src) && src[slash+1] == '*':
			l.Notes |= Divergent
			if nested {
				depth++
				i = slash + 2
			} else {
				i = slash + 1
			}
		default:
			i = slash + 1
		}
	}
}

// execComment handles an executable comment; i is at its ! or M.
func (l *Lexer) execComment(i int) int {
	maria := l.src[i] == 'M'
	if maria {
		i++
	}
	i++
	digits := i
	for digits < len(l.src) && digits-i < 6 && isDigit(l.src[digits]) {
		digits++
	}
	version := 0
	if n := digits - i; n >= 5 {
		for _, c := range []byte(l.src[i:digits]) {
			version = version*10 + int(c-'0')
		}
		if n == 6 && !maria && l.mode.Server != ServerMariaDB && digits < len(l.src) && class[l.src[digits]] != clsSpace {
			// MySQL versions differ in whether the sixth digit belongs to the
			// version, which matters if a word touches it.
			l.Notes |= Strange
		}
		i = digits
	}
	if l.inExec {
		// Comments of this kind do not nest the same way everywhere.
		l.Notes |= Strange
	}
	if l.runs(version, maria) {
		l.inExec = true
		return i
	}
	// A comment that does not run may hold plain comments, one deep.
	end := l.skipExec(i)
	if end < 0 {
		l.Notes |= Unfinished
		return len(l.src)
	}
	return end
}

// skipExec returns the place behind an executable comment that is not run.
func (l *Lexer) skipExec(i int) int {
	for {
		end := l.commentEnd(i, false)
		if end < 0 {
			return -1
		}
		open := strings.Index(l.src[i:end], "/*")
		if open < 0 || i+open+2 >= end {
			return end
		}
		l.Notes |= Strange // some versions end the outer comment here
		i = end
	}
}

// runs reports whether an executable comment runs under the mode, and notes if
// that is open.
func (l *Lexer) runs(version int, maria bool) bool {
	switch l.mode.Server {
	case ServerMySQL:
		if maria {
			return false
		}
		if version <= oldestMySQL {
			return true
		}
	case ServerMariaDB:
		if !maria && version >= mysqlOnlyFrom && version <= mysqlOnlyTo {
			return false
		}
		if version <= oldestMariaDB {
			return true
		}
	default:
		if !maria && version <= oldestMySQL {
			return true
		}
	}
	l.Notes |= Conditional
	l.addVersion(version, maria)
	return version <= l.mode.Limit && l.mode.Limit > 0
}

// addVersion remembers the condition of an open comment. MariaDB's own comments
// count as conditions of their own.
func (l *Lexer) addVersion(version int, maria bool) {
	if maria {
		version = -version - 1
	}
	for _, v := range l.Versions[:min(l.NumVersions, len(l.Versions))] {
		if v == version {
			return
		}
	}
	if l.NumVersions < len(l.Versions) {
		l.Versions[l.NumVersions] = version
	}
	l.NumVersions++
}

const hintPrefix = "replicated:"

// hint notes the wish that a comment's content is, if it is one: optional blanks,
// the word, blanks or the end.
func (l *Lexer) hint(content string) {
	i := 0
	for i < len(content) && class[content[i]] == clsSpace {
		i++
	}
	rest, ok := strings.CutPrefix(content[i:], hintPrefix)
	if !ok {
		return
	}
	end := 0
	for end < len(rest) && class[rest[end]] != clsSpace {
		end++
	}
	switch rest[:end] {
	case "primary":
		l.Notes |= HintPrimary
	case "replica":
		l.Notes |= HintReplica
	}
}
