package dialect_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/dialect"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// closure is a text, and what it touches in the end: what is read, behind > what
// is written, and … for everything.
type closure struct{ text, want string }

// checkClosures reads the schema over a connection of the given user and compares.
func checkClosures(t *testing.T, d *dialect.Dialect, driverName, dsn, own string, tests []closure) {
	t.Helper()
	conn := open(t, driverName, dsn)
	rows, err := d.Relations(testContext(t), conn)
	if err != nil {
		t.Fatal(err)
	}
	catalog, _, err := d.Catalog(testContext(t), conn, "")
	if err != nil {
		t.Fatal(err)
	}
	s := classify.NewSchema(d.Kind, rows, classify.NewDefinitions(d.Kind, catalog, nil, nil))
	for _, tt := range tests {
		r := s.Touches(tt.text)
		got := "…"
		if !r.All {
			got = strings.ReplaceAll(names(r.Reads)+" > "+names(r.Writes), own+".", "")
		}
		if got = strings.TrimSpace(strings.TrimSuffix(got, "> ")); got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.text, got, tt.want)
		}
	}
}

func names(list []classify.Name) string {
	var all []string
	for _, n := range list {
		all = append(all, n.String())
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestRelationsOfPostgres(t *testing.T) {
	c := replicatedtest.Start(t, replicatedtest.Postgres, replicatedtest.Options{Replicas: -1, NoStatementLog: true})
	admin := open(t, c.DriverName(), c.Primary().AdminDSN())
	mustRun(t, admin,
		"CREATE SCHEMA app", "SET search_path = app",
		"CREATE TABLE t (id int PRIMARY KEY, a int)", "CREATE TABLE u (id int, a int)", "CREATE TABLE w (id int)",
		"CREATE VIEW v1 AS SELECT t.a FROM t JOIN u USING (id)", "CREATE VIEW v2 AS SELECT a FROM v1 WHERE EXISTS (SELECT FROM w)",
		"CREATE VIEW simple AS SELECT a FROM t",
		"CREATE MATERIALIZED VIEW m AS SELECT a FROM t",
		"CREATE VIEW shop AS SELECT relname FROM pg_class", "CREATE VIEW xml AS SELECT query_to_xml('SELECT a FROM app.u', true, true, '')", "CREATE VIEW tables AS SELECT table_name FROM information_schema.tables",
		// Functions of one's own, harmless or not.
		"CREATE FUNCTION total() RETURNS bigint STABLE LANGUAGE sql AS 'SELECT count(*) FROM app.t'", "CREATE VIEW sums AS SELECT total()",
		"CREATE TABLE counted (id int, n bigint DEFAULT total())", "CREATE TABLE checked (id int CHECK (id < total()))",
		"CREATE TABLE indexed (id int)", "CREATE FUNCTION pure(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1'", "CREATE INDEX ON indexed (pure(id))",
		// Sequences.
		"CREATE TABLE serials (id serial, i int GENERATED ALWAYS AS IDENTITY, at timestamptz DEFAULT now(), CHECK (i + 1 > 0))",
		// Triggers and rules.
		"CREATE FUNCTION trig() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
		"CREATE TABLE watched (id int)", "CREATE TRIGGER x AFTER INSERT ON watched FOR EACH ROW EXECUTE FUNCTION trig()",
		"CREATE TABLE deferred (id int)", "CREATE CONSTRAINT TRIGGER x AFTER INSERT ON deferred DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION trig()",
		"CREATE TABLE ruled (id int)", "CREATE RULE r AS ON INSERT TO ruled DO ALSO INSERT INTO w VALUES (1)",
		"CREATE VIEW over_watched AS SELECT id FROM watched",
		// Policies.
		"CREATE TABLE guarded (id int)", "ALTER TABLE guarded ENABLE ROW LEVEL SECURITY", "CREATE POLICY p ON guarded USING (id IN (SELECT u.id FROM u))",
		"CREATE TABLE secret (id int)", "ALTER TABLE secret ENABLE ROW LEVEL SECURITY", "CREATE POLICY p ON secret USING (id < total())",
		"CREATE TABLE tenants (id text)", "ALTER TABLE tenants ENABLE ROW LEVEL SECURITY", "CREATE POLICY p ON tenants USING (id = current_user OR id = current_setting('app.tenant', true))",
		// Foreign keys.
		"CREATE TABLE parent (id int PRIMARY KEY)", "CREATE TABLE cascaded (id int PRIMARY KEY REFERENCES parent ON DELETE CASCADE)",
		"CREATE TABLE nulled (id int REFERENCES cascaded ON UPDATE SET NULL)", "CREATE TABLE restricted (id int REFERENCES parent)",
		// Partitions and inheritance.
		"CREATE TABLE parted (id int) PARTITION BY RANGE (id)", "CREATE TABLE part1 PARTITION OF parted FOR VALUES FROM (0) TO (9)",
		"CREATE TABLE part2 PARTITION OF parted FOR VALUES FROM (9) TO (19) PARTITION BY RANGE (id)", "CREATE TABLE part2a PARTITION OF part2 FOR VALUES FROM (9) TO (12)",
		"CREATE TABLE base (id int)", "CREATE TABLE child () INHERITS (base)",
		"CREATE TABLE parted_watched (id int) PARTITION BY RANGE (id)", "CREATE TRIGGER x AFTER INSERT ON parted_watched FOR EACH ROW EXECUTE FUNCTION trig()",
		"CREATE TABLE part_watched PARTITION OF parted_watched DEFAULT",
		// Elsewhere.
		"CREATE FOREIGN DATA WRAPPER none", "CREATE SERVER far FOREIGN DATA WRAPPER none", "CREATE FOREIGN TABLE foreigner (id int) SERVER far",
		"CREATE TABLE half (id int) PARTITION BY RANGE (id)", "CREATE FOREIGN TABLE half1 PARTITION OF half DEFAULT SERVER far",
		// Two of one name.
		"CREATE SCHEMA other", "CREATE TABLE other.t (id int)",
		`CREATE TABLE "T" (id int)`,
	)
	tests := []closure{
		{"SELECT 1", ""},
		{"SELECT a FROM t", "t other.t"},
		{"SELECT a FROM app.t", "t"},
		{`SELECT a FROM "T"`, "T"},
		{"SELECT a FROM nothing", "…"},
		{"SELECT a FROM v1", "t u v1"},
		{"SELECT a FROM v2", "t u v1 v2 w"},
		{"UPDATE simple SET a = 1", "> simple t"},
		{"SELECT a FROM m", "m"},
		{"SELECT a FROM shop", "…"},
		{"SELECT a FROM xml", "…"},
		{"SELECT a FROM tables", "…"},
		{"SELECT a FROM sums", "…"},
		{"SELECT total()", "…"},
		{"SELECT id FROM counted", "counted"},
		{"INSERT INTO counted VALUES (1)", "…"},
		{"INSERT INTO checked VALUES (1)", "…"},
		{"INSERT INTO indexed VALUES (1)", "…"},
		{"INSERT INTO serials VALUES (1)", "> serials serials_i_seq serials_id_seq"},
		{"SELECT last_value FROM serials_id_seq", "serials_id_seq"},
		{"SELECT id FROM watched", "watched"},
		{"INSERT INTO watched VALUES (1)", "…"},
		{"INSERT INTO deferred VALUES (1)", "…"},
		{"INSERT INTO ruled VALUES (1)", "…"},
		{"INSERT INTO over_watched VALUES (1)", "…"},
		{"SELECT id FROM guarded", "guarded u"},
		{"DELETE FROM guarded", "u > guarded"},
		{"SELECT id FROM secret", "…"},
		{"SELECT id FROM tenants", "tenants"},
		{"SELECT id FROM parent", "parent"},
		{"DELETE FROM parent", "> cascaded nulled parent"},
		{"DELETE FROM nulled", "> nulled"},
		{"SELECT id FROM parted", "part1 part2 part2a parted"},
		{"INSERT INTO parted VALUES (1)", "> part1 part2 part2a parted"},
		{"INSERT INTO part2a VALUES (1)", "> part2a"},
		{"SELECT id FROM base", "base child"},
		{"DELETE FROM base", "> base child"},
		{"INSERT INTO parted_watched VALUES (1)", "…"},
		{"INSERT INTO part_watched VALUES (1)", "…"},
		{"SELECT id FROM foreigner", "…"},
		{"INSERT INTO foreigner VALUES (1)", "…"},
		{"SELECT id FROM half", "…"},
	}
	t.Run("admin", func(t *testing.T) {
		checkClosures(t, dialect.For(classify.Postgres), c.DriverName(), c.Primary().AdminDSN(), "app", tests)
	})
	t.Run("application", func(t *testing.T) {
		checkClosures(t, dialect.For(classify.Postgres), c.DriverName(), c.Primary().DSN(), "app", tests)
	})

	mustRun(t, admin, "CREATE FUNCTION same(int, text) RETURNS bool STABLE LANGUAGE sql AS 'SELECT EXISTS (SELECT FROM app.t)'", "CREATE OPERATOR === (LEFTARG = int, RIGHTARG = text, FUNCTION = same)")
	checkClosures(t, dialect.For(classify.Postgres), c.DriverName(), c.Primary().AdminDSN(), "app", []closure{
		{"SELECT a FROM app.t", "t"},
		{"SELECT 1 === '2'", "…"},
	})
	// Casts and domains run functions without a name in the text.
	for create, drop := range map[string]string{
		"CREATE DOMAIN limited AS int CHECK (VALUE < total())": "DROP DOMAIN limited",
		"CREATE DOMAIN defaulted AS bigint DEFAULT total()":    "DROP DOMAIN defaulted",
		"CREATE TYPE mood AS (n int)":                          "DROP TYPE mood CASCADE",
	} {
		mustRun(t, admin, create)
		if strings.HasPrefix(create, "CREATE TYPE") {
			checkClosures(t, dialect.For(classify.Postgres), c.DriverName(), c.Primary().AdminDSN(), "app", []closure{{"SELECT a FROM app.t", "t"}})
			mustRun(t, admin, "CREATE FUNCTION as_text(mood) RETURNS text STABLE LANGUAGE sql AS 'SELECT ''x'''", "CREATE CAST (mood AS text) WITH FUNCTION as_text(mood)")
		}
		checkClosures(t, dialect.For(classify.Postgres), c.DriverName(), c.Primary().AdminDSN(), "app", []closure{{"SELECT a FROM app.t", "…"}})
		mustRun(t, admin, drop)
	}
}

func TestRelationsOfMySQL(t *testing.T) {
	for _, engine := range []replicatedtest.Engine{replicatedtest.MariaDB, replicatedtest.MySQL} {
		t.Run(engine.String(), func(t *testing.T) {
			c := replicatedtest.Start(t, engine, replicatedtest.Options{Replicas: -1, NoStatementLog: true})
			admin := open(t, c.DriverName(), c.Primary().AdminDSN())
			mustRun(t, admin,
				"CREATE TABLE t (id int PRIMARY KEY, a int)", "CREATE TABLE u (id int, a int)", "CREATE TABLE w (id int)",
				"CREATE VIEW v1 AS SELECT t.a FROM t JOIN u USING (id)", "CREATE VIEW v2 AS SELECT a FROM v1 WHERE EXISTS (SELECT 1 FROM w)",
				"CREATE VIEW simple AS SELECT a FROM t", "CREATE VIEW shop AS SELECT table_name FROM information_schema.tables",
				"CREATE FUNCTION total() RETURNS bigint READS SQL DATA RETURN (SELECT count(*) FROM t)", "CREATE VIEW sums AS SELECT total() AS n",
				"CREATE TABLE watched (id int)", "CREATE TRIGGER x AFTER INSERT ON watched FOR EACH ROW INSERT INTO w VALUES (1)",
				"CREATE VIEW over_watched AS SELECT id FROM watched",
				"CREATE TABLE parent (id int PRIMARY KEY) ENGINE=InnoDB", "CREATE TABLE cascaded (id int PRIMARY KEY, FOREIGN KEY (id) REFERENCES parent (id) ON DELETE CASCADE) ENGINE=InnoDB",
				"CREATE TABLE nulled (id int, FOREIGN KEY (id) REFERENCES cascaded (id) ON UPDATE SET NULL) ENGINE=InnoDB", "CREATE TABLE restricted (id int, FOREIGN KEY (id) REFERENCES parent (id)) ENGINE=InnoDB",
				"CREATE TABLE parted (id int) PARTITION BY HASH (id) PARTITIONS 2",
				"CREATE TABLE isam (id int) ENGINE=MyISAM", "CREATE TABLE merged (id int) ENGINE=MERGE UNION=(isam) INSERT_METHOD=LAST",
				"CREATE DATABASE other", "CREATE TABLE other.t (id int)",
			)
			own := ask(t, admin, "SELECT DATABASE()")
			tests := []closure{
				{"SELECT 1", ""},
				{"SELECT a FROM t", own + ".t other.t"},
				{"SELECT a FROM " + own + ".T", "t"},
				{"SELECT a FROM nothing", "…"},
				{"SELECT a FROM v1", "t u v1"},
				{"SELECT a FROM v2", "t u v1 v2 w"},
				{"UPDATE simple SET a = 1", "> simple t"},
				{"SELECT a FROM shop", "…"},
				{"SELECT n FROM sums", "…"},
				{"SELECT id FROM watched", "watched"},
				{"INSERT INTO watched VALUES (1)", "…"},
				{"INSERT INTO over_watched VALUES (1)", "…"},
				{"DELETE FROM parent", "> cascaded nulled parent"},
				{"DELETE FROM nulled", "> nulled"},
				{"INSERT INTO parted PARTITION (p0) VALUES (1)", "> parted"},
				{"SELECT id FROM merged", "…"},
				{"INSERT INTO merged VALUES (1)", "…"},
				{"INSERT INTO isam VALUES (1)", "> isam"},
			}
			tests[1].want = strings.ReplaceAll(tests[1].want, own+".", "")
			if engine == replicatedtest.MariaDB {
				mustRun(t, admin, "CREATE SEQUENCE seq")
				tests = append(tests, closure{"SELECT next_not_cached_value FROM seq", "…"})
			}
			d := dialect.For(engines[engine])
			checkClosures(t, d, c.DriverName(), c.Primary().AdminDSN(), own, tests)

			// Who may not see triggers, or the texts of views, knows nothing of them.
			host := "'reader'@'%'"
			mustRun(t, admin, "CREATE USER "+host+" IDENTIFIED BY 'x'", "GRANT SELECT, INSERT, DELETE ON "+own+".* TO "+host, "GRANT TRIGGER ON "+own+".u TO "+host)
			dsn := c.Primary().DSN()
			checkClosures(t, d, c.DriverName(), "reader:x"+dsn[strings.LastIndexByte(dsn, '@'):], own, []closure{
				{"SELECT a FROM " + own + ".t", "t"},
				{"SELECT a FROM v1", "…"},
				{"INSERT INTO w VALUES (1)", "…"},
				{"INSERT INTO u VALUES (1, 2)", "> u"},
			})
			mustRun(t, admin, "CREATE USER 'writer'@'%' IDENTIFIED BY 'x'", "GRANT SELECT, DELETE, TRIGGER, SHOW VIEW ON "+own+".* TO 'writer'@'%'")
			checkClosures(t, d, c.DriverName(), "writer:x"+dsn[strings.LastIndexByte(dsn, '@'):], own, []closure{
				{"SELECT a FROM v1", "t u v1"},
				{"DELETE FROM parent", "> cascaded nulled parent"},
				{"DELETE FROM watched", "…"},
			})
		})
	}
}

func TestRelationsOfGeneric(t *testing.T) {
	if got, err := dialect.For(classify.Generic).Relations(t.Context(), mysqlCatalog()); got != nil || !errors.Is(err, dialect.ErrNoCatalog) {
		t.Errorf("%v, %v", got, err)
	}
}
