package difftest

import "strings"

// relation is a table, a view or a list of columns to select from.
type relation struct {
	name  string
	alias string
	ints  []string
	texts []string
	dates []string
	jsons []string
}

// postgresRelations are those of the scratch database.
var postgresRelations = []relation{
	{name: "books", ints: []string{"id", "copies", "late"}, texts: []string{"title"}, dates: []string{"returned_at"}, jsons: []string{"meta"}},
	{name: "members", ints: []string{"id"}, texts: []string{"name"}},
	{name: "loans", ints: []string{"id", "book_id", "member_id", "late"}, dates: []string{"due", "returned_at"}},
	{name: "overdue", ints: []string{"id"}},
	{name: "words", ints: []string{"id", "update", "insert", "delete", "lock", "share", "nextval", "set", "call"}, texts: []string{"\"for\"", "\"into\"", "temporary", "key"}},
	{name: literal(`"For Update"`), ints: []string{"id", "\"nextval(1)\""}, texts: []string{"\"a\"\"b\"", "b$y$"}},
	{name: "public.books", ints: []string{"id", "copies"}, texts: []string{"title"}},
	{name: "fine_seq", ints: []string{"last_value"}},
	{name: "pg_catalog.pg_class", ints: []string{"relnatts"}, texts: []string{"relname" + "::text"}},
	{name: "generate_series(1, 3)", ints: []string{}},
}

// scope is what the names in an expression may be.
type scope []relation

func (g *Generator) column(s scope, pick func(relation) []string) string {
	if len(s) == 0 {
		return ""
	}
	rel := s[g.r.IntN(len(s))]
	cols := pick(rel)
	if len(cols) == 0 {
		return ""
	}
	return rel.alias + "." + cols[g.r.IntN(len(cols))]
}

// postgres returns a statement, and whether no classifier may call it a read.
func (g *Generator) postgres() (text string, writes bool) {
	switch n := g.r.IntN(100); {
	case n < 62:
		return g.pgQuery(), false
	case n < 68:
		return "EXPLAIN " + g.pgExplain() + g.pgExplained(), false
	case n < 70:
		return "COPY " + g.one("books", "loans"+gap+"(id, late)", paren(g.pgQuery()), paren(g.pgQuery())) + " TO " +
			g.one("STDOUT", "STDOUT", "STDOUT", "'"+g.Dir+"/copy'", "PROGRAM 'cat >"+blank+g.Dir+"/program'") + g.one("", " WITH (FORMAT CSV)", " CSV HEADER"), false
	case n < 72:
		return "SHOW " + g.one("timezone", "ALL", "search_path", "TIME ZONE", "server_version", "app.x", "transaction_isolation"), false
	case n < 75:
		return g.pgQuery() + ";" + g.one(g.pgQuery(), g.pgQuery(), g.pgWrite(), g.pgSession(), "COMMIT"), false
	case n < 87:
		return g.pgWrite(), true
	case n < 90:
		return g.pgDanger(), true
	default:
		return g.pgSession(), true
	}
}

func (g *Generator) pgExplain() string {
	if g.chance(50) {
		return g.one("", "", "ANALYZE ", "VERBOSE ", "ANALYZE VERBOSE ", "ANALYSE ")
	}
	return paren(g.list(3, func() string {
		return g.one("ANALYZE", "ANALYZE ON", "ANALYZE FALSE", "ANALYZE 0", "COSTS OFF", "TIMING OFF", "BUFFERS", "VERBOSE", "ANALYZE 'off'", "FORMAT JSON", "SUMMARY", "\"analyze\" TRUE")
	})) + " "
}

func (g *Generator) pgExplained() string {
	if g.chance(75) {
		return g.pgQuery()
	}
	return g.pgWrite()
}

