package replicatedtest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"time"
)

// withConn opens a connection of the package's own account, runs f with it and
// closes it. A connection each time costs some milliseconds and spares thought
// about servers that have been killed, stopped or promoted since.
//
// An error after the end of ctx tells that first: drivers speak of bad
// connections then.
func (n *Node) withConn(ctx context.Context, f func(context.Context, *sql.Conn) error) error {
	return n.withConnTo(ctx, "", f)
}

// withConnTo is withConn for a database other than the one that every server
// has.
func (n *Node) withConnTo(ctx context.Context, database string, f func(context.Context, *sql.Conn) error) (err error) {
	defer func() {
		if err != nil && ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
			err = fmt.Errorf("%w (%v)", ctx.Err(), err)
		}
	}()
	connector, err := n.c.db.connector(n.Addr(), login{harnessUser, harnessPassword, database}, boundDialer{ctx})
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	var conn *sql.Conn
	err = poll(ctx, 2*time.Millisecond, func() (bool, error) {
		// The place that is kept for a superuser is taken for a moment by
		// whoever is being refused.
		conn, err = db.Conn(ctx)
		return err == nil, ignore(err, n.c.db.tooMany)
	})
	if err != nil {
		return err
	}
	defer conn.Close()
	return f(ctx, conn)
}

// exec runs statements one after the other on one connection.
func (n *Node) exec(ctx context.Context, statements ...string) error {
	return n.withConn(ctx, func(ctx context.Context, conn *sql.Conn) error {
		for _, text := range statements {
			if _, err := conn.ExecContext(ctx, text); err != nil {
				return err
			}
		}
		return nil
	})
}

// login is who connects to what. No database means one that there always is.
type login struct{ user, password, database string }

// connectorMaker is the part of a database that withConn needs.
type connectorMaker interface {
	connector(addr string, who login, d boundDialer) (driver.Connector, error)
}

// connectApp opens a connection of AppUser, on which nothing is executed, so
// that the statement log does not show it. It ends with ctx at the latest.
func (n *Node) connectApp(ctx context.Context) (driver.Conn, error) {
	connector, err := n.c.db.connector(n.Addr(), login{AppUser, AppPassword, Database}, boundDialer{ctx})
	if err != nil {
		return nil, err
	}
	return connector.Connect(ctx)
}

// boundDialer makes connections that end with the context, whatever the server
// does: lib/pq does not heed a context while a server hangs.
type boundDialer struct{ ctx context.Context }

// DialContext is for lib/pq and go-sql-driver alike.
func (d boundDialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	bound := &boundConn{Conn: conn}
	bound.stop = context.AfterFunc(d.ctx, func() { _ = conn.Close() })
	return bound, nil
}

// Dial and DialTimeout complete the dialer that lib/pq asks for.
func (d boundDialer) Dial(network, addr string) (net.Conn, error) {
	return d.DialContext(d.ctx, network, addr)
}

func (d boundDialer) DialTimeout(network, addr string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(d.ctx, timeout)
	defer cancel()
	return d.DialContext(ctx, network, addr)
}

type boundConn struct {
	net.Conn
	stop func() bool
}

func (c *boundConn) Close() error {
	c.stop()
	return c.Conn.Close()
}
