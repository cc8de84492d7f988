package history

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// Recorder records a history. It is safe for concurrent use, and cheap if each
// goroutine keeps a [Log] of its own.
type Recorder struct {
	start time.Time
	last  atomic.Int64

	mu      sync.Mutex
	logs    []*Log
	parents []SessionID
}

// NewRecorder returns a recorder whose clock begins now.
func NewRecorder() *Recorder {
	return &Recorder{start: time.Now(), parents: make([]SessionID, 1)}
}

// Now returns the present moment. It is never zero.
func (r *Recorder) Now() Moment { return time.Since(r.start) + 1 }

// Next returns a number that it has not returned before and will not again, from
// 1 up: a value, a check-out, a transaction, a key.
func (r *Recorder) Next() int64 { return r.last.Add(1) }

// Session opens a session inside parent, or inside none where that is zero.
func (r *Recorder) Session(parent SessionID) SessionID {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parents = append(r.parents, parent)
	return SessionID(len(r.parents) - 1)
}

// Log returns a log for a goroutine that belongs to the process.
func (r *Recorder) Log(process int32) *Log {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := &Log{worker: int32(len(r.logs) + 1), process: process}
	r.logs = append(r.logs, l)
	return l
}

// Size returns how many bytes of memory the logs take by now.
func (r *Recorder) Size() (bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.logs {
		bytes += l.size()
	}
	return bytes
}

// History returns what was recorded so far, in no particular order.
func (r *Recorder) History() *History {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := &History{Parents: append([]SessionID(nil), r.parents...)}
	n := 0
	for _, l := range r.logs {
		n += l.len()
	}
	h.Events = make([]Event, 0, n)
	for _, l := range r.logs {
		h.Events = l.appendTo(h.Events)
	}
	return h
}

// Log takes events of one goroutine. Others may use it too, at the price of
// waiting for each other.
type Log struct {
	worker, process int32

	mu   sync.Mutex
	full [][]Event // pages that have no room left
	page []Event
}

// pageSize is how many events are allocated at a time: growing one slice would
// copy them again and again.
const pageSize = 512

// Add records an event as the log's worker's and process's.
func (l *Log) Add(e Event) {
	e.Worker, e.Process = l.worker, l.process
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.page) == cap(l.page) {
		if l.page != nil {
			l.full = append(l.full, l.page)
		}
		l.page = make([]Event, 0, pageSize)
	}
	l.page = append(l.page, e)
}

func (l *Log) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return pageSize*len(l.full) + len(l.page)
}

func (l *Log) size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(pageSize*len(l.full)+cap(l.page)) * int64(unsafe.Sizeof(Event{}))
}

func (l *Log) appendTo(events []Event) []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, page := range l.full {
		events = append(events, page...)
	}
	return append(events, l.page...)
}
