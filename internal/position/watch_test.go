package position_test

import (
	"context"
	"database/sql"
	"sync/atomic"
	"testing"

	"github.com/sqlreplicated/replicated/internal/position"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// watched is how to read positions of a kind of servers.
type watched struct {
	// write raises the counter, read returns it; if read is "", write does both.
	write, read string

	primary, replica func(context.Context, *sql.Conn) (position.Position, error)
}

// samplesWatched is enough for a wrong rule to show: a replica is behind at most
// of its first answers.
const samplesWatched = 150

// watch samples primary and replica while the table counter is written to, and
// checks that a replica which contains a sample shows all that was acknowledged
// before the sample began, that its position does not exceed a later sample, and
// that samples include their predecessors.
func watch(t *testing.T, cluster *replicatedtest.Cluster, w watched) {
	t.Helper()
	ctx, writer := session(t, cluster.Primary().AdminDB(t))
	_, sampler := session(t, cluster.Primary().AdminDB(t))
	_, reader := session(t, cluster.Replicas()[0].AdminDB(t))
	if err := cluster.WaitCaughtUp(ctx); err != nil {
		t.Fatal(err)
	}
	var acknowledged atomic.Int64
	// A few writes for each sample, so that the replica is behind, but not ever
	// farther behind.
	permits := make(chan struct{}, 20)
	stopped := make(chan error, 1)
	go func() {
		for range permits {
			n, err := w.count(ctx, writer)
			if err != nil {
				stopped <- err
				return
			}
			acknowledged.Store(n)
		}
		stopped <- nil
	}()
	defer func() {
		close(permits)
		if err := <-stopped; err != nil {
			t.Errorf("writing: %v", err)
		}
	}()

	sample := func(read func(context.Context, *sql.Conn) (position.Position, error), conn *sql.Conn) position.Position {
		p, err := read(ctx, conn)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	var last position.Position
	behind, contained := 0, 0
	for ; contained < samplesWatched || acknowledged.Load() < samplesWatched; contained++ {
		for len(permits) < cap(permits) {
			permits <- struct{}{}
		}
		// The sampler's own write is the youngest there is.
		atLeast, err := w.count(ctx, sampler)
		if err != nil {
			t.Fatal(err)
		}
		q := sample(w.primary, sampler)
		if !last.IsZero() && !q.Includes(last) {
			t.Fatalf("%q does not include its predecessor %q", q, last)
		}
		last = q
		for {
			p := sample(w.replica, reader)
			var shown int64
			ask(t, ctx, reader, "SELECT n FROM counter", &shown)
			if later := sample(w.primary, sampler); p.Exceeds(later) {
				t.Fatalf("the replica's %q exceeds the later sample %q", p, later)
			}
			if p.Contains(q) {
				if shown < atLeast {
					t.Fatalf("%q contains %q, but shows %d of %d", p, q, shown, atLeast)
				}
				break
			}
			behind++
		}
	}
	t.Logf("%d samples contained, %d times not yet", contained, behind)
}

// count writes once and returns the counter.
func (w watched) count(ctx context.Context, conn *sql.Conn) (n int64, err error) {
	query := w.write
	if w.read != "" {
		if _, err := conn.ExecContext(ctx, w.write); err != nil {
			return 0, err
		}
		query = w.read
	}
	err = conn.QueryRowContext(ctx, query).Scan(&n)
	return n, err
}
