package difftest

import (
	"strings"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// mysqlRelations are those of the scratch database.
var mysqlRelations = []relation{
	{name: "books", ints: []string{"id", "copies", "late"}, texts: []string{"title"}, dates: []string{"returned_at"}},
	{name: "members", ints: []string{"id"}, texts: []string{"name"}},
	{name: "loans", ints: []string{"id", "book_id", "member_id", "late"}, dates: []string{"due", "returned_at"}},
	{name: "overdue", ints: []string{"id"}},
	{name: "book_audit", ints: []string{"`update`", "`lock`"}},
	{name: "`lock`", ints: []string{"`select`", "`into`"}},
	{name: "counters", ints: []string{"nextval", "lastval"}},
	{name: "app.books", ints: []string{"id", "copies"}, texts: []string{"title"}},
	{name: "`app`.`books`", ints: []string{"id", "`copies`"}, texts: []string{"`title`"}},
	{name: "t", ints: []string{"id", "a", "nextval"}, texts: []string{"b"}},
	{name: "information_schema.schemata", texts: []string{"schema_name"}},
}

func (g *Generator) maria() bool { return g.d == classify.MariaDB }

// mysql returns a statement, and whether no classifier may call it a read.
func (g *Generator) mysql() (text string, writes bool) {
	switch n := g.r.IntN(100); {
	case n < 62:
		return g.myQuery(), false
	case n < 66:
		return g.one("EXPLAIN ", "EXPLAIN ", "DESC ", "DESCRIBE ", "EXPLAIN EXTENDED ", "EXPLAIN PARTITIONS ", "EXPLAIN FORMAT=JSON ") + g.myExplained(), false
	case n < 68:
		return g.one("DESC books", "DESCRIBE books title", "EXPLAIN books", "DESC app.loans '%id'", "DESC books 'title'", "EXPLAIN `lock`"), false
	case n < 72:
		return "SHOW " + g.one("TABLES", "FULL COLUMNS FROM books", "FIELDS IN loans", "INDEX FROM books", "KEYS FROM books IN app", "CREATE TABLE books", "CREATE VIEW overdue", "DATABASES", "TRIGGERS", "GRANTS", "TABLE STATUS LIKE 'b%'", "SESSION STATUS LIKE 'Com%'", "VARIABLES LIKE 'a%'", "PROCESSLIST",
			"WARNINGS", "ERRORS LIMIT 1", "COUNT(*) WARNINGS", "TABLES WHERE "+g.myBool(nil), "COLUMNS FROM books WHERE "+g.myBool(nil), "MASTER STATUS", "SLAVE STATUS", "CHARACTER SET", "COLLATION LIKE 'utf8%'", "EVENTS", "PROCEDURE STATUS", "FUNCTION STATUS WHERE "+g.myBool(nil), "ENGINES", "PRIVILEGES", "OPEN TABLES", "CREATE DATABASE app", "DATABASES WHERE GET_LOCK('l1', 0)", "TABLES LIKE 'x' ; SELECT 1"), false
	case n < 76 && g.maria():
		return g.one("ANALYZE ", "ANALYZE FORMAT=JSON ", "SET STATEMENT max_statement_time = 1 FOR ", "SET STATEMENT sort_buffer_size=100000, join_buffer_size=100000 FOR ") + g.myExplained(), false
	case n < 79:
		return g.myQuery() + ";" + g.one(g.myQuery(), g.myQuery(), g.myWrite(), g.mySession(), "COMMIT"), false
	case n < 88:
		return g.myWrite(), true
	case n < 91:
		return g.myDanger(), true
	default:
		return g.mySession(), true
	}
}

func (g *Generator) myExplained() string {
	if g.chance(75) {
		return g.myQuery()
	}
	return g.myWrite()
}

func (g *Generator) myQuery() string {
	g.depth++
	defer g.up()
	var with string
	if g.maria() && g.chance(15) {
		with = "WITH " + g.maybe(20, "RECURSIVE ") + g.one("w", "`update`", "share", "`into`") + " AS " + paren(g.mySelect(true)) + gap + " "
	}
	switch n := g.r.IntN(20); {
	case n == 0 && g.maria():
		return with + "VALUES " + paren(g.myInt(nil)+","+gap+g.myText(nil)) + gap + "," + gap + paren(g.myInt(nil)+", "+g.myText(nil))
	case n == 1:
		return with + paren(g.mySelect(true))
	case n < 4:
		return with + "SELECT " + g.myInt(nil) + g.one(" UNION ", " UNION ALL ", " UNION DISTINCT ") + g.one("SELECT "+g.myInt(nil), "SELECT id FROM books", paren("SELECT "+g.myInt(nil))) + g.maybe(20, " ORDER BY 1")
	}
	return with + g.mySelect(true)
}

func (g *Generator) myFrom() (string, scope) {
	if g.chance(18) {
		return g.maybe(15, " FROM DUAL"), nil
	}
	aliases := []string{"a", "share", "x", "no", "nextval", "`for`", "`update`", "temp", "value", "`into`"}
	g.r.Shuffle(len(aliases), func(i, j int) { aliases[i], aliases[j] = aliases[j], aliases[i] })
	rel := mysqlRelations[g.r.IntN(len(mysqlRelations))]
	rel.alias = aliases[0]
	text := " FROM " + rel.name + g.one(" AS ", " ") + rel.alias
	if rel.name == "books" && g.chance(15) {
		text += g.one(" USE INDEX ", " FORCE INDEX FOR ORDER BY ", " IGNORE KEY FOR JOIN ", " USE INDEX FOR GROUP BY ") + "(i_title)"
	}
	s := scope{rel}
	for i := 1; i < 3 && g.chance(30); i++ {
		rel := mysqlRelations[g.r.IntN(10)]
		rel.alias = aliases[i]
		table := rel.name + g.one(" AS ", " ") + rel.alias
		if g.chance(25) {
			rel.ints, rel.texts, rel.dates = []string{"c1"}, []string{"c2"}, nil
			table = paren("SELECT "+g.myInt(nil)+" AS c1, "+g.myText(nil)+" AS c2"+g.one("", " FROM members", " FROM books WHERE id = 1")) + " AS " + rel.alias
		}
		switch g.r.IntN(7) {
		case 0:
			text += "," + gap + table
		case 1:
			text += g.one(" CROSS JOIN ", " STRAIGHT_JOIN ") + table
		default:
			on := " ON TRUE"
			if len(rel.ints) > 0 && len(s[0].ints) > 0 {
				on = " ON " + s[0].alias + "." + s[0].ints[0] + " = " + rel.alias + "." + rel.ints[0]
			}
			text += g.one(" JOIN ", " LEFT JOIN ", " INNER JOIN ", " RIGHT OUTER JOIN ") + table + on
		}
		s = append(s, rel)
	}
	return text, s
}

func (g *Generator) mySelect(tail bool) string {
	if g.deep() && g.depth > 4 {
		g.up()
		return "SELECT " + g.one("1", "id FROM books", "COUNT(*) FROM loans")
	}
	defer g.up()
	from, s := g.myFrom()
	grouped := s != nil && g.chance(12)
	var items, key string
	if grouped {
		key = g.myInt(s)
		items = g.one("COUNT(*)", "SUM(1)", "GROUP_CONCAT('x' ORDER BY 1 SEPARATOR ';')", "COUNT(DISTINCT 1)", "MAX(1)", "STD(1)") + g.maybe(40, " AS "+g.myLabel())
	} else {
		items = g.list(3, func() string { return g.myAny(s) + g.maybe(30, g.one(" AS ", " ")+g.myLabel()) })
	}
	text := "SELECT " + g.one("", "", "", "", "", "ALL ", "DISTINCT ", "SQL_NO_CACHE ", "HIGH_PRIORITY ", "STRAIGHT_JOIN ", "SQL_SMALL_RESULT ", "SQL_BUFFER_RESULT ") + g.maybe(2, "SQL_CALC_FOUND_ROWS ") + items
	if g.chance(2) {
		text += g.myInto()
	}
	text += from
	if s != nil && g.chance(45) {
		text += " WHERE " + g.myBool(s)
		if g.chance(4) {
			// A number or a literal ends where it ends, blank or not.
			return text + " AND 1 < " + g.one("1.5", "'2'", "x'3A'", ".5", "2e0", "b'1'", "(2)", "0x1F", "2", "3.", "4.e1") + g.one("FOR UPDATE", "LOCK IN SHARE MODE", "LIMIT 1", "ORDER BY 1")
		}
	}
	if grouped {
		text += " GROUP BY " + key + g.maybe(20, " WITH ROLLUP") + g.maybe(20, " HAVING COUNT(*) > 0")
	}
	if tail {
		text += g.one("", "", "", " ORDER BY 1", " ORDER BY NULL", " ORDER BY 1 DESC") + g.one("", "", "", "", " LIMIT 3", " LIMIT 1, 2", " LIMIT 2 OFFSET 0")
		if g.chance(5) {
			text += g.myLock()
		}
		if g.chance(2) {
			text += g.myInto()
		}
	}
	return text
}

func (g *Generator) myLock() string {
	text := g.one(" FOR UPDATE", " LOCK IN SHARE MODE", " FOR UPDATE NOWAIT", " FOR UPDATE SKIP LOCKED", " LOCK IN SHARE MODE WAIT 1")
	if g.chance(25) {
		text = " " + g.executable(text[1:])
	}
	return text
}

// executable hides a text in a comment that some servers run.
func (g *Generator) executable(text string) string {
	if g.chance(10) {
		return g.one("/*!50000 /* x */ "+text+" */", "/*! "+text+" /*! */ */", "/*!50000 /*!50000 "+text+" */ */", "/*! -- */\n "+text+" */")
	}
	return g.one("/*! ", "/*!50000 ", "/*!50600 ", "/*!99999 ", "/*!100100 ", "/*M! ", "/*M!100000 ", "/*!50503 ", "/*!101199 ", "/*!80000 ", "/*!") + text + " */"
}

func (g *Generator) myInto() string {
	return " INTO " + g.one("@v1", "@`v2`", "@'v3'", "OUTFILE '"+g.Dir+"/out"+g.number()+"'", "DUMPFILE '"+g.Dir+"/dump"+g.number()+"'")
}

func (g *Generator) myLabel() string {
	return g.one("b1", "`update`", "`for update`", "share", "`into`", "nextval", "'label'", "`x y`", "`a``b`", "`get_lock(`", "value", "no")
}

func (g *Generator) myAny(s scope) string {
	switch g.r.IntN(9) {
	case 0, 1, 2:
		return g.myInt(s)
	case 3, 4, 5:
		return g.myText(s)
	case 6:
		return g.myBool(s)
	case 7:
		return g.myDate(s)
	}
	return g.myOdd()
}

func (g *Generator) myInt(s scope) string {
	if g.deep() {
		defer g.up()
		if c := g.column(s, func(r relation) []string { return r.ints }); c != "" && g.chance(60) {
			return c
		}
		return g.one("1", "0", "-1", "42", "CAST('3' AS SIGNED)", "0x1F", "b'101'", "x'0A'", "1--1", "+3", "TRUE", "0b11", "1e0", "- -1", "!0", "~0")
	}
	defer g.up()
	switch g.r.IntN(24) {
	case 0:
		return paren(g.myInt(s) + g.one("+", " - ", gap+"*"+gap, " DIV ", " % ", " MOD ", "|", " ^ ") + g.myInt(s))
	case 1:
		return g.call(g.one("ABS", "SIGN", "CEIL", "floor", "BIT_COUNT", "ROUND"), g.myInt(s))
	case 2:
		return g.call(g.one("LENGTH", "CHAR_LENGTH", "ASCII", "CRC32", "ORD", "bit_length"), g.myText(s))
	case 3:
		return g.call(g.one("COALESCE", "GREATEST", "LEAST", "NULLIF", "IFNULL"), g.myInt(s), g.myInt(s))
	case 4:
		return "CASE WHEN " + g.myBool(s) + " THEN " + g.myInt(s) + " ELSE " + g.myInt(s) + " END"
	case 5:
		return paren("SELECT " + g.one("COUNT(*)", "MAX(id)", "MIN(id)") + " FROM " + g.one("books", "loans", "members") + g.maybe(6, g.myLock()))
	case 6:
		return "EXTRACT(" + g.one("YEAR", "MONTH", "DAY_HOUR") + " FROM " + g.myDate(s) + ")"
	case 7:
		return "LOCATE(" + g.myText(nil) + "," + g.myText(s) + ")"
	case 8:
		return g.call("IF", g.myBool(s), g.myInt(s), g.myInt(s))
	case 9:
		return "CAST(" + g.myInt(s) + " AS " + g.one("SIGNED", "UNSIGNED", "DECIMAL(10,2)", "SIGNED INTEGER") + ")"
	case 10:
		return g.call("FIELD", "'a'", "'b'", g.myText(s))
	case 11:
		return g.call("MOD", g.myInt(s), "7")
	case 12:
		return g.call("INTERVAL", "2", "1", g.myInt(s))
	case 13, 14:
		return g.myDenied()
	case 15:
		return g.call("YEAR", g.myDate(s))
	default:
		if c := g.column(s, func(r relation) []string { return r.ints }); c != "" {
			return c
		}
		return g.number()
	}
}

// myDenied are calls and variables that no read may hold.
func (g *Generator) myDenied() string {
	if g.chance(60) {
		return g.number()
	}
	odd := func(name string) string { // all of them are called with blanks in between
		return g.one(name, name, strings.ToLower(name), "`"+strings.ToLower(name)+"`") + gap
	}
	var text string
	switch g.r.IntN(15) {
	case 0, 1:
		text = odd("GET_LOCK") + "('l1', 0)"
	case 2:
		text = odd("RELEASE_LOCK") + "('l1')"
	case 3:
		text = g.one("@v1 := 1", "(@v1:=@v1+1)", "@`v2` := 5", "@'v3' := 2", "@\"v4\" := 1", "@v1", "@v.x$1 := 2")
	case 4:
		text = odd("LAST_INSERT_ID") + "(5)"
	case 5:
		text = g.one("@@identity", "@@last_insert_id", "@@session.timestamp", "@@version", "@@GLOBAL . max_connections", "@@`sql_mode`", "@@in_transaction")
	case 6:
		text = "LENGTH(" + odd("LOAD_FILE") + "('" + g.Dir + "/x'))"
	case 7:
		text = g.one("f_write(1)", "app.f_write (1)", "`f_write`(1)", "`app` . `f_write`(1)", "f_pure(1)")
	case 8:
		text = g.one("FOUND_ROWS()", "ROW_COUNT()", "CONNECTION_ID()", "IS_USED_LOCK('l1')", "IS_FREE_LOCK('l2')")
	case 9:
		text = "{fn get_lock('l1', 0)}"
	default:
		if !g.maria() {
			return g.number()
		}
		text = g.one("NEXTVAL(s_fine)", "NEXT VALUE FOR s_fine", "PREVIOUS VALUE FOR s_fine", "SETVAL(s_fine, 5)", "LASTVAL(s_fine)", "NEXTVAL(app.s_fine)", "NEXT"+gap+" VALUE"+gap+" FOR app.s_fine", "s_fine.nextval", "`s_fine`.`nextval`", "nextval (s_fine)", "s_fine.currval", "RELEASE_ALL_LOCKS()")
	}
	if g.chance(15) {
		return "1 + " + g.executable("0 + "+text+" +") + " 1"
	}
	return text
}

func (g *Generator) myText(s scope) string {
	if g.deep() {
		defer g.up()
		if c := g.column(s, func(r relation) []string { return r.texts }); c != "" && g.chance(55) {
			return c
		}
		return g.myString()
	}
	defer g.up()
	switch g.r.IntN(18) {
	case 0:
		return g.call(g.one("LOWER", "upper", "REVERSE", "MD5", "QUOTE", "ltrim", "HEX", "SHA1", "SOUNDEX", "TO_BASE64", "lcase"), g.myText(s))
	case 1:
		return g.call("CONCAT", g.myText(s), g.myText(s))
	case 2:
		return "SUBSTRING(" + g.myText(s) + g.one(" FROM 1 FOR 2", " FROM 2", ",1,2", ", -2") + ")"
	case 3:
		return g.call("REPLACE", g.myText(s), g.myString(), g.myString())
	case 4:
		return g.call("INSERT", g.myText(s), "1", "1", "'z'")
	case 5:
		return "TRIM(" + g.one("BOTH 'x' FROM ", "LEADING 'x' FROM ", "TRAILING FROM ", "'y' FROM ", "") + g.myText(s) + ")"
	case 6:
		return g.call("CONCAT_WS", "','", g.myText(s), g.myInt(s))
	case 7:
		return g.call("LPAD", g.myText(s), "5", "'x'")
	case 8:
		return g.call("LEFT", g.myText(s), "2")
	case 9:
		return "CONVERT(" + g.myText(s) + g.one(" USING utf8mb4", ", CHAR(5)", ", CHAR CHARACTER SET utf8") + ")"
	case 10:
		return "CAST(" + g.myInt(s) + " AS " + g.one("CHAR", "CHAR(5)", "BINARY(3)") + ")"
	case 11:
		return g.call("DATE_FORMAT", g.myDate(s), "'%Y'")
	case 12:
		return paren("SELECT GROUP_CONCAT(name) FROM members" + g.maybe(5, g.myLock()))
	case 13:
		return g.one("CURRENT_USER", "USER()", "VERSION()", "DATABASE()", "SCHEMA()", "UUID()", "RAND()", "CHARSET('a')", "COLLATION('a')", "SESSION_USER()", "CURRENT_USER()")
	case 14:
		return paren(g.myText(s) + " COLLATE utf8mb4_bin")
	default:
		if c := g.column(s, func(r relation) []string { return r.texts }); c != "" {
			return c
		}
		return g.myString()
	}
}

func (g *Generator) myString() string {
	if g.chance(3) {
		// In some character sets, the backslash is the half of a character.
		return literal(g.one("'\xbf\\', '", "'\xbf\\\\'", "'\x95\\', 'x', '", "'\xbf\\' ', '", "\"\xbf\\\", \"", "'\x95\\''", "'\xbf\\'"))
	}
	return literal(g.one(
		`'x'`, `''`, `'it''s'`, `'a\'b'`, `"a\"b"`, `"x"`, `"it's"`, `'"'`, `"; DELETE FROM books; -- "`, `'get_lock('`, `'FOR UPDATE'`, `'\\'`, `'a\\''b'`, `N'x'`, `_utf8'x'`, `_utf8mb4 'y'`, `_latin1"z"`, `'two' `+"\n"+` 'parts'`, `"two" 'parts'`,
		`'/* '`, `' */'`, `'-- '`, `'#'`, `'@v1 := 1'`, `"@v1:=1"`, `'é漢'`, `'\n\0\Z'`, `_binary'x'`, `x'414243'`, `'a""b'`, `"a''b"`, `"a""b"`, `'?'`, `'\" '`, `"\' "`, `'/*! INTO @v1 */'`, "'`'"))
}

func (g *Generator) myBool(s scope) string {
	if g.deep() {
		defer g.up()
		return g.one("TRUE", "FALSE", "1 = 1", "NULL IS NULL", "NOT FALSE", "'a' = 'a'", "TRUE IS NOT UNKNOWN", "1 < 2", "1 <=> 1")
	}
	defer g.up()
	switch g.r.IntN(14) {
	case 0:
		return paren(g.myBool(s) + g.one(" AND ", " OR ", " XOR ", " && ") + g.myBool(s))
	case 1:
		return "NOT " + paren(g.myBool(s))
	case 2:
		return "EXISTS " + paren(g.mySelect(true))
	case 3:
		return g.myInt(s) + g.one(" IN ", " NOT IN ") + g.one("(1, 2)", paren(g.myInt(s)), "(SELECT id FROM books)")
	case 4:
		return g.myText(s) + g.one(" LIKE ", " NOT LIKE ") + g.one("'a%'", "('b%')", "'|_x' ESCAPE '|'")
	case 5:
		return g.myInt(s) + " BETWEEN 0 AND " + g.number()
	case 6:
		return g.myText(s) + g.one(" REGEXP ", " RLIKE ", " SOUNDS LIKE ") + "'a'"
	case 7:
		return g.myInt(s) + " = ANY (SELECT id FROM loans)"
	case 8:
		return g.myDate(s) + g.one(" < ", " >= ") + g.myDate(s)
	case 9:
		return g.myText(s) + g.one(" IS NULL", " IS NOT NULL")
	case 10:
		return "(" + g.myInt(s) + ", 1)" + g.one(" = ", " <> ") + "(1, " + g.myInt(s) + ")"
	default:
		return g.myInt(s) + gap + g.one("=", "<", ">", "<=", "<>", "!=", ">=", "<=>") + gap + g.myInt(s)
	}
}

func (g *Generator) myDate(s scope) string {
	if c := g.column(s, func(r relation) []string { return r.dates }); c != "" && g.chance(50) {
		return c
	}
	return g.one("DATE '2024-02-29'", "CURRENT_DATE", "NOW()", "CURDATE()", "CURRENT_TIMESTAMP(0)", "DATE_ADD('2024-01-01', INTERVAL 1 DAY)", "DATE('2024-01-01')", "'2024-01-01' + INTERVAL 1 MONTH", "SYSDATE()", "FROM_UNIXTIME(1)", "UTC_TIMESTAMP", "TIMESTAMP '2024-01-01 00:00:00'", "LAST_DAY(NOW())", "{d '2024-01-01'}", "STR_TO_DATE('2024','%Y')", "TIMESTAMPADD(DAY, 1, '2024-01-01')")
}

func (g *Generator) myOdd() string {
	common := []string{
		"NULL", "\\N", "1.5e3", ".5", "1e-3", "PI()", "SLEEP(0)", "BENCHMARK(2, 1 + 1)", "UUID_SHORT()", "INET_ATON('127.0.0.1')", "ELT(1, 'a')", "EXTRACTVALUE('<a/>', '/a')", "UPDATEXML('<a/>', '/a', 'b')", "BINARY 'a'", "COMPRESS('a')", "AES_ENCRYPT('a','b')", "PASSWORD('a')",
		"ROW(1,2) = ROW(1,2)", "1 << 2", "MATCH(title) AGAINST ('a' IN BOOLEAN MODE)", "POINT(1,2)", "DEFAULT(id)", "VALUES(id)", "MASTER_POS_WAIT('x', 1, 1)", "FORMAT(1.5, 1)", "EXPORT_SET(5,'Y','N',',',4)", "MAKE_SET(1,'a')", "CONVERT_TZ(NOW(), '+00:00', '+01:00')", "GET_FORMAT(DATE, 'USA')", "(1, 2) IN ((1, 2))", "TIMESTAMPDIFF(DAY, NOW(), NOW())", "SUBDATE(NOW(), 1)", "@@autocommit",
	}
	if g.maria() && g.chance(50) {
		return g.one("ROW_NUMBER() OVER ()", "COUNT(*) OVER (PARTITION BY 1 ORDER BY 1)", "JSON_OBJECT('a', 1)", "JSON_EXTRACT('{\"a\":1}', '$.a')", "JSON_SET('{}', '$.a', 1)", "REGEXP_REPLACE('a','b','c')", "SUM(1) OVER (ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)", "COLUMN_CREATE('a', 1)", "NVL(1, 2)", "CAST('a' AS VARCHAR(3))", "TO_CHAR(NOW())", "SHA2('a', 256)", "MEDIAN(1) OVER ()", "DECODE_ORACLE(1,1,2)", "NATURAL_SORT_KEY('a1')", "CHR(65)", "UUID() = ''", "SYS_GUID()", "FORMAT_PICO_TIME(1)", "MASTER_GTID_WAIT('0-1-1', 0)", "BINLOG_GTID_POS('x', 4)")
	}
	return common[g.r.IntN(len(common))]
}

func (g *Generator) myWrite() string {
	texts := []string{
		"INSERT INTO books (id, title) " + g.one("VALUES (9, 'x')", g.mySelect(false)), "REPLACE INTO members VALUES (1, 'x')", "INSERT IGNORE INTO members SELECT 9, 'x'", "INSERT INTO books SET id = 9",
		"UPDATE books SET late = " + g.myInt(nil) + g.maybe(50, " WHERE "+g.myBool(nil)), "DELETE FROM loans" + g.maybe(50, " WHERE "+g.myBool(nil)), "DELETE b FROM books b JOIN loans l ON b.id = l.id",
		"CREATE TABLE made AS " + g.mySelect(false), "CREATE TEMPORARY TABLE made (a int)", "CREATE OR REPLACE VIEW v AS " + g.mySelect(false), "DROP TABLE IF EXISTS made", "ALTER TABLE books ADD z int", "TRUNCATE books", "RENAME TABLE books TO b2", "CREATE INDEX i ON books (late)",
		"LOAD DATA INFILE 'x' INTO TABLE books", "CALL p_write(1)", "DO GET_LOCK('l1', 0)", "LOCK TABLES books READ", "GRANT SELECT ON app.* TO app", "OPTIMIZE TABLE books", "ANALYZE TABLE books", "REPAIR TABLE books", "HANDLER books OPEN", "SELECT 1 INTO @v1", "SELECT 1 INTO OUTFILE '" + g.Dir + "/o'",
		"SELECT id FROM books FOR UPDATE", "SELECT id FROM books LOCK IN SHARE MODE", "SELECT @v1 := 1",
	}
	if g.maria() {
		texts = append(texts, "INSERT INTO members VALUES (9, 'x') RETURNING id", "DELETE FROM loans RETURNING id", "CREATE SEQUENCE s2", "SELECT NEXT VALUE FOR s_fine", "EXECUTE IMMEDIATE 'SELECT 1'", "BEGIN NOT ATOMIC SELECT 1; END", "SET STATEMENT max_statement_time = 1 FOR DELETE FROM loans", "ANALYZE DELETE FROM loans", "FLUSH TABLES", "DELETE HISTORY FROM books_v")
	}
	return g.one(texts...)
}

func (g *Generator) mySession() string {
	return g.one("SET @v1 = 1", "SET @`v2` := 2, @v1 = 3", "SET SESSION sql_mode = ''", "SET sql_mode='ANSI_QUOTES'", "SET NAMES utf8", "SET CHARACTER SET latin1", "SET autocommit = 0", "SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "SET @@session.time_zone = '+01:00'", "SET LOCAL wait_timeout = 100", "SET timestamp = 1",
		"SET last_insert_id = 7", "USE mysql", "USE `app`", "BEGIN", "BEGIN WORK", "START TRANSACTION", "START TRANSACTION WITH CONSISTENT SNAPSHOT", "COMMIT", "ROLLBACK", "SAVEPOINT s", "RELEASE SAVEPOINT s", "ROLLBACK TO s", "XA START 'x'", "XA RECOVER", "PREPARE p FROM 'SELECT 1'", "EXECUTE p", "DEALLOCATE PREPARE p", "LOCK TABLES books WRITE", "UNLOCK TABLES",
		"SET PASSWORD = ''", "SET ROLE NONE", "DO SLEEP(0), @v1 := 1", "KILL QUERY 0", "HANDLER books READ FIRST", "SIGNAL SQLSTATE '45000'")
}

// myDanger are statements that are never run.
func (g *Generator) myDanger() string {
	g.danger = true
	return g.one("SHUTDOWN", "KILL 1", "KILL CONNECTION 1", "RESET MASTER", "FLUSH LOGS", "FLUSH TABLES WITH READ LOCK", "SET GLOBAL read_only = 1", "STOP SLAVE", "RESET SLAVE ALL", "CHANGE MASTER TO MASTER_HOST='x'", "PURGE BINARY LOGS BEFORE NOW()", "DROP DATABASE app", "DROP USER admin", "INSTALL PLUGIN x SONAME 'x'",
		"SELECT LOAD_FILE('/etc/passwd')", "SELECT 1 INTO OUTFILE '/tmp/difftest'", "SET PERSIST max_connections = 5", "BINLOG ''")
}
