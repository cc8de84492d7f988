package classify_test

import (
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// touched renders what Touches says: what is read, behind > what is written, and …
// for everything.
func touched(d classify.Dialect, sql string, n *classify.Definitions) string {
	return render(classify.Touches(d, sql, n))
}

func render(r classify.Relations) string {
	if r.All {
		return "…"
	}
	var parts []string
	for _, n := range r.Reads {
		parts = append(parts, n.String())
	}
	if len(r.Writes) > 0 {
		parts = append(parts, ">")
	}
	for _, n := range r.Writes {
		parts = append(parts, n.String())
	}
	return strings.Join(parts, " ")
}

type touchCase struct {
	d    classify.Dialect
	sql  string
	want string
}

func testTouches(t *testing.T, cases []touchCase) {
	t.Helper()
	for _, tt := range cases {
		if got := touched(tt.d, tt.sql, nil); got != tt.want {
			t.Errorf("%v: %s\n got %s\nwant %s", tt.d, tt.sql, got, tt.want)
		}
	}
}

func TestTouchesNames(t *testing.T) {
	testTouches(t, []touchCase{
		{pg, "", ""},
		{my, " ; -- nothing", ""},
		{pg, "SELECT 1", ""},
		{pg, "SELECT a FROM T", "t"},
		{my, "SELECT a FROM T", "t"},
		{pg, `SELECT a FROM "T""x"`, `T"x`},
		{my, "SELECT a FROM `T``x`", "t`x"},
		{my, `SELECT a FROM "T"`, "t"},
		{pg, `SELECT a FROM "a.b"`, "a.b"},
		{pg, "SELECT a FROM t x, S.u AS y, c.s.v", "t s.u s.v"},
		{my, "SELECT a FROM D . T", "d.t"},
		{my, "SELECT a FROM a.b.c", "…"},
		{my, "SELECT a FROM .t", "…"},
		{my, "SELECT a FROM db.1t", "…"},
		{my, "SELECT a FROM 1t", "…"},
		{pg, "SELECT a FROM t, t, T", "t"},
		{pg, "SELECT a FROM " + strings.Repeat("a", 70), strings.Repeat("a", 63)},
		{pg, "SELECT a FROM values", "values"},
		{pg, "SELECT a FROM t values, u", "t u"},
		{pg, "SELECT a FROM rows, data, role", "rows data role"},
		{pg, "SELECT a FROM $1", "…"},
		{pg, "SELECT a FROM select", "…"},
		// The server's own.
		{pg, "SELECT relname FROM pg_class", "…"},
		{pg, "SELECT 1 FROM information_schema.tables", "…"},
		{my, "SELECT 1 FROM INFORMATION_SCHEMA.TABLES", "…"},
		{my, "SELECT 1 FROM mysql.user", "…"},
		{my, "SELECT @@gtid_executed", "…"},
	})
}

func TestTouchesOfQueries(t *testing.T) {
	testTouches(t, []touchCase{
		{pg, "SELECT a FROM t JOIN u ON f = g LEFT JOIN (v CROSS JOIN w) USING (id), x", "t u v w x"},
		{pg, "SELECT a FROM ((t JOIN u USING (id))), ONLY v, ONLY (w), x *, y", "t u v w x y"},
		{pg, "SELECT a FROM t NATURAL JOIN u, v WHERE a IN (b, c) GROUP BY d, e HAVING f ORDER BY g, h LIMIT 1", "t u v"},
		{pg, "SELECT a FROM t TABLESAMPLE system (1) REPEATABLE (2), u", "t u"},
		{pg, "SELECT a FROM t AS x (b, c), u y (d, e), v", "t u v"},
		{my, "SELECT a FROM t STRAIGHT_JOIN u ON a = b, v", "t u v"},
		{my, "SELECT STRAIGHT_JOIN a, b FROM t", "t"},
		{my, "SELECT a FROM { OJ v LEFT OUTER JOIN w ON a = b }", "…"},
		{my, "SELECT a FROM t PARTITION (p0, p1) x USE INDEX (i, j), u FORCE INDEX FOR ORDER BY (k, l), v", "t u v"},
		{my, "SELECT a FROM t FORCE INDEX FOR GROUP BY (k), v IGNORE INDEX (m), w", "t v w"},
		{my, "SELECT 1 FROM DUAL WHERE EXISTS (SELECT 1 FROM t)", "t"},
		{pg, "SELECT 1 FROM dual", "dual"},
		{maria, "SELECT a FROM t FOR SYSTEM_TIME AS OF TIMESTAMP '2020-01-01', u", "t u"},
		{maria, "SELECT a FROM t FOR SYSTEM_TIME AS OF my_function(1), u", "…"},
		{maria, "SELECT a FROM lateral x, u", "lateral u"},
		{pg, "TABLE t", "t"},
		{pg, "TABLE ONLY s.t ORDER BY a, b", "s.t"},
		{pg, "VALUES (1, 2), ((SELECT a FROM t), 3)", "t"},
		{my, "SELECT 1 UNION TABLE t UNION (SELECT a FROM u ORDER BY b, c) ORDER BY d, e", "t u"},
		{pg, "(SELECT a FROM t) EXCEPT (SELECT a FROM u ORDER BY b, c) ORDER BY d, e", "t u"},
		{pg, "SELECT a FROM t UNION VALUES (1), (2) UNION SELECT b FROM u, v", "t u v"},
		{pg, "SELECT a FROM (TABLE t) x, (VALUES (1), (2)) y (a), (SELECT b FROM u, v) z, w", "t u v w"},
		{pg, "SELECT a FROM ((SELECT b FROM t) UNION (SELECT c FROM u)) x JOIN v ON true", "t u v"},
		{pg, "SELECT a, (SELECT b FROM u WHERE EXISTS (SELECT FROM v)) FROM t WHERE c IN (SELECT d FROM w) GROUP BY e, f", "u v t w"},
		{pg, "SELECT ARRAY(SELECT a FROM t), ARRAY[(SELECT b FROM u)], ROW((SELECT c FROM v), 2)", "t u v"},
		{pg, "SELECT a FROM t WHERE b = ANY (SELECT c FROM u) ORDER BY (SELECT d FROM v) LIMIT (SELECT count(*) FROM w)", "t u v w"},
		{pg, "SELECT count(*) FILTER (WHERE EXISTS (SELECT FROM u)) OVER (PARTITION BY (SELECT a FROM v)) FROM t WINDOW w AS (ORDER BY b), y AS (w)", "u v t"},
		{pg, "SELECT a AS from, b AS join, c AS table, d AS select FROM t, u", "t u"},
		{pg, "SELECT a FROM t AS x JOIN u AS y ON x.a = y.a, v FOR UPDATE OF x, y", "t u v"},
		{pg, "SELECT a FROM t FOR NO KEY UPDATE OF t, u SKIP LOCKED", "t"},
		{my, "SELECT a FROM t, u LOCK IN SHARE MODE", "t u"},
		{my, "SELECT a FROM t, u INTO OUTFILE 'f'", "t u"},
		{my, "SELECT a INTO @x FROM t, u", "t u"},
		{my, "SELECT a, b FROM t INTO @x, @y", "t"},
		{my, "SELECT a INTO x FROM t", "…"},
		{pg, "SELECT a INTO t FROM u", "…"},
		{pg, "SELECT a INTO TEMP t FROM u", "…"},
		// FROM that leads to no relation.
		{pg, "SELECT extract(year FROM a), trim(both FROM b), substring(c FROM 2 FOR 3), overlay(d PLACING 'x' FROM 2), a IS NOT DISTINCT FROM e, a IS DISTINCT FROM f FROM t", "t"},
		{my, "SELECT EXTRACT(YEAR FROM a), TRIM(BOTH 'x' FROM b), MID(c FROM 2) FROM t", "t"},
		{pg, "SELECT extract(year FROM (SELECT a FROM t)) FROM u", "t u"},
		{pg, "INSERT INTO trim (SELECT a FROM t)", "t > trim"},
		// Words that are names in the grammar, and words that are not.
		{pg, "SELECT delete, update FROM t update, u", "t u"},
		{pg, "SELECT 1 FROM t JOIN u ON CASE WHEN a THEN b END, v", "t u v"},
		{pg, "SELECT a natural FROM t JOIN u ON b, v", "t u v"},
		{pg, "SELECT a AS join FROM t, u", "t u"},
		{my, "SELECT a FROM t window, u", "t u"},
		{my, "SELECT a FROM t offset, u", "t u"},
		{classify.AnyMySQL, "SELECT a FROM t except, u", "t u"},
		// The plan of a statement.
		{my, "EXPLAIN FORMAT=JSON SELECT a FROM t", "t"},
		{my, "DESC SELECT a FROM t", "t"},
		{my, "DESC t", "…"},
		{maria, "ANALYZE FORMAT=JSON SELECT a FROM t", "t"},
		{pg, "EXPLAIN (ANALYZE, FORMAT json) DELETE FROM t USING u", "u > t"},
		{pg, "EXPLAIN ANALYZE VERBOSE (SELECT a FROM t)", "t"},
		{pg, "EXPLAIN EXECUTE p", "…"},
		{pg, "EXPLAIN CREATE TABLE t AS SELECT 1", "…"},
	})
}

func TestTouchesOfCommonTableExpressions(t *testing.T) {
	testTouches(t, []touchCase{
		{pg, "WITH x AS (SELECT a FROM t) SELECT a FROM x, u", "t u"},
		{pg, "WITH x (a, b) AS NOT MATERIALIZED (SELECT a FROM x), y AS (SELECT b FROM x) SELECT a FROM y JOIN X ON true", "x"},
		{pg, "WITH x AS (SELECT a FROM y), y AS (SELECT 1) SELECT a FROM x, y", "y"},
		{pg, "WITH RECURSIVE x (n) AS (SELECT a FROM t UNION SELECT b FROM x), y AS (SELECT d FROM u) SELECT a FROM x, y", "t u"},
		{pg, "WITH RECURSIVE x AS (SELECT 1) SEARCH DEPTH FIRST BY a, b SET c SELECT a FROM x", "…"},
		{pg, "SELECT a FROM (WITH x AS (SELECT 1) SELECT a FROM x) z, x", "x"},
		{pg, "WITH x AS (SELECT 1) SELECT a FROM (WITH x AS (SELECT a FROM x) SELECT b FROM x) y, x", ""},
		{pg, "WITH x AS (SELECT 1) SELECT a FROM public.x, ONLY x", "public.x x"},
		{pg, `WITH x AS (SELECT 1) SELECT a FROM "X"`, "X"},
		{my, "WITH x AS (SELECT 1) SELECT a FROM x JOIN X ON b", "x"},
		{pg, "WITH x AS (SELECT 1) (SELECT a FROM x) UNION SELECT b FROM x", ""},
		{pg, "WITH x AS (SELECT 1) INSERT INTO x SELECT a FROM x", "> x"},
		{pg, "INSERT INTO t WITH x AS (SELECT a FROM u) SELECT a FROM x", "u x > t"},
		{pg, "INSERT INTO t WITH x AS (DELETE FROM u RETURNING a) SELECT a FROM x", "x > t u"},
		{pg, "WITH gone AS (DELETE FROM t USING u RETURNING a, b), upd AS (UPDATE v SET c = 1, d = 2 FROM w RETURNING *) SELECT a FROM gone, upd", "u w > t v"},
		{pg, "WITH a AS (INSERT INTO t VALUES (1) ON CONFLICT (x) DO NOTHING RETURNING b), c AS (MERGE INTO u USING v ON true WHEN MATCHED THEN DELETE RETURNING 1) TABLE a", "v > t u"},
		{my, "WITH x AS (SELECT a FROM t) DELETE u FROM u JOIN x ON u.a = x.a", "t > u x"},
		{my, "WITH x AS (SELECT a FROM t) UPDATE u SET b = (SELECT max(a) FROM x)", "t > u"},
	})
}

func TestTouchesOfFunctionsInFrom(t *testing.T) {
	testTouches(t, []touchCase{
		{pg, "SELECT a FROM generate_series(1, 2) x (a), LATERAL (SELECT b FROM t) y, u", "t u"},
		{pg, "SELECT a FROM ROWS FROM (generate_series(1, 2), unnest(b) AS (c int)) WITH ORDINALITY AS x (c, d), u", "u"},
		{pg, "SELECT a FROM ROWS FROM (my_function(1)), u", "…"},
		{pg, "SELECT a FROM my_function(1), u", "…"},
		{pg, "SELECT a FROM s.generate_series(1, 2)", "…"},
		{pg, "SELECT a FROM pg_catalog.generate_series(1, 2), t", "t"},
		{pg, `SELECT a FROM "PG_CATALOG".generate_series(1, 2)`, "…"},
		{pg, "SELECT a FROM t LEFT JOIN LATERAL unnest(t.b) x (c) ON true, u", "t u"},
		{pg, "SELECT a FROM xmltable('/r' PASSING (SELECT x FROM t) COLUMNS a int PATH 'a'), u", "t u"},
		{my, "SELECT a FROM t, JSON_TABLE(b, '$' COLUMNS (c INT PATH '$.c', d INT PATH '$.d')) j, LATERAL (SELECT e FROM u) k, v", "t u v"},
		{my, "SELECT a FROM f(1)", "…"},
	})
}

func TestTouchesOfWrites(t *testing.T) {
	testTouches(t, []touchCase{
		{pg, "INSERT INTO s.t (a, b) VALUES (1, lower('x')) ON CONFLICT (a) DO UPDATE SET b = 1, c = 2 RETURNING a, b", "> s.t"},
		{pg, "INSERT INTO t SELECT a FROM u JOIN v ON c ON CONFLICT (d) WHERE e DO UPDATE SET b = 1, c = (SELECT f FROM w)", "u v w > t"},
		{pg, "INSERT INTO t SELECT a FROM u JOIN v ON conflict (d), w", "…"},
		{pg, "INSERT INTO t AS x DEFAULT VALUES RETURNING (SELECT a FROM u)", "u > t"},
		{my, "INSERT LOW_PRIORITY IGNORE t (a) VALUES (1), (2)", "> t"},
		{my, "INSERT INTO d.t () VALUE ()", "> d.t"},
		{my, "INSERT INTO t SELECT a FROM u, v ON DUPLICATE KEY UPDATE a = 1, b = VALUES(b)", "u v > t"},
		{my, "INSERT INTO t SELECT a FROM u JOIN v ON duplicate, w", "u v w > t"},
		{my, "INSERT INTO t PARTITION (p0) SET a = (SELECT b FROM u), c = 2", "u > t"},
		{my, "REPLACE DELAYED INTO t SET a = 1", "> t"},
		{my, "INSERT INTO t TABLE u", "u > t"},
		{pg, "INSERT INTO t (a) (SELECT b FROM u)", "u > t"},
		{my, "SELECT REPLACE(a, 'b', 'c'), INSERT(d, 1, 2, 'e') FROM t", "t"},
		{maria, "INSERT INTO t VALUES (1) RETURNING a, b", "> t"},
		{pg, "UPDATE ONLY t x SET a = 1, (b, c) = (SELECT d, e FROM w) FROM u, v WHERE c RETURNING a, b", "w u v > t"},
		{my, "UPDATE LOW_PRIORITY t SET a = 1, b = 2 ORDER BY c, d LIMIT 1", "> t"},
		{my, "UPDATE a JOIN b ON c = d, e SET f = 1, g = (SELECT h FROM i)", "i > a b e"},
		{pg, "DELETE FROM t AS x USING u JOIN v USING (id), w WHERE a", "u v w > t"},
		{my, "DELETE QUICK FROM t PARTITION (p0) WHERE a = 1", "> t"},
		{my, "DELETE x, d.y.* FROM t x JOIN d.u y USING (id), v", "> t d.u v"},
		{my, "DELETE FROM a, b.* USING t AS a INNER JOIN u AS b USING (id)", "> a b t u"},
		{my, "DELETE t FROM t JOIN (SELECT a FROM u) x ON x.a = t.a", "u > t"},
		{maria, "DELETE FROM t WHERE a = 1 RETURNING b, c", "> t"},
		{pg, "MERGE INTO t USING (SELECT a FROM u) x ON a = b WHEN MATCHED THEN UPDATE SET c = 1, d = 2 WHEN NOT MATCHED THEN INSERT (e, f) VALUES (1, 2)", "u > t"},
		{pg, "MERGE INTO ONLY t USING u JOIN v ON CASE WHEN a THEN b END JOIN w ON true ON c WHEN MATCHED THEN DELETE", "u v w > t"},
		{pg, "TRUNCATE TABLE t, ONLY s.u RESTART IDENTITY", "> t s.u"},
		{pg, "TRUNCATE t CASCADE", "…"},
		{my, "TRUNCATE TABLE t", "> t"},
		{pg, "COPY t (a, b) FROM STDIN", "> t"},
		{pg, "COPY t TO STDOUT", "t"},
		{pg, "COPY (WITH x AS (SELECT a FROM t) SELECT a FROM x) TO STDOUT", "t"},
		{pg, "COPY (DELETE FROM t USING u RETURNING a) TO STDOUT", "u > t"},
		{pg, "COPY t FROM PROGRAM 'x'", "…"},
		{pg, "COPY t TO PROGRAM 'x'", "…"},
		{pg, "UPDATE t SET a = 1 FROM u JOIN v USING (id), w", "u v w > t"},
		{my, "LOAD DATA LOCAL INFILE 'f' REPLACE INTO TABLE d.t FIELDS TERMINATED BY ',' IGNORE 1 LINES (a, b) SET c = 1, e = (SELECT g FROM u)", "u > d.t"},
		{pg, "BEGIN", ""},
		{my, "START TRANSACTION READ ONLY", ""},
		{pg, "COMMIT", ""},
		{pg, "COMMIT PREPARED 'x'", "…"},
		{my, "XA COMMIT 'x'", "…"},
	})
}

func TestTouchesEverything(t *testing.T) {
	for _, tt := range []struct {
		d    classify.Dialect
		sqls []string
	}{
		{pg, []string{
			"CREATE TABLE t (a int)", "CREATE TABLE t AS SELECT a FROM u", "DROP TABLE t", "ALTER TABLE t ADD b int", "REFRESH MATERIALIZED VIEW v",
			"CALL p(1)", "DO 'BEGIN END'", "EXECUTE p", "PREPARE p AS SELECT a FROM t", "DECLARE c CURSOR FOR SELECT a FROM t", "FETCH c",
			"SET x = 1", "SHOW x", "VACUUM t", "ANALYZE t", "LOCK t", "NOTIFY x", "FROBNICATE t",
			"SELECT a FROM t; SELECT b FROM u", "INSERT INTO t VALUES (1); DELETE FROM u",
			"SELECT nextval('s')", "SELECT pg_advisory_lock(1)", "SELECT set_config('a', 'b', true)", "SELECT my_function(a) FROM t", "SELECT s.lower(a) FROM t",
			"INSERT INTO t (a) VALUES (lower('x'), my_function(1))", "UPDATE t SET a = my_function(b)", "DELETE FROM t WHERE f(a)",
			"INSERT INTO t VALUES (1) RETURNING s.f(1)", "INSERT INTO t VALUES (1) ON CONFLICT (f(a)) DO NOTHING", "EXPLAIN UPDATE t SET a = my_function(b)",
			"WITH x AS (DELETE FROM t RETURNING my_function(a)) SELECT 1", "MERGE INTO t USING u ON f(a) WHEN MATCHED THEN DO NOTHING",
			"SELECT pg_relation_size('t')", "SELECT ('t'::regclass).pg_relation_size", "SELECT x.pg_relation_size FROM t x", "SELECT query_to_xml('SELECT a FROM t', true, true, '')", "SELECT table_to_xml('t', true, true, '')",
			"SELECT ts_stat('SELECT a FROM t')", "SELECT ts_rewrite(a, 'SELECT b, c FROM t') FROM u", "SELECT st_transform(a, 1) FROM t",
			"SELECT a FROM t WHERE b OPERATOR(s.=) c", "SELECT a FROM pg_temp.t",
			"SELECT a FROM t WHERE b = 'open", "SELECT a FROM t WHERE (b", "SELECT a FROM t)", "SELECT a FROM t,", "SELECT a FROM ()", "SELECT a FROM t JOIN", "WITH", "WITH x", "SELECT a FROM",
		}},
		{my, []string{
			"CREATE TABLE t (a INT)", "RENAME TABLE a TO b", "DO f()", "CALL p()", "HANDLER t OPEN", "USE d", "SET @x = (SELECT a FROM t)", "SHOW TABLES", "CHECKSUM TABLE t", "ANALYZE TABLE t",
			"LOCK TABLES a READ", "SELECT f(a) FROM t", "SELECT d.lower(a) FROM t", "SELECT `lower`(a) FROM t", "INSERT INTO t VALUES (f(1))", "UPDATE t SET a = 1, b = f(c)", "SELECT GET_LOCK('a', 1)",
			`SELECT a FROM t WHERE b = 'x\' UNION SELECT c FROM u -- '`, "SELECT a FROM t /*!99999 JOIN u */", "SELECT a FROM t WHERE b = f (c)",
			"INSERT INTO t SET a = f(1)", "INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = f(1)", "LOAD DATA INFILE 'f' INTO TABLE t (a) SET b = f(1)",
		}},
		{maria, []string{"BEGIN NOT ATOMIC DELETE FROM t; UPDATE u SET a = 1; END", "SET STATEMENT max_statement_time=1 FOR UPDATE t SET a = 1", "INSERT INTO t VALUES (NEXT VALUE FOR s)", "SELECT s.nextval"}},
		{classify.Generic, []string{"SELECT a FROM t", "SELECT 1", ""}},
	} {
		for _, sql := range tt.sqls {
			if got := touched(tt.d, sql, nil); got != "…" {
				t.Errorf("%v: %s\n got %s", tt.d, sql, got)
			}
		}
	}
}

// What the database's own functions look at is not in the text, be they harmless
// or not.
func TestTouchesWithDefinitions(t *testing.T) {
	catalog := &classify.Catalog{
		Functions: []classify.CatalogFunction{
			{Schema: "public", Name: "total", Harmless: true},
			{Schema: "public", Name: "lower", Harmless: true},
			{Schema: "public", Name: "upper", Harmless: true, Trusted: true},
		},
		Operators: []classify.CatalogOperator{{Symbol: "===", Function: classify.CatalogFunction{Schema: "public", Name: "same"}}},
		Relations: []classify.CatalogRelation{{Schema: "public", Name: "spy", Runs: classify.CatalogFunction{Schema: "public", Name: "writes"}}},
	}
	d := classify.NewDefinitions(pg, catalog, []string{"said"}, nil)
	for sql, want := range map[string]string{
		"SELECT a FROM t":                 "t",
		"SELECT upper(a) FROM t":          "t",
		"SELECT total(a) FROM t":          "…",
		"SELECT lower(a) FROM t":          "…",
		"SELECT pg_catalog.lower(a)":      "",
		"SELECT x.total FROM t x":         "…",
		"SELECT (x).total FROM t x":       "…",
		"SELECT total FROM t":             "t",
		"SELECT a FROM total.x":           "total.x",
		"SELECT a FROM x.total":           "…",
		"SELECT said(a) FROM t":           "…",
		"SELECT a FROM t WHERE b===c":     "…",
		"SELECT a FROM spy":               "…",
		"UPDATE t SET a = total(1)":       "…",
		"INSERT INTO t VALUES (TOTAL(1))": "…",
	} {
		if got := touched(pg, sql, d); got != want {
			t.Errorf("%s\n got %s\nwant %s", sql, got, want)
		}
	}
	m := classify.NewDefinitions(my, &classify.Catalog{Functions: catalog.Functions}, nil, nil)
	for sql, want := range map[string]string{
		"SELECT total(a) FROM t": "…",
		"SELECT lower(a) FROM t": "t", // what is built in goes first
		"SELECT x.total FROM x":  "x",
	} {
		if got := touched(my, sql, m); got != want {
			t.Errorf("%s\n got %s\nwant %s", sql, got, want)
		}
	}
}

func TestRelationsSee(t *testing.T) {
	for _, tt := range []struct {
		read, write string
		want        bool
	}{
		{"SELECT a FROM t", "DELETE FROM t", true},
		{"SELECT a FROM t", "DELETE FROM u", false},
		{"SELECT a FROM s.t", "DELETE FROM t", true},
		{"SELECT a FROM t", "DELETE FROM s.t", true},
		{"SELECT a FROM r.t", "DELETE FROM s.t", false},
		{"SELECT a FROM t", "DELETE FROM u USING t", false},
		{"SELECT a FROM t, u", "DELETE FROM u", true},
		{"UPDATE t SET a = 1", "DELETE FROM t", true},
		{"SELECT 1", "DELETE FROM t", false},
		{"SELECT 1", "CALL p()", false},
		{"SELECT a FROM t", "CALL p()", true},
		{"SELECT f()", "DELETE FROM t", true},
		{"SELECT f()", "SELECT a FROM t", false},
	} {
		if got := classify.Touches(pg, tt.read, nil).Sees(classify.Touches(pg, tt.write, nil)); got != tt.want {
			t.Errorf("%s sees %s: %v", tt.read, tt.write, got)
		}
	}
}
