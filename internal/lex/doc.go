// Package lex cuts SQL texts into tokens, in one pass, without allocating and in
// time linear in the length of the text.
//
// The lexers follow the servers' own: PostgreSQL's scan.l (nested comments, dollar
// quotes, escape strings) and MySQL's and MariaDB's sql_lex.cc (comments by # and
// by -- and a blank, backslash escapes, executable comments). Where two modes of a
// server would cut a text differently, the lexer cuts it under the mode that it
// was given and notes what was met, so that the caller can lex again under the
// other mode.
package lex
