package replicated

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/evidence"
)

func name(table string) classify.Name { return classify.Name{Schema: "public", Table: table} }

func names(tables ...string) (all []classify.Name) {
	for _, t := range tables {
		all = append(all, name(t))
	}
	return all
}

func writing(tables ...string) *touch { return &touch{writes: names(tables...)} }
func reading(tables ...string) *touch { return &touch{reads: names(tables...)} }

func TestLedger(t *testing.T) {
	sync := func(m moment) floor { return floor{Any: m} }
	for _, tt := range []struct {
		name   string
		raise  func(l *ledger)
		floors map[string]floor // by what is read: a table, "" nothing, "*" everything
	}{
		{"nothing written", func(*ledger) {}, map[string]floor{"": {}, "a": {}, "*": {}}},
		{"one table", func(l *ledger) { l.raise(sync(10), writing("a")) },
			map[string]floor{"a": sync(10), "b": {}, "": {}, "*": sync(10)}},
		{"two tables", func(l *ledger) { l.raise(sync(10), writing("a")); l.raise(sync(20), writing("b", "c")) },
			map[string]floor{"a": sync(10), "b": sync(20), "c": sync(20), "d": {}, "*": sync(20)}},
		{"a table twice", func(l *ledger) { l.raise(sync(20), writing("a")); l.raise(sync(10), writing("a")) },
			map[string]floor{"a": sync(20), "*": sync(20)}},
		{"everything", func(l *ledger) { l.raise(sync(10), writing("a")); l.raise(sync(20), nil) },
			map[string]floor{"a": sync(20), "b": sync(20), "": sync(20), "*": sync(20)}},
		{"a table after everything", func(l *ledger) { l.raise(sync(10), nil); l.raise(sync(20), writing("a")) },
			map[string]floor{"a": sync(20), "b": sync(10), "*": sync(20)}},
		{"a commit that is not durable", func(l *ledger) { l.raise(evidence.All(10), writing("a")); l.raise(sync(20), writing("a")) },
			map[string]floor{"a": {Any: 20, Async: 10}, "b": {}, "*": {Any: 20, Async: 10}}},
		{"the same table of another schema", func(l *ledger) {
			l.raise(sync(10), &touch{writes: []classify.Name{{Schema: "other", Table: "a"}}})
		}, map[string]floor{"a": {}, "*": sync(10)}},
		{"a read of the table it writes", func(l *ledger) { l.raise(sync(10), &touch{reads: names("b"), writes: names("a")}) },
			map[string]floor{"a": sync(10), "b": {}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var l ledger
			tt.raise(&l)
			for what, want := range tt.floors {
				of := reading(what)
				switch what {
				case "*":
					of = nil
				case "":
					of = reading()
				}
				if got := l.floor(of); got != want {
					t.Errorf("floor of %q is %v, want %v", what, got, want)
				}
			}
			if got, want := l.floor(reading("a", "b")), l.floor(reading("a")).Max(l.floor(reading("b"))); got != want {
				t.Errorf("floor of two tables is %v, want %v", got, want)
			}
		})
	}
}

// A ledger that is full counts what it has no room for as written to everything, and
// goes on to know what it knew.
func TestLedgerIsBounded(t *testing.T) {
	var l ledger
	for i := range maxTables {
		l.raise(floor{Any: moment(i + 1)}, writing(fmt.Sprint("t", i)))
	}
	const late = 2 * maxTables
	if got := l.floor(reading("t0")); got.Any != 1 {
		t.Errorf("floor of the first table is %v", got)
	}
	l.raise(floor{Any: late}, writing("one more"))
	if len(l.tables) > maxTables {
		t.Errorf("%d tables", len(l.tables))
	}
	for _, table := range []string{"one more", "t0", "another"} {
		if got := l.floor(reading(table)); got.Any != late {
			t.Errorf("floor of %s is %v, want %d", table, got, late)
		}
	}
}

