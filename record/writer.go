package record

import (
	"bytes"
	"encoding/json"
	"io"
	"time"
)

// writer turns lines into text, and knows how the last write has ended. It is for one
// goroutine at a time.
type writer struct {
	w       io.Writer
	tell    func(error) // or nil
	buf     bytes.Buffer
	failing bool
	torn    bool  // the last write has stopped within a line
	first   error // of all
}

// write writes lines in one call, and returns how many statements are in those that
// could not be written.
func (o *writer) write(lines []Line) (lost int64) {
	if len(lines) == 0 {
		return 0
	}
	o.buf.Reset()
	if o.torn {
		o.buf.WriteByte('\n')
	}
	enc := json.NewEncoder(&o.buf)
	enc.SetEscapeHTML(false)
	at := time.Now().UTC().Truncate(time.Second)
	ends := make([]int, len(lines))
	for i := range lines {
		lines[i].V, lines[i].At = Version, at
		_ = enc.Encode(&lines[i]) // a Line can always be encoded, and a buffer takes everything
		ends[i] = o.buf.Len()
	}
	n, err := o.w.Write(o.buf.Bytes())
	if err == nil && n < o.buf.Len() {
		err = io.ErrShortWrite
	}
	if err == nil {
		o.failing, o.torn = false, false
		return 0
	}
	if n > 0 {
		o.torn = o.buf.Bytes()[n-1] != '\n'
	}
	for i := range lines {
		if ends[i] > n {
			lost += lines[i].statements()
		}
	}
	o.failed(err)
	return lost
}

func (o *writer) failed(err error) {
	if o.first == nil {
		o.first = err
	}
	if !o.failing && o.tell != nil {
		o.tell(err)
	}
	o.failing = true
}

// statements is how many statements the line tells of.
func (l *Line) statements() int64 {
	if l.Class == "" {
		return l.Dropped
	}
	return l.N
}
