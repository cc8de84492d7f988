package position

import "fmt"

// beat is what a heartbeat row holds: the counter that the beats raise, and a
// random number that changes whenever the row is made anew, so that a counter
// that began again is not compared with the old one.
type beat struct{ epoch, counter uint64 }

// BeatPosition returns the position of a heartbeat row. Epoch 0 is that of a row
// that nobody has written yet: an empty position.
func BeatPosition(epoch, counter uint64) Position { return Position{beat{epoch, counter}} }

func (h beat) kind() Kind         { return Beat }
func (h beat) empty() bool        { return h.epoch == 0 }
func (h beat) equal(q value) bool { return h == q.(beat) }
func (h beat) token() value       { return h }

func (h beat) contains(v value) bool {
	q := v.(beat)
	return h.epoch == q.epoch && h.counter >= q.counter
}

func (h beat) includes(t value) bool { return h.contains(t) }

func (h beat) exceeds(v value) bool {
	q := v.(beat)
	return h.epoch != q.epoch || h.counter > q.counter
}

func (h beat) merge(q value) value {
	switch {
	case h.contains(q):
		return h
	case q.contains(h):
		return q
	}
	return nowhere{}
}

func (h beat) appendText(b []byte) []byte { return fmt.Appendf(b, "%016x:%d", h.epoch, h.counter) }
