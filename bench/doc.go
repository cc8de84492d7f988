// Package bench holds benchmarks of the driver, in a module of its own so that
// what they need is no dependency of the driver. The package in compat runs the
// driver under other libraries.
//
// Every benchmark has the bare driver beside ours in the same run, so that the
// cost is a ratio and not a number of one machine:
//
//	go test -bench Overhead -count 10 ./... | tee new.txt
//	benchstat -col /driver new.txt
//
// BenchmarkOverhead runs against real servers, and is skipped where none is
// installed. BenchmarkRouting has a driver that answers at once in place of a
// server: what is left is our own work.
package bench
