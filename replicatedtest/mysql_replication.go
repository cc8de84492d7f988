package replicatedtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// MySQL 8.4 knows the new words of replication only, MariaDB and MySQL before
// 8.0.23 the old ones only.
func (m *mysqlFamily) newWords() bool {
	return m.atLeast(8, 1) || m.version == version{8, 0, max(23, m.version.patch)} && !m.maria
}

// words puts a statement into the server's words.
func (m *mysqlFamily) words(text string) string {
	if !m.newWords() {
		return text
	}
	return strings.NewReplacer("CHANGE MASTER TO", "CHANGE REPLICATION SOURCE TO", "MASTER_", "SOURCE_", "SHOW MASTER STATUS", m.masterStatus(),
		"SLAVE", "REPLICA").Replace(text)
}

func (m *mysqlFamily) masterStatus() string {
	if m.atLeast(8, 2) {
		return "SHOW BINARY LOG STATUS"
	}
	return "SHOW MASTER STATUS"
}

func (m *mysqlFamily) attach(ctx context.Context, n *Node, fresh bool) error {
	return n.withConn(ctx, func(ctx context.Context, conn *sql.Conn) error {
		run := func(text string) error {
			_, err := conn.ExecContext(ctx, m.words(text))
			return err
		}
		port := n.source.Port()
		if n.link != nil {
			// The delaying proxy stays between.
			n.link.SetTarget(n.source.Addr())
			port = n.link.Port()
		}
		if !fresh {
			if err := run("STOP SLAVE"); err != nil {
				return err
			}
		}
		gtid := "MASTER_AUTO_POSITION=1"
		if m.maria {
			gtid = "MASTER_USE_GTID=slave_pos"
		}
		if m.atLeast(8, 0) {
			gtid += ", GET_MASTER_PUBLIC_KEY=1"
		}
		change := fmt.Sprintf("CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=%d, MASTER_USER='%s', MASTER_PASSWORD='%s', MASTER_CONNECT_RETRY=1, %s",
			port, replUser, replPassword, gtid)
		if err := run(change); err != nil {
			return err
		}
		if err := run("START SLAVE"); err != nil {
			return err
		}
		return poll(ctx, 10*time.Millisecond, func() (bool, error) {
			s, err := m.status(ctx, conn)
			if err != nil {
				return false, err
			}
			// MariaDB and MySQL keep trying after these, in vain.
			if s["Last_IO_Errno"] == "1236" || s["Last_SQL_Errno"] != "0" {
				return false, errors.New("replication fails: " + s["Last_IO_Error"] + s["Last_SQL_Error"])
			}
			return s["IO_Running"] == "Yes" && s["SQL_Running"] == "Yes", nil
		})
	})
}

// status is SHOW SLAVE STATUS by column, without the words that differ:
// IO_Running for Slave_IO_Running and Replica_IO_Running, Log_File for
// Master_Log_File and Source_Log_File, Relay_Log_File for
// Relay_Master_Log_File and Relay_Source_Log_File. It is empty on a server that
// follows none.
func (m *mysqlFamily) status(ctx context.Context, conn *sql.Conn) (map[string]string, error) {
	return m.row(ctx, conn, m.words("SHOW SLAVE STATUS"))
}

func (m *mysqlFamily) row(ctx context.Context, conn *sql.Conn, query string) (map[string]string, error) {
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	if !rows.Next() {
		return map[string]string{}, rows.Err()
	}
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values := make([]sql.NullString, len(columns))
	targets := make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	if err := rows.Scan(targets...); err != nil {
		return nil, err
	}
	row := map[string]string{}
	for i, name := range columns {
		if name == "Relay_Log_File" || name == "Relay_Log_Pos" {
			name = "Own_" + name
		}
		for _, word := range []string{"Slave_", "Replica_", "Master_", "Source_"} {
			name = strings.Replace(name, word, "", 1)
		}
		row[name] = values[i].String
	}
	return row, rows.Err()
}

