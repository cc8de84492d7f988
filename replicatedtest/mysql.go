package replicatedtest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// mysqlFamily is MariaDB (10.5 or newer) and MySQL (5.6 or newer), which
// differ in options and in the words of replication.
type mysqlFamily struct {
	program string
	version version
	banner  string
	maria   bool
	as      *account // runs the servers
	// drops says that the program cannot be reached by that account, so that it
	// is started by root and changes to the account by itself.
	drops bool
}

func newMySQL(e Engine) (*mysqlFamily, error) {
	find := findMySQL
	if e == MariaDB {
		find = findMariaDB
	}
	program, v, err := find()
	if err != nil {
		return nil, err
	}
	as, err := unprivileged("mysql")
	if err != nil {
		return nil, err
	}
	_, banner, err := serverVersion(program, libraryPath(program))
	return &mysqlFamily{program: program, version: v, banner: banner, maria: e == MariaDB, as: as, drops: !as.reaches(program)}, err
}

func (m *mysqlFamily) name() string {
	if m.maria {
		return "MariaDB " + m.version.String()
	}
	return "MySQL " + m.version.String()
}

func (m *mysqlFamily) account() *account  { return m.as }
func (m *mysqlFamily) driverName() string { return "mysql" }
func (m *mysqlFamily) parser() logParser  { return &mysqlLog{} }

func (m *mysqlFamily) logFile(n *Node) string { return filepath.Join(n.dir, "general.log") }

// atLeast is for MySQL's versions.
func (m *mysqlFamily) atLeast(major, minor int) bool {
	return !m.maria && m.version.atLeast(major, minor)
}

func (m *mysqlFamily) dsn(addrs []string, user, password, database string, keys []string) string {
	dsn := fmt.Sprintf("%s:%s@tcp(%s)/%s", user, password, strings.Join(addrs, ","), database)
	if len(keys) > 0 {
		dsn += "?" + strings.Join(keys, "&")
	}
	return dsn
}

func (m *mysqlFamily) connector(addr string, who login, d boundDialer) (driver.Connector, error) {
	cfg := mysql.NewConfig()
	cfg.User, cfg.Passwd, cfg.DBName = who.user, who.password, who.database
	cfg.Net, cfg.Addr = "tcp", addr
	cfg.DialFunc = d.DialContext
	cfg.Logger = &mysql.NopLogger{} // a server that is starting is asked many times
	if who.user == harnessUser {
		// Whatever the cluster's settings say.
		cfg.Params = map[string]string{"autocommit": "1"}
	}
	return mysql.NewConnector(cfg)
}

// serverCommand builds a command of the server program.
func (m *mysqlFamily) serverCommand(args ...string) *startCommand {
	base := []string{"--no-defaults"}
	as := m.as
	if m.drops {
		base, as = append(base, "--user="+m.as.name), nil
	}
	if dir := m.messages(); dir != "" {
		base = append(base, "--lc-messages-dir="+dir, "--character-sets-dir="+filepath.Join(dir, "charsets"))
	}
	cmd := exec.Command(m.program, append(base, args...)...)
	cmd.Dir = "/"
	cmd.Env = []string{"LC_ALL=C", "TZ=UTC", "PATH=/usr/bin:/bin:/usr/sbin:/sbin", libraryPath(m.program)}
	return &startCommand{Cmd: cmd, as: as}
}

// messages is the directory of error messages beside a program that was moved
// from where it was built for. An installed program knows its own.
func (m *mysqlFamily) messages() string {
	dir := filepath.Join(filepath.Dir(m.program), "share")
	if _, err := os.Stat(filepath.Join(dir, "english", "errmsg.sys")); err != nil {
		return ""
	}
	return dir
}

// common are the options that the data directory depends on.
func (m *mysqlFamily) common() []string {
	options := []string{
		"--innodb-buffer-pool-size=32M",
		"--innodb-data-file-path=ibdata1:12M:autoextend",
		"--character-set-server=utf8mb4",
		"--performance-schema=OFF",
		"--skip-external-locking",
	}
	if m.maria || !m.atLeast(8, 0) {
		options = append(options, "--innodb-log-file-size=16M", "--key-buffer-size=1M", "--query-cache-size=0", "--query-cache-type=0")
	}
	if m.maria {
		options = append(options, "--loose-aria-pagecache-buffer-size=8M", "--aria-log-file-size=8M")
	} else {
		// The kernel's asynchronous I/O slots are few where many servers run.
		options = append(options, "--innodb-use-native-aio=OFF")
	}
	return options
}

