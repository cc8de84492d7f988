package replicated

import (
	"errors"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// A read on a cluster of a primary (0) and replicas 1 and 2, both fit.
func plainRead() question {
	return question{
		verdict:  classify.Verdict{Class: classify.Read, Keyword: "SELECT"},
		replicas: set(1, 2), eligible: set(1, 2), near: set(1, 2), past: set(1, 2),
		floorWhy: ReasonProcessWrite,
	}
}

func set(members ...int) nodeSet {
	var s nodeSet
	for _, i := range members {
		s = s.with(i)
	}
	return s
}

func TestRoute(t *testing.T) {
	verdict := func(c classify.Class, e classify.Effect) func(*question) {
		return func(q *question) {
			q.verdict = classify.Verdict{Class: c, Effect: e, Reason: "no read"}
		}
	}
	hint := func(h classify.Hint) func(*question) { return func(q *question) { q.verdict.Hint = h } }
	all := func(changes ...func(*question)) func(*question) {
		return func(q *question) {
			for _, change := range changes {
				change(q)
			}
		}
	}
	inTx := func(q *question) { q.inTx = true }
	pinned := func(q *question) { q.pinned = true }
	reads := func(m ReadsMode) func(*question) { return func(q *question) { q.reads = m } }
	wish := func(w wishes) func(*question) { return func(q *question) { q.wishes = w } }
	past := func(s nodeSet) func(*question) { return func(q *question) { q.past = s } }
	begin := func(c classify.Class) func(*question) {
		return func(q *question) { q.begin, q.verdict = true, classify.Verdict{Class: c} }
	}

	for _, tt := range []struct {
		name     string
		change   func(*question)
		replicas nodeSet
		reason   Reason
	}{
		{"a read goes to any replica", func(*question) {}, set(1, 2), ReasonRead},
		{"a read tried on one goes to the other", func(q *question) { q.tried = set(1) }, set(2), ReasonRead},
		{"a read tried on both goes to the primary", func(q *question) { q.tried = set(1, 2) }, 0, ReasonNoReplica},
		{"a replica that is out gets none", func(q *question) { q.eligible = set(2) }, set(2), ReasonRead},
		{"none is up", func(q *question) { q.eligible = 0 }, 0, ReasonNoReplica},
		{"there is none", func(q *question) { q.replicas, q.eligible = 0, 0 }, 0, ReasonSingleNode},
		{"only one is past the floor", past(set(2)), set(2), ReasonRead},
		{"none is past the floor", past(0), 0, ReasonProcessWrite},
		{"the one past the floor has failed", all(past(set(2)), func(q *question) { q.tried = set(2) }), 0, ReasonProcessWrite},
		{"none is within the bound on lag", all(past(0), func(q *question) { q.near = 0 }), 0, ReasonLag},
		{"the one within the bound is out", all(past(set(2)), func(q *question) { q.near, q.eligible = set(2), set(1) }), 0, ReasonLag},
		{"nothing is known yet", all(past(0), func(q *question) { q.near, q.unmeasured = 0, true }), 0, ReasonUnmeasured},
		{"none is up, and none known to be fresh", all(past(0), func(q *question) { q.near, q.eligible = 0, 0 }), 0, ReasonNoReplica},

		{"nothing at all", verdict(classify.Empty, 0), 0, ReasonEmpty},
		{"a write", verdict(classify.Write, classify.Stamps), 0, ReasonWrite},
		{"DDL", verdict(classify.DDL, classify.Stamps), 0, ReasonDDL},
		{"a lock", verdict(classify.Lock, 0), 0, ReasonLock},
		{"session state", verdict(classify.Session, classify.Pins), 0, ReasonSession},
		{"transaction control", verdict(classify.Transaction, classify.OpensTx), 0, ReasonTxControl},
		{"a call", verdict(classify.Call, classify.Stamps), 0, ReasonCall},
		{"administration", verdict(classify.Admin, 0), 0, ReasonAdmin},
		{"a SHOW of one server", verdict(classify.Show, 0), 0, ReasonShow},
		{"a SHOW of metadata", func(q *question) { q.verdict = classify.Verdict{Class: classify.Show} }, set(1, 2), ReasonRead},
		{"several statements", verdict(classify.Multi, classify.Stamps), 0, ReasonMulti},
		{"unknown", verdict(classify.Unknown, classify.Stamps), 0, ReasonUnproven},
		{"learned to be a write", func(q *question) { q.learned = true }, 0, ReasonLearned},

		{"in a transaction", inTx, 0, ReasonTransaction},
		{"a transaction wins over the wish for a replica", all(inTx, wish(wishes{replica: true})), 0, ReasonTransaction},
		{"a transaction wins over the hint", all(inTx, hint(classify.HintReplica)), 0, ReasonTransaction},
		{"pinned", pinned, 0, ReasonPinned},
		{"a pin wins over the wish for a replica", all(pinned, wish(wishes{replica: true})), 0, ReasonPinned},
		{"a pin wins over stale reads", all(pinned, wish(wishes{stale: true})), 0, ReasonPinned},

		{"the context asks for the primary", wish(wishes{primary: true}), 0, ReasonAsked},
		{"the hint asks for the primary", hint(classify.HintPrimary), 0, ReasonAsked},
		{"the hint is nearer than the context", all(wish(wishes{primary: true}), hint(classify.HintReplica)), set(1, 2), ReasonRead},
		{"a hint honours floors", all(past(0), hint(classify.HintReplica)), 0, ReasonProcessWrite},
		{"reads are off", reads(ReadsOff), 0, ReasonReadsOff},
		{"reads are off for the hint too", all(reads(ReadsOff), hint(classify.HintReplica)), 0, ReasonReadsOff},
		{"not opted in", reads(ReadsOptIn), 0, ReasonNotOptedIn},
		{"opted in by context", all(reads(ReadsOptIn), wish(wishes{replica: true})), set(1, 2), ReasonRead},
		{"opted in by hint", all(reads(ReadsOptIn), hint(classify.HintReplica)), set(1, 2), ReasonRead},
		{"opting in honours floors", all(reads(ReadsOptIn), past(0), wish(wishes{replica: true})), 0, ReasonProcessWrite},
		{"shadow", reads(ReadsShadow), 0, ReasonShadow},
		{"shadow, and no replica would have served", all(reads(ReadsShadow), past(0)), 0, ReasonProcessWrite},
		{"in a transaction that a replica would have run", all(inTx, reads(ReadsShadow), func(q *question) { q.shadowTx = ReasonShadow }), 0, ReasonShadow},
		{"in one, and refused there", all(inTx, reads(ReadsShadow), func(q *question) { q.shadowTx = ReasonShadowRefused }), 0, ReasonShadowRefused},
		{"serializable", func(q *question) { q.serializable = true }, 0, ReasonSerializable},

		{"a read-only transaction", begin(classify.Read), set(1, 2), ReasonRead},
		{"a read-write transaction", begin(classify.Transaction), 0, ReasonTxControl},
		{"read-only transactions on the primary", all(begin(classify.Read), func(q *question) { q.primaryTx = true }), 0, ReasonTxControl},
		{"a serializable read-only transaction", all(begin(classify.Read), func(q *question) { q.serializable = true }), 0, ReasonSerializable},
		{"a read-only transaction of a pinned connection", all(begin(classify.Read), pinned), 0, ReasonPinned},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := plainRead()
			tt.change(&q)
			got, err := route(&q)
			if err != nil {
				t.Fatal(err)
			}
			if got.replicas != tt.replicas || got.reason != tt.reason {
				t.Errorf("route = replicas %b for %v, want %b for %v", got.replicas, got.reason, tt.replicas, tt.reason)
			}
		})
	}
}

