package replicated_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/history"
)

// The reads of the promise's workload, each with what it records.

// show runs a read of keys and records what it showed of each.
func (s *scope) show(tx int64, claim history.Claim, query func() (*sql.Rows, error), keys ...int64) {
	events := make([]history.Event, len(keys))
	for i, key := range keys {
		events[i] = s.event(history.Read, key)
		events[i].Tx, events[i].Claim, events[i].Outcome, events[i].Called = tx, claim, history.Acked, s.rec.Now()
	}
	where, err := scanShown(query, events)
	if err != nil {
		what := "a read"
		if tx != 0 {
			what += " in a transaction"
		}
		s.failed(what, err)
		return
	}
	s.statements.Add(1)
	at := s.rec.Now()
	for _, e := range events {
		e.Returned, e.Where = at, s.names[where]
		s.log.Add(e)
	}
}

// scanShown fills in what the rows show of the events' keys, and returns the port
// of the server that answered.
func scanShown(query func() (*sql.Rows, error), events []history.Event) (port int64, err error) {
	rows, err := query()
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var id, version, value sql.NullInt64
		if err := rows.Scan(&port, &id, &version, &value); err != nil {
			return 0, err
		}
		for i := range events {
			if events[i].Key == id.Int64 {
				events[i].Version, events[i].Value = version.Int64, value.Int64
			}
		}
	}
	if err := rows.Err(); err != nil {
		return 0, err
	}
	return port, rows.Close()
}

func (s *scope) read() { s.readWith(s.ctx, history.Claim{}) }

// readWith reads one key by text, with an argument, or by a prepared statement.
func (s *scope) readWith(ctx context.Context, claim history.Claim) {
	key := s.key()
	s.show(0, claim, func() (*sql.Rows, error) {
		switch n := s.rng.IntN(3); {
		case n == 0 && s.handle != nil:
			return s.handle.read.QueryContext(ctx, key)
		case n == 1:
			return s.on.QueryContext(ctx, s.text.literal+fmt.Sprint(key))
		default:
			return s.on.QueryContext(ctx, s.text.read, key)
		}
	}, key)
}

func (s *scope) readThree() {
	keys := []int64{s.key(), s.hot(), s.key()}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	args := []any{keys[0], keys[0], keys[0]}
	for i, key := range keys {
		args[i] = key
	}
	s.show(0, history.Claim{}, func() (*sql.Rows, error) { return s.on.QueryContext(s.ctx, s.text.readThree, args...) }, keys...)
}

// primaryRead reads on the primary, by the context or by a hint.
func (s *scope) primaryRead() {
	if s.rng.IntN(2) == 0 {
		s.readWith(replicated.WithPrimary(s.ctx), history.Claim{})
		return
	}
	key := s.key()
	s.show(0, history.Claim{}, func() (*sql.Rows, error) { return s.on.QueryContext(s.ctx, s.text.readHint, key) }, key)
}

// freshRead reads what anybody has written, once or some times with one context.
func (s *scope) freshRead() {
	claim := history.Claim{Fresh: s.rec.Now()}
	ctx := replicated.WithFresh(s.ctx)
	for range 1 + s.rng.IntN(3) {
		s.readWith(ctx, claim)
	}
}

// staleRead waives the floors, not the bound on lag.
func (s *scope) staleRead() {
	bound := 500*time.Millisecond + s.upTo(time.Second)
	s.readWith(replicated.WithStaleReads(s.ctx, bound), history.Claim{Stale: true, MaxLag: bound})
}

// tightRead asks for less lag than the configuration does.
func (s *scope) tightRead() {
	bound := 20*time.Millisecond + s.upTo(400*time.Millisecond)
	s.readWith(replicated.WithMaxLag(s.ctx, bound), history.Claim{MaxLag: bound})
}

// monotonicReads reads the same hot rows again and again, so that a step back would
// show.
func (s *scope) monotonicReads() {
	if s.session == 0 {
		s.read()
		return
	}
	ctx, keys := replicated.WithMonotonicReads(s.ctx), []int64{s.hot(), s.hot()}
	for range 4 + s.rng.IntN(8) {
		key := keys[s.rng.IntN(2)]
		s.show(0, history.Claim{Monotonic: true}, func() (*sql.Rows, error) { return s.on.QueryContext(ctx, s.text.read, key) }, key)
		time.Sleep(s.upTo(20 * time.Millisecond))
	}
}

// takeToken leaves a token for the users of all programs to find.
func (s *scope) takeToken() {
	if s.session == 0 && !s.program.plain { // it would ask for every write there is
		s.read()
		return
	}
	taken := history.Token{Process: s.program.id, Session: s.session, Taken: s.rec.Now()}
	text, err := s.program.cluster.Token(s.ctx)
	if err != nil {
		s.failed("making a token", err)
		return
	}
	s.tokens[s.rng.IntN(len(s.tokens))].Store(&issuedToken{text, taken, s.touched})
}

// issuedToken is a token, with what it stands for.
type issuedToken struct {
	text    string
	stands  history.Token
	touched []int64
}

// tokenRead reads with one or two tokens that somebody took, as a user's next
// request does, or another program.
func (s *scope) tokenRead() {
	t := *s
	var claim history.Claim
	var texts []string
	for range 1 + s.rng.IntN(2) {
		if found := s.tokens[s.rng.IntN(len(s.tokens))].Load(); found != nil {
			claim.Tokens, texts = append(claim.Tokens, found.stands), append(texts, found.text)
			t.touched = append(t.touched[:len(t.touched):len(t.touched)], found.touched...)
		}
	}
	ctx, err := replicated.WithToken(s.ctx, texts...)
	if err != nil {
		s.failed("reading a token", err)
		return
	}
	for range 1 + s.rng.IntN(3) {
		t.readWith(ctx, claim)
	}
	s.lost = t.lost
}
