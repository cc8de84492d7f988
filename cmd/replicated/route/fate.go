package route

import (
	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/record"
)

// fate is what becomes of statements of a record, with replicas.
type fate uint8

const (
	fateStays     fate = iota // the primary runs it, behind any router
	fateMoves                 // a replica serves it
	fateStale                 // the primary serves it, since no replica is known to have what it must see
	fateBreaks                // the primary serves it, and a router by the first word would have sent it to a replica
	fateRefused               // this driver would have failed it
	fateUndecided             // a read that the primary served for another reason, so that nothing is known
	fates
)

// fateNames are those of -format json.
var fateNames = [fates]string{"stays", "replicas", "stale", "breaks", "refused", "undecided"}

// framing reports whether a line tells of no statement of its own: what opens and ends
// transactions, and empty texts.
func framing(l *record.Line) bool {
	return l.Class == "empty" || l.Class == "transaction" || l.Class == "read" && l.Keyword == "BEGIN"
}

// fateOf tells what becomes of the statements of a line, and why, in words.
func fateOf(l *record.Line) (fate, string) {
	if l.Role == replicated.RoleReplica.String() {
		return fateMoves, "served by a replica"
	}
	if why, ok := byReason[l.Reason]; ok && (why.fate != fateBreaks || readsByItsWord(l.Keyword)) {
		return why.fate, why.why
	}
	if why, ok := byClass[l.Class]; ok && readsByItsWord(l.Keyword) {
		return fateBreaks, why
	}
	if l.Class == "read" {
		if why, ok := undecided[l.Reason]; ok {
			return fateUndecided, why
		}
		return fateUndecided, l.Reason
	}
	return fateStays, l.Class
}

type fateWhy struct {
	fate fate
	why  string
}

// byReason are the reasons that tell by themselves. Others tell of the statement, as
// its class does.
var byReason = reasons(map[replicated.Reason]fateWhy{
	replicated.ReasonShadow:        {fateMoves, "a replica would have served it"},
	replicated.ReasonShadowRefused: {fateRefused, "not a proven read, in a read-only transaction"},

	replicated.ReasonOwnWrite:     {fateStale, "after a write on the same connection"},
	replicated.ReasonSessionWrite: {fateStale, "after a write of the same session"},
	replicated.ReasonProcessWrite: {fateStale, "after a write of the same process"},
	replicated.ReasonFresh:        {fateStale, "WithFresh: must see what anybody has written"},
	replicated.ReasonToken:        {fateStale, "with a token: after a write of another process"},
	replicated.ReasonMonotonic:    {fateStale, "must not go back behind what the session has read"},
	replicated.ReasonLag:          {fateStale, "no replica within max_lag"},
	replicated.ReasonMiss:         {fateStale, "a replica did not have the row yet"},

	replicated.ReasonTransaction:  {fateBreaks, "inside a transaction, whose writes and locks it would miss"},
	replicated.ReasonPinned:       {fateBreaks, "needs state of its connection: a temporary table, a lock, a role"},
	replicated.ReasonSerializable: {fateBreaks, "serializable, which a standby refuses"},
	replicated.ReasonLearned:      {fateBreaks, "a replica has refused it as a write"},
	replicated.ReasonRefused:      {fateBreaks, "a replica has refused it as a write"},
	replicated.ReasonMissing:      {fateBreaks, "a replica lacks the table, or what else it needs"},
	replicated.ReasonConflict:     {fateBreaks, "a replica has cancelled it in favour of recovery"},
})

// byClass are the classes of which a statement that begins like a read is none.
var byClass = map[string]string{
	"write":   "writes",
	"ddl":     "creates a table",
	"lock":    "locks: rows, or by an advisory lock",
	"session": "depends on its session, or changes it: advisory locks, user variables",
	"call":    "calls a procedure",
	"admin":   "controls the server",
	"multi":   "has a statement behind it that is no read",
	"unknown": "may write: calls a function that is not known to be harmless",
}

// undecided are the reasons for which a read ran on the primary that say nothing of
// whether a replica could have served it.
var undecided = map[string]string{
	replicated.ReasonAsked.String():      "asked for the primary",
	replicated.ReasonReadsOff.String():   "replicated.reads=off",
	replicated.ReasonNotOptedIn.String(): "not opted in",
	replicated.ReasonSingleNode.String(): "the cluster has no replica",
	replicated.ReasonNoReplica.String():  "no replica was up",
	replicated.ReasonUnmeasured.String(): "nothing was known of the replicas yet",
}

func reasons(of map[replicated.Reason]fateWhy) map[string]fateWhy {
	named := make(map[string]fateWhy, len(of))
	for r, w := range of {
		named[r.String()] = w
	}
	return named
}

// surelyWrites reports whether statements of a class that count as writes are such by
// their text.
func surelyWrites(class string) bool { return class == "write" || class == "ddl" }
