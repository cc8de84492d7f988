package difftest_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/lib/pq"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

var servers = map[replicatedtest.Engine]*server{
	replicatedtest.Postgres: &postgres,
	replicatedtest.MariaDB:  &mariadb,
	replicatedtest.MySQL:    &mysql56,
}

// isServerError tells errors that a server has sent from those of a connection.
func isServerError(err error) bool {
	var p *pq.Error
	var m *mysql.MySQLError
	return errors.As(err, &p) || errors.As(err, &m)
}

// code returns the server's code of an error, "lost" for another one.
func code(err error) string {
	var p *pq.Error
	if errors.As(err, &p) {
		return string(p.Code)
	}
	var m *mysql.MySQLError
	if errors.As(err, &m) {
		return fmt.Sprint(m.Number)
	}
	return "lost"
}

// library are the tables that the corpora and the generator speak of.
var library = []string{
	"CREATE TABLE books (id int PRIMARY KEY, title varchar(100), copies int, late int, returned_at date)",
	"CREATE TABLE members (id int PRIMARY KEY, name varchar(100))",
	"CREATE TABLE loans (id int PRIMARY KEY, book_id int, member_id int, late int, due date, returned_at date)",
	"INSERT INTO books (id, title, copies, late) VALUES (1, 'Kokoro', 2, 0), (2, 'Sanshiro', 0, 1), (4, 'Botchan', 1, 0)",
	"INSERT INTO members VALUES (1, 'Aiko'), (2, 'Ken')",
	"INSERT INTO loans (id, book_id, member_id, late) VALUES (1, 1, 1, 0), (2, 4, 1, 1)",
	"CREATE VIEW overdue AS SELECT id FROM loans WHERE late = 1",
}

func with(lists ...[]string) (all []string) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

