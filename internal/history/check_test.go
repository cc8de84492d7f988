package history_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/internal/history"
)

// Short names for histories made by hand. Times are nanoseconds; a statement that
// starts at 10 takes until 11 unless the test says otherwise.
type (
	event   = history.Event
	session = history.SessionID
)

// write makes version v of key 1.
func write(v int64, called history.Moment, change ...func(*event)) event {
	return with(event{Kind: history.Write, Outcome: history.Acked, Key: 1, Version: v, Process: 1, Called: called, Returned: called + 1}, change)
}

// read shows version v of key 1.
func read(v int64, called history.Moment, change ...func(*event)) event {
	return with(event{Kind: history.Read, Outcome: history.Acked, Key: 1, Version: v, Process: 1, Called: called, Returned: called + 1}, change)
}

// remove makes version v of key 1 by deleting it.
func remove(v int64, called history.Moment, change ...func(*event)) event {
	e := write(v, called, change...)
	e.Kind = history.Delete
	return e
}

func end(tx int64, o history.Outcome, called history.Moment, change ...func(*event)) event {
	return with(event{Kind: history.TxEnd, Outcome: o, Tx: tx, Process: 1, Called: called, Returned: called + 1}, change)
}

func with(e event, change []func(*event)) event {
	for _, c := range change {
		c(&e)
	}
	return e
}

func in(s session) func(*event)              { return func(e *event) { e.Session = s } }
func conn(c int64) func(*event)              { return func(e *event) { e.Conn = c } }
func tx(n int64) func(*event)                { return func(e *event) { e.Tx = n } }
func process(p int32) func(*event)           { return func(e *event) { e.Process = p } }
func key(k int64) func(*event)               { return func(e *event) { e.Key = k } }
func value(v int64) func(*event)             { return func(e *event) { e.Value = v } }
func until(m history.Moment) func(*event)    { return func(e *event) { e.Returned = m } }
func outcome(o history.Outcome) func(*event) { return func(e *event) { e.Outcome = o } }
func untracked(e *event)                     { e.Untracked = true }
func monotonic(e *event)                     { e.Claim.Monotonic = true }
func stale(e *event)                         { e.Claim.Stale = true }
func since(m history.Moment) func(*event)    { return func(e *event) { e.Claim.Since = m } }
func token(t ...history.Token) func(*event)  { return func(e *event) { e.Claim.Tokens = t } }
func freshAt(m history.Moment) func(*event)  { return func(e *event) { e.Claim.Fresh = m } }
func maxLag(m history.Moment) func(*event)   { return func(e *event) { e.Claim.MaxLag = m } }
func unknown(e *event)                       { e.Outcome, e.Version = history.Unknown, 0 }
func failed(e *event)                        { e.Outcome, e.Version = history.Failed, 0 }

// Sessions of the histories: 2 and 3 are inside 1, 4 is inside 2, 5 stands alone.
var parents = []session{0, 0, 1, 1, 2, 0}

type checkCase struct {
	name   string
	events []event
	o      history.Options
	want   []history.Clause // in the order of the reads
}

func runCases(t *testing.T, cases []checkCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			found := history.Check(&history.History{Events: c.events, Parents: parents}, c.o)
			var got []history.Clause
			var text strings.Builder
			for _, v := range found {
				got = append(got, v.Clause)
				text.WriteString("\n" + v.String())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("found %v, want %v%s", got, c.want, text.String())
			}
		})
	}
}

func broken(c ...history.Clause) []history.Clause { return c }

