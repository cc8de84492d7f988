// Package replicated is a database/sql driver for a primary with replicas. An
// application swaps the driver name and the DSN and keeps every other line:
// reads go to replicas, writes to the primary, and a read that must see a recent
// write stays where it can be seen. What exactly is promised, and how much of it
// holds in this version, stands below.
//
// It wraps [github.com/go-sql-driver/mysql] (MySQL, MariaDB) and
// [github.com/lib/pq] (PostgreSQL), or any other registered driver, and returns
// their values and errors as they are.
//
// # Opening a database
//
// The DSN is the one of the wrapped driver with several hosts in it. The first
// is the primary, the others are its replicas. Importing the package registers
// the driver:
//
//	import _ "github.com/sqlreplicated/replicated"
//
//	db, err := sql.Open("replicated", "app:pw@tcp(db1:3306,db2:3306,db3:3306)/shop?parseTime=true")
//	db, err := sql.Open("replicated", "postgres://app:pw@db1,db2,db3/shop?sslmode=verify-full")
//	db, err := sql.Open("replicated", "host=db1,db2,db3 port=5432 dbname=shop replicated.consistency=session")
//	db, err := sql.Open("replicated", "replicated://pgx?primary=<url-escaped DSN>&replica=<url-escaped DSN>")
//
// Keys that begin with "replicated." are settings of this package, see [Config];
// an unknown one is an error. Every other parameter reaches every node
// unchanged, except the few that would choose a node or a transaction mode
// behind our back.
//
// The names "mysql-replicated" and "postgres-replicated" are the same driver held
// to one dialect, for libraries that read the dialect off the driver's name.
//
// What text cannot carry (hooks, a logger, connectors of the nodes) is in the
// Config:
//
//	connector, err := replicated.NewConnector(replicated.Config{…})
//	db := sql.OpenDB(connector)
//
// # What is routed where
//
// Each statement is classified by a lexer of its dialect, then routed. Only a
// statement that is proven to be a read may run on a replica. To the primary go:
//
//   - writes, DDL, CALL, and everything that the classifier does not know,
//     which includes a SELECT that calls a function not known to be harmless, by
//     the built-in tables or by the database's catalog;
//   - locking reads (FOR UPDATE, FOR SHARE, LOCK IN SHARE MODE), advisory
//     locks, sequences, user variables, statements about the session itself;
//   - everything inside a read-write transaction;
//   - every read of a connection that is pinned: while it holds state that
//     lives in the primary's session, such as a temporary table, LOCK TABLES
//     or an advisory lock, until it goes back to the pool of database/sql.
//     SET ROLE, SESSION AUTHORIZATION and custom settings pin for as long as
//     the connection has them, so that no read runs with more rights;
//   - a read that no replica is entitled to answer, see below.
//
// A transaction with [database/sql.TxOptions] ReadOnly runs wholly on one replica.
// Session settings such as search_path or time_zone do not pin: a borrowed
// replica connection is first brought to the same values.
//
// On PostgreSQL, MySQL and MariaDB the connections to replicas are read-only by a
// setting of their session, so that a SELECT whose function writes is refused
// there and runs on the primary. Behind a pooler that shares server connections,
// and with drivers of other databases, there is no such second line.
//
// A caller may narrow the choice, per context or per statement:
//
//	ctx = replicated.WithPrimary(ctx)
//	db.QueryContext(ctx, "SELECT …")
//	db.Query("SELECT /* replicated:primary */ …")
//
// # What is promised
//
// The promise, in the words that bind the finished driver; the section after it
// tells how much of it holds today.
//
// Scope: one cluster with a single writer, accessed through this driver; no
// acknowledged write lost by the servers.
//
// Read your writes. A read sees the effects of every statement in its scope that
// had returned before the read was called, whatever it returned, or later
// values. The scope is its connection since check-out, its session and enclosing
// sessions, its token, every write of this process made outside any session;
// and, for a read outside any session, every write of this process. If no server
// can be shown to have them, the read fails with [ErrNotFresh] rather than lie.
//
// Bounded staleness. A replica's answer lacks nothing that was acknowledged more
// than max_lag before the read began; while no primary can be reached, before
// the last moment it was.
//
// Monotonic reads (on request). A session does not lose sight of an acknowledged
// write that it has seen.
//
// Writes reach a server at most once; one whose outcome is unknown may take
// effect at any later time.
//
// Not promised: one snapshot across statements or nodes; the same order of
// concurrent writes on all nodes; a write before it is acknowledged; other
// processes' writes without a token or WithFresh; anything after a failover that
// lost acknowledged writes (an event says so, tokens of the lost branch get
// ErrNotFresh); data that is not replicated (filters, sql_log_bin=0, unlogged
// and MEMORY tables, sequence state); predicates on a node's clock; multi-writer
// clusters; sticky, WithStaleReads and undeclared multiplexing poolers, which
// are guesses and say so.
//
// # How it is kept
//
// A sampler asks the primary how far its log reaches, and each replica how far it
// has applied that log. A replica that has applied what the primary had at some
// moment has everything that was acknowledged before it. Reads that must see a
// newer write run on the primary until a replica is proven to have it, which takes
// some milliseconds plus the replication lag.
//
// Where nothing can be proven (no binary log, Galera, Aurora, a database that is
// not known) the time window replicated.sticky takes the place of the proof. That
// is a guess: [NoticeLagUnmeasured] tells of it, and [Stats].LagMeasured.
//
// Roles are those of the DSN. With [TopologyDiscover] they are those that the servers
// tell, and a failover is followed; statements that need a primary wait a little for
// the next one ([Config].PrimaryWait).
//
// # Sessions
//
// Which writes a read must see depends on replicated.consistency. At the default
// level, process, a read sees the writes of its own process without any change
// to the code. (It gives no monotonic reads: two reads may be answered by two
// replicas of different age.) Writes inside a session are kept apart from those
// of other sessions, so that one user's write does not send every user's reads
// to the primary:
//
//	ctx, session := replicated.WithSession(r.Context())
//
// Open one for each request, job or user action, and pass the context on; all
// goroutines that have it may use it at once. Sessions nest: a write in an inner
// one counts for the outer ones. A read still sees writes that were made outside
// any session. [SessionFromContext] finds the session again. [Run] and [RunReadOnly]
// open one for a job.
//
// What was written in a session other processes see with its token: [Session.Token],
// [WithToken], and [Inject] and [Extract] for what travels in headers and payloads.
// Package httpsticky carries it from one HTTP request of a user to the next.
//
// The other context functions each change one thing:
//
//   - [WithPrimary]: reads run on the primary.
//   - [WithReplica]: allows replicas where replicated.reads is opt-in. It
//     honours floors always.
//   - [WithStaleReads]: waives floors: these reads may miss own writes.
//   - [WithFresh]: these reads see what anybody had committed when it was called.
//   - [WithUntracked]: this write asks for no read-your-writes (a last_seen
//     column, an audit row).
//   - [WithReadOnly]: anything but a proven read returns [ErrReadOnly] and does
//     not leave the process.
//   - [Wrote]: tells of a write that was made behind the driver's back.
//
// Of a [database/sql.Conn], Raw yields a [*Conn]: [Conn.UsePrimary] pins it to the
// primary until it goes back to the pool, [Conn.Primary] reaches the wrapped
// driver's connection.
//
// # Errors
//
// Errors of the wrapped driver come back unwrapped, so that type assertions on
// *mysql.MySQLError and *pq.Error hold. Errors of this package:
//
//   - [ErrOutcomeUnknown]: the connection was lost after a write was sent. It
//     may have taken effect, or may yet. It is never retried here, nor by
//     database/sql.
//   - [ErrNotFresh]: no server that can be reached has the data that the read is
//     entitled to.
//   - [ErrNoPrimary]: the statement needs the primary and there is none.
//   - [ErrNoReplica]: the primary takes no more reads on behalf of replicas, see
//     replicated.primary_read_limit.
//   - [ErrReadOnly]: see WithReadOnly.
//
// A [*NodeError] tells which node failed, in which role and at what, and unwraps
// to the cause. A read that fails for a node's reason before its first row has
// reached the caller runs again elsewhere: on another replica, then on the
// primary, each at most once.
//
// # Watching it
//
// [ClusterOf] finds the [Cluster] of a [database/sql.DB], also through wrapping
// drivers: nodes, breakers, pools, and how many statements went where, by reason.
// [Observer] is a set of optional functions that are called as things happen. SQL
// text is not part of events.
//
// Package replicatedtest starts real clusters of PostgreSQL, MariaDB or MySQL
// for tests, ours and yours.
package replicated
