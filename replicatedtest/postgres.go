package replicatedtest

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lib/pq"
)

// postgres is PostgreSQL 12 or newer.
type postgres struct {
	bin     string
	version version
	banner  string
	as      *account
}

func newPostgres() (*postgres, error) {
	bin, v, err := findPostgres()
	if err != nil {
		return nil, err
	}
	as, err := unprivileged("postgres")
	if err != nil {
		return nil, err
	}
	if !as.reaches(filepath.Join(bin, "postgres")) {
		return nil, fmt.Errorf("replicatedtest: no postgres server: the user %s cannot reach %s", as.name, bin)
	}
	_, banner, err := serverVersion(filepath.Join(bin, "postgres"))
	return &postgres{bin: bin, version: v, banner: banner, as: as}, err
}

func (p *postgres) name() string {
	return fmt.Sprintf("PostgreSQL %d.%d", p.version.major, p.version.minor)
}
func (p *postgres) account() *account  { return p.as }
func (p *postgres) driverName() string { return "postgres" }
func (p *postgres) parser() logParser  { return &pgLog{} }

func (p *postgres) logFile(n *Node) string { return filepath.Join(n.dir, serverLog) }

func (p *postgres) dsn(addrs []string, user, password, database string, keys []string) string {
	query := append([]string{"sslmode=disable"}, keys...)
	return fmt.Sprintf("postgres://%s@%s/%s?%s", url.UserPassword(user, password), strings.Join(addrs, ","), database, strings.Join(query, "&"))
}

func (p *postgres) connector(addr string, who login, d boundDialer) (driver.Connector, error) {
	c, err := pq.NewConnector(p.dsn([]string{addr}, who.user, who.password, cmp.Or(who.database, "postgres"), []string{"application_name=replicatedtest"}))
	if err != nil {
		return nil, err
	}
	c.Dialer(d)
	return c, nil
}

// tool builds a command of one of PostgreSQL's programs.
func (p *postgres) tool(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.bin, name), args...)
	cmd.Dir = "/"
	cmd.Env = p.env()
	detach(cmd, p.as)
	return cmd
}

// env is the servers' environment: none of the caller's PGDATA, PGPORT, ….
func (p *postgres) env() []string {
	return []string{"LC_ALL=C", "TZ=UTC", "PATH=" + p.bin + ":/usr/bin:/bin"}
}

