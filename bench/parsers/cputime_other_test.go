//go:build !unix

package parsers_test

import "time"

var started = time.Now()

// cpuTime returns the time by the clock, which is the processor time of a process
// that has the machine to itself and makes no garbage.
func cpuTime() time.Duration { return time.Since(started) }
