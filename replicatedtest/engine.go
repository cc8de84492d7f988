package replicatedtest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// Engine is a kind of database server. The zero value is none.
type Engine uint8

const (
	// Postgres is PostgreSQL with streaming replication.
	Postgres Engine = iota + 1
	// MariaDB is MariaDB with GTID replication.
	MariaDB
	// MySQL is MySQL with gtid_mode=ON and auto-positioned replicas.
	MySQL
)

// String returns the name that REPLICATED_TEST_REQUIRE uses: "postgres",
// "mariadb", "mysql".
func (e Engine) String() string {
	switch e {
	case Postgres:
		return "postgres"
	case MariaDB:
		return "mariadb"
	case MySQL:
		return "mysql"
	}
	return fmt.Sprintf("engine(%d)", uint8(e))
}

// Engines lists every [Engine], for tests that run on all of them.
func Engines() []Engine { return []Engine{Postgres, MariaDB, MySQL} }

// Accounts and database of every cluster. The passwords are unlike any other
// text, so that a test can look for them where they must not be.
const (
	// Database is the one that DSNs name.
	Database = "app"
	// AppUser owns Database and has no power outside it.
	AppUser     = "app"
	AppPassword = "app-Pa55word"
	// AdminUser is a superuser who bypasses read_only.
	AdminUser     = "admin"
	AdminPassword = "admin-Pa55word"

	// The package's own account, so that what it does itself can be told from
	// what a test does, and the account that replicas log in with.
	harnessUser     = "harness"
	harnessPassword = "harness-Pa55word"
	replUser        = "repl"
	replPassword    = "repl-Pa55word"
)

// Options of a cluster. The zero value is a primary with two replicas.
type Options struct {
	// Replicas is how many replicas follow the primary. 0 means 2, a negative
	// number none.
	Replicas int

	// Settings are server settings of all nodes by their own names, as in
	// {"wal_level": "logical"} or {"autocommit": "0"}. They win over what the
	// package sets, and can break it.
	Settings map[string]string

	// ReplicaSettings are further settings of the nodes that start as
	// replicas. They stay when such a node is promoted.
	ReplicaSettings map[string]string

	// NodeSettings are further settings of single nodes, by [Node.Name]. They
	// win over all others.
	NodeSettings map[string]map[string]string

	// WritableReplicas leaves read_only off on MariaDB and MySQL replicas, so
	// that a write which goes astray succeeds there. PostgreSQL standbys
	// cannot be written to.
	WritableReplicas bool

	// Synchronous makes whichever node is the primary acknowledge a commit only
	// when at least one replica has it, so that [Cluster.Failover] loses no
	// acknowledged write: synchronous_standby_names on PostgreSQL, the
	// semi-synchronous replication of MariaDB and MySQL with a time-out of weeks.
	// See [Options.Available].
	//
	// While no replica receives, commits hang; so they do after
	// [Node.Promote] until a node follows. One whose wait is cancelled (a
	// cancelled statement, KILL QUERY) is committed all the same, and the server
	// may say so without a replica having it. [Node.Delay] on MariaDB and MySQL
	// delays the replica's word too.
	Synchronous bool

	// MaxConnections is how many connections each server takes; 0 means 200.
	// PostgreSQL keeps three of them for superusers, MariaDB and MySQL take one
	// more from a superuser, and count the connections of replicas. At least 10.
	MaxConnections int

	// NoStatementLog turns the statement log off, for benchmarks.
	// [Node.Statements] panics then.
	NoStatementLog bool

	// Log gets a line for each thing that the package does to a server. Nil
	// means none.
	Log io.Writer
}

// settings are the settings of a node: later ones win over earlier ones.
func (o Options) settings(n *Node) []map[string]string {
	if n.name == nodeName(0) {
		return []map[string]string{o.Settings, o.NodeSettings[n.name]}
	}
	return []map[string]string{o.Settings, o.ReplicaSettings, o.NodeSettings[n.name]}
}

// Available returns nil if a cluster of the engine with these options can be
// started on this machine, and otherwise an error that names what is missing.
// What an installation lacks for [Options.Synchronous] (MySQL's plugins, which
// the package that scripts/setup gets has not) is [errors.ErrUnsupported].
func (o Options) Available(e Engine) error {
	db, err := newDatabase(e)
	if err != nil {
		return err
	}
	return o.check(db)
}

// check returns an error if the options contradict each other or the
// installation.
func (o Options) check(db database) error {
	if o.MaxConnections != 0 && o.MaxConnections < fewestConnections {
		return fmt.Errorf("replicatedtest: MaxConnections is %d, need %d or more", o.MaxConnections, fewestConnections)
	}
	if o.Synchronous {
		if o.replicas() == 0 {
			return errors.New("replicatedtest: Synchronous without a replica: no commit would end")
		}
		if err := db.synchronous(); err != nil {
			return fmt.Errorf("replicatedtest: Synchronous: %w", err)
		}
	}
	for name := range o.NodeSettings {
		var i int
		if _, err := fmt.Sscanf(name, "node%d", &i); err != nil || i < 1 || i > 1+o.replicas() || name != nodeName(i-1) {
			return fmt.Errorf("replicatedtest: NodeSettings of %q, which is not a node", name)
		}
	}
	return nil
}

// fewestConnections is what MariaDB takes at least.
const fewestConnections = 10

func (o Options) maxConnections() int {
	if o.MaxConnections == 0 {
		return 200
	}
	return o.MaxConnections
}

func (o Options) replicas() int {
	switch {
	case o.Replicas == 0:
		return 2
	case o.Replicas < 0:
		return 0
	}
	return o.Replicas
}

// Available returns nil if clusters of the engine can be started on this
// machine, and otherwise an error that names what is missing.
func Available(e Engine) error {
	_, err := newDatabase(e)
	return err
}

// Require skips the test if the engine is not available, or fails it if
// REPLICATED_TEST_REQUIRE lists the engine. [Start] does this by itself.
func Require(tb testing.TB, e Engine) {
	tb.Helper()
	require(tb, e.String(), Available(e))
}

// require skips the test for the error, or fails it if REPLICATED_TEST_REQUIRE
// lists the program that is missing.
func require(tb testing.TB, program string, err error) {
	tb.Helper()
	if err == nil {
		return
	}
	if required(program) {
		tb.Fatalf("%v (REPLICATED_TEST_REQUIRE lists %s)", err, program)
	}
	tb.Skipf("%v (scripts/setup of the repository installs it)", err)
}

func required(program string) bool {
	for name := range strings.SplitSeq(os.Getenv("REPLICATED_TEST_REQUIRE"), ",") {
		if name = strings.TrimSpace(name); name == program || name == "all" {
			return true
		}
	}
	return false
}
