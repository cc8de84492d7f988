package replicatedtest

import (
	"context"
	"database/sql"
	"time"
)

// database is what differs between the kinds of servers. Its methods are
// called with the node's mutex held, unless they say otherwise.
type database interface {
	// name is for messages: "PostgreSQL 15.3".
	name() string
	// account runs the servers.
	account() *account
	// template returns an initialised data directory to copy.
	template(ctx context.Context) (string, error)
	// layout fills the node's directory from the template before its first
	// start. clusterID is the same for all nodes of a cluster and random.
	layout(n *Node, template string, clusterID uint64) error
	// command builds the command line for the node's present role.
	command(n *Node) (*startCommand, error)
	// ready returns nil once the server takes connections.
	ready(ctx context.Context, n *Node) error
	// attach makes a running replica follow its source, and waits until it
	// does. fresh says that the node has never followed anything.
	attach(ctx context.Context, n *Node, fresh bool) error
	// following waits until the running replica receives from its source.
	following(ctx context.Context, n *Node) error
	// repoint makes the node a running replica of its source without waiting
	// for it to follow. wasReplica says that it was one before.
	repoint(ctx context.Context, n *Node, wasReplica bool) error
	// rebuild replaces the stopped node's data by what its source has, before
	// the node is started again.
	rebuild(ctx context.Context, n *Node) error
	// stop asks the server to end in order; quit asks it to end at once.
	stop(n *Node) error
	quit(n *Node) error
	// refuseLogin makes new logins of AppUser fail on this node alone, or
	// undoes it, if need be some time after it has returned.
	refuseLogin(ctx context.Context, n *Node, refuse bool) error
	// handOver makes the running primary take no more writes, and waits until
	// the replica has all that it has acknowledged. After an error it takes
	// writes as before. The replica's mutex is not held.
	handOver(ctx context.Context, primary, to *Node) error
	// promote makes a running replica a primary.
	promote(ctx context.Context, n *Node) error
	pause(ctx context.Context, n *Node) error
	unpause(ctx context.Context, n *Node) error
	// unplug stops receiving, plug begins it again.
	unplug(ctx context.Context, n *Node) error
	plug(ctx context.Context, n *Node) error
	// delay sets how far the replica stays behind.
	delay(ctx context.Context, n *Node, d time.Duration) error
	// crash ends one session's process with SIGKILL and waits until the server
	// takes connections again.
	crash(ctx context.Context, n *Node, id int64) error
	// resetLog makes the server forget its binary log.
	resetLog(ctx context.Context, n *Node) error
	// data is the directory with all that a server remembers.
	data(n *Node) string

	// The rest is called without the node's mutex.

	// caughtUp waits until the replica has applied what the source had.
	caughtUp(ctx context.Context, source, replica *Node) error
	// connections counts those of AppUser.
	connections(ctx context.Context, conn *sql.Conn) (int, error)
	// demote makes a primary read-only.
	demote(ctx context.Context, n *Node) error
	// received is how far the replica has received; receiving reports whether
	// it still does.
	received(ctx context.Context, n *Node) (progress, error)
	receiving(ctx context.Context, n *Node) (bool, error)
	// vacuum is Cluster.Vacuum on the primary.
	vacuum(ctx context.Context, n *Node, table string) error
	// synchronous returns why Options.Synchronous cannot be had.
	synchronous() error
	// tooMany and refused tell why a server has not taken a connection: all
	// have been given out, the login was wrong.
	tooMany(err error) bool
	refused(err error) bool
	killBackend(ctx context.Context, n *Node, id int64) error
	killBackends(ctx context.Context, n *Node) (int, error)
	// dsn builds a DSN in the grammar of the bare driver, which with several
	// addresses is the grammar of the replicated driver.
	dsn(addrs []string, user, password, database string, keys []string) string
	driverName() string
	connectorMaker
	// logFile is the statement log, parser reads it.
	logFile(n *Node) string
	parser() logParser
}