// pgQuery returns a SELECT, TABLE or VALUES with all that may stand around it.
func (g *Generator) pgQuery() string {
	if g.deep() {
		defer g.up()
		return g.pgSelect(true)
	}
	defer g.up()
	var with string
	if g.chance(20) {
		with = g.pgWith()
	}
	switch n := g.r.IntN(20); {
	case n == 0:
		return with + "TABLE " + g.one("books", "members", "words", "overdue", "fine_seq", "ONLY loans") + g.pgTail(nil)
	case n == 1:
		return with + "VALUES " + paren(g.pgInt(nil)+","+gap+g.pgText(nil)) + gap + "," + gap + paren(g.pgInt(nil)+", "+g.pgText(nil)) + g.maybe(30, " ORDER BY 1")
	case n == 2:
		return with + paren(g.pgSelect(false)) + g.maybe(40, " ORDER BY 1")
	case n < 5:
		return with + "SELECT " + g.pgInt(nil) + g.one(" UNION ", " UNION ALL ", " EXCEPT ", " INTERSECT ") + g.one("SELECT "+g.pgInt(nil), paren("SELECT "+g.pgInt(nil)), "SELECT id FROM books", "VALUES (1)") + g.maybe(20, " ORDER BY 1")
	}
	return with + g.pgSelect(true)
}

func (g *Generator) pgWith() string {
	name := func() string {
		return g.one("w", "update", "insert", "delete", "\"For\"", "lower", "nextval", "share", "key", "replace", "merge")
	}
	body := func() string {
		if g.chance(9) {
			return g.one("INSERT INTO members VALUES (77, 'x') ON CONFLICT DO NOTHING RETURNING id", "UPDATE books SET late = 9 RETURNING id", "DELETE FROM loans RETURNING id",
				"UPDATE ONLY books SET late = 9 WHERE false RETURNING 1", "DELETE FROM ONLY loans * USING books RETURNING 1", "UPDATE \"books\" AS b SET late = 1 RETURNING 1", "UPDATE public.books SET late = 2 RETURNING 1", "DELETE FROM"+gap+"\"loans\" RETURNING *")
		}
		return g.pgSelect(true)
	}
	first := name()
	text := "WITH " + g.maybe(20, "RECURSIVE ") + first + " AS " + g.one("", "", "MATERIALIZED ", "NOT MATERIALIZED ") + paren(body())
	if g.chance(30) {
		if second := name(); second != first {
			text += "," + gap + second + " AS " + paren(body())
		}
	}
	if g.chance(8) {
		text = "WITH RECURSIVE r(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM r WHERE n < 3)" + g.one("", " SEARCH DEPTH FIRST BY n SET ord", " CYCLE n SET c USING p")
	}
	return text + g.one(" ", "\n", gap+" ")
}

// pgFrom returns a FROM clause and its scope.
func (g *Generator) pgFrom() (string, scope) {
	if g.chance(20) {
		return "", nil
	}
	aliases := []string{"a", "update", "share", "\"For\"", "x", "no", "key", "nextval", "temp"}
	g.r.Shuffle(len(aliases), func(i, j int) { aliases[i], aliases[j] = aliases[j], aliases[i] })
	rel := postgresRelations[g.r.IntN(len(postgresRelations))]
	rel.alias = aliases[0]
	text := " FROM " + g.maybe(5, "ONLY ") + rel.name + " AS " + rel.alias
	if strings.HasPrefix(rel.name, "gen") {
		rel.ints = []string{"n"}
		text = " FROM " + rel.name + " AS " + rel.alias + "(n)"
	}
	if rel.name == "books" && g.chance(3) {
		text += " TABLESAMPLE " + g.one("BERNOULLI", "system") + gap + "(50)" + g.maybe(50, " REPEATABLE (1)")
	}
	s := scope{rel}
	for i := 1; i < 3 && g.chance(30); i++ {
		rel := postgresRelations[g.r.IntN(6)]
		rel.alias = aliases[i]
		table := rel.name
		if g.chance(25) {
			rel.ints, rel.texts, rel.dates, rel.jsons = []string{"c1"}, []string{"c2"}, nil, nil
			table = g.maybe(30, "LATERAL ") + paren("SELECT "+g.pgInt(s[:0])+", "+g.pgText(nil)+g.one("", " FROM members", " FROM books WHERE id = 1"))
			rel.alias, table = aliases[i], table+" AS "+aliases[i]+"(c1, c2)"
			rel.name = table
		} else {
			table += g.one(" AS ", " AS ", gap+" AS ") + rel.alias
		}
		switch g.r.IntN(6) {
		case 0:
			text += "," + gap + table
		case 1:
			text += " CROSS JOIN " + table
		default:
			s2 := append(s[:len(s):len(s)], rel)
			text += g.one(" JOIN ", " LEFT JOIN ", " INNER JOIN ", " RIGHT OUTER JOIN ", " FULL JOIN ") + table
			on := " ON " + s2[0].alias
			if len(s2[0].ints) > 0 && len(rel.ints) > 0 {
				on += "." + s2[0].ints[0] + " = " + rel.alias + "." + rel.ints[0]
			} else {
				on = " ON TRUE"
			}
			text += on
		}
		s = append(s, rel)
	}
	return text, s
}

