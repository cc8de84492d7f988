package classify_test

import (
	"testing"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// Public reports of faults in other read/write splitters, as far as a classifier
// is concerned. Each test covers the kind of fault, not the one input.

const (
	pg    = classify.Postgres
	my    = classify.MySQL
	maria = classify.MariaDB
)

func wantReplica(t *testing.T, d classify.Dialect, texts ...string) {
	t.Helper()
	for _, sql := range texts {
		if v := classify.Classify(d, sql); !v.Replica() {
			t.Errorf("%v: %q: want a replica, got %s", d, sql, describe(v))
		}
	}
}

// wantPrimary wants class and at least the given effects.
func wantPrimary(t *testing.T, d classify.Dialect, class classify.Class, effect classify.Effect, texts ...string) {
	t.Helper()
	for _, sql := range texts {
		v := classify.Classify(d, sql)
		if v.Replica() || v.Class != class || v.Effect&effect != effect || v.Reason == "" {
			t.Errorf("%v: %q: want %v with effects %q on the primary, got %s", d, sql, class, effect, describe(v))
		}
	}
}

// A try-lock taken on a replica, its unlock sent to the primary.
// https://github.com/instacart/makara/issues/399
func TestReportA1AdvisoryLocks(t *testing.T) {
	wantPrimary(t, pg, classify.Lock, classify.Pins|classify.Silent,
		"SELECT pg_try_advisory_lock(7)", "SELECT pg_advisory_unlock(7)", "select pg_advisory_lock (1, 2)",
		"SELECT pg_try_advisory_lock_shared\n(7)", "SELECT pg_advisory_xact_lock/* x */(7)",
		"SELECT pg_try_advisory_xact_lock_shared(7)", "SELECT pg_advisory_unlock_all()",
		"SELECT pg_catalog.pg_advisory_unlock_shared(7)", `SELECT "pg_advisory_lock"(7)`,
		"SELECT a FROM t WHERE PG_TRY_ADVISORY_LOCK(t.id)")
	wantPrimary(t, my, classify.Lock, classify.Pins|classify.Silent,
		"SELECT GET_LOCK('a', 1)", "SELECT RELEASE_LOCK('a')", "select get_lock ('a', 1)", "SELECT RELEASE_ALL_LOCKS()",
		"SELECT IS_FREE_LOCK('a')", "SELECT IS_USED_LOCK\t('a')", "SELECT `GET_LOCK`('a', 1)")
}

// A migration took GET_LOCK on a replica and released it on the primary.
// https://github.com/instacart/makara/pull/198
func TestReportA2MigrationLock(t *testing.T) {
	wantPrimary(t, my, classify.Lock, classify.Pins, "SELECT GET_LOCK('migrate', 10)")
	wantPrimary(t, my, classify.DDL, classify.Stamps, "CREATE INDEX i ON t (a)")
	wantPrimary(t, my, classify.Lock, classify.Pins, "SELECT RELEASE_LOCK('migrate')")
}

// A union in parentheses always went to the primary.
// https://github.com/instacart/makara/issues/212
func TestReportA3ParenthesisedUnion(t *testing.T) {
	for _, d := range []classify.Dialect{pg, my, maria} {
		wantReplica(t, d, "(SELECT a FROM t ORDER BY 1 LIMIT 3) UNION (SELECT a FROM u LIMIT 3)",
			"((SELECT a FROM t))", " ( SELECT 1 ) ", "/* x */ (SELECT 1) UNION ALL (SELECT 2) ORDER BY 1")
		wantPrimary(t, d, classify.Lock, 0, "(SELECT a FROM t FOR UPDATE)",
			"(SELECT a FROM t) UNION (SELECT a FROM u FOR UPDATE)", "((SELECT a FROM t FOR UPDATE))")
	}
}

// Two WITHs, a comment, then an INSERT: sent to a replica.
// https://github.com/Nasdaq/active_record_proxy_adapters/issues/45
func TestReportA5WithCommentInsert(t *testing.T) {
	wantPrimary(t, pg, classify.Write, classify.Stamps,
		"WITH a AS (SELECT 1 x), b AS (SELECT x FROM a) -- note\n INSERT INTO t SELECT x FROM b",
		"WITH a AS (SELECT 1 x), b AS (SELECT x FROM a) /* note */ INSERT INTO t SELECT x FROM b",
		"WITH a AS (SELECT 1 x)--\nUPDATE t SET a = 1", "WITH a(x) AS (SELECT 1)/**/DELETE FROM t")
	wantPrimary(t, my, classify.Write, classify.Stamps,
		"WITH a AS (SELECT 1 x) # note\n UPDATE t JOIN a SET t.x = a.x", "WITH a AS (SELECT 1) -- x\nDELETE FROM t")
}

// Tags of query logs in front of a statement broke its classification.
// https://github.com/Nasdaq/active_record_proxy_adapters/issues/311
func TestReportA6LeadingComments(t *testing.T) {
	wantReplica(t, pg, "/*app:api*/ SELECT 1", "-- t\nSELECT 1", "/* a /* b */ c */SELECT 1", "\n\t/*a*/--b\n/*c*/ SELECT 1")
	wantReplica(t, my, "/*app:api*/ SELECT 1", "# t\nSELECT 1", "-- t\nSELECT 1", "--\nSELECT 1")
	wantPrimary(t, pg, classify.Session, classify.Pins, "/*app:api*/ SET x=1")
	wantPrimary(t, my, classify.Session, classify.Pins, "/*app:api*/ SET x=1")
	wantPrimary(t, pg, classify.Write, classify.Stamps, "-- t\nUPDATE t SET a=1", "/* a /* b */ c */ DELETE FROM t")
	wantPrimary(t, my, classify.Write, classify.Stamps, "-- t\nUPDATE t SET a=1", "# t\nUPDATE t SET a=1", "/*! UPDATE t SET a=1 */")
}

// A locking read over several lines went to a replica.
// https://github.com/stuttter/ludicrousdb/issues/55
func TestReportA8MultilineLockingRead(t *testing.T) {
	for _, d := range []classify.Dialect{pg, my, maria} {
		wantPrimary(t, d, classify.Lock, 0, "SELECT *\nFROM t\nWHERE id=1\nFOR UPDATE;",
			"select * from t for\r\n\tupdate", "SELECT * FROM t fOr UpDaTe ; ; ")
	}
}

// An identifier that ends in a word of writes pinned every page.
// https://github.com/stuttter/ludicrousdb/issues/94
func TestReportA9WordsInIdentifiers(t *testing.T) {
	for _, d := range []classify.Dialect{pg, my, maria} {
		wantReplica(t, d, "SELECT v FROM opts WHERE autoload = 'yes'", "SELECT for_update, lock_in_share_mode FROM t",
			"SELECT t.update, t.delete FROM t", "SELECT updated, inserts, into_x FROM deletes", "SELECT a AS for_update FROM t")
	}
}

// A rule with anchors missed FOR UPDATE behind a line break.
// https://github.com/sysown/proxysql/issues/1670
func TestReportA10ForUpdateBehindLineBreak(t *testing.T) {
	for _, d := range []classify.Dialect{pg, my, maria} {
		wantPrimary(t, d, classify.Lock, 0, "SELECT a,\n b FROM t WHERE c=1\n and d='x' FOR UPDATE;")
	}
}

// NOWAIT, SKIP LOCKED, OF and FOR SHARE were not recognised.
// https://github.com/OLIOEX/janus-ar/pull/177
func TestReportA11LockingClauses(t *testing.T) {
	for _, d := range []classify.Dialect{pg, my, maria} {
		wantPrimary(t, d, classify.Lock, 0, "SELECT id FROM jobs ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED",
			"SELECT id FROM jobs FOR UPDATE NOWAIT", "SELECT id FROM jobs FOR UPDATE OF jobs", "SELECT id FROM jobs FOR SHARE",
			"SELECT * FROM (SELECT id FROM jobs FOR SHARE SKIP LOCKED) j", "SELECT 1 WHERE EXISTS (SELECT 1 FROM t FOR UPDATE)")
	}
	wantPrimary(t, pg, classify.Lock, 0, "SELECT id FROM jobs FOR NO KEY UPDATE", "SELECT id FROM jobs FOR KEY SHARE")
	wantPrimary(t, my, classify.Lock, 0, "SELECT id FROM jobs LOCK IN SHARE MODE")
}

// A call of a sequence was routed to a replica.
// https://github.com/postgresml/pgcat/issues/489
func TestReportA12Sequences(t *testing.T) {
	wantPrimary(t, pg, classify.Write, classify.Stamps, "SELECT nextval('s')", "SELECT setval('s', 1)",
		"SELECT NextVal ('s') + 1", "INSERT INTO t SELECT nextval('s')", "SELECT * FROM t WHERE id = nextval('s')")
	wantPrimary(t, pg, classify.Session, 0, "SELECT currval('s')", "SELECT lastval()")
	wantPrimary(t, maria, classify.Write, classify.Stamps, "SELECT NEXTVAL(s)", "SELECT NEXT VALUE FOR s", "SELECT SETVAL(s, 5)")
}

// A data-modifying WITH was judged by its last SELECT.
// https://github.com/postgresml/pgcat/issues/829
func TestReportA13ModifyingWith(t *testing.T) {
	wantPrimary(t, pg, classify.Write, classify.Stamps,
		"WITH u AS (UPDATE t SET a=1 RETURNING id) SELECT id FROM u",
		"WITH x AS (SELECT 1), u AS (DELETE FROM t RETURNING id) SELECT id FROM u",
		"WITH u AS MATERIALIZED (INSERT INTO t VALUES (1) RETURNING id) SELECT id FROM u",
		"SELECT * FROM (WITH u AS (UPDATE t SET a=1 RETURNING id) SELECT id FROM u) x")
}

// DML with RETURNING has to be run by Query, which meant "replica".
// https://github.com/bxcodec/dbresolver/issues/28
func TestReportA14Returning(t *testing.T) {
	wantPrimary(t, pg, classify.Write, classify.Stamps, "INSERT INTO t(a) VALUES($1) RETURNING id",
		"UPDATE t SET a = 1 RETURNING *", "DELETE FROM t RETURNING id")
	wantPrimary(t, maria, classify.Write, classify.Stamps, "INSERT INTO t(a) VALUES(?) RETURNING id", "REPLACE INTO t VALUES (1) RETURNING id")
	wantReplica(t, pg, "SELECT returning_at FROM t", `SELECT "returning" FROM t`)
}

// Texts that begin with a line break, or with WITH, never used a replica.
// https://github.com/go-gorm/dbresolver/issues/19 and /106
func TestReportA15LineBreakAndWith(t *testing.T) {
	for _, d := range []classify.Dialect{pg, my, maria, classify.AnyMySQL, classify.Generic} {
		wantReplica(t, d, "\n select a from t", "\r\n\t\f SELECT 1", "WITH r AS (SELECT 1) SELECT * FROM r", "\ufeffSELECT 1")
	}
}

// A SET ran on one of two connections only.
// https://github.com/sysown/proxysql/issues/653
func TestReportA16Set(t *testing.T) {
	v := classify.Classify(my, "SET time_zone='+09:00'")
	if v.Class != classify.Session || v.Vars != classify.TimeZone || v.Effect&classify.Pins != 0 {
		t.Errorf("time_zone: %s", describe(v))
	}
	v = classify.Classify(my, "SET NAMES utf8mb4")
	if v.Class != classify.Session || v.Vars != classify.Names || v.Effect&classify.Pins != 0 {
		t.Errorf("NAMES: %s", describe(v))
	}
	wantPrimary(t, my, classify.Session, classify.Pins|classify.OpensTx|classify.EndsTx, "SET autocommit=0", "SET @@session.autocommit = 0")
}

// LAST_INSERT_ID() was 0 after an INSERT.
// https://github.com/sysown/proxysql/issues/1048
func TestReportA17LastInsertID(t *testing.T) {
	wantPrimary(t, my, classify.Session, 0, "SELECT LAST_INSERT_ID()", "select last_insert_id ()", "SELECT @@last_insert_id",
		"SELECT * FROM t WHERE id = LAST_INSERT_ID()", "SELECT @@identity", "SELECT ROW_COUNT()", "SELECT FOUND_ROWS()")
	wantPrimary(t, pg, classify.Session, 0, "SELECT lastval()")
}

// A user variable was NULL.
// https://github.com/sysown/proxysql/issues/1506
func TestReportA18UserVariable(t *testing.T) {
	wantPrimary(t, my, classify.Session, classify.Pins, "SET @x := 5", "SET @x = 5", "SELECT @x := 5", "SELECT a INTO @x FROM t")
	wantPrimary(t, my, classify.Session, 0, "SELECT @x", "SELECT @`x`", "SELECT a FROM t WHERE b = @'x'")
}

// A temporary table was created on one node and read on another.
// https://github.com/sysown/proxysql/issues/941, https://github.com/actiontech/dble/pull/2379
func TestReportA19TemporaryTable(t *testing.T) {
	wantPrimary(t, my, classify.DDL, classify.Pins|classify.TempObject, "CREATE TEMPORARY TABLE x (a INT)",
		"create temporary table x select 1", "CREATE OR REPLACE TEMPORARY TABLE x (a INT)", "CREATE /* x */ TEMPORARY TABLE IF NOT EXISTS x (a INT)")
	wantPrimary(t, pg, classify.DDL, classify.Pins|classify.TempObject, "CREATE TEMP TABLE x (a int)",
		"CREATE TEMPORARY TABLE x AS SELECT 1", "CREATE GLOBAL TEMP TABLE x (a int)", "CREATE TABLE pg_temp.x (a int)", "CREATE TEMP SEQUENCE s")
	wantPrimary(t, pg, classify.Write, classify.Pins|classify.TempObject, "SELECT 1 INTO TEMP x")
}

// Reads inside an open transaction went to a replica; explicit READ ONLY
// transactions should use one.
// https://github.com/goauthentik/authentik/pull/19086, https://github.com/pgdogdev/pgdog/issues/334
func TestReportA21A22Transactions(t *testing.T) {
	for _, d := range []classify.Dialect{pg, my, maria} {
		wantPrimary(t, d, classify.Transaction, classify.OpensTx, "BEGIN", "START TRANSACTION", "begin; ", "/* x */ BEGIN")
		wantPrimary(t, d, classify.Transaction, classify.OpensTx|classify.ReadOnlyTx, "START TRANSACTION READ ONLY")
		wantPrimary(t, d, classify.Transaction, classify.EndsTx, "COMMIT", "ROLLBACK")
		for _, sql := range []string{"BEGIN", "START TRANSACTION READ WRITE"} {
			if v := classify.Classify(d, sql); v.Effect&(classify.ReadOnlyTx|classify.Stamps) != 0 {
				t.Errorf("%v: %q: %s", d, sql, describe(v))
			}
		}
	}
	// A hot standby refuses it.
	if v := classify.Classify(pg, "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY"); v.Effect&classify.ReadOnlyTx != 0 {
		t.Errorf("serializable: %s", describe(v))
	}
}

// A write inside a GET request raised a read-only error.
// https://github.com/doorkeeper-gem/doorkeeper/issues/1783, https://github.com/rails/activerecord-session_store/issues/185
func TestReportA36WriteInGet(t *testing.T) {
	for _, d := range []classify.Dialect{pg, my, maria} {
		wantPrimary(t, d, classify.Write, classify.Stamps, "UPDATE sessions SET seen=now()")
	}
}

// EXPLAIN ANALYZE of DML was classed as a read.
// https://github.com/TabularisDB/tabularis/pull/456
func TestReportA37ExplainAnalyze(t *testing.T) {
	wantPrimary(t, pg, classify.Write, classify.Stamps, "EXPLAIN (ANALYZE, BUFFERS) UPDATE t SET a=1", "EXPLAIN ANALYZE DELETE FROM t",
		"EXPLAIN (BUFFERS, ANALYZE on) INSERT INTO t VALUES (1)", "EXPLAIN (ANALYZE off, ANALYZE 1) DELETE FROM t",
		"EXPLAIN ANALYSE VERBOSE DELETE FROM t", "EXPLAIN (analyze) WITH d AS (DELETE FROM t RETURNING 1) SELECT 1")
	wantPrimary(t, my, classify.Write, classify.Stamps, "EXPLAIN ANALYZE DELETE FROM t", "DESC ANALYZE UPDATE t SET a = 1")
	wantPrimary(t, maria, classify.Write, classify.Stamps, "ANALYZE UPDATE t SET a=1", "ANALYZE FORMAT=JSON DELETE FROM t")
	wantReplica(t, pg, "EXPLAIN SELECT 1", "EXPLAIN (ANALYZE, BUFFERS) SELECT 1", "EXPLAIN (ANALYZE false) SELECT 1")
	wantReplica(t, my, "EXPLAIN SELECT 1", "EXPLAIN ANALYZE SELECT 1", "EXPLAIN FORMAT=JSON SELECT 1")
}

// A statement stacked behind a read passed the read-only check.
// https://github.com/rails/rails/pull/58801
func TestReportA40StackedStatements(t *testing.T) {
	for _, d := range []classify.Dialect{pg, my, maria} {
		wantPrimary(t, d, classify.Multi, classify.Stamps, "SELECT 1; DROP TABLE t", "SELECT 1;;/* x */;DELETE FROM t",
			"SELECT 1; SELECT 2; INSERT INTO t VALUES (1)", "SELECT ';'; UPDATE t SET a = 1")
		wantReplica(t, d, "SELECT 1; -- end", "SELECT 1; ", "SELECT 1; SELECT 2", "SELECT '; DROP TABLE t'", "SELECT 1 /* ; DROP TABLE t */")
	}
	wantPrimary(t, my, classify.Multi, classify.Pins, "SELECT 1; SET @x = 1")
}
