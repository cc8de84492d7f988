package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// sqliteServers are three SQLite files in a temporary directory, for machines
// without a database server. What SQLite lacks is the demo's own: the replication
// (sqlite_replication.go), and servers that can be killed and that keep a log
// (sqlite_driver.go).
type sqliteServers struct {
	dir      string
	files    []*sqliteFile
	upstream *changeLog
	version  string
	stop     context.CancelFunc
	loops    sync.WaitGroup
}

// sqliteFile is one node: a database file, and what a server would keep beside it.
type sqliteFile struct {
	name     string
	path     string
	upstream *changeLog // of the primary: where its connections write changes to

	dead    atomic.Bool
	crashes atomic.Int64
	conns   atomic.Int64

	mu  sync.Mutex
	ran []string
}

func startSQLite(ctx context.Context) (_ servers, err error) {
	dir, err := os.MkdirTemp("", "replicated-demo-")
	if err != nil {
		return nil, err
	}
	s := &sqliteServers{dir: dir, upstream: &changeLog{}, stop: func() {}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	for i, name := range nodeNames {
		f := &sqliteFile{name: name, path: filepath.Join(dir, strings.ReplaceAll(name, " ", "")+".db")}
		if i == 0 {
			f.upstream = s.upstream
		}
		sqliteFiles.Store(f.path, f)
		s.files = append(s.files, f)
	}
	db, err := s.files[0].direct()
	if err != nil {
		return nil, err
	}
	defer db.Close()
	if err := db.QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&s.version); err != nil {
		return nil, err
	}
	return s, nil
}

// direct opens the file beside the demo's driver: what goes through it is neither
// logged nor replicated, and works on a node that is down.
func (f *sqliteFile) direct() (*sql.DB, error) {
	db, err := sql.Open("sqlite", sqliteDSN(f.path))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// sqliteDSN adds what every connection needs: readers that do not wait for
// writers, writers that wait for each other, and no disk in the way.
func sqliteDSN(path string, more ...string) string {
	pragmas := append([]string{"_pragma=busy_timeout(10000)", "_pragma=journal_mode(wal)", "_pragma=synchronous(off)"}, more...)
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + strings.Join(pragmas, "&")
}

func (s *sqliteServers) title() string { return "SQLite " + s.version + ", embedded" }

func (s *sqliteServers) note() string {
	return "No database server is in use: the nodes are three SQLite files, reached through the generic form " +
		"replicated://<any registered driver>. Replication and its lag, the statement logs and what \"killed\" means " +
		"are made by a small driver and a loop of the demo's own."
}

func (s *sqliteServers) word() string      { return "by the demo's own count" }
func (s *sqliteServers) logs() string      { return "the logs of the demo's driver below" }
func (s *sqliteServers) bank() bank        { return sqliteBank() }
func (s *sqliteServers) separator() string { return "&" }

// keys has the window: SQLite does not tell how far a file has got.
func (s *sqliteServers) keys() []string { return []string{"replicated.sticky=" + sticky.String()} }

func (s *sqliteServers) shown() string {
	return "replicated://" + sqliteDriverName + "?primary=…&replica=…&replica=…"
}

func (s *sqliteServers) dsn(keys ...string) string {
	var params []string
	for i, f := range s.files {
		role := "replica="
		if i == 0 {
			role = "primary="
		}
		params = append(params, role+url.QueryEscape(f.path))
	}
	return "replicated://" + sqliteDriverName + "?" + strings.Join(append(params, keys...), "&")
}

func (s *sqliteServers) prepare(ctx context.Context, statements []string, lag time.Duration) error {
	for _, f := range s.files {
		db, err := f.direct()
		if err != nil {
			return err
		}
		for _, text := range statements {
			if _, err = db.ExecContext(ctx, text); err != nil {
				break
			}
		}
		if err := errors.Join(err, db.Close()); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	run, stop := context.WithCancel(context.Background())
	s.stop = stop
	for _, f := range s.files[1:] {
		s.loops.Go(func() { follow(run, f, s.upstream, lag) })
	}
	return nil
}

func (s *sqliteServers) nodes() []server {
	var list []server
	for _, f := range s.files {
		list = append(list, f)
	}
	return list
}

func (s *sqliteServers) close() error {
	s.stop()
	s.loops.Wait()
	for _, f := range s.files {
		sqliteFiles.Delete(f.path)
	}
	return errors.Join(s.upstream.failure(), os.RemoveAll(s.dir))
}

func (f *sqliteFile) bare() (*sql.DB, error)    { return sql.Open(sqliteDriverName, f.path) }
func (f *sqliteFile) connections() (int, error) { return int(f.conns.Load()), nil }

func (f *sqliteFile) kill() error {
	f.dead.Store(true)
	f.crashes.Add(1)
	return nil
}

func (f *sqliteFile) start() error {
	f.dead.Store(false)
	return nil
}

func (f *sqliteFile) watch() func() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	from := len(f.ran)
	return func() []string {
		f.mu.Lock()
		defer f.mu.Unlock()
		return append([]string(nil), f.ran[from:]...)
	}
}

func (f *sqliteFile) log(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ran = append(f.ran, text)
}
