package classify_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// catalogPostgres is a PostgreSQL database with functions of its own.
var catalogPostgres = classify.Catalog{
	Functions: []classify.CatalogFunction{
		{Schema: "app", Name: "price", Harmless: true},
		{Schema: "app", Name: "book"},
		{Schema: "app", Name: "mixed", Harmless: true},
		{Schema: "audit", Name: "mixed"},
		{Schema: "app", Name: "Total", Harmless: true},
		{Schema: "app", Name: "lower"},
		{Schema: "pg_catalog", Name: "lower", Harmless: true, Trusted: true},
		{Schema: "app", Name: "upper", Harmless: true},
		{Schema: "app", Name: "nextval", Harmless: true},
		{Schema: "ext", Name: "gen_random_bytes", Trusted: true},
		{Schema: "ext", Name: "ext_pure", Harmless: true, Trusted: true},
		{Schema: "ext", Name: "dblink_exec", Harmless: true, Trusted: true},
		{Schema: "app", Name: "odd name", Harmless: true},
		{Schema: "app", Name: "b.c", Harmless: true},
		{Schema: "app", Name: "prix_é", Harmless: true},
		{Schema: "app", Name: "computed", Field: true},
	},
	Operators: []classify.CatalogOperator{
		{Symbol: "<%%>", Function: classify.CatalogFunction{Schema: "app", Name: "book"}},
		{Symbol: "~~*", Function: classify.CatalogFunction{Schema: "app", Name: "like_it"}},
		{Symbol: "@+@", Function: classify.CatalogFunction{Schema: "app", Name: "declared"}},
	},
	Relations: []classify.CatalogRelation{
		{Schema: "app", Name: "busy_view", Runs: classify.CatalogFunction{Schema: "app", Name: "book"}},
		{Schema: "app", Name: "dice", Runs: classify.CatalogFunction{Schema: "pg_catalog", Name: "random", Trusted: true}},
		{Schema: "app", Name: "ticket", Runs: classify.CatalogFunction{Schema: "pg_catalog", Name: "nextval", Trusted: true}},
		{Schema: "app", Name: "my-view", Runs: classify.CatalogFunction{Schema: "app", Name: "book"}},
		{Schema: "app", Name: "ventes_été", Runs: classify.CatalogFunction{Schema: "app", Name: "book"}},
		{Schema: "app", Name: "elsewhere", Local: true},
	},
}

var catalogMySQL = classify.Catalog{
	Functions: []classify.CatalogFunction{
		{Schema: "shop", Name: "price", Harmless: true},
		{Schema: "shop", Name: "book"},
		{Schema: "shop", Name: "mixed", Harmless: true},
		{Schema: "stock", Name: "mixed"},
		{Schema: "shop", Name: "lower"},
		{Schema: "shop", Name: "get_lock", Harmless: true},
	},
	Relations: []classify.CatalogRelation{
		{Schema: "shop", Name: "plain_view", Text: "select `shop`.`t`.`id` AS `id`,lower(`shop`.`t`.`n`) AS `n` from `shop`.`t`"},
		{Schema: "shop", Name: "priced", Text: "select `shop`.`price`(`shop`.`t`.`id`) AS `p` from `shop`.`t`"},
		{Schema: "shop", Name: "top_view", Text: "select `middle_view`.`x` AS `x` from `shop`.`middle_view`"},
		{Schema: "shop", Name: "middle_view", Text: "select `busy_view`.`x` AS `x` from `shop`.`busy_view`"},
		{Schema: "shop", Name: "busy_view", Text: "select `shop`.`book`(1) AS `x`"},
		{Schema: "shop", Name: "hidden_view"},
		{Schema: "shop", Name: "cache", Local: true},
		{Schema: "shop", Name: "cache_view", Text: "select `shop`.`cache`.`id` AS `id` from `shop`.`cache`"},
	},
}

