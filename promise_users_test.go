package replicated_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/lib/pq"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/history"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// user is one goroutine of a program.
type user struct {
	*promise
	program *program
	log     *history.Log
	rng     *rand.Rand
	own     []ownRow
}

// ownRow is a row that only its user writes, who knows its version by counting.
type ownRow struct{ key, version int64 }

// scope is where a user works for a while: a session or none, a connection that
// is held or none.
type scope struct {
	*user
	ctx     context.Context
	session history.SessionID
	conn    int64
	on      database
	handle  *handle // nil where a connection is held
	lost    bool    // the connection held
	depth   int     // of sessions
	touched []int64 // keys written here: what a user looks at next
}

// database is a *sql.DB or a *sql.Conn.
type database interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
	QueryRowContext(context.Context, string, ...any) *sql.Row
	BeginTx(context.Context, *sql.TxOptions) (*sql.Tx, error)
}

// visit is a request, or a job, or some lines of main.
func (u *user) visit(ctx context.Context) {
	h := u.program.handles[u.rng.IntN(2)]
	s := &scope{user: u, ctx: ctx, on: h, handle: h}
	if u.program.sessions || !u.program.plain && u.rng.IntN(2) == 0 {
		s = s.inSession()
	}
	if u.rng.IntN(5) == 0 {
		conn, err := h.Conn(ctx)
		if err != nil {
			u.errs.add("checking out", err)
			return
		}
		defer conn.Close()
		s.on, s.handle, s.conn = conn, nil, u.rec.Next()
		defer s.asynchronous()()
	}
	for i := 2 + u.rng.IntN(12); i > 0 && ctx.Err() == nil && !s.lost; i-- {
		s.step()
		u.think()
	}
	u.job(ctx, h)
}

// job is what a program of sessions writes outside them, once in a while.
func (u *user) job(ctx context.Context, h *handle) {
	at := u.program.nextJob.Load()
	now := int64(u.rec.Now())
	if !u.program.sessions || now < at || !u.program.nextJob.CompareAndSwap(at, now+int64(u.upTo(8*time.Second))) {
		return
	}
	(&scope{user: u, ctx: ctx, on: h, handle: h}).update()
}

func (u *user) upTo(d time.Duration) time.Duration { return time.Duration(u.rng.Int64N(int64(d))) }

// think lets time pass, mostly little.
func (u *user) think() {
	d := u.upTo(10 * time.Millisecond)
	switch n := u.rng.IntN(100); {
	case n < 3:
		d = u.upTo(500 * time.Millisecond)
	case n < 20:
		d = u.upTo(60 * time.Millisecond)
	}
	time.Sleep(d)
}

// asynchronous lets a held connection of PostgreSQL commit without waiting for the
// log, now and then; half of these stay so when they go back to the pool.
func (s *scope) asynchronous() (undo func()) {
	if s.text.engine != replicatedtest.Postgres || s.durable || s.rng.IntN(4) > 0 {
		return func() {}
	}
	set := func(query string) {
		if _, err := s.on.ExecContext(s.ctx, query); err != nil {
			s.failed("setting", err)
		}
	}
	set("SET synchronous_commit = off")
	return func() {
		if s.rng.IntN(2) == 0 {
			set("RESET synchronous_commit")
		}
	}
}

// inSession returns the scope inside a new session.
func (s *scope) inSession() *scope {
	inner := *s
	inner.ctx, _ = replicated.WithSession(s.ctx)
	inner.session = s.rec.Session(s.session)
	inner.depth++
	return &inner
}

// step does one thing. A plain program mostly reads: it writes in bursts, so that
// its reads have a chance of a replica in between.
func (s *scope) step() {
	n := s.rng.IntN(100)
	if s.program.plain && n < 30 {
		now := int64(s.rec.Now())
		at := s.program.nextJob.Load()
		switch {
		case now < at:
			n = 30 + s.rng.IntN(70)
		case s.rng.IntN(4) == 0: // the end of a burst
			s.program.nextJob.Store(now + int64(s.upTo(6*time.Second)))
		}
	}
	switch {
	case n < 8:
		s.update()
	case n < 12:
		s.bumpOwn()
	case n < 16:
		s.insert()
	case n < 17:
		s.remove()
	case n < 23:
		s.transaction()
	case n < 25:
		s.behind()
	case n < 26:
		s.untracked()
	case n < 30:
		s.nest()
	case n < 36:
		s.snapshot()
	case n < 40:
		s.freshRead()
	case n < 43:
		s.staleRead()
	case n < 46:
		s.primaryRead()
	case n < 48:
		s.tightRead()
	case n < 50:
		s.monotonicReads()
	case n < 52:
		s.takeToken()
	case n < 56:
		s.tokenRead()
	case n < 64:
		s.readThree()
	default:
		s.read()
	}
}