func TestReadYourWrites(t *testing.T) {
	ryw := broken(history.ReadYourWrites)
	runCases(t, []checkCase{
		{name: "the version written is seen", events: []event{write(1, 10, in(5)), read(1, 20, in(5))}},
		{name: "a later version is seen", events: []event{write(1, 10, in(5)), write(2, 12), read(2, 20, in(5))}},
		{name: "an older version is seen", events: []event{write(1, 10, in(5)), write(2, 12, in(5)), read(1, 20, in(5))}, want: ryw},
		{name: "the key is not there yet", events: []event{write(1, 10, in(5)), read(0, 20, in(5))}, want: ryw},
		{name: "another key does not count", events: []event{write(1, 10, in(5), key(2)), read(0, 20, in(5))}},
		{name: "events may be recorded in any order", events: []event{read(0, 20, in(5)), write(1, 10, in(5))}, want: ryw},

		{name: "the write returned when the read was called", events: []event{write(1, 10, in(5)), read(0, 11, in(5))}},
		{name: "the write returned while the read ran", events: []event{write(1, 10, in(5), until(30)), read(0, 20, in(5))}},
		{name: "the write of another session", events: []event{write(1, 10, in(5)), read(0, 20, in(1))}},
		{name: "the write of another session inside the same", events: []event{write(1, 10, in(2)), read(0, 20, in(3))}, want: ryw},
		{name: "the write of a session inside", events: []event{write(1, 10, in(4)), read(0, 20, in(1))}, want: ryw},
		{name: "the write of the session around that around", events: []event{write(1, 10, in(1)), read(0, 20, in(4))}, want: ryw},

		{name: "outside sessions: any write of the process", events: []event{write(1, 10, in(5)), read(0, 20)}, want: ryw},
		{name: "outside sessions: not another process's", events: []event{write(1, 10, process(2)), read(0, 20)}},
		{name: "in a session: the process's writes outside sessions", events: []event{write(1, 10), read(0, 20, in(5))}, want: ryw},
		{name: "in a session: not another process's outside sessions", events: []event{write(1, 10, process(2)), read(0, 20, in(5))}},

		{name: "the connection's write, whatever the session", events: []event{write(1, 10, in(5), conn(7)), read(0, 20, in(1), conn(7))}, want: ryw},
		{name: "another connection's write", events: []event{write(1, 10, in(5), conn(7)), read(0, 20, in(1), conn(8))}},

		{name: "an untracked write", events: []event{write(1, 10, in(5), untracked), read(0, 20, in(5))}},
		{name: "floors waived", events: []event{write(1, 10, in(5)), read(0, 20, in(5), stale)}},
		{name: "a read that failed", events: []event{write(1, 10, in(5)), read(0, 20, in(5), outcome(history.Failed))}},
		{name: "each read counts", events: []event{write(1, 10), read(0, 20), read(1, 25), read(0, 30)},
			want: broken(history.ReadYourWrites, history.ReadYourWrites)},
	})
}

func TestLevels(t *testing.T) {
	events := []event{
		write(1, 10, in(5), conn(7)), write(2, 20, in(5)), write(3, 30), write(4, 40, in(1)),
		read(0, 50, in(5), conn(7)), // has to see 3, 2, 1 by level
		read(1, 51, in(5), conn(7)),
		read(2, 52, in(5), conn(7)),
		read(3, 53, in(5), conn(7)),
		read(3, 54), // has to see 4, nothing, nothing
	}
	for level, want := range map[history.Level]int{history.LevelProcess: 4, history.LevelSession: 2, history.LevelEventual: 1} {
		found := history.Check(&history.History{Events: events, Parents: parents}, history.Options{Level: level})
		if len(found) != want {
			t.Errorf("level %d: %d violations, want %d: %v", level, len(found), want, found)
		}
	}
}

func TestOutcomes(t *testing.T) {
	ryw := broken(history.ReadYourWrites)
	runCases(t, []checkCase{
		{name: "unknown, not seen", events: []event{write(1, 10, unknown), read(0, 20)}},
		{name: "unknown, seen", events: []event{write(0, 10, unknown, value(77)), read(1, 20, value(77))}},
		{name: "unknown, seen late", events: []event{write(0, 10, unknown, value(77)), read(0, 20), read(0, 900), read(1, 901, value(77))}},
		{name: "unknown, seen, then not: another node", events: []event{
			write(0, 10, unknown, value(77)), read(1, 20, in(5), value(77), monotonic), read(0, 30, in(5), monotonic)}},
		{name: "unknown, with a version: still due to nobody", events: []event{write(1, 10, outcome(history.Unknown)), read(0, 20)}},
		{name: "unknown, below one that is acknowledged", events: []event{
			write(0, 10, unknown, value(77)), write(2, 20, value(78)), read(1, 30, value(77))}, want: ryw},
		{name: "an error, nothing written", events: []event{write(1, 10, failed), read(0, 20)}},
		{name: "an error, and written all the same", events: []event{write(1, 10, outcome(history.Failed)), read(0, 20)}, want: ryw},
		{name: "acknowledged, version learned from another's read", events: []event{
			write(0, 10, value(77)), read(4, 15, process(2), value(77)), read(3, 20)}, want: ryw},
		{name: "acknowledged, version never learned", events: []event{write(0, 10, value(77)), read(3, 20)}},
		{name: "a write that never returned while others read", events: []event{
			write(1, 10, in(5), until(1000)), read(1, 20), read(0, 30), read(1, 40)}},
	})
}

