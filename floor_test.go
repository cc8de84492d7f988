package replicated

import (
	"context"
	"sync"
	"testing"
)

func TestStampOnlyMovesForward(t *testing.T) {
	var s stamp
	if got := s.load(); got != never {
		t.Fatalf("the zero stamp stands at %d, want never", got)
	}
	s.raise(7)
	s.raise(5)
	if got := s.load(); got != 7 {
		t.Errorf("after 7 and 5 the stamp stands at %d, want 7", got)
	}
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() { s.raise(moment(100 + i)) })
	}
	wg.Wait()
	if got := s.load(); got != 163 {
		t.Errorf("after concurrent raises the stamp stands at %d, want 163", got)
	}
}

func TestNowIsLaterThanNever(t *testing.T) {
	if a, b := now(), now(); a <= never || b < a {
		t.Errorf("now() = %d, then %d", a, b)
	}
}

// Each case writes in some scopes and reads in others; the floor of the read is
// the maximum over the scopes that it is entitled to.
func TestFloorOfRead(t *testing.T) {
	type world struct {
		f            floors
		outer, inner *Session
		other        *Session
		conn         ledger
		written      floor
	}
	newWorld := func() *world {
		ctx, outer := WithSession(context.Background())
		_, inner := WithSession(ctx)
		_, other := WithSession(context.Background())
		return &world{outer: outer, inner: inner, other: other}
	}
	wroteIn := func(pick func(*world) *Session) func(*world) {
		return func(w *world) { w.written = w.f.raise(pick(w), false, nil) }
	}
	none := func(*world) *Session { return nil }
	outer := func(w *world) *Session { return w.outer }
	inner := func(w *world) *Session { return w.inner }
	other := func(w *world) *Session { return w.other }
	onConn := func(w *world) { w.written = floor{Any: now()}; w.conn.raise(w.written, nil) }

	for _, tt := range []struct {
		name  string
		level Consistency
		write func(*world)
		read  func(*world) *Session
		sees  bool
		why   Reason
	}{
		{"process: another session's write binds a read without one", ConsistencyProcess, wroteIn(other), none, true, ReasonProcessWrite},
		{"process: a write without a session binds every session", ConsistencyProcess, wroteIn(none), inner, true, ReasonProcessWrite},
		{"process: another session's write does not bind a session", ConsistencyProcess, wroteIn(other), inner, false, 0},
		{"process: one's own", ConsistencyProcess, wroteIn(inner), inner, true, ReasonSessionWrite},
		{"process: the inner session's write binds the outer", ConsistencyProcess, wroteIn(inner), outer, true, ReasonSessionWrite},
		{"process: the outer session's write binds the inner", ConsistencyProcess, wroteIn(outer), inner, true, ReasonSessionWrite},
		{"process: the connection's", ConsistencyProcess, onConn, inner, true, ReasonOwnWrite},
		{"session: one's own", ConsistencySession, wroteIn(inner), inner, true, ReasonSessionWrite},
		{"session: a write without a session binds nobody", ConsistencySession, wroteIn(none), inner, false, 0},
		{"session: not even a read without one", ConsistencySession, wroteIn(none), none, false, 0},
		{"session: the connection's", ConsistencySession, onConn, none, true, ReasonOwnWrite},
		{"eventual: not even the session's", ConsistencyEventual, wroteIn(inner), inner, false, 0},
		{"eventual: the connection's", ConsistencyEventual, onConn, none, true, ReasonOwnWrite},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			tt.write(w)
			at, why := w.f.of(tt.level, &w.conn, tt.read(w), nil)
			if sees := at.Any >= w.written.Any && at.Any != never; sees != tt.sees {
				t.Fatalf("floor %d for a write at %d, want it covered: %v", at, w.written, tt.sees)
			}
			if tt.sees && why != tt.why {
				t.Errorf("the reason is %v, want %v", why, tt.why)
			}
		})
	}
}

// A session in the context never lowers a floor: whatever binds a read of the
// same scopes without it, of the process's writes outside any session, binds it
// with it too.
func TestSessionNeverWeakens(t *testing.T) {
	var f floors
	wrote := f.raise(nil, true, nil)
	_, s := WithSession(context.Background())
	for _, level := range []Consistency{ConsistencyEventual, ConsistencySession, ConsistencyProcess} {
		without, _ := f.of(level, new(ledger), nil, nil)
		with, _ := f.of(level, new(ledger), s, nil)
		if with.Any < without.Any || with.Async < without.Async {
			t.Errorf("%v: floor %d with a session, %d without, write at %d", level, with, without, wrote)
		}
	}
}

func TestFloorsAreSharedByCluster(t *testing.T) {
	a, b, c := floorsOf("one cluster"), floorsOf("one cluster"), floorsOf("another")
	if a != b {
		t.Error("two handles on one cluster have different floors")
	}
	if a == c {
		t.Error("two clusters share their floors")
	}
}

func TestSessionKeepsClustersApart(t *testing.T) {
	var f, g floors
	_, s := WithSession(context.Background())
	f.raise(s, false, nil)
	if at := s.floor(&g, nil); at != (floor{}) {
		t.Errorf("a write on one cluster raised the floor of another to %d", at)
	}
	if !s.Wrote() {
		t.Error("the session does not know that it wrote")
	}
}

func TestNilSession(t *testing.T) {
	s := SessionFromContext(context.Background())
	if s != nil {
		t.Fatalf("a bare context has the session %v", s)
	}
	if s.Wrote() {
		t.Error("a nil session wrote")
	}
	if at := s.floor(new(floors), nil); at != (floor{}) {
		t.Errorf("a nil session has the floor %d", at)
	}
}

func TestWroteBehindTheDriver(t *testing.T) {
	ctx, outer := WithSession(context.Background())
	ctx, inner := WithSession(ctx)
	_, other := WithSession(context.Background())
	before := now()
	Wrote(ctx)
	var f floors
	if at := inner.floor(&f, nil); at.Any < before || at.Async < before {
		t.Errorf("the session's floor is %d, want at least %d", at, before)
	}
	if at := outer.floor(&f, nil); at.Any < before {
		t.Errorf("the enclosing session's floor is %d, want at least %d", at, before)
	}
	if at := other.floor(&f, nil); at != (floor{}) {
		t.Errorf("another session's floor is %d", at)
	}
	t.Cleanup(func() { behindUs.at.Store(int64(never)) })
	Wrote(context.Background())
	if at, _ := f.of(ConsistencyProcess, new(ledger), other, nil); at.Any < before || at.Async < before {
		t.Errorf("outside any session it binds everybody; the floor is %d, want at least %d", at, before)
	}
}

func TestSessionIsSafeForConcurrentUse(t *testing.T) {
	_, s := WithSession(context.Background())
	fs := []*floors{new(floors), new(floors)}
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			at := fs[i%2].raise(s, false, nil)
			if got := s.floor(fs[i%2], nil); got.Any < at.Any {
				t.Errorf("the floor is %d after a write at %d", got, at)
			}
		})
	}
	wg.Wait()
}
