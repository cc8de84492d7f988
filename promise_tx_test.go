package replicated_test

import (
	"database/sql"
	"errors"
	"slices"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/history"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// The transactions of the promise's workload.

// transaction writes one or two hot rows and reads them back, in one session or
// with a statement in another one, and commits or does not.
func (s *scope) transaction() {
	id, begun := s.rec.Next(), s.rec.Now()
	ctx, cancel := s.perhaps()
	defer cancel()
	tx, err := s.on.BeginTx(ctx, nil)
	if err != nil {
		s.failed("beginning", err)
		return
	}
	defer tx.Rollback() //nolint:errcheck // it has ended before, or is of no use
	t := &txScope{scope: *s, tx: tx, id: id}
	t.ctx = ctx
	if s.text.engine != replicatedtest.Postgres {
		t.since = begun // repeatable read: the snapshot may be as old as the transaction
	}
	if s.text.engine == replicatedtest.Postgres && !s.durable && s.rng.IntN(8) == 0 {
		if _, err := tx.ExecContext(ctx, "SET LOCAL synchronous_commit = off"); err != nil {
			s.failed("setting", err)
		}
	}
	if s.rng.IntN(4) == 0 {
		key := s.key()
		t.show(id, history.Claim{Since: t.since}, t.reader(key), key)
	}
	keys := []int64{s.hot(), s.hot()}
	slices.Sort(keys) // fewer deadlocks
	ok := true
	for i := 0; ok && i <= s.rng.IntN(2); i++ {
		ok = t.bumpAndRead(keys[i])
	}
	t.end(ok && s.rng.IntN(6) > 0)
	s.touched, s.lost = append(s.touched, keys...), t.lost
}

// txScope is a scope inside a read-write transaction.
type txScope struct {
	scope
	tx    *sql.Tx
	id    int64
	since history.Moment
}

func (t *txScope) reader(key int64) func() (*sql.Rows, error) {
	return func() (*sql.Rows, error) { return t.tx.QueryContext(t.ctx, t.text.read, key) }
}

// bumpAndRead writes a row and reads its version back.
func (t *txScope) bumpAndRead(key int64) bool {
	in := t.scope
	if t.rng.IntN(6) == 0 && !t.program.plain {
		in = *t.inSession()
	}
	e := in.event(history.Write, key)
	e.Tx, e.Value, e.Called = t.id, t.rec.Next(), t.rec.Now()
	_, err := t.tx.ExecContext(in.ctx, t.text.bump, e.Value, key)
	e.Returned = t.rec.Now()
	if e.Outcome = t.outcomeOf("a write in a transaction", err); e.Outcome != history.Acked {
		t.log.Add(e)
		return false
	}
	t.statements.Add(1)
	back := []history.Event{in.event(history.Read, key)}
	r := &back[0]
	r.Tx, r.Outcome, r.Claim.Since, r.Called = t.id, history.Acked, t.since, t.rec.Now()
	where, err := scanShown(t.reader(key), back)
	r.Returned, r.Where = t.rec.Now(), t.names[where]
	switch {
	case err != nil:
		t.failed("a read in a transaction", err)
	case r.Value != e.Value:
		t.failed("reading back", errNotReadBack)
		t.log.Add(*r)
	default:
		t.statements.Add(1)
		e.Version = r.Version
		t.log.Add(*r)
	}
	t.log.Add(e)
	return err == nil
}

var errNotReadBack = errors.New("a transaction does not see what it wrote")

func (t *txScope) end(commit bool) {
	e := t.event(history.TxEnd, 0)
	e.Tx, e.Called = t.id, t.rec.Now()
	if commit {
		e.Outcome = t.outcomeOf("a commit", t.tx.Commit())
	} else {
		_ = t.tx.Rollback() // whatever it returns: nobody has said COMMIT
		e.Outcome = history.Failed
	}
	e.Returned = t.rec.Now()
	t.log.Add(e)
}

// snapshot reads some keys in a read-only transaction.
func (s *scope) snapshot() {
	claim, ctx := history.Claim{}, s.ctx
	if s.rng.IntN(5) == 0 {
		claim.Fresh = s.rec.Now()
		ctx = replicated.WithFresh(ctx)
	}
	id := s.rec.Next()
	claim.Since = s.rec.Now()
	tx, err := s.on.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		s.failed("beginning a read-only transaction", err)
		return
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it has nothing to do
	for range 1 + s.rng.IntN(3) {
		key := s.key()
		s.show(id, claim, func() (*sql.Rows, error) { return tx.QueryContext(ctx, s.text.read, key) }, key)
	}
	if err := tx.Commit(); err != nil {
		s.failed("ending a read-only transaction", err)
	}
}