func TestRouteRefuses(t *testing.T) {
	write := classify.Verdict{Class: classify.Write, Effect: classify.Stamps, Reason: "writes rows"}
	for _, tt := range []struct {
		name     string
		change   func(*question)
		readOnly bool // by ErrReadOnly
		says     string
	}{
		{"a write where only reads are allowed", func(q *question) {
			q.verdict, q.wishes.readOnly = write, true
		}, true, "writes rows"},
		{"a write in a transaction where only reads are allowed", func(q *question) {
			q.verdict, q.wishes.readOnly, q.inTx = write, true, true
		}, true, "writes rows"},
		{"a read-write transaction where only reads are allowed", func(q *question) {
			q.begin, q.verdict, q.wishes.readOnly = true, classify.Verdict{Class: classify.Transaction}, true
		}, true, "tx-control"},
		{"a learned write where only reads are allowed", func(q *question) {
			q.learned, q.wishes.readOnly = true, true
		}, true, "learned"},
		{"a hint that would send a write to a replica", func(q *question) {
			q.verdict = write
			q.verdict.Hint = classify.HintReplica
		}, false, "replicated:replica"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := plainRead()
			tt.change(&q)
			a, err := route(&q)
			if err == nil {
				t.Fatalf("route = %+v, want an error", a)
			}
			if errors.Is(err, ErrReadOnly) != tt.readOnly || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %q, want ErrReadOnly: %v, and the words %q", err, tt.readOnly, tt.says)
			}
		})
	}
}

func TestReasonsHaveNames(t *testing.T) {
	seen := make(map[string]Reason)
	for r := range reasons {
		name := r.String()
		if other, dup := seen[name]; name == "" || dup {
			t.Errorf("reason %d is called %q, as %d is", r, name, other)
		}
		seen[name] = r
	}
	if got := reasons.String(); got != "unknown" {
		t.Errorf("a reason that does not exist is called %q", got)
	}
}
