package classify

import "strings"

// Dialect is the language in which a text is read. The zero value is Generic.
type Dialect uint8

const (
	// Generic is the conservative common ground for databases that are not
	// known: a text is a read only if it is one under every lexing and every
	// table that this package has.
	Generic Dialect = iota
	// Postgres is PostgreSQL 13 to 18.
	Postgres
	// MySQL is MySQL 5.6 to 9.
	MySQL
	// MariaDB is MariaDB 10.5 to 12.
	MariaDB
	// AnyMySQL is MySQL or MariaDB, not known which: the verdict holds on both.
	AnyMySQL
)

var dialectNames = [...]string{
	Generic:  "generic",
	Postgres: "postgres",
	MySQL:    "mysql",
	MariaDB:  "mariadb",
	AnyMySQL: "anymysql",
}

// String returns the name that ParseDialect reads, or "invalid".
func (d Dialect) String() string {
	if int(d) < len(dialectNames) {
		return dialectNames[d]
	}
	return "invalid"
}

// ParseDialect reads a dialect's name, in any case. It also knows the usual
// other names ("postgresql", "pgx", "pg"). ok is false for anything else,
// and the dialect is then Generic.
func ParseDialect(name string) (d Dialect, ok bool) {
	for i, n := range dialectNames {
		if strings.EqualFold(n, name) {
			return Dialect(i), true
		}
	}
	switch strings.ToLower(name) {
	case "postgresql", "pg", "pgx":
		return Postgres, true
	}
	return Generic, false
}
