package replicated_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// defining is a cluster with functions of the test's own in it.
type defining struct {
	t     *testing.T
	c     *replicatedtest.Cluster
	pg    bool
	admin *sql.DB
	table string
}

func newDefining(t *testing.T, c *replicatedtest.Cluster) *defining {
	t.Helper()
	d := &defining{t: t, c: c, pg: c.Engine() == replicatedtest.Postgres, admin: c.Primary().AdminDB(t)}
	d.admin.SetMaxIdleConns(-1)
	d.table = table(t, c, "n INT")
	mustExec(t, bare(t, c.Primary()), "INSERT INTO "+d.table+" VALUES (1)")
	return d
}

// function defines a function on the primary that returns how many rows the table
// has, after adding one if it writes.
func (d *defining) function(name string, writes bool) {
	d.t.Helper()
	d.exec(d.drop(name))
	d.exec(d.create(name, writes))
	d.t.Cleanup(func() { _, _ = d.admin.ExecContext(context.WithoutCancel(d.t.Context()), d.drop(name)) })
}

func (d *defining) create(name string, writes bool) string {
	insert := ""
	if writes {
		insert = "INSERT INTO " + d.table + " VALUES (2); "
	}
	if d.pg {
		return fmt.Sprintf("CREATE FUNCTION %s(a int) RETURNS bigint AS $$ BEGIN %sRETURN (SELECT count(*) FROM %s); END $$ LANGUAGE plpgsql %s",
			name, insert, d.table, map[bool]string{true: "VOLATILE", false: "STABLE"}[writes])
	}
	return fmt.Sprintf("CREATE FUNCTION %s(a INT) RETURNS BIGINT %s BEGIN %sRETURN (SELECT count(*) FROM %s); END",
		name, map[bool]string{true: "MODIFIES SQL DATA", false: "READS SQL DATA"}[writes], insert, d.table)
}

func (d *defining) drop(name string) string { return "DROP FUNCTION IF EXISTS " + name }

func (d *defining) exec(text string) {
	d.t.Helper()
	for _, q := range []string{"CREATE DATABASE IF NOT EXISTS app", text} {
		if d.pg && strings.HasPrefix(q, "CREATE DATABASE") {
			continue
		}
		mustExec(d.t, d.admin, q)
	}
}

// known opens a handle that has read the catalog, all replicas being past what the
// test has defined.
func (d *defining) known(keys ...string) (*sql.DB, *replicated.Cluster) {
	d.t.Helper()
	caughtUp(d.t, d.c)
	db := open(d.t, d.c, keys...)
	if err := db.PingContext(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
	c, err := replicated.ClusterOf(d.t.Context(), db)
	if err != nil {
		d.t.Fatal(err)
	}
	knowsCatalog(d.t, c)
	d.c.ResetStatements()
	return db, c
}

func knowsCatalog(t *testing.T, c *replicated.Cluster) {
	t.Helper()
	eventually(t, 30*time.Second, func() string { // after a reading that took long it has a rest
		if !c.KnowsCatalog() {
			return "the catalog has not been read"
		}
		return ""
	})
}

// relaxed are the keys of a handle whose writes hold nothing back, so that a read
// shows where its text belongs.
var relaxed = []string{"replicated.sticky=0", "replicated.consistency=eventual"}

// value runs a query of one number, marked so that the servers' logs show it.
func value(t *testing.T, db *sql.DB, mark, query string) int {
	t.Helper()
	return queryInt(t, db, query+" /* "+mark+" */")
}

func TestCatalogFunctions(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		d := newDefining(t, c)
		d.function("cat_pure", false)
		d.function("cat_book", true)
		db, _ := d.known(relaxed...)
		schema, quoted := "app", "`cat_pure`"
		if d.pg {
			schema, quoted = "public", `"cat_pure"`
		}
		for i, text := range []string{"cat_pure(1)", "CAT_Pure (1)", schema + ".cat_pure(1)", quoted + "(1)", schema + "." + quoted + "(1)"} {
			mark := fmt.Sprintf("pure%d", i)
			value(t, db, mark, "SELECT "+text)
			onlyReplicas(t, c, mark)
		}
		if n := value(t, db, "book", "SELECT cat_book(1)"); n != 2 {
			t.Errorf("the table has %d rows after one that was added to one: the function ran %d times", n, n-1)
		}
		onlyPrimary(t, c, "book")
		value(t, db, "both", "SELECT cat_pure(1) + cat_book(1)")
		onlyPrimary(t, c, "both")
		_, err := db.ExecContext(t.Context(), "SELECT cat_none(1) /* none */")
		if err == nil {
			t.Error("a function that does not exist was found")
		}
		onlyPrimary(t, c, "none")
	})
}

