package dialect

import (
	"context"
	"database/sql/driver"
	"errors"
	"strconv"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlreplicated/replicated/internal/position"
)

// sampleMySQL is identify, and reads the positions of binary log files where the
// server has no others. It asks a writable server who it is once more after
// that, so that its role is not older than its position.
func sampleMySQL(ctx context.Context, conn driver.Conn, identify func(context.Context, driver.Conn) (Identity, error)) (Identity, error) {
	id, err := identify(ctx, conn)
	if err != nil || !id.FilePositions {
		return id, err
	}
	written, noWritten := position.Position{}, "the server is read-only"
	if !id.ReadOnly {
		if written, noWritten, err = writtenFile(ctx, conn, id); err != nil {
			return Identity{}, err
		}
	}
	channels, noApplied, err := appliedFiles(ctx, conn, id)
	if err != nil {
		return Identity{}, err
	}
	if !id.ReadOnly {
		again, err := identify(ctx, conn)
		switch {
		case err != nil:
			return Identity{}, err
		case again.Server != id.Server:
			return again.without(noOneServer), nil
		case !again.FilePositions: // gtid_mode has come to ON
			return again, nil
		}
		id = again
	}
	id.Written, id.noWritten = written, noWritten
	id.channels, id.noApplied = channels, noApplied
	switch {
	case noApplied == noPrivilege: // it is the same in both roles
		id.NoPosition = noPrivilege
	case noWritten == noBinaryLog && noApplied == noChannel:
		id.NoPosition = noBinaryLog
	}
	return id, nil
}

// writtenFile reads the end of the server's own binary log.
func writtenFile(ctx context.Context, conn driver.Conn, id Identity) (p position.Position, why string, err error) {
	rows, err := queryRows(ctx, conn, masterStatus(id.VersionNum), 1)
	switch {
	case accessDenied(err):
		return p, noPrivilege, nil
	case err != nil:
		return p, "", err
	case len(rows) == 0:
		return p, noBinaryLog, nil
	}
	return filePosition(id.Server, rows[0].named("File"), rows[0].named("Position"))
}

// appliedFiles reads how far the server has applied the logs of its sources. With
// several appliers, the position is that before which there is no gap
// ("Replication and Transaction Inconsistencies" of MySQL's manual), which is late
// by up to slave_checkpoint_period, but true.
func appliedFiles(ctx context.Context, conn driver.Conn, id Identity) (channels []channel, why string, err error) {
	rows, err := queryRows(ctx, conn, slaveStatus(id.VersionNum), maxChannels)
	if accessDenied(err) {
		return nil, noPrivilege, nil
	}
	if err != nil {
		return nil, "", err
	}
	why = noChannel
	for _, row := range rows {
		source := row.named("Master_UUID", "Source_UUID")
		file := row.named("Relay_Master_Log_File", "Relay_Source_Log_File")
		if source.text == "" || file.text == "" {
			continue // it has not reached its source yet, or applied nothing of it
		}
		p, wrong, err := filePosition(source.text, file, row.named("Exec_Master_Log_Pos", "Exec_Source_Log_Pos"))
		if err != nil {
			return nil, "", err
		}
		if wrong != "" {
			why = wrong
			continue
		}
		channels = append(channels, channel{source: source.text, applied: p})
	}
	if len(channels) > 0 {
		why = ""
	}
	return channels, why, nil
}

// maxChannels is how many sources a server can have: MAX_CHANNELS of sql/rpl_msr.h.
const maxChannels = 256

func filePosition(source string, file, offset cell) (p position.Position, why string, err error) {
	n, err := strconv.ParseUint(offset.text, 10, 64)
	if err != nil {
		return p, "", errors.New("position in a binary log: " + strconv.Quote(offset.text))
	}
	if p = position.FilePosition(source, file.text, n); p.IsZero() {
		return p, noSuchFileName, nil
	}
	return p, "", nil
}

// masterStatus and slaveStatus are the questions in the words of the server's
// version. MySQL 8.4 knows the new words only, versions before those named here
// the old ones only. The columns of the second one were renamed with it.
func masterStatus(version int) string {
	if version >= 80200 {
		return "SHOW BINARY LOG STATUS"
	}
	return "SHOW MASTER STATUS"
}

func slaveStatus(version int) string {
	if version >= 80022 {
		return "SHOW REPLICA STATUS"
	}
	return "SHOW SLAVE STATUS"
}

// accessDenied reports that a privilege is lacking: 1227 names the one, 1045 and
// 1142 are what proxies and forks answer.
func accessDenied(err error) bool {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && (e.Number == 1227 || e.Number == 1142 || e.Number == 1045)
}
