package replicated_test

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/history"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// The writes of the promise's workload, each with what it records.

// perhaps returns a context that ends early now and then.
func (s *scope) perhaps() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(s.ctx)
	if s.rng.IntN(40) == 0 && s.cancelling.TryRLock() {
		stop := time.AfterFunc(s.upTo(4*time.Millisecond), cancel)
		return ctx, func() { stop.Stop(); cancel(); s.cancelling.RUnlock() }
	}
	return ctx, cancel
}

// write runs a statement of its own that writes, and records its outcome.
func (s *scope) write(e history.Event, run func(context.Context) (version int64, err error)) history.Outcome {
	ctx, cancel := s.perhaps()
	defer cancel()
	if e.Untracked {
		ctx = replicated.WithUntracked(ctx)
	}
	e.Called = s.rec.Now()
	version, err := run(ctx)
	e.Returned = s.rec.Now()
	if e.Outcome = s.outcomeOf("a write", err); e.Outcome == history.Acked {
		s.statements.Add(1)
		e.Version = version
	}
	s.log.Add(e)
	s.touched = append(s.touched, e.Key)
	return e.Outcome
}

// update raises a hot row, against everybody else.
func (s *scope) update() {
	e := s.event(history.Write, s.hot())
	e.Value = s.rec.Next()
	s.updateHot(e)
}

func (s *scope) untracked() {
	e := s.event(history.Write, s.hot())
	e.Value, e.Untracked = s.rec.Next(), true
	s.updateHot(e)
}

func (s *scope) updateHot(e history.Event) {
	prepared := s.handle != nil && s.rng.IntN(2) == 0
	s.write(e, func(ctx context.Context) (version int64, err error) {
		if s.text.engine == replicatedtest.Postgres {
			var row *sql.Row
			if prepared {
				row = s.handle.update.QueryRowContext(ctx, e.Value, e.Key)
			} else {
				row = s.on.QueryRowContext(ctx, s.text.update, e.Value, e.Key)
			}
			return version, row.Scan(&version)
		}
		var result sql.Result
		if prepared {
			result, err = s.handle.update.ExecContext(ctx, e.Value, e.Key)
		} else {
			result, err = s.on.ExecContext(ctx, s.text.update, e.Value, e.Key)
		}
		if err != nil {
			return 0, err
		}
		return result.LastInsertId()
	})
}

// insert makes a row of one's own, and tells everybody of the key before it is
// there.
func (s *scope) insert() {
	e := s.event(history.Write, hotKeys+s.rec.Next())
	e.Value = s.rec.Next()
	s.recent[s.rng.IntN(len(s.recent))].Store(e.Key)
	if s.exec(e, 1, s.text.insert, e.Key, e.Value) == history.Acked {
		s.own = append(s.own, ownRow{e.Key, 1})
	}
}

// exec runs a write whose version is known if it succeeds.
func (s *scope) exec(e history.Event, version int64, query string, args ...any) history.Outcome {
	return s.write(e, func(ctx context.Context) (int64, error) {
		_, err := s.on.ExecContext(ctx, query, args...)
		return version, err
	})
}

// takeOwn takes one of the user's own rows away from him; one whose write has an
// unknown outcome he does not get back, as he can't count any more.
func (s *scope) takeOwn() (row ownRow, ok bool) {
	if len(s.own) == 0 {
		s.insert()
		return row, false
	}
	i := s.rng.IntN(len(s.own))
	row = s.own[i]
	s.own = slices.Delete(s.own, i, i+1)
	return row, true
}

func (s *scope) bumpOwn() {
	row, ok := s.takeOwn()
	if !ok {
		return
	}
	e := s.event(history.Write, row.key)
	e.Value = s.rec.Next()
	if s.exec(e, row.version+1, s.text.bump, e.Value, e.Key) == history.Acked {
		s.own = append(s.own, ownRow{row.key, row.version + 1})
	}
}

func (s *scope) remove() {
	if row, ok := s.takeOwn(); ok {
		s.exec(s.event(history.Delete, row.key), row.version+1, s.text.remove, row.key)
	}
}

// behind writes past the driver and tells it so. The write is the session's, and not
// its program's. Outside sessions it would hold the reads of every program.
func (s *scope) behind() {
	if s.session == 0 {
		s.read()
		return
	}
	row, ok := s.takeOwn()
	if !ok {
		return
	}
	e := s.event(history.Write, row.key)
	e.Conn, e.Value, e.Called = 0, s.rec.Next(), s.rec.Now()
	_, err := s.side().ExecContext(s.ctx, s.text.bump, e.Value, e.Key)
	replicated.Wrote(s.ctx)
	e.Returned = s.rec.Now()
	if e.Outcome = s.outcomeOf("a write behind the driver", err); err == nil {
		s.statements.Add(1)
		e.Version = row.version + 1
		s.own = append(s.own, ownRow{row.key, e.Version})
	}
	s.others.Add(e)
	s.touched = append(s.touched, row.key)
}
