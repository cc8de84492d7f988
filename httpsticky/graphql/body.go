package graphql

import (
	"errors"
	"io"
	"slices"
	"sync"
)

// errTooLarge ends the recording of a body. The handler never sees it.
var errTooLarge = errors.New("graphql: more of the body than is looked at")

// body is a request body of which the beginning has been read ahead. It reads as
// the original would have: the same bytes, then the error that was met after them,
// once, then whatever the original says.
//
// As with the bodies of net/http, Close may be called while another goroutine reads.
type body struct {
	orig io.ReadCloser

	mu   sync.Mutex // guards what follows; not held while orig is called
	kept []byte     // read from orig, and not yet by the handler
	err  error      // met after kept
}

func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	if len(b.kept) > 0 {
		n := copy(p, b.kept)
		b.kept = b.kept[n:]
		b.mu.Unlock()
		return n, nil
	}
	b.kept = nil // the array behind it is no longer needed
	if err := b.err; err != nil {
		b.err = nil
		b.mu.Unlock()
		return 0, err
	}
	b.mu.Unlock()
	return b.orig.Read(p)
}

// Close closes the original. A Read after it says what the original says then.
func (b *body) Close() error {
	b.mu.Lock()
	b.kept, b.err = nil, nil
	b.mu.Unlock()
	return b.orig.Close()
}

// recorder reads a body ahead and keeps what it reads: max bytes, and one more, which
// tells that there is more. It is used before the handler runs, by one goroutine.
type recorder struct {
	of  *body
	max int64
}

// more reads once, at most most bytes, and returns what came. It fails with
// errTooLarge once there is more than max, and with the original's error, again
// whenever it is called again.
func (r recorder) more(most int) ([]byte, error) {
	b := r.of
	if b.err != nil {
		return nil, b.err
	}
	room := r.max + 1 - int64(len(b.kept))
	if room <= 0 {
		return nil, errTooLarge
	}
	most = int(min(int64(most), room))
	b.kept = slices.Grow(b.kept, most)
	had := len(b.kept)
	n, err := b.orig.Read(b.kept[had : had+most])
	b.kept, b.err = b.kept[:had+n], err
	if n == 0 {
		return nil, err
	}
	return b.kept[had:], nil
}

// Read implements io.Reader for a parser that reads no more than it needs.
func (r recorder) Read(p []byte) (int, error) {
	came, err := r.more(len(p))
	return copy(p, came), err
}

// all reads the body to its end and returns it. It fails with errTooLarge if there
// is more than max bytes, and with the error of the original. length is the length
// that the client has declared, or -1.
func (r recorder) all(length int64) ([]byte, error) {
	// A declared length is no reason to give memory away before anything has come.
	step := int(min(max(length+1, 512), 16<<10))
	for idle := 0; idle < maxIdle; idle++ {
		came, err := r.more(step)
		switch {
		case err == io.EOF:
			if int64(len(r.of.kept)) > r.max {
				return nil, errTooLarge
			}
			return r.of.kept, nil
		case err != nil:
			return nil, err
		case len(came) > 0:
			idle = -1
			step = max(step, len(r.of.kept))
		}
	}
	return nil, io.ErrNoProgress
}

// begin returns the first byte of the body, if there is one, reading no further than
// the first Read that returns any.
func (r recorder) begin() (first byte, ok bool) {
	for idle := 0; idle < maxIdle; idle++ {
		came, err := r.more(512)
		if len(came) > 0 {
			return came[0], true
		}
		if err != nil {
			break
		}
	}
	return 0, false
}

// maxIdle is how often a Reader may return neither bytes nor an error, as in bufio.
const maxIdle = 100
