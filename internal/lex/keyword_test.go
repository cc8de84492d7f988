package lex_test

import (
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/internal/lex"
)

// TestKeywordsOnly: each keyword is found in either case, at the end of a text and before
// more of it, by Next and by Skim; a word that differs from it by a byte is none, or
// another.
func TestKeywordsOnly(t *testing.T) {
	names := make(map[string]lex.Keyword)
	for k := lex.NoKeyword + 1; k < lex.KwPgStat; k++ {
		names[strings.ToLower(k.String())] = k
	}
	find := func(text string) lex.Keyword {
		var lx lex.Lexer
		lx.Init(text, lex.Mode{})
		lx.Next()
		return lx.Kw
	}
	skim := func(text string) lex.Keyword {
		var lx lex.Lexer
		lx.Init(text, lex.Mode{})
		trail := lex.Trail{Prev: lex.MarkStart, Uses: new(lex.Uses)}
		if lx.Skim(&trail) == lex.Word {
			return lx.Kw // a very short text
		}
		return trail.Kw
	}
	check := func(word string) {
		t.Helper()
		want := names[strings.ToLower(word)]
		for _, rest := range []string{"", " ", " and more of it"} {
			if k := find(word + rest); k != want {
				t.Errorf("Next took %q for %q", word+rest, k)
			}
			rest = strings.TrimSuffix(rest, "and more of it")
			if k := skim(word + rest); k != want {
				t.Errorf("Skim took %q for %q", word+rest, k)
			}
			if k := skim(word + rest + "        "); k != want {
				t.Errorf("Skim took %q for %q", word+rest+"        ", k)
			}
		}
	}
	for name := range names {
		check(name)
		check(strings.ToUpper(name))
		for i := range len(name) {
			for _, c := range "ab_z5" {
				check("x" + name[1:i+1] + string(c) + name[i+1:])
				if i > 0 {
					check(name[:i] + string(c) + name[i+1:])
					check(name[:i] + string(c) + name[i:])
				}
			}
		}
	}
}

// TestKeywordsByBeginning: names of any length are keywords by their beginning.
func TestKeywordsByBeginning(t *testing.T) {
	for n := 1; n < 80; n++ {
		for _, tc := range []struct {
			word string
			want lex.Keyword
		}{
			{"pg_stat_" + strings.Repeat("x", n), lex.KwPgStat},
			{"PG_STATIO_" + strings.Repeat("x", n), lex.KwPgStatio},
			{"pg_TEMP_" + strings.Repeat("7", n), lex.KwPgTempN},
			{"pg_temp_" + strings.Repeat("7", n) + "x", lex.NoKeyword},
			{"pg_stats" + strings.Repeat("x", n), lex.NoKeyword},
		} {
			var lx lex.Lexer
			lx.Init(tc.word+" and more", lex.Mode{})
			trail := lex.Trail{Prev: lex.MarkStart, Uses: &lex.Uses{lex.KwAnd: lex.Stops}}
			lx.Skim(&trail)
			if k := lex.LookupKeyword(tc.word); k != tc.want || trail.Kw != tc.want {
				t.Errorf("%s is %q, for Skim %q, want %q", tc.word, k, trail.Kw, tc.want)
			}
		}
	}
}