func TestClassifyWithDefinitions(t *testing.T) {
	pg := classify.NewDefinitions(classify.Postgres, &catalogPostgres, []string{"app.declared"}, nil)
	my := classify.NewDefinitions(classify.MariaDB, &catalogMySQL, nil, nil)
	pgSaid := classify.NewDefinitions(classify.Postgres, &catalogPostgres,
		[]string{"book", `"App"."Mixed"`, "unlisted", "pg_advisory_lock"}, []string{"app.price", "abs"})
	mySaid := classify.NewDefinitions(classify.MySQL, nil, []string{"Shop.F"}, []string{"sleep"})
	const read, unknown, show, write, lock = classify.Read, classify.Unknown, classify.Show, classify.Write, classify.Lock
	tests := []struct {
		d     classify.Dialect
		known *classify.Definitions
		text  string
		want  classify.Class
	}{
		{classify.Postgres, nil, "SELECT price(1)", unknown},
		{classify.Postgres, pg, "SELECT price(1)", read},
		{classify.Postgres, pg, "SELECT PRICE (1), app.price(2), \"app\".\"price\"(3), App . price(4) IS NULL", unknown}, // blanks around the dot
		{classify.Postgres, pg, "SELECT app.price(2), \"app\".\"price\"(3), db.app.price(4), \"app\".price(5), app.\"price\"(6)", read},
		{classify.Postgres, pg, "SELECT other.price(1)", unknown},
		{classify.Postgres, pg, "SELECT \"a\"\"app\".price(1)", unknown},
		{classify.Postgres, pg, "SELECT éapp.price(1)", unknown},
		{classify.Postgres, pg, "SELECT book(1)", unknown},
		{classify.Postgres, pg, "SELECT 1 FROM t WHERE EXISTS (SELECT book(1))", unknown},
		{classify.Postgres, pg, "SELECT mixed(1)", unknown},
		{classify.Postgres, pg, "SELECT app.mixed(1)", read},
		{classify.Postgres, pg, "SELECT audit.mixed(1)", unknown},
		{classify.Postgres, pg, "SELECT \"Total\"(1), total(1)", read},
		{classify.Postgres, pg, "SELECT lower('A')", unknown},
		{classify.Postgres, pg, "SELECT pg_catalog.lower('A')", read},
		{classify.Postgres, pg, "SELECT upper('a'), app.upper('a')", read},
		{classify.Postgres, pg, "SELECT nextval('s')", write},
		{classify.Postgres, pg, "SELECT gen_random_bytes(4), ext_pure(), ext.ext_pure()", read},
		{classify.Postgres, pg, "SELECT dblink_exec('x')", unknown},
		{classify.Postgres, pg, "SELECT \"odd name\"(1)", unknown},
		{classify.Postgres, pg, "SELECT \"b.c\"(1)", unknown},
		{classify.Postgres, pg, "SELECT prix_é(1)", unknown},
		{classify.Postgres, pg, "SELECT 1 FROM price", read},
		{classify.Postgres, pg, "SELECT u.computed FROM users u", unknown},
		{classify.Postgres, pg, "SELECT price(1); INSERT INTO t VALUES (1)", classify.Multi},
		{classify.Postgres, pg, "SELECT price(1) FOR UPDATE", lock},
		{classify.Postgres, pg, "SELECT 1 <%%> 2", unknown},
		{classify.Postgres, pg, "SELECT a ILIKE 'b' FROM t", unknown},
		{classify.Postgres, pg, "SELECT 1 @+@ 2", read},
		{classify.Postgres, pg, "SELECT * FROM busy_view", unknown},
		{classify.Postgres, pg, "SELECT * FROM app.\"busy_view\" v", unknown},
		{classify.Postgres, pg, "SELECT * FROM BUSY_VIEW", unknown},
		{classify.Postgres, pg, "SELECT * FROM busy_view2, my_busy_view, dice", read},
		{classify.Postgres, pg, "SELECT * FROM ticket", unknown},
		{classify.Postgres, pg, "SELECT * FROM \"my-view\"", unknown},
		{classify.Postgres, pg, "SELECT * FROM ventes_été", unknown},
		{classify.Postgres, pg, "SELECT * FROM elsewhere", show},
		{classify.Postgres, pg, "SELECT * FROM busy_view FOR UPDATE", lock},

		{classify.Postgres, pgSaid, "SELECT book(1), app.book(2), any_schema.unlisted(3), unlisted(4)", read},
		{classify.Postgres, pgSaid, "SELECT app.mixed(1)", read},
		{classify.Postgres, pgSaid, "SELECT mixed(1)", unknown},
		{classify.Postgres, pgSaid, "SELECT price(1)", write},
		{classify.Postgres, pgSaid, "SELECT app.price(1)", write},
		{classify.Postgres, pgSaid, "SELECT abs(1)", write},
		{classify.Postgres, pgSaid, "SELECT pg_advisory_lock(1)", lock},
		{classify.Postgres, pgSaid, "SELECT * FROM busy_view", read},

		{classify.MariaDB, nil, "SELECT price(1)", unknown},
		{classify.MariaDB, my, "SELECT price(1), Shop.PRICE(2), `shop`.`price`(3), `price` (4)", read},
		{classify.MariaDB, my, "SELECT stock.price(1)", unknown},
		{classify.MariaDB, my, "SELECT book(1)", unknown},
		{classify.MariaDB, my, "SELECT mixed(1)", unknown},
		{classify.MariaDB, my, "SELECT shop.mixed(1)", read},
		{classify.MariaDB, my, "SELECT lower('A')", read},
		{classify.MariaDB, my, "SELECT `lower`('A')", unknown},
		{classify.MariaDB, my, "SELECT get_lock('a', 1)", lock},
		{classify.MariaDB, my, "SELECT shop.get_lock('a', 1)", read},
		{classify.MariaDB, my, "SELECT * FROM plain_view, hidden_view, priced", read},
		{classify.MariaDB, my, "SELECT * FROM busy_view", unknown},
		{classify.MariaDB, my, "SELECT * FROM `shop`.`Middle_View`", unknown},
		{classify.MariaDB, my, "SELECT * FROM top_view", unknown},
		{classify.MariaDB, my, "SELECT * FROM cache", show},
		{classify.MariaDB, my, "SELECT * FROM cache_view", show},
		{classify.MariaDB, my, "SELECT /*!50000 book(1) */", unknown},
		{classify.MySQL, mySaid, "SELECT shop.f(1)", read},
		{classify.MySQL, mySaid, "SELECT f(1)", unknown},
		{classify.MySQL, mySaid, "SELECT sleep(1)", write},
	}
	for _, tt := range tests {
		got := classify.ClassifyWith(tt.d, tt.text, tt.known)
		if got.Class != tt.want || got.Replica() != (tt.want == read) {
			t.Errorf("%s: %s: %v (%s), want %v", tt.d, tt.text, got.Class, got.Reason, tt.want)
		}
		if (tt.want == unknown || tt.want == write) != (got.Effect&classify.Stamps != 0) && tt.want != classify.Multi && !strings.Contains(tt.text, "busy_view FOR") {
			t.Errorf("%s: %s: effects %v", tt.d, tt.text, got.Effect)
		}
	}
}