// configure writes the settings of a node. They stand outside the data
// directory, which may be replaced by a copy of another node's.
func (p *postgres) configure(n *Node) error {
	o := n.c.options
	var b strings.Builder
	set := func(name, value string) {
		fmt.Fprintf(&b, "%s = '%s'\n", name, strings.NewReplacer(`'`, `''`, `\`, `\\`).Replace(value))
	}
	set("hba_file", filepath.Join(n.dir, "pg_hba.conf"))
	set("listen_addresses", "127.0.0.1")
	set("unix_socket_directories", "")
	set("max_connections", fmt.Sprint(o.maxConnections()))
	set("max_prepared_transactions", "20")
	set("shared_buffers", "32MB")
	set("timezone", "UTC")
	set("lc_messages", "C")
	// A crash of the machine may cost the data, the end of a process may not.
	set("fsync", "off")
	// Shared memory in files of the data directory goes when that goes.
	set("dynamic_shared_memory_type", "mmap")
	set("max_wal_senders", "20")
	set("hot_standby", "on")
	// A replica that was down for a while finds what it missed.
	if p.version.atLeast(13, 0) {
		set("wal_keep_size", "1GB")
	} else {
		set("wal_keep_segments", "64")
	}
	set("wal_retrieve_retry_interval", "100ms")
	if !p.version.atLeast(18, 0) {
		set("password_encryption", "md5")
	}

	set("logging_collector", "off")
	set("log_destination", "stderr")
	set("log_line_prefix", pgLogPrefix)
	set("log_checkpoints", "off")
	if p.version.atLeast(13, 0) {
		set("log_parameter_max_length", "0") // the text is wanted, not the values
	}
	if o.NoStatementLog {
		set("log_min_error_statement", "panic")
	} else {
		set("log_statement", "all")
	}
	if o.Synchronous {
		set("synchronous_standby_names", p.synchronousNames(n))
		set("synchronous_commit", "on")
	}
	for _, settings := range o.settings(n) {
		for name, value := range settings {
			set(name, value)
		}
	}
	fmt.Fprintf(&b, "include = '%s'\n", p.followFile(n))
	if err := os.WriteFile(filepath.Join(n.dir, "postgresql.conf"), []byte(b.String()), 0o644); err != nil {
		return err
	}
	if err := p.writeLogins(n, false); err != nil {
		return err
	}
	return p.writeFollow(n)
}

// writeLogins writes pg_hba.conf.
func (p *postgres) writeLogins(n *Node, refuse bool) error {
	// scram-sha-256 costs both sides some 5 ms a connection, by design, which
	// tests and benchmarks that open many would measure instead of their own.
	method := "md5"
	if p.version.atLeast(18, 0) {
		method = "scram-sha-256"
	}
	var text string
	if refuse {
		// A password that is kept for md5 serves for nothing else: the answer is
		// that of a wrong password.
		wrong := "scram-sha-256"
		if method == wrong {
			wrong = "reject"
		}
		text = fmt.Sprintf("host all %s 127.0.0.1/32 %s\n", AppUser, wrong)
	}
	text += fmt.Sprintf("host all all 127.0.0.1/32 %s\nhost replication all 127.0.0.1/32 %s\n", method, method)
	return replaceFile(filepath.Join(n.dir, "pg_hba.conf"), text)
}

// replaceFile replaces a file that processes of a server read, some time after
// they have been told to: none must find half of it.
func replaceFile(path, text string) error {
	if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// followFile holds the settings that change while a node lives.
func (p *postgres) followFile(n *Node) string { return filepath.Join(n.dir, "follow.conf") }

func (p *postgres) writeFollow(n *Node) error {
	var text string
	if n.source != nil {
		var conninfo string
		if !n.unfed {
			conninfo = fmt.Sprintf("host=127.0.0.1 port=%d user=%s password=%s application_name=%s sslmode=disable",
				n.source.Port(), replUser, replPassword, n.name)
		}
		text = fmt.Sprintf("primary_conninfo = '%s'\nrecovery_target_timeline = 'latest'\nrecovery_min_apply_delay = '%dms'\n",
			conninfo, n.apply.Milliseconds())
	}
	return replaceFile(p.followFile(n), text)
}

func (p *postgres) command(n *Node) (*startCommand, error) {
	if err := p.writeFollow(n); err != nil {
		return nil, err
	}
	cmd := exec.Command(filepath.Join(p.bin, "postgres"), "-D", p.data(n),
		"-c", "config_file="+filepath.Join(n.dir, "postgresql.conf"), "-p", fmt.Sprint(n.Port()))
	cmd.Env = p.env()
	return &startCommand{Cmd: cmd, as: p.as}, nil
}

func (p *postgres) data(n *Node) string { return filepath.Join(n.dir, "data") }

func (p *postgres) ready(ctx context.Context, n *Node) error {
	return n.exec(ctx, "SELECT 1")
}

// stop is a "fast" shutdown, which disconnects clients.
func (p *postgres) stop(n *Node) error { return n.proc.cmd.Process.Signal(signalInterrupt) }

// quit is an "immediate" one, which unlike SIGKILL gives the shared memory
// back.
func (p *postgres) quit(n *Node) error { return n.proc.cmd.Process.Signal(signalQuit) }

func (p *postgres) connections(ctx context.Context, conn *sql.Conn) (count int, err error) {
	err = conn.QueryRowContext(ctx, "SELECT count(*) FROM pg_stat_activity WHERE usename = $1", AppUser).Scan(&count)
	return count, err
}

func (p *postgres) killBackend(ctx context.Context, n *Node, id int64) error {
	return n.withConn(ctx, func(ctx context.Context, conn *sql.Conn) error {
		var found bool
		if err := conn.QueryRowContext(ctx, "SELECT pg_terminate_backend($1::int)", id).Scan(&found); err != nil {
			return err
		}
		if !found {
			return fmt.Errorf("no session %d", id)
		}
		return waitExit(ctx, int(id))
	})
}

func (p *postgres) killBackends(ctx context.Context, n *Node) (count int, err error) {
	ours := fmt.Sprintf("usename IN ('%s', '%s')", AppUser, AdminUser)
	err = n.withConn(ctx, func(ctx context.Context, conn *sql.Conn) error {
		// Materialized, or all backends are killed before it is asked whose they are.
		rows, err := conn.QueryContext(ctx, "WITH ours AS MATERIALIZED (SELECT pid FROM pg_stat_activity WHERE "+ours+
			") SELECT pid FROM ours WHERE pg_terminate_backend(pid)")
		if err != nil {
			return err
		}
		defer rows.Close()
		var pids []int
		for rows.Next() {
			var pid int
			if err := rows.Scan(&pid); err != nil {
				return err
			}
			pids = append(pids, pid)
		}
		count = len(pids)
		return errors.Join(rows.Err(), waitExit(ctx, pids...))
	})
	return count, err
}

// waitExit waits until processes have ended, and with them their sockets: a
// backend disappears from the server's own books a moment before that.
func waitExit(ctx context.Context, pids ...int) error {
	return poll(ctx, time.Millisecond, func() (bool, error) {
		return !slices.ContainsFunc(pids, processExists), nil
	})
}