func (g *Generator) pgSelect(tail bool) string {
	if g.deep() && g.depth > 4 {
		g.up()
		return "SELECT " + g.one("1", "id FROM books", "count(*) FROM loans")
	}
	defer g.up()
	from, s := g.pgFrom()
	grouped := from != "" && g.chance(12)
	var items string
	var key string
	if grouped {
		key = g.pgInt(s)
		items = g.one("count(*)", "sum(1)", "string_agg('x', ',')", "array_agg(1)", "count(*) FILTER (WHERE TRUE)", "count(DISTINCT 1)", "json_agg(1)") + g.maybe(40, " AS "+g.label())
	} else {
		items = g.list(3, func() string {
			item := g.pgAny(s)
			return item + g.maybe(30, " AS "+g.label())
		})
	}
	text := "SELECT " + g.one("", "", "", "", "ALL ", "DISTINCT ") + items
	if g.chance(3) {
		text += " INTO " + g.one("", "TEMP ", "TEMPORARY TABLE ", "UNLOGGED ", "TABLE ") + g.one("made", "\"made\"", "public.made", "pg_temp.made")
	}
	text += from
	if from != "" && g.chance(45) {
		text += " WHERE " + g.pgBool(s)
		if g.chance(4) {
			// A number or a literal ends where it ends, blank or not.
			return text + " AND 1 < " + g.one("1.5", "'2'", "$$3$$", ".5", "2e0", "B'1'::int", "(2)", "2") + g.one("FOR UPDATE", "FOR SHARE", "FOR KEY SHARE", "LIMIT 1", "ORDER BY 1")
		}
	}
	if grouped {
		text += " GROUP BY " + g.one(key, key, "ROLLUP "+paren(key), "GROUPING SETS "+paren("("+key+"), ()"), "CUBE"+paren(key)) + g.maybe(20, " HAVING count(*) > 0")
	}
	if tail {
		text += g.pgTail(s)
	}
	return text
}

func (g *Generator) label() string {
	return g.one("a", "update", "\"for update\"", "into", "for", "nextval", "\"x y\"", "share", "fetch", "values", "b1", "\"nextval(\"", "x$$", "x$$", "y$a$")
}

func (g *Generator) pgTail(s scope) string {
	text := g.maybe(20, " ORDER BY 1"+g.one("", " DESC", " NULLS FIRST"))
	text += g.one("", "", "", "", " LIMIT 3", " LIMIT ALL", " LIMIT (2) OFFSET 0", " OFFSET 1 ROWS", " FETCH FIRST (2) ROWS ONLY", " FETCH NEXT ROW ONLY")
	if g.chance(6) && len(s) == 0 {
		text += " FOR UPDATE"
	} else if g.chance(6) && len(s) > 0 {
		text += g.one(" FOR ", " FOR ", gap+"FOR ") + g.one("UPDATE", "SHARE", "NO KEY UPDATE", "KEY SHARE", "READ ONLY") + g.maybe(30, " OF "+s[0].alias) + g.one("", "", " NOWAIT", " SKIP LOCKED")
	}
	return text
}