func TestTransactions(t *testing.T) {
	ryw := broken(history.ReadYourWrites)
	ok, undone := history.Acked, history.Failed
	runCases(t, []checkCase{
		{name: "its own write is seen inside", events: []event{write(1, 10, tx(3)), read(1, 20, tx(3), since(5)), end(3, ok, 30)}},
		{name: "its own write is missed inside", events: []event{write(1, 10, tx(3)), read(0, 20, tx(3), since(5)), end(3, ok, 30)}, want: ryw},
		{name: "its own write is missed, then rolled back", events: []event{write(1, 10, tx(3)), read(0, 20, tx(3), since(5)), end(3, undone, 30)}, want: ryw},
		{name: "not seen outside before the commit", events: []event{write(1, 10, tx(3)), read(0, 20), end(3, ok, 30)}},
		{name: "not seen while it commits", events: []event{write(1, 10, tx(3)), read(0, 31), end(3, ok, 30, until(40))}},
		{name: "missed after the commit", events: []event{write(1, 10, tx(3)), end(3, ok, 30), read(0, 40)}, want: ryw},
		{name: "rolled back", events: []event{write(1, 10, tx(3)), end(3, undone, 30), read(0, 40)}},
		{name: "commit of unknown outcome", events: []event{write(1, 10, tx(3)), end(3, history.Unknown, 30), read(0, 40), read(1, 50), read(0, 60)}},
		{name: "end not recorded", events: []event{write(1, 10, tx(3)), read(0, 40)}},

		{name: "the session of BeginTx", events: []event{write(1, 10, tx(3), in(1)), end(3, ok, 30, in(5)), read(0, 40, in(5))}, want: ryw},
		{name: "the session of a statement inside", events: []event{write(1, 10, tx(3), in(1)), end(3, ok, 30, in(5)), read(0, 40, in(1))}, want: ryw},
		{name: "the session of another statement inside", events: []event{
			write(1, 10, tx(3), in(5)), write(9, 15, key(2), tx(3), in(1)), end(3, ok, 30, in(5)), read(0, 40, in(1))}, want: ryw},
		{name: "a session that had no part in it", events: []event{write(1, 10, tx(3), in(5)), end(3, ok, 30, in(5)), read(0, 40, in(1))}},
		{name: "the connection it ran on", events: []event{
			write(1, 10, tx(3), in(5), conn(7)), end(3, ok, 30, in(5), conn(7)), read(0, 40, in(1), conn(7))}, want: ryw},
		{name: "a statement outside sessions inside", events: []event{write(1, 10, tx(3)), end(3, ok, 30, in(5)), read(0, 40, in(1))}, want: ryw},

		{name: "a snapshot need not see what came after it", events: []event{write(1, 10), read(0, 20, tx(3), since(5))}},
		{name: "a snapshot misses what came before it", events: []event{write(1, 10), read(0, 20, tx(3), since(15))}, want: ryw},
	})
}

