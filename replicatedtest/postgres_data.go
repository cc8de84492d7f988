package replicatedtest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// template is a data directory of a cleanly stopped server with the accounts
// and the database.
func (p *postgres) template(ctx context.Context) (string, error) {
	return cached(ctx, p.name(), p.banner, p.as, func(_ context.Context, scratch string) (string, error) {
		data := filepath.Join(scratch, "data")
		// C.UTF-8 knows more letters than C and sorts like it on every system;
		// not every system has it.
		var err error
		for _, locale := range []string{"C.UTF-8", "C"} {
			if err = os.RemoveAll(data); err != nil {
				return "", err
			}
			err = runTool(p.tool("initdb", "-D", data, "-U", harnessUser, "--encoding=UTF8", "--locale="+locale, "--no-sync", "-A", "trust"))
			if err == nil {
				break
			}
		}
		if err != nil {
			return "", err
		}
		// In single-user mode no authentication stands in the way; each line is
		// a statement.
		encryption := "md5"
		if p.version.atLeast(18, 0) {
			encryption = "scram-sha-256"
		}
		// A standby wants as many connections as its primary last had, and this
		// is the first word on it.
		cmd := p.tool("postgres", "--single", "-F", "-c", "password_encryption="+encryption, "-c", fmt.Sprint("max_connections=", fewestConnections), "-D", data, "postgres")
		cmd.Stdin = strings.NewReader(strings.Join([]string{
			fmt.Sprintf("ALTER ROLE %s PASSWORD '%s'", harnessUser, harnessPassword),
			fmt.Sprintf("CREATE ROLE %s LOGIN REPLICATION PASSWORD '%s'", replUser, replPassword),
			fmt.Sprintf("CREATE ROLE %s LOGIN SUPERUSER PASSWORD '%s'", AdminUser, AdminPassword),
			fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", AppUser, AppPassword),
			fmt.Sprintf("CREATE DATABASE %s OWNER %s", Database, AppUser),
		}, "\n") + "\n")
		out, err := cmd.CombinedOutput()
		if err == nil && bytes.Contains(out, []byte("ERROR:")) {
			err = errors.New("an SQL error")
		}
		if err != nil {
			return "", fmt.Errorf("replicatedtest: preparing accounts: %w: %s", err, lastLines(string(out), 20))
		}
		return data, nil
	})
}

// layout copies the template. A cold copy is as good as a base backup: the
// replica streams from the checkpoint with which the template was stopped.
func (p *postgres) layout(n *Node, template string, clusterID uint64) error {
	data := p.data(n)
	if err := copyTree(data, template, p.as); err != nil {
		return err
	}
	if err := os.Chmod(data, 0o700); err != nil {
		return err
	}
	if err := setSystemIdentifier(data, clusterID); err != nil {
		return err
	}
	if n.source != nil {
		if err := p.markStandby(n); err != nil {
			return err
		}
	}
	return p.configure(n)
}

func (p *postgres) markStandby(n *Node) error {
	signal := filepath.Join(p.data(n), "standby.signal")
	if err := os.WriteFile(signal, nil, 0o600); err != nil {
		return err
	}
	return p.as.own(signal)
}

// rebuild takes a base backup of the node's source.
func (p *postgres) rebuild(_ context.Context, n *Node) error {
	data := p.data(n)
	if err := emptyDir(data); err != nil {
		return err
	}
	conninfo := fmt.Sprintf("host=127.0.0.1 port=%d user=%s password=%s sslmode=disable", n.source.Port(), replUser, replPassword)
	err := runTool(p.tool("pg_basebackup", "-D", data, "-d", conninfo, "--checkpoint=fast", "--wal-method=stream", "--no-sync", "--no-manifest"))
	if err != nil {
		return err
	}
	if err := p.markStandby(n); err != nil {
		return err
	}
	return p.configure(n)
}

var walName = regexp.MustCompile(`^[0-9A-F]{24}$`)

// setSystemIdentifier gives a cleanly stopped data directory an identity of
// its own. initdb draws one, and copies of one template would all be the same
// cluster to whoever compares identities.
//
// It is the first field of the control file, whose last field is a checksum
// (src/include/catalog/pg_control.h), and stands in the header of the first
// page of each log segment, which has none (XLogLongPageHeaderData in
// src/include/access/xlog_internal.h). Both are in the machine's byte order.
func setSystemIdentifier(data string, id uint64) error {
	path := filepath.Join(data, "global", "pg_control")
	control, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	order := binary.NativeEndian
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	checksum := -1
	// The structure grows with the versions; its end is where the checksum of
	// all before it stands.
	for at := 128; at+4 <= min(len(control), 512); at += 4 {
		if order.Uint32(control[at:]) == crc32.Checksum(control[:at], castagnoli) {
			checksum = at
			break
		}
	}
	if checksum < 0 {
		return fmt.Errorf("%s: no checksum found", path)
	}
	former := append([]byte(nil), control[:8]...)
	order.PutUint64(control, id)
	order.PutUint32(control[checksum:], crc32.Checksum(control[:checksum], castagnoli))
	if err := overwrite(path, 0, control); err != nil {
		return err
	}

	wal := filepath.Join(data, "pg_wal")
	entries, err := os.ReadDir(wal)
	if err != nil {
		return err
	}
	const identifierAt = 24
	for _, e := range entries {
		if !walName.MatchString(e.Name()) {
			continue
		}
		path := filepath.Join(wal, e.Name())
		header := make([]byte, identifierAt+8)
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		_, err = f.Read(header)
		f.Close()
		if err != nil {
			return err
		}
		if !bytes.Equal(header[identifierAt:], former) {
			continue // allocated in advance, and empty
		}
		if err := overwrite(path, identifierAt, control[:8]); err != nil {
			return err
		}
	}
	return nil
}

// overwrite replaces bytes of a file, whose owner stays.
func overwrite(path string, at int64, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(data, at); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
