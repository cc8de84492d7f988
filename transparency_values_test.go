package replicated_test

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

// postgresValues are values of every type, each with the type's name.
var postgresValues = []struct{ typ, value string }{
	{"bool", "true"},
	{"smallint", "-32768"},
	{"int", "2147483647"},
	{"bigint", "-9223372036854775808"},
	{"oid", "4294967295"},
	{"real", "1.5"},
	{"double precision", "NaN"},
	{"double precision", "-Infinity"},
	{"double precision", "0.1"},
	{"numeric", "123456789012345678901234567890.123456789"},
	{"numeric(10,3)", "-0.120"},
	{"numeric(10,3)[]", "{1.5,NULL}"},
	{"money", "12.34"},
	{"text", "grüß \U0001f600 'x' \\n"},
	{"text", ""},
	{"varchar(10)", "ab"},
	{"char(5)", "ab"},
	{`"char"`, "x"},
	{"name", "ab"},
	{"bytea", `\x0001ff`},
	{"date", "2024-02-29"},
	{"date", "0044-03-15 BC"},
	{"time", "23:59:59.999999"},
	{"time", "24:00:00"},
	{"timetz", "12:00:00+05:30"},
	{"timestamp", "2024-02-29 12:34:56.789012"},
	{"timestamp", "infinity"},
	{"timestamptz", "2024-07-01 12:34:56+02"},
	{"timestamptz(0)", "1883-11-18 12:00:00+00"},
	{"interval", "1 year 2 days 03:04:05.678"},
	{"uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"},
	{"json", `{"a": [1, null]}`},
	{"jsonb", `{"b":2,"a":1}`},
	{"xml", "<a>1</a>"},
	{"inet", "192.168.0.1/24"},
	{"cidr", "2001:db8::/32"},
	{"macaddr", "08:00:2b:01:02:03"},
	{"macaddr8", "08:00:2b:01:02:03:04:05"},
	{"bit(4)", "1010"},
	{"bit varying(8)", "101"},
	{"point", "(1,2)"},
	{"line", "{1,2,3}"},
	{"lseg", "[(0,0),(1,1)]"},
	{"box", "(1,1),(0,0)"},
	{"path", "((0,0),(1,1))"},
	{"polygon", "((0,0),(1,1),(1,0))"},
	{"circle", "<(0,0),1>"},
	{"int4range", "[1,5)"},
	{"tstzrange", "empty"},
	{"numrange[]", `{"[1,2]"}`},
	{"tsvector", "a:1 b:2"},
	{"tsquery", "a & b"},
	{"int[]", "{1,NULL,3}"},
	{"text[]", `{"a","b c",NULL,"\"q\""}`},
	{"text[][]", "{{a,b},{c,d}}"},
	{"bytea[]", `{"\\x01"}`},
	{"regclass", "pg_class"},
	{"pg_lsn", "16/B374D848"},
	{"transparent_mood", "happy"},
	{"transparent_positive", "7"},
	{"transparent_pair", "(1,x)"},
	{"information_schema.sql_identifier", "x"},
}

var postgresTypes = []string{
	"DROP TABLE IF EXISTS transparent_types",
	"DROP TYPE IF EXISTS transparent_mood, transparent_pair",
	"DROP DOMAIN IF EXISTS transparent_positive",
	"CREATE TYPE transparent_mood AS ENUM ('sad', 'happy')",
	"CREATE TYPE transparent_pair AS (a int, b text)",
	"CREATE DOMAIN transparent_positive AS int CHECK (VALUE > 0)",
	"CREATE TABLE transparent_types (id int PRIMARY KEY, m transparent_mood, v varchar(7) NOT NULL, d numeric(8,2), at timestamptz, b bytea)",
	"INSERT INTO transparent_types VALUES (1, 'sad', 'a', 1.5, '2024-01-01 00:00:00+00', ''), (2, NULL, 'b', NULL, NULL, NULL)",
}