// A statement that only the catalog proves a read raises no floor on the primary.
func TestCatalogReadDoesNotStamp(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		d := newDefining(t, c)
		d.function("cat_pure", false)
		d.function("cat_book", true)
		db, _ := d.known("replicated.tracker=off", "replicated.sticky=1h", fmt.Sprintf("%scat-%d", clusterKey, clusterNumber.Add(1)))
		if err := db.QueryRowContext(replicated.WithPrimary(t.Context()), "SELECT cat_pure(1) /* forced */").Scan(new(int)); err != nil {
			t.Fatal(err)
		}
		onlyPrimary(t, c, "forced")
		value(t, db, "after", "SELECT count(*) FROM "+d.table)
		onlyReplicas(t, c, "after")
		value(t, db, "book", "SELECT cat_book(1)")
		value(t, db, "later", "SELECT count(*) FROM "+d.table)
		onlyPrimary(t, c, "later")
	})
}

func TestCatalogSchemas(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		d := newDefining(t, c)
		create, drop := "CREATE SCHEMA cat_other", "DROP SCHEMA IF EXISTS cat_other"
		if d.pg {
			drop += " CASCADE"
		}
		d.exec(drop)
		d.exec(create)
		t.Cleanup(func() { _, _ = d.admin.ExecContext(context.WithoutCancel(t.Context()), drop) })
		own := "app."
		if d.pg {
			own = "public."
		}
		inOwn := d.table
		d.table = own + d.table // from wherever it is called
		d.function("cat_twice", false)
		d.function("cat_other.cat_twice", true)
		d.table = inOwn
		if d.pg {
			d.exec("GRANT ALL ON SCHEMA cat_other TO app")
		} else {
			d.exec("GRANT ALL ON cat_other.* TO app")
		}
		db, _ := d.known(relaxed...)
		value(t, db, "plain", "SELECT cat_twice(1)")
		onlyPrimary(t, c, "plain")
		value(t, db, "own", "SELECT "+own+"cat_twice(1)")
		onlyReplicas(t, c, "own")
	})
}

// What this process redefines counts at once, also for statements prepared before,
// and for another handle; what another process does, with the next reading.
func TestCatalogFollows(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		d := newDefining(t, c)
		d.function("cat_turn", false)
		db, cluster := d.known(relaxed...)
		other, otherCluster := d.known(relaxed...)
		stmt, err := db.PrepareContext(t.Context(), "SELECT cat_turn(1) /* prepared */")
		if err != nil {
			t.Fatal(err)
		}
		defer stmt.Close()
		ask := func() {
			t.Helper()
			c.ResetStatements()
			queryInt(t, asQuerier{stmt}, "")
			value(t, other, "elsewhere", "SELECT cat_turn(2)")
		}
		ask()
		onlyReplicas(t, c, "prepared")
		onlyReplicas(t, c, "elsewhere")

		redefine := "ALTER FUNCTION cat_turn MODIFIES SQL DATA"
		if d.pg {
			redefine = "ALTER FUNCTION cat_turn(int) VOLATILE"
			mustExec(t, d.admin, "ALTER FUNCTION cat_turn(int) OWNER TO app")
		} else {
			mustExec(t, d.admin, "GRANT ALTER ROUTINE ON app.* TO app")
		}
		mustExec(t, db, redefine)
		ask()
		onlyPrimary(t, c, "prepared")
		onlyPrimary(t, c, "elsewhere")
		knowsCatalog(t, cluster)
		ask()
		onlyPrimary(t, c, "prepared")

		mustExec(t, d.admin, strings.NewReplacer("VOLATILE", "STABLE", "MODIFIES SQL DATA", "READS SQL DATA").Replace(redefine))
		caughtUp(t, c)
		if err := cluster.ReadCatalog(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := otherCluster.ReadCatalog(t.Context()); err != nil {
			t.Fatal(err)
		}
		ask()
		onlyReplicas(t, c, "prepared")
		mustExec(t, d.admin, redefine)
		if err := cluster.ReadCatalog(t.Context()); err != nil {
			t.Fatal(err)
		}
		ask()
		onlyPrimary(t, c, "prepared")
	})
}

