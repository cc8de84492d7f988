package classify_test

import (
	"testing"

	"github.com/sqlreplicated/replicated/internal/classify"
)

func in(schema string, tables ...string) (all []classify.SchemaName) {
	for _, t := range tables {
		all = append(all, classify.SchemaName{Schema: schema, Name: t})
	}
	return all
}

func link(from, to string, read, write bool) classify.SchemaLink {
	return classify.SchemaLink{From: in("s", from)[0], To: in("s", to)[0], Read: read, Write: write}
}

func testSchema(t *testing.T, d classify.Dialect, rows *classify.SchemaRows, tests map[string]string) {
	t.Helper()
	s := classify.NewSchema(d, rows, nil)
	for sql, want := range tests {
		if got := render(s.Touches(sql)); got != want {
			t.Errorf("%s\n got %s\nwant %s", sql, got, want)
		}
	}
}

// What is reached by links of the right kind, over any number of them, is touched.
func TestSchemaFollowsLinks(t *testing.T) {
	rows := &classify.SchemaRows{
		Relations: append(in("s", "a", "b", "c", "d", "far", "ring1", "ring2"), in("other", "a")...),
		Links: []classify.SchemaLink{
			link("a", "b", true, false), link("b", "c", true, false),
			link("b", "d", false, true), link("d", "c", false, true),
			link("ring1", "ring2", true, true), link("ring2", "ring1", true, true),
			{From: in("s", "far")[0], To: classify.SchemaName{Schema: "pg_catalog", Name: "pg_class"}, Read: true},
		},
	}
	testSchema(t, pg, rows, map[string]string{
		"SELECT 1":                             "",
		"BEGIN":                                "",
		"SELECT x FROM s.a":                    "s.a s.b s.c",
		"SELECT x FROM a":                      "other.a s.a s.b s.c",
		"SELECT x FROM c":                      "s.c",
		"DELETE FROM b":                        "> s.b s.c s.d",
		"DELETE FROM s.a":                      "s.b s.c > s.a",
		"DELETE FROM d":                        "> s.c s.d",
		"INSERT INTO c SELECT x FROM ring1, c": "s.c s.ring1 s.ring2 > s.c",
		"SELECT x FROM ring2":                  "s.ring1 s.ring2",
		"SELECT x FROM far":                    "…",
		"DELETE FROM far":                      "…",
		"SELECT x FROM unknown":                "…",
		"SELECT x FROM t.a":                    "…",
		"DELETE FROM unknown":                  "…",
		"SELECT f() FROM a":                    "…",
	})
}

func TestSchemaKnowsWhatRunsCode(t *testing.T) {
	rows := &classify.SchemaRows{
		Relations: in("s", "plain", "read", "written", "view", "overview"),
		ReadsAll:  in("s", "read"),
		WritesAll: in("s", "written"),
		Runs: []classify.SchemaRun{
			{Relation: in("s", "plain")[0], Function: "lower", Trusted: true},
			{Relation: in("s", "plain")[0], Function: "nextval", Trusted: true, Write: true},
			{Relation: in("s", "own")[0], Function: "lower"},
			{Relation: in("s", "onwrite")[0], Function: "my_function", Write: true},
			{Relation: in("s", "looks")[0], Function: "pg_relation_size", Trusted: true},
			{Relation: in("s", "advances")[0], Function: "nextval", Trusted: true},
		},
		Links: []classify.SchemaLink{link("view", "read", true, true), link("overview", "written", true, true)},
	}
	tests := map[string]string{
		"SELECT x FROM plain": "s.plain", "DELETE FROM plain": "> s.plain",
		"SELECT x FROM read": "…", "DELETE FROM read": "…",
		"SELECT x FROM view": "…", "INSERT INTO view VALUES (1)": "…",
		"SELECT x FROM written": "s.written", "DELETE FROM written": "…",
		"SELECT x FROM overview": "s.overview s.written", "DELETE FROM overview": "…",
		"SELECT x FROM own": "…", "DELETE FROM own": "…",
		"SELECT x FROM onwrite": "s.onwrite", "DELETE FROM onwrite": "…",
		"SELECT x FROM looks": "…", "SELECT x FROM advances": "…",
		"SELECT x FROM plain WHERE a === b": "s.plain",
	}
	testSchema(t, pg, rows, tests)
	rows.Symbols = []string{"==="}
	tests["SELECT x FROM plain WHERE a === b"] = "…"
	tests["SELECT 1 === 2"] = "…"
	testSchema(t, pg, rows, tests)
	for _, change := range []func(){
		func() { rows.Symbols = []string{"~~"} }, // LIKE
		func() { rows.Symbols = []string{"="} },  // IN
		func() { rows.Symbols, rows.Opaque = nil, true },
	} {
		change()
		testSchema(t, pg, rows, map[string]string{"SELECT x FROM plain": "…", "DELETE FROM plain": "…"})
	}
}

func TestSchemaReadsViews(t *testing.T) {
	view := func(name, text string) classify.SchemaView {
		return classify.SchemaView{SchemaName: in("d", name)[0], Text: text}
	}
	rows := &classify.SchemaRows{
		Relations: in("d", "T", "u"),
		WritesAll: in("d", "u"),
		Views: []classify.SchemaView{
			view("v1", "select `d`.`T`.`x` AS `x` from `d`.`t`"),
			view("hidden", ""),
			view("calls", "select `d`.`f`(1) AS `x`"),
			view("lost", "select 1 from `d`.`gone`"),
			view("constant", "select 1 AS `x`"),
			view("both", "select 1 from (`d`.`t` join `d`.`u`)"),
			view("informed", "select 1 from `information_schema`.`tables`"),
		},
	}
	testSchema(t, my, rows, map[string]string{
		"SELECT x FROM V1":       "d.t d.v1",
		"DELETE FROM v1":         "> d.t d.v1",
		"SELECT x FROM hidden":   "…",
		"SELECT x FROM calls":    "…",
		"SELECT x FROM lost":     "…",
		"SELECT x FROM informed": "…",
		"SELECT x FROM constant": "d.constant",
		"SELECT x FROM both":     "d.both d.t d.u",
		"DELETE FROM both":       "…",
	})
}

// Of views over views the order in the catalog does not matter.
func TestSchemaReadsViewsOverViews(t *testing.T) {
	a := classify.SchemaView{SchemaName: in("d", "a")[0], Text: "select 1 from `d`.`b`"}
	b := classify.SchemaView{SchemaName: in("d", "b")[0], Text: "select 1 from `d`.`t`"}
	for _, views := range [][]classify.SchemaView{{a, b}, {b, a}} {
		rows := &classify.SchemaRows{Relations: in("d", "a", "b", "t"), Views: views}
		testSchema(t, maria, rows, map[string]string{"SELECT x FROM a": "d.a d.b d.t"})
	}
}
