package dialect

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strconv"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// Source is a server that another one replicates from, as the other one tells. The
// zero value is one that it was told of and has never reached.
type Source struct {
	Server   string // MySQL: its server_uuid, see [Identity.Server]; "" where that is not known, and on MariaDB
	ServerID uint32 // its server_id; 0 where that is not known
	Live     bool   // the receiving thread is connected to it
	Stopped  bool   // neither it nor the applying one runs: somebody has stopped them, or they failed for good
}

// Sources returns whom the server behind conn replicates from, on all channels, in
// two queries. Of a server that follows none, sources is empty and known true. A
// replica that was stopped still names its source, and Live is false; so it is while
// the replica tries to reach a source in vain, and until it has noticed that one is
// gone (slave_net_timeout, a minute, where the network tells nothing).
//
// known is false, without an error, where conn's user lacks the privilege
// (REPLICATION CLIENT; on MariaDB since 10.5 SLAVE MONITOR, also called REPLICA
// MONITOR), and always on PostgreSQL.
func (d *Dialect) Sources(ctx context.Context, conn driver.Conn) (sources []Source, known bool, err error) {
	if d.sources == nil {
		return nil, false, nil
	}
	if sources, known, err = d.sources(ctx, conn); err != nil {
		return nil, false, fmt.Errorf("replicated: asking the server for its sources: %w", err)
	}
	return sources, known, nil
}

// sourcesMySQL asks MySQL or MariaDB, whichever answers.
func sourcesMySQL(ctx context.Context, conn driver.Conn) (sources []Source, known bool, err error) {
	version, err := queryRow(ctx, conn, "SELECT @@version, @@version_comment", 2)
	if err != nil {
		return nil, false, err
	}
	text := slaveStatus(mysqlVersion(version[0].text))
	if mysqlFlavor(version[0].text, version[1].text) == classify.MariaDB {
		text = "SHOW ALL SLAVES STATUS"
	}
	rows, err := queryRows(ctx, conn, text, maxChannels)
	if accessDenied(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	for _, row := range rows {
		s := Source{
			Server: row.named("Master_UUID", "Source_UUID").text,
			Live:   row.named("Slave_IO_Running", "Replica_IO_Running").text == "Yes", // else No, Connecting, Preparing
			Stopped: row.named("Slave_IO_Running", "Replica_IO_Running").text == "No" &&
				row.named("Slave_SQL_Running", "Replica_SQL_Running").text == "No",
		}
		if id, err := strconv.ParseUint(row.named("Master_Server_Id", "Source_Server_Id").text, 10, 32); err == nil {
			s.ServerID = uint32(id)
		}
		sources = append(sources, s)
	}
	return sources, true, nil
}
