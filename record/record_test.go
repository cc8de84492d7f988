package record_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/faketime"
	"github.com/sqlreplicated/replicated/record"
)

// sink is a writer whose writes a test may hold up, cut short or refuse.
type sink struct {
	mu     sync.Mutex
	text   bytes.Buffer
	writes int
	refuse func(p []byte) (int, error) // nil: takes everything
}

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	refuse := s.refuse
	s.mu.Unlock()
	n, err := len(p), error(nil)
	if refuse != nil {
		n, err = refuse(p)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	s.text.Write(p[:n])
	return n, err
}

func (s *sink) set(refuse func(p []byte) (int, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = refuse
}

func (s *sink) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// lines reads a record that has nothing else in it.
func lines(t *testing.T, text string) (out []record.Line) {
	t.Helper()
	skipped, err := record.Read(strings.NewReader(text), func(l *record.Line) error {
		out = append(out, *l)
		return nil
	})
	if skipped > 0 || err != nil {
		t.Errorf("%d lines cannot be read, %v:\n%s", skipped, err, text)
	}
	return out
}

// told sums up what a record tells: statements, and dropped ones.
func told(t *testing.T, text string) (n, dropped int64) {
	t.Helper()
	for _, l := range lines(t, text) {
		if l.Class != "" {
			n += l.N
		}
		dropped += l.Dropped
	}
	return n, dropped
}

func event(caller string) replicated.RouteEvent {
	return replicated.RouteEvent{
		Caller: caller, Class: "read", Keyword: "SELECT", Node: "db1",
		Role: replicated.RolePrimary, Reason: replicated.ReasonShadow,
	}
}

func inBubble(t *testing.T, test func(t *testing.T, s *sink)) {
	t.Helper()
	faketime.Test(t, func(t *testing.T) { test(t, new(sink)) })
}

func closed(t *testing.T, r *record.Recorder) {
	t.Helper()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestLinesOfARecord(t *testing.T) {
	inBubble(t, func(t *testing.T, s *sink) {
		r := record.New(s, record.Options{})
		o := r.Observer(nil)
		for range 3 {
			o.Routed(event("GET /orders/{id}"))
		}
		failed := event("GET /orders/{id}")
		failed.Err = errors.New("no")
		o.Routed(failed)
		o.Routed(replicated.RouteEvent{Class: "write", Keyword: "INSERT", Role: replicated.RolePrimary, Reason: replicated.ReasonWrite, Write: true})
		prepared := event("GET /orders/{id}")
		prepared.Prepare = true
		o.Routed(prepared)
		o.Notice(replicated.Notice{Kind: replicated.NoticeLagUnmeasured, Node: "db2"})
		time.Sleep(10*time.Second + time.Millisecond)
		o.Routed(event("a \"b\"\n<c>"))
		closed(t, r)
		const want = `{"v":1,"at":"2000-01-01T00:00:00Z","began":true}
{"v":1,"at":"2000-01-01T00:00:10Z","class":"write","keyword":"INSERT","reason":"write","role":"primary","write":true,"n":1}
{"v":1,"at":"2000-01-01T00:00:10Z","caller":"GET /orders/{id}","class":"read","keyword":"SELECT","reason":"shadow","role":"primary","n":4,"failed":1}
{"v":1,"at":"2000-01-01T00:00:10Z","n":1,"notice":"lag-unmeasured"}
{"v":1,"at":"2000-01-01T00:00:10Z","caller":"a \"b\"\n<c>","class":"read","keyword":"SELECT","reason":"shadow","role":"primary","n":1}
`
		if got := s.String(); got != want {
			t.Errorf("the record is\n%s\nwant\n%s", got, want)
		}
		if s.writes != 3 {
			t.Errorf("%d writes, want one for the beginning and one for each interval", s.writes)
		}
	})
}

func TestObserversAreChained(t *testing.T) {
	inBubble(t, func(t *testing.T, s *sink) {
		var got []string
		next := &replicated.Observer{
			Routed:    func(e replicated.RouteEvent) { got = append(got, "routed "+e.Caller) },
			NodeState: func(e replicated.NodeStateEvent) { got = append(got, "state "+e.Node) },
			Notice:    func(n replicated.Notice) { got = append(got, "notice "+n.Kind.String()) },
		}
		r := record.New(s, record.Options{})
		use := func(o *replicated.Observer) {
			o.Routed(event("a"))
			if o.NodeState != nil {
				o.NodeState(replicated.NodeStateEvent{Node: "db2"})
			}
			o.Notice(replicated.Notice{Kind: replicated.NoticePooler})
		}
		use(r.Observer(next))
		use(r.Observer(nil))
		use(r.Observer(new(replicated.Observer)))
		closed(t, r)
		use(r.Observer(next)) // passed on, and not recorded
		const want = "[routed a state db2 notice pooler routed a state db2 notice pooler]"
		if fmt.Sprint(got) != want {
			t.Errorf("passed on: %v, want %s", got, want)
		}
		if n, _ := told(t, s.String()); n != 3 {
			t.Errorf("%d statements in the record, want 3", n)
		}
	})
}

// Without an event there is no goroutine, which a bubble would tell of, and no record.
func TestNothingIsWrittenOfNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, s *sink) {
		r := record.New(s, record.Options{})
		r.Observer(nil)
		time.Sleep(time.Minute)
		closed(t, r)
		closed(t, r)
		if s.writes != 0 {
			t.Errorf("%d writes: %s", s.writes, s)
		}
	})
	inBubble(t, func(t *testing.T, s *sink) {
		r := record.New(s, record.Options{})
		r.Observer(nil).Routed(event("a"))
		time.Sleep(time.Hour)
		closed(t, r)
		closed(t, r)
		if s.writes != 2 {
			t.Errorf("%d writes of one statement: %s", s.writes, s)
		}
	})
}

