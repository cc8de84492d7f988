package lex_test

import (
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/internal/lex"
)

var kinds = map[lex.Kind]string{
	lex.Word: "w", lex.Name: "n", lex.Quoted: "q", lex.String: "s", lex.Number: "0", lex.Param: "p", lex.UserVar: "@",
	lex.SysVar: "@@", lex.LParen: "(", lex.RParen: ")", lex.LBracket: "[", lex.RBracket: "]", lex.Comma: ",",
	lex.Semicolon: ";", lex.Cast: "::", lex.Assign: ":=", lex.Op: "o",
}

// tokens cuts a text and writes each token as its kind and, where that says
// something, its text; a dot stands before a token that has one before it.
func tokens(src string, mode lex.Mode) (string, lex.Lexer) {
	var lx lex.Lexer
	lx.Init(src, mode)
	var b strings.Builder
	for {
		k := lx.Next()
		if k == lex.EOF {
			return b.String(), lx
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		if lx.Dotted {
			b.WriteByte('.')
		}
		b.WriteString(kinds[k])
		switch k {
		case lex.Word, lex.Name, lex.Quoted, lex.String, lex.Number, lex.Param, lex.UserVar:
			b.WriteString("<" + lx.Text() + ">")
		}
	}
}

var (
	postgres   = lex.Mode{Limit: lex.Unlimited}
	postgresSC = lex.Mode{Escapes: true, Limit: lex.Unlimited}
	mysql      = lex.Mode{MySQL: true, Escapes: true, Limit: lex.Unlimited}
	mysqlAnsi  = lex.Mode{MySQL: true, Escapes: true, AnsiQuotes: true, Limit: lex.Unlimited}
	mysqlPlain = lex.Mode{MySQL: true, Limit: lex.Unlimited}
	mariadb    = lex.Mode{MySQL: true, Escapes: true, Server: lex.ServerMariaDB, Limit: lex.Unlimited}
)

func TestTokens(t *testing.T) {
	for _, c := range []struct {
		name string
		mode lex.Mode
		src  string
		want string
	}{
		{"words", postgres, "Select a_1, b$2", "w<Select> w<a_1> , w<b$2>"},
		{"byte order mark", postgres, "\ufeffSELECT", "w<SELECT>"},
		{"dots", postgres, `a . b."c".d`, `w<a> .w<b> .n<c> .w<d>`},
		{"wide words", postgres, "備考 é1", "w<備考> w<é1>"},
		{"single characters", postgres, "(a)[1];,", "( w<a> ) [ 0<1> ] ; ,"},
		{"casts and assignments", postgres, "a::b := c : d", "w<a> :: w<b> := w<c> o w<d>"},
		{"operators", postgres, "a ->> b @> c #>> d ?| e", "w<a> o o o w<b> o o w<c> o o o w<d> o o w<e>"},
		{"placeholders", postgres, "$1 $12", "p<$1> p<$12>"},
		{"numbers", postgres, "1 1.5 .5 1. 1e5 1.5E-3 1FOR 1.FOR 0x1F", "0<1> 0<1.5> 0<.5> 0<1.> 0<1e5> 0<1.5E-3> 0<1> w<FOR> 0<1.> w<FOR> 0<0> w<x1F>"},
		{"strings", postgres, `'a''b' '' 'c\'`, `s<a''b> s<> s<c\>`},
		{"escape strings", postgres, `E'a\'b' e'\\' xE'a'`, `s<a\'b> s<\\> w<xE> s<a>`},
		{"escape string over lines", postgres, "E'a'  -- x\n 'b\\'c' d", `s<a'  -- x` + "\n" + ` 'b\'c> w<d>`},
		{"strings over lines", postgres, "'a'\n'b\\' c", `s<a> s<b\> w<c>`},
		{"unicode strings", postgres, `U&'a\' U&"b" u & c`, `s<a\> n<b> w<u> o w<c>`},
		{"bit strings", postgres, `B'1' x'f' N'n'`, `w<B> s<1> w<x> s<f> w<N> s<n>`},
		{"dollar quotes", postgres, "$$a$$ $x$b$$c$x$ d$e$ $é$f$é$", "s<a> s<b$$c> w<d$e$> s<f>"},
		{"dollar quote behind a number", postgres, "1$$a$$", "0<1> s<a>"},
		{"nested comments", postgres, "a /* /* */ */ b /*/*/**/*/*/ c", "w<a> w<b> w<c>"},
		{"line comments", postgres, "a --b\nc --d\re", "w<a> w<c> w<e>"},
		{"comment inside an operator", postgres, "a +/*x*/- b @--c\nd", "w<a> o o w<b> o w<d>"},
		{"hash is an operator", postgres, "a # b", "w<a> o w<b>"},
		{"no executable comments", postgres, "a /*! b */ c", "w<a> w<c>"},
		{"standard_conforming_strings off", postgresSC, `'a\'b'`, `s<a\'b>`},

		{"names", mysql, "`a``b`.`c` \"d\"", "n<a``b> .n<c> q<d>"},
		{"backslashes", mysql, `'a\'b' "c\"d" '\\'`, `s<a\'b> q<c\"d> s<\\>`},
		{"ANSI_QUOTES", mysqlAnsi, `"a\" 'b\'c'`, `q<a\> s<b\'c>`},
		{"NO_BACKSLASH_ESCAPES", mysqlPlain, `'a\' "b\"`, `s<a\> q<b\>`},
		{"null", mysql, `a \N b`, `w<a> 0<\N> w<b>`},
		{"introducers", mysql, "_utf8mb4'a' n'b' x'41'", "w<_utf8mb4> s<a> w<n> s<b> w<x> s<41>"},
		{"dashes need a blank", mysql, "7--2 -- x\n--\ty\n--", "0<7> o o 0<2>"},
		{"hash comments", mysql, "a # b\nc #", "w<a> w<c>"},
		{"plain comments do not nest", mysql, "a /* /* */ b", "w<a> w<b>"},
		{"variables", mysql, "@a @`b c` @'d' @@e @@global.f @a.b", "@<@a> @<b c> @<d> @@ w<e> @@ w<global> .w<f> @<@a.b>"},
		{"placeholder", mysql, "a = ?", "w<a> o p<?>"},
		{"names that begin with a digit", mysql, "1a 0x1F 1e5 1e+5FOR 1.5FOR .5FOR t.5FOR", "0<1a> 0<0x1F> 0<1e5> 0<1e+5> w<FOR> 0<1.5> w<FOR> 0<.5> w<FOR> w<t> .0<5FOR>"},
		{"executable comments", mysql, "a /*! b */ /*!50000 c */ /*!50700d*/ /*!123 e */ f", "w<a> w<b> w<c> w<d> 0<123> w<e> w<f>"},
		{"a comment inside an executable one", mysql, "/*! a /* b */ c */ d", "w<a> w<c> w<d>"},
		{"MariaDB's comments in MySQL", mysql, "a /*M! b */ c", "w<a> w<c>"},
		{"optimizer hints", mysql, "a /*+ b */ c", "w<a> w<c>"},
		{"MariaDB's comments", mariadb, "a /*M! b */ /*M!100400 c */ /*!50700 d */ /*!99999 e */ /*!50600 f */", "w<a> w<b> w<c> w<f>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, lx := tokens(c.src, c.mode)
			if got != c.want {
				t.Errorf("%q:\n got %s\nwant %s", c.src, got, c.want)
			}
			if lx.Notes&lex.Unfinished != 0 {
				t.Errorf("%q: unfinished", c.src)
			}
		})
	}
}