func TestFreshAndTokens(t *testing.T) {
	runCases(t, []checkCase{
		{name: "fresh: another process's write before", events: []event{write(1, 10, process(2)), read(0, 20, freshAt(15))}, want: broken(history.Fresh)},
		{name: "fresh: another process's write after", events: []event{write(1, 10, process(2)), read(0, 20, freshAt(9))}},
		{name: "fresh: an untracked write counts", events: []event{write(1, 10, process(2), untracked), read(0, 20, freshAt(15))}, want: broken(history.Fresh)},
		{name: "fresh: own writes after it count too", events: []event{write(1, 10, in(5)), read(0, 20, in(5), freshAt(9))}, want: broken(history.ReadYourWrites)},

		{name: "token: the write before it", events: []event{write(1, 10, in(5)), read(0, 20, process(2), token(history.Token{Session: 5, Taken: 15}))}, want: broken(history.Tokens)},
		{name: "token: the write after it", events: []event{write(1, 10, in(5)), read(0, 20, process(2), token(history.Token{Session: 5, Taken: 10}))}},
		{name: "token: of a session inside", events: []event{write(1, 10, in(4)), read(0, 20, process(2), token(history.Token{Session: 1, Taken: 15}))}, want: broken(history.Tokens)},
		{name: "token: of a session around", events: []event{write(1, 10, in(1)), read(0, 20, process(2), token(history.Token{Session: 4, Taken: 15}))}, want: broken(history.Tokens)},
		{name: "token: of another session", events: []event{write(1, 10, in(1)), read(0, 20, process(2), token(history.Token{Session: 5, Taken: 15}))}},
		{name: "token: of a process", events: []event{write(1, 10, in(1)), read(0, 20, process(2), token(history.Token{Process: 1, Taken: 15}))}, want: broken(history.Tokens)},
		{name: "token: the second of two", events: []event{write(1, 10, in(5)),
			read(0, 20, process(2), token(history.Token{Session: 1, Taken: 15}, history.Token{Session: 5, Taken: 15}))}, want: broken(history.Tokens)},
	})
}

func TestBoundedStaleness(t *testing.T) {
	lagging := broken(history.BoundedStaleness)
	bound := history.Options{MaxLag: 100}
	runCases(t, []checkCase{
		{name: "within the bound", o: bound, events: []event{write(1, 10, process(2)), read(0, 111)}},
		{name: "beyond the bound", o: bound, events: []event{write(1, 10, process(2)), read(0, 112)}, want: lagging},
		{name: "no bound", events: []event{write(1, 10, process(2)), read(0, 112)}},
		{name: "the read's own, tighter", o: bound, events: []event{write(1, 10, process(2)), read(0, 40, maxLag(20))}, want: lagging},
		{name: "waiving floors does not waive it", o: bound, events: []event{write(1, 10), read(0, 200, stale)}, want: lagging},
		{name: "a read that took long", o: bound, events: []event{write(1, 10, process(2)), read(0, 100, until(500))}},
		{name: "a transaction that took long", o: bound, events: []event{write(1, 10, process(2)), read(0, 500, tx(3), since(100))}},
		{name: "an older one that is acknowledged", o: bound, events: []event{
			write(1, 10, process(2)), write(2, 150, process(2)), read(0, 200)}, want: lagging},
		{name: "an unknown outcome", o: bound, events: []event{write(1, 10, process(2), unknown), read(0, 500)}},
		{name: "no primary: measured to the last moment it was", o: history.Options{MaxLag: 100, Unreachable: []history.Span{{From: 50, To: 900}}},
			events: []event{write(1, 10, process(2)), read(0, 900)}},
		{name: "no primary, and too old before", o: history.Options{MaxLag: 100, Unreachable: []history.Span{{From: 150, To: 900}}},
			events: []event{write(1, 10, process(2)), read(0, 900)}, want: lagging},
		{name: "a primary again", o: history.Options{MaxLag: 100, Unreachable: []history.Span{{From: 50, To: 900}}},
			events: []event{write(1, 10, process(2)), read(0, 901)}, want: lagging},
	})
}