func TestStatementsOfTooManyKindsAreCounted(t *testing.T) {
	inBubble(t, func(t *testing.T, s *sink) {
		r := record.New(s, record.Options{Kinds: 2, Interval: time.Second})
		o := r.Observer(nil)
		for i := range 5 {
			o.Routed(event(fmt.Sprint("GET /", i)))
		}
		o.Routed(event("GET /0"))
		time.Sleep(time.Second + time.Millisecond) // there is room again
		o.Routed(event("GET /5"))
		o.Routed(event("GET /6"))
		closed(t, r)
		n, dropped := told(t, s.String())
		if n != 5 || dropped != 3 {
			t.Errorf("%d statements and %d dropped ones, want 5 and 3:\n%s", n, dropped, s)
		}
	})
}

func TestLongCallersAreCut(t *testing.T) {
	for _, name := range []string{strings.Repeat("x", 300), strings.Repeat("é", 150), "x" + strings.Repeat("é", 150), strings.Repeat("\x80", 300)} {
		inBubble(t, func(t *testing.T, s *sink) {
			r := record.New(s, record.Options{})
			r.Observer(nil).Routed(event(name))
			closed(t, r)
			l := lines(t, s.String())
			got := l[len(l)-1].Caller
			if utf8.ValidString(name) && (!strings.HasPrefix(name, got) || len(got) < 195 || len(got) > 200) {
				t.Errorf("%q… has become %d bytes, %q", name[:10], len(got), got)
			}
		})
	}
}

// Whoever runs a statement waits for no write, however long that takes, and nothing is
// lost by it.
func TestSlowWritersHoldNobodyUp(t *testing.T) {
	inBubble(t, func(t *testing.T, s *sink) {
		release := make(chan struct{})
		s.set(func(p []byte) (int, error) { <-release; return len(p), nil })
		r := record.New(s, record.Options{Interval: time.Second})
		o := r.Observer(nil)
		o.Routed(event("a"))
		synctest.Wait() // the writer hangs
		const rounds, each = 5, 1000
		for range rounds {
			began := time.Now()
			for range each {
				o.Routed(event("b"))
			}
			if took := time.Since(began); took != 0 {
				t.Errorf("statements have waited for %v", took)
			}
			time.Sleep(time.Second)
		}
		close(release)
		closed(t, r)
		if n, dropped := told(t, s.String()); n != rounds*each+1 || dropped != 0 {
			t.Errorf("%d statements, %d dropped, want %d and none", n, dropped, rounds*each+1)
		}
		if s.writes > 4 {
			t.Errorf("%d writes for what has come up during one", s.writes)
		}
	})
}

