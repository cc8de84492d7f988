package scenarios

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// transcript is what a scenario leaves to be read: what was done, what the driver
// told of, and what came of the load, each with the time since the beginning.
//
// It is safe for concurrent use; the driver's hooks write into it.
type transcript struct {
	begin time.Time

	mu    sync.Mutex
	lines []string
}

func newTranscript() *transcript { return &transcript{begin: time.Now()} }

// did notes a command.
func (t *transcript) did(format string, a ...any) { t.add("", format, a...) }

// told notes what the driver, or the load, has to say.
func (t *transcript) told(format string, a ...any) { t.add("    ", format, a...) }

func (t *transcript) add(indent, format string, a ...any) {
	text := fmt.Sprintf(format, a...)
	t.mu.Lock()
	defer t.mu.Unlock()
	at := time.Since(t.begin).Seconds() // under the lock, so that lines are in order
	t.lines = append(t.lines, fmt.Sprintf("%8.3fs  %s%s", at, indent, strings.ReplaceAll(text, "\n", "\n           "+indent)))
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "\n")
}
