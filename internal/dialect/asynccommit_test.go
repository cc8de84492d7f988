package dialect_test

import (
	"errors"
	"testing"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/dialect"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

func TestChangesSynchronousCommit(t *testing.T) {
	c := replicatedtest.Start(t, replicatedtest.Postgres, replicatedtest.Options{Replicas: -1, NoStatementLog: true})
	d := dialect.For(classify.Postgres)
	admin, app := open(t, c.DriverName(), c.Primary().AdminDSN()), open(t, c.DriverName(), c.Primary().DSN())
	changes := func() bool {
		t.Helper()
		got, err := d.ChangesSynchronousCommit(testContext(t), app)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	set := "set_config('synchronous_commit', 'off', true)"
	mustRun(t, admin, "CREATE TABLE t (a int, b text)", "CREATE VIEW plain AS SELECT a, set_config('app.tenant', 'x', true) FROM t",
		"CREATE FUNCTION plain() RETURNS int LANGUAGE sql SET work_mem = '4MB' AS 'SELECT 1'",
		"ALTER ROLE "+replicatedtest.AppUser+" SET lock_timeout = '1min'")
	if changes() {
		t.Fatal("a database that changes nothing does")
	}
	for _, tt := range []struct {
		name, make, undo string
		from             int // version
		not              bool
	}{
		{name: "text of a function", make: "CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$BEGIN SET LOCAL Synchronous_Commit = off; END$$", undo: "DROP FUNCTION f"},
		{name: "text of a procedure", make: "CREATE PROCEDURE f() LANGUAGE sql AS $$SELECT " + set + "$$", undo: "DROP PROCEDURE f"},
		{name: "SET clause", make: "CREATE FUNCTION f() RETURNS int LANGUAGE sql SET synchronous_commit = off AS 'SELECT 1'", undo: "DROP FUNCTION f"},
		{name: "parsed body", from: 140000, make: "CREATE FUNCTION f() RETURNS text LANGUAGE sql BEGIN ATOMIC SELECT " + set + "; END", undo: "DROP FUNCTION f"},
		{name: "view", make: "CREATE VIEW v AS SELECT set_config('SYNCHRONOUS_commit', 'off', true) FROM t", undo: "DROP VIEW v"},
		{name: "rule", make: "CREATE RULE r AS ON INSERT TO t WHERE " + set + " IS NULL DO ALSO DELETE FROM t", undo: "DROP RULE r ON t"},
		{name: "default", make: "ALTER TABLE t ALTER b SET DEFAULT " + set, undo: "ALTER TABLE t ALTER b DROP DEFAULT"},
		{name: "policy", make: "CREATE POLICY p ON t WITH CHECK (" + set + " <> '')", undo: "DROP POLICY p ON t"},
		{name: "role", make: "ALTER ROLE " + replicatedtest.AppUser + " SET synchronous_commit = off", undo: "ALTER ROLE " + replicatedtest.AppUser + " RESET synchronous_commit"},
		{name: "role in the database", make: "ALTER ROLE ALL IN DATABASE " + replicatedtest.Database + " SET synchronous_commit = off",
			undo: "ALTER ROLE ALL IN DATABASE " + replicatedtest.Database + " RESET synchronous_commit"},
		{name: "database", make: "ALTER DATABASE " + replicatedtest.Database + " SET synchronous_commit = 0", undo: "ALTER DATABASE " + replicatedtest.Database + " RESET synchronous_commit"},
		{name: "role, to what waits", not: true, make: "ALTER ROLE " + replicatedtest.AppUser + " SET synchronous_commit = remote_apply", undo: "ALTER ROLE " + replicatedtest.AppUser + " RESET synchronous_commit"},
		{name: "another database", not: true, make: "ALTER DATABASE postgres SET synchronous_commit = off", undo: "ALTER DATABASE postgres RESET synchronous_commit"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if identify(t, d, app).VersionNum < tt.from {
				t.Skip("the server has no such functions")
			}
			mustRun(t, admin, tt.make)
			if changes() == tt.not {
				t.Errorf("ChangesSynchronousCommit = %v after %s", !tt.not, tt.make)
			}
			mustRun(t, admin, tt.undo)
			if changes() {
				t.Errorf("ChangesSynchronousCommit after %s", tt.undo)
			}
		})
	}
	boom := errors.New("boom")
	if got, err := d.ChangesSynchronousCommit(t.Context(), &canned{answers: []answer{{err: boom}}}); got || !errors.Is(err, boom) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := dialect.For(classify.MySQL).ChangesSynchronousCommit(t.Context(), nil); got || err != nil {
		t.Errorf("MySQL: %v, %v", got, err)
	}
}
