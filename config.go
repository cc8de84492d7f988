package replicated

import (
	"database/sql/driver"
	"fmt"
	"log/slog"
	"time"
)

// Config describes a cluster and how statements are spread over it. The DSN is
// its text form: [ParseDSN] reads one, [FormatDSN] writes one. What text cannot
// carry (connectors, hooks, a logger, names, weights) is a field alone.
//
// The zero value of every field is its default, so that a Config with nothing
// but a primary in Nodes works. Where zero cannot mean "off", a negative value
// does; the comment of the field says so. In a DSN "off" is written 0.
//
// [NewConnector] copies the Config, checks it and fills in the defaults.
// Changing it afterwards has no effect. A Config may be used any number of times.
type Config struct {
	// Driver is what the nodes are reached with: "mysql" (go-sql-driver/mysql),
	// "postgres" (lib/pq), or any name in sql.Drivers(), such as "pgx".
	// Empty: from the form of the first node's DSN.
	// DSN key: replicated.driver.
	Driver string

	// Nodes are the servers, at least one, at most 64. With static topology the
	// first is the primary and the others are its replicas; with TopologyDiscover
	// their order means nothing. DSN: the host list.
	Nodes []Node

	// Topology tells where the roles of nodes come from.
	// Zero: TopologyStatic. DSN key: replicated.topology.
	Topology TopologyMode

	// Reads tells which reads may go to replicas at all.
	// Zero: ReadsAuto. DSN key: replicated.reads.
	Reads ReadsMode

	// Consistency tells whose writes a read is entitled to see.
	// Zero: ConsistencyProcess. DSN key: replicated.consistency.
	Consistency Consistency

	// Scope tells which writes a read waits for.
	// Zero: ScopeAll. DSN key: replicated.scope.
	Scope Scope

	// MaxLag is how far a replica may be behind and still serve reads. While lag
	// is not measured (no tracker works), it is not enforced; an event and Stats
	// say so. Zero: 5 s. Negative: an error. DSN key: replicated.max_lag.
	MaxLag time.Duration

	// MaxBlind is how long replicas go on serving while no primary answers, with
	// their lag measured to when it was first asked in vain. Like MaxLag it is not enforced
	// while lag is not measured. Zero: 60 s. Negative: not at all.
	// DSN key: replicated.max_blind.
	MaxBlind time.Duration

	// Wait is how long a read may wait for a replica to catch up before the
	// primary takes it. It needs a tracker: where none works, nothing is waited for.
	// Zero: it does not wait. Negative: an error. DSN key: replicated.wait.
	Wait time.Duration

	// Tracker tells how the freshness of replicas is measured.
	// Zero: TrackerAuto. DSN key: replicated.tracker.
	Tracker TrackerMode

	// HeartbeatTable is the table of TrackerHeartbeat, "table" or "schema.table", of
	// letters, digits, "_" and "$". [HeartbeatDDL] tells how it is made; the user
	// needs SELECT and UPDATE on it. Empty: "replicated_heartbeat".
	// DSN key: replicated.heartbeat_table.
	HeartbeatTable string

	// Sticky is how long reads stay on the primary after a write that they are
	// entitled to see, where no tracker tells when replicas have it. It is a guess:
	// choose more than the usual lag. Zero: 5 s. Negative: not at all, which only
	// ConsistencyEventual and TrackerPosition allow. DSN key: replicated.sticky.
	Sticky time.Duration

	// ReadOnlyTx tells where transactions with sql.TxOptions.ReadOnly run.
	// Zero: ReadOnlyTxReplica. DSN key: replicated.readonly_tx.
	ReadOnlyTx ReadOnlyTxMode

	// Balance tells how one of several eligible replicas is chosen.
	// Zero: BalanceP2C. DSN key: replicated.balance.
	Balance BalanceMode

	// Zone is where this process runs. Reads prefer the replicas with the same
	// Node.Zone while one of them may serve the read, unless these have become eight
	// times as slow as the others; the others serve where none may. The primary's zone
	// does not matter. At most 64 letters, digits, dots, dashes and underscores.
	// Empty: no preference. DSN key: replicated.zone.
	Zone string

	// ConnectTimeout bounds the opening of one replica connection, and of one that
	// probes a node: half a dozen round trips. A node's own
	// setting (timeout, connect_timeout in its DSN) goes before it. With static
	// topology the primary has none but that setting and the caller's context; with
	// TopologyDiscover it holds for all.
	// Zero: 2 s. Negative: no bound. DSN key: replicated.connect_timeout.
	ConnectTimeout time.Duration

	// BreakerFailures is how many consecutive failures open a replica's breaker.
	// Zero: 3. Negative: an error. DSN key: replicated.breaker_failures.
	BreakerFailures int

	// BreakerOpen is how long a breaker stays open the first time; it doubles,
	// with jitter, up to 30 s. Zero: 1 s. Negative: an error.
	// DSN key: replicated.breaker_open.
	BreakerOpen time.Duration

	// StmtCache is how many prepared statements a physical connection caches for
	// calls that did not prepare. There is no cache yet: only off is accepted.
	// Zero: the default, which is off until there is one. Negative: off.
	// DSN key: replicated.stmt_cache.
	StmtCache int

	// ReplicaMaxIdle is how many idle connections are kept per replica.
	// Zero: 8. Negative: none. DSN key: replicated.replica_max_idle.
	ReplicaMaxIdle int

	// ReplicaMaxLifetime is the age at which a replica connection, or one of the
	// sampler's own, is not used again; it is jittered, so that connections do not end together.
	// Zero: 5 min. Negative: no limit. DSN key: replicated.replica_max_lifetime.
	ReplicaMaxLifetime time.Duration

	// ReplicaMaxIdleTime is how long an idle replica connection is kept.
	// Zero: 1 min. Negative: no limit. DSN key: replicated.replica_max_idle_time.
	ReplicaMaxIdleTime time.Duration

	// PrimaryDown tells what becomes of reads that need newer data than any
	// replica is known to have, while no primary answers.
	// Zero: PrimaryDownFail. DSN key: replicated.primary_down.
	PrimaryDown PrimaryDownMode

	// PrimaryWait is how long after the primary was lost statements that need one wait
	// for it to return, or for the next one, with TopologyDiscover: nothing of them has
	// been sent. A switchover of less then costs them time and nothing else. Later ones
	// fail at once. Zero: 5 s. Negative: none waits. DSN key: replicated.primary_wait.
	PrimaryWait time.Duration

	// PrimaryReadLimit is how many reads may be in flight on the primary for want
	// of a replica; beyond it a read fails with ErrNoReplica.
	// Zero: no limit. Negative: an error. DSN key: replicated.primary_read_limit.
	PrimaryReadLimit int

	// ReadFunctions are functions of the database that only read, and WriteFunctions
	// ones that write, whatever its catalog says of them: "name" for the functions
	// of that name in all schemas, "schema.name" for those in one. Case does not
	// matter. A name in both writes. Built-in functions that are known to write, to
	// lock or to belong to the session stay what they are.
	// Empty: the catalog decides, and until it has been read, or where the user may
	// not read it, a function that is not built in belongs to the primary.
	// DSN keys: replicated.read_functions, replicated.write_functions, with commas.
	ReadFunctions, WriteFunctions []string

	// ClusterName names the cluster where its servers have no identity of their
	// own. Two DSNs with the same name are one cluster: they see each other's
	// writes. At most 64 letters, digits, dots, dashes and underscores.
	// Empty: from the servers. DSN key: replicated.cluster.
	ClusterName string

	// Observe is told what happens. Nil: nobody is. No DSN key.
	Observe *Observer

	// Logger gets what an operator should know. Nil: nothing is logged. No DSN key.
	Logger *slog.Logger
}

