package replicatedtest

import (
	"bytes"
	"sync"
	"time"
)

// piece is some bytes on their way, and when they were read.
type piece struct {
	data []byte
	read time.Time
}

// bytesOnTheWay bounds what one direction of a delayed connection holds. What
// a replica receives two seconds late must fit: bytes that wait outside, in the
// system's buffers, are delayed from the time when they come in.
const bytesOnTheWay = 64 << 20

// pieces is the queue between the reader and the writer of one direction. One
// goroutine puts, one takes.
type pieces struct {
	mu      sync.Mutex // guards what follows
	changed sync.Cond
	list    []piece
	size    int  // bytes in list
	ended   bool // nothing more will be put
	stopped bool // nothing more will be taken
}

func newPieces() *pieces {
	q := &pieces{}
	q.changed.L = &q.mu
	return q
}

// put appends a copy of the bytes, and waits while the queue is full. It
// reports false once nobody takes them.
func (q *pieces) put(data []byte, read time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.size >= bytesOnTheWay && !q.stopped {
		q.changed.Wait()
	}
	if q.stopped {
		return false
	}
	q.list = append(q.list, piece{bytes.Clone(data), read})
	q.size += len(data)
	q.changed.Broadcast()
	return true
}

// take waits for the next piece. It reports false at the end.
func (q *pieces) take() (piece, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.list) == 0 && !q.ended {
		q.changed.Wait()
	}
	if len(q.list) == 0 {
		return piece{}, false
	}
	x := q.list[0]
	q.list[0] = piece{}
	q.list = q.list[1:]
	q.size -= len(x.data)
	q.changed.Broadcast()
	return x, true
}

// end says that nothing more will be put.
func (q *pieces) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	q.changed.Broadcast()
}

// stop says that nothing more will be taken.
func (q *pieces) stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stopped = true
	q.changed.Broadcast()
}
