package replicated

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
)

// The driver names. All take every DSN form; the prefixed ones are for libraries
// that read the dialect off the name, and for processes that use both databases:
// with them the native grammar need not be guessed.
const (
	DriverName         = "replicated"
	DriverNameMySQL    = "mysql-replicated"
	DriverNamePostgres = "postgres-replicated"
)

func init() {
	sql.Register(DriverName, &Driver{})
	sql.Register(DriverNameMySQL, &Driver{grammar: "mysql"})
	sql.Register(DriverNamePostgres, &Driver{grammar: "postgres"})
}

// Driver implements [driver.Driver] and [driver.DriverContext]. The zero Driver
// is what the name "replicated" stands for.
type Driver struct {
	grammar   string
	connector *Connector // set on the handle that DB.Driver returns
}

var (
	_ driver.Driver        = (*Driver)(nil)
	_ driver.DriverContext = (*Driver)(nil)
	_ driver.Connector     = (*Connector)(nil)
	_ io.Closer            = (*Connector)(nil)
)

// Open implements [driver.Driver].
//
// Deprecated: database/sql calls OpenConnector.
func (d *Driver) Open(dsn string) (driver.Conn, error) {
	c, err := d.OpenConnector(dsn)
	if err != nil {
		return nil, err
	}
	return c.Connect(context.Background())
}

// OpenConnector implements [driver.DriverContext]. The empty DSN is no error
// here but at the first Connect: wrappers open with it to get at the driver.
func (d *Driver) OpenConnector(dsn string) (driver.Connector, error) {
	cfg, err := parse(dsn, d.grammar)
	if errors.Is(err, errEmptyDSN) {
		return &Connector{err: err, grammar: d.grammar}, nil
	}
	if err != nil {
		return nil, err
	}
	c, err := NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	c.grammar = d.grammar
	return c, nil
}

// Connector makes connections to one cluster. Hand it to [sql.OpenDB].
type Connector struct {
	cluster *Cluster
	grammar string
	err     error // what Connect answers, if there is no cluster
}

// NewConnector checks a configuration and fills in its defaults. Nothing is
// dialled and nothing runs before the first connection is asked for. The
// configuration is copied; later changes to it have no effect.
func NewConnector(cfg Config) (*Connector, error) {
	s, err := cfg.normalize()
	if err != nil {
		return nil, err
	}
	return &Connector{cluster: newCluster(s)}, nil
}

// Connect implements [driver.Connector]. It dials nothing: a Conn opens its
// connections when a statement needs them, so that a dead primary does not stop
// reads that replicas can serve, nor a dead replica anything.
func (c *Connector) Connect(context.Context) (driver.Conn, error) {
	if c.err != nil {
		return nil, c.err
	}
	if err := c.cluster.attach(); err != nil {
		return nil, err
	}
	if !c.cluster.tracks() && !c.cluster.told.Swap(true) { // no sync.Once: the observer may connect
		c.cluster.notice(Notice{Kind: NoticeLagUnmeasured})
	}
	return &Conn{cluster: c.cluster}, nil
}

// Driver implements [driver.Connector]. The result is a handle by which
// [ClusterOf] finds the cluster; as a driver it opens further, independent ones.
func (c *Connector) Driver() driver.Driver {
	return &Driver{grammar: c.grammar, connector: c}
}

// Cluster returns the cluster that the connector connects to. It is nil for the
// empty DSN.
func (c *Connector) Cluster() *Cluster { return c.cluster }

// Close implements [io.Closer]: [sql.DB.Close] calls it. It stops the background
// work and waits for it, and closes the idle connections to replicas.
func (c *Connector) Close() error {
	if c.cluster == nil {
		return nil
	}
	return c.cluster.close()
}
