package dialect

import (
	"context"
	"database/sql/driver"
	"errors"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/position"
)

// The identity queries. A variable that a server does not know fails the whole
// query, so there is one text for each flavor, and one for both that tells them
// apart. Executable comments cannot do that: MariaDB runs those of MySQL's
// versions up to 5.6 too, and server_uuid came with 5.6. Nothing here needs a
// privilege. The columns are read from left to right: gtid_binlog_state comes
// before gtid_binlog_pos, so that what it has is in there too, and after the
// role.
const (
	mysqlCommon = `SELECT @@version, @@version_comment, @@hostname, @@port, @@global.server_id, ` +
		`@@session.autocommit, @@session.completion_type, CONNECTION_ID(), @@global.read_only`

	// super_read_only came with 5.7.8.
	mysqlIdentity = mysqlCommon + `, @@global.innodb_read_only /*!50708 OR @@global.super_read_only */, ` +
		`@@global.log_bin, @@server_uuid, @@global.gtid_mode, @@global.gtid_executed, @@basedir`

	mariadbIdentity = mysqlCommon + `, @@global.innodb_read_only, ` +
		`@@global.log_bin, @@global.gtid_binlog_state, @@global.gtid_binlog_pos, @@global.gtid_slave_pos`

	// Only a MariaDB that was built with Galera has the variable.
	mariadbGalera = mariadbIdentity + `, @@global.wsrep_on`

	mysqlCommonColumns = 9
)

// What a user can do about a server without a position.
const (
	noFork      = "the server lacks system variables of MySQL 5.6 or MariaDB 10.0 (a fork, or a proxy that answers by itself)"
	noBinaryLog = "log_bin is OFF: start the server with log_bin, so that what it writes has a position"
	noGalera    = "a Galera node (wsrep_on): its positions are not comparable, use a heartbeat table"
	noAurora    = "Aurora: its replicas share the primary's storage and have no position, use a heartbeat table"
	noPrivilege = "no privilege to read positions of the binary log: GRANT REPLICATION CLIENT ON *.* to the user, " +
		"or set gtid_mode=ON on a server of version 5.7 or later"
	noSample       = "positions of the binary log have not been asked for"
	noChannel      = "the server replicates from no other one"
	noOneServer    = "two servers have answered on one connection (a proxy that multiplexes): connect to the server itself"
	noSuchFileName = "the name of the binary log file does not end in a number"
)

// identifyAnyMySQL finds out the flavor first. A server that calls itself MySQL
// but lacks a variable of MySQL 5.6 (a fork, a proxy) has no identity beyond
// the common one, and no position.
func identifyAnyMySQL(ctx context.Context, conn driver.Conn) (Identity, error) {
	row, err := queryRow(ctx, conn, mysqlCommon, mysqlCommonColumns)
	if err != nil {
		return Identity{}, err
	}
	common := scanMySQL(row)
	full := mysqlFull
	if common.Flavor == classify.MariaDB {
		full = mariadbFull
	}
	id, err := full(ctx, conn)
	if unknownVariable(err) {
		return common.without(noFork), nil
	}
	return id, err
}

// identifyMySQL asks a server that should be MySQL.
func identifyMySQL(ctx context.Context, conn driver.Conn) (Identity, error) {
	id, err := mysqlFull(ctx, conn)
	if unknownVariable(err) {
		return identifyAnyMySQL(ctx, conn)
	}
	return id, err
}

// identifyMariaDB asks a server that should be MariaDB.
func identifyMariaDB(ctx context.Context, conn driver.Conn) (Identity, error) {
	id, err := mariadbFull(ctx, conn)
	if unknownVariable(err) {
		return identifyAnyMySQL(ctx, conn)
	}
	return id, err
}

func mysqlFull(ctx context.Context, conn driver.Conn) (Identity, error) {
	row, err := queryRow(ctx, conn, mysqlIdentity, mysqlCommonColumns+6)
	if err != nil {
		return Identity{}, err
	}
	id := scanMySQL(row)
	readOnly, logs, uuid, mode, executed, base := row[9], row[10], row[11], row[12], row[13], row[14]
	id.ReadOnly = id.ReadOnly || readOnly.on()
	id.Server = uuid.text
	switch {
	// Galera's builds for MySQL name themselves in version_comment.
	case isGalera(row[0], row[1]):
		return id.without(noGalera), nil
	case isAurora(base.text):
		return id.without(noAurora), nil
	// Before 5.7 gtid_executed runs ahead of what a reader sees, and is no
	// position; without gtid_mode it stands still, and while that is being
	// changed a transaction may have no GTID.
	case mode.text != "ON" || id.VersionNum < 50700:
		id.FilePositions = true
		id.noWritten, id.noApplied = noSample, noSample
		return id, nil
	}
	set, err := position.ParseGTIDSet(executed.text)
	if err != nil {
		return id.without("gtid_executed: " + err.Error()), nil
	}
	id.Written, id.Applied = set, set
	if !logs.on() {
		// What the server writes itself gets no GTID then; what it applies has one.
		id.Written = position.Position{}
		id.noBinaryLog()
	}
	return id, nil
}