func TestTransparencyPostgresValues(t *testing.T) {
	postgresAlone(t, func(t *testing.T, c *replicatedtest.Cluster) {
		play := func(s *script) {
			for _, v := range postgresValues {
				s.query(s.db, fmt.Sprintf("SELECT CAST('%s' AS %s) AS v, CAST(NULL AS %[2]s) AS n", quoted(v.value), v.typ))
				s.query(s.db, fmt.Sprintf("SELECT CAST($1 AS %s) AS v", v.typ), v.value)
				s.query(s.db, fmt.Sprintf("SELECT CAST($1 AS %s) AS v", v.typ), nil)
			}
			s.query(s.db, "SELECT 1, 'unknown', NULL, ARRAY[]::int[], ROW(1, 'a', NULL), (SELECT 1 WHERE false)")
			s.query(s.db, "SELECT")
			s.query(s.db, "SELECT 1 WHERE false")
			s.query(s.db, "VALUES (1, 'a'), (2, 'b')")
			s.query(s.db, "TABLE transparent_types")
			s.query(s.db, "SELECT * FROM transparent_types WHERE id >= $1 ORDER BY id", 1)
			s.query(s.db, "SELECT pg_typeof($1), pg_typeof($2::text)", 1, "a")
			s.query(s.db, "SELECT 1 AS a, 2 AS a, 3 AS \"?column?\"")
		}
		for _, keys := range [][]string{nil, {"binary_parameters=yes"}, {"TimeZone=Asia/Tokyo", "extra_float_digits=0"}} {
			t.Run(fmt.Sprint(keys), func(t *testing.T) { transparent(t, c, postgresTypes, play, keys...) })
		}
	})
}

// quoted doubles quotes, for a literal.
func quoted(s string) string {
	out := ""
	for _, r := range s {
		if r == '\'' {
			out += "'"
		}
		out += string(r)
	}
	return out
}

// mysqlTypes is a table with a column of every type: least values, greatest
// values, NULLs, and what only old modes let in.
func mysqlTypes(e replicatedtest.Engine) []string {
	texts := []string{
		"DROP TABLE IF EXISTS transparent_types",
		`CREATE TABLE transparent_types (id int PRIMARY KEY,
			t tinyint, tu tinyint unsigned, b1 tinyint(1), s smallint, su smallint unsigned, m mediumint, mu mediumint unsigned,
			i int, iu int unsigned NOT NULL, l bigint, lu bigint unsigned, z int(6) zerofill,
			de decimal(20,5), d0 decimal(5,0) unsigned NOT NULL, f float, d double, bi bit(1), bl bit(33),
			da date, dt datetime, d6 datetime(6), ts timestamp NULL, t3 timestamp(3) NULL, ti time, t6 time(6), y year,
			c char(5), v varchar(20), vb varbinary(20), bn binary(4), tt tinytext, tx text, mt mediumtext, lt longtext,
			tb tinyblob, bb blob, mb mediumblob, lb longblob, en enum('a','b'), se set('x','y','z'),
			vl varchar(20) CHARACTER SET latin1, nn varchar(3) NOT NULL DEFAULT '', g geometry) DEFAULT CHARSET=utf8mb4`,
		"SET SESSION sql_mode = ''",
		`INSERT INTO transparent_types VALUES (1, -128, 0, 0, -32768, 0, -8388608, 0, -2147483648, 0, -9223372036854775808, 0, 0,
			-123456789012345.12345, 0, -1.5e10, -1.7976931348623157e308, b'0', b'0',
			'1000-01-01', '1000-01-01 00:00:00', '1000-01-01 00:00:00.000001', '1970-01-02 00:00:01', '1970-01-02 00:00:01.001', '-838:59:59', '-00:00:01.5', 1901,
			'', '', '', '', '', '', '', '', '', '', '', '', 'a', '', '', '', Point(1, 2))`,
		`INSERT INTO transparent_types VALUES (2, 127, 255, 1, 32767, 65535, 8388607, 16777215, 2147483647, 4294967295, 9223372036854775807, 18446744073709551615, 42,
			99999.99999, 99999, 3.25, 0.1, b'1', b'111111111111111111111111111111111',
			'9999-12-31', '9999-12-31 23:59:59', '9999-12-31 23:59:59.999999', '2037-12-31 23:59:59', '2037-12-31 23:59:59.999', '838:59:59', '23:59:59.999999', 2155,
			'ab   ', 'grüß 😀', x'00ff27', x'01', 'a', 'b', 'c', 'd', x'00', x'01', x'02', x'03', 'b', 'x,z', 'é', 'abc', Point(3, 4))`,
		"INSERT INTO transparent_types (id, iu, d0) VALUES (3, 0, 0)",
		"INSERT INTO transparent_types (id, iu, d0, da, dt, ts, en, v) VALUES (4, 0, 0, '0000-00-00', '2024-00-00', '0000-00-00', 'wrong', 'longer than twenty characters')",
	}
	if e == replicatedtest.MariaDB {
		texts = append(texts,
			"ALTER TABLE transparent_types ADD j json, ADD u uuid, ADD i6 inet6, ADD vi int AS (i + 1) VIRTUAL",
			`UPDATE transparent_types SET j = '{"a": 1}', u = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', i6 = '::1' WHERE id = 2`)
	}
	return texts
}

