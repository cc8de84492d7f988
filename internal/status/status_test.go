package status_test

import (
	"context"
	"database/sql/driver"
	"io"
	"log"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/lib/pq"

	"github.com/sqlreplicated/replicated/internal/socket/wiretest"
	"github.com/sqlreplicated/replicated/internal/status"
)

// openPostgres connects lib/pq to a scripted server.
func openPostgres(tb testing.TB, srv *wiretest.Server) driver.Conn {
	tb.Helper()
	c, err := pq.NewConnector("postgres://u:p@" + srv.Addr + "/d?sslmode=disable")
	return connect(tb, c, err)
}

// openMySQL connects go-sql-driver to a scripted server.
func openMySQL(tb testing.TB, srv *wiretest.Server) driver.Conn {
	tb.Helper()
	cfg := mysql.NewConfig()
	cfg.User, cfg.Net, cfg.Addr = "u", "tcp", srv.Addr
	cfg.Logger = log.New(io.Discard, "", 0)
	c, err := mysql.NewConnector(cfg)
	return connect(tb, c, err)
}

func connect(tb testing.TB, c driver.Connector, err error) driver.Conn {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
	conn, err := c.Connect(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	return conn
}

// run executes a text; the scripted reply decides what comes of it.
func run(conn driver.Conn, text string) error {
	_, err := conn.(driver.ExecerContext).ExecContext(context.Background(), text, nil)
	return err
}

// These two tests fail when a driver renames the field that is read, or changes
// its type: then internal/status has to learn the new name.

func TestReaderForFollowsLibPQ(t *testing.T) {
	replies := map[string]wiretest.Reply{
		"Q begin":    {Status: 'T'},
		"Q fail":     {Status: 'E', Code: "42601"},
		"Q rollback": {Status: 'I'},
	}
	srv := wiretest.Postgres(t, func(m string) wiretest.Reply { return replies[m] })
	conn := openPostgres(t, srv)
	reader := status.ReaderFor(conn)
	if !reader.Known() {
		t.Fatalf("ReaderFor does not find the status in lib/pq's %T", conn)
	}
	check := func(after string, want status.Tx) {
		t.Helper()
		if got := reader.Read(); got != (status.Status{Tx: want}) {
			t.Errorf("after %s: Read() = %+v, want %v", after, got, want)
		}
		if got := status.Of(conn); got != reader.Read() {
			t.Errorf("after %s: Of() = %+v, Read() = %+v", after, got, reader.Read())
		}
	}
	check("start-up", status.Idle)
	for _, step := range []struct {
		text string
		want status.Tx
	}{{"begin", status.Active}, {"fail", status.Failed}, {"rollback", status.Idle}} {
		err := run(conn, step.text)
		if (err != nil) != (step.text == "fail") {
			t.Fatalf("%s: %v", step.text, err)
		}
		check(step.text, step.want)
	}
}

func TestReaderForFollowsGoSQLDriver(t *testing.T) {
	const trans, autocommit, readonly = 1, 2, 1 << 13
	replies := map[string]wiretest.Reply{
		"login":           {Status: autocommit},
		"Q begin":         {Status: trans | autocommit},
		"Q begin ro":      {Status: trans | readonly | autocommit},
		"Q commit":        {Status: autocommit},
		"Q autocommit=0":  {Status: 0},
		"Q insert":        {Status: trans},
		"Q fail":          {Code: "1064"},
		"Q other flags":   {Status: autocommit | 1<<5 | 1<<9},
		"Q autocommit=1":  {Status: autocommit},
		"Q chained begin": {Status: trans | autocommit},
	}
	srv := wiretest.MySQL(t, func(m string) wiretest.Reply { return replies[m] })
	conn := openMySQL(t, srv)
	reader := status.ReaderFor(conn)
	if !reader.Known() {
		t.Fatalf("ReaderFor does not find the status in go-sql-driver's %T", conn)
	}
	idle := status.Status{Tx: status.Idle}
	active := status.Status{Tx: status.Active}
	off := status.Status{Tx: status.Active, AutocommitOff: true}
	if got := reader.Read(); got != idle {
		t.Errorf("after login: Read() = %+v, want %+v", got, idle)
	}
	for _, step := range []struct {
		text string
		want status.Status
	}{
		{"begin", active},
		{"fail", active}, // an error carries no flags
		{"commit", idle},
		{"begin ro", active},
		{"commit", idle},
		{"other flags", idle},
		{"autocommit=0", off},
		{"insert", off},
		{"autocommit=1", idle},
		{"chained begin", active},
	} {
		if err := run(conn, step.text); (err != nil) != (step.text == "fail") {
			t.Fatalf("%s: %v", step.text, err)
		}
		if got := reader.Read(); got != step.want {
			t.Errorf("after %s: Read() = %+v, want %+v", step.text, got, step.want)
		}
	}
}

func TestReaderForSeesServerDefaultAutocommitOff(t *testing.T) {
	srv := wiretest.MySQL(t, func(string) wiretest.Reply { return wiretest.Reply{} })
	want := status.Status{Tx: status.Active, AutocommitOff: true}
	if got := status.Of(openMySQL(t, srv)); got != want {
		t.Errorf("Of() = %+v, want %+v", got, want)
	}
}

func TestBackendPIDOfLibPQ(t *testing.T) {
	srv := wiretest.Postgres(t, nil)
	conn := openPostgres(t, srv)
	pid, ok := status.BackendPID(conn)
	if want := int64(srv.Next().PID); !ok || pid != want {
		t.Errorf("BackendPID() = %d, %v; the server gave %d", pid, ok, want)
	}
}

// bare is a connection whose driver is not known.
type bare struct{}

func (bare) Prepare(string) (driver.Stmt, error) { return nil, driver.ErrSkip }
func (bare) Close() error                        { return nil }
func (bare) Begin() (driver.Tx, error)           { return nil, driver.ErrSkip }

// telling is a connection that tells by itself.
type telling struct {
	bare
	tx byte
}

func (c *telling) TxStatus() byte { return c.tx }

// The shape of pgx's stdlib connection.
type (
	stdlibConn struct {
		bare
		inner *pgxConn
	}
	pgxConn struct{ pg *pgConn }
	pgConn  struct {
		tx  byte
		pid uint32
	}
)

func (c *stdlibConn) Conn() *pgxConn { return c.inner }
func (c *pgxConn) PgConn() *pgConn   { return c.pg }
func (c *pgConn) TxStatus() byte     { return c.tx }
func (c *pgConn) PID() uint32        { return c.pid }

// Connections with methods of the same names and other shapes.
type (
	otherArgs  struct{ bare }
	otherInner struct{ bare }
	nilInner   struct{ bare }
)

func (*otherArgs) Conn(int) *pgxConn  { panic("called") }
func (*otherInner) Conn() driver.Conn { return bare{} }
func (*nilInner) Conn() *pgxConn      { return nil }

func TestReaderForOtherConnections(t *testing.T) {
	pg := &pgConn{tx: 'T', pid: 99}
	tests := []struct {
		name  string
		conn  driver.Conn
		want  status.Tx
		known bool
	}{
		{name: "nil", conn: nil},
		{name: "unknown driver", conn: bare{}},
		{name: "nil pointer", conn: (*bare)(nil)},
		{name: "own method, idle", conn: &telling{tx: 'I'}, want: status.Idle, known: true},
		{name: "own method, failed", conn: &telling{tx: 'E'}, want: status.Failed, known: true},
		{name: "own method, no answer yet", conn: &telling{}, want: status.Unknown, known: true},
		{name: "pgx", conn: &stdlibConn{inner: &pgxConn{pg}}, want: status.Active, known: true},
		{name: "pgx, closed", conn: &stdlibConn{}},
		{name: "method with arguments", conn: &otherArgs{}},
		{name: "method of another type", conn: &otherInner{}},
		{name: "method that returns nil", conn: &nilInner{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := status.ReaderFor(tt.conn)
			if got := r.Read(); got.Tx != tt.want || r.Known() != tt.known {
				t.Errorf("Read() = %v, Known() = %v; want %v, %v", got.Tx, r.Known(), tt.want, tt.known)
			}
		})
	}
	conn := &stdlibConn{inner: &pgxConn{pg}}
	r := status.ReaderFor(conn)
	pg.tx = 'I'
	if got := r.Read().Tx; got != status.Idle {
		t.Errorf("after a change: Read() = %v, want %v", got, status.Idle)
	}
	if pid, ok := status.BackendPID(conn); pid != 99 || !ok {
		t.Errorf("BackendPID() = %d, %v; want 99, true", pid, ok)
	}
	if pid, ok := status.BackendPID(bare{}); pid != 0 || ok {
		t.Errorf("BackendPID of an unknown driver = %d, %v", pid, ok)
	}
}

func TestTxString(t *testing.T) {
	for tx, want := range map[status.Tx]string{
		status.Unknown: "unknown", status.Idle: "idle", status.Active: "active", status.Failed: "failed", 99: "invalid",
	} {
		if got := tx.String(); got != want {
			t.Errorf("Tx(%d).String() = %q, want %q", tx, got, want)
		}
	}
}

func TestReadDoesNotAllocate(t *testing.T) {
	for name, conn := range map[string]driver.Conn{
		"lib/pq":        openPostgres(t, wiretest.Postgres(t, nil)),
		"go-sql-driver": openMySQL(t, wiretest.MySQL(t, nil)),
		"pgx":           &stdlibConn{inner: &pgxConn{&pgConn{}}},
	} {
		r := status.ReaderFor(conn)
		if n := testing.AllocsPerRun(100, func() { r.Read() }); n != 0 {
			t.Errorf("%s: Read allocates %v times", name, n)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	for name, open := range map[string]func() driver.Conn{
		"pq":    func() driver.Conn { return openPostgres(b, wiretest.Postgres(b, nil)) },
		"mysql": func() driver.Conn { return openMySQL(b, wiretest.MySQL(b, nil)) },
		"pgx":   func() driver.Conn { return &stdlibConn{inner: &pgxConn{&pgConn{tx: 'I'}}} },
	} {
		b.Run(name, func(b *testing.B) {
			r := status.ReaderFor(open())
			b.ReportAllocs()
			for b.Loop() {
				r.Read()
			}
		})
	}
}

func BenchmarkReaderFor(b *testing.B) {
	conn := openPostgres(b, wiretest.Postgres(b, nil))
	b.ReportAllocs()
	for b.Loop() {
		status.ReaderFor(conn)
	}
}