// nest does some things in a session inside, or in two goroutines at once.
func (s *scope) nest() {
	if s.program.plain {
		s.fork()
		return
	}
	if s.depth < 3 && s.rng.IntN(3) > 0 {
		inner := s.inSession()
		for i := 1 + s.rng.IntN(4); i > 0 && !inner.lost; i-- {
			inner.step()
		}
		s.touched, s.lost = append(s.touched, inner.touched...), inner.lost
		return
	}
	s.fork()
}

// fork does some things in the same session on two goroutines.
func (s *scope) fork() {
	if s.handle == nil {
		return
	}
	var wg sync.WaitGroup
	for range 2 {
		u := &user{promise: s.promise, program: s.program, log: s.rec.Log(s.program.id), rng: rand.New(rand.NewPCG(s.rng.Uint64(), 0))}
		other := &scope{user: u, ctx: s.ctx, session: s.session, on: s.on, handle: s.handle, depth: 3, touched: slices.Clip(s.touched)}
		wg.Go(func() {
			for range 3 {
				other.read()
				other.update()
				other.read()
			}
		})
	}
	wg.Wait()
}

// key is one that the user reads: what was written here, a hot one, one's own, or
// one that somebody inserted lately.
func (s *scope) key() int64 {
	n := s.rng.IntN(10)
	switch {
	case n < 4 && len(s.touched) > 0:
		return s.touched[len(s.touched)-1-s.rng.IntN(min(4, len(s.touched)))]
	case n < 5 && len(s.own) > 0:
		return s.own[s.rng.IntN(len(s.own))].key
	case n < 7:
		if key := s.recent[s.rng.IntN(len(s.recent))].Load(); key != 0 {
			return key
		}
	}
	return s.hot()
}

func (s *scope) hot() int64 { return 1 + s.rng.Int64N(hotKeys) }

func (s *scope) event(k history.Kind, key int64) history.Event {
	return history.Event{Kind: k, Session: s.session, Conn: s.conn, Key: key}
}

// failed keeps the books on errors that a program may meet: the nemesis cuts
// connections.
func (s *scope) failed(what string, err error) {
	if s.handle == nil {
		what += " on a held connection"
	}
	s.lost = s.lost || s.handle == nil && (errors.Is(err, sql.ErrConnDone) || errors.Is(err, driver.ErrBadConn))
	s.errs.add(what, err)
}

// outcomeOf tells what is known of a write by what it returned.
func (s *scope) outcomeOf(what string, err error) history.Outcome {
	switch {
	case err == nil:
		return history.Acked
	case rolledBack(err):
		s.errs.add("a deadlock", nil)
		return history.Failed
	case errors.Is(err, replicated.ErrNoPrimary): // which says that nothing was sent
		s.failed(what, err)
		return history.Failed
	default:
		s.failed(what, err)
		return history.Unknown
	}
}

// rolledBack tells whether the server says that the statement's transaction has
// been undone for another one's sake.
func rolledBack(err error) bool {
	if pe := new(pq.Error); errors.As(err, &pe) {
		return pe.Code == "40P01" || pe.Code == "40001"
	}
	me := new(mysql.MySQLError)
	return errors.As(err, &me) && me.Number == 1213
}

// errorCount counts errors by what was tried.
type errorCount struct {
	sync.Mutex
	counts   map[string]int
	examples map[string]error
	kinds    map[string]int // by what the error was
}

func (c *errorCount) add(what string, err error) {
	c.Lock()
	defer c.Unlock()
	if c.counts == nil {
		c.counts, c.examples, c.kinds = make(map[string]int), make(map[string]error), make(map[string]int)
	}
	c.kinds[errorKind(err)]++
	switch {
	case errors.Is(err, context.Canceled):
		what += ", cancelled"
	case errors.Is(err, replicated.ErrOutcomeUnknown):
		what += ", outcome unknown"
	case errors.Is(err, replicated.ErrNotFresh):
		what += ", not fresh"
	case errors.Is(err, replicated.ErrNoPrimary):
		what += ", no primary"
	}
	c.counts[what]++
	c.examples[what] = err
}

func (c *errorCount) String() string {
	c.Lock()
	defer c.Unlock()
	text := ""
	for what, n := range c.counts {
		text += fmt.Sprintf("\n  %d × %s: %v", n, what, c.examples[what])
	}
	return text
}