func (g *Generator) pgAny(s scope) string {
	switch g.r.IntN(10) {
	case 0, 1, 2:
		return g.pgInt(s)
	case 3, 4, 5:
		return g.pgText(s)
	case 6:
		return g.pgBool(s)
	case 7:
		return g.pgDate(s)
	case 8:
		return g.pgJSON(s)
	}
	return g.pgOdd()
}

func (g *Generator) pgInt(s scope) string {
	if g.deep() {
		defer g.up()
		if c := g.column(s, func(r relation) []string { return r.ints }); c != "" && g.chance(60) {
			return c
		}
		return g.one("1", "0", "-1", "42", "'7'::int", "CAST('3' AS INT)", "INT '5'", "2::pg_catalog.int4", "1", "+3")
	}
	defer g.up()
	switch g.r.IntN(22) {
	case 0:
		return paren(g.pgInt(s) + g.one("+", " - ", gap+"*"+gap) + g.pgInt(s))
	case 1:
		return g.call("abs", g.pgInt(s)) + g.maybe(20, "::int")
	case 2:
		return g.call(g.one("length", "char_length", "octet_length", "pg_catalog.length", "PG_CATALOG.\"length\"", "bit_length"), g.pgText(s))
	case 3:
		return g.call(g.one("COALESCE", "GREATEST", "LEAST", "NULLIF"), g.pgInt(s), g.pgInt(s))
	case 4:
		return "CASE WHEN " + g.pgBool(s) + " THEN " + g.pgInt(s) + " ELSE " + g.pgInt(s) + " END"
	case 5:
		return paren("SELECT " + g.one("count(*)::int", "max(id)", "min(id)") + " FROM " + g.one("books", "loans", "members") + g.maybe(5, " FOR UPDATE"))
	case 6:
		return "EXTRACT(" + g.one("YEAR", "month", "DOW") + " FROM " + g.pgDate(s) + ")::int"
	case 7:
		return "POSITION(" + g.pgText(nil) + " IN " + g.pgText(s) + ")"
	case 8:
		return g.call("array_length", "ARRAY[1,"+g.pgInt(s)+"]", "1")
	case 9:
		return "(" + g.pgInt(s) + ")::" + g.one("int", "integer", "bigint::int", "numeric(10,2)::int", "pg_catalog.int4")
	case 10:
		return "(ARRAY[" + g.pgInt(s) + ",2])[1]"
	case 11:
		return g.call("mod", g.pgInt(s), "7")
	case 12:
		return g.call("strpos", g.pgText(s), g.pgText(nil))
	case 13, 14:
		return g.pgDenied()
	case 15:
		return g.call("width_bucket", "1.5", "0", "10", "5")
	default:
		if c := g.column(s, func(r relation) []string { return r.ints }); c != "" {
			return c
		}
		return g.number()
	}
}

