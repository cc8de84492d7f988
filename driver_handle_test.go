package replicated_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"
	"github.com/sqlreplicated/replicated/internal/faketime"
)

const deadDSN = "postgres://u:secret@127.0.0.1:1,127.0.0.1:2/d?sslmode=disable"

func TestClusterOfOpen(t *testing.T) {
	for _, name := range []string{replicated.DriverName, replicated.DriverNamePostgres} {
		db, err := sql.Open(name, deadDSN)
		if err != nil {
			t.Fatal(err)
		}
		c, err := replicated.ClusterOf(t.Context(), db)
		if err != nil {
			t.Fatal(err) // without a server: no connection is needed
		}
		if n := len(c.Stats().Nodes); n != 2 {
			t.Errorf("%s: %d nodes", name, n)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestClusterOfOpenDB(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		connector := f.connector()
		db := sql.OpenDB(connector)
		defer db.Close()
		c, err := replicated.ClusterOf(t.Context(), db)
		if err != nil || c == nil || c != connector.Cluster() {
			t.Errorf("ClusterOf = %p, %v, want %p", c, err, connector.Cluster())
		}
	})
}

// wrapper is a driver around ours, as otelsql is.
type wrapper struct {
	driver.Connector
	hides bool
}

func (w wrapper) Driver() driver.Driver { return fakedb.NewDriver(fakedb.Full) }

func (w wrapper) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := w.Connector.Connect(ctx)
	if w.hides {
		return struct{ driver.Conn }{c}, err
	}
	return wrappedConn{wrappedConn{c}}, err
}

type wrappedConn struct{ driver.Conn }

func (w wrappedConn) Raw() driver.Conn { return w.Conn }

func TestClusterOfWrappedHandle(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		connector := f.connector()
		defer connector.Close()
		db := sql.OpenDB(wrapper{Connector: connector})
		defer db.Close()
		c, err := replicated.ClusterOf(t.Context(), db)
		if err != nil || c != connector.Cluster() {
			t.Errorf("ClusterOf = %p, %v, want %p", c, err, connector.Cluster())
		}
	})
}

func TestClusterOfForeignHandle(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		connector := f.connector()
		defer connector.Close()
		hidden := sql.OpenDB(wrapper{connector, true})
		defer hidden.Close()
		foreign := sql.OpenDB(f.primary.Connector(fakedb.Full))
		defer foreign.Close()
		for _, db := range []*sql.DB{hidden, foreign} {
			if c, err := replicated.ClusterOf(t.Context(), db); err == nil || c != nil {
				t.Errorf("ClusterOf = %p, %v, want an error", c, err)
			}
		}
	})
}

// Wrappers open with the empty DSN to get at the driver.
func TestEmptyDSN(t *testing.T) {
	for name, dsn := range map[string]string{
		replicated.DriverName:         deadDSN,
		replicated.DriverNamePostgres: deadDSN,
		replicated.DriverNameMySQL:    "u:secret@tcp(127.0.0.1:1,127.0.0.1:2)/d",
	} {
		db, err := sql.Open(name, "")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := db.PingContext(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "replicated: ") {
			t.Errorf("%s: Ping: %v", name, err)
		}
		if c, err := replicated.ClusterOf(t.Context(), db); err == nil || c != nil {
			t.Errorf("%s: ClusterOf = %p, %v, want an error: there is no cluster", name, c, err)
		}
		real, err := db.Driver().(driver.DriverContext).OpenConnector(dsn)
		if err != nil {
			t.Errorf("%s: its driver opens nothing else: %v", name, err)
		} else if err := real.(*replicated.Connector).Close(); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Errorf("%s: Close: %v", name, err)
		}
	}
}

// A handle's driver opens further clusters, also after its own was closed.
func TestHandleOpensOthersAfterItsClusterWasClosed(t *testing.T) {
	db, err := sql.Open(replicated.DriverNamePostgres, deadDSN)
	if err != nil {
		t.Fatal(err)
	}
	handle := db.Driver().(driver.DriverContext)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	connector, err := handle.OpenConnector(deadDSN)
	if err != nil {
		t.Fatal(err)
	}
	other := sql.OpenDB(connector)
	defer other.Close()
	conn, err := other.Conn(t.Context()) // dials nothing
	if err != nil {
		t.Fatalf("the new cluster is as closed as the old one: %v", err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

func TestConnectAfterClose(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		connector := f.connector()
		if err := connector.Close(); err != nil {
			t.Fatal(err)
		}
		if err := connector.Close(); err != nil {
			t.Errorf("closed again: %v", err)
		}
		if _, err := connector.Connect(t.Context()); err == nil || isBadConn(err) {
			t.Errorf("Connect: %v", err)
		}
	})
}