func TestNotes(t *testing.T) {
	for _, c := range []struct {
		name string
		mode lex.Mode
		src  string
		want lex.Note // among those that are not Divergent
	}{
		{"nothing", postgres, "SELECT a, 'b', \"c\" /* d */ -- e", 0},
		{"unfinished string", postgres, "'a", lex.Unfinished},
		{"unfinished name", postgres, "\"a", lex.Unfinished},
		{"unfinished comment", postgres, "/* /* */", lex.Unfinished},
		{"unfinished dollar quote", postgres, "$a$ b", lex.Unfinished},
		{"unfinished backticks", mysql, "`a", lex.Unfinished},
		{"unfinished executable comment", mysql, "/*! a", lex.Unfinished},
		{"stray backslash", mysql, "a \\b", lex.Unfinished},
		{"quote behind a backslash", postgres, `'a\' b`, lex.EscapedQuote},
		{"quote behind two", postgres, `'a\\' b`, 0},
		{"quote behind three", postgres, `'a\\\' b`, lex.EscapedQuote},
		{"quote behind a backslash in an escape string", postgres, `E'a\'' b`, lex.DateWord},
		{"quote behind a backslash, MySQL", mysql, `'a\'b'`, lex.EscapedQuote},
		{"other quote behind a backslash", mysql, `'a\"b'`, 0},
		{"double quote behind a backslash", mysql, `"a\"b"`, lex.EscapedQuote},
		{"open executable comment", mysql, "/*!80000 a */", lex.Conditional},
		{"sure executable comment", mysql, "/*!50600 a */", 0},
		{"open for MariaDB", mariadb, "/*!110000 a */", lex.Conditional},
		{"NUL", postgres, "a \x00", lex.Strange},
		{"NUL in a string", postgres, "'\x00'", lex.Strange},
		{"invalid UTF-8 in a word", postgres, "a\xff", lex.Strange},
		{"invalid UTF-8 in a string", mysql, "'\x95\\'", lex.EscapedQuote | lex.Unfinished},
		{"UTF-8 in a string", postgres, "'é備'", 0},
		{"no-break space", postgres, "a\u00a0b", lex.Strange},
		{"ideographic space", mysql, "\u3000a", lex.Strange},
		{"ideographic space in a string", mysql, "'\u3000'", 0},
		{"name in code points", postgres, `U&"a"`, lex.Strange},
		{"nested executable comments", mysql, "/*! a /*! b */ c */", lex.Strange},
		{"now", postgres, "'now'", lex.DateWord},
		{"Today in a text", postgres, "'is it Today?'", lex.DateWord},
		{"tomorrow in dollars", postgres, "$$tomorrow$$", lex.DateWord},
		{"yesterday", postgres, "'yesterday 12:00'", lex.DateWord},
		{"snow", postgres, "'snow nowhere todays'", 0},
		{"now in MySQL", mysql, "'now'", 0},
		{"now outside a literal", postgres, "now \"today\"", 0},
		{"escapes may spell now", postgres, `E'n\x6fw'`, lex.DateWord},
		{"hint", postgres, "/* replicated:primary */", lex.HintPrimary},
		{"hint without blanks", mysql, "/*replicated:replica*/", lex.HintReplica},
		{"hint with more behind", mysql, "/* replicated:replica app:x */", lex.HintReplica},
		{"no hint", postgres, "/* replicated:replicas */ /* x replicated:primary */ -- replicated:primary", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, lx := tokens(c.src, c.mode); lx.Notes&^lex.Divergent != c.want {
				t.Errorf("%q: got %b, want %b", c.src, lx.Notes&^lex.Divergent, c.want)
			}
		})
	}
}