// asQuerier has a prepared statement answer for a handle.
type asQuerier struct{ *sql.Stmt }

func (q asQuerier) QueryRowContext(ctx context.Context, _ string, _ ...any) *sql.Row {
	return q.Stmt.QueryRowContext(ctx)
}

// A redefinition in a transaction counts for others when that is over, however the
// catalog was read in between.
func TestCatalogFollowsTransaction(t *testing.T) {
	c := sharedCluster(t, replicatedtest.Postgres) // the others commit at DDL
	d := newDefining(t, c)
	d.function("cat_turn", false)
	mustExec(t, d.admin, "ALTER FUNCTION cat_turn(int) OWNER TO app")
	db, cluster := d.known(relaxed...)
	for _, raw := range []bool{false, true} {
		mustExec(t, d.admin, "ALTER FUNCTION cat_turn(int) STABLE")
		caughtUp(t, c)
		if err := cluster.ReadCatalog(t.Context()); err != nil {
			t.Fatal(err)
		}
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var tx *sql.Tx
		if raw {
			mustExec(t, conn, "BEGIN")
			mustExec(t, conn, "ALTER FUNCTION cat_turn(int) VOLATILE")
		} else {
			if tx, err = conn.BeginTx(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			mustExec(t, tx, "ALTER FUNCTION cat_turn(int) VOLATILE")
		}
		knowsCatalog(t, cluster) // as it is for others
		if raw {
			mustExec(t, conn, "COMMIT")
		} else if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		c.ResetStatements()
		value(t, db, "turn", "SELECT cat_turn(1)")
		onlyPrimary(t, c, "turn")
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCatalogViews(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		d := newDefining(t, c)
		d.function("cat_pure", false)
		d.function("cat_book", true)
		for _, v := range []struct{ name, text string }{
			{"cat_v_plain", "SELECT n FROM " + d.table},
			{"cat_v_pure", "SELECT cat_pure(1) AS n"},
			{"cat_v_book", "SELECT cat_book(1) AS n"},
			{"cat_v_over", "SELECT n FROM cat_v_book"},
		} {
			drop := "DROP VIEW IF EXISTS " + v.name
			if d.pg {
				drop += " CASCADE"
			}
			d.exec(drop)
			t.Cleanup(func() { _, _ = d.admin.ExecContext(context.WithoutCancel(t.Context()), drop) })
			d.exec("CREATE VIEW " + v.name + " AS " + v.text)
			if d.pg {
				d.exec("GRANT SELECT ON " + v.name + " TO app")
			}
		}
		if d.pg {
			d.exec("GRANT ALL ON " + d.table + " TO app")
		}
		db, _ := d.known(relaxed...)
		for view, replica := range map[string]bool{"cat_v_plain": true, "cat_v_pure": true, "cat_v_book": false, "cat_v_over": false} {
			value(t, db, "of "+view, "SELECT max(n) FROM "+view)
			if replica {
				onlyReplicas(t, c, "of "+view)
			} else {
				onlyPrimary(t, c, "of "+view)
			}
		}
		if n := value(t, db, "rows", "SELECT count(*) FROM "+d.table+" WHERE n = 2"); n > 2 {
			t.Errorf("two views that write were read once each, and wrote %d times", n)
		}
	})
}

func TestCatalogOverrides(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		d := newDefining(t, c)
		d.function("cat_pure", false)
		d.function("cat_book", false)
		redefine := "ALTER FUNCTION cat_pure MODIFIES SQL DATA"
		if d.pg {
			redefine = "ALTER FUNCTION cat_pure(int) VOLATILE"
		}
		d.exec(redefine) // a lie: it only reads
		db, _ := d.known(append(relaxed, "replicated.read_functions=cat_pure", "replicated.write_functions=cat_book,abs")...)
		value(t, db, "pure", "SELECT cat_pure(1)")
		onlyReplicas(t, c, "pure")
		value(t, db, "book", "SELECT cat_book(1)")
		onlyPrimary(t, c, "book")
		value(t, db, "abs", "SELECT abs(1)")
		onlyPrimary(t, c, "abs")
	})
}