func TestFailedWrites(t *testing.T) {
	full := errors.New("no space left on device")
	for _, tt := range []struct {
		name   string
		refuse func(p []byte) (int, error)
		lost   int64
		want   error
	}{
		{"whole", func([]byte) (int, error) { return 0, full }, 3, full},
		{"within the first line", func([]byte) (int, error) { return 10, full }, 3, full},
		{"behind the first line", func(p []byte) (int, error) { return bytes.IndexByte(p, '\n') + 1, full }, 2, full},
		{"within the second line", func(p []byte) (int, error) { return bytes.IndexByte(p, '\n') + 20, full }, 2, full},
		{"short, and without an error", func(p []byte) (int, error) { return bytes.IndexByte(p, '\n') + 20, nil }, 2, io.ErrShortWrite},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *sink) {
				var errs []error
				r := record.New(s, record.Options{Interval: time.Second, Error: func(err error) { errs = append(errs, err) }})
				o := r.Observer(nil)
				o.Routed(event("a"))
				time.Sleep(1100 * time.Millisecond)
				series := func(want int) {
					t.Helper()
					s.set(tt.refuse)
					o.Routed(event("b"))
					o.Routed(event("c"))
					o.Routed(event("c"))
					for range 3 { // seconds
						time.Sleep(time.Second)
						o.Routed(event("d")) // fails once more, or not: refused as a whole line
					}
					s.set(nil)
					time.Sleep(time.Second)
					if len(errs) != want {
						t.Errorf("told of %d errors, want %d: one for each series", len(errs), want)
					}
				}
				series(1)
				series(2)
				if err := r.Close(); !errors.Is(err, tt.want) {
					t.Errorf("Close: %v, want the writer's own %v", err, tt.want)
				}
				if !errors.Is(errs[0], tt.want) {
					t.Errorf("told of %v", errs[0])
				}
				var n, dropped int64
				if _, err := record.Read(strings.NewReader(s.String()), func(l *record.Line) error {
					n += l.N
					dropped += l.Dropped
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				if n+dropped != 13 || dropped < 2*tt.lost {
					t.Errorf("%d statements and %d dropped ones, want 13 together, and at least %d dropped:\n%s", n, dropped, 2*tt.lost, s)
				}
			})
		})
	}
}

func TestRecorderIsSafeForConcurrentUse(t *testing.T) {
	s := new(sink)
	r := record.New(s, record.Options{Interval: time.Millisecond})
	const goroutines, each = 8, 2000
	var wg sync.WaitGroup
	for g := range goroutines {
		o := r.Observer(nil)
		wg.Go(func() {
			for i := range each {
				o.Routed(event(fmt.Sprint("GET /", (g+i)%7)))
				if i%100 == 0 {
					o.Notice(replicated.Notice{Kind: replicated.NoticePooler})
				}
			}
		})
	}
	wg.Wait()
	for range 2 {
		wg.Go(func() { closed(t, r) })
	}
	wg.Wait()
	if n, dropped := told(t, s.String()); n != goroutines*each || dropped != 0 {
		t.Errorf("%d statements, %d dropped, want %d and none", n, dropped, goroutines*each)
	}
}

// What a record takes does not depend on how many statements are run.
func TestVolume(t *testing.T) {
	const kinds = 50
	inBubble(t, func(t *testing.T, s *sink) {
		r := record.New(s, record.Options{})
		o := r.Observer(nil)
		for range 60 {
			for i := range 100 * kinds {
				o.Routed(event(fmt.Sprintf("GET /api/v1/resource-%d/{id}", i%kinds)))
			}
			time.Sleep(time.Second)
		}
		closed(t, r)
		size := len(s.String())
		t.Logf("%d bytes a minute for %d kinds", size, kinds)
		if size > 60_000 {
			t.Errorf("%d bytes a minute", size)
		}
	})
}

func BenchmarkRouted(b *testing.B) {
	r := record.New(io.Discard, record.Options{})
	o := r.Observer(nil)
	var events []replicated.RouteEvent
	for i := range 50 {
		events = append(events, event(fmt.Sprintf("GET /api/v1/resource-%d/{id}", i)))
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		o.Routed(events[i%len(events)])
		i++
	}
	if err := r.Close(); err != nil {
		b.Fatal(err)
	}
}