func TestMonotonicReads(t *testing.T) {
	lost := broken(history.MonotonicReads)
	runCases(t, []checkCase{
		{name: "seen and lost", events: []event{write(1, 10, process(2)), read(1, 20, in(5), monotonic), read(0, 30, in(5), monotonic)}, want: lost},
		{name: "not asked for", events: []event{write(1, 10, process(2)), read(1, 20, in(5)), read(0, 30, in(5))}},
		{name: "asked for by the second alone", events: []event{write(1, 10, process(2)), read(1, 20, in(5)), read(0, 30, in(5), monotonic)}},
		{name: "two sessions", events: []event{write(1, 10, process(2)), read(1, 20, in(5), monotonic), read(0, 30, in(1), monotonic)}},
		{name: "seen in a session inside", events: []event{write(1, 10, process(2)), read(1, 20, in(4), monotonic), read(0, 30, in(1), monotonic)}, want: lost},
		{name: "outside sessions", events: []event{write(1, 10, process(2)), read(1, 20, monotonic), read(0, 30, monotonic)}},

		// A replica may show what the primary does not show yet.
		{name: "seen before it was acknowledged", events: []event{
			write(1, 10, process(2), until(25)), read(1, 20, in(5), monotonic), read(0, 30, in(5), monotonic)}},
		{name: "acknowledged when the read was called", events: []event{
			write(1, 10, process(2), until(20)), read(1, 20, in(5), monotonic), read(0, 30, in(5), monotonic)}},
		{name: "acknowledged while the read ran", events: []event{
			write(1, 10, process(2), until(21)), read(1, 20, in(5), monotonic, until(25)), read(0, 30, in(5), monotonic)}},
		{name: "acknowledged between the reads", events: []event{
			write(1, 10, process(2), until(25)), read(1, 20, in(5), monotonic), read(0, 30, in(5), monotonic)}},
		{name: "the unacknowledged part lost, the other kept", events: []event{
			write(1, 10, process(2)), write(2, 12, process(2), until(25)), read(2, 20, in(5), monotonic), read(1, 30, in(5), monotonic)}},
		{name: "both lost", events: []event{
			write(1, 10, process(2)), write(2, 12, process(2), until(25)), read(2, 20, in(5), monotonic), read(0, 30, in(5), monotonic)}, want: lost},
		{name: "acknowledged and not seen", events: []event{
			write(1, 10, process(2)), write(2, 12, process(2)), read(1, 20, in(5), monotonic), read(1, 30, in(5), monotonic)}},
		{name: "reads at the same time", events: []event{
			write(1, 10, process(2)), read(1, 20, in(5), monotonic, until(40)), read(0, 30, in(5), monotonic)}},
		{name: "a snapshot taken before", events: []event{
			write(1, 10, process(2)), read(1, 20, in(5), monotonic), read(0, 30, in(5), monotonic, tx(3), since(15))}},
	})
}

func TestDeletes(t *testing.T) {
	ryw := broken(history.ReadYourWrites)
	runCases(t, []checkCase{
		{name: "gone", events: []event{write(1, 10), remove(2, 20), read(0, 30)}},
		{name: "still there", events: []event{write(1, 10), remove(2, 20), read(1, 30)}, want: ryw},
		{name: "gone before the delete was called", events: []event{write(1, 10), read(0, 15), remove(2, 20)}, want: ryw},
		{name: "gone while the delete runs", events: []event{write(1, 10), read(0, 21), remove(2, 20, until(30))}},
		{name: "written again", events: []event{write(1, 10), remove(2, 20), write(3, 30), read(0, 40)}, want: ryw},
		{name: "by a delete of unknown outcome", events: []event{write(1, 10), remove(0, 20, unknown), read(0, 30)}},
		{name: "by a delete that was rolled back", events: []event{write(1, 10), remove(2, 20, tx(3)), end(3, history.Failed, 25), read(0, 30)}, want: ryw},
		{name: "in the transaction that is then rolled back", events: []event{
			write(1, 10), remove(2, 20, tx(3)), read(0, 22, tx(3), since(15)), end(3, history.Failed, 25)}},
	})
}

