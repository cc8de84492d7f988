package evidence_test

import (
	"testing"

	"github.com/sqlreplicated/replicated/internal/evidence"
	"github.com/sqlreplicated/replicated/internal/position"
)

func mustSet(t *testing.T, text string) position.Position {
	t.Helper()
	p, err := position.ParseGTIDSet(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const uuid = "11111111-1111-1111-1111-111111111111"

// What the next primary has of what the former one had is told once, as far as it can
// be.
func TestSuccession(t *testing.T) {
	lsn := position.FromLSN
	set := func(numbers string) position.Position { return mustSet(t, uuid+":"+numbers) }
	file := func(n uint64) position.Position { return position.FilePosition("a", "bin.000001", n) }
	next := func(n uint64) position.Position { return position.FilePosition("b", "bin.000001", n) }
	type told struct{ kept, missing bool }
	for _, tt := range []struct {
		name          string
		was           position.Position // the former primary's last sample
		final         position.Position // what it said in stepping down
		heir          position.Position // what the next one had applied as a replica
		now           position.Position // its first sample
		lineage, then string
		want          told
	}{
		{"the standby had it", lsn(100), position.Position{}, lsn(100), lsn(150), "s/1", "s/2", told{kept: true}},
		{"the standby had it, as far as was seen", lsn(100), position.Position{}, lsn(90), lsn(150), "s/1", "s/2", told{}},
		{"its log ends before", lsn(100), position.Position{}, lsn(90), lsn(95), "s/1", "s/2", told{missing: true}},
		{"the same timeline: a restart", lsn(100), position.Position{}, position.Position{}, lsn(120), "s/1", "s/1", told{kept: true}},
		{"… that lost something", lsn(100), position.Position{}, position.Position{}, lsn(99), "s/1", "s/1", told{missing: true}},
		{"a set with all of it", set("1-9"), position.Position{}, set("1-9"), set("1-12"), "", "", told{kept: true}},
		{"a set without some of it", set("1-9"), position.Position{}, set("1-8"), set("1-8"), "", "", told{missing: true}},
		{"what came after the last sample", set("1-9"), set("1-11"), set("1-10"), set("1-10"), "", "", told{missing: true}},
		{"files, which the replica had applied", file(7), position.Position{}, file(7), next(3), "", "", told{kept: true}},
		{"files, and nothing is known", file(7), position.Position{}, file(5), next(3), "", "", told{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b evidence.Book
			sample := func(at evidence.Moment, server, lineage string, p position.Position) {
				b.Sampled(evidence.Sample{At: at, Answered: at + 1, Opened: at - 1, Server: server, Lineage: lineage, Synced: p, Whole: p})
			}
			sample(10, "a", tt.lineage, tt.was)
			if _, ok := b.Succession(); ok {
				t.Error("told before anything has changed")
			}
			b.Sighted(evidence.Sighting{Asked: 12, Answered: 13, Server: "b", Lineage: tt.lineage, NeedsLineage: tt.lineage != "", Exact: true, Applied: tt.heir})
			upto := evidence.Moment(10)
			if !tt.final.IsZero() {
				upto = 15
				b.Final("a", upto, tt.final)
			}
			b.Meet("b", tt.then, 20)
			if _, ok := b.Succession(); ok {
				t.Error("told before the next primary was sampled")
			}
			sample(22, "b", tt.then, tt.now)
			s, ok := b.Succession()
			if !ok || s.Upto != upto || s.Kept != tt.want.kept || s.Missing != tt.want.missing {
				t.Errorf("%+v, %v", s, ok)
			}
			sample(24, "b", tt.then, tt.now)
			if _, ok := b.Succession(); ok {
				t.Error("told twice")
			}
		})
	}
}
