package dialect

import (
	"errors"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// mysqlCode finds an error's number in the tables of the kind. Where it is not known
// which of the two answers, both count, MySQL's first.
func mysqlCode(kind classify.Dialect, err error) (ErrorClass, bool) {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	if !ok {
		return None, false
	}
	if class, ok := mysqlCodes[e.Number]; ok {
		return class, true
	}
	if class, ok := mysqlOwnCodes[e.Number]; ok && kind != classify.MariaDB {
		return class, true
	}
	if class, ok := mariadbOwnCodes[e.Number]; ok && kind != classify.MySQL {
		return class, true
	}
	return Statement, true
}

// mysqlCodes is the "Server Error Message Reference" of MySQL and the "Error
// Codes" of MariaDB, as far as a number means more than a fault of the
// statement. Numbers from 2000 to 2999 are a client library's; proxies send them.
var mysqlCodes = map[uint16]ErrorClass{
	1080: Lost, // forcing close of thread
	1042: Lost, // the client's host name cannot be had
	1043: Lost, // bad handshake
	1152: Lost, // aborted connection
	1154: Lost, // reading from the connection's pipe
	1155: Lost, // fcntl
	1156: Lost, // packets out of order
	1157: Lost, // … that cannot be uncompressed
	1158: Lost, // reading from the network
	1159: Lost, // … timed out
	1160: Lost, // writing to the network
	1161: Lost, // … timed out
	1184: Lost, // aborted new connection
	2002: Lost, // cannot connect, socket
	2003: Lost, // cannot connect, TCP
	2006: Lost, // server has gone away
	2013: Lost, // lost connection during query
	2055: Lost, // lost connection, with the system's error

	1047: Down, // "unknown command": a Galera node that is not prepared
	1053: Down, // server shutdown in progress
	1077: Down, // normal shutdown
	1079: Down, // shutdown complete
	1194: Down, // a table is marked as crashed
	1195: Down, // … and repair failed
	1016: Down, // a file cannot be opened
	1017: Down, // a file is missing
	1030: Down, // error from the storage engine
	1033: Down, // a file has wrong contents
	1034: Down, // an index is corrupted
	1035: Down, // … or of an old format
	1712: Down, // an index is corrupted (InnoDB)
	1812: Down, // a tablespace is missing
	1814: Down, // … or was discarded
	1877: Down, // a table is missing, corrupted or bad
	3032: Down, // offline_mode
	9001: Down, // ProxySQL has reached no server of the hostgroup

	1205: Conflict, // lock wait timeout, on a replica behind DDL being applied
	1213: Conflict, // deadlock; on a Galera node with an applier
	1412: Conflict, // the table's definition has changed since the snapshot
	1615: Conflict, // … since the statement was prepared, again and again

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
	1115: Missing, // character set, of another version
	1176: Missing, // index, in a hint
	1235: Missing, // not supported yet, by this version
	1273: Missing, // collation, of another version
	1289: Missing, // a feature that the server was built without
	1298: Missing, // time zone: the tables may not be loaded
	1449: Missing, // the definer of a view or routine
	1735: Missing, // partition
	1114: Missing, // room for a temporary table
	1227: Missing, // global privilege: the GRANT may be on its way
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
	1461: Busy, // max_prepared_stmt_count

	1044: Auth, // database, for this user
	1045: Auth, // user or password
	1130: Auth, // host
	1251: Auth, // authentication protocol
	1698: Auth, // no password given
	1820: Auth, // password must be changed
	1862: Auth, // password has expired

	1317: Cancelled, // KILL QUERY
}

// mysqlOwnCodes are MySQL's alone. MariaDB has given some of the numbers other
// meanings.
var mysqlOwnCodes = map[uint16]ErrorClass{
	3169: Lost, // session was killed
	4031: Lost, // closed after wait_timeout (8.0.24)

	3100: Down, // group replication's hook has failed
	3168: Down, // server is not available
	3796: Down, // group replication: the member is not online
	3797: Down, // … has not caught up (group_replication_consistency)
	3798: Down, // … waits for the transactions before
	3799: Down, // … or cannot begin one

	3101: Conflict, // group replication has rolled back the transaction

	3118: Auth, // account locked
	3159: Auth, // TLS is required
	3879: Auth, // database, for this user
	3955: Auth, // account blocked after failed logins

	3024: Cancelled, // max_execution_time
}

// mariadbOwnCodes are MariaDB's alone.
var mariadbOwnCodes = map[uint16]ErrorClass{
	1927: Lost, // connection was killed

	4091: Missing, // sequence

	4150: Auth, // user blocked after failed logins
	4151: Auth, // account locked

	1969: Cancelled, // max_statement_time
}

// mysqlAnswers are errors of class Down that end no session: what they tell of is a
// file, or the node's place in its group.
var mysqlAnswers = map[uint16]bool{
	1016: true, 1017: true, 1030: true, 1033: true, 1034: true, 1035: true, 1194: true, 1195: true,
	1712: true, 1812: true, 1814: true, 1877: true,
	1047: true, 3100: true, 3796: true, 3797: true, 3798: true, 3799: true,
}
