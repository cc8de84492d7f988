package replicatedtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// semiSyncTimeout is so long, in milliseconds, that no primary stops waiting
// for its replicas.
const semiSyncTimeout = 4 * 7 * 24 * 3600 * 1000

// semiSyncWords puts names of semi-synchronous replication into the server's
// words.
func (m *mysqlFamily) semiSyncWords(text string) string {
	if !m.atLeast(8, 1) {
		return text
	}
	return strings.NewReplacer("master", "source", "slave", "replica").Replace(text)
}

// semiSync are the options with which acknowledged means replicated. Only a
// primary waits: a replica that did would wait for replicas of its own, which
// there are none of, with what it applies.
func (m *mysqlFamily) semiSync(primary bool) []string {
	options := []string{
		fmt.Sprintf("--rpl-semi-sync-master-enabled=%t", primary),
		"--rpl-semi-sync-slave-enabled=ON",
		fmt.Sprintf("--rpl-semi-sync-master-timeout=%d", semiSyncTimeout),
	}
	if m.maria || m.atLeast(5, 7) {
		// Nobody sees what no replica has. MySQL 5.6 only acknowledges late.
		options = append(options, "--rpl-semi-sync-master-wait-point=AFTER_SYNC")
	}
	if m.maria {
		// A replica that stops tells its primary, which may hang.
		options = append(options, "--rpl-semi-sync-slave-kill-conn-timeout=1")
	} else {
		options = append(options, "--plugin-dir="+m.pluginDir(),
			"--plugin-load-add=rpl_semi_sync_master=semisync_master.so", "--plugin-load-add=rpl_semi_sync_slave=semisync_slave.so")
	}
	for i, option := range options {
		if !strings.HasPrefix(option, "--plugin-dir") {
			options[i] = m.semiSyncWords(option)
		}
	}
	return options
}

// semiSyncPrimary is the statement that makes the server wait for its replicas,
// or not.
func (m *mysqlFamily) semiSyncPrimary(on bool) string {
	return m.semiSyncWords(fmt.Sprintf("SET GLOBAL rpl_semi_sync_master_enabled = %t", on))
}

// synchronous asks for the plugins that MySQL's servers need and MariaDB's have
// built in.
func (m *mysqlFamily) synchronous() error {
	if m.maria || m.pluginDir() != "" {
		return nil
	}
	return fmt.Errorf("no plugin %s for %s: %w", m.semiSyncWords("semisync_master.so"), m.program, errors.ErrUnsupported)
}

// pluginDir is the directory of the installation's plugins, or "" if the one
// for semi-synchronous replication is in none.
func (m *mysqlFamily) pluginDir() string {
	program, err := filepath.EvalSymlinks(m.program)
	if err != nil {
		return ""
	}
	base := filepath.Dir(filepath.Dir(program))
	for _, dir := range []string{"lib/plugin", "lib/mysql/plugin", "lib64/mysql/plugin", "lib64/plugin"} {
		dir = filepath.Join(base, dir)
		if _, err := os.Stat(filepath.Join(dir, m.semiSyncWords("semisync_master.so"))); err == nil {
			return dir
		}
	}
	return ""
}

// demote waits for the commits that are under way, for ten seconds, as long as
// which new ones wait for it.
func (m *mysqlFamily) demote(ctx context.Context, n *Node) error {
	return n.exec(ctx, "SET SESSION lock_wait_timeout = 10", "SET GLOBAL read_only = ON")
}

func (m *mysqlFamily) handOver(ctx context.Context, primary, to *Node) error {
	err := m.demote(ctx, primary)
	if err == nil {
		err = m.caughtUp(ctx, primary, to)
	}
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), opTimeout)
		defer cancel()
		err = errors.Join(err, primary.exec(ctx, "SET GLOBAL read_only = OFF"))
	}
	return err
}

func (m *mysqlFamily) receiving(ctx context.Context, n *Node) (yes bool, err error) {
	err = n.withConn(ctx, func(ctx context.Context, conn *sql.Conn) error {
		s, err := m.status(ctx, conn)
		// What a delaying proxy holds is on its way, and is lost.
		yes = s["IO_Running"] == "Yes" && s["Port"] == strconv.Itoa(n.follows().Port())
		return err
	})
	return yes, err
}

// received counts transactions.
func (m *mysqlFamily) received(ctx context.Context, n *Node) (got progress, err error) {
	err = n.withConn(ctx, func(ctx context.Context, conn *sql.Conn) error {
		s, err := m.status(ctx, conn)
		if err != nil {
			return err
		}
		if m.maria {
			// What it has received is forgotten by a restart.
			var applied string
			if err := conn.QueryRowContext(ctx, "SELECT @@gtid_slave_pos").Scan(&applied); err != nil {
				return err
			}
			got.position, err = lastTransactions(s["Gtid_IO_Pos"], applied)
			return err
		}
		// The function makes one set of two that overlap.
		var set string
		if err := conn.QueryRowContext(ctx, "SELECT GTID_SUBTRACT(CONCAT(?, ',', @@global.gtid_executed), '')", s["Retrieved_Gtid_Set"]).Scan(&set); err != nil {
			return err
		}
		got.position, err = countTransactions(set)
		return err
	})
	return got, err
}

// lastTransactions adds up the numbers of the last transactions of all domains
// of MariaDB GTID positions, which grow with each transaction.
func lastTransactions(positions ...string) (sum int64, err error) {
	last := map[int64]int64{}
	for _, list := range positions {
		err := eachGTID(list, func(domain int64, g gtid) { last[domain] = max(last[domain], g.seq) })
		if err != nil {
			return 0, err
		}
	}
	for _, seq := range last {
		sum += seq
	}
	return sum, nil
}

// countTransactions counts those of a set of MySQL GTIDs without overlaps:
// "3e11fa47-…:1-5:7,4f22fb58-…:1-3".
func countTransactions(set string) (count int64, err error) {
	for source := range strings.SplitSeq(strings.ReplaceAll(set, "\n", ""), ",") {
		_, intervals, _ := strings.Cut(source, ":")
		for interval := range strings.SplitSeq(intervals, ":") {
			if interval == "" {
				continue
			}
			first, last, isRange := strings.Cut(interval, "-")
			if !isRange {
				last = first
			}
			a, err1 := strconv.ParseInt(first, 10, 64)
			b, err2 := strconv.ParseInt(last, 10, 64)
			if err := errors.Join(err1, err2); err != nil {
				return 0, fmt.Errorf("GTID set %q: %w", set, err)
			}
			count += b - a + 1
		}
	}
	return count, nil
}
