//go:build unix

package parsers_test

import (
	"syscall"
	"time"
)

// cpuTime returns the processor time that this process has used, on all of its
// threads: those that collect garbage count too.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