// What the tables hold for harmless is not, where a function of the same name may
// be called in its place; and some that only a server's catalog can tell.
func TestCatalogPostgres(t *testing.T) {
	c := sharedCluster(t, replicatedtest.Postgres)
	d := newDefining(t, c)
	d.exec("DROP SCHEMA IF EXISTS cat_pg CASCADE")
	t.Cleanup(func() {
		_, _ = d.admin.ExecContext(context.WithoutCancel(t.Context()), "DROP SCHEMA IF EXISTS cat_pg CASCADE")
	})
	for _, text := range []string{
		"CREATE SCHEMA cat_pg",
		"CREATE SEQUENCE cat_pg.seq0",
		"CREATE FUNCTION cat_pg.lower(text) RETURNS text AS 'SELECT $1' LANGUAGE sql VOLATILE",
		"CREATE FUNCTION cat_pg.upper(int) RETURNS int AS 'SELECT $1' LANGUAGE sql IMMUTABLE",
		"CREATE FUNCTION cat_pg.over(int) RETURNS int AS 'SELECT $1' LANGUAGE sql IMMUTABLE",
		"CREATE FUNCTION cat_pg.over(text) RETURNS int AS 'SELECT 1' LANGUAGE sql VOLATILE",
		"CREATE FUNCTION cat_pg.step(int, int) RETURNS int AS 'SELECT 1' LANGUAGE sql VOLATILE",
		"CREATE AGGREGATE cat_pg.busy_sum(int) (SFUNC = cat_pg.step, STYPE = int, INITCOND = '0')",
		"CREATE AGGREGATE cat_pg.calm_sum(int) (SFUNC = int4pl, STYPE = int, INITCOND = '0')",
		"CREATE FUNCTION cat_pg.defaults(a int, b int DEFAULT 1) RETURNS int AS 'SELECT $1' LANGUAGE sql IMMUTABLE",
		"CREATE FUNCTION cat_pg.takes(a int, b bigint DEFAULT nextval('cat_pg.seq0')) RETURNS int AS 'SELECT $1' LANGUAGE sql IMMUTABLE",
		"CREATE FUNCTION cat_pg.vol(int) RETURNS int AS 'SELECT $1' LANGUAGE sql VOLATILE",
		"CREATE OPERATOR cat_pg.<@%> (RIGHTARG = int, FUNCTION = cat_pg.vol)",
		"CREATE OPERATOR cat_pg.@%> (RIGHTARG = int, FUNCTION = cat_pg.upper)",
		"CREATE TABLE cat_pg.person (id int)",
		"INSERT INTO cat_pg.person VALUES (7)",
		"CREATE FUNCTION cat_pg.field_of(cat_pg.person) RETURNS int AS 'SELECT 1' LANGUAGE sql VOLATILE",
		"CREATE SEQUENCE cat_pg.seq",
		"CREATE VIEW cat_pg.v_next AS SELECT nextval('cat_pg.seq') AS n",
		"CREATE VIEW cat_pg.v_xid AS SELECT txid_current() AS n",
		"CREATE VIEW cat_pg.v_rand AS SELECT (random() * 0)::int AS n",
		"CREATE VIEW cat_pg.v_oper AS SELECT OPERATOR(cat_pg.<@%>) 1 AS n",
		"CREATE VIEW cat_pg.v_agg AS SELECT cat_pg.busy_sum(id) AS n FROM cat_pg.person",
		"CREATE TABLE cat_pg.guarded (n int)",
		"INSERT INTO cat_pg.guarded VALUES (1)",
		"ALTER TABLE cat_pg.guarded ENABLE ROW LEVEL SECURITY",
		"CREATE POLICY p ON cat_pg.guarded USING (cat_pg.vol(n) = 1)",
		"GRANT USAGE ON SCHEMA cat_pg TO app",
		"GRANT SELECT ON ALL TABLES IN SCHEMA cat_pg TO app",
		"GRANT USAGE ON ALL SEQUENCES IN SCHEMA cat_pg TO app",
	} {
		d.exec(text)
	}
	db, _ := d.known(relaxed...)
	for i, q := range []struct {
		text    string
		replica bool
	}{
		{"SELECT length(lower('A'))", false},
		{"SELECT length(pg_catalog.lower('A'))", true},
		{"SELECT length(upper('A'))", true},
		{"SELECT cat_pg.over(1)", false},
		{"SELECT cat_pg.upper(1)", true},
		{"SELECT cat_pg.busy_sum(1)", false},
		{"SELECT cat_pg.defaults(1)", true},
		{"SELECT cat_pg.takes(1)", false},
		{"SELECT cat_pg.calm_sum(1)", true},
		{"SELECT OPERATOR(cat_pg.@%>) 1", false},
		{"SELECT p.id FROM cat_pg.person p", true},
		{"SELECT n FROM cat_pg.v_next", false},
		{"SELECT n FROM cat_pg.v_xid", false},
		{"SELECT n FROM cat_pg.v_rand", true},
		{"SELECT n FROM cat_pg.v_oper", false},
		{"SELECT n FROM cat_pg.v_agg", false},
		{"SELECT count(*) FROM cat_pg.guarded", false},
	} {
		mark := fmt.Sprintf("pg%02d", i)
		value(t, db, mark, q.text)
		if q.replica {
			onlyReplicas(t, c, mark)
		} else {
			onlyPrimary(t, c, mark)
		}
	}
	db, _ = d.known(append(relaxed, "search_path=cat_pg")...)
	for mark, text := range map[string]string{"field": "SELECT p.field_of FROM person p", "operator": "SELECT <@%> 1"} {
		value(t, db, mark, text)
		onlyPrimary(t, c, mark)
	}
	value(t, db, "harmless", "SELECT @%> 1")
	onlyReplicas(t, c, "harmless")
}

