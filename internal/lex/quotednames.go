package lex

// Some keywords mean something in quotes too: the relations that belong to one server,
// pg_temp, the schemas of metadata, and MariaDB's seq.nextval and seq.currval. All
// begin with p, i, u, n or c.

// minQuotedKeyword is the length of the shortest of them.
const minQuotedKeyword = len("pg_temp")

// quotedLengths has, for the first byte of a quoted name, the set of the lengths that
// it may have to be one of them: bit n is length n, and n+32. Names of columns that
// begin like one (created_at, user_id) are common, and nearly all are told by length.
var quotedLengths = func() (t [256]uint32) {
	for _, name := range []string{"currval", "nextval", "information_schema", "user_variables"} {
		t[name[0]] |= 1 << len(name)
		t[name[0]-'a'+'A'] |= 1 << len(name)
	}
	t['p'], t['P'] = 1<<32-1, 1<<32-1
	return t
}()

// mayMeanQuoted reports whether a quoted name may be one of those keywords.
func mayMeanQuoted(name string) bool {
	return len(name) >= minQuotedKeyword && quotedLengths[name[0]]>>(uint(len(name))&31)&1 != 0 && mayMeanP(name)
}

// mayMeanP tells names that begin with p, such as password, by more than their length.
func mayMeanP(name string) bool {
	return name[0]|0x20 != 'p' || name[1]|0x20 == 'g' || len(name) == len("processlist") || len(name) == len("performance_schema")
}

// QuotedKeyword returns the keyword that a quoted name is, if it is one that means
// something in quotes too; else NoKeyword.
func (l *Lexer) QuotedKeyword() Keyword {
	if !mayMeanQuoted(l.src[l.Start:l.End]) {
		return NoKeyword
	}
	return keyword(l.src, uint(l.Start), uint(l.End))
}