// Node is one server. Either DSN or Connector is needed, not both.
type Node struct {
	// Name is what errors, events and Stats call the node, unique in the cluster.
	// Empty: its address; without one "primary", "replica1", "replica2", …
	Name string

	// Address is the host:port, or the socket, shown beside the name. Empty: from
	// the DSN. With a Connector it may name the server; it is never dialled.
	Address string

	// DSN is a data source name of Config.Driver with one host and without
	// replicated.* keys.
	DSN string

	// Connector opens the node's connections in place of a DSN. It stays the
	// caller's: closing ours does not close it. We do not dial, so a read that
	// hangs in it ends only when it heeds its context, and its replica connections
	// are read-only only where a statement can make them so.
	Connector driver.Connector

	// Weight is the node's share of reads relative to other replicas.
	// Zero: 1. Negative: an error.
	Weight int

	// Zone is where the node stands, see Config.Zone. Empty: in none.
	Zone string
}

// String returns the name, else the address, and never the DSN, so that a Config
// in a log line shows no password.
func (n Node) String() string {
	if n.Name != "" {
		return n.Name
	}
	if n.Address != "" {
		return n.Address
	}
	return "node"
}

// GoString returns the same as String, for %#v.
func (n Node) GoString() string { return fmt.Sprintf("replicated.Node{%s}", n.String()) }

// TopologyMode tells where the roles of nodes come from. The zero value is TopologyStatic.
type TopologyMode uint8

const (
	TopologyStatic   TopologyMode = iota // "static": the first node is the primary
	TopologyDiscover                     // "discover": roles are probed, and followed through failovers
)

// ReadsMode tells which reads may go to replicas. The zero value is ReadsAuto.
type ReadsMode uint8

const (
	ReadsAuto   ReadsMode = iota // "auto": every proven read that is entitled to
	ReadsOptIn                   // "opt-in": only where the context or a hint in the text allows it
	ReadsShadow                  // "shadow": none; the decisions are recorded, the primary serves, and no read waits for a replica or is refused for want of one
	ReadsOff                     // "off": none
)

// Consistency tells whose writes a read is entitled to see. The zero value is ConsistencyProcess.
type Consistency uint8

