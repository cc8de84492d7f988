package replicated_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/sqlreplicated/replicated"
)

// A program that knows nothing of replicas: its writes run on the primary, its
// reads on a replica, and a read after its write on the primary, until the
// replicas can be trusted to have it.
func Example() {
	db, primary, replica := bookshop("example")
	defer db.Close()

	replica.ExpectQuery("SELECT stock FROM books").WillReturnRows(sqlmock.NewRows([]string{"stock"}).AddRow(3))
	primary.ExpectExec("UPDATE books").WillReturnResult(sqlmock.NewResult(0, 1))
	primary.ExpectQuery("SELECT stock FROM books").WillReturnRows(sqlmock.NewRows([]string{"stock"}).AddRow(2))

	ctx := context.Background()
	stock := func() (n int) {
		if err := db.QueryRowContext(ctx, "SELECT stock FROM books WHERE id = 1").Scan(&n); err != nil {
			log.Fatal(err)
		}
		return n
	}
	fmt.Println("before:", stock())
	if _, err := db.ExecContext(ctx, "UPDATE books SET stock = stock - 1 WHERE id = 1"); err != nil {
		log.Fatal(err)
	}
	fmt.Println("after:", stock())
	fmt.Println(primary.ExpectationsWereMet(), replica.ExpectationsWereMet())
	// Output:
	// before: 3
	// after: 2
	// <nil> <nil>
}

// A session keeps one user's reads on the primary after his write, and nobody
// else's.
func ExampleWithSession() {
	db, primary, replica := bookshop("session")
	defer db.Close()

	one := func() *sqlmock.Rows { return sqlmock.NewRows([]string{"n"}).AddRow(1) }
	primary.ExpectExec("INSERT INTO orders").WillReturnResult(sqlmock.NewResult(1, 1))
	primary.ExpectQuery("SELECT count").WillReturnRows(one())
	replica.ExpectQuery("SELECT count").WillReturnRows(one())

	anna, session := replicated.WithSession(context.Background())
	ben, _ := replicated.WithSession(context.Background())
	if _, err := db.ExecContext(anna, "INSERT INTO orders (book) VALUES (1)"); err != nil {
		log.Fatal(err)
	}
	var n int
	for _, reader := range []context.Context{anna, ben} {
		if err := db.QueryRowContext(reader, "SELECT count(*) FROM orders").Scan(&n); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("wrote:", session.Wrote())
	fmt.Println(primary.ExpectationsWereMet(), replica.ExpectationsWereMet())
	// Output:
	// wrote: true
	// <nil> <nil>
}

// Code that must not write says so; a statement that might is stopped before it
// leaves the process.
func ExampleWithReadOnly() {
	db, _, _ := bookshop("read-only")
	defer db.Close()

	ctx := replicated.WithReadOnly(context.Background())
	_, err := db.ExecContext(ctx, "DELETE FROM orders")
	fmt.Println(errors.Is(err, replicated.ErrReadOnly))
	// Output: true
}

// An observer sees where each statement went, and why. It is told no SQL text.
func ExampleObserver() {
	_, _, replica := mocks("observer")
	replica.ExpectQuery("SELECT").WillReturnRows(sqlmock.NewRows([]string{"n"}).AddRow(1))
	cfg, err := replicated.ParseDSN("replicated://sqlmock?primary=observer-primary&replica=observer-replica")
	if err != nil {
		log.Fatal(err)
	}
	cfg.Observe = &replicated.Observer{Routed: func(e replicated.RouteEvent) {
		fmt.Println(e.Keyword, "on the", e.Role, "because:", e.Reason)
	}}
	connector, err := replicated.NewConnector(cfg)
	if err != nil {
		log.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	var n int
	if err := db.QueryRowContext(context.Background(), "SELECT count(*) FROM orders").Scan(&n); err != nil {
		log.Fatal(err)
	}
	// Output: SELECT on the replica because: read
}

// bookshop opens a handle on a cluster of two mocks.
func bookshop(name string) (db *sql.DB, primary, replica sqlmock.Sqlmock) {
	_, primary, replica = mocks(name)
	db, err := sql.Open("replicated", fmt.Sprintf("replicated://sqlmock?primary=%[1]s-primary&replica=%[1]s-replica&replicated.cluster=%[1]s", name))
	if err != nil {
		log.Fatal(err)
	}
	return db, primary, replica
}

func mocks(name string) (_ *sql.DB, primary, replica sqlmock.Sqlmock) {
	p, primary, err := sqlmock.NewWithDSN(name + "-primary")
	if err != nil {
		log.Fatal(err)
	}
	_, replica, err = sqlmock.NewWithDSN(name + "-replica")
	if err != nil {
		log.Fatal(err)
	}
	return p, primary, replica
}