// Whatever another process changes shows in the next reading, though that looks no
// further while the catalog's version is the same.
func TestCatalogVersion(t *testing.T) {
	c := sharedCluster(t, replicatedtest.Postgres)
	d := newDefining(t, c)
	drop := "DROP SCHEMA IF EXISTS cat_ver CASCADE"
	d.exec(drop)
	t.Cleanup(func() { _, _ = d.admin.ExecContext(context.WithoutCancel(t.Context()), drop) })
	for _, text := range []string{
		"CREATE SCHEMA cat_ver",
		"CREATE SEQUENCE cat_ver.seq",
		"CREATE FUNCTION cat_ver.f(int) RETURNS bigint AS 'SELECT 1::bigint' LANGUAGE sql STABLE",
		"CREATE VIEW cat_ver.v AS SELECT cat_ver.f(1) AS n",
		"CREATE TABLE cat_ver.t (n int)",
		"GRANT USAGE ON SCHEMA cat_ver TO app",
		"GRANT ALL ON ALL TABLES IN SCHEMA cat_ver TO app",
		"GRANT ALL ON ALL SEQUENCES IN SCHEMA cat_ver TO app",
	} {
		d.exec(text)
	}
	db, cluster := d.known(relaxed...)
	const ofView, ofTable = "SELECT n FROM cat_ver.v", "SELECT count(*) FROM cat_ver.t"
	for i, step := range []struct {
		change, query string
		replica       bool
	}{
		{"SELECT 1", ofView, true},
		{"CREATE OR REPLACE VIEW cat_ver.v AS SELECT nextval('cat_ver.seq') AS n", ofView, false},
		{"CREATE OR REPLACE VIEW cat_ver.v AS SELECT cat_ver.f(1) AS n", ofView, true},
		{"ALTER FUNCTION cat_ver.f(int) VOLATILE", ofView, false},
		{"ALTER FUNCTION cat_ver.f(int) STABLE", ofView, true},
		{"CREATE OR REPLACE FUNCTION cat_ver.f(int) RETURNS bigint AS 'SELECT 2::bigint' LANGUAGE sql", ofView, false},
		{"CREATE POLICY p ON cat_ver.t USING (cat_ver.f(n) = 1)", ofTable, false},
		{"DROP POLICY p ON cat_ver.t", ofTable, true},
		{"ALTER SCHEMA cat_ver RENAME TO cat_new", "SELECT cat_new.f(1)", false},
		{"ALTER SCHEMA cat_new RENAME TO cat_ver", ofTable, true},
		{"CREATE OR REPLACE FUNCTION cat_ver.g(int) RETURNS bigint AS 'SELECT 2::bigint' LANGUAGE sql STABLE", "SELECT cat_ver.g(1)", true},
	} {
		d.exec(step.change)
		caughtUp(t, c)
		if err := cluster.ReadCatalog(t.Context()); err != nil {
			t.Fatal(err)
		}
		mark := fmt.Sprintf("step %02d", i)
		value(t, db, mark, step.query)
		if step.replica {
			onlyReplicas(t, c, mark)
		} else {
			onlyPrimary(t, c, mark)
		}
	}
}

