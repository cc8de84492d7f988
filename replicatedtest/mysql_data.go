package replicatedtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// template is a data directory of a cleanly stopped server with the accounts
// and the database, and without a binary log: the histories of all clusters
// begin empty.
func (m *mysqlFamily) template(ctx context.Context) (string, error) {
	return cached(ctx, m.name(), m.banner, m.as, func(_ context.Context, scratch string) (string, error) {
		data := filepath.Join(scratch, "data")
		if err := os.Mkdir(data, 0o700); err != nil {
			return "", err
		}
		if err := m.as.own(data); err != nil {
			return "", err
		}
		var err error
		switch {
		case m.maria:
			err = m.initMariaDB(data, scratch)
		case m.atLeast(5, 7):
			err = m.initMySQL57(data, scratch)
		default:
			err = m.initMySQL56(data)
		}
		return data, err
	})
}

// accounts are the statements that make a new data directory a cluster's.
func (m *mysqlFamily) accounts() []string {
	user := func(name, password, grants string) []string {
		// The host is any: servers listen on loopback only.
		create := fmt.Sprintf("CREATE USER '%s'@'%%' IDENTIFIED BY '%s'", name, password)
		return []string{create, fmt.Sprintf("GRANT %s TO '%s'@'%%'", grants, name)}
	}
	statements := []string{
		"FLUSH PRIVILEGES", // loads the accounts' tables, which bootstrapping leaves out
		"CREATE DATABASE " + Database + " CHARACTER SET utf8mb4",
	}
	monitor := "REPLICATION CLIENT ON *.*"
	if m.maria {
		// SHOW SLAVE STATUS, which REPLICATION CLIENT allows in MySQL.
		monitor = "REPLICATION CLIENT, SLAVE MONITOR ON *.*"
	}
	statements = append(statements, user(AppUser, AppPassword, monitor)...)
	statements = append(statements, fmt.Sprintf("GRANT ALL ON %s.* TO '%s'@'%%'", Database, AppUser))
	statements = append(statements, user(replUser, replPassword, "REPLICATION SLAVE ON *.*")...)
	for name, password := range map[string]string{AdminUser: AdminPassword, harnessUser: harnessPassword} {
		create := user(name, password, "ALL ON *.*")
		create[1] += " WITH GRANT OPTION"
		statements = append(statements, create...)
	}
	return statements
}

// bootstrap runs statements, one a line, in a server without network and
// without authentication, which then ends. MySQL has had none since 5.7.
func (m *mysqlFamily) bootstrap(data string, script string) error {
	cmd := m.serverCommand(append(m.common(), "--bootstrap", "--skip-log-bin", "--datadir="+data)...)
	if share := m.messages(); share != "" {
		cmd.Args = append(cmd.Args, "--basedir="+filepath.Dir(m.program))
	}
	cmd.Stdin = strings.NewReader(script)
	detach(cmd.Cmd, cmd.as)
	out, err := cmd.CombinedOutput()
	if err == nil && bytes.Contains(out, []byte("ERROR: ")) {
		err = fmt.Errorf("an SQL error")
	}
	if err != nil {
		return fmt.Errorf("replicatedtest: initialising %s: %w: %s", m.name(), err, lastLines(string(out), 20))
	}
	return nil
}

func lines(statements []string) string { return strings.Join(statements, ";\n") + ";\n" }

func (m *mysqlFamily) initMariaDB(data, scratch string) error {
	var install string
	for _, name := range []string{"mariadb-install-db", "mysql_install_db"} {
		for _, path := range append(candidates(name), filepath.Join(filepath.Dir(m.program), name), filepath.Join(filepath.Dir(m.program), "..", "bin", name), filepath.Join(filepath.Dir(m.program), "..", "scripts", name)) {
			if _, err := os.Stat(path); err == nil && install == "" {
				install = path
			}
		}
	}
	if install == "" {
		return fmt.Errorf("replicatedtest: no mariadb-install-db for %s", m.program)
	}
	args := append([]string{"--no-defaults", "--datadir=" + data, "--auth-root-authentication-method=normal", "--skip-test-db"}, m.common()...)
	cmd := exec.Command(install, args...)
	cmd.Dir = scratch
	cmd.Env = []string{"LC_ALL=C", "TMPDIR=" + scratch, "PATH=" + filepath.Dir(m.program) + ":/usr/bin:/bin:/usr/sbin:/sbin"}
	detach(cmd, m.as)
	if err := runTool(cmd); err != nil {
		return err
	}
	return m.bootstrap(data, lines(m.accounts()))
}