// TestDivergent: whatever the two lexers cut differently is noted by both.
func TestDivergent(t *testing.T) {
	for _, src := range []string{
		"a # b", "a --b", "/* /* */ */", "$$a$$", `'\'`, "`a`", "/*! a */", "@a", "1a", "E'a'", "U&'a'", "a -- b\rc",
	} {
		for _, m := range []lex.Mode{postgres, mysql} {
			_, lx := tokens(src, m)
			if lx.Notes&lex.Divergent == 0 && !(m == mysql && (src == "E'a'" || src == "U&'a'" || src == "@a")) {
				t.Errorf("%q, MySQL %v: not noted", src, m.MySQL)
			}
		}
	}
}

func TestLimit(t *testing.T) {
	for _, c := range []struct {
		limit int
		want  string
	}{{lex.Unlimited, "w<a> w<b> w<c>"}, {80000, "w<a> w<c>"}, {79999, "w<c>"}, {0, "w<c>"}} {
		m := mysql
		m.Limit = c.limit
		got, lx := tokens("/*!80000 a */ /*!80100 b */ c", m)
		if got != c.want {
			t.Errorf("limit %d: got %s, want %s", c.limit, got, c.want)
		}
		if lx.NumVersions != 2 || lx.Versions[0] != 80000 || lx.Versions[1] != 80100 {
			t.Errorf("limit %d: versions %v of %d", c.limit, lx.Versions, lx.NumVersions)
		}
	}
}

