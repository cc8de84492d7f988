package evidence_test

import (
	"testing"
	"testing/quick"

	"github.com/sqlreplicated/replicated/internal/evidence"
)

func TestPast(t *testing.T) {
	for _, tt := range []struct {
		name  string
		proof *evidence.Proof
		floor evidence.Floor
		want  bool
	}{
		{"no proof", nil, evidence.Floor{}, false},
		{"nothing asked", &evidence.Proof{Synced: 1, Whole: 1}, evidence.Floor{}, true},
		{"nothing proven", &evidence.Proof{Read: 5}, evidence.Floor{}, false},
		{"later", &evidence.Proof{Synced: 11, Whole: 11}, evidence.All(10), true},
		{"the same moment does not do", &evidence.Proof{Synced: 10, Whole: 10}, evidence.All(10), false},
		{"… where durable commits are asked for", &evidence.Proof{Synced: 10, Whole: 10}, evidence.Floor{Any: 10}, false},
		{"earlier", &evidence.Proof{Synced: 9, Whole: 9}, evidence.All(10), false},
		{"durable commits only", &evidence.Proof{Synced: 11, Whole: 5}, evidence.Floor{Any: 10}, true},
		{"… and an earlier one that was not", &evidence.Proof{Synced: 11, Whole: 5}, evidence.Floor{Any: 10, Async: 4}, true},
		{"… and one at the same moment", &evidence.Proof{Synced: 11, Whole: 5}, evidence.Floor{Any: 10, Async: 5}, false},
		{"all commits", &evidence.Proof{Synced: 11, Whole: 5}, evidence.All(10), false},
		{"no sample contained whole, and none asked for", &evidence.Proof{Synced: 11}, evidence.Floor{Any: 10}, true},
		{"… and one asked for", &evidence.Proof{Synced: 11}, evidence.Floor{Any: 10, Async: 1}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.proof.Past(tt.floor); got != tt.want {
				t.Errorf("%+v past %+v: %v", tt.proof, tt.floor, got)
			}
		})
	}
}

func TestHoldsFor(t *testing.T) {
	var none *evidence.Proof
	p := &evidence.Proof{Read: 10}
	if none.HoldsFor(0) || !p.HoldsFor(9) || !p.HoldsFor(10) || p.HoldsFor(11) {
		t.Error("a proof is about the connections that were opened no later than the position was asked for")
	}
}

// What is past two floors is past both together, and the other way round.
func TestMaxAsksForBoth(t *testing.T) {
	property := func(synced, whole, any1, async1, any2, async2 int8) bool {
		p := &evidence.Proof{Synced: evidence.Moment(synced), Whole: evidence.Moment(whole)}
		f := evidence.Floor{Any: evidence.Moment(any1), Async: evidence.Moment(async1)}
		g := evidence.Floor{Any: evidence.Moment(any2), Async: evidence.Moment(async2)}
		return p.Past(f.Max(g)) == (p.Past(f) && p.Past(g)) && f.Max(g) == g.Max(f)
	}
	if err := quick.Check(property, nil); err != nil {
		t.Error(err)
	}
}

func BenchmarkPast(b *testing.B) {
	var book evidence.Book
	book.Sampled(sample(10, 100))
	s := book.Sighted(sighting(11, "R", 100))
	book.Sampled(sample(20, 100))
	f := evidence.Floor{Any: 19, Async: 5}
	b.ReportAllocs()
	for b.Loop() {
		if !s.Proof().Past(f) {
			b.Fatal("not past")
		}
	}
}

// A sighting of a set with many servers, against a book that is full.
func BenchmarkSighted(b *testing.B) {
	var book evidence.Book
	for i := range 256 {
		book.Sampled(sample(evidence.Moment(10*i+10), uint64(100+i)))
	}
	p := sighting(3000, "R", 200)
	book.Sighted(p)
	book.Sampled(sample(4000, 1000))
	p.Asked, p.Answered = 5000, 5000
	b.ReportAllocs()
	for b.Loop() {
		book.Sighted(p)
	}
}
