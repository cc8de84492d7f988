package demo

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

// engine is a kind of servers that the demo can start.
type engine struct {
	flag  string // as -engine has it
	name  string
	start func(context.Context) (servers, error)
}

// servers is a running primary with two replicas.
type servers interface {
	// title is what they are, with the version.
	title() string
	// note says what is not as with real servers; nothing if nothing is.
	note() string
	// word is how the figures that the servers give are introduced, and logs is what
	// their statement logs are called.
	word() string
	logs() string
	// bank is the application in the servers' SQL.
	bank() bank
	// prepare runs the statements on the primary, waits until the replicas have
	// them, and keeps the replicas behind by the lag from then on.
	prepare(ctx context.Context, statements []string, lag time.Duration) error
	// keys are the settings that a handle on the servers needs.
	keys() []string
	// dsn is what the driver is opened with; shown is the same without password
	// and keys, and separator what stands between it and the first key.
	dsn(keys ...string) string
	shown() string
	separator() string
	// nodes are the servers, the primary first.
	nodes() []server
	// close stops them and removes their files.
	close() error
}

// server is one of them.
type server interface {
	// bare opens a handle on this server alone, without the replicated driver.
	bare() (*sql.DB, error)
	// kill ends it as a crash would; start brings it back in its role.
	kill() error
	start() error
	// watch begins to read the server's own statement log. The function that it
	// returns gives what the server has been asked to run since.
	watch() func() []string
	// connections is how many clients the server counts.
	connections() (int, error)
}

func engines() []engine {
	return []engine{
		{flag: "postgres", name: "PostgreSQL", start: func(ctx context.Context) (servers, error) { return startReal(ctx, replicatedtest.Postgres) }},
		{flag: "mariadb", name: "MariaDB", start: func(ctx context.Context) (servers, error) { return startReal(ctx, replicatedtest.MariaDB) }},
		{flag: "sqlite", name: "SQLite", start: startSQLite},
	}
}

// enginesFor returns the engine of the name, or, for the empty name, all in the
// order in which they are to be tried.
func enginesFor(name string) ([]engine, error) {
	all := engines()
	if name == "" {
		return all, nil
	}
	for _, e := range all {
		if e.flag == name {
			return []engine{e}, nil
		}
	}
	return nil, fmt.Errorf("-engine %q: it is one of postgres, mariadb, sqlite", name)
}
