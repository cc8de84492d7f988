package difftest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// guilty are statements that are no reads, each for another reason.
var guilty = map[replicatedtest.Engine][]string{
	replicatedtest.Postgres: {
		"INSERT INTO members VALUES (50, 'x')",
		"SELECT nextval('fine_seq')",
		"SELECT setval('fine_seq', 9)",
		"SELECT f_write(1)",
		"SELECT txid_current()",
		"SELECT pg_advisory_lock(5)",
		"SELECT pg_advisory_xact_lock(5)",
		"SELECT pg_advisory_xact_lock_shared(6)",
		"SELECT id FROM books FOR UPDATE",
		"SELECT id FROM books WHERE false FOR KEY SHARE",
		"SELECT set_config('app.x', '1', false)",
		"SET work_mem = '5MB'",
		"SET ROLE app",
		"PREPARE p AS SELECT 1",
		"DECLARE c CURSOR WITH HOLD FOR SELECT 1",
		"LISTEN c",
		"BEGIN",
		"CREATE TEMP TABLE t1 (a int)",
		"SELECT 1 AS a INTO made",
		"WITH w AS (UPDATE members SET name = 'y' RETURNING id) SELECT * FROM w",
		"EXPLAIN ANALYZE DELETE FROM loans WHERE id = 2",
		"COPY books TO '%s/copy'",
		"COPY (SELECT nextval('fine_seq')) TO STDOUT",
		"SELECT lo_create(0)",
		"SELECT pg_export_snapshot()",
		"SELECT pg_logical_emit_message(false, 'a', 'b')",
		"SELECT pg_create_physical_replication_slot('s' || floor(random() * 1000000))",
		"SELECT pg_reload_conf()",
		"SELECT pg_stat_reset()",
		"SELECT query_to_xml('SELECT nextval(''fine_seq'')', true, true, '')",
		"SELECT pg_walfile_name('0/1')",
	},
	replicatedtest.MariaDB: {
		"INSERT INTO members VALUES (50, 'x')",
		"SELECT GET_LOCK('l1', 0)",
		"SELECT GET_LOCK('another', 0)",
		"SELECT @v1 := 1",
		"SELECT 1 INTO @another",
		"SELECT LAST_INSERT_ID(5)",
		"SELECT NEXTVAL(s_fine)",
		"SELECT f_write(1)",
		"SELECT id FROM books FOR UPDATE",
		"SELECT id FROM books LOCK IN SHARE MODE",
		"SELECT id FROM books WHERE FALSE FOR UPDATE",
		"SELECT 1 INTO OUTFILE '%s/out'",
		"SET sql_mode = 'ANSI'",
		"SET autocommit = 0",
		"SET TRANSACTION READ ONLY",
		"USE mysql",
		"CREATE TEMPORARY TABLE t1 (a int)",
		"PREPARE p FROM 'SELECT 1'",
		"HANDLER books OPEN",
		"LOCK TABLES books READ",
		"BEGIN",
		"XA START 'x'",
		"CALL p_write(1)",
		"DO GET_LOCK('l1', 0)",
		"ANALYZE UPDATE members SET name = UUID()",
		"DROP TABLE IF EXISTS nothing",
		"SELECT 1; DELETE FROM loans",
	},
	replicatedtest.MySQL: {
		"INSERT INTO members VALUES (50, 'x')",
		"SELECT GET_LOCK('l1', 0)",
		"SELECT @v1 := 1",
		"SELECT 1 INTO @v1",
		"SELECT LAST_INSERT_ID(5)",
		"SELECT f_write(1)",
		"SELECT id FROM books FOR UPDATE",
		"SELECT id FROM books LOCK IN SHARE MODE",
		"SELECT 1 INTO DUMPFILE '%s/out'",
		"SET NAMES latin1",
		"SET autocommit = 0",
		"CREATE TEMPORARY TABLE t1 (a int)",
		"HANDLER books OPEN",
		"BEGIN",
		"XA START 'x'",
		"CALL p_write(1)",
	},
}

// The oracle notices each kind of effect, and names the statement among those
// that have none.
func TestOracleFindsWhatIsNoRead(t *testing.T) {
	eachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		o := newOracle(t, e)
		for i, text := range guilty[e] {
			if strings.Contains(text, "%s") {
				text = fmt.Sprintf(text, o.dir)
			}
			batch := []string{"SELECT id FROM books", "SELECT title FROM books"}
			at := i % 3
			batch = slices.Insert(batch, at, text)
			o.findings = nil
			o.check([][]string{nil}, [][]string{batch})
			if !slices.ContainsFunc(o.findings, func(f finding) bool { return f.text == text || strings.Contains(f.what, "not again") }) {
				t.Errorf("it has not found %q", text)
			}
			for _, f := range o.findings {
				if f.text != text && !strings.Contains(f.what, "not again") {
					t.Errorf("for %q, it found %v", text, f)
				}
			}
			o.settle()
			o.findings = nil
			o.check([][]string{nil}, [][]string{slices.Delete(batch, at, at+1)})
			for _, f := range o.findings {
				t.Errorf("after %q, it found %v", text, f)
			}
		}
	})
}

// With a classifier that takes some of what it must not for reads, the generator
// makes statements that show it.
func TestOracleFindsABadClassifier(t *testing.T) {
	traps := []string{"nextval", "get_lock", "for update", "@v1"}
	bad := func(d classify.Dialect, text string) bool {
		text = strings.ToLower(text)
		begins := strings.HasPrefix(text, "select") && !strings.Contains(text, ";")
		return anyRead(d, text) || begins && slices.ContainsFunc(traps, func(s string) bool { return strings.Contains(text, s) })
	}
	eachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		o := newOracle(t, e)
		o.generate(3, 800, bad)
		found := 0
		for _, f := range o.findings {
			if strings.Contains(f.what, "changed:") {
				found++
			}
		}
		t.Logf("%d called reads against all reason, %d findings, %d of them by what had changed", len(o.claimed), len(o.findings), found)
		if found == 0 || found == len(o.findings) {
			t.Error("it has not found both what changed and what a replica refused")
		}
	})
}