// pgDenied are calls, all integers, that no read may hold.
func (g *Generator) pgDenied() string {
	if g.chance(60) {
		return g.number()
	}
	seq := g.one("'fine_seq'", "'fine_seq'::regclass", "'public.fine_seq'")
	name := func(n string) string {
		switch g.r.IntN(9) {
		case 0:
			return "\"" + n + "\""
		case 1:
			return "pg_catalog." + n
		case 2:
			return "pg_catalog" + gap + "." + gap + "\"" + n + "\""
		case 3:
			return strings.ToUpper(n)
		case 4:
			return "U&\"" + literal(strings.Replace(n, "a", `\0061`, 1)) + "\""
		case 5:
			return "\"pg_catalog\"." + n
		}
		return n
	}
	switch g.r.IntN(16) {
	case 0, 1, 2:
		return g.call(name("nextval"), seq) + "::int"
	case 3:
		return "('fine_seq'::regclass)" + gap + "." + gap + g.one("nextval", "\"nextval\"") + "::int"
	case 4:
		return "(ARRAY['fine_seq'::regclass])[1].nextval::int"
	case 5:
		return g.call(name("setval"), seq, "5") + "::int"
	case 6:
		return g.call("length", g.call(name(g.one("pg_advisory_lock", "pg_advisory_xact_lock", "pg_advisory_lock_shared")), "1")+"::text")
	case 7:
		return g.call(name("pg_try_advisory_lock"), "2") + "::int"
	case 8:
		return g.call("length", g.call(name("set_config"), "'app.x'", "'1'", g.one("false", "true", "'f'")))
	case 9:
		return g.call(name(g.one("txid_current", "pg_current_xact_id"))) + "::text::int"
	case 10:
		return g.call(name("lo_create"), "0") + "::int"
	case 11:
		return g.call("length", g.call(name("pg_notify"), "'c'", "'x'")+"::text")
	case 12:
		return g.call(g.one("f_write", "public.f_write", "\"f_write\"", "public"+gap+"."+gap+"f_write"), "1")
	case 13:
		return g.call("length", g.call(name("query_to_xml"), "'SELECT"+blank+"nextval(''fine_seq'')'", "true", "true", "''")+"::text")
	case 14:
		return g.call("length", g.call(name("pg_export_snapshot")))
	}
	return g.call("length", g.call(name("pg_logical_emit_message"), g.one("true", "false"), "'a'", "'b'")+"::text")
}

func (g *Generator) pgText(s scope) string {
	if g.deep() {
		defer g.up()
		if c := g.column(s, func(r relation) []string { return r.texts }); c != "" && g.chance(55) {
			return c
		}
		return g.pgString()
	}
	defer g.up()
	switch g.r.IntN(20) {
	case 0:
		return g.call(g.one("lower", "upper", "initcap", "reverse", "md5", "quote_literal", "LOWER", "pg_catalog.upper", "ltrim", "btrim"), g.pgText(s))
	case 1:
		return paren(g.pgText(s) + gap + "||" + gap + g.pgText(s))
	case 2:
		return "SUBSTRING(" + g.pgText(s) + g.one(" FROM 1 FOR 2", " FOR 3", " FROM 2", ",1,2", ", 2", " FROM 'a.'") + ")"
	case 3:
		return g.call("replace", g.pgText(s), g.pgString(), g.pgString())
	case 4:
		return "OVERLAY(" + g.pgText(s) + " PLACING 'z' FROM 1 FOR 1)"
	case 5:
		return "TRIM(" + g.one("BOTH ", "LEADING 'x' FROM ", "TRAILING FROM ", "'y' FROM ", "") + g.pgText(s) + ")"
	case 6:
		return g.call("concat_ws", "','", g.pgText(s), g.pgInt(s))
	case 7:
		return g.call("format", "'%s-%s'", g.pgText(s), g.pgInt(s))
	case 8:
		return g.call("left", g.pgText(s), "2")
	case 9:
		return paren(g.pgInt(s)) + "::" + g.one("text", "varchar(10)", "character varying(5)", "char(3)::text", "name::text")
	case 10:
		return "CAST(" + g.pgInt(s) + " AS " + g.one("TEXT", "VARCHAR(5)", "CHARACTER VARYING(3)") + ")"
	case 11:
		return g.call("to_char", g.pgDate(s), "'YYYY-MM-DD'")
	case 12:
		return paren("SELECT string_agg(name, ',' ORDER BY id) FROM members" + g.maybe(4, " FOR SHARE"))
	case 13:
		return g.call("COALESCE", g.pgText(s), g.pgString())
	case 14:
		return paren(g.pgText(s) + " COLLATE \"C\"")
	case 15:
		return g.one("current_user::text", "version()", "current_database()::text", "current_schema()::text", "pg_typeof(1)::text", "current_setting('TimeZone')", "gen_random_uuid()::text", "random()::text", "session_user::text", "CURRENT_CATALOG::text")
	default:
		if c := g.column(s, func(r relation) []string { return r.texts }); c != "" {
			return c
		}
		return g.pgString()
	}
}