// initMySQL56 does what the script mysql_install_db of MySQL 5.6 does, which
// the package that carries only the server lacks.
func (m *mysqlFamily) initMySQL56(data string) error {
	share := m.messages()
	if share == "" {
		share = filepath.Join(filepath.Dir(m.program), "..", "share")
	}
	script := "CREATE DATABASE mysql;\nUSE mysql;\n"
	for _, name := range []string{"mysql_system_tables.sql", "mysql_system_tables_data.sql"} {
		text, err := os.ReadFile(filepath.Join(share, name))
		if err != nil {
			return fmt.Errorf("replicatedtest: initialising %s: %w", m.name(), err)
		}
		script += string(text) + "\n"
	}
	// Anonymous accounts would be preferred to '%' for local clients.
	return m.bootstrap(data, script+"DELETE FROM mysql.user;\nDELETE FROM mysql.db;\n"+lines(m.accounts()))
}

func (m *mysqlFamily) initMySQL57(data, scratch string) error {
	cmd := m.serverCommand(append(m.common(), "--initialize-insecure", "--datadir="+data)...)
	detach(cmd.Cmd, cmd.as)
	if err := runTool(cmd.Cmd); err != nil {
		return err
	}
	// --initialize refuses statements about accounts; a server that shuts down
	// at the end of its start takes them.
	file := filepath.Join(scratch, "accounts.sql")
	if err := os.WriteFile(file, []byte(lines(append(m.accounts(), "SHUTDOWN"))), 0o644); err != nil {
		return err
	}
	options := append(m.common(), "--datadir="+data, "--skip-networking", "--skip-log-bin", "--init-file="+file,
		"--socket="+filepath.Join(scratch, "sock"), "--pid-file="+filepath.Join(scratch, "pid"), "--secure-file-priv=")
	if m.atLeast(8, 0) {
		options = append(options, "--mysqlx=OFF")
	}
	cmd = m.serverCommand(options...)
	detach(cmd.Cmd, cmd.as)
	return runTool(cmd.Cmd)
}

func (m *mysqlFamily) layout(n *Node, template string, _ uint64) error {
	data := m.data(n)
	if err := copyTree(data, template, m.as); err != nil {
		return err
	}
	return m.drawUUID(data)
}

// drawUUID gives a server of MySQL an identity. Left to itself it makes one of the time
// and the machine, and two that begin at once may make the same: they cannot follow
// each other then.
func (m *mysqlFamily) drawUUID(data string) error {
	if m.maria {
		return nil
	}
	u := make([]byte, 16)
	_, _ = rand.Read(u) // it never fails
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	text := fmt.Sprintf("[auto]\nserver-uuid=%x-%x-%x-%x-%x\n", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
	return os.WriteFile(filepath.Join(data, "auto.cnf"), []byte(text), 0o644)
}

// rebuild copies the source's data. A running source stands still meanwhile, so
// that the copy is what a crash would leave behind at that moment, from which a
// server recovers: no other way serves both families in all versions, and a
// source whose binary log was reset.
func (m *mysqlFamily) rebuild(_ context.Context, n *Node) error {
	data, from := m.data(n), m.data(n.source)
	if err := emptyDir(data); err != nil {
		return err
	}
	if err := m.copyStill(data, from, n.source); err != nil {
		return err
	}
	// What makes it the source, and not another server with its data.
	forget := []string{"master.info", "relay-log.info"}
	relay, err := filepath.Glob(filepath.Join(data, "relay.*"))
	if err != nil {
		return err
	}
	for _, path := range relay {
		forget = append(forget, filepath.Base(path))
	}
	for _, name := range forget {
		if err := os.Remove(filepath.Join(data, name)); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	// The list of the binary log's files has absolute names.
	index := filepath.Join(data, "binlog.index")
	list, err := os.ReadFile(index)
	if err != nil {
		return err
	}
	list = bytes.ReplaceAll(list, []byte(from+"/"), []byte(data+"/"))
	if err := os.WriteFile(index, list, 0o640); err != nil {
		return err
	}
	n.built++
	return m.drawUUID(data)
}

// copyStill copies the data of a server that does nothing meanwhile.
func (m *mysqlFamily) copyStill(to, from string, source *Node) (err error) {
	if p := source.process(); p != nil && !source.Hung() {
		if err := p.hang(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, p.resume()) }()
	}
	return copyInto(to, from, m.as)
}