func TestIntegrity(t *testing.T) {
	impossible := broken(history.Integrity)
	runCases(t, []checkCase{
		{name: "what was written is shown", events: []event{write(1, 10, value(77)), read(1, 20, value(77))}},
		{name: "nobody wrote it", events: []event{write(1, 10, value(77)), read(1, 20, value(78))}, want: impossible},
		{name: "written to another key", events: []event{write(1, 10, value(77), key(2)), read(1, 20, value(77))}, want: impossible},
		{name: "not called yet", events: []event{read(1, 5, value(77)), write(1, 10, value(77))}, want: impossible},
		{name: "a write that failed", events: []event{write(1, 10, failed, value(77)), read(1, 20, value(77))}, want: impossible},
		{name: "rolled back", events: []event{write(1, 10, tx(3), value(77)), end(3, history.Failed, 20), read(1, 30, value(77))}, want: impossible},
		{name: "rolled back, seen inside", events: []event{write(1, 10, tx(3), value(77)), read(1, 15, tx(3), since(5), value(77)), end(3, history.Failed, 20)}},
		{name: "not committed yet", events: []event{write(1, 10, tx(3), value(77)), read(1, 15, value(77)), end(3, history.Acked, 20)}, want: impossible},
		{name: "committing", events: []event{write(1, 10, tx(3), value(77)), read(1, 15, value(77), until(21)), end(3, history.Acked, 20)}},
		{name: "two values of one version", events: []event{write(1, 10, unknown, value(77)), write(1, 20, value(78)), read(1, 30, value(77))}, want: impossible},
		{name: "two writers of one version", events: []event{write(1, 10, value(77)), write(1, 20, value(78))}, want: impossible},
		{name: "the version of a rolled back write is used again", events: []event{
			write(1, 10, tx(3), value(77)), end(3, history.Failed, 20), write(1, 30, value(78)), read(1, 40, value(78))}},
	})
}

func TestAtMostOnce(t *testing.T) {
	twice := broken(history.AtMostOnce)
	dense := history.Options{Dense: true}
	runCases(t, []checkCase{
		{name: "one value under two versions", events: []event{write(2, 10, value(77)), read(1, 9, value(77), until(12), process(2))}, want: twice},
		{name: "no gap", o: dense, events: []event{write(1, 10), write(2, 20), read(2, 30)}},
		{name: "a gap", o: dense, events: []event{write(1, 10), write(3, 20)}, want: twice},
		{name: "a gap below what a read shows", o: dense, events: []event{write(1, 10), read(2, 30)}, want: twice},
		{name: "a gap where versions need not be dense", events: []event{write(1, 10), write(3, 20)}},
		{name: "a gap for a write of unknown outcome", o: dense, events: []event{write(1, 10), write(0, 15, unknown), write(3, 20)}},
		{name: "a gap too many", o: dense, events: []event{write(1, 10), write(0, 15, unknown), write(4, 20)}, want: twice},
		{name: "a gap is not for a write that was rolled back", o: dense, events: []event{
			write(1, 10), write(2, 15, tx(3)), end(3, history.Failed, 16), write(3, 20)}, want: twice},
		{name: "a transaction may show what it rolls back", o: dense, events: []event{
			write(1, 10), write(2, 15, tx(3)), write(3, 16, tx(3)), read(3, 17, tx(3), since(12)), end(3, history.Failed, 18), write(2, 20)}},
	})
}

func TestViolationIsReadable(t *testing.T) {
	h := &history.History{Parents: parents, Events: []event{
		write(2, 1_000_000, in(4), value(101), func(e *event) { e.Worker = 3 }),
		read(1, 4_000_000, in(2), value(100), func(e *event) { e.Worker, e.Where = 8, "node3" }),
		write(1, 100, process(2), value(100), func(e *event) { e.Worker = 9 }),
	}}
	found := history.Check(h, history.Options{})
	if len(found) != 1 {
		t.Fatalf("%d violations, want 1", len(found))
	}
	const want = `read your writes: key 1: version 1 (value 100) seen, version 2 had to be
  read:  version 1 (value 100) by worker 8 of process 1, session 2 inside 1, on node3, called 4ms, returned 4.000001ms
  write: version 2 (value 101) by worker 3 of process 1, session 4 inside 2 inside 1, called 1ms, returned 1.000001ms, acknowledged
  due:   it was made in session 2 and it had returned at 1.000001ms, 3ms before the read began`
	if got := found[0].String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
