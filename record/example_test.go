package record_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"log"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/record"
)

// Under reads=shadow the primary runs everything, and the record tells which of it a
// replica would have served.
func Example() {
	_, primary, err := sqlmock.NewWithDSN("record-primary")
	if err != nil {
		log.Fatal(err)
	}
	if _, _, err := sqlmock.NewWithDSN("record-replica"); err != nil {
		log.Fatal(err)
	}
	cfg, err := replicated.ParseDSN("replicated://sqlmock?primary=record-primary&replica=record-replica&replicated.reads=shadow&replicated.cluster=record")
	if err != nil {
		log.Fatal(err)
	}
	var file bytes.Buffer // in earnest a file opened with os.O_APPEND
	rec := record.New(&file, record.Options{})
	cfg.Observe = rec.Observer(nil)
	connector, err := replicated.NewConnector(cfg)
	if err != nil {
		log.Fatal(err)
	}
	db := sql.OpenDB(connector)

	stock := sqlmock.NewRows([]string{"stock"}).AddRow(3)
	primary.ExpectQuery("SELECT stock FROM books").WillReturnRows(stock)
	primary.ExpectExec("UPDATE books").WillReturnResult(sqlmock.NewResult(0, 1))
	primary.ExpectQuery("SELECT stock FROM books").WillReturnRows(stock)

	read := func(ctx context.Context) {
		rows, err := db.QueryContext(ctx, "SELECT stock FROM books WHERE id = ?", 1)
		if err != nil {
			log.Fatal(err)
		}
		_ = rows.Close()
	}
	read(replicated.WithCaller(context.Background(), "GET /books/{id}"))
	ctx, _ := replicated.WithSession(replicated.WithCaller(context.Background(), "POST /orders"))
	if _, err := db.ExecContext(ctx, "UPDATE books SET stock = stock - 1 WHERE id = ?", 1); err != nil {
		log.Fatal(err)
	}
	read(ctx)

	_ = db.Close()
	if err := rec.Close(); err != nil {
		log.Fatal(err)
	}
	if _, err := record.Read(&file, func(l *record.Line) error {
		if l.Class != "" {
			fmt.Printf("%s: %d %s on the %s, %s\n", l.Caller, l.N, l.Keyword, l.Role, l.Reason)
		}
		return nil
	}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// GET /books/{id}: 1 SELECT on the primary, shadow
	// POST /orders: 1 SELECT on the primary, session-write
	// POST /orders: 1 UPDATE on the primary, write
}