var postgres = server{
	dialect: classify.Postgres,
	schema: with(library, []string{
		"CREATE EXTENSION pg_trgm", "CREATE EXTENSION pgcrypto", "CREATE EXTENSION dblink",
		"CREATE SEQUENCE fine_seq", "SELECT nextval('fine_seq')",
		`CREATE TABLE odd ("nextval(1)" int, b$y$ int)`,
		`CREATE TABLE "For Update" (id int, "nextval(1)" int, "a""b" text, b$y$ text)`, `INSERT INTO "For Update" VALUES (1, 2, 'x', 'y')`,
		`CREATE TABLE words (id int, update int, insert int, delete int, lock int, share int, nextval int, set int, call int, "for" text, "into" text, temporary text, key text)`,
		"INSERT INTO words VALUES (1, 2, 3, 4, 5, 6, 7, 8, 9, 'a', 'b', 'c', 'd')",
		"ALTER TABLE books ADD meta jsonb", `UPDATE books SET meta = '{"a": 1, "lock": true}'`,
		"CREATE FUNCTION f_write(i int) RETURNS int LANGUAGE sql AS 'INSERT INTO members VALUES (100 + i) ON CONFLICT (id) DO UPDATE SET name = md5(random()::text); SELECT 1'",
		"CREATE FUNCTION f_pure(i int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT i'",
		"CREATE PROCEDURE p_write(i int) LANGUAGE sql AS 'DELETE FROM members WHERE id > 100'",
		`CREATE TABLE t (id int, a text, b text, c text, d jsonb, e text, f text, x text, y text, z text, n int, update int, insert int, delete int, lock int, share int, set int, call int, nextval int, meta jsonb)`,
		`CREATE TABLE k ("into" int, "for" int, update int)`, "CREATE SEQUENCE seq",
		"SELECT lo_from_bytea(1, 'abc')",
		"VACUUM FREEZE", "CHECKPOINT",
	}),
	modes:        [][]string{nil, {"SET standard_conforming_strings = off"}},
	replicaAdmin: true,
	dsn:          []string{"statement_timeout=1000", "client_min_messages=error"},
	shared: []string{
		`SELECT 'relation', n.nspname, c.relname, c.relkind, c.relfilenode FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname NOT IN ('pg_catalog', 'information_schema')`,
		"SELECT 'sequence', last_value, is_called, log_cnt FROM fine_seq",
		"SELECT 'next transaction', txid_snapshot_xmax(txid_current_snapshot())",
		"SELECT 'log position', pg_current_wal_insert_lsn()",
		`SELECT 'rows', n, md5(r) FROM (
			SELECT 'books' n, string_agg(concat(xmin, ' ', xmax, ' ', t), ',' ORDER BY t::text) r FROM books t UNION ALL
			SELECT 'members', string_agg(concat(xmin, ' ', xmax, ' ', t), ',' ORDER BY t::text) FROM members t UNION ALL
			SELECT 'loans', string_agg(concat(xmin, ' ', xmax, ' ', t), ',' ORDER BY t::text) FROM loans t UNION ALL
			SELECT 'words', string_agg(concat(xmin, ' ', xmax, ' ', t), ',' ORDER BY t::text) FROM words t UNION ALL
			SELECT 'odd', string_agg(concat(xmin, ' ', xmax, ' ', t), ',' ORDER BY t::text) FROM odd t UNION ALL
			SELECT 'For Update', string_agg(concat(xmin, ' ', xmax, ' ', t), ',' ORDER BY t::text) FROM "For Update" t) x`,
		"SELECT 'large object', oid FROM pg_largeobject_metadata",
		"SELECT 'counts', (SELECT count(*) FROM pg_proc), (SELECT count(*) FROM pg_type), (SELECT count(*) FROM pg_namespace), (SELECT count(*) FROM pg_authid), (SELECT count(*) FROM pg_database), (SELECT count(*) FROM pg_db_role_setting), (SELECT count(*) FROM pg_description), (SELECT count(*) FROM pg_collation)",
		"SELECT 'slot', slot_name FROM pg_replication_slots WHERE slot_type = 'logical' OR NOT active UNION ALL SELECT 'origin', roname FROM pg_replication_origin UNION ALL SELECT 'prepared', gid FROM pg_prepared_xacts",
		"SELECT 'reset', stats_reset FROM pg_stat_database WHERE datname = current_database() UNION ALL SELECT 'reset bgwriter', stats_reset FROM pg_stat_bgwriter UNION ALL SELECT name, stats_reset FROM pg_stat_slru",
		"SELECT 'configuration', modification, size FROM pg_stat_file('postgresql.auto.conf')",
		"SELECT 'loaded', pg_conf_load_time()",
		"SELECT 'file', f FROM pg_ls_dir('.') f WHERE f <> 'core'",
	},
	own: []string{
		"SELECT 'setting', name, setting FROM pg_settings WHERE source = 'session'",
		`SELECT 'session', current_user, session_user, current_schemas(true), pg_my_temp_schema(), current_setting('app.x', true), now() = statement_timestamp(),
			(SELECT count(*) FROM pg_prepared_statements), (SELECT string_agg(name, ' ') FROM pg_cursors WHERE name <> ''), (SELECT string_agg(c, ' ') FROM pg_listening_channels() c),
			(SELECT string_agg(concat(classid, '.', objid), ' ') FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'), dblink_get_connections()`,
	},
	held: []string{
		// lo_get and pg_sequence_last_value open what they read as if to write.
		`SELECT 'lock', locktype, mode, relation::regclass, objid FROM pg_locks WHERE pid = pg_backend_pid() AND locktype <> 'virtualxid' AND NOT (locktype = 'relation' AND (mode = 'AccessShareLock' OR mode = 'RowExclusiveLock' AND (relation::regclass::text LIKE 'pg_largeobject%' OR relation = 'fine_seq'::regclass)))`,
		"SELECT 'transaction', txid_current_if_assigned() WHERE txid_current_if_assigned() IS NOT NULL",
		"SELECT 'exported', f FROM pg_ls_dir('pg_snapshots') f",
		"SELECT 'cursor', name FROM pg_cursors WHERE name <> ''",
	},
	filter: func(s state) state { return s },
	// 57014 and class 40 come and go with load and replay.
	refused: func(err error) bool {
		return err != nil && isServerError(err) && code(err) != "57014" && !strings.HasPrefix(code(err), "40")
	},
}

// mysqlSchema are the tables of MariaDB and MySQL.
var mysqlSchema = []string{
	"CREATE TABLE book_audit (`update` int, `lock` int)", "CREATE TABLE `lock` (`select` int, `into` int)", "INSERT INTO `lock` VALUES (1, 2)",
	"CREATE TABLE counters (nextval int, lastval int)", "INSERT INTO counters VALUES (1, 2)", "ALTER TABLE books ADD INDEX i_title (title)",
	"CREATE TABLE t (id int, a int, b text, c text, d text, e text, f text, x int, y int, z int, n int, `update` int, `insert` int, `delete` int, `lock` int, `share` int, `set` int, `call` int, nextval int, FULLTEXT (b), FULLTEXT (c))",
	"CREATE TABLE s (nextval int, currval int)",
	"CREATE FUNCTION f_write(i int) RETURNS int MODIFIES SQL DATA BEGIN INSERT INTO members VALUES (100 + i, 'x') ON DUPLICATE KEY UPDATE name = UUID(); RETURN 1; END",
	"CREATE FUNCTION f_pure(i int) RETURNS int DETERMINISTIC NO SQL RETURN i",
	"CREATE PROCEDURE p_write(i int) DELETE FROM members WHERE id > 100",
}

var mysqlModes = [][]string{nil, {"SET sql_mode = 'ANSI_QUOTES'"}, {"SET sql_mode = 'NO_BACKSLASH_ESCAPES'"}, {"SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'"}, {"SET sql_mode = 'IGNORE_SPACE,PIPES_AS_CONCAT'"},
	// Two character sets in which a backslash may be the half of a character.
	{"SET NAMES gbk"}, {"SET NAMES sjis"},
	// One in which other bytes are blanks.
	{"SET NAMES latin1"}}

