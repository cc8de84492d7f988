package scenarios

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// Phases are counted apart, and all together.
func TestTallyPhases(t *testing.T) {
	y := newTally()
	y.read("text", 2*time.Millisecond)
	y.on("node2")
	first := y.next()
	y.read("text", 5*time.Millisecond)
	y.write(time.Millisecond)
	y.on("node2")
	y.event(failedReads, "long", time.Second, errors.New("read tcp 127.0.0.1:4711->127.0.0.1:5432: reset"))
	y.event(failedReads, "long", time.Millisecond, errors.New("read tcp 127.0.0.1:4712->127.0.0.1:5432: reset"))

	if len(first.reads) != 1 || first.nodes["node2"] != 1 || first.worst.took != 2*time.Millisecond || first.empty() {
		t.Errorf("first phase: %+v", first)
	}
	if n := y.served("node2"); n != 2 {
		t.Errorf("%d reads on node2, want 2", n)
	}
	all := y.whole()
	if len(all.reads) != 2 || len(all.writes) != 1 || all.events[failedReads] != 2 || all.worst != (slowRead{time.Second, "long"}) {
		t.Errorf("whole: %+v", all)
	}
	// One kind of error, whatever port the client had.
	if text := all.String(); !strings.Contains(text, "2 × failed reads: long: read tcp 127.0.0.1:5432: reset") {
		t.Errorf("errors are not counted by kind:\n%s", text)
	}
	if got, want := y.why(string(failedReads)), "\n  2 × failed reads: long: read tcp 127.0.0.1:5432: reset"; got != want {
		t.Errorf("why reads failed: %q, want %q", got, want)
	}
	y.next()
	if c := y.next(); !c.empty() {
		t.Errorf("a phase without load: %+v", c)
	}
}

func TestQuantile(t *testing.T) {
	var d []time.Duration
	for i := range 100 {
		d = append(d, time.Duration(99-i)) // 0 … 99, the largest first
	}
	for _, tt := range []struct {
		q    float64
		want time.Duration
	}{{0, 0}, {0.5, 50}, {0.99, 99}, {1, 99}} {
		if got := quantile(d, tt.q); got != tt.want {
			t.Errorf("quantile %g: %d, want %d", tt.q, got, tt.want)
		}
	}
	if d[0] != 99 {
		t.Error("the times were sorted in place")
	}
	if got := quantile(nil, 0.5); got != 0 {
		t.Errorf("of none: %v", got)
	}
}
