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
	default:
		if k == lex.Assign {
			mark = lex.MarkOp
		}
		t.Prev = mark
		return
	}
	if lx.Dotted {
		t.Prev, t.Kw, t.Chained, t.Start, t.End = mark, kw, true, lx.Start, lx.End
		return
	}
	*t = lex.Trail{Prev: mark, Lead: t.Prev, Kw: kw, Start: lx.Start, End: lx.End}
}

// checkSkim goes through a text with Skim and, beside it, with Next: they must
// arrive at the same tokens with the same trail.
func checkSkim(t *testing.T, src string, mode lex.Mode, stops *lex.Stops) {
	t.Helper()
	var fast, slow lex.Lexer
	fast.Init(src, mode)
	slow.Init(src, mode)
	ft, st := lex.Trail{Prev: lex.MarkStart}, lex.Trail{Prev: lex.MarkStart}
	for {
		k := fast.Skim(&ft, stops)
		for {
			sk := slow.Next()
			if slow.Pos() == fast.Pos() && sk == k && (k != lex.Word || slow.Kw == fast.Kw) && slow.Start == fast.Start {
				break
			}
			if sk == lex.EOF || slow.Pos() > fast.Pos() {
				t.Fatalf("%q, MySQL %v: Skim came to %d..%d, Next to %d..%d", src, mode.MySQL, fast.Start, fast.Pos(), slow.Start, slow.Pos())
			}
			if sk == lex.Word && !slow.Dotted && stops[slow.Kw] {
				t.Fatalf("%q, MySQL %v: Skim went over %q", src, mode.MySQL, slow.Text())
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

var skimStops = func() (s lex.Stops) {
	for _, k := range []lex.Keyword{lex.KwSelect, lex.KwFor, lex.KwInto, lex.KwUpdate, lex.KwPgLocks} {
		s[k] = true
	}
	return s
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
	f.Fuzz(func(t *testing.T, src string) {
		for _, m := range []lex.Mode{postgres, postgresSC, mysql, mysqlAnsi, mysqlPlain, mariadb} {
			checkSkim(t, src, m, &skimStops)
		}
	})
}
