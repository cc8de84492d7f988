package main

import (
	"database/sql"
	"fmt"
	"strings"

	_ "github.com/go-sql-driver/mysql"
)

// mariadbSource has no file: information_schema.SQL_FUNCTIONS does not tell
// what a function does, so the natives that functions_mysql.go lacks are only
// reported, for a human to put into a group.
var mariadbSource = source{
	on:   "onMariaDB",
	read: readMariaDB,
}

func readMariaDB(dsn string) (catalog, error) {
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		return catalog{}, err
	}
	defer db.Close()

	var version string
	if err := db.QueryRow("SELECT VERSION()").Scan(&version); err != nil {
		return catalog{}, err
	}
	number, rest, _ := strings.Cut(version, "-")
	if !strings.HasPrefix(rest, "MariaDB") {
		return catalog{}, fmt.Errorf("%s is not a MariaDB", version)
	}
	names, err := column(db, "SELECT LOWER(`FUNCTION`) FROM information_schema.SQL_FUNCTIONS ORDER BY 1")
	if err != nil {
		return catalog{}, err
	}
	return catalog{version: "MariaDB " + number, unjudged: names}, nil
}