func TestTransparencyMySQLValues(t *testing.T) {
	mysqlAlone(t, func(t *testing.T, c *replicatedtest.Cluster) {
		play := func(s *script) {
			s.query(s.db, "SELECT * FROM transparent_types ORDER BY id")
			s.query(s.db, "SELECT * FROM transparent_types WHERE id >= ? ORDER BY id", 1)
			s.query(s.db, "SELECT 1, -1, 18446744073709551615, 1.50, 1e3, 'a', x'41', NULL, true, 1 IS NULL, DATE '2024-02-29'")
			s.query(s.db, "SELECT ?, ?, ?, ?", nil, uint64(1<<64-1), "a", []byte("b"))
			s.query(s.db, "SELECT COUNT(*), SUM(i), AVG(i), MAX(lu), GROUP_CONCAT(id), MIN(dt) FROM transparent_types")
			s.query(s.db, "SELECT id FROM transparent_types WHERE 1 = 0")
			s.query(s.db, "SELECT id AS a, id AS a, t.id FROM transparent_types t WHERE id = 1")
			s.query(s.db, "SELECT CAST(lu AS signed) FROM transparent_types WHERE id = 2")
			s.query(s.db, "SELECT UNIX_TIMESTAMP(t3) FROM transparent_types ORDER BY id")
			s.query(s.db, "SHOW COLUMNS FROM transparent_types")
			s.query(s.db, "EXPLAIN SELECT id FROM transparent_types WHERE id = 1")
			s.query(s.db, "DESCRIBE transparent_types id")
		}
		for _, keys := range [][]string{
			nil,
			{"parseTime=true", "loc=America%2FNew_York"},
			{"interpolateParams=true"},
			{"charset=latin1", "columnsWithAlias=true", "time_zone=%27%2B05%3A30%27"},
		} {
			t.Run(fmt.Sprint(keys), func(t *testing.T) { transparent(t, c, mysqlTypes(c.Engine()), play, keys...) })
		}
	})
}

// The memory behind RawBytes is the driver's: it is good until the next call.
func TestTransparencyRawBytes(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		transparent(t, c, plain(c.Engine()), func(s *script) {
			rows, err := s.db.QueryContext(s.ctx(), "SELECT id, name, n FROM transparent ORDER BY id")
			s.must(err)
			defer rows.Close()
			for rows.Next() {
				var id, name, n sql.RawBytes
				s.fail("scan", rows.Scan(&id, &name, &n))
				s.note("%s %s %s", show(id), show(name), show(n))
			}
			s.fail("rows", rows.Err())
			s.fail("close", rows.Close())
			s.fail("raw in a row", s.db.QueryRowContext(s.ctx(), "SELECT name FROM transparent").Scan(new(sql.RawBytes)))
		})
	})
}

// Reading into Go's types is database/sql's work, on the driver's values.
func TestTransparencyScanTypes(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		transparent(t, c, plain(c.Engine()), func(s *script) {
			row := func(text string) *sql.Row { return s.db.QueryRowContext(s.ctx(), text) }
			s.scan(row("SELECT id, name, n FROM transparent WHERE id = 1"), new(int64), new(string), new(int8))
			s.scan(row("SELECT id, name, n FROM transparent WHERE id = 3"), new(uint), new([]byte), new(sql.NullInt32))
			s.scan(row("SELECT n, n, n FROM transparent WHERE id = 3"), new(*int), new(sql.Null[int16]), new(any))
			s.scan(row("SELECT n FROM transparent WHERE id = 3"), new(int))
			s.scan(row("SELECT name FROM transparent WHERE id = 1"), new(int))
			s.scan(row("SELECT 300"), new(int8))
			s.scan(row("SELECT id, name FROM transparent WHERE id = 1"), new(int))
			s.scan(row("SELECT id FROM transparent WHERE id = 99"), new(int))
			s.scan(row("SELECT name FROM transparent WHERE id = 1"), new(bool))
			s.scan(row("SELECT 'true'"), new(bool))
			s.scan(row("SELECT 1.5"), new(float32))
			s.scan(row("SELECT '2024-02-29'"), new(sql.NullTime))
		})
	})
}

