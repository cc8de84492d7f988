// Package faketime runs tests in bubbles of package synctest, where time is
// faked and a test can wait until nothing moves.
package faketime

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
)

var alone sync.Mutex // GOMAXPROCS is the process's

// Test is synctest.Test on one processor. The goroutines of a bubble share one
// context of the race detector for all their timers, and two that receive from
// timers on two processors at once crash it, rarely but at random
// (https://go.dev/issue/78156).
func Test(t *testing.T, f func(*testing.T)) {
	t.Helper()
	alone.Lock()
	defer alone.Unlock()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, f)
}
