package httpsticky

import (
	"container/heap"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sqlreplicated/replicated"
)

// defaultMemoryEntries is what a Memory made for no or fewer entries has room
// for: some 30 to 60 MB of tokens of usual size.
const defaultMemoryEntries = 100_000

// Memory is a Store in the memory of this process, for an application that runs
// as one process, and for tests. Make one with NewMemory.
//
// It takes room for as many keys as it was made for, and no more: a key and its
// bookkeeping are some 300 bytes, and a token is mostly below 200 and never above
// 4 KiB. Keys are kept as hashes, whatever their length.
//
// A key is forgotten when the life of its token ends. If there are more live keys
// than fit, the one with the shortest life left is dropped, and that is admitted:
// Kept.Whole begins anew, so that reads are fresh until all that may have been
// dropped would have expired. A Memory that is too small costs replicas their
// reads, never a user his own writes.
type Memory struct {
	entries int

	mu    sync.Mutex // guards what follows; held briefly
	whole time.Time  // since when nothing has been lost
	kept  map[memoryKey]*memoryEntry
	queue memoryQueue // the same entries, the one that ends first on top
}

type memoryKey [sha256.Size]byte

// memoryEntry is the union of what was saved of a key, and when it ends.
type memoryEntry struct {
	key   memoryKey
	token string
	end   time.Time
	index int // in the queue
}

var _ Store = (*Memory)(nil)

// NewMemory returns an empty Memory with room for so many keys; 0 or less means
// 100,000.
func NewMemory(entries int) *Memory {
	if entries <= 0 {
		entries = defaultMemoryEntries
	}
	return &Memory{entries: entries, whole: time.Now(), kept: map[memoryKey]*memoryEntry{}}
}

// Load returns at most one token for each key. It never fails.
func (m *Memory) Load(_ context.Context, keys ...string) (Kept, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	kept := Kept{Whole: now.Sub(m.whole)}
	for _, key := range keys {
		if e := m.kept[sha256.Sum256([]byte(key))]; e != nil && e.end.After(now) {
			kept.Tokens = append(kept.Tokens, e.token)
		}
	}
	return kept, nil
}

// Save fails only for a token that is malformed, or a life that is not positive.
func (m *Memory) Save(_ context.Context, token string, ttl time.Duration, keys ...string) error {
	// By union with nothing it is seen to be well formed.
	token, err := replicated.MergeTokens(token)
	switch {
	case err != nil:
		return fmt.Errorf("httpsticky: save: %w", err)
	case ttl <= 0:
		return errors.New("httpsticky: save: a token without a life")
	case token == "":
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	// Some that have ended go with each call, more than it brings: they don't stay
	// for want of others that need their room, and none is there when room is short.
	for range 2 + len(keys) {
		if len(m.queue) > 0 && !m.queue[0].end.After(now) {
			m.drop()
		}
	}
	end := now.Add(ttl)
	for _, key := range keys {
		id := memoryKey(sha256.Sum256([]byte(key)))
		if e := m.kept[id]; e != nil {
			e.add(token, end, now)
			heap.Fix(&m.queue, e.index)
			continue
		}
		e := &memoryEntry{key: id, token: token, end: end}
		m.kept[id] = e
		heap.Push(&m.queue, e)
		if len(m.queue) > m.entries {
			m.whole = now // what has ended has left by now
			m.drop()
		}
	}
	return nil
}

// drop removes the entry that ends first. Called with mu held.
func (m *Memory) drop() {
	e := heap.Pop(&m.queue).(*memoryEntry)
	delete(m.kept, e.key)
}

// add makes the entry ask for what the token asks for as well.
func (e *memoryEntry) add(token string, end, now time.Time) {
	if e.end.After(now) && e.token != token {
		if all, err := replicated.MergeTokens(e.token, token); err == nil { // Save has seen that both are well formed
			token = all
		}
	}
	e.token = token
	if end.After(e.end) {
		e.end = end
	}
}

// memoryQueue is a heap.Interface of entries by their ends.
type memoryQueue []*memoryEntry

func (q memoryQueue) Len() int           { return len(q) }
func (q memoryQueue) Less(i, j int) bool { return q[i].end.Before(q[j].end) }
func (q memoryQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *memoryQueue) Push(x any) {
	e := x.(*memoryEntry)
	e.index = len(*q)
	*q = append(*q, e)
}

func (q *memoryQueue) Pop() any {
	old := *q
	e := old[len(old)-1]
	old[len(old)-1] = nil // for the collector
	*q = old[:len(old)-1]
	return e
}
