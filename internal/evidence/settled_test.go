package evidence_test

import (
	"testing"

	"github.com/sqlreplicated/replicated/internal/evidence"
	"github.com/sqlreplicated/replicated/internal/position"
)

// The log of a transaction that stays open is written and not durable: it keeps
// Whole back, but nothing that was acknowledged is missing for longer than a commit
// takes to settle.
func TestSettled(t *testing.T) {
	for _, tt := range []struct {
		name    string
		settles evidence.Moment
		applied uint64
		want    evidence.Moment
	}{
		{"known", 30, 15, 270},
		{"not known", 0, 15, 100},
		{"all of the log is there", 30, 20, 300},
		{"not even what is durable", 30, 10, 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b evidence.Book
			sample := func(at evidence.Moment, synced, whole uint64) {
				b.Sampled(evidence.Sample{
					At: at, Answered: at + 1, Opened: 1, Server: "A", Lineage: "1/1", Settles: tt.settles,
					Synced: position.FromLSN(synced), Whole: position.FromLSN(whole),
				})
			}
			see := func(at evidence.Moment, applied uint64) *evidence.Server {
				return b.Sighted(evidence.Sighting{
					Asked: at, Answered: at + 1, Server: "R", Lineage: "1/1", NeedsLineage: true, Applied: position.FromLSN(applied),
				})
			}
			sample(100, 10, 10)
			see(150, 10)
			sample(200, 11, 20)
			sample(300, 15, 20)
			p := see(400, tt.applied).Proof()
			if p == nil || p.Settled != tt.want {
				t.Fatalf("the proof is %+v, want Settled %d", p, tt.want)
			}
			if p.Settled < p.Whole || p.Settled > p.Synced {
				t.Errorf("Settled is not between Whole and Synced: %+v", p)
			}
		})
	}
}