var mysqlShared = []string{
	// What happens in other schemas is in the binary log.
	"SELECT 'relation', table_name, table_type, create_time FROM information_schema.tables WHERE table_schema = 'app'",
	"CHECKSUM TABLE books, members, loans, book_audit, `lock`, counters",
	"SHOW MASTER STATUS",
	"SELECT 'user', user, host FROM mysql.user",
	"SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'",
	"SHOW SLAVE STATUS",
}

var mysqlOwn = []string{
	"SELECT 'session', LAST_INSERT_ID(), CURRENT_USER(), DATABASE(), @v1, @`v2`, @'v3', @v4, @`v.x$1`, IS_USED_LOCK('l1') = CONNECTION_ID(), IS_USED_LOCK('l2') = CONNECTION_ID()",
	"SHOW SESSION VARIABLES",
	"SHOW SESSION STATUS LIKE 'Com\\_%'",
}

var mysqlHeld = []string{"SHOW ENGINE INNODB STATUS"}

func isMySQLRefusal(err error) bool {
	switch code(err) {
	case "1044", "1045", "1142", "1143", "1227", "1370": // rights that the application lacks
		return false
	case "1317", "1969", "1205", "3024": // load
		return false
	}
	return err != nil && isServerError(err)
}

var mariadb = server{
	dialect: classify.MariaDB,
	schema: with(library, mysqlSchema, []string{
		"CREATE SEQUENCE s_fine NOCACHE", "CREATE TABLE books_v (title varchar(100)) WITH SYSTEM VERSIONING", "SELECT NEXTVAL(s_fine)", "INSTALL SONAME 'metadata_lock_info'",
		"SET GLOBAL innodb_stats_persistent = OFF"}),
	modes: append(mysqlModes, []string{"SET sql_mode = 'ORACLE'"}, []string{"SET sql_mode = 'ORACLE,NO_BACKSLASH_ESCAPES'"}),
	dsn:   []string{"multiStatements=true", "max_statement_time=1"},
	shared: append(mysqlShared[:len(mysqlShared):len(mysqlShared)],
		"SELECT 'sequence', next_not_cached_value, cycle_count FROM s_fine"),
	own: append(mysqlOwn[:len(mysqlOwn):len(mysqlOwn)], "SELECT 'variable', variable_name, variable_value FROM information_schema.user_variables",
		"SELECT 'lock', lock_mode, table_name FROM information_schema.metadata_lock_info WHERE thread_id = CONNECTION_ID()",
		"SHOW SESSION STATUS LIKE 'Handler_write'"), // of real tables only
	held:    append(mysqlHeld[:1:1], "SELECT 'lock', lock_mode, lock_type, table_name FROM information_schema.metadata_lock_info WHERE lock_mode NOT IN ('MDL_SHARED', 'MDL_SHARED_READ', 'MDL_SHARED_HIGH_PRIO')"),
	filter:  mysqlFilter,
	refused: isMySQLRefusal,
}

var mysql56 = server{
	dialect: classify.MySQL,
	schema:  with(library, mysqlSchema),
	modes:   mysqlModes,
	dsn:     []string{"multiStatements=true"},
	shared:  mysqlShared,
	own:     mysqlOwn,
	held:    mysqlHeld,
	filter:  mysqlFilter,
	refused: isMySQLRefusal,
}

// harmlessCounts are the counters of commands that reads, and the oracle itself,
// raise.
var harmlessCounts = []string{"Com_select ", "Com_show_", "Com_admin_commands ", "Com_help ", "Com_empty_query ", "Com_stmt_", "Com_checksum ", "Com_multi ", "Com_explain", "Com_analyze"}

// mysqlFilter drops what changes by itself, and reduces InnoDB's report to the
// locks in it.
func mysqlFilter(s state) state {
	var kept state
	for _, line := range s {
		name, _, _ := strings.Cut(line, " ")
		switch {
		case name == "timestamp" || name == "warning_count" || name == "error_count" || strings.HasPrefix(name, "rand_seed") || name == "pseudo_thread_id" || strings.HasPrefix(name, "gtid_binlog_state"):
			continue
		case name == "InnoDB":
			for _, l := range strings.Split(line, "\n") {
				if strings.Contains(l, "lock struct(s)") && !strings.HasPrefix(l, "0 lock struct(s)") || strings.Contains(l, "undo log entries") {
					kept = append(kept, l)
				}
			}
			continue
		}
		harmless := false
		for _, prefix := range harmlessCounts {
			harmless = harmless || strings.HasPrefix(line, prefix)
		}
		if !harmless {
			kept = append(kept, line)
		}
	}
	return kept
}
