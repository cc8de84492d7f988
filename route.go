package replicated

import (
	"fmt"
	"math/bits"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// nodeSet is a set of nodes by their index in the cluster.
type nodeSet uint64

const maxNodes = 64

func (s nodeSet) has(i int) bool            { return s&(1<<uint(i)) != 0 }
func (s nodeSet) with(i int) nodeSet        { return s | 1<<uint(i) }
func (s nodeSet) without(t nodeSet) nodeSet { return s &^ t }
func (s nodeSet) len() int                  { return bits.OnesCount64(uint64(s)) }

// question is all that a routing decision depends on.
type question struct {
	verdict   classify.Verdict
	learned   bool // a replica has refused this text as a write
	begin     bool // a transaction is to be opened: the verdict is a read's if it is read-only
	primaryTx bool // … and read-only ones run on the primary too

	inTx     bool   // the Conn's primary connection is in a transaction
	shadowTx Reason // … that a replica would have run: what it would have made of this
	pinned   bool   // the Conn has state that replicas lack

	wishes       wishes
	reads        ReadsMode
	serializable bool // reads of this connection are serializable, which standbys refuse

	replicas   nodeSet // all the cluster has
	eligible   nodeSet // those that are up
	near       nodeSet // those that are known to be within the bound on lag
	past       nodeSet // those of them that are known to be past the read's floor
	unmeasured bool    // nothing is known of any yet
	floorWhy   Reason  // what raised the floor
	tried      nodeSet // those that have failed this statement

	bound  bound // what is asked of a replica
	waited bool  // for one to get there
}

// answer is a routing decision: any of the candidates, or the primary.
type answer struct {
	replicas nodeSet // candidates; none: the primary
	reason   Reason
}

// route decides where a statement runs. It is pure: the same question has the
// same answer. An error means that the statement must not run at all.
func route(q *question) (answer, error) {
	read, why := provenRead(q)
	if q.wishes.readOnly && !read {
		return answer{}, fmt.Errorf("%w: the context was made by WithReadOnly and the statement is not a proven read (%s)", ErrReadOnly, because(q, why))
	}
	if q.verdict.Hint == classify.HintReplica && !read {
		return answer{}, fmt.Errorf("replicated: the hint replicated:replica stands in a statement that is not a proven read (%s)", because(q, why))
	}
	if q.inTx && q.shadowTx != ReasonUnknown {
		return answer{reason: q.shadowTx}, nil
	}
	if q.inTx {
		return answer{reason: ReasonTransaction}, nil
	}
	if !read {
		return answer{reason: why}, nil
	}
	if q.pinned {
		return answer{reason: ReasonPinned}, nil
	}
	if q.primaryTx {
		return answer{reason: ReasonTxControl}, nil
	}
	if q.wishes.missed {
		return answer{reason: ReasonMiss}, nil
	}
	if q.reads == ReadsOff {
		return answer{reason: ReasonReadsOff}, nil
	}
	if q.verdict.Hint == classify.HintPrimary || q.wishes.primary && q.verdict.Hint != classify.HintReplica {
		return answer{reason: ReasonAsked}, nil
	}
	if q.reads == ReadsOptIn && !q.wishes.replica && q.verdict.Hint != classify.HintReplica {
		return answer{reason: ReasonNotOptedIn}, nil
	}
	if q.serializable {
		return answer{reason: ReasonSerializable}, nil
	}
	a := among(q)
	if q.reads == ReadsShadow && a.replicas != 0 {
		return answer{reason: ReasonShadow}, nil
	}
	return a, nil
}

// among chooses the candidates for a read that may go to a replica.
func among(q *question) answer {
	switch up := q.eligible.without(q.tried); {
	case q.replicas == 0:
		return answer{reason: ReasonSingleNode}
	case q.unmeasured && up != 0: // of what is taken out nothing is known, for it has no connections
		return answer{reason: ReasonUnmeasured}
	case q.past == 0 && q.near != 0: // it would need the primary anyway
		return answer{reason: q.floorWhy}
	case up == 0:
		return answer{reason: ReasonNoReplica}
	case up&q.near == 0:
		return answer{reason: ReasonLag}
	case up&q.past == 0:
		return answer{reason: q.floorWhy}
	default:
		return answer{replicas: up & q.past, reason: ReasonRead}
	}
}

// isRead tells whether the question is about what is read: a proven read, or a
// transaction, in which there may be some.
func (q *question) isRead() bool {
	read, _ := provenRead(q)
	return read || q.begin
}

// provenRead tells whether the statement may run on a replica by its text alone,
// and if not, why.
func provenRead(q *question) (bool, Reason) {
	if q.begin {
		return q.verdict.Class == classify.Read, ReasonTxControl
	}
	if q.learned {
		return false, ReasonLearned
	}
	if q.verdict.Class != classify.Empty && q.verdict.Replica() {
		return true, ReasonRead
	}
	return false, reasonOfClass(q.verdict.Class)
}

func reasonOfClass(c classify.Class) Reason {
	switch c {
	case classify.Empty:
		return ReasonEmpty
	case classify.Write:
		return ReasonWrite
	case classify.DDL:
		return ReasonDDL
	case classify.Lock:
		return ReasonLock
	case classify.Session:
		return ReasonSession
	case classify.Transaction:
		return ReasonTxControl
	case classify.Call:
		return ReasonCall
	case classify.Admin:
		return ReasonAdmin
	case classify.Show:
		return ReasonShow
	case classify.Multi:
		return ReasonMulti
	default:
		return ReasonUnproven
	}
}

// because puts into words why a statement is no proven read.
func because(q *question, why Reason) string {
	if q.verdict.Reason != "" {
		return q.verdict.Reason
	}
	return why.String()
}
