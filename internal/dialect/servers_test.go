package dialect_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/dialect"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// engines are the servers that the tests run on, and what they are.
var engines = map[replicatedtest.Engine]classify.Dialect{
	replicatedtest.Postgres: classify.Postgres,
	replicatedtest.MariaDB:  classify.MariaDB,
	replicatedtest.MySQL:    classify.MySQL,
}

// eachEngine runs a test on a cluster of each kind with one replica.
func eachEngine(t *testing.T, test func(t *testing.T, c *replicatedtest.Cluster, d *dialect.Dialect)) {
	for engine, kind := range engines {
		t.Run(engine.String(), func(t *testing.T) {
			c := replicatedtest.Start(t, engine, replicatedtest.Options{Replicas: 1, NoStatementLog: true})
			test(t, c, dialect.For(kind))
		})
	}
}

func testContext(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	tb.Cleanup(cancel)
	return ctx
}

// open connects the bare driver.
func open(tb testing.TB, driverName, dsn string) driver.Conn {
	tb.Helper()
	conn, err := openError(driverName, dsn)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	return conn
}

func openError(driverName, dsn string) (driver.Conn, error) {
	db, err := sql.Open(driverName, dsn)
	if err != nil {
		return nil, err
	}
	drv := db.Driver()
	_ = db.Close()
	return drv.Open(dsn)
}

// run executes a text.
func run(ctx context.Context, conn driver.Conn, text string) error {
	_, err := conn.(driver.ExecerContext).ExecContext(ctx, text, nil)
	return err
}

func mustRun(tb testing.TB, conn driver.Conn, texts ...string) {
	tb.Helper()
	for _, text := range texts {
		if err := run(testContext(tb), conn, text); err != nil {
			tb.Fatalf("%s: %v", text, err)
		}
	}
}

// ask returns the first value of a query's first row, as text.
func ask(tb testing.TB, conn driver.Conn, text string) string {
	tb.Helper()
	row, err := dialect.QueryRow(testContext(tb), conn, text, 1)
	if err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return row[0]
}
