package route

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// progress shows on a terminal how much of the input has been read. The nil
// progress shows nothing.
type progress struct {
	w     io.Writer
	total int64 // bytes; not known if 0
	read  int64
	begun time.Time
	next  time.Time // of the next drawing
	drawn bool
}

const (
	progressDelay = 300 * time.Millisecond // shorter inputs need none
	progressPace  = 100 * time.Millisecond
	progressCells = 30
)

// newProgress returns nil if w is no terminal.
func newProgress(w io.Writer, total int64) *progress {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	now := time.Now()
	return &progress{w: w, total: total, begun: now, next: now.Add(progressDelay)}
}

// reader counts what is read through it.
func (p *progress) reader(in io.Reader) io.Reader {
	if p == nil {
		return in
	}
	return progressReader{p, in}
}

type progressReader struct {
	p  *progress
	in io.Reader
}

func (r progressReader) Read(b []byte) (int, error) {
	n, err := r.in.Read(b)
	r.p.add(int64(n), time.Now())
	return n, err
}

func (p *progress) add(n int64, now time.Time) {
	p.read += n
	if now.Before(p.next) {
		return
	}
	p.next = now.Add(progressPace)
	p.drawn = true
	fmt.Fprint(p.w, "\r"+p.line(now)+"\x1b[K")
}

func (p *progress) line(now time.Time) string {
	const mib = 1 << 20
	speed := float64(p.read) / mib / max(now.Sub(p.begun).Seconds(), 1e-3)
	if p.total <= 0 {
		return fmt.Sprintf("  %d MiB read, %.0f MiB/s", p.read/mib, speed)
	}
	share := min(1, float64(p.read)/float64(p.total))
	full := int(share * progressCells)
	return fmt.Sprintf("  [%s%s] %3.0f %%  %d of %d MiB, %.0f MiB/s",
		strings.Repeat("#", full), strings.Repeat(".", progressCells-full), share*100, p.read/mib, (p.total+mib-1)/mib, speed)
}

// end takes the bar away.
func (p *progress) end() {
	if p != nil && p.drawn {
		p.drawn = false
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
