package dialect

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlreplicated/replicated/internal/classify"
)

func mysqlDialect(kind classify.Dialect, identify func(context.Context, driver.Conn) (Identity, error)) *Dialect {
	return &Dialect{
		Kind:     kind,
		identify: identify,
		sample: func(ctx context.Context, conn driver.Conn) (Identity, error) {
			return sampleMySQL(ctx, conn, identify)
		},
		fence:     fenceMySQL,
		settings:  mysqlSettings,
		apply:     applyMySQL,
		catalog:   catalogMySQL,
		relations: relationsMySQL,
		beats:     mysqlBeats,
		codes:     mysqlCode,
	}
}

// fenceMySQL sets autocommit right first, since turning it on would end a
// transaction, which could only be one that an init_connect has left.
func fenceMySQL(ctx context.Context, conn driver.Conn, id Identity) error {
	if id.AutocommitOff || id.Chains {
		if err := exec(ctx, conn, "SET SESSION autocommit = 1, SESSION completion_type = 'NO_CHAIN'"); err != nil {
			return err
		}
	}
	// The statement, not the variable, whose name depends on the version
	// (tx_read_only, transaction_read_only).
	return exec(ctx, conn, "SET SESSION TRANSACTION READ ONLY")
}

// mysqlSettings are the variables that are replayed. collation_connection
// implies character_set_connection.
var mysqlSettings = []setting{
	mysqlSetting(classify.Names, "character_set_client", "character_set_results", "collation_connection"),
	mysqlSetting(classify.TimeZone, "time_zone"),
	mysqlSetting(classify.SQLMode, "sql_mode"),
	{v: classify.Database, names: []string{""}, exprs: []string{"DATABASE()"}},
}

func mysqlSetting(v classify.Vars, names ...string) setting {
	exprs := make([]string, len(names))
	for i, n := range names {
		exprs[i] = "@@session." + n
	}
	return setting{v: v, names: names, exprs: exprs}
}

// applyMySQL assigns all variables in one SET; the database takes a USE, after
// it, because its name is then read in the character set that it came in.
func applyMySQL(ctx context.Context, conn driver.Conn, todo []assignment) error {
	var sets []string
	use := ""
	for _, a := range todo {
		if a.v == classify.Database {
			name, err := quoteMySQLName(a.cell)
			if err != nil {
				return err
			}
			use = "USE " + name
			continue
		}
		value, err := quoteMySQL(a.cell)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		sets = append(sets, "SESSION "+a.name+" = "+value)
	}
	if len(sets) > 0 {
		if err := exec(ctx, conn, "SET "+strings.Join(sets, ", ")); err != nil {
			return err
		}
	}
	if use != "" {
		return exec(ctx, conn, use)
	}
	return nil
}

// quoteMySQL returns the value of a variable as a literal. All that it has to
// hold are names of zones, modes and character sets; anything that could end a
// literal, or begin an escape under one sql_mode and not under another, is
// refused.
func quoteMySQL(c cell) (string, error) {
	if c.null {
		return "NULL", nil
	}
	for _, b := range []byte(c.text) {
		switch {
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9', strings.IndexByte("_+-:/,. ", b) >= 0:
		default:
			return "", errors.New("value with a character that is not replayed")
		}
	}
	return "'" + c.text + "'", nil
}

// quoteMySQLName returns a database's name in backquotes, which are read alike
// under every sql_mode. In some character sets (gbk, sjis) the byte of a
// backquote may be the second one of a character, so a name with that byte and
// with bytes beyond ASCII is refused rather than guessed at.
func quoteMySQLName(c cell) (string, error) {
	if c.null || c.text == "" {
		return "", errors.New("a connection that has a database cannot be brought back to none")
	}
	if strings.Contains(c.text, "`") && strings.IndexFunc(c.text, func(r rune) bool { return r > 0x7f }) >= 0 {
		return "", errors.New("database name that cannot be quoted safely")
	}
	return "`" + strings.ReplaceAll(c.text, "`", "``") + "`", nil
}

// mysqlCode finds an error's number in the table.
func mysqlCode(err error) (ErrorClass, bool) {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	if !ok {
		return None, false
	}
	if class, ok := mysqlCodes[e.Number]; ok {
		return class, true
	}
	return Statement, true
}

// mysqlCodes is the "Server Error Message Reference" of MySQL and the "Error
// Codes" of MariaDB, as far as a number means more than a fault of the
// statement. Numbers from 2000 on are a client library's; proxies send them.
var mysqlCodes = map[uint16]ErrorClass{
	1080: Lost, // forcing close of thread
	1152: Lost, // aborted connection
	1158: Lost, // reading from the network
	1159: Lost, // … timed out
	1160: Lost, // writing to the network
	1161: Lost, // … timed out
	1184: Lost, // aborted new connection
	1927: Lost, // connection was killed (MariaDB)
	2002: Lost, // cannot connect, socket
	2003: Lost, // cannot connect, TCP
	2006: Lost, // server has gone away
	2013: Lost, // lost connection during query
	2055: Lost, // lost connection, with the system's error
	4031: Lost, // closed after wait_timeout (MySQL 8.0.24)

	1047: Down, // "unknown command": a Galera node that is not prepared
	1053: Down, // server shutdown in progress
	1077: Down, // normal shutdown
	1079: Down, // shutdown complete
	1194: Down, // table is marked as crashed
	1195: Down, // … and repair failed
	9001: Down, // ProxySQL has reached no server of the hostgroup

	1205: Conflict, // lock wait timeout, on a replica behind DDL being applied
	1213: Conflict, // deadlock; on a Galera node with an applier

	1049: Missing, // database
	1054: Missing, // column
	1109: Missing, // table, where it is named elsewhere in the statement
	1128: Missing, // loadable function, which is not replicated
	1146: Missing, // table
	1193: Missing, // system variable, of another version
	1286: Missing, // storage engine
	1305: Missing, // function or procedure
	1356: Missing, // what a view refers to
	1630: Missing, // function, named with a blank before the parenthesis
	4091: Missing, // sequence (MariaDB)
	1142: Missing, // privilege on a table: the GRANT may be on its way
	1143: Missing, // privilege on a column
	1370: Missing, // privilege on a routine

	1290: Fence, // --read-only, but also any other option that forbids something
	1792: Fence, // read-only transaction
	1836: Fence, // read-only mode
	1874: Fence, // InnoDB is read-only

	1021: Busy, // disk full
	1037: Busy, // out of memory
	1040: Busy, // too many connections
	1041: Busy, // out of memory
	1129: Busy, // host is blocked because of many connection errors
	1135: Busy, // cannot create a thread
	1203: Busy, // max_user_connections
	1226: Busy, // the user's resource limit

	1044: Auth, // database, for this user
	1045: Auth, // user or password
	1130: Auth, // host
	1251: Auth, // authentication protocol
	1698: Auth, // no password given
	1820: Auth, // password must be changed
	1862: Auth, // password has expired
	3118: Auth, // account locked (MySQL)
	3159: Auth, // TLS is required
	4151: Auth, // account locked (MariaDB)

	1317: Cancelled, // KILL QUERY
	1969: Cancelled, // max_statement_time (MariaDB)
	3024: Cancelled, // max_execution_time (MySQL)
}