func TestTransparencyResultSets(t *testing.T) {
	postgresAlone(t, func(t *testing.T, c *replicatedtest.Cluster) {
		transparent(t, c, plain(c.Engine()), func(s *script) {
			s.query(s.db, "SELECT 1 AS a; SELECT 'x' AS b, 2.5 AS c; SELECT 3 WHERE false")
			s.query(s.db, "SELECT 1; SELECT 1/0; SELECT 2")
			s.query(s.db, "SELECT 1; UPDATE transparent SET n = 5 WHERE id = 1; SELECT n FROM transparent WHERE id = 1")
			s.query(s.db, "INSERT INTO transparent (name) VALUES ('multi') RETURNING id, name")
			s.query(s.db, "SELECT $1::int; SELECT 2", 1)
			s.query(s.db, ";")
			s.query(s.db, "")
			s.query(s.db, "-- nothing")
			s.exec(s.db, "UPDATE transparent SET n = 6; UPDATE transparent SET n = 7 WHERE id = 1")
			s.exec(s.db, "SELECT 1; SELECT 2")
			s.exec(s.db, "")
			s.wrote = true
			s.early("SELECT 1 AS a; SELECT 2 AS b; SELECT 3 AS c")
			s.query(s.db, "SELECT id, n FROM transparent ORDER BY id")
		})
	})
	mysqlAlone(t, func(t *testing.T, c *replicatedtest.Cluster) {
		setup := append(plain(c.Engine()),
			"DROP PROCEDURE IF EXISTS transparent_sets",
			`CREATE PROCEDURE transparent_sets(k int) BEGIN SELECT k AS a; SELECT name, n FROM transparent ORDER BY id; UPDATE transparent SET n = k WHERE id = 1; END`)
		play := func(s *script) {
			s.query(s.db, "SELECT 1 AS a; SELECT 'x' AS b, 2.5 AS c; SELECT 3 FROM transparent WHERE 1 = 0")
			s.query(s.db, "SELECT 1; SELECT missing FROM transparent; SELECT 2")
			s.query(s.db, "SELECT 1; UPDATE transparent SET n = 5 WHERE id = 1; SELECT n FROM transparent WHERE id = 1")
			s.query(s.db, "CALL transparent_sets(7)")
			s.query(s.db, "CALL transparent_sets(?)", 8)
			s.exec(s.db, "CALL transparent_sets(9)")
			s.query(s.db, "SELECT 1; SELECT ?", 1)
			s.query(s.db, ";")
			s.query(s.db, "")
			s.query(s.db, "-- nothing")
			s.exec(s.db, "UPDATE transparent SET n = 6; UPDATE transparent SET n = 7 WHERE id = 1")
			s.exec(s.db, "INSERT INTO transparent (name) VALUES ('four'); INSERT INTO transparent (name) VALUES ('five')")
			s.exec(s.db, "")
			s.wrote = true
			s.early("SELECT 1 AS a; SELECT 2 AS b; SELECT 3 AS c")
			s.query(s.db, "SELECT id, n FROM transparent ORDER BY id")
		}
		for _, keys := range [][]string{{"multiStatements=true"}, {"multiStatements=true", "interpolateParams=true"}, nil} {
			t.Run(fmt.Sprint(keys), func(t *testing.T) { transparent(t, c, setup, play, keys...) })
		}
	})
}

// early skips the rows of the first result set and leaves before the last.
func (s *script) early(text string) {
	s.settle()
	rows, err := s.db.QueryContext(s.ctx(), text)
	s.fail("query", err)
	if err != nil {
		return
	}
	s.note("next set %t", rows.NextResultSet())
	s.columns(rows)
	s.note("row %t", rows.Next())
	s.fail("rows", rows.Err())
	s.fail("close", rows.Close())
	s.note("after close: row %t, set %t", rows.Next(), rows.NextResultSet())
	_, err = rows.Columns()
	s.fail("columns after close", err)
}

func TestTransparencyEarlyCloseAndNesting(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		transparent(t, c, plain(c.Engine()), func(s *script) {
			many := "SELECT a.id, b.id, c.id FROM transparent a, transparent b, transparent c ORDER BY 1, 2, 3"
			for _, leave := range []int{0, 1, 5, 27} {
				rows, err := s.db.QueryContext(s.ctx(), many)
				s.must(err)
				n := 0
				for n < leave && rows.Next() {
					n++
				}
				s.fail(fmt.Sprintf("close after %d rows", n), rows.Close())
				s.fail("rows", rows.Err())
			}
			outer, err := s.db.QueryContext(s.ctx(), "SELECT id FROM transparent ORDER BY id")
			s.must(err)
			for outer.Next() {
				var id int
				s.must(outer.Scan(&id))
				text := "SELECT name, n FROM transparent WHERE id = " + placeholder(s.c.Engine(), 1)
				s.query(s.db, text, id)
				s.exec(s.db, "UPDATE transparent SET n = 10 WHERE id = "+placeholder(s.c.Engine(), 1), id)
			}
			s.fail("outer", outer.Err())
			s.fail("outer", outer.Close())
			s.query(s.db, "SELECT id, n FROM transparent ORDER BY id")
		})
	})
}
