package socket_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"log"
	"slices"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/lib/pq"

	"github.com/sqlreplicated/replicated/internal/socket"
	"github.com/sqlreplicated/replicated/internal/socket/wiretest"
)

// The tests of this file hold what the drivers make of the connection's
// behaviour; the rest of the project rests on it.

// open connects a driver to a scripted server through a Dialer.
func open(tb testing.TB, srv *wiretest.Server, d *socket.Dialer, parameters string) (driver.Conn, *socket.Conn) {
	tb.Helper()
	c, err := pq.NewConnector("postgres://u:p@" + srv.Addr + "/d?" + parameters)
	if err != nil {
		tb.Fatal(err)
	}
	c.Dialer(d)
	return connect(tb, c, d)
}

func openMySQL(tb testing.TB, srv *wiretest.Server, d *socket.Dialer) (driver.Conn, *socket.Conn) {
	tb.Helper()
	cfg := mysql.NewConfig()
	cfg.User, cfg.Net, cfg.Addr = "u", "tcp", srv.Addr
	cfg.Logger = log.New(io.Discard, "", 0)
	cfg.DialFunc = d.DialContext
	c, err := mysql.NewConnector(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return connect(tb, c, d)
}

func connect(tb testing.TB, c driver.Connector, d *socket.Dialer) (driver.Conn, *socket.Conn) {
	tb.Helper()
	conn, err := c.Connect(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	sock := d.Socket()
	if sock == nil {
		tb.Fatal("the driver has not dialled")
	}
	return conn, sock
}

func exec(ctx context.Context, conn driver.Conn, text string, args ...any) error {
	_, err := conn.(driver.ExecerContext).ExecContext(ctx, text, named(args))
	return err
}

func named(args []any) []driver.NamedValue {
	var nv []driver.NamedValue
	for i, a := range args {
		nv = append(nv, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return nv
}

func TestDriversRepeatWhatAStaleConnectionHasNotSent(t *testing.T) {
	ctx := context.Background()
	calls := map[string]func(driver.Conn, driver.Stmt) error{
		"exec": func(c driver.Conn, _ driver.Stmt) error { return exec(ctx, c, "insert") },
		"ping": func(c driver.Conn, _ driver.Stmt) error { return c.(driver.Pinger).Ping(ctx) },
		"begin": func(c driver.Conn, _ driver.Stmt) error {
			_, err := c.(driver.ConnBeginTx).BeginTx(ctx, driver.TxOptions{})
			return err
		},
		"prepare": func(c driver.Conn, _ driver.Stmt) error { _, err := c.Prepare("insert"); return err },
		"exec with arguments": func(c driver.Conn, _ driver.Stmt) error {
			if _, ok := c.(driver.QueryerContext); !ok {
				return nil
			}
			err := exec(ctx, c, "insert $1", "x")
			if err == driver.ErrSkip { // go-sql-driver has it prepared
				_, err = c.Prepare("insert ?")
			}
			return err
		},
		"statement": func(_ driver.Conn, s driver.Stmt) error {
			if s == nil {
				return driver.ErrBadConn // not scripted for MySQL
			}
			_, err := s.(driver.StmtExecContext).ExecContext(ctx, named([]any{"x"}))
			return err
		},
	}
	ends := map[string]func(*wiretest.Session, bool) error{
		"closed": func(s *wiretest.Session, _ bool) error { return s.Close() },
		"reset":  func(s *wiretest.Session, _ bool) error { return s.Reset() },
	}
	if seesEnd {
		ends["closed with a message"] = func(s *wiretest.Session, isPostgres bool) error {
			if isPostgres {
				return s.Terminate()
			}
			return s.Evict()
		}
	}
	for endName, end := range ends {
		for callName, call := range calls {
			for _, isPostgres := range []bool{true, false} {
				name := map[bool]string{true: "lib/pq", false: "go-sql-driver"}[isPostgres] + "/" + endName + "/" + callName
				t.Run(name, func(t *testing.T) {
					var (
						d    socket.Dialer
						srv  *wiretest.Server
						conn driver.Conn
						sock *socket.Conn
						stmt driver.Stmt
						err  error
					)
					if isPostgres {
						srv = wiretest.Postgres(t, nil)
						conn, sock = open(t, srv, &d, "sslmode=disable")
						if stmt, err = conn.Prepare("insert $1"); err != nil {
							t.Fatal(err)
						}
					} else {
						srv = wiretest.MySQL(t, func(string) wiretest.Reply { return wiretest.Reply{Status: 2} })
						conn, sock = openMySQL(t, srv, &d)
					}
					before := srv.Messages()
					ses := srv.Next()
					if err := end(ses, isPostgres); err != nil {
						t.Fatal(err)
					}
					eventually(t, "Alive() = false", func() bool { return !sock.Alive() })
					sock.Begin()
					if err := call(conn, stmt); !errors.Is(err, driver.ErrBadConn) {
						t.Errorf("error %v, want driver.ErrBadConn", err)
					}
					if bytes, writes := sock.Written(); bytes != 0 || writes != 0 {
						t.Errorf("Written() = %d, %d; want nothing", bytes, writes)
					}
					<-ses.Closed()
					if got := srv.Messages(); !slices.Equal(got, before) {
						t.Errorf("the server got %q", got)
					}
				})
			}
		}
	}
}

func TestLibPQSettlesOnTheSecondDialOfSSLModePrefer(t *testing.T) {
	srv := wiretest.Postgres(t, nil) // refuses TLS
	var d socket.Dialer
	conn, sock := open(t, srv, &d, "sslmode=prefer")
	srv.Next()
	sock.Begin()
	if err := exec(context.Background(), conn, "insert"); err != nil {
		t.Fatal(err)
	}
	if _, writes := sock.Written(); writes != 1 {
		t.Errorf("%d Writes on the socket, want 1: it is not the connection's", writes)
	}
}

// A stopped server neither answers nor lets lib/pq's cancelling connection end.
func TestAbortFreesLibPQFromAHungServer(t *testing.T) {
	for name, call := range map[string]func(context.Context, driver.Conn, driver.Stmt) error{
		"conn": func(ctx context.Context, c driver.Conn, _ driver.Stmt) error { return exec(ctx, c, "hang") },
		"stmt": func(ctx context.Context, _ driver.Conn, s driver.Stmt) error {
			_, err := s.(driver.StmtExecContext).ExecContext(ctx, named([]any{"x"}))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			srv := wiretest.Postgres(t, func(m string) wiretest.Reply {
				return wiretest.Reply{Hang: m == "Q hang" || m == "B" || m == "cancel"}
			})
			var d socket.Dialer
			conn, sock := open(t, srv, &d, "sslmode=disable")
			stmt, err := conn.Prepare("hang $1")
			if err != nil {
				t.Fatal(err)
			}
			srv.Next()
			ctx, cancel := context.WithCancel(context.Background())
			errs := make(chan error, 1)
			go func() { errs <- call(ctx, conn, stmt) }()
			cancel()
			if side := srv.Next(); !side.Cancels {
				t.Fatal("the second connection is not for cancelling")
			}
			start := time.Now()
			sock.Abort(context.Cause(ctx))
			if err := <-errs; err == nil {
				t.Error("no error")
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("took %v after Abort", took)
			}
		})
	}
}

func TestGoSQLDriverChecksLivenessThroughTheSocket(t *testing.T) {
	srv := wiretest.MySQL(t, func(string) wiretest.Reply { return wiretest.Reply{Status: 2} })
	var d socket.Dialer
	conn, sock := openMySQL(t, srv, &d)
	reset := conn.(driver.SessionResetter).ResetSession
	if err := reset(context.Background()); err != nil {
		t.Errorf("ResetSession of a live connection: %v", err)
	}
	_ = srv.Next().Close()
	eventually(t, "Alive() = false", func() bool { return !sock.Alive() })
	if err := reset(context.Background()); err != driver.ErrBadConn {
		t.Errorf("ResetSession of a dead connection: %v; it has not seen the descriptor", err)
	}
}
