package dialect_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"
	"testing"

	"github.com/lib/pq"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/dialect"
	"github.com/sqlreplicated/replicated/internal/socket"
	"github.com/sqlreplicated/replicated/internal/socket/wiretest"
)

// TestLibPQSendsParseFirst holds what ParseWrites says, with a server that drops
// the connection in place of one answer.
func TestLibPQSendsParseFirst(t *testing.T) {
	d := dialect.For(classify.Postgres)
	args := []driver.NamedValue{{Ordinal: 1, Value: "x"}}
	exec := func(args []driver.NamedValue) func(driver.Conn) error {
		return func(c driver.Conn) error {
			_, err := c.(driver.ExecerContext).ExecContext(context.Background(), "insert", args)
			return err
		}
	}
	query := func(c driver.Conn) error {
		_, err := c.(driver.QueryerContext).QueryContext(context.Background(), "insert", args)
		return err
	}
	prepare := func(c driver.Conn) error {
		_, err := c.(driver.ConnPrepareContext).PrepareContext(context.Background(), "insert")
		return err
	}
	tests := []struct {
		name      string
		parameter string
		call      func(driver.Conn) error
		drop      string   // the message that is not answered
		got       []string // what the server has
		parsing   bool     // whether the Writes say that nothing has run
	}{
		{name: "exec, Parse lost", call: exec(args), drop: "P insert", got: []string{"P insert"}, parsing: true},
		{name: "query, Parse lost", call: query, drop: "P insert", got: []string{"P insert"}, parsing: true},
		{name: "prepare lost", call: prepare, drop: "P insert", got: []string{"P insert"}, parsing: true},
		{name: "exec, Bind lost", call: exec(args), drop: "B", got: []string{"P insert", "B"}},
		{name: "query, Bind lost", call: query, drop: "B", got: []string{"P insert", "B"}},
		// These have one Write too, which ParseWrites does not cover.
		{name: "no arguments", call: exec(nil), drop: "Q insert", got: []string{"Q insert"}, parsing: true},
		{name: "binary_parameters", parameter: "&binary_parameters=yes", call: exec(args), drop: "P insert", got: []string{"P insert"}, parsing: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			srv := wiretest.Postgres(t, func(m string) wiretest.Reply { return wiretest.Reply{Drop: m == tt.drop} })
			c, err := pq.NewConnector("postgres://u:p@" + srv.Addr + "/d?sslmode=disable" + tt.parameter)
			if err != nil {
				t.Fatal(err)
			}
			var dialer socket.Dialer
			c.Dialer(&dialer)
			conn, err := c.Connect(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			sock := dialer.Socket()
			sock.Begin()
			err = tt.call(conn)
			// This is what BadConnAfterSend says.
			if !errors.Is(err, driver.ErrBadConn) || !d.BadConnAfterSend {
				t.Errorf("error %v, want driver.ErrBadConn although bytes were sent", err)
			}
			bytes, writes := sock.Written()
			if bytes == 0 || (writes <= d.ParseWrites) != tt.parsing {
				t.Errorf("Written() = %d, %d with ParseWrites %d", bytes, writes, d.ParseWrites)
			}
			if got := srv.Messages(); !slices.Equal(got, tt.got) {
				t.Errorf("the server got %q, want %q", got, tt.got)
			}
		})
	}
}
