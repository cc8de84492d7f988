package classify_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/lex"
)

// A proven read writes nothing, and what has a set of relations names each of them.
func TestTouchesOfTheCorpora(t *testing.T) {
	sets := 0
	for _, sql := range seeds(t) {
		for _, d := range dialects {
			checkTouches(t, d, sql)
			if r := classify.Touches(d, sql, nil); !r.All {
				sets++
			}
		}
	}
	if sets < 1000 {
		t.Errorf("of the corpora only %d have a set", sets)
	}
}

// The library's tables, which the public corpus speaks of, are in the set of each
// text that has their names outside literals.
func TestTouchesFindsTheLibrary(t *testing.T) {
	library := []string{"books", "loans", "members"}
	found := 0
	for _, row := range readCorpora(t) {
		r := classify.Touches(row.dialect, row.sql, nil)
		if r.All {
			continue
		}
		words := wordsOf(row.dialect, row.sql)
		for _, table := range library {
			if !slices.Contains(words, table) {
				continue
			}
			found++
			if n := (classify.Name{Table: table}); !slices.ContainsFunc(slices.Concat(r.Reads, r.Writes), n.Overlaps) {
				t.Errorf("%s %v: %s\nno %s in %s", row.id, row.dialect, row.sql, table, render(r))
			}
		}
	}
	if found < 60 {
		t.Errorf("only %d names found", found)
	}
}

func wordsOf(d classify.Dialect, sql string) (words []string) {
	var lx lex.Lexer
	lx.Init(sql, d.Mode())
	for k := lx.Next(); k != lex.EOF; k = lx.Next() {
		if k == lex.Word || k == lex.Name {
			words = append(words, strings.ToLower(lx.Text()))
		}
	}
	return words
}

// checkTouches holds what Relations promises.
func checkTouches(t *testing.T, d classify.Dialect, sql string) {
	t.Helper()
	r := classify.Touches(d, sql, nil)
	if r.All {
		if r.Reads != nil || r.Writes != nil {
			t.Errorf("%v: %q: everything, and %s", d, sql, render(classify.Relations{Reads: r.Reads, Writes: r.Writes}))
		}
		return
	}
	v := classify.Classify(d, sql)
	if len(r.Writes) > 0 && (v.Class == classify.Read || v.Effect&classify.Stamps == 0 && v.Class != classify.Show && v.Class != classify.Empty) {
		t.Errorf("%v: %q: writes %v, and is %s", d, sql, r.Writes, describe(v))
	}
	if v.Class == classify.Write && len(r.Writes) == 0 && v.Keyword != "COPY" && !strings.Contains(strings.ToLower(sql), "file") {
		t.Errorf("%v: %q: a write that writes nothing: %s", d, sql, render(r))
	}
	for _, list := range [][]classify.Name{r.Reads, r.Writes} {
		seen := make(map[classify.Name]bool)
		for _, n := range list {
			if n.Table == "" || seen[n] {
				t.Errorf("%v: %q: %q is no name, or twice there", d, sql, n)
			}
			seen[n] = true
		}
	}
}

// FuzzTouches: no text panics; the promises hold; comments, blanks and the case of
// words change nothing; and a Schema leaves out nothing that the text names.
func FuzzTouches(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, d uint8, sql string) {
		dialect := dialects[int(d)%len(dialects)]
		checkTouches(t, dialect, sql)
		r := classify.Touches(dialect, sql, nil)
		var rows classify.SchemaRows
		for _, n := range slices.Concat(r.Reads, r.Writes) {
			schema := n.Schema
			if schema == "" {
				schema = "some"
			}
			rows.Relations = append(rows.Relations, classify.SchemaName{Schema: schema, Name: n.Table})
		}
		closed := classify.NewSchema(dialect, &rows, nil).Close(r)
		for _, n := range r.Writes {
			if !closed.All && !slices.ContainsFunc(closed.Writes, n.Overlaps) {
				t.Errorf("%v: %q: %v is not among %s", dialect, sql, n, render(closed))
			}
		}
		if dialect == classify.Generic || strings.ContainsAny(sql, "\\$") || strings.Contains(sql, "/*") || strings.Contains(sql, "replicated:") {
			return // cut in more than one way
		}
		want := render(r)
		for _, between := range []string{" ", "\n\t", "/* x */", " -- x\n"} {
			loose, upper, ok := spread(sql, dialect.Mode(), between)
			if !ok {
				return
			}
			for _, variant := range []string{loose, upper} {
				if got := touched(dialect, variant, nil); got != want {
					t.Errorf("%v:\n%q: %s\n%q: %s", dialect, sql, want, variant, got)
				}
			}
		}
	})
}

// BenchmarkTouches shows that time grows as length does, also where a text nests or
// repeats what makes the reader look ahead.
func BenchmarkTouches(b *testing.B) {
	for _, shape := range []struct{ name, piece, end string }{
		{"list", "t, ", ""}, {"names", "x1, x2, x3, x4, x5, x6, x7, x8, x9, ", ""}, {"nested", "(SELECT a FROM t, ", ")"}, {"joins", "t JOIN u ON a = b, ", ""},
		{"calls", "lower(", ")"}, {"comments", "/* x */ /* y */ t, ", ""}, {"with", "(WITH x AS (SELECT 1) SELECT a FROM x), ", ""},
	} {
		for _, size := range []int{1 << 10, 1 << 14, 1 << 18} {
			b.Run(fmt.Sprintf("%s/%d", shape.name, size), func(b *testing.B) {
				n := size / len(shape.piece)
				sql := "SELECT a FROM " + strings.Repeat(shape.piece, n) + "t" + strings.Repeat(shape.end, n)
				if classify.Touches(pg, sql, nil).All {
					b.Fatal("the text does not say what it touches")
				}
				b.SetBytes(int64(len(sql)))
				b.ReportAllocs()
				for b.Loop() {
					classify.Touches(pg, sql, nil)
				}
			})
		}
	}
}
