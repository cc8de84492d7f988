package replicated_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/history"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// chaosLedger writes rows with unique numbers, and knows of each what was returned. The
// table has no key, so that a row that is written twice is there twice.
type chaosLedger struct {
	*promise
	insert string

	mu       sync.Mutex
	last     int64
	outcomes map[int64]history.Outcome
	errors   map[int64]error  // of those that failed
	acks     []history.Moment // in order
}

func newChaosLedger(t *testing.T, p *promise) *chaosLedger {
	t.Helper()
	mustExec(t, p.side(), "CREATE TABLE ledger (id bigint NOT NULL)")
	return &chaosLedger{
		promise: p, insert: "INSERT INTO ledger (id) VALUES (" + placeholder(p.text.engine, 1) + ")",
		outcomes: make(map[int64]history.Outcome), errors: make(map[int64]error),
	}
}

// run writes, some milliseconds apart, until ctx ends, with two writers in each
// program. What is under way then is waited for, while the context of the statements
// lasts.
func (l *chaosLedger) run(ctx, statements context.Context, seed uint64) {
	var wg sync.WaitGroup
	for i := range 2 * len(l.programs) {
		h := l.programs[i/2].handles[i%2]
		rng := rand.New(rand.NewPCG(seed, 3000+uint64(i)))
		wg.Go(func() {
			for ctx.Err() == nil {
				l.write(statements, h.DB, rng)
				time.Sleep(time.Duration(rng.Int64N(int64(20 * time.Millisecond))))
			}
		})
	}
	wg.Wait()
}

// write writes a row: by text, with an argument, or in a transaction.
func (l *chaosLedger) write(ctx context.Context, db *sql.DB, rng *rand.Rand) {
	l.mu.Lock()
	l.last++
	id := l.last
	l.outcomes[id] = history.Unknown
	l.mu.Unlock()
	var err error
	what := "a write of the ledger"
	switch rng.IntN(3) {
	case 0:
		_, err = db.ExecContext(ctx, fmt.Sprintf("INSERT INTO ledger (id) VALUES (%d)", id))
	case 1:
		_, err = db.ExecContext(ctx, l.insert, id)
	default:
		what += " in a transaction"
		err = l.inTransaction(ctx, db, id)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.outcomes[id] = history.Acked
		l.acks = append(l.acks, l.rec.Now())
		l.statements.Add(1)
		return
	case !errors.Is(err, replicated.ErrOutcomeUnknown): // then it is certain that nothing happened
		l.outcomes[id], l.errors[id] = history.Failed, err
	}
	l.errs.add(what, err)
}

func (l *chaosLedger) inTransaction(ctx context.Context, db *sql.DB, id int64) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is none
	var n int64
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM kv WHERE id <= 3").Scan(&n); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, l.insert, id); err != nil {
		return err
	}
	return tx.Commit()
}

// audit compares the ledger with what a node has: each acknowledged row once, none
// twice, and none whose writer was told that it was not written.
func (l *chaosLedger) audit(t *testing.T, n *replicatedtest.Node) {
	t.Helper()
	rows, err := bare(t, n).QueryContext(t.Context(), "SELECT id, count(*) FROM ledger GROUP BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	there := make(map[int64]int)
	for rows.Next() {
		var id int64
		var count int
		if err := rows.Scan(&id, &count); err != nil {
			t.Fatal(err)
		}
		there[id] = count
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var lost, doubled, phantom []string
	var counts [3]int
	for id := int64(1); id <= l.last; id++ {
		o, count := l.outcomes[id], there[id]
		counts[o]++
		switch {
		case count > 1:
			doubled = append(doubled, fmt.Sprint(id))
		case count == 0 && o == history.Acked:
			lost = append(lost, fmt.Sprint(id))
		case count == 1 && o == history.Failed:
			phantom = append(phantom, fmt.Sprintf("%d (%v)", id, l.errors[id]))
		}
		delete(there, id)
	}
	if len(lost)+len(doubled)+len(phantom)+len(there) > 0 {
		t.Errorf("%s: %s acknowledged writes are lost, %s are doubled, %s are there that failed, %d that nobody wrote",
			n.Name(), firstOf(lost), firstOf(doubled), firstOf(phantom), len(there))
	}
	if n == l.cluster.Primary() {
		t.Logf("ledger: %d writes acknowledged, %d failed, %d unknown", counts[history.Acked], counts[history.Failed], counts[history.Unknown])
	}
}

// firstOf tells how many there are, and the first of them.
func firstOf(all []string) string {
	return fmt.Sprintf("%d [%s]", len(all), strings.Join(all[:min(len(all), 10)], ", "))
}

// pause returns the longest time without an acknowledged write that overlaps the span.
func (l *chaosLedger) pause(s history.Span) (longest time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i, _ := slices.BinarySearch(l.acks, s.From)
	for i = max(i, 1); i < len(l.acks) && l.acks[i-1] < s.To; i++ {
		longest = max(longest, l.acks[i]-l.acks[i-1])
	}
	return longest
}
