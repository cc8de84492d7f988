package fakedb

import (
	"context"
	"database/sql/driver"
	"fmt"
)

// Connector opens connections of one shape to one server.
type Connector struct {
	server *Server
	shape  Shape
}

// Connector returns a connector to s.
func (s *Server) Connector(shape Shape) *Connector { return &Connector{s, shape} }

// Connect implements driver.Connector.
func (cn *Connector) Connect(ctx context.Context) (driver.Conn, error) {
	return cn.server.connect(ctx, cn.shape)
}

// Driver implements driver.Connector.
func (cn *Connector) Driver() driver.Driver { return NewDriver(cn.shape, cn.server) }

func (s *Server) connect(ctx context.Context, shape Shape) (driver.Conn, error) {
	call := &Call{Op: OpConnect, Tx: 'I'}
	err := ctx.Err()
	if err == nil {
		err = s.admit(ctx, call)
	}
	if err == nil {
		s.mu.Lock()
		down, decide := s.down, s.onConnect
		s.mu.Unlock()
		err = down
		if err == nil && decide != nil {
			err = decide(ctx)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	call.Err = err
	if err != nil {
		return nil, err
	}
	s.lastConn++
	call.Conn = s.lastConn
	c := &core{server: s, shape: shape, id: s.lastConn, tx: 'I'}
	s.conns[c] = struct{}{}
	return shape.conn(c), nil
}

// Driver opens servers by name: what sql.Register takes, the DSN being the name
// of a server. It has no OpenConnector, so a DSN is only looked at when a
// connection is opened, as with lib/pq.
type Driver struct {
	shape   Shape
	servers map[string]*Server
}

// NewDriver returns a driver for the servers, by their names.
func NewDriver(shape Shape, servers ...*Server) *Driver {
	d := &Driver{shape, make(map[string]*Server, len(servers))}
	for _, s := range servers {
		d.servers[s.name] = s
	}
	return d
}

// Open implements driver.Driver.
func (d *Driver) Open(name string) (driver.Conn, error) {
	s := d.servers[name]
	if s == nil {
		return nil, fmt.Errorf("fakedb: no server %q", name)
	}
	return s.connect(context.Background(), d.shape)
}
