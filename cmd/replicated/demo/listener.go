package demo

import (
	"sync"
	"time"

	"github.com/sqlreplicated/replicated"
)

// listener is the Observer of the demo. It is safe for concurrent use.
type listener struct {
	mu      sync.Mutex
	record  bool
	routed  []replicated.RouteEvent // while record is set
	reads   map[string]int          // proven reads that a node has answered
	states  []stateChange
	notices []replicated.Notice
}

// stateChange is a breaker event with its time.
type stateChange struct {
	at time.Time
	replicated.NodeStateEvent
}

func newListener() *listener { return &listener{reads: make(map[string]int)} }

func (l *listener) observer() *replicated.Observer {
	return &replicated.Observer{
		Routed: func(e replicated.RouteEvent) {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.record {
				l.routed = append(l.routed, e)
			}
			if e.Class == "read" && e.Err == nil {
				l.reads[e.Node]++
			}
		},
		NodeState: func(e replicated.NodeStateEvent) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.states = append(l.states, stateChange{time.Now(), e})
		},
		Notice: func(n replicated.Notice) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.notices = append(l.notices, n)
		},
	}
}

// during returns the events of what f does.
func (l *listener) during(f func() error) ([]replicated.RouteEvent, error) {
	l.mu.Lock()
	l.record, l.routed = true, nil
	l.mu.Unlock()
	err := f()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.record = false
	return l.routed, err
}

// readsOf returns the number of reads that each node has answered so far, in the
// order of nodeNames.
func (l *listener) readsOf() [3]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	var counts [3]int
	for i, name := range nodeNames {
		counts[i] = l.reads[name]
	}
	return counts
}

// changes returns the breaker events since a time.
func (l *listener) changes(since time.Time) []stateChange {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, c := range l.states {
		if !c.at.Before(since) {
			return append([]stateChange(nil), l.states[i:]...)
		}
	}
	return nil
}

// noticed tells whether a notice of the kind has come.
func (l *listener) noticed(kind replicated.NoticeKind) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.notices {
		if n.Kind == kind {
			return true
		}
	}
	return false
}