// No read has a lower floor than the last write to anything that it touches; and what
// nobody has asked to keep apart is not kept apart.
func TestLedgersAgainstAList(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	type write struct {
		at moment
		t  *touch
	}
	var (
		l    ledgers
		list []write
	)
	tables := []string{"a", "b", "c", "d", "e"}
	some := func() (out []string) {
		for _, x := range tables {
			if rnd.IntN(3) == 0 {
				out = append(out, x)
			}
		}
		return out
	}
	for at := moment(1); at < 2000; at++ {
		w := write{at, writing(some()...)}
		if rnd.IntN(10) == 0 {
			w.t = nil
		}
		l.raise(w.at, false, w.t)
		list = append(list, w)
		read := reading(some()...)
		want := never
		for _, w := range list {
			if w.t == nil || slices.ContainsFunc(w.t.writes, func(n classify.Name) bool { return slices.Contains(read.reads, n) }) {
				want = w.at
			}
		}
		if got := l.floor(read); got.Any != want || got.Async != never {
			t.Fatalf("floor %v, want %d", got, want)
		}
		if got := l.floor(nil); got.Any != at {
			t.Fatalf("floor of everything %v, want %d", got, at)
		}
	}
}

func TestLedgersConcurrently(t *testing.T) {
	var (
		l   ledgers
		all sync.WaitGroup
	)
	for g := range 4 {
		all.Go(func() {
			mine := fmt.Sprint("t", g)
			for i := range 500 {
				at := now()
				l.raise(at, i%2 == 0, writing(mine))
				if l.floor(reading(mine)).Any < at || l.floor(nil).Any < at {
					t.Error("a write that has returned is not seen")
				}
			}
		})
	}
	all.Wait()
}

// What a transaction has written is the union of what its statements have, each table
// once however long it is.
func TestTouchesTogether(t *testing.T) {
	if got := writing("a").and(nil); got != nil {
		t.Errorf("%v", got)
	}
	if got := (*touch)(nil).and(writing("a")); got != nil {
		t.Errorf("%v", got)
	}
	a, b := writing("a"), &touch{reads: names("c"), writes: names("b", "a")}
	all := a
	for i := range 1000 {
		all = []*touch{a, b}[i%2].and(all)
	}
	want := &touch{reads: names("c"), writes: names("a", "b")}
	if !all.has(want) || !want.has(all) || len(all.reads) != 1 || len(all.writes) != 2 {
		t.Errorf("together they touch %v", all)
	}
	if again := b.and(all); again != all {
		t.Error("nothing new, and a new list")
	}
	if len(a.writes) != 1 || len(b.writes) != 2 || len(a.reads) != 0 {
		t.Error("the statements' own lists have changed")
	}
}

func TestTouchesAreRemembered(t *testing.T) {
	rows := &classify.SchemaRows{Relations: []classify.SchemaName{{Schema: "public", Name: "a"}, {Schema: "public", Name: "b"}}}
	schema := func() *classify.Schema { return classify.NewSchema(classify.Postgres, rows, nil) }
	var ts touches
	if ts.of(nil, "SELECT 1 FROM a") != nil {
		t.Error("without a catalog a text touches everything")
	}
	s := schema()
	first := ts.of(s, "SELECT 1 FROM a")
	if first == nil || !slices.Equal(first.reads, names("a")) || len(first.writes) != 0 {
		t.Fatalf("%v", first)
	}
	if ts.of(s, "SELECT 1 FROM a") != first {
		t.Error("not remembered")
	}
	if ts.of(schema(), "SELECT 1 FROM a") == first {
		t.Error("remembered by another catalog")
	}
	if w := ts.of(s, "INSERT INTO b SELECT * FROM a"); w == nil || !slices.Equal(w.writes, names("b")) {
		t.Errorf("%v", w)
	}
	for _, all := range []string{"CALL p()", "CREATE TABLE x (i int)", "SELECT f()", "INSERT INTO a VALUES (1); DROP TABLE b"} {
		if w := ts.of(s, all); w != nil {
			t.Errorf("%s touches %v only", all, w)
		}
	}
	for i := range 2 * maxTexts {
		ts.of(s, fmt.Sprintf("SELECT %d FROM a", i))
	}
	if len(ts.texts) > maxTexts {
		t.Errorf("%d texts are remembered", len(ts.texts))
	}
}
