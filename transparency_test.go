package replicated_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/lib/pq"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// The transparency tests, TestTransparency…, play one body against the bare
// driver and against ours, and compare what it saw: values with their Go types,
// column types, results, errors with all their fields. What is to be seen is
// never written down, the bare driver says it.
//
// What differs on purpose is not played:
//   - a lost connection: ErrOutcomeUnknown instead of driver.ErrBadConn;
//   - who answered: CONNECTION_ID, pg_backend_pid, server variables, statistics
//     of one server, the statements prepared in it;
//   - what is not a proven read in a read-only transaction, which ours may run on
//     a replica: ErrReadOnly instead of the server's refusal;
//   - diagnostics of a read that a replica may have served (SHOW WARNINGS after a
//     SELECT): they are the primary's;
//   - a connection after a read was cancelled that a replica served: ours is none
//     the worse;
//   - what sql.Conn.Raw is handed: ours leads to the driver's by a method.

// way is one of the ways to open a cluster that have to look the same.
type way struct {
	name string
	open func(c *replicatedtest.Cluster, keys []string) (driverName, dsn string)

	// settles says that reads go to replicas again after a write: it is waited for
	// that they are proven to have it.
	settles bool
}

// ways has the bare driver first.
var ways = []way{
	{name: "bare", open: func(c *replicatedtest.Cluster, keys []string) (string, string) {
		return c.DriverName(), c.Primary().DSN(keys...)
	}},
	{name: "one node", open: func(c *replicatedtest.Cluster, keys []string) (string, string) {
		return "replicated", c.DSNAt([]string{c.Primary().Addr()}, keys...)
	}},
	{name: "three nodes", open: func(c *replicatedtest.Cluster, keys []string) (string, string) {
		return "replicated", c.DSN(keys...)
	}},
	{name: "three nodes, reads on replicas after writes", settles: true, open: func(c *replicatedtest.Cluster, keys []string) (string, string) {
		return "replicated", c.DSN(keys...)
	}},
}

// script plays a body in one way and keeps the transcript.
type script struct {
	t     *testing.T
	c     *replicatedtest.Cluster
	db    *sql.DB
	way   *way
	keys  []string
	lines []string
	wrote bool // something may have been written that replicas have not applied yet
}

// transparent plays the body in all ways and compares the transcripts. Before
// each, the texts of setup run on the primary; the objects they make, they have
// to drop first. What they drop is dropped in the end too.
func transparent(t *testing.T, c *replicatedtest.Cluster, setup []string, play func(*script), keys ...string) {
	t.Helper()
	direct := c.Primary().DB(t)
	t.Cleanup(func() {
		for _, text := range setup {
			if strings.HasPrefix(text, "DROP ") {
				_, _ = direct.ExecContext(context.WithoutCancel(t.Context()), text)
			}
		}
	})
	var bare []string
	for i := range ways {
		for _, text := range setup {
			mustExec(t, direct, text)
		}
		caughtUp(t, c)
		s := &script{t: t, c: c, way: &ways[i], keys: keys}
		s.run(play)
		if i == 0 {
			bare = s.lines
			continue
		}
		compare(t, s.way.name, s.lines, bare)
	}
	t.Logf("%d lines compared, %d times", len(bare), len(ways)-1)
}

func (s *script) run(play func(*script)) {
	s.t.Helper()
	name, dsn := s.way.open(s.c, s.keys)
	db, err := sql.Open(name, dsn)
	if err != nil {
		s.t.Fatal(err)
	}
	s.db = db
	defer func() {
		if err := db.Close(); err != nil {
			s.t.Errorf("closing the handle: %v", err)
		}
	}()
	if s.way.settles {
		measured(s.t, s.c, db)
		cluster, err := replicated.ClusterOf(s.ctx(), db)
		s.must(err)
		knowsCatalog(s.t, cluster) // before that any commit on PostgreSQL counts as one that is not durable yet
	}
	play(s)
	s.idle()
	if s.way.settles && len(stats(s.t, db).Replica) == 0 {
		s.t.Errorf("%s: none did, so nothing was compared with the bare driver's", s.way.name)
	}
}

// compare reports the first differences between two transcripts.
func compare(t *testing.T, name string, got, want []string) {
	t.Helper()
	shown := 0
	for i := range max(len(got), len(want)) {
		var g, w string
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g == w {
			continue
		}
		if shown++; shown > 5 {
			t.Errorf("%s: further differences are not shown", name)
			return
		}
		before := ""
		if i > 0 && i <= len(want) {
			before = want[i-1]
		}
		t.Errorf("%s, line %d, after\n  %s\n got %s\nbare %s", name, i+1, before, g, w)
	}
}