// pgString returns a literal, most of which hold what is not to be seen.
func (g *Generator) pgString() string {
	return literal(g.one(
		`'x'`, `''`, `'it''s'`, `'; DELETE FROM books; --'`, `'nextval('`, `E'a\'b'`, `e'\\'`, `E'it''s \x41 \u0041'`, `'a\\b'`, `$$x$$`, `$$; nextval('s') $$`,
		`$a$ $$ ' $a$`, `$_x1$ FOR UPDATE $_x1$`, `U&'d\0061t'`, `U&'x!0061' UESCAPE '!'`, `N'x'::text`, `'/* '`, `' */'`, `'--'`, `'{for,update}'`, `'a"b'`, `'$1'`, `'?'`,
		`'two' `+"\n"+` 'parts'`, `'FOR UPDATE'`, `'@x := 1'`, `'é漢'`, `'\n'`, `$é$x$é$`, `B'101'::text`, `X'1F'::text`, `'x\x'`, `text'a\'`, `name'\'::text`, `"char"'\'::text`, `date'2024-01-01'::text`, `U&'\\'`, `u&'a\005c'`, `'\'`, `E'\\\''`, `E'\''`))
}

func (g *Generator) pgBool(s scope) string {
	if g.deep() {
		defer g.up()
		return g.one("TRUE", "FALSE", "1 = 1", "NULL IS NULL", "NOT FALSE", "'a' = 'a'", "TRUE IS NOT UNKNOWN", "1 < 2")
	}
	defer g.up()
	switch g.r.IntN(16) {
	case 0:
		return paren(g.pgBool(s) + g.one(" AND ", " OR ") + g.pgBool(s))
	case 1:
		return "NOT " + paren(g.pgBool(s))
	case 2:
		return "EXISTS " + paren(g.pgSelect(true))
	case 3:
		return g.pgInt(s) + g.one(" IN ", " NOT IN ") + g.one("(1, 2)", paren(g.pgInt(s)), "(SELECT id FROM books)", "(VALUES (1), (2))")
	case 4:
		return g.pgText(s) + g.one(" LIKE ", " NOT LIKE ", " ILIKE ", " SIMILAR TO ") + g.one("'a%'", "('b%')", "'!_x' ESCAPE '!'")
	case 5:
		return g.pgInt(s) + " BETWEEN " + g.one("", "SYMMETRIC ") + "0 AND " + g.number()
	case 6:
		return g.pgText(s) + g.one(" ~ ", " !~ ", " ~* ") + "'^a'"
	case 7:
		return g.pgJSON(s) + g.one(" ? 'lock'", " ?| ARRAY['a']", " @> '{\"a\":1}'", " ?& ARRAY['a','b']", " @? '$.a'", " <@ '{}'")
	case 8:
		return g.pgInt(s) + " = ANY " + g.one("(ARRAY[1,2])", "('{1,2}'::int[])", "(SELECT id FROM loans)")
	case 9:
		return g.pgDate(s) + g.one(" < ", " >= ") + g.pgDate(s)
	case 10:
		return g.pgText(s) + g.one(" IS NULL", " IS NOT NULL", " IS DISTINCT FROM 'x'", " ISNULL", " IS NOT NORMALIZED")
	case 11:
		return "(" + g.pgInt(s) + ", 1)" + g.one(" = ", " < ", " <> ") + "(1, " + g.pgInt(s) + ")"
	case 12:
		return "1 OPERATOR(pg_catalog.=) " + g.pgInt(s)
	default:
		return g.pgInt(s) + gap + g.one("=", "<", ">", "<=", "<>", "!=", ">=") + gap + g.pgInt(s)
	}
}

