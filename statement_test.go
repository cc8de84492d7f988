package replicated

import (
	"context"
	"database/sql/driver"
	"fmt"
	"sync"
	"testing"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/fakedb"
)

const (
	dialectPostgres = classify.Postgres
	varTimeZone     = classify.TimeZone
)

// answering is a connection whose server answers every query with one value.
func answering(value string) driver.Conn {
	s := fakedb.New("answering")
	s.OnQuery(func(context.Context, *fakedb.Call) (*fakedb.Reply, error) {
		r := fakedb.Row(value)
		return &r, nil
	})
	conn, err := s.Connector(fakedb.Full).Connect(context.Background())
	if err != nil {
		panic(err)
	}
	return conn
}

func TestStatementsAreSharedByText(t *testing.T) {
	var s statements
	a, b, c := s.acquire(classify.Generic, "SELECT 1"), s.acquire(classify.Generic, "SELECT 1"), s.acquire(classify.Generic, "SELECT 2")
	if a != b || a == c {
		t.Error("one text is one statement, two are two")
	}
	if s.release(a) || a.released() {
		t.Error("released while it has a user")
	}
	if !s.release(b) || !b.released() {
		t.Error("not released by its last user")
	}
	if d := s.acquire(classify.Generic, "SELECT 1"); d == a {
		t.Error("a released statement has come back: its physical ones may be closed")
	}
}

func TestStatementsConcurrently(t *testing.T) {
	var s statements
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for i := range 200 {
				st := s.acquire(classify.Generic, fmt.Sprintf("SELECT %d", i%3))
				if st.released() {
					t.Error("acquired, and released")
				}
				s.release(st)
			}
		})
	}
	wg.Wait()
	if n := len(s.byText); n != 0 {
		t.Errorf("%d texts are left", n)
	}
}

func TestLearned(t *testing.T) {
	l := newLearned()
	if l.has("SELECT a") {
		t.Error("it knows a text that nobody has told it")
	}
	l.add("SELECT a")
	if !l.has("SELECT a") || l.has("SELECT b") {
		t.Error("it knows what it was told, and nothing else")
	}
}

// It cannot grow without end; what it forgets is learned again.
func TestLearnedIsBounded(t *testing.T) {
	l := newLearned()
	for i := range 3 * maxLearned {
		text := fmt.Sprint("SELECT ", i)
		l.add(text)
		if !l.has(text) {
			t.Fatalf("text %d is forgotten at once", i)
		}
		if n := len(l.texts); n > maxLearned {
			t.Fatalf("it keeps %d texts", n)
		}
	}
}

func TestLearnedConcurrently(t *testing.T) {
	l := newLearned()
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			for j := range 300 {
				text := fmt.Sprint(i, "/", j)
				l.add(text)
				l.has(text)
			}
		})
	}
	wg.Wait()
}