// note adds a line to the transcript.
func (s *script) note(format string, args ...any) {
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

// fail notes an error, or that there is none.
func (s *script) fail(what string, err error) { s.note("%s: %s", what, showError(err)) }

// must ends the test on an error that no way may have.
func (s *script) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s: %v", s.way.name, err)
	}
}

func (s *script) ctx() context.Context { return s.t.Context() }

// settle waits until replicas have what was written, where reads may go there.
func (s *script) settle() {
	s.t.Helper()
	if s.wrote && s.way.settles {
		cluster, err := replicated.ClusterOf(s.ctx(), s.db)
		s.must(err)
		whole := cluster.Proof(true)
		awaitProof(s.t, cluster, false)
		// What is not durable yet follows in a moment. What an open transaction has
		// written does when somebody commits, and is not waited for.
		for began := time.Now(); !whole() && time.Since(began) < 250*time.Millisecond; {
			time.Sleep(time.Millisecond)
		}
	}
	s.wrote = false
}

// idle waits until all connections are back in the pool: what database/sql does
// at the end of a context it does in the background.
func (s *script) idle() {
	s.t.Helper()
	eventually(s.t, 5*time.Second, func() string {
		if n := s.db.Stats().InUse; n > 0 {
			return fmt.Sprintf("%s: %d connections are still in use", s.way.name, n)
		}
		return ""
	})
}

// pool notes how many connections the pool holds, once all are back in it.
func (s *script) pool(when string) {
	s.t.Helper()
	s.idle()
	s.note("%s: %d connections open", when, s.db.Stats().OpenConnections)
}

// conn takes a connection out of the pool.
func (s *script) conn() *sql.Conn {
	s.t.Helper()
	c, err := s.db.Conn(s.ctx())
	s.must(err)
	return c
}

// queryer is a *sql.DB, *sql.Conn or *sql.Tx.
type queryer interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
	QueryRowContext(context.Context, string, ...any) *sql.Row
	ExecContext(context.Context, string, ...any) (sql.Result, error)
	PrepareContext(context.Context, string) (*sql.Stmt, error)
}

// query runs a query and notes all that there is to be seen of it.
func (s *script) query(q queryer, text string, args ...any) {
	s.t.Helper()
	s.settle()
	s.note("query %s (%d arguments)", text, len(args))
	s.rows(q.QueryContext(s.ctx(), text, args...))
}

// rows notes all result sets of Rows, and closes them.
func (s *script) rows(rows *sql.Rows, err error) {
	s.t.Helper()
	if err != nil {
		s.fail("no rows", err)
		return
	}
	for {
		s.columns(rows)
		s.values(rows)
		s.fail("end of rows", rows.Err())
		if !rows.NextResultSet() {
			break
		}
	}
	s.fail("no further result set", rows.Err())
	s.fail("close", rows.Close())
}

// columns notes the columns of a result set, by all accessors of their types.
func (s *script) columns(rows *sql.Rows) {
	names, err := rows.Columns()
	if err != nil {
		s.fail("columns", err)
		return
	}
	types, err := rows.ColumnTypes()
	if err != nil {
		s.fail("column types", err)
		return
	}
	s.note("columns %q", names)
	for _, c := range types {
		length, hasLength := c.Length()
		nullable, known := c.Nullable()
		precision, scale, decimal := c.DecimalSize()
		s.note("column %q: %q %v, length %d %t, nullable %t %t, decimal %d %d %t",
			c.Name(), c.DatabaseTypeName(), c.ScanType(), length, hasLength, nullable, known, precision, scale, decimal)
	}
}

// values notes the rows of a result set as the driver gives them, and as
// database/sql scans them into the types that the columns ask for.
func (s *script) values(rows *sql.Rows) {
	types, err := rows.ColumnTypes()
	if err != nil {
		s.fail("column types", err)
		return
	}
	for rows.Next() {
		raw, typed := make([]any, len(types)), make([]any, len(types))
		rawDest, typedDest := make([]any, len(types)), make([]any, len(types))
		for i, c := range types {
			rawDest[i] = &raw[i]
			typed[i] = reflect.New(c.ScanType()).Interface()
			typedDest[i] = typed[i]
		}
		if err := rows.Scan(rawDest...); err != nil {
			s.fail("scan", err)
			continue
		}
		s.note("row %s", showAll(raw))
		if err := rows.Scan(typedDest...); err != nil {
			s.fail("scan by type", err)
			continue
		}
		s.note("typed %s", showAll(typed))
	}
}

