package replicatedtest

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"time"
)

func (m *mysqlFamily) caughtUp(ctx context.Context, source, replica *Node) error {
	if m.maria {
		return m.caughtUpMariaDB(ctx, source, replica)
	}
	// The GTIDs of MySQL 5.6 run ahead of what a reader sees; file and position
	// do not.
	var file, position string
	err := source.withConn(ctx, func(ctx context.Context, conn *sql.Conn) error {
		s, err := m.row(ctx, conn, m.masterStatus())
		file, position = s["File"], s["Position"]
		return err
	})
	if err != nil {
		return err
	}
	at, err := strconv.ParseInt(position, 10, 64)
	if err != nil {
		return fmt.Errorf("the source has no binary log: %w", err)
	}
	var last map[string]string
	err = replica.withConn(ctx, func(ctx context.Context, conn *sql.Conn) error {
		return poll(ctx, 2*time.Millisecond, func() (bool, error) {
			s, err := m.status(ctx, conn)
			if err != nil {
				return false, err
			}
			last = s
			executed, _ := strconv.ParseInt(s["Exec_Log_Pos"], 10, 64)
			// Files are numbered with as many digits as ever needed.
			return s["Relay_Log_File"] > file || s["Relay_Log_File"] == file && executed >= at, nil
		})
	})
	if err != nil {
		err = fmt.Errorf("%w (%s:%s is wanted, %s:%s applied; receiver: %s %s; applier: %s %s)", err, file, position, last["Relay_Log_File"], last["Exec_Log_Pos"],
			last["IO_Running"], last["Last_IO_Error"], last["SQL_Running"], last["Last_SQL_Error"])
	}
	return err
}

// caughtUpMariaDB waits for each domain of the source's binary log.
//
// MASTER_GTID_WAIT compares the numbers of transactions whoever wrote them, and
// in a chain with writes in the middle a number may be used twice. Here a domain
// is reached when the replica stands where the source stood, or at something
// later: of the same server, or of the source, whose own writes are in order.
func (m *mysqlFamily) caughtUpMariaDB(ctx context.Context, source, replica *Node) error {
	var list, state string
	var id int64
	err := source.withConn(ctx, func(ctx context.Context, conn *sql.Conn) error {
		return conn.QueryRowContext(ctx, "SELECT @@gtid_binlog_pos, @@gtid_binlog_state, @@server_id").Scan(&list, &state, &id)
	})
	if err != nil {
		return err
	}
	wanted, err := lastGTIDs(list)
	if err != nil || len(wanted) == 0 {
		return err
	}
	own := map[int64]int64{} // the source's last write in each domain
	err = eachGTID(state, func(domain int64, g gtid) {
		if g.server == id {
			own[domain] = g.seq
		}
	})
	if err != nil {
		return err
	}
	var applied string
	err = replica.withConn(ctx, func(ctx context.Context, conn *sql.Conn) error {
		return poll(ctx, time.Millisecond, func() (bool, error) {
			if err := conn.QueryRowContext(ctx, "SELECT @@gtid_slave_pos").Scan(&applied); err != nil {
				return false, err
			}
			has, err := lastGTIDs(applied)
			if err != nil {
				return false, err
			}
			for domain, want := range wanted {
				got := has[domain]
				later := got.server == want.server && got.seq > want.seq || got.server == id && got.seq > own[domain]
				if got != want && !later {
					return false, nil
				}
			}
			return true, nil
		})
	})
	if err != nil {
		err = fmt.Errorf("%w (%s is wanted, %s applied)", err, list, applied)
	}
	return err
}

// gtid is a MariaDB GTID without its domain.
type gtid struct{ server, seq int64 }

// eachGTID reads a list of GTIDs: "0-101-7,1-5-9".
func eachGTID(list string, f func(domain int64, g gtid)) error {
	for item := range strings.SplitSeq(list, ",") {
		if item == "" {
			continue
		}
		var domain int64
		var g gtid
		if _, err := fmt.Sscanf(item, "%d-%d-%d", &domain, &g.server, &g.seq); err != nil {
			return fmt.Errorf("GTID %q: %w", item, err)
		}
		f(domain, g)
	}
	return nil
}

// lastGTIDs reads a list with at most one GTID for each domain.
func lastGTIDs(list string) (map[int64]gtid, error) {
	set := map[int64]gtid{}
	err := eachGTID(list, func(domain int64, g gtid) { set[domain] = g })
	return set, err
}