func (g *Generator) pgDate(s scope) string {
	if c := g.column(s, func(r relation) []string { return r.dates }); c != "" && g.chance(50) {
		return c
	}
	return g.one("DATE '2024-02-29'", "CURRENT_DATE", "now()::date", "make_date(2024, 1, 2)", "'today'::date", "CURRENT_TIMESTAMP(0)::date", "(now() AT TIME ZONE 'UTC')::date", "(DATE '2024-01-01' + 3)", "date_trunc('month', now())::date", "(TIMESTAMP '2024-01-01 00:00' + INTERVAL '1 day')::date", "clock_timestamp()::date")
}

func (g *Generator) pgJSON(s scope) string {
	if c := g.column(s, func(r relation) []string { return r.jsons }); c != "" && g.chance(40) {
		return c
	}
	return g.one(`'{"a": 1}'::jsonb`, "jsonb_build_object('a', "+g.number()+")", "jsonb_set('{}', '{a}', '1')", "to_jsonb("+g.number()+")", "('{\"a\":{\"b\":1}}'::jsonb -> 'a')", "('{\"a\":{\"b\":1}}'::jsonb #> '{a,b}')", "jsonb_path_query_first('[1]', '$[0]')", "('{\"a\":1}'::jsonb - 'a')")
}

// pgOdd are expressions of all sorts.
func (g *Generator) pgOdd() string {
	return g.one(
		"1", "NULL", "ARRAY[1,2]", "ARRAY(SELECT 1)", "ROW(1,'a')", "(SELECT ROW(1,2))", "row_number() OVER ()", "count(*) OVER (PARTITION BY 1 ORDER BY 1)",
		"sum(1) FILTER (WHERE TRUE) OVER (ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)", "generate_series(1, 2)", "unnest(ARRAY[1,2])", "'{1,2}'::int[]", "int4range(1, 5)", "'(1,2)'::point",
		"B'1010'", "X'FF'", "'\\x00'::bytea", "interval '1 day'", "TIME '10:00'", "1.5e3", ".5", "1e-3", "pg_sleep(0)", "XMLELEMENT(NAME a, 'x')::text", "similarity('a', 'b')", "2 ^ 3", "|/ 4.0", "@ -5", "5 % 3", "~1", "1 # 3", "1 << 2",
		"pg_relation_size('books')", "pg_get_viewdef('overdue'::regclass)", "obj_description(1, 'pg_class')", "has_table_privilege('books', 'select')", "pg_is_in_recovery()", "txid_current_snapshot()", "to_tsvector('english', 'a') @@ to_tsquery('a')",
		"(SELECT b FROM books b LIMIT 1)", "f_pure(1)", "mode() WITHIN GROUP (ORDER BY 1)", "lo_get(1)", "currval('fine_seq')", "pg_backend_pid()", "inet_server_port()", "setseed(0.5)", "pg_stat_reset()", "pg_switch_wal()", "dblink('x', 'y')", "pg_my_temp_schema()",
		"2", "pg_column_size(1)", "digest('a', 'md5')", "encode('a', 'hex')", "xpath('/a', '<a/>')::text", "regexp_matches('abc', 'b')", "ts_rank(to_tsvector('a'), to_tsquery('a'))", "cursor_to_xml('c', 1, true, true, '')", "ts_stat('SELECT 1')")
}

