package lex_test

import (
	"os"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/internal/lex"
)

// follow keeps the trail as Skim has to, one token at a time, the slow way.
func follow(lx *lex.Lexer, k lex.Kind, t *lex.Trail) {
	mark := lex.MarkOf(k)
	var kw lex.Keyword
	switch k {
	case lex.Word:
		kw = lx.Kw
		if kw != lex.NoKeyword && !lx.Dotted {
			mark = lex.Mark(kw)
		}
	case lex.Name, lex.Quoted:
		kw = lx.QuotedKeyword()
	case lex.LParen:
		t.Open(true)
		return
	case lex.RParen:
		t.Close()
		return
	default:
		if k == lex.Assign {
			mark = lex.MarkOp
		}
		t.Prev = mark
		return
	}
	if lx.Dotted {
		t.Part(mark, kw, lx.Start, lx.End)
		return
	}
	t.Name(mark, kw, lx.Start, lx.End)
}

// checkSkim goes through a text with Skim and, beside it, with Next: they must
// arrive at the same tokens with the same trail.
func checkSkim(t *testing.T, src string, mode lex.Mode, uses *lex.Uses) {
	t.Helper()
	var fast, slow lex.Lexer
	fast.Init(src, mode)
	slow.Init(src, mode)
	ft := lex.Trail{Prev: lex.MarkStart, Uses: uses}
	st := ft
	for {
		k := fast.Skim(&ft)
		for {
			sk := slow.Next()
			if slow.Pos() == fast.Pos() && sk == k && (k != lex.Word || slow.Kw == fast.Kw) && slow.Start == fast.Start {
				break
			}
			if sk == lex.EOF || slow.Pos() > fast.Pos() {
				t.Fatalf("%q, MySQL %v: Skim came to %d..%d, Next to %d..%d", src, mode.MySQL, fast.Start, fast.Pos(), slow.Start, slow.Pos())
			}
			if sk == lex.Word && !slow.Dotted && uses[slow.Kw]&lex.Stops != 0 || sk == lex.LParen && !encloses(&st, uses) ||
				sk == lex.RParen && st.Depth <= 0 {
				t.Fatalf("%q, MySQL %v: Skim went over %q at %d", src, mode.MySQL, slow.Text(), slow.Start)
			}
			follow(&slow, sk, &st)
		}
		if ft != st || fast.Dotted != slow.Dotted {
			t.Fatalf("%q, MySQL %v, at %d: trail %+v, want %+v", src, mode.MySQL, fast.Start, ft, st)
		}
		if k == lex.EOF {
			break
		}
		follow(&fast, k, &ft)
		st = ft
	}
	if fast.Notes != slow.Notes || fast.Marks != slow.Marks || fast.Dollar != slow.Dollar || fast.Named != slow.Named {
		t.Fatalf("%q, MySQL %v: notes %b, want %b; marks %d, want %d; dollar %d, want %d", src, mode.MySQL,
			fast.Notes, slow.Notes, fast.Marks, slow.Marks, fast.Dollar, slow.Dollar)
	}
}

// encloses reports whether Skim may go over a parenthesis behind t.
func encloses(t *lex.Trail, uses *lex.Uses) bool {
	switch t.Prev {
	case lex.MarkWord, lex.MarkName, lex.MarkQuoted:
		return uses[t.Lead]&lex.Introduces != 0
	}
	return uses[t.Prev]&lex.Encloses != 0 && uses[t.Lead]&lex.Qualifies == 0
}

var skimUses = func() (u lex.Uses) {
	for _, k := range []lex.Keyword{lex.KwSelect, lex.KwFor, lex.KwInto, lex.KwUpdate, lex.KwPgLocks} {
		u[k] |= lex.Stops
	}
	for _, m := range []lex.Mark{lex.Mark(lex.KwIn), lex.Mark(lex.KwOn), lex.Mark(lex.KwSelect), lex.MarkComma, lex.MarkOp, lex.MarkLParen} {
		u[m] |= lex.Encloses
	}
	for _, m := range []lex.Mark{lex.Mark(lex.KwAs), lex.Mark(lex.KwInto), lex.MarkCast} {
		u[m] |= lex.Introduces
	}
	u[lex.KwDistinct] |= lex.Qualifies
	for _, m := range []lex.Mark{lex.MarkWord, lex.MarkName, lex.MarkQuoted} {
		u[m] |= lex.Names
	}
	return u
}()

func FuzzSkim(f *testing.F) {
	data, err := os.ReadFile("../classify/testdata/statements.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, line := range strings.Split(string(data), "\n") {
		if _, sql, ok := strings.Cut(line, ": "); ok {
			f.Add(sql)
		}
	}
	f.Add(`SELECT a."b" . c.*, "pg_locks".d, $1, $1234567, 'x', 1.5, a.pg_temp.e, f(g(h)) ? i`)
	f.Add(`INSERT INTO t (a, (b)) VALUES ((1), IN ('it is now'), (')')) AS x (y); )(`)
	f.Add("SELECT na\u00efve, caf\u00e9(x), a.b\u00fc, \"\u00e9t\u00e9\" FROM LOCK\u00e0 WHERE a\u00e9 = '\u00e9'")
	f.Add(`SELECT DISTINCT ON (a) b FROM t JOIN u ON (c = d)`)
	f.Fuzz(func(t *testing.T, src string) {
		for _, m := range []lex.Mode{postgres, postgresSC, mysql, mysqlAnsi, mysqlPlain, mariadb} {
			checkSkim(t, src, m, &skimUses)
		}
	})
}
