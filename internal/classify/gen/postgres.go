package main

import (
	"database/sql"
	"fmt"
	"strings"

	_ "github.com/lib/pq"
)

var postgresSource = source{
	on:       "onPostgres",
	read:     readPostgres,
	file:     "functions_postgres_catalog.go",
	variable: "postgresCatalogGroups",
	sections: []string{
		"aggregates and window functions (pg_proc: prokind a, w)",
		"types, which are callable as casts (pg_type)",
		"immutable or stable in every overload (pg_proc: provolatile i, s)",
	},
}

// postgresFunctions are the built-in functions that a query may call, one row
// a name. A name counts as volatile if one of its overloads is, internal ones
// included. Left out are those that no query can or should call in any
// overload: with pseudo-types of the C level (internal, cstring, handlers,
// triggers), and validators, for which being called is the effect.
const postgresFunctions = `
SELECT p.proname, bool_or(p.provolatile = 'v'), bool_and(p.prokind IN ('a', 'w'))
FROM pg_catalog.pg_proc p
WHERE p.pronamespace = 'pg_catalog'::regnamespace
  AND p.oid < 16384
  AND p.prokind IN ('f', 'a', 'w')
  AND p.proname ~ '^[a-z][a-z0-9_]*$'
GROUP BY p.proname
HAVING NOT bool_and(
       p.proname ~ '_validator$'
    OR EXISTS (SELECT FROM pg_catalog.pg_type t
               WHERE t.oid = ANY (p.proargtypes || p.prorettype)
                 AND t.typtype = 'p'
                 AND t.typname IN ('internal', 'cstring', 'trigger', 'event_trigger',
                                   'language_handler', 'fdw_handler', 'index_am_handler',
                                   'table_am_handler', 'tsm_handler', 'pg_ddl_command')))
ORDER BY 1`

const postgresTypes = `
SELECT typname FROM pg_catalog.pg_type
WHERE typnamespace = 'pg_catalog'::regnamespace
  AND oid < 16384
  AND typtype IN ('b', 'r', 'm')
  AND typname ~ '^[a-z][a-z0-9_]*$'
ORDER BY 1`

func readPostgres(dsn string) (catalog, error) {
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		return catalog{}, err
	}
	defer db.Close()

	c := catalog{harmless: make([][]string, 3)}
	var version string
	if err := db.QueryRow("SHOW server_version").Scan(&version); err != nil {
		return catalog{}, err
	}
	number, _, _ := strings.Cut(version, " ") // "15.18 (Debian 15.18-0)"
	c.version = "PostgreSQL " + number

	rows, err := db.Query(postgresFunctions)
	if err != nil {
		return catalog{}, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var volatile, aggregate bool
		if err := rows.Scan(&name, &volatile, &aggregate); err != nil {
			return catalog{}, err
		}
		switch {
		case volatile:
			c.unjudged = append(c.unjudged, name)
		case aggregate:
			c.harmless[0] = append(c.harmless[0], name)
		default:
			c.harmless[2] = append(c.harmless[2], name)
		}
	}
	if err := rows.Err(); err != nil {
		return catalog{}, err
	}
	c.harmless[1], err = column(db, postgresTypes)
	return c, err
}

// column runs a query of one column of texts.
func column(db *sql.DB, query string) ([]string, error) {
	rows, err := db.Query(query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var values []string
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			return nil, fmt.Errorf("scan: %w", err)
		}
		values = append(values, v)
	}
	return values, rows.Err()
}
