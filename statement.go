package replicated

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// statement is a text and what is known of it. It is immutable but for the
// parameter count, which the first server to prepare it tells, and the verdict,
// which follows the catalog; and shared by all driver.Stmts of the text.
type statement struct {
	text   string
	judged atomic.Pointer[judgement] // the last; nil for a text that is run once

	refs   atomic.Int32 // live driver.Stmts
	params atomic.Int32 // parameters, plus one; 0 while no server has told
}

// judgement is a statement's verdict and what it was made from.
type judgement struct {
	verdict     classify.Verdict
	dialect     classify.Dialect
	definitions *classify.Definitions
}

// judge returns the verdict with what is known now of the database's own names.
func (st *statement) judge(d classify.Dialect, known *classify.Definitions) classify.Verdict {
	j := st.judged.Load()
	if j == nil || j.dialect != d || j.definitions != known {
		j = &judgement{classify.ClassifyWith(d, st.text, known), d, known}
		st.judged.Store(j)
	}
	return j.verdict
}

// judge returns a prepared statement's verdict, as of now.
func (c *Cluster) judge(st *statement) classify.Verdict {
	return st.judge(c.dialect(), c.catalog.definitions())
}

// bound tells whether the statement is tied to the protocol state of the
// connection that prepares it: lib/pq sends COPY when it prepares it.
func (st *statement) bound(d classify.Dialect) bool {
	return d == classify.Postgres && st.judged.Load().verdict.Keyword == "COPY"
}

func (st *statement) released() bool { return st.refs.Load() == 0 }

// statements are the texts that live driver.Stmts of a cluster were made from.
type statements struct {
	mu     sync.Mutex
	byText map[string]*statement
}

// acquire returns the shared statement for a text, counting one more user.
func (s *statements) acquire(d classify.Dialect, text string) *statement {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byText == nil {
		s.byText = make(map[string]*statement)
	}
	st := s.byText[text]
	if st == nil {
		st = &statement{text: text}
		st.judge(d, nil)
		s.byText[text] = st
	}
	st.refs.Add(1)
	return st
}

// release counts one user less and reports whether it was the last.
func (s *statements) release(st *statement) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.refs.Add(-1) > 0 {
		return false
	}
	delete(s.byText, st.text)
	return true
}

// learned remembers the texts that a replica's fence has refused: they write,
// whatever the classifier thinks. It keeps hashes, so that it is small and holds
// no text; a collision sends a read to the primary.
type learned struct {
	seed  maphash.Seed
	count atomic.Int32
	mu    sync.RWMutex
	texts map[uint64]struct{}
}

const maxLearned = 4096

func newLearned() *learned {
	return &learned{seed: maphash.MakeSeed(), texts: make(map[uint64]struct{})}
}

// add remembers a text. When there is no more room it forgets all: what it had
// is learned again, one refusal each.
func (l *learned) add(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.texts) >= maxLearned {
		clear(l.texts)
	}
	l.texts[maphash.String(l.seed, text)] = struct{}{}
	l.count.Store(int32(len(l.texts)))
}

// has tells whether a text has been refused.
func (l *learned) has(text string) bool {
	if l.count.Load() == 0 {
		return false
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	_, ok := l.texts[maphash.String(l.seed, text)]
	return ok
}