// A locking read through a view that writes counts as a write.
func TestDefinitionsStamp(t *testing.T) {
	pg := classify.NewDefinitions(classify.Postgres, &catalogPostgres, nil, nil)
	if v := classify.ClassifyWith(classify.Postgres, "SELECT * FROM busy_view FOR UPDATE", pg); v.Effect&classify.Stamps == 0 {
		t.Error("a locking read of a view that writes does not stamp")
	}
}

func TestDefinitionsEqual(t *testing.T) {
	build := func(change func(*classify.Catalog)) *classify.Definitions {
		c := catalogPostgres
		c.Functions = append([]classify.CatalogFunction(nil), c.Functions...)
		c.Relations = append([]classify.CatalogRelation(nil), c.Relations...)
		change(&c)
		return classify.NewDefinitions(classify.Postgres, &c, nil, nil)
	}
	same := build(func(*classify.Catalog) {})
	if !same.Equal(build(func(c *classify.Catalog) { c.Functions[0], c.Functions[1] = c.Functions[1], c.Functions[0] })) {
		t.Error("the order of functions makes a difference")
	}
	if same.Equal(build(func(c *classify.Catalog) { c.Functions[0].Harmless = false })) {
		t.Error("a function that is volatile now makes no difference")
	}
	if same.Equal(build(func(c *classify.Catalog) { c.Relations[0].Local, c.Relations[0].Runs.Name = true, "" })) {
		t.Error("a view that is a foreign table now makes no difference")
	}
	if same.Equal(nil) || (*classify.Definitions)(nil).Equal(same) {
		t.Error("something equals nothing")
	}
}

func TestPlainName(t *testing.T) {
	for name, want := range map[string]bool{
		"f": true, "app.f": true, `"App"."F"`: true, "`app`.f": true, "f$1": true,
		"": false, ".": false, "app.": false, "a.b.c": false, "a b": false, `"a b"`: false, "f()": false, "é": false,
		strings.Repeat("x", 65): false,
	} {
		if got := classify.PlainName(name); got != want {
			t.Errorf("PlainName(%q) = %v", name, got)
		}
	}
}