func (m *mysqlFamily) promote(ctx context.Context, n *Node) error {
	return n.withConn(ctx, func(ctx context.Context, conn *sql.Conn) error {
		run := func(text string) error {
			_, err := conn.ExecContext(ctx, m.words(text))
			return err
		}
		// What was received is applied first, also after a pause.
		if err := run("STOP SLAVE IO_THREAD"); err != nil {
			return err
		}
		if err := run("START SLAVE SQL_THREAD"); err != nil {
			return err
		}
		err := poll(ctx, 2*time.Millisecond, func() (bool, error) {
			s, err := m.status(ctx, conn)
			if err != nil {
				return false, err
			}
			if s["Last_SQL_Errno"] != "0" {
				return false, errors.New("replication fails: " + s["Last_SQL_Error"])
			}
			return s["Relay_Log_File"] == s["Log_File"] && s["Exec_Log_Pos"] == s["Read_Log_Pos"], nil
		})
		if err != nil {
			return err
		}
		for _, text := range []string{"STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only = OFF"} {
			if err := run(text); err != nil {
				return err
			}
		}
		if n.link != nil {
			n.link.Close()
			n.link = nil
		}
		return nil
	})
}

func (m *mysqlFamily) pause(ctx context.Context, n *Node) error {
	return n.exec(ctx, m.words("STOP SLAVE SQL_THREAD"))
}

func (m *mysqlFamily) unpause(ctx context.Context, n *Node) error {
	return n.exec(ctx, m.words("START SLAVE SQL_THREAD"))
}

func (m *mysqlFamily) delay(ctx context.Context, n *Node, d time.Duration) error {
	if n.link != nil {
		n.link.Delay(d)
		return nil
	}
	if d == 0 {
		return nil
	}
	link, err := newProxy(n.source.Addr(), isBinlogDump)
	if err != nil {
		return err
	}
	link.Delay(d)
	n.link = link
	return n.withConn(ctx, func(ctx context.Context, conn *sql.Conn) error {
		s, err := m.status(ctx, conn)
		if err != nil {
			return err
		}
		start := "START SLAVE"
		if s["SQL_Running"] != "Yes" {
			start = "START SLAVE IO_THREAD" // it was paused, and stays so
		}
		change := fmt.Sprintf("CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=%d", link.Port())
		for _, text := range []string{"STOP SLAVE", change, start} {
			if _, err := conn.ExecContext(ctx, m.words(text)); err != nil {
				return err
			}
		}
		return nil
	})
}

// isBinlogDump recognises the command with which a replica begins to receive
// (COM_BINLOG_DUMP, COM_BINLOG_DUMP_GTID, behind the length and the number of
// the packet). The dozen round trips before it need no delay.
func isBinlogDump(sent []byte) bool {
	return len(sent) > 4 && sent[3] == 0 && (sent[4] == 0x12 || sent[4] == 0x1e)
}

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

// caughtUpMariaDB waits for each domain of the source's binary log. Clusters of
// this package have one writer, so that the sequence numbers of a domain are in
// order.
func (m *mysqlFamily) caughtUpMariaDB(ctx context.Context, source, replica *Node) error {
	var target string
	err := source.withConn(ctx, func(ctx context.Context, conn *sql.Conn) error {
		return conn.QueryRowContext(ctx, "SELECT @@gtid_binlog_pos").Scan(&target)
	})
	if err != nil || target == "" {
		return err
	}
	return replica.withConn(ctx, func(ctx context.Context, conn *sql.Conn) error {
		return poll(ctx, 0, func() (bool, error) {
			var result sql.NullInt64
			err := conn.QueryRowContext(ctx, "SELECT MASTER_GTID_WAIT(?, 0.1)", target).Scan(&result)
			return result.Valid && result.Int64 == 0, err
		})
	})
}
