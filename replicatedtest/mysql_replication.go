package replicatedtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
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
		before := []string{"STOP SLAVE"}
		if fresh {
			// It has its data from the source, or both have none; whom that
			// followed is nothing to it.
			before = append(before, "RESET SLAVE ALL")
			if m.maria {
				before = append(before, "SET GLOBAL gtid_slave_pos = @@gtid_binlog_pos")
			}
		}
		if err := m.point(ctx, conn, n, before...); err != nil {
			return err
		}
		return m.waitFollowing(ctx, conn)
	})
}

func (m *mysqlFamily) following(ctx context.Context, n *Node) error {
	return n.withConn(ctx, m.waitFollowing)
}

// waitFollowing waits until the replica receives and applies.
func (m *mysqlFamily) waitFollowing(ctx context.Context, conn *sql.Conn) error {
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
}

// point makes the server follow the node's source, after other statements.
func (m *mysqlFamily) point(ctx context.Context, conn *sql.Conn, n *Node, before ...string) error {
	port := n.source.Port()
	if n.link != nil {
		// The delaying proxy stays between.
		n.link.SetTarget(n.source.Addr())
		port = n.link.Port()
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
	for _, text := range append(before, change, "START SLAVE") {
		if _, err := conn.ExecContext(ctx, m.words(text)); err != nil {
			return err
		}
	}
	return nil
}

func (m *mysqlFamily) repoint(ctx context.Context, n *Node, wasReplica bool) error {
	if err := n.startStillLocked(ctx); err != nil {
		return err
	}
	before := []string{"STOP SLAVE"}
	if !wasReplica {
		before = nil
		if m.maria {
			// Where it stands is what it has written, and not what it once
			// received.
			before = append(before, "SET GLOBAL gtid_slave_pos = @@gtid_binlog_pos")
		}
		if !n.c.options.WritableReplicas {
			before = append(before, "SET GLOBAL read_only = ON")
		}
		if n.c.options.Synchronous {
			// Last: it lets commits go that wait for a replica, which read_only
			// waits for.
			before = append(before, m.semiSyncPrimary(false))
		}
		if n.c.options.WritableReplicas {
			before = append(before, "SET GLOBAL read_only = OFF") // after Demote
		}
	}
	return n.withConn(ctx, func(ctx context.Context, conn *sql.Conn) error {
		return m.point(ctx, conn, n, before...)
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
		// What was received is applied first, also after a pause. In this order:
		// MariaDB forgets it while both threads stand.
		if err := run("START SLAVE SQL_THREAD"); err != nil {
			return err
		}
		if err := run("STOP SLAVE IO_THREAD"); err != nil {
			return err
		}
		if err := m.waitApplied(ctx, conn); err != nil {
			return err
		}
		last := []string{"STOP SLAVE", "RESET SLAVE ALL"}
		if n.c.options.Synchronous {
			last = append(last, m.semiSyncPrimary(true))
		}
		for _, text := range append(last, "SET GLOBAL read_only = OFF") {
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

// waitApplied waits until a replica that receives nothing has applied what it
// has. It may have but the beginning of the last transaction, of a primary that
// was killed: that is never applied, and the thread waits for the rest.
func (m *mysqlFamily) waitApplied(ctx context.Context, conn *sql.Conn) error {
	var at string
	var since time.Time // when it was first seen to wait there
	return poll(ctx, 2*time.Millisecond, func() (bool, error) {
		s, err := m.status(ctx, conn)
		if err != nil {
			return false, err
		}
		if s["Last_SQL_Errno"] != "0" {
			return false, errors.New("replication fails: " + s["Last_SQL_Error"])
		}
		if s["Relay_Log_File"] == s["Log_File"] && s["Exec_Log_Pos"] == s["Read_Log_Pos"] {
			return true, nil
		}
		now := s["Relay_Log_File"] + ":" + s["Exec_Log_Pos"]
		if !strings.Contains(s["SQL_Running_State"], "has read all relay log") || now != at {
			at, since = now, time.Now()
		}
		// It says so too before it notices what came last.
		return time.Since(since) > 500*time.Millisecond, nil
	})
}

func (m *mysqlFamily) pause(ctx context.Context, n *Node) error {
	return n.exec(ctx, m.words("STOP SLAVE SQL_THREAD"))
}

func (m *mysqlFamily) unpause(ctx context.Context, n *Node) error {
	return n.exec(ctx, m.words("START SLAVE SQL_THREAD"))
}

func (m *mysqlFamily) unplug(ctx context.Context, n *Node) error {
	return n.exec(ctx, m.words("STOP SLAVE IO_THREAD"))
}

func (m *mysqlFamily) plug(ctx context.Context, n *Node) error {
	return n.exec(ctx, m.words("START SLAVE IO_THREAD"))
}

func (m *mysqlFamily) delay(ctx context.Context, n *Node, d time.Duration) error {
	if n.link != nil {
		n.link.Delay(d)
		return nil
	}
	if d == 0 {
		return nil
	}
	link, err := newProxy([]string{n.source.Addr()}, isBinlogDump)
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
		statements := []string{"STOP SLAVE", fmt.Sprintf("CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=%d", link.Port())}
		// What was stopped stays so.
		if !n.unfed {
			statements = append(statements, "START SLAVE IO_THREAD")
		}
		if s["SQL_Running"] == "Yes" {
			statements = append(statements, "START SLAVE SQL_THREAD")
		}
		for _, text := range statements {
			if _, err := conn.ExecContext(ctx, m.words(text)); err != nil {
				return err
			}
		}
		if n.unfed {
			return nil
		}
		return m.waitReceiving(ctx, conn, link)
	})
}

// waitReceiving waits until the replica gets the stream of events through the
// proxy, or says that it cannot, as while the source is down.
func (m *mysqlFamily) waitReceiving(ctx context.Context, conn *sql.Conn, link *Proxy) error {
	return poll(ctx, 2*time.Millisecond, func() (bool, error) {
		s, err := m.status(ctx, conn)
		return link.delays() || s["IO_Running"] == "No" || s["Last_IO_Errno"] != "0", err
	})
}

// isBinlogDump recognises the command with which a replica begins to receive
// (COM_BINLOG_DUMP, COM_BINLOG_DUMP_GTID, behind the length and the number of
// the packet). The dozen round trips before it need no delay.
func isBinlogDump(sent []byte) bool {
	return len(sent) > 4 && sent[3] == 0 && (sent[4] == 0x12 || sent[4] == 0x1e)
}