// exec runs a statement and notes its result.
func (s *script) exec(q queryer, text string, args ...any) {
	s.t.Helper()
	s.note("exec %s (%d arguments)", text, len(args))
	s.result(q.ExecContext(s.ctx(), text, args...))
}

func (s *script) result(res sql.Result, err error) {
	if err != nil {
		s.fail("no result", err)
		return
	}
	s.wrote = true
	id, err := res.LastInsertId()
	s.note("last insert id %d: %s", id, showError(err))
	n, err := res.RowsAffected()
	s.note("rows affected %d: %s", n, showError(err))
}

// scan reads one row into variables of given types and notes them.
func (s *script) scan(row *sql.Row, dest ...any) {
	err := row.Scan(dest...)
	s.fail("scan", err)
	if err == nil {
		s.note("scanned %s", showAll(dest))
	}
}

// raw calls f with the primary's driver connection: what Raw gives on the bare
// driver.
func (s *script) raw(conn *sql.Conn, f func(driverConn any) error) error {
	s.wrote = true
	return conn.Raw(func(dc any) error {
		if c, ok := dc.(*replicated.Conn); ok {
			return c.Primary(s.ctx(), f)
		}
		return f(dc)
	})
}

func showAll(values []any) string {
	shown := make([]string, len(values))
	for i, v := range values {
		shown[i] = show(v)
	}
	return strings.Join(shown, " | ")
}

// show writes a value down with its type. Pointers are followed.
func show(v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case time.Time:
		return fmt.Sprintf("time %s in %s", v.Format(time.RFC3339Nano), v.Location())
	case string:
		return fmt.Sprintf("string %q", v)
	}
	r := reflect.ValueOf(v)
	switch {
	case r.Kind() == reflect.Pointer && r.IsNil():
		return fmt.Sprintf("nil %T", v)
	case r.Kind() == reflect.Pointer:
		return "*" + show(r.Elem().Interface())
	case r.Kind() == reflect.Slice && r.IsNil():
		return fmt.Sprintf("nil %T", v)
	case r.Kind() == reflect.Slice && r.Type().Elem().Kind() == reflect.Uint8:
		return fmt.Sprintf("%T %q", v, r.Bytes())
	default:
		return fmt.Sprintf("%T %v", v, v)
	}
}

var sentinels = map[string]error{
	"ErrBadConn":       driver.ErrBadConn,
	"ErrConnDone":      sql.ErrConnDone,
	"ErrNoRows":        sql.ErrNoRows,
	"ErrTxDone":        sql.ErrTxDone,
	"Canceled":         context.Canceled,
	"DeadlineExceeded": context.DeadlineExceeded,
	"ErrInvalidConn":   mysql.ErrInvalidConn,
}

// showError writes an error down: its type and those that it wraps, its text, the
// fields of a server's error, the sentinels that errors.Is finds in it.
func showError(err error) string {
	if err == nil {
		return "no error"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%q", err.Error())
	for e := err; e != nil; e = errors.Unwrap(e) {
		fmt.Fprintf(&b, " %T", e)
		switch e := e.(type) {
		case *pq.Error:
			fmt.Fprintf(&b, "%+v", *e)
		case *mysql.MySQLError:
			fmt.Fprintf(&b, "%+v", *e)
		}
	}
	var is []string
	for name, sentinel := range sentinels {
		if errors.Is(err, sentinel) {
			is = append(is, name)
		}
	}
	slices.Sort(is)
	fmt.Fprintf(&b, " %v", is)
	return b.String()
}

// postgresAlone and mysqlAlone run a test on the shared clusters of one family.
func postgresAlone(t *testing.T, test func(t *testing.T, c *replicatedtest.Cluster)) {
	test(t, sharedCluster(t, replicatedtest.Postgres))
}

func mysqlAlone(t *testing.T, test func(t *testing.T, c *replicatedtest.Cluster)) {
	for _, e := range []replicatedtest.Engine{replicatedtest.MariaDB, replicatedtest.MySQL} {
		t.Run(e.String(), func(t *testing.T) { test(t, sharedCluster(t, e)) })
	}
}

// plain is a table that every body may use, with three rows in it.
func plain(e replicatedtest.Engine) []string {
	auto := "id int AUTO_INCREMENT PRIMARY KEY"
	if e == replicatedtest.Postgres {
		auto = "id serial PRIMARY KEY"
	}
	return []string{
		"DROP TABLE IF EXISTS transparent",
		"CREATE TABLE transparent (" + auto + ", name varchar(20) NOT NULL UNIQUE, n int)",
		"INSERT INTO transparent (name, n) VALUES ('one', 1), ('two', 2), ('three', NULL)",
	}
}
