package history_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/sqlreplicated/replicated/internal/history"
)

func TestRecorder(t *testing.T) {
	r := history.NewRecorder()
	outer := r.Session(0)
	inner := r.Session(outer)
	before := r.Now()
	var wg sync.WaitGroup
	logs := []*history.Log{r.Log(1), r.Log(2)}
	for i := range 8 {
		wg.Go(func() {
			for range 100 {
				e := history.Event{Kind: history.Write, Value: r.Next(), Session: inner, Called: r.Now()}
				e.Returned = r.Now()
				logs[i%2].Add(e)
				r.History() // may be asked for at any time
			}
		})
	}
	wg.Wait()
	h := r.History()
	if len(h.Events) != 800 {
		t.Fatalf("%d events, want 800", len(h.Events))
	}
	if h.Parents[inner] != outer || h.Parents[outer] != 0 {
		t.Errorf("parents %v, want %d inside %d", h.Parents, inner, outer)
	}
	values := make(map[int64]bool)
	for _, e := range h.Events {
		if e.Worker == 0 || e.Worker != e.Process {
			t.Fatalf("worker %d of process %d, want those of the log", e.Worker, e.Process)
		}
		if e.Called < before || e.Returned < e.Called || before == 0 {
			t.Fatalf("times run backwards: %v, %v, %v", before, e.Called, e.Returned)
		}
		if values[e.Value] || e.Value == 0 {
			t.Fatalf("value %d twice, or none", e.Value)
		}
		values[e.Value] = true
	}
}

// calm is a history without violations: n events of sessions that read and write
// hot keys and their own.
func calm(n int) *history.History {
	rng := rand.New(rand.NewPCG(1, 2))
	h := &history.History{Parents: []history.SessionID{0}}
	versions := make(map[int64]int64)
	var now history.Moment
	for len(h.Events) < n {
		h.Parents = append(h.Parents, history.SessionID(rng.IntN(len(h.Parents))/2))
		s := history.SessionID(len(h.Parents) - 1)
		for range 10 {
			key := 1 + rng.Int64N(32)
			if rng.IntN(2) == 0 {
				key = 1000 + int64(s)
			}
			e := history.Event{Kind: history.Read, Outcome: history.Acked, Process: rng.Int32N(2), Session: s, Key: key, Called: now + 1, Returned: now + 5}
			e.Claim.Monotonic = rng.IntN(2) == 0
			if rng.IntN(4) == 0 {
				e.Kind, e.Value = history.Write, int64(len(h.Events))+1
				versions[key]++
			}
			e.Version = versions[key]
			h.Events = append(h.Events, e)
			now += 5
		}
	}
	return h
}

func BenchmarkCheckMillion(b *testing.B) {
	h := calm(1_000_000)
	for b.Loop() {
		if found := history.Check(h, history.Options{MaxLag: 1000, Dense: true}); len(found) > 0 {
			b.Fatal(found[0])
		}
	}
}

func BenchmarkRecord(b *testing.B) {
	r := history.NewRecorder()
	b.RunParallel(func(pb *testing.PB) {
		l := r.Log(1)
		for pb.Next() {
			e := history.Event{Kind: history.Read, Called: r.Now()}
			e.Returned = r.Now()
			l.Add(e)
		}
	})
}

// A log takes memory by the page, and the first event takes the first one.
func TestRecorderSize(t *testing.T) {
	r := history.NewRecorder()
	l := r.Log(1)
	if size := r.Size(); size != 0 {
		t.Errorf("%d bytes for no event", size)
	}
	l.Add(history.Event{})
	page := r.Size()
	if page == 0 {
		t.Error("an event takes no memory")
	}
	for range 1000 {
		l.Add(history.Event{})
	}
	r.Log(2).Add(history.Event{})
	if size := r.Size(); size != 3*page {
		t.Errorf("%d bytes for two pages and one, want %d", size, 3*page)
	}
}
