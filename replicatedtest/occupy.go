package replicatedtest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"sync"
	"time"
)

// Occupy opens idle connections of [AppUser] until the server refuses more (see
// [Options.MaxConnections]), and leaves as many free as reserve says. A
// connection that somebody else gives back is taken within some 10 ms, until
// release is called, or the server ends. release closes them all and waits until
// the server takes a connection again; further calls do nothing.
//
// Reserved for this package and superusers remain those that the server keeps
// for them. On MariaDB and MySQL a replica that reconnects meanwhile is refused
// like anybody.
func (n *Node) Occupy(reserve int) (release func(), err error) {
	if reserve < 0 {
		return nil, n.wrap("occupy", fmt.Errorf("negative reserve %d", reserve))
	}
	ctx, stop := context.WithCancel(context.Background())
	o := &occupation{node: n, reserve: reserve}
	begun := make(chan error, 1)
	var grabbing sync.WaitGroup
	grabbing.Go(func() {
		defer o.leave(0)
		// The one superuser's connection that MySQL takes beyond its limit stays
		// free for others if this one is there before.
		err := n.withConn(ctx, func(ctx context.Context, conn *sql.Conn) error {
			err := o.begin(ctx, conn)
			begun <- err
			if err != nil {
				return err
			}
			return o.keep(ctx, conn)
		})
		if err != nil {
			select {
			case begun <- err:
			default: // told already, or the end of the server
			}
		}
	})
	release = sync.OnceFunc(func() {
		stop()
		grabbing.Wait()
		n.waitFree()
		n.c.logf("%s: connections released", n.name)
	})
	if err := <-begun; err != nil {
		release()
		return nil, n.wrap("occupy", err)
	}
	n.c.logf("%s: all connections occupied but %d", n.name, reserve)
	return release, nil
}

// occupation is what one Occupy holds. It belongs to one goroutine.
type occupation struct {
	node    *Node
	reserve int
	held    []driver.Conn
	most    int // how many connections AppUser had when the server was full
}

// begin fills the server and leaves the reserve. Connections end with ctx.
func (o *occupation) begin(ctx context.Context, conn *sql.Conn) error {
	for full := false; !full; {
		var err error
		if full, err = o.grab(ctx); err != nil {
			return err
		}
	}
	db := o.node.c.db
	var err error
	if o.most, err = db.connections(ctx, conn); err != nil {
		return err
	}
	if o.reserve > len(o.held) {
		return fmt.Errorf("%d connections are to stay free, and the server takes %d", o.reserve, len(o.held))
	}
	o.leave(len(o.held) - o.reserve)
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	return poll(ctx, time.Millisecond, func() (bool, error) {
		count, err := db.connections(ctx, conn)
		return count <= o.most-o.reserve, err
	})
}

// keep takes what others give back, until ctx ends.
func (o *occupation) keep(ctx context.Context, conn *sql.Conn) error {
	return poll(ctx, 10*time.Millisecond, func() (bool, error) {
		count, err := o.node.c.db.connections(ctx, conn)
		for full := false; err == nil && !full && count < o.most-o.reserve; count++ {
			full, err = o.grab(ctx)
		}
		return false, err
	})
}

// grab opens a connection, or reports that the server is full.
func (o *occupation) grab(ctx context.Context) (full bool, err error) {
	conn, err := o.node.connectApp(ctx)
	if err != nil {
		tooMany := o.node.c.db.tooMany
		return tooMany(err), ignore(err, tooMany)
	}
	o.held = append(o.held, conn)
	return false, nil
}

// ignore returns the error unless it is of the kind.
func ignore(err error, kind func(error) bool) error {
	if kind(err) {
		return nil
	}
	return err
}

// leave closes all connections but n.
func (o *occupation) leave(n int) {
	for _, conn := range o.held[n:] {
		_ = conn.Close()
	}
	o.held = o.held[:n]
}

// waitFree waits until the server, if it runs, takes a connection.
func (n *Node) waitFree() {
	ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
	defer cancel()
	_ = poll(ctx, time.Millisecond, func() (bool, error) {
		conn, err := n.connectApp(ctx)
		if err != nil {
			return false, ignore(err, n.c.db.tooMany)
		}
		return true, conn.Close()
	})
}
