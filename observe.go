package replicated

import (
	"context"
	"log/slog"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// Observer is told what the driver does. Every field is optional. The functions
// are called on the goroutine that does it, never under a lock, possibly many at
// a time, and delay it while they run.
type Observer struct {
	// Routed is called when a node has run a statement, or has failed to.
	Routed func(RouteEvent)

	// NodeState is called when a replica's breaker has opened or closed.
	NodeState func(NodeStateEvent)

	// Notice is called when something stands in the way of what was configured.
	// Each kind is reported once for a node, or when it comes back.
	Notice func(Notice)
}

// RouteEvent tells where a statement went. It holds no SQL text and no values.
type RouteEvent struct {
	Caller  string // by WithCaller, or of the request; "" where nobody has said
	Class   string // "read", "write", "ddl", …
	Keyword string // the leading keyword, upper case
	Node    string
	Role    Role // as which the node was used
	Reason  Reason
	Write   bool  // it counts as a write: reads in its scope wait for replicas that have it
	Prepare bool  // the text was prepared, and not run
	Err     error // what the attempt ended in
}

// NodeStateEvent tells that a replica was taken out or came back.
type NodeStateEvent struct {
	Node  string
	State BreakerState
	Err   error // why it was taken out; nil when it came back
}

// NoticeKind is a kind of [Notice].
type NoticeKind uint8

// The kinds of notices.
const (
	// NoticeLagUnmeasured: no tracker works, so freshness is a guess by time
	// (Config.Sticky) and Config.MaxLag is not enforced.
	NoticeLagUnmeasured NoticeKind = iota + 1
	// NoticePooler: a pooler sits between the driver and the node. Its connections
	// are not fenced, session settings are not carried to it, and freshness cannot
	// be proven through it.
	NoticePooler
	// NoticeTurnedAway: the node is up and refuses the login, or has no connection
	// left. No reads are sent to it for some seconds.
	NoticeTurnedAway
	// NoticeReadOnlyPrimary: the node listed as the primary says that it is
	// read-only, or in recovery.
	NoticeReadOnlyPrimary
	// NoticeNoPrimary: with TopologyDiscover, nobody can be shown to be the primary:
	// none takes writes, or several do, and it can't be told which of them the others
	// follow. Statements that need it get ErrNoPrimary.
	NoticeNoPrimary
	// NoticePrimaryChanged: another server than before is the primary. What had been
	// proven of replicas is dropped, and proven again.
	NoticePrimaryChanged
	// NoticeWritesLost: the primary lacks acknowledged writes that the one before it was
	// seen to have. With asynchronous replication a failover may do that.
	NoticeWritesLost
	// NoticeWritesInDoubt: the primary has changed, and it can't be told whether it has
	// the last writes that were acknowledged before that.
	NoticeWritesInDoubt
	// NoticePrimaryWentBack: the primary lacks what it had: its log was reset, or a
	// copy was restored. What had been proven of replicas is dropped.
	NoticePrimaryWentBack
	// NoticeDiverged: the replica has applied what the primary lacks. It serves no
	// reads until it has gone back, or is another server by its identity.
	NoticeDiverged
	// NoticeOtherLineage: the replica's history is not the primary's, or cannot be
	// told (on PostgreSQL GRANT pg_read_all_stats lets the user see a standby's
	// timeline at once after a failover). It serves no reads until then.
	NoticeOtherLineage
	// NoticeMultiplexed: one connection to the node has reached two servers, by a
	// pooler. Nothing can be proven of it, and it serves no reads.
	NoticeMultiplexed
	// NoticeTokenUnmet: the primary could not be shown to have what a token tells of,
	// and with PrimaryDownStale, or WithTokenOrPrimary, the read was served all the same.
	NoticeTokenUnmet
	// NoticeCatalogUnread: the primary answers, but its catalog cannot be read. A
	// function that is not built in keeps its statements on the primary.
	NoticeCatalogUnread
	// NoticeWriteAbandoned: the context of a statement that may write has ended while
	// a MySQL or MariaDB server was running it, and the server was told to end it. Err
	// says what came of that. It is told of each such statement.
	NoticeWriteAbandoned
)

// String returns the kind in lower-case words with hyphens.
func (k NoticeKind) String() string {
	switch k {
	case NoticeLagUnmeasured:
		return "lag-unmeasured"
	case NoticePooler:
		return "pooler"
	case NoticeTurnedAway:
		return "turned-away"
	case NoticeReadOnlyPrimary:
		return "read-only-primary"
	case NoticeNoPrimary:
		return "no-primary"
	case NoticePrimaryChanged:
		return "primary-changed"
	case NoticeWritesLost:
		return "writes-lost"
	case NoticeWritesInDoubt:
		return "writes-in-doubt"
	case NoticePrimaryWentBack:
		return "primary-went-back"
	case NoticeDiverged:
		return "diverged"
	case NoticeOtherLineage:
		return "other-lineage"
	case NoticeMultiplexed:
		return "multiplexed"
	case NoticeTokenUnmet:
		return "token-unmet"
	case NoticeCatalogUnread:
		return "catalog-unread"
	case NoticeWriteAbandoned:
		return "write-abandoned"
	default:
		return "unknown"
	}
}

// Notice tells that something stands in the way of what was configured.
type Notice struct {
	Kind NoticeKind
	Node string // empty where it concerns the whole cluster
	Err  error  // the cause, where there is one
}

func (c *Cluster) notice(n Notice) {
	if l := c.cfg.Logger; l != nil {
		l.Warn("replicated: notice", slog.String("kind", n.Kind.String()), slog.String("node", n.Node), slog.Any("error", n.Err))
	}
	if o := c.cfg.Observe; o != nil && o.Notice != nil {
		o.Notice(n)
	}
}

func (c *Cluster) stateChanged(n *node, to BreakerState, err error) {
	if err != nil {
		err = nodeError(n, RoleReplica, "serve reads", err)
	}
	if l := c.cfg.Logger; l != nil {
		l.Info("replicated: breaker", slog.String("node", n.name), slog.String("state", to.String()), slog.Any("error", err))
	}
	if o := c.cfg.Observe; o != nil && o.NodeState != nil {
		o.NodeState(NodeStateEvent{Node: n.name, State: to, Err: err})
	}
}

// routed counts a statement and tells the observer.
func (c *Cluster) routed(ctx context.Context, w *work, n *node, role Role, why Reason, err error) {
	c.counters.add(role, why)
	if o := c.cfg.Observe; o != nil && o.Routed != nil {
		name := ""
		if n != nil {
			name = n.name
		}
		o.Routed(RouteEvent{
			Caller: callerOf(ctx), Class: w.verdict.Class.String(), Keyword: w.verdict.Keyword,
			Node: name, Role: role, Reason: why, Err: err,
			Write: w.verdict.Effect&classify.Stamps != 0, Prepare: !w.runs && !w.begin,
		})
	}
}
