package classify_test

import (
	"os"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/lex"
)

var dialects = []classify.Dialect{classify.Generic, classify.Postgres, classify.MySQL, classify.MariaDB, classify.AnyMySQL}

// seeds are all statements of the corpora.
func seeds(tb testing.TB) []string {
	tb.Helper()
	var all []string
	for _, r := range readCorpus(tb, "testdata/routing-public.tsv") {
		all = append(all, r.sql)
	}
	data, err := os.ReadFile("testdata/statements.txt")
	if err != nil {
		tb.Fatal(err)
	}
	for _, line := range strings.Split(string(data), "\n") {
		if name, sql, ok := strings.Cut(line, ": "); ok {
			if _, ok := classify.ParseDialect(name); ok {
				all = append(all, unescapeSQL.Replace(sql))
			}
		}
	}
	return all
}

func addSeeds(f *testing.F) {
	for _, sql := range seeds(f) {
		for d := range dialects {
			f.Add(uint8(d), sql)
		}
	}
}

// FuzzClassify: no text panics; a verdict keeps the promises that Verdict makes;
// and the same text gets the same verdict again.
func FuzzClassify(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, d uint8, sql string) {
		dialect := dialects[int(d)%len(dialects)]
		v := classify.Classify(dialect, sql)
		checkVerdict(t, dialect, sql, v)
		if again := classify.Classify(dialect, sql); again != v {
			t.Errorf("%v: %q: %s, then %s", dialect, sql, describe(v), describe(again))
		}
	})
}

func checkVerdict(t *testing.T, d classify.Dialect, sql string, v classify.Verdict) {
	t.Helper()
	switch v.Class {
	case classify.Empty:
		if v.Keyword != "" || v.Effect != 0 || v.Reason != "" {
			t.Errorf("%v: %q: empty, but %s", d, sql, describe(v))
		}
	case classify.Read:
		if v.Effect != 0 || v.Reason != "" || v.Vars != 0 {
			t.Errorf("%v: %q: a read, but %s", d, sql, describe(v))
		}
	case classify.Show:
		if v.Reason == "" && v.Effect != 0 {
			t.Errorf("%v: %q: without a reason, but %s", d, sql, describe(v))
		}
	default:
		if v.Reason == "" {
			t.Errorf("%v: %q: no reason: %s", d, sql, describe(v))
		}
	}
	if v.Class == classify.Unknown && v.Effect&classify.Stamps == 0 {
		t.Errorf("%v: %q: unknown, and no write: %s", d, sql, describe(v))
	}
	if v.Class != classify.Empty && v.Keyword == "" {
		t.Errorf("%v: %q: no keyword: %s", d, sql, describe(v))
	}
}

// FuzzConcatenation: a text and a write behind it never go to a replica together,
// whatever the text does to hide the write; unless it does hide it, from every
// server, behind an opening of a comment or a quote that it leaves open.
func FuzzConcatenation(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, d uint8, sql string) {
		dialect := dialects[int(d)%len(dialects)]
		if !classify.Classify(dialect, sql).Replica() {
			return
		}
		for _, write := range []string{"DELETE FROM t", "SELECT my_function()", "SET x = 1", "SELECT a FROM t FOR UPDATE", "FROBNICATE"} {
			both := sql + "\n; " + write
			if v := classify.Classify(dialect, both); v.Replica() {
				t.Errorf("%v: %q: %s", dialect, both, describe(v))
			}
		}
	})
}

// FuzzLayout: comments and blanks between tokens, and the case of keywords, change
// nothing.
func FuzzLayout(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, d uint8, sql string) {
		dialect := dialects[int(d)%len(dialects)]
		mode := lex.Mode{}
		switch dialect {
		case classify.Generic:
			return // it has more than one way to cut a text into tokens
		case classify.MySQL, classify.MariaDB, classify.AnyMySQL:
			mode = lex.Mode{MySQL: true, Escapes: true}
		}
		if strings.ContainsAny(sql, "\\$") || strings.Contains(sql, "/*") || strings.Contains(sql, "replicated:") {
			return // other modes may cut these elsewhere
		}
		want := classify.Classify(dialect, sql)
		for _, between := range []string{" ", "\n\t", "/* x */", " -- x\n"} {
			loose, upper, ok := spread(sql, mode, between)
			if !ok {
				return
			}
			for _, variant := range []string{loose, upper} {
				if got := classify.Classify(dialect, variant); got != want && !sameBut(got, want) {
					t.Errorf("%v:\n%q: %s\n%q: %s", dialect, sql, describe(want), variant, describe(got))
				}
			}
		}
	})
}

// sameBut: joining strings over a line break may make a date word of two.
func sameBut(a, b classify.Verdict) bool {
	a.Cacheable, b.Cacheable = false, false
	return a == b
}

// spread puts between before each token that no dot and no other operator
// character touches, and returns the text so, and the text with its unquoted words
// in the other case.
func spread(sql string, mode lex.Mode, between string) (loose, upper string, ok bool) {
	var lx lex.Lexer
	lx.Init(sql, mode)
	var a, b strings.Builder
	last := 0
	var before lex.Kind
	for {
		k := lx.Next()
		if lx.Notes&^(lex.Divergent|lex.DateWord) != 0 {
			return "", "", false
		}
		if k == lex.EOF {
			break
		}
		at := lx.Pos()
		start := lx.Start
		switch k {
		case lex.String, lex.Name, lex.Quoted, lex.UserVar:
			// Quotes, prefixes and @ belong to the token, and are not told apart.
			a.WriteString(sql[last:at])
			b.WriteString(sql[last:at])
			last, before = at, k
			continue
		}
		a.WriteString(sql[last:start])
		b.WriteString(sql[last:start])
		if !lx.Dotted && k != before && k != lex.Op && before != lex.Op && before != lex.SysVar && before != lex.UserVar &&
			before != lex.Number && k != lex.Number && start > 0 && k != lex.Assign && before != lex.Param {
			a.WriteString(between)
		}
		word := sql[start:at]
		a.WriteString(word)
		if k == lex.Word && !(at < len(sql) && (sql[at] == '\'' || sql[at] == '&')) {
			word = swapCase(word)
		}
		b.WriteString(word)
		last, before = at, k
	}
	a.WriteString(sql[last:])
	b.WriteString(sql[last:])
	return a.String(), b.String(), true
}

func swapCase(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		}
		return r
	}, s)
}

// TestNoAllocation: everyday statements are classified without allocating.
func TestNoAllocation(t *testing.T) {
	for _, s := range ormStatements {
		if n := testing.AllocsPerRun(10, func() { classify.Classify(s.dialect, s.sql) }); n != 0 {
			t.Errorf("%s: %v allocations", s.name, n)
		}
	}
	for _, sql := range seeds(t) {
		for _, d := range dialects {
			if n := testing.AllocsPerRun(1, func() { classify.Classify(d, sql) }); n != 0 {
				t.Errorf("%v: %q: %v allocations", d, sql, n)
			}
		}
	}
}
