package replicated

// Reason tells why a statement ran where it did. The same constants show in
// events, in [Stats] and in the command-line tool.
type Reason uint8

// The reasons of routing decisions.
const (
	ReasonUnknown Reason = iota

	// A replica served it.
	ReasonRead       // a proven read, with nothing against a replica
	ReasonReadOnlyTx // inside a read-only transaction that runs on a replica
	ReasonStale      // no primary answered, and Config.PrimaryDown is PrimaryDownStale

	// The primary served it, for what the statement is.
	ReasonEmpty     // nothing but blanks and comments
	ReasonWrite     // writes rows
	ReasonDDL       // changes the schema
	ReasonLock      // takes locks
	ReasonSession   // depends on the session, or changes it
	ReasonTxControl // opens, ends or shapes a transaction
	ReasonCall      // procedures and anonymous blocks: their body is not known
	ReasonAdmin     // maintenance and server control
	ReasonShow      // its answer belongs to one server or session
	ReasonMulti     // several statements, not all of them reads
	ReasonUnproven  // not known to be a read
	ReasonLearned   // a replica has refused this text as a write before

	// The primary served it, for where it stands.
	ReasonTransaction // inside a transaction on the primary
	ReasonPinned      // the connection has state that replicas lack

	// The primary served a read, because it was asked to.
	ReasonAsked      // WithPrimary, or the hint in the text
	ReasonReadsOff   // Config.Reads is ReadsOff
	ReasonNotOptedIn // Config.Reads is ReadsOptIn, and nothing opted in
	ReasonShadow     // Config.Reads is ReadsShadow; a replica would have served it

	// Config.Reads is ReadsShadow, and the primary ran it inside a read-only
	// transaction. On a replica it would have failed with ErrReadOnly.
	ReasonShadowRefused

	// The primary served a read, because its floor was too new for every replica.
	ReasonOwnWrite     // a write on the same connection since check-out
	ReasonSessionWrite // a write of the context's session
	ReasonProcessWrite // a write of this process
	ReasonFresh        // WithFresh
	ReasonToken        // the token of WithToken
	ReasonMonotonic    // what the session has read before, with WithMonotonicReads

	// The primary served a read, for want of a replica.
	ReasonSingleNode   // the cluster has no replica
	ReasonNoReplica    // none is up, or each has failed
	ReasonLag          // none is known to be within the bound on lag
	ReasonUnmeasured   // nothing is known yet of how fresh they are
	ReasonSerializable // serializable reads cannot run on a standby
	ReasonConflict     // a replica cancelled it in favour of recovery
	ReasonMissing      // the replica lacks the object or the ability
	ReasonMiss         // a replica had no such row (QueryRowByKey)
	ReasonRefused      // the replica refused it as a write

	reasons // how many there are
)

var reasonNames = [reasons]string{
	ReasonUnknown:       "unknown",
	ReasonRead:          "read",
	ReasonReadOnlyTx:    "read-only-tx",
	ReasonStale:         "stale",
	ReasonEmpty:         "empty",
	ReasonWrite:         "write",
	ReasonDDL:           "ddl",
	ReasonLock:          "lock",
	ReasonSession:       "session",
	ReasonTxControl:     "tx-control",
	ReasonCall:          "call",
	ReasonAdmin:         "admin",
	ReasonShow:          "show",
	ReasonMulti:         "multi",
	ReasonUnproven:      "unproven",
	ReasonLearned:       "learned",
	ReasonTransaction:   "transaction",
	ReasonPinned:        "pinned",
	ReasonAsked:         "asked",
	ReasonReadsOff:      "reads-off",
	ReasonNotOptedIn:    "not-opted-in",
	ReasonShadow:        "shadow",
	ReasonShadowRefused: "shadow-refused",
	ReasonOwnWrite:      "own-write",
	ReasonSessionWrite:  "session-write",
	ReasonProcessWrite:  "process-write",
	ReasonFresh:         "fresh",
	ReasonToken:         "token",
	ReasonMonotonic:     "monotonic",
	ReasonSingleNode:    "single-node",
	ReasonNoReplica:     "no-replica",
	ReasonLag:           "lag",
	ReasonUnmeasured:    "unmeasured",
	ReasonSerializable:  "serializable",
	ReasonConflict:      "conflict",
	ReasonMissing:       "missing",
	ReasonMiss:          "miss",
	ReasonRefused:       "refused",
}

// String returns the reason in one lower-case word with hyphens.
func (r Reason) String() string {
	if r < reasons {
		return reasonNames[r]
	}
	return "unknown"
}

// fallback tells whether r sends a read to the primary for want of a replica.
func (r Reason) fallback() bool {
	return r == ReasonNoReplica || r == ReasonLag
}

// behind tells whether r sends a read to the primary since no replica is known to
// be far enough.
func (r Reason) behind() bool {
	switch r {
	case ReasonOwnWrite, ReasonSessionWrite, ReasonProcessWrite, ReasonFresh, ReasonToken, ReasonMonotonic,
		ReasonLag, ReasonUnmeasured:
		return true
	default:
		return false
	}
}
