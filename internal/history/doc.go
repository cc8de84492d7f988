// Package history checks what a cluster's clients saw against what the driver
// promises them: it takes the place of looking at logs.
//
// A test records each statement of a workload as an [Event] (who, in which
// scope, which key, which version, when called, when returned) with a
// [Recorder], and [Check] finds every read that saw less than it was entitled
// to.
//
// # Versions
//
// The keys are registers: rows with a counter that each write raises, so that
// the database itself, whose row lock is held until the commit, puts the writes
// of a key into one order. A read shows one version, and having seen a version
// it has seen all that are lower ("or later values"). Version 0 is a key that is
// not there.
//
// # What is promised, and so what is checked
//
//   - [ReadYourWrites]: a read sees what had returned in its scope before it was
//     called: its connection since check-out, its transaction, its session and
//     those around it, the process's writes outside sessions, and without a
//     session all of its process.
//   - [Tokens]: … and what the sessions of its tokens had written when these were
//     taken.
//   - [Fresh]: … and what anybody had written when a fresh read was asked for.
//   - [BoundedStaleness]: it lacks nothing that anybody was told of more than the
//     allowed lag before.
//   - [MonotonicReads]: it does not miss a write that an earlier read of the session
//     saw, if that write had been acknowledged before the earlier read began.
//   - [Integrity]: no read shows what nobody wrote, what was rolled back, or what
//     was not yet asked for; no version has two writers.
//   - [AtMostOnce]: no write took effect twice.
//
// Nothing else is. A read may see a write that is not acknowledged, and the next
// read, on another server, may not: the servers can't do better, and a checker
// that counted it would fail by their nature. A write whose outcome is unknown
// may take effect at any later time or never: it is due to nobody, and seeing it
// is no fault.
//
// # Times
//
// All times are of the one monotonic clock of the process that recorded them.
// Called is taken before the call and Returned after it, so that a write counts
// as returned no earlier, and a read as called no later, than they were: what the
// checker finds is a violation, whatever the scheduler did in between.
package history