const (
	ConsistencyProcess  Consistency = iota // "process": those of the Conn, the context's sessions and, outside sessions, this process
	ConsistencySession                     // "session": those of the Conn and the context's sessions
	ConsistencyEventual                    // "eventual": those of the Conn since check-out
)

// Scope tells which writes a read waits for. The zero value is ScopeAll.
type Scope uint8

const (
	// ScopeAll ("all"): all that it is entitled to.
	ScopeAll Scope = iota
	// ScopeTable ("table"): those of them that wrote to relations which the read
	// touches, where the text and the catalog tell (views, triggers, rules, policies,
	// cascades, partitions and inheritance are followed; functions and definitions
	// count as everything). It assumes that the schema is changed through this driver
	// only, or that the change is older than 30 s, which is how often the catalog is
	// read. Any change of the schema that is seen counts as a write to everything.
	ScopeTable
)

// TrackerMode tells how the freshness of replicas is measured. The zero value is TrackerAuto.
type TrackerMode uint8

const (
	TrackerAuto      TrackerMode = iota // "auto": by log position; where there is none, Config.Sticky decides
	TrackerPosition                     // "position": by log position; where there is none, the primary serves all reads
	TrackerHeartbeat                    // "heartbeat": by a row, in Config.HeartbeatTable, that is written now and then
	TrackerOff                          // "off": it is not; Config.Sticky decides
)

// ReadOnlyTxMode tells where read-only transactions run. The zero value is ReadOnlyTxReplica.
type ReadOnlyTxMode uint8

const (
	ReadOnlyTxReplica ReadOnlyTxMode = iota // "replica": wholly on one replica
	ReadOnlyTxPrimary                       // "primary"
)

// BalanceMode tells how a replica is chosen. The zero value is BalanceP2C.
type BalanceMode uint8

const (
	// BalanceP2C ("p2c"): two are drawn at random, by weight, and by speed where one
	// has more than twice the latency of the fastest. The first gets the read, unless it
	// has far more to do than the second, for its weight.
	BalanceP2C BalanceMode = iota
	// BalanceRoundRobin ("round-robin"): in turn, as often as the weights say.
	BalanceRoundRobin
)

// PrimaryDownMode tells what becomes of reads no replica is fresh enough for while
// no primary answers. The zero value is PrimaryDownFail.
type PrimaryDownMode uint8

const (
	PrimaryDownFail  PrimaryDownMode = iota // "fail": they fail
	PrimaryDownStale                        // "stale": a replica serves what it has
)

var (
	topologyNames    = []string{"static", "discover"}
	readsNames       = []string{"auto", "opt-in", "shadow", "off"}
	consistencyNames = []string{"process", "session", "eventual"}
	scopeNames       = []string{"all", "table"}
	trackerNames     = []string{"auto", "position", "heartbeat", "off"}
	readOnlyTxNames  = []string{"replica", "primary"}
	balanceNames     = []string{"p2c", "round-robin"}
	primaryDownNames = []string{"fail", "stale"}
)

// String returns the word that stands in a DSN.
func (m TopologyMode) String() string { return nameOf("TopologyMode", topologyNames, m) }

// String returns the word that stands in a DSN.
func (m ReadsMode) String() string { return nameOf("ReadsMode", readsNames, m) }

// String returns the word that stands in a DSN.
func (c Consistency) String() string { return nameOf("Consistency", consistencyNames, c) }

// String returns the word that stands in a DSN.
func (s Scope) String() string { return nameOf("Scope", scopeNames, s) }

// String returns the word that stands in a DSN.
func (m TrackerMode) String() string { return nameOf("TrackerMode", trackerNames, m) }

// String returns the word that stands in a DSN.
func (m ReadOnlyTxMode) String() string { return nameOf("ReadOnlyTxMode", readOnlyTxNames, m) }

// String returns the word that stands in a DSN.
func (m BalanceMode) String() string { return nameOf("BalanceMode", balanceNames, m) }

// String returns the word that stands in a DSN.
func (m PrimaryDownMode) String() string { return nameOf("PrimaryDownMode", primaryDownNames, m) }

func nameOf[E ~uint8](typ string, names []string, e E) string {
	if int(e) < len(names) {
		return names[e]
	}
	return fmt.Sprintf("%s(%d)", typ, uint8(e))
}

// unsupported refuses by name what is understood but not built yet. Ignoring it
// would leave its user with less than was asked for.
func unsupported(c *Config) error {
	switch {
	case c.Wait > 0 && c.Tracker == TrackerOff:
		return fmt.Errorf("replicated: replicated.wait needs a tracker: with replicated.tracker=off nobody knows when a replica has caught up")
	case c.StmtCache > 0:
		return fmt.Errorf("replicated: replicated.stmt_cache is not supported yet: leave it out, or at 0")
	case c.Sticky < 0 && c.Consistency != ConsistencyEventual && c.Tracker != TrackerPosition && c.Tracker != TrackerHeartbeat:
		return fmt.Errorf("replicated: replicated.sticky=0 needs replicated.consistency=eventual or replicated.tracker=position: where no tracker works nothing else keeps replicated.consistency=%s", c.Consistency)
	}
	return nil
}