func TestPlaceholderCounts(t *testing.T) {
	_, lx := tokens("? ? $3 $1", postgres)
	if lx.Marks != 2 || lx.Dollar != 3 {
		t.Errorf("got %d marks, highest %d", lx.Marks, lx.Dollar)
	}
	if _, lx = tokens(":a @b ::c := d", postgres); lx.Named != 2 {
		t.Errorf("got %d names", lx.Named)
	}
	if _, lx = tokens("$99999999999999999999", postgres); lx.Dollar < 1<<20 || lx.Dollar > 1<<26 {
		t.Errorf("got %d", lx.Dollar)
	}
}

// TestKeywords: each keyword is found by its name in any case, and nothing else is.
func TestKeywords(t *testing.T) {
	for k := lex.NoKeyword + 1; k < lex.NumKeywords; k++ {
		name := k.String()
		if name == "" {
			t.Fatalf("keyword %d has no name", k)
		}
		for _, w := range []string{name, strings.ToLower(name), strings.ToLower(name[:1]) + name[1:]} {
			if k >= lex.KwPgStat {
				w += "1" // known by their beginning
			}
			if got := lex.LookupKeyword(w); got != k {
				t.Errorf("%q is %q", w, got)
			}
		}
		if k >= lex.KwPgStat {
			continue
		}
		for _, w := range []string{name + "X", name[:len(name)-1] + "_", "X" + name, name[:len(name)-1] + "\x00"} {
			if got := lex.LookupKeyword(w); got == k {
				t.Errorf("%q is %q", w, got)
			}
		}
	}
	if s := lex.Keyword(60000).String(); s != "" {
		t.Errorf("no keyword is called %q", s)
	}
	if k := lex.LookupKeyword("pg_temp_x"); k != lex.NoKeyword {
		t.Errorf("pg_temp_x is %q", k)
	}
}

// FuzzLexer: no text panics; tokens lie in the text, in order; and the end comes.
func FuzzLexer(f *testing.F) {
	for _, s := range []string{"SELECT 'a', \"b\", `c`, $$d$$, $1 /* e */ -- f", "/*!50000 a */ @b := 1e5", "E'\\'", "U&'x'"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		for _, m := range []lex.Mode{postgres, postgresSC, mysql, mysqlAnsi, mysqlPlain, mariadb} {
			var lx lex.Lexer
			lx.Init(src, m)
			last := 0
			for n := 0; lx.Next() != lex.EOF; n++ {
				if lx.Start < last || lx.End < lx.Start || lx.Pos() < lx.End || lx.Pos() > len(src) || lx.Pos() <= last || n > len(src) {
					t.Fatalf("%q: token at %d..%d, then %d, behind %d", src, lx.Start, lx.End, lx.Pos(), last)
				}
				last = lx.Pos()
			}
			if lx.Next() != lex.EOF || lx.Pos() != len(src) {
				t.Fatalf("%q: no end", src)
			}
		}
	})
}
