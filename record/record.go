package record

import (
	"io"
	"slices"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/sqlreplicated/replicated"
)

// Options are the settings of a [Recorder]. The zero value is ready for use.
type Options struct {
	// Interval is the time between two writes; 0 means 10 s. What was counted since
	// the last one is lost with a process that crashes.
	Interval time.Duration
	// Kinds is how many different lines an interval may have, so that callers with
	// values in their names cannot fill memory and disk; 0 means 4096. Statements
	// beyond are counted as dropped, and the record says how many there were.
	Kinds int
	// Error is called when the record cannot be written, and again only if it could
	// be in between; nil tells nobody. It is called on the recorder's goroutine, or
	// on that of Close, and must not call Close, which waits for it.
	Error func(error)
}

const (
	defaultInterval = 10 * time.Second
	defaultKinds    = 4096
	// maxCaller is how many bytes of a caller's name are kept.
	maxCaller = 200
)

// Recorder counts statements and writes the counts to an [io.Writer]. Its methods may
// be called from any goroutine. Those that run statements never wait for the writer:
// they count, under a lock that is held for no longer than that.
//
// The goroutine that writes is started with the first event, and ends with Close.
type Recorder struct {
	opts Options
	wake chan struct{} // closed by Close
	done chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex // guards what follows; nothing is written while it is held
	counts  map[kind]*count
	notices map[replicated.NoticeKind]int64
	dropped int64
	running bool
	closed  bool

	out writer // the goroutine's, and nobody's when that has ended
}

// kind is what is counted together.
type kind struct {
	caller, class, keyword string
	reason                 replicated.Reason
	role                   replicated.Role
	write                  bool
}

type count struct{ n, failed int64 }

// New returns a recorder that writes to w. Each write has whole lines in it, as one
// call: with a file opened by os.O_APPEND, several processes may share it. The
// recorder does not close w.
func New(w io.Writer, o Options) *Recorder {
	if o.Interval <= 0 {
		o.Interval = defaultInterval
	}
	if o.Kinds <= 0 {
		o.Kinds = defaultKinds
	}
	return &Recorder{
		opts: o, out: writer{w: w, tell: o.Error},
		wake: make(chan struct{}), done: make(chan struct{}),
		counts: make(map[kind]*count), notices: make(map[replicated.NoticeKind]int64),
	}
}

// Observer returns an observer for [replicated.Config.Observe] that records what it is
// told and passes it on to next, which may be nil. Several clusters may share a
// recorder.
func (r *Recorder) Observer(next *replicated.Observer) *replicated.Observer {
	if next == nil {
		next = new(replicated.Observer)
	}
	return &replicated.Observer{
		Routed: func(e replicated.RouteEvent) {
			r.routed(&e)
			if next.Routed != nil {
				next.Routed(e)
			}
		},
		NodeState: next.NodeState,
		Notice: func(n replicated.Notice) {
			r.notice(n.Kind)
			if next.Notice != nil {
				next.Notice(n)
			}
		},
	}
}

func (r *Recorder) routed(e *replicated.RouteEvent) {
	if e.Prepare {
		return // it is counted when it runs
	}
	k := kind{clip(e.Caller), e.Class, e.Keyword, e.Reason, e.Role, e.Write}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.readyLocked() {
		return
	}
	c := r.counts[k]
	if c == nil {
		if len(r.counts) >= r.opts.Kinds {
			r.dropped++
			return
		}
		c = new(count)
		r.counts[k] = c
	}
	c.n++
	if e.Err != nil {
		c.failed++
	}
}

func (r *Recorder) notice(k replicated.NoticeKind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.readyLocked() {
		r.notices[k]++
	}
}

// readyLocked starts the goroutine if there is none yet. It reports false after Close.
func (r *Recorder) readyLocked() bool {
	if !r.running && !r.closed {
		r.running = true
		go r.run()
	}
	return !r.closed
}

func (r *Recorder) run() {
	defer close(r.done)
	tick := time.NewTicker(r.opts.Interval)
	defer tick.Stop()
	r.write([]Line{{Began: true}})
	for {
		select {
		case <-tick.C:
			r.flush()
		case <-r.wake:
			r.flush()
			return
		}
	}
}

// Close writes what has been counted and ends the recorder. It returns the first error
// that the writer has given, if any, and waits for the writer as long as that takes.
// Statements that run afterwards are not recorded; observers go on passing them on.
// Closing again does nothing, and returns the same.
func (r *Recorder) Close() error {
	r.mu.Lock()
	first := !r.closed
	r.closed = true
	running := r.running
	r.mu.Unlock()
	if first {
		close(r.wake)
	}
	if running {
		<-r.done
	}
	return r.out.first
}

// flush writes what has been counted since the last time.
func (r *Recorder) flush() {
	r.mu.Lock()
	counts, notices, dropped := r.counts, r.notices, r.dropped
	r.counts = make(map[kind]*count, len(counts))
	r.notices = make(map[replicated.NoticeKind]int64)
	r.dropped = 0
	r.mu.Unlock()

	lines := make([]Line, 0, len(counts)+len(notices)+1)
	for k, c := range counts {
		lines = append(lines, Line{
			Caller: k.caller, Class: k.class, Keyword: k.keyword, Reason: k.reason.String(), Role: k.role.String(),
			Write: k.write, N: c.n, Failed: c.failed,
		})
	}
	for k, n := range notices {
		lines = append(lines, Line{Notice: k.String(), N: n})
	}
	slices.SortFunc(lines, inOrder)
	if dropped > 0 {
		lines = append(lines, Line{Dropped: dropped})
	}
	r.write(lines)
}

// inOrder sorts lines, so that the record of the same statements is always the same.
func inOrder(a, b Line) int {
	key := func(l *Line) []string {
		return []string{l.Notice, l.Caller, l.Class, l.Keyword, l.Reason, l.Role, strconv.FormatBool(l.Write)}
	}
	return slices.Compare(key(&a), key(&b))
}

// write hands lines to the writer. What could not be written counts as dropped.
func (r *Recorder) write(lines []Line) {
	lost := r.out.write(lines)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropped += lost
}

// clip cuts a caller's name to what is kept of it, between two characters.
func clip(name string) string {
	if len(name) <= maxCaller {
		return name
	}
	end := maxCaller
	for end > maxCaller-utf8.UTFMax && !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end]
}
