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
func (n *Node) withConn(ctx context.Context, f func(context.Context, *sql.Conn) error) (err error) {
	defer func() {
		if err != nil && ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
			err = fmt.Errorf("%w (%v)", ctx.Err(), err)
		}
	}()
	connector, err := n.c.db.connector(n.Addr(), boundDialer{ctx})
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	conn, err := db.Conn(ctx)
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

// connectorMaker is the part of a database that withConn needs.
type connectorMaker interface {
	connector(addr string, d boundDialer) (driver.Connector, error)
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
