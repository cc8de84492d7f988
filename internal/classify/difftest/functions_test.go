package difftest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

// Every function that a server knows, and that the classifier calls harmless, is:
// it is called with arguments of its types.
func TestEveryFunction(t *testing.T) {
	t.Run("postgres", func(t *testing.T) {
		o := newOracle(t, replicatedtest.Postgres)
		extensions := o.column("SELECT name FROM pg_available_extensions ORDER BY name")
		for _, name := range extensions {
			// Not each goes together with the others.
			_, _ = o.admin.ExecContext(t.Context(), fmt.Sprintf("CREATE EXTENSION IF NOT EXISTS %q CASCADE", name))
		}
		names := o.column(`SELECT p.proname || '(' || coalesce((SELECT string_agg(t::regtype::text, ';' ORDER BY n) FROM unnest(p.proargtypes) WITH ORDINALITY a(t, n)), '') || ')'
			|| CASE WHEN p.proretset THEN ' set' ELSE '' END
			FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
			WHERE n.nspname <> 'information_schema' AND p.prokind IN ('f', 'a', 'w') AND NOT 'internal'::regtype = ANY (p.proargtypes)
				AND p.prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype, 'internal'::regtype)
			ORDER BY 1`)
		o.functions(names, postgresCalls)
	})
	t.Run("mariadb", func(t *testing.T) {
		o := newOracle(t, replicatedtest.MariaDB)
		o.functions(o.column("SELECT function FROM information_schema.sql_functions"), mysqlCalls)
	})
}

func (o *oracle) column(query string) state {
	s, err := look(o.t.Context(), o.admin, query)
	if err != nil {
		o.t.Fatal(err)
	}
	return s
}

// functions runs those calls of the functions that are reads.
func (o *oracle) functions(names []string, calls func(name string) []string) {
	var batch []string
	called, reads := 0, 0
	run := func() {
		o.settle() // the primary may still be busy with what was created
		o.check([][]string{nil}, [][]string{batch})
		batch = batch[:0]
	}
	for _, name := range names {
		known := false
		for _, text := range calls(name) {
			if anyRead(o.dialect, text) {
				known = true
				batch = append(batch, text)
			}
		}
		called++
		if known {
			reads++
		}
		if len(batch) >= batchSize {
			run()
		}
	}
	run()
	o.report(fmt.Sprintf("%d functions, %d of them called harmless", called, reads))
	if reads < 200 {
		o.t.Errorf("only %d functions", reads)
	}
}

// postgresValues are arguments by their types. Others are text in quotes.
var postgresValues = map[string]string{
	"integer": "1", "bigint": "1::bigint", "smallint": "1::smallint", "oid": "'books'::regclass::oid", "double precision": "0.01::float8", "real": "0.5::real",
	"numeric": "1.5", "boolean": "true", "text": "'books'", "name": "'books'::name", "cstring": "'1'::cstring", "character": "'a'::char", "\"char\"": `'r'::"char"`,
	"date": "current_date", "timestamp without time zone": "localtimestamp", "timestamp with time zone": "now()", "interval": "interval '1 ms'",
	"time without time zone": "localtime", "time with time zone": "current_time", "bytea": `'\x01'::bytea`, "bit": "B'1'", "bit varying": "B'1'::varbit",
	"json": `'{"a":1}'::json`, "jsonb": `'{"a":1}'::jsonb`, "jsonpath": "'$'::jsonpath", "xml": "'<a/>'::xml", "uuid": "gen_random_uuid()", "point": "point '(1,2)'",
	"box": "box '(1,2),(3,4)'", "circle": "circle '<(1,2),3>'", "line": "line '{1,2,3}'", "lseg": "lseg '[(1,2),(3,4)]'", "path": "path '[(1,2),(3,4)]'", "polygon": "polygon '((1,2),(3,4))'",
	"inet": "inet '10.0.0.1'", "cidr": "cidr '10.0.0.0/8'", "macaddr": "macaddr '08:00:2b:01:02:03'", "macaddr8": "macaddr8 '08:00:2b:01:02:03:04:05'", "money": "1::money",
	"tsvector": "'a'::tsvector", "tsquery": "'a'::tsquery", "regclass": "'books'::regclass", "regconfig": "'english'::regconfig", "regdictionary": "'simple'::regdictionary",
	"anyelement": "1", "anycompatible": "1", "anynonarray": "1", "anycompatiblenonarray": "1", "anyarray": "ARRAY[1,2]", "anycompatiblearray": "ARRAY[1,2]", "anyenum": "NULL", "\"any\"": "1",
	"anyrange": "int4range(1,3)", "anycompatiblerange": "int4range(1,3)", "anymultirange": "int4multirange(int4range(1,3))", "anycompatiblemultirange": "int4multirange(int4range(1,3))",
	"text[]": "ARRAY['a','b']", "integer[]": "ARRAY[1,2]", "record": "ROW(1,2)", "tid": "tid '(0,1)'", "xid": "xid '1'", "xid8": "xid8 '1'", "cid": "cid '1'", "pg_lsn": "pg_lsn '0/1'",
	"txid_snapshot": "txid_current_snapshot()", "pg_snapshot": "pg_current_snapshot()", "void": "NULL", "hstore": "'a=>1'::hstore", "cube": "cube(1)", "ltree": "'a.b'::ltree", "oid[]": "ARRAY['books'::regclass::oid]", "double precision[]": "ARRAY[1.5::float8]", "\"char\"[]": `ARRAY['r'::"char"]`,
}

func postgresCalls(signature string) []string {
	signature, set := strings.CutSuffix(signature, " set")
	name, types, _ := strings.Cut(strings.TrimSuffix(signature, ")"), "(")
	var good, null []string
	if types != "" {
		for _, typ := range strings.Split(types, ";") {
			v, ok := postgresValues[typ]
			if !ok {
				v = "'1'::" + typ
			}
			good = append(good, v)
			n := "NULL::" + typ
			if strings.HasPrefix(typ, "any") || typ == `"any"` {
				n = v
			}
			null = append(null, n)
		}
	}
	from := "SELECT "
	if set {
		from = "SELECT * FROM "
	}
	texts := []string{from + name + "(" + strings.Join(good, ", ") + ")"}
	if len(null) > 0 {
		texts = append(texts, from+name+"("+strings.Join(null, ", ")+")")
	}
	return texts
}

func mysqlCalls(name string) []string {
	var texts []string
	for _, values := range [][]string{{"1", "2", "3", "4"}, {"'a'", "'b'", "'c'", "'d'"}, {"NOW()", "'1'", "1", "2"}, {"id", "title", "copies", "late"}} {
		for n := range len(values) + 1 {
			if n == 0 && values[0] != "1" {
				continue
			}
			texts = append(texts, "SELECT "+name+"("+strings.Join(values[:n], ", ")+") FROM books LIMIT 1")
		}
	}
	return texts
}