func (g *Generator) pgWrite() string {
	return g.one(
		"INSERT INTO books (id, title) "+g.one("VALUES (9, 'x')", g.pgSelect(true))+g.maybe(40, " ON CONFLICT DO NOTHING")+g.maybe(40, " RETURNING id"),
		"UPDATE "+g.one("books", "ONLY books", "public.books AS b")+" SET late = "+g.pgInt(nil)+g.maybe(50, " WHERE "+g.pgBool(nil)),
		"DELETE FROM "+g.one("loans", "ONLY loans")+g.maybe(50, " WHERE "+g.pgBool(nil)),
		"MERGE INTO books b USING loans l ON b.id = l.book_id WHEN MATCHED THEN DO NOTHING",
		"CREATE "+g.one("TABLE made AS "+g.pgSelect(true), "TEMP TABLE made (a int)", "VIEW v AS "+g.pgSelect(true), "SEQUENCE s2", "INDEX ON books (late)", "FUNCTION f() RETURNS int LANGUAGE sql AS 'select 1; select 2'"),
		"DROP "+g.one("TABLE", "VIEW IF EXISTS", "SEQUENCE")+" made", "ALTER TABLE books ADD z int", "TRUNCATE books", "COPY books FROM STDIN", "COPY books TO '"+g.Dir+"/w'", "GRANT SELECT ON books TO app", "COMMENT ON TABLE books IS 'x'",
		"REFRESH MATERIALIZED VIEW v", "VACUUM books", "ANALYZE", "ANALYZE books", "REINDEX TABLE books", "CLUSTER", "CALL p_write(1)", "DO $$ BEGIN PERFORM 1; END $$", "LOCK TABLE books", "NOTIFY c", "SECURITY LABEL ON TABLE books IS 'x'", "REASSIGN OWNED BY app TO admin",
		"SELECT 1 INTO made", "SELECT id INTO TEMP made FROM books", "WITH w AS (DELETE FROM loans RETURNING 1) SELECT * FROM w")
}

func (g *Generator) pgSession() string {
	return g.one(
		"SET "+g.one("", "SESSION ", "LOCAL ")+g.one("app.x = 1", "timezone = 'UTC'", "TIME ZONE 'UTC'", "search_path TO public", "work_mem = '5MB'", "ROLE app", "TRANSACTION READ WRITE", "\"app.x\" TO 'y'", "SCHEMA 'public'", "NAMES 'UTF8'"),
		"RESET "+g.one("ALL", "timezone", "ROLE"), "DISCARD "+g.one("ALL", "PLANS", "TEMP"), "BEGIN", "START TRANSACTION READ WRITE", "COMMIT", "ROLLBACK", "END", "ABORT", "SAVEPOINT s", "RELEASE s", "PREPARE p AS "+g.pgSelect(true), "EXECUTE p", "DEALLOCATE ALL",
		"DECLARE c CURSOR WITH HOLD FOR "+g.pgSelect(false), "FETCH c", "MOVE c", "CLOSE c", "LISTEN c", "UNLISTEN *", "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", "SET CONSTRAINTS ALL DEFERRED", "PREPARE TRANSACTION 'x'", "COMMIT PREPARED 'x'")
}

// pgDanger are statements that are never run.
func (g *Generator) pgDanger() string {
	g.danger = true
	return g.one("SELECT pg_terminate_backend(pid) FROM pg_stat_activity", "SELECT pg_catalog.\"pg_terminate_backend\"(1)", "SELECT pg_promote()", "SELECT pg_reload_conf()", "CHECKPOINT", "LOAD 'auto_explain'", "ALTER SYSTEM SET work_mem = '5MB'",
		"SELECT pg_rotate_logfile()", "SELECT pg_cancel_backend(1)", "SELECT pg_file_unlink('x')", "SELECT lo_export(1, '/tmp/x')", "SELECT dblink_exec('', 'DROP TABLE books')", "DROP DATABASE app", "SELECT pg_wal_replay_pause()", "COPY books TO PROGRAM 'kill 1'", "SELECT heap_force_kill('books'::regclass, ARRAY['(0,1)']::tid[])", "DROP OWNED BY admin")
}
