package dialect

import (
	"context"
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/position"
)

// Identity is what a connection says about the server it has reached. The zero
// Identity means that nothing is known; [classify.Generic] never knows more than
// that there is no position.
type Identity struct {
	// Flavor is the database found, MySQL or MariaDB where AnyMySQL was asked.
	Flavor classify.Dialect

	// Server names the server process and its data: two connections have the
	// same Server if, and as good as only if, they have reached the same one.
	// PostgreSQL: system identifier, start time and port, so that a restart
	// changes it (a crash restart of the backends alone does not). MySQL:
	// server_uuid. MariaDB: host name, port and server_id.
	Server string

	// Cluster names the group of servers that share one history. PostgreSQL:
	// the system identifier. MySQL and MariaDB have no such thing: "".
	Cluster string

	// Lineage names the history within which two positions can be compared.
	// PostgreSQL: system identifier and timeline; "" if not readable. MySQL and
	// MariaDB: "", since their positions name the servers they come from.
	Lineage string

	// LineageExact is false if the timeline of a PostgreSQL standby comes from
	// its control file, which lags behind a promotion of its primary until the
	// next restartpoint. GRANT pg_read_all_stats lets the user read the exact
	// one from pg_stat_wal_receiver while the receiver runs.
	LineageExact bool

	// ReadOnly is set for a server that refuses writes: in recovery, or with
	// read_only, super_read_only or innodb_read_only.
	ReadOnly bool

	// Version is the server's own word, VersionNum the same as a number that
	// can be compared: 150018 for PostgreSQL 15.18, 101119 for MariaDB
	// 10.11.19, 80036 for MySQL 8.0.36.
	Version    string
	VersionNum int

	// BackendPID is pg_backend_pid() or CONNECTION_ID(). On PostgreSQL it
	// differs from status.BackendPID if a pooler sits between.
	BackendPID int64

	// ServerID is the global server_id of MySQL and MariaDB, which MariaDB's
	// GTIDs carry.
	ServerID uint32

	// Written is the position up to which this server has written its own log
	// durably, as a primary: flush LSN of PostgreSQL, gtid_executed (MySQL ≥ 5.7
	// with gtid_mode=ON), gtid_binlog_pos with gtid_binlog_state (MariaDB), the
	// end of the binary log (MySQL else, from Sample only). Zero: there is none,
	// and NoWritten tells why. A server that has written nothing yet has one that
	// is empty.
	Written position.Position

	// Inserted is the insert LSN of a PostgreSQL primary, corrected to the end of
	// the last record. It is past Written as long as there is a commit that nobody
	// has flushed.
	Inserted position.Position

	// Settles is how long after its acknowledgement a commit is in Written at the
	// latest, however it was acknowledged. Zero: that is not known, or there are no
	// commits but those that wait for the disk.
	Settles time.Duration

	// Applied is the position up to which this server has applied another
	// one's log, and shows it: replay LSN of a PostgreSQL standby, gtid_executed
	// (as above), gtid_slave_pos (MariaDB). Where FilePositions is set it stays
	// zero: ask AppliedFrom, which answers for the other kinds as well.
	Applied position.Position

	// FilePositions is set for a MySQL server whose only positions are those of
	// binary log files: before 5.7, or without gtid_mode=ON. Sample reads them;
	// Identify does not.
	FilePositions bool

	// NoPosition is why this server has no position, in whichever role, and can
	// have none until somebody changes something: which setting, or which
	// privilege, stands in it. "" if it has one in some role, or may have.
	NoPosition string

	// What NoWritten and NoApplied answer, "" if there is a position.
	noWritten, noApplied string

	// channels are what a server with FilePositions has applied, per source.
	channels []channel

	// AutocommitOff and Chains (completion_type is not NO_CHAIN) describe a
	// MySQL session that [Dialect.Fence] has to set right.
	AutocommitOff bool
	Chains        bool

	// Serializable is set if the session's transactions are serializable by
	// default, which a PostgreSQL standby refuses.
	Serializable bool

	// AsyncCommit is set if the session's synchronous_commit is off. Its commits
	// may be acknowledged before Written has reached them; Inserted has.
	AsyncCommit bool

	// Fenced is set if a PostgreSQL session has default_transaction_read_only,
	// so that the start-up parameter has arrived.
	Fenced bool
}

// Identify asks the server behind conn who it is, in one query, with no
// privilege beyond a login. With AnyMySQL it takes two (use For(id.Flavor) for
// the node's later connections), and so does a MariaDB built without Galera. It
// answers for a health and role probe as well.
//
// A server that refuses part of the question (a fork, a managed service without
// some function) is asked a smaller one, and what it cannot tell stays empty.
func (d *Dialect) Identify(ctx context.Context, conn driver.Conn) (Identity, error) {
	id, err := d.identify(ctx, conn)
	if err != nil {
		return Identity{}, fmt.Errorf("replicated: identifying the server: %w", err)
	}
	return id, nil
}

// Sample asks the server behind conn for its position, with all that Identify
// asks for: role, identity and lineage come from the query that tells the
// position, or from a later one. It is Identify, in one query, except where
// [Identity.FilePositions] is set: there it takes two queries from a replica and
// four from a writable server, and the privilege REPLICATION CLIENT. Without that
// privilege, and without a binary log, NoPosition says so.
//
// A caller who has noted the time s before the call knows that Written holds what
// the server had acknowledged before s, but for asynchronous commits of
// PostgreSQL, which Inserted holds as well.
func (d *Dialect) Sample(ctx context.Context, conn driver.Conn) (Identity, error) {
	ask := d.sample
	if ask == nil {
		ask = d.identify
	}
	id, err := ask(ctx, conn)
	if err != nil {
		return Identity{}, fmt.Errorf("replicated: sampling the server: %w", err)
	}
	return id, nil
}

// Fence makes a replica connection read-only, and each of its statements a
// transaction of its own. id is the connection's Identity.
//
// MySQL and MariaDB: one statement, and a second one if the session has
// autocommit off or a completion_type. PostgreSQL: nothing is sent where the
// start-up parameter default_transaction_read_only=on has arrived
// ([Identity.Fenced]), else one SET, which RESET ALL would lift. It must not be
// called for a PostgreSQL connection through a pooler: the SET would stay on a
// server connection that others use next, and make them read-only. Generic:
// nothing.
//
// After an error the connection must be closed.
func (d *Dialect) Fence(ctx context.Context, conn driver.Conn, id Identity) error {
	if err := d.fence(ctx, conn, id); err != nil {
		return fmt.Errorf("replicated: making the connection read-only: %w", err)
	}
	return nil
}
