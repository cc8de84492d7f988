package lex

// Some keywords mean something in quotes too: the relations that belong to one server,
// pg_temp, the schemas of metadata, and MariaDB's seq.nextval and seq.currval. All
// begin with p, i, u, n or c.

// minQuotedKeyword is the length of the shortest of them.
const minQuotedKeyword = len("pg_temp")

// quotedLengths has, for the first byte of a quoted name, the set of the lengths that
// it may have to be one of them: bit n is length n, and n+32. quotedSeconds has their
// second letter. Names of columns that begin like one (created, user_id) are common,
// and nearly all are told by these.
var quotedLengths, quotedSeconds = buildQuoted()

func buildQuoted() (lengths [256]uint32, seconds [256]byte) {
	for _, name := range []string{"currval", "nextval", "information_schema", "user_variables"} {
		for _, first := range []byte{name[0], name[0] - 'a' + 'A'} {
			lengths[first] |= 1 << len(name)
			seconds[first] = name[1]
		}
	}
	for _, first := range "pP" {
		lengths[first] = 1<<32 - 1
		seconds[first] = 'g'
	}
	return lengths, seconds
}

// mayMeanQuoted reports whether a quoted name may be one of those keywords.
func mayMeanQuoted(name string) bool {
	return len(name) >= minQuotedKeyword && quotedLengths[name[0]]>>(uint(len(name))&31)&1 != 0 && mayMeanSecond(name)
}

// mayMeanSecond tells names whose first letter and length are those of a keyword by
// their second letter. Of those in p, two have another than g.
func mayMeanSecond(name string) bool {
	return name[1]|0x20 == quotedSeconds[name[0]] ||
		name[0]|0x20 == 'p' && (len(name) == len("processlist") || len(name) == len("performance_schema"))
}

// QuotedKeyword returns the keyword that a quoted name is, if it is one that means
// something in quotes too; else NoKeyword.
func (l *Lexer) QuotedKeyword() Keyword {
	if !mayMeanQuoted(l.src[l.Start:l.End]) {
		return NoKeyword
	}
	return keyword(l.src, uint(l.Start), uint(l.End))
}