func mariadbFull(ctx context.Context, conn driver.Conn) (Identity, error) {
	const columns = mysqlCommonColumns + 5
	row, err := queryRow(ctx, conn, mariadbGalera, columns+1)
	if unknownVariable(err) {
		row, err = queryRow(ctx, conn, mariadbIdentity, columns)
	}
	if err != nil {
		return Identity{}, err
	}
	id := scanMySQL(row)
	readOnly, logs, state, written, applied := row[9], row[10], row[11], row[12], row[13]
	id.ReadOnly = id.ReadOnly || readOnly.on()
	if len(row) > columns && row[columns].on() || isGalera(row[0], row[1]) && len(row) == columns {
		return id.without(noGalera), nil
	}
	if id.Applied, err = position.ParseGTIDList(applied.text); err != nil {
		return id.without("gtid_slave_pos: " + err.Error()), nil
	}
	if !logs.on() {
		id.noBinaryLog()
		return id, nil
	}
	if id.Written, err = position.MariaDBPrimary(written.text, state.text, id.ServerID); err != nil {
		id.noWritten = "gtid_binlog_pos: " + err.Error()
	}
	return id, nil
}

// noBinaryLog takes note that the server has no position as a primary. It has one
// as a replica, if it has ever been one.
func (id *Identity) noBinaryLog() {
	id.noWritten = noBinaryLog
	if id.Applied.IsEmpty() {
		id.NoPosition = noBinaryLog
	}
}

// isGalera recognises a server by its version and version_comment, as in
// "8.0.35" with "Percona XtraDB Cluster (GPL), …, WSREP version 26.1.4.3".
func isGalera(version, comment cell) bool {
	text := strings.ToLower(version.text + " " + comment.text)
	return strings.Contains(text, "wsrep") || strings.Contains(text, "xtradb cluster")
}

// isAurora recognises Aurora MySQL by where the service has put its program:
// "/rdsdbbin/oscar-8.0.mysql_aurora.3.04.0", where plain MySQL has
// "/rdsdbbin/mysql-8.0.36". aurora_version() would be the documented question,
// but fails on every other server.
func isAurora(basedir string) bool {
	return strings.HasPrefix(basedir, "/rdsdbbin/") && !strings.HasPrefix(basedir, "/rdsdbbin/mysql")
}

// scanMySQL reads the columns of mysqlCommon.
func scanMySQL(row []cell) Identity {
	version, comment, host, port, serverID := row[0].text, row[1].text, row[2].text, row[3].text, row[4].text
	id := Identity{
		Flavor:        mysqlFlavor(version, comment),
		Server:        host + ":" + port + "/" + serverID,
		Version:       version,
		VersionNum:    mysqlVersion(version),
		AutocommitOff: !row[5].on(),
		Chains:        row[6].on() && row[6].text != "NO_CHAIN",
		BackendPID:    row[7].integer(),
		ReadOnly:      row[8].on(),
	}
	if n, err := strconv.ParseUint(serverID, 10, 32); err == nil {
		id.ServerID = uint32(n)
	}
	return id
}

// mysqlFlavor tells MariaDB by its version and version_comment.
func mysqlFlavor(version, comment string) classify.Dialect {
	if strings.Contains(strings.ToLower(version+" "+comment), "mariadb") {
		return classify.MariaDB
	}
	return classify.MySQL
}

// mysqlVersion turns "10.11.19-MariaDB-log" into 101119, 0 if it cannot.
func mysqlVersion(s string) int {
	number := 0
	s, _, _ = strings.Cut(s, "-")
	parts := strings.SplitN(s, ".", 4)
	for i := range 3 {
		n := 0
		if i < len(parts) {
			n, _ = strconv.Atoi(parts[i])
		}
		number = number*100 + n
	}
	return number
}

// unknownVariable reports ER_UNKNOWN_SYSTEM_VARIABLE.
func unknownVariable(err error) bool {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && e.Number == 1193
}
