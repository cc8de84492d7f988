// Package examples has runnable examples of what goes from one process to another: a
// web application, with net/http and with chi, calls by gRPC, a worker that takes jobs
// from a queue, and a cache that is filled again after notifications.
//
// Each is a package with one file, written as an application would write it. Its tests
// run it as two processes on a real PostgreSQL primary whose replica is 300 ms behind,
// so that a read that goes astray shows old data.
package examples