func TestRedefines(t *testing.T) {
	tests := []struct {
		d        classify.Dialect
		text     string
		want     bool
		reshapes bool
	}{
		{classify.Postgres, "CREATE OR REPLACE FUNCTION f() RETURNS int AS 'SELECT 1' LANGUAGE sql", true, true},
		{classify.Postgres, "alter function f() volatile", true, true},
		{classify.Postgres, "DROP VIEW v", true, true},
		{classify.Postgres, "CREATE EXTENSION hstore", true, true},
		{classify.Postgres, "ALTER TABLE t RENAME TO v", true, true},
		{classify.Postgres, "DO $$ BEGIN CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'; END $$", true, true},
		{classify.Postgres, "INSERT INTO t VALUES (1); ALTER FUNCTION f() VOLATILE", true, true},
		{classify.MariaDB, "CREATE TABLE t (id INT) ENGINE=MEMORY", true, true},
		{classify.MariaDB, "EXECUTE IMMEDIATE 'ALTER FUNCTION f MODIFIES SQL DATA'", true, true},
		{classify.Postgres, "CREATE TEMP TABLE t (id int)", false, false},
		{classify.Postgres, "TRUNCATE t", false, false},
		{classify.MariaDB, "TRUNCATE t", false, false},
		{classify.Postgres, "CREATE INDEX i ON t (a)", false, true},
		{classify.Postgres, "INSERT INTO t VALUES ('CREATE FUNCTION')", false, false},
		{classify.Postgres, "SELECT my_function('create view')", false, false},
		{classify.Postgres, "CREATE TRIGGER t AFTER UPDATE ON a FOR EACH ROW EXECUTE FUNCTION f()", true, true},
		{classify.MariaDB, "CREATE TRIGGER t AFTER UPDATE ON a FOR EACH ROW UPDATE b SET n = 1", false, true},
		{classify.MariaDB, "ALTER TABLE b ADD FOREIGN KEY (a) REFERENCES a (id) ON DELETE CASCADE", true, true},
		{classify.Postgres, "INSERT INTO t VALUES (1); DROP TABLE u", false, true},
		{classify.MariaDB, "CALL p()", false, false},
	}
	for _, tt := range tests {
		v := classify.Classify(tt.d, tt.text)
		if got := classify.Redefines(v, tt.text); got != tt.want {
			t.Errorf("Redefines(%s) = %v", tt.text, got)
		}
		if got := classify.Reshapes(v, tt.text); got != tt.reshapes {
			t.Errorf("Reshapes(%s) = %v", tt.text, got)
		}
	}
}

// What nothing is known of costs nothing: a text without unknown names takes as long
// with a large catalog as without one, and none allocates.
func TestClassifyWithDoesNotAllocate(t *testing.T) {
	known := classify.NewDefinitions(classify.Postgres, manyFunctions(1000, true), nil, nil)
	for _, text := range []string{"SELECT a FROM t WHERE id = $1", "SELECT App.Func_10(1), busy_view_1.x FROM busy_view_1"} {
		if n := testing.AllocsPerRun(100, func() { classify.ClassifyWith(classify.Postgres, text, known) }); n != 0 {
			t.Errorf("%s: %v allocations", text, n)
		}
	}
}

func manyFunctions(n int, views bool) *classify.Catalog {
	c := new(classify.Catalog)
	for i := range n {
		c.Functions = append(c.Functions, classify.CatalogFunction{Schema: "app", Name: fmt.Sprintf("func_%d", i), Harmless: i%2 == 0})
		if views && i%10 == 0 {
			c.Relations = append(c.Relations, classify.CatalogRelation{
				Schema: "app", Name: fmt.Sprintf("busy_view_%d", i), Runs: classify.CatalogFunction{Schema: "app", Name: "func_1"},
			})
		}
	}
	return c
}

func BenchmarkClassifyWith(b *testing.B) {
	for _, kind := range []struct {
		name  string
		known *classify.Definitions
	}{
		{"nothing", nil},
		{"functions", classify.NewDefinitions(classify.Postgres, manyFunctions(10_000, false), nil, nil)},
		{"views", classify.NewDefinitions(classify.Postgres, manyFunctions(10_000, true), nil, nil)},
	} {
		for _, s := range append(ormStatements[:4:4], struct {
			name    string
			dialect classify.Dialect
			sql     string
		}{"user-function", classify.Postgres, "SELECT app.func_10(o.id), func_20(o.total) FROM orders o WHERE o.id = $1"}) {
			b.Run(kind.name+"/"+s.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					classify.ClassifyWith(s.dialect, s.sql, kind.known)
				}
			})
		}
	}
}

func BenchmarkNewDefinitions(b *testing.B) {
	c := manyFunctions(10_000, true)
	b.ReportAllocs()
	for b.Loop() {
		classify.NewDefinitions(classify.Postgres, c, nil, nil)
	}
}
