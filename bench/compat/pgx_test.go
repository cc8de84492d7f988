package compat_test

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// pgxDSN reaches the nodes through pgx, which dials by itself and knows nothing
// of us.
func pgxDSN(primary *replicatedtest.Node, replicas ...*replicatedtest.Node) string {
	dsn := "replicated://pgx?replicated.balance=round-robin&primary=" + url.QueryEscape(primary.DSN())
	for _, r := range replicas {
		dsn += "&replica=" + url.QueryEscape(r.DSN())
	}
	return dsn
}

func openPGX(t *testing.T, c *replicatedtest.Cluster) *sql.DB {
	t.Helper()
	return open(t, replicated.DriverName, pgxDSN(c.Primary(), c.Replicas()...))
}

func openSQLXOverPGX(t *testing.T, c *replicatedtest.Cluster) store {
	return sqlxStore{sqlx.NewDb(openPGX(t, c), "pgx"), c.Engine()}
}

// A transaction that is begun by text is known by what pgx says of its connection.
func TestPGXTransactionBegunByTextHoldsReadsOnThePrimary(t *testing.T) {
	c := sharedCluster(t, replicatedtest.Postgres)
	ctx := request(t)
	conn, err := openPGX(t, c).Conn(ctx)
	check(t, err)
	defer conn.Close()
	exec := func(query string) {
		t.Helper()
		_, err := conn.ExecContext(ctx, query)
		check(t, err)
	}
	read := func() (n int) {
		t.Helper()
		check(t, conn.QueryRowContext(ctx, "SELECT count(*) FROM pg_class WHERE oid = $1", 1259).Scan(&n))
		return n
	}

	l := beginLog(c)
	read()
	read()
	l.onReplicas(t, "SELECT FROM PG_CLASS")

	l = beginLog(c)
	exec("BEGIN")
	read()
	exec("SAVEPOINT a")
	read()
	exec("ROLLBACK TO a")
	read()
	exec("COMMIT")
	l.onPrimary(t, "SELECT FROM PG_CLASS")
	l.oneTransaction(t)

	// A failed transaction is one until it is rolled back.
	l = beginLog(c)
	exec("BEGIN")
	if _, err := conn.ExecContext(ctx, "SELECT 1/0"); err == nil {
		t.Error("a division by zero succeeded")
	}
	var n int
	if err := conn.QueryRowContext(ctx, "SELECT count(*) FROM pg_class").Scan(&n); stateOf(err) != "25P02" {
		t.Errorf("a read in a failed transaction: %v, want SQLSTATE 25P02", err)
	}
	exec("ROLLBACK")
	l.onPrimary(t, "ROLLBACK")
}

// stateOf returns the SQLSTATE of an error of pgx, or "".
func stateOf(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// The second node was promoted behind our back and would accept a write. What it
// refuses, it refuses because our connections to replicas are read-only. (With a
// tracker it would not be asked: its history is another by now.)
func TestPGXReplicaConnectionsAreReadOnly(t *testing.T) {
	c := replicatedtest.Start(t, replicatedtest.Postgres, replicatedtest.Options{Replicas: 1})
	primary, replica := c.Primary(), c.Replicas()[0]
	setUp := primary.DB(t)
	for _, query := range []string{
		"CREATE TABLE hits (n int)",
		"CREATE FUNCTION hit() RETURNS int LANGUAGE sql VOLATILE AS 'INSERT INTO hits VALUES (1) RETURNING n'",
		"CREATE VIEW hidden AS SELECT hit() AS n",
	} {
		_, err := setUp.ExecContext(t.Context(), query)
		check(t, err)
	}
	caughtUp(t, c)
	check(t, replica.Promote())

	db := open(t, replicated.DriverName, pgxDSN(primary, replica)+"&replicated.tracker=off")
	ctx := request(t)
	var n int
	check(t, db.QueryRowContext(ctx, "SELECT n FROM hidden").Scan(&n))

	refused := false
	for _, s := range replica.Statements() {
		refused = refused || s.User == replicatedtest.AppUser && s.Code == "25006"
	}
	if !refused {
		t.Errorf("the replica has not refused the write with SQLSTATE 25006; there ran:%s", lines(replica.Statements()))
	}
	if on := count(ctx, t, setUp); on != 1 {
		t.Errorf("the hidden write took effect %d times on the primary, want once", on)
	}
	if on := count(ctx, t, replica.DB(t)); on != 0 {
		t.Errorf("the hidden write took effect %d times on the replica", on)
	}
}

func count(ctx context.Context, t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	check(t, db.QueryRowContext(ctx, "SELECT count(*) FROM hits").Scan(&n))
	return n
}