func TestCatalogMariaDB(t *testing.T) {
	c := sharedCluster(t, replicatedtest.MariaDB)
	d := newDefining(t, c)
	for _, text := range []string{
		"DROP FUNCTION IF EXISTS cat_said_nothing",
		"CREATE FUNCTION cat_said_nothing() RETURNS INT RETURN 1",
		"DROP TABLE IF EXISTS cat_memory",
		"CREATE TABLE cat_memory (n INT) ENGINE=MEMORY",
	} {
		d.exec(text)
	}
	t.Cleanup(func() {
		_, _ = d.admin.ExecContext(context.WithoutCancel(t.Context()), "DROP FUNCTION cat_said_nothing")
		_, _ = d.admin.ExecContext(context.WithoutCancel(t.Context()), "DROP TABLE cat_memory")
	})
	db, _ := d.known(relaxed...)
	value(t, db, "nothing", "SELECT cat_said_nothing()")
	onlyPrimary(t, c, "nothing")
	value(t, db, "memory", "SELECT count(*) FROM cat_memory")
	onlyPrimary(t, c, "memory")
}

// A user sees the functions that he has a privilege for; the others are not known.
func TestCatalogWithoutPrivilege(t *testing.T) {
	c := sharedCluster(t, replicatedtest.MariaDB)
	d := newDefining(t, c)
	d.function("cat_pure", false)
	d.exec("CREATE OR REPLACE USER cat_guest@'%' IDENTIFIED BY 'cat_guest'")
	t.Cleanup(func() {
		_, _ = d.admin.ExecContext(context.WithoutCancel(t.Context()), "DROP USER cat_guest@'%'")
	})
	d.exec("GRANT SELECT ON app.* TO cat_guest@'%'")
	caughtUp(t, c)
	dsn := strings.Replace(c.DSN(relaxed...), replicatedtest.AppUser+":"+replicatedtest.AppPassword, "cat_guest:cat_guest", 1)
	db := openDSN(t, dsn)
	measured(t, c, db)
	if err := db.PingContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	cluster, err := replicated.ClusterOf(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	knowsCatalog(t, cluster)
	c.ResetStatements()
	if _, err := db.ExecContext(t.Context(), "SELECT cat_pure(1) /* guest */"); err == nil {
		t.Error("the function may be called without a privilege")
	}
	onlyPrimary(t, c, "guest")
	d.exec("GRANT EXECUTE ON FUNCTION app.cat_pure TO cat_guest@'%'")
	caughtUp(t, c)
	if err := cluster.ReadCatalog(t.Context()); err != nil {
		t.Fatal(err)
	}
	value(t, db, "granted", "SELECT cat_pure(1)")
	onlyReplicas(t, c, "granted")
}

// Thousands of functions are read in a moment.
func TestCatalogLarge(t *testing.T) {
	for e, functions := range map[replicatedtest.Engine]int{
		replicatedtest.Postgres: 10_000,
		replicatedtest.MariaDB:  2_000, // it takes a millisecond to define one
	} {
		t.Run(e.String(), func(t *testing.T) {
			c := sharedCluster(t, e)
			d := newDefining(t, c)
			drop := "DROP SCHEMA IF EXISTS cat_large"
			if d.pg {
				drop += " CASCADE"
			}
			d.exec(drop)
			t.Cleanup(func() { _, _ = d.admin.ExecContext(context.WithoutCancel(t.Context()), drop) })
			d.exec("CREATE SCHEMA cat_large")
			if d.pg {
				d.exec(fmt.Sprintf(`DO $$ BEGIN FOR i IN 1..%d LOOP
					EXECUTE format('CREATE FUNCTION cat_large.f_%%s(int) RETURNS int AS ''SELECT $1'' LANGUAGE sql STABLE', i);
					IF i %% 20 = 0 THEN EXECUTE format('CREATE VIEW cat_large.v_%%s AS SELECT cat_large.f_%%s(relpages) FROM pg_class WHERE relname = lower(''A'')', i, i); END IF;
				END LOOP; END $$`, functions))
			} else {
				conn, err := d.admin.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				mustExec(t, conn, "SET sql_log_bin = 0")
				mustExec(t, conn, fmt.Sprintf(`BEGIN NOT ATOMIC FOR i IN 1..%d DO
					EXECUTE IMMEDIATE CONCAT('CREATE FUNCTION cat_large.f_', i, '(a INT) RETURNS INT READS SQL DATA RETURN a'); END FOR; END`, functions))
				mustExec(t, conn, "GRANT ALL ON cat_large.* TO app")
			}
			db, cluster := d.known(relaxed...)
			began := time.Now()
			if err := cluster.ReadCatalog(t.Context()); err != nil {
				t.Fatal(err)
			}
			again := time.Since(began)
			cluster.ForgetCatalog()
			began = time.Now()
			if err := cluster.ReadCatalog(t.Context()); err != nil {
				t.Fatal(err)
			}
			took := time.Since(began)
			t.Logf("%s: %d functions read in %v, and again, unchanged, in %v", e, functions, took, again)
			if took > 5*time.Second {
				t.Errorf("reading %d functions took %v", functions, took)
			}
			if d.pg {
				d.exec("GRANT USAGE ON SCHEMA cat_large TO app")
				caughtUp(t, c)
				value(t, db, "thousands", "SELECT cat_large.f_1(1)")
				onlyReplicas(t, c, "thousands")
			}
		})
	}
}

// The reader's connection is closed after each reading, and its goroutine ends with
// the handle.
func TestCatalogLeavesNothing(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		noGoroutineLeak(t)
		d := newDefining(t, c)
		count := func() int {
			n, err := c.Primary().Connections()
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		start := count()
		db, cluster := d.known(relaxed...)
		for range 5 {
			if err := cluster.ReadCatalog(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, 10*time.Second, func() string {
			if n := count(); n > start+2 { // the ping's and the sampler's
				return fmt.Sprintf("%d connections to the primary, and %d before the handle was opened", n, start)
			}
			return ""
		})
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if cluster.KnowsCatalog() {
			t.Error("a closed handle still knows the catalog")
		}
	})
}