func (m *mysqlFamily) command(n *Node) (*startCommand, error) {
	o := n.c.options
	options := append(m.common(),
		"--datadir="+m.data(n),
		"--port="+strconv.Itoa(n.Port()),
		"--bind-address=127.0.0.1",
		"--socket="+filepath.Join(n.dir, "sock"),
		"--pid-file="+filepath.Join(n.dir, "pid"),
		"--tmpdir="+n.dir,
		"--skip-name-resolve",
		"--server-id="+strconv.Itoa(m.serverID(n)),
		"--log-bin="+filepath.Join(m.data(n), "binlog"),
		"--binlog-format=ROW",
		"--relay-log="+filepath.Join(m.data(n), "relay"),
		"--relay-log-recovery=ON",
		"--log-slave-updates=ON",
		"--log-bin-trust-function-creators=ON",
		// The log is written to the system at each commit, and flushed to the
		// disk now and then: the end of a process costs no acknowledged row
		// (0 would), the end of the machine may.
		"--innodb-flush-log-at-trx-commit=2",
		"--sync-binlog=0",
		"--max-connections="+strconv.Itoa(o.maxConnections()),
		"--max-allowed-packet=64M",
		"--local-infile=ON",
		"--innodb-buffer-pool-dump-at-shutdown=OFF",
		"--innodb-buffer-pool-load-at-startup=OFF",
		"--default-storage-engine=InnoDB",
	)
	if !m.maria {
		options = append(options, "--gtid-mode=ON", "--enforce-gtid-consistency=ON")
		if !m.atLeast(8, 0) {
			options = append(options, "--explicit-defaults-for-timestamp=ON",
				"--master-info-repository=TABLE", "--relay-log-info-repository=TABLE")
		} else {
			options = append(options, "--mysqlx=OFF")
		}
	}
	if n.still {
		options = append(options, m.skipStart())
	}
	if n.source != nil && !o.WritableReplicas {
		options = append(options, "--read-only=ON")
	}
	if !o.NoStatementLog {
		options = append(options, "--general-log=ON", "--general-log-file="+m.logFile(n), "--log-output=FILE")
	}
	if o.Synchronous {
		options = append(options, m.semiSync(n.source == nil)...)
	}
	for _, settings := range o.settings(n) {
		for name, value := range settings {
			options = append(options, fmt.Sprintf("--%s=%s", name, value))
		}
	}
	return m.serverCommand(options...), nil
}

func (m *mysqlFamily) skipStart() string {
	if m.atLeast(8, 1) {
		return "--skip-replica-start"
	}
	return "--skip-slave-start"
}

// serverID is distinct on the whole machine, as servers of different clusters
// are. A server whose data was replaced is another one: it would skip what it
// once wrote itself.
func (m *mysqlFamily) serverID(n *Node) int { return n.Port() + 100000*n.built }

func (m *mysqlFamily) data(n *Node) string { return filepath.Join(n.dir, "data") }

func (m *mysqlFamily) ready(ctx context.Context, n *Node) error { return n.exec(ctx, "DO 1") }

func (m *mysqlFamily) stop(n *Node) error {
	if err := n.proc.cmd.Process.Signal(signalTerminate); err != nil {
		return err
	}
	if !m.maria && !m.atLeast(5, 7) && !n.proc.waitEnd(time.Second) {
		// MySQL 5.6 tells its sessions to end and then gives the threads that
		// feed its replicas ten seconds, after which it forces them. What was
		// acknowledged is in the log.
		return n.proc.kill()
	}
	return nil
}

// quit leaves the data behind as a crash does; it is not used again.
func (m *mysqlFamily) quit(n *Node) error { return n.proc.kill() }

func (m *mysqlFamily) killBackend(ctx context.Context, n *Node, id int64) error {
	return n.withConn(ctx, func(ctx context.Context, conn *sql.Conn) error {
		if _, err := conn.ExecContext(ctx, fmt.Sprintf("KILL CONNECTION %d", id)); err != nil {
			return err
		}
		return m.waitGone(ctx, conn, fmt.Sprintf("id = %d", id))
	})
}

func (m *mysqlFamily) killBackends(ctx context.Context, n *Node) (int, error) {
	var ids []int64
	ours := fmt.Sprintf("user IN ('%s', '%s')", AppUser, AdminUser)
	err := n.withConn(ctx, func(ctx context.Context, conn *sql.Conn) error {
		rows, err := conn.QueryContext(ctx, "SELECT id FROM information_schema.processlist WHERE "+ours)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id int64
			if err := rows.Scan(&id); err != nil {
				return err
			}
			ids = append(ids, id)
		}
		if err := rows.Err(); err != nil {
			return err
		}
		for _, id := range ids {
			// 1094: it has ended by itself meanwhile.
			_, err := conn.ExecContext(ctx, fmt.Sprintf("KILL CONNECTION %d", id))
			if e := (*mysql.MySQLError)(nil); err != nil && !(errors.As(err, &e) && e.Number == 1094) {
				return err
			}
		}
		if len(ids) == 0 {
			return nil
		}
		// Whoever has come since is alive.
		killed := strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ", "), "[]")
		return m.waitGone(ctx, conn, "id IN ("+killed+")")
	})
	return len(ids), err
}

// notEnded excludes connections that were killed and have no socket any more. MySQL 5.6
// shows one now and then, on a busy machine, until it is stopped.
const notEnded = " AND NOT (command = 'Killed' AND time >= 2)"

func (m *mysqlFamily) waitGone(ctx context.Context, conn *sql.Conn, which string) error {
	return poll(ctx, 2*time.Millisecond, func() (bool, error) {
		var count int
		err := conn.QueryRowContext(ctx, "SELECT count(*) FROM information_schema.processlist WHERE "+which+notEnded).Scan(&count)
		return count == 0, err
	})
}

func (m *mysqlFamily) connections(ctx context.Context, conn *sql.Conn) (count int, err error) {
	err = conn.QueryRowContext(ctx, "SELECT count(*) FROM information_schema.processlist WHERE user = ?"+notEnded, AppUser).Scan(&count)
	return count, err
}
