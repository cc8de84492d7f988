// Package scenarios runs short stories of faults against real clusters, under load,
// and prints what happened. A story is a text that a person can read:
//
//	# A replica's processes are killed under load, and it comes back.
//	engines postgres mariadb
//	cluster replicas=2
//	open max_lag=5s
//	load readers=56 writers=8
//	run 2s
//	kill replica1
//	run 3s
//	start replica1
//	until replica1 serves
//	expect failed reads = 0
//	expect worst read < 8s
//	expect lost writes = 0
//
// The directory testdata holds them. A new one is a new file there; the tests run
// each on each of its engines:
//
//	go test ./scenarios -v -run 'TestScenarios/postgres/replica-killed'
//
// The package is for tests alone.
//
// # The text
//
// One command a line; a word that begins with # begins a comment. First come
//
//	engines <engine> …            postgres, mariadb, mysql
//	cluster <key=value> …         replicas, connections (each server's maximum),
//	                              synchronous, else settings of the servers
//
// then commands, done one after the other:
//
//	open [<key=value> …]          makes tables and opens the handle under test; keys of
//	                              the DSN without "replicated.", and proxied=yes, which
//	                              puts a proxy before each node
//	load [<key=value> …]          readers=56, writers=8 (goroutines), pause=200ms between
//	                              operations
//	end load
//	run <duration>                lets the load run
//	until <node> serves           … a read; <node> is out (the driver sends it none);
//	until writes succeed          notice <kind> [or <kind>]; replicas have caught up
//	expect <figure> <op> <value>  fails the test if it is not so, and goes on
//	repeat <count> … end          what stands between, so many times
//	every <duration> <command>    again and again in the background …
//	cease                         … until then
//
// A node is primary, former (the primary before the last change), replica1, …, in the
// cluster's order of those that are replicas now, or node1, …, whatever it is. What can
// be done to one stands in the tables of forms in actions_replica.go and
// actions_primary.go. A line that says nothing that is known is an error with its
// number, and tells what was possible.
//
// # The load
//
// Readers take turns in kind: reads as text, with arguments, prepared, on a held Conn, in
// read-only transactions, of long results, of results that take 0.3 s in the server, and
// outside sessions; writers: INSERTs as text and with arguments, transactions, and
// transactions after which the session must see what it wrote. Each operation has 30 s,
// so that one that hangs shows as one that failed, and, but for reads outside sessions, a
// session of its own, as a request has one.
//
// Each write puts a number into a ledger that is not used again. At the end the primary's
// rows are compared with what the writers were told.
//
// # The figures
//
//	failed reads            an error came before the first row, other than …
//	refused reads           … ErrNotFresh: no node was known to have what it must see
//	broken rows             an error came behind the first row
//	broken transactions     a read-only transaction failed after it had begun: what it
//	                        sees is nowhere but on its node
//	worst read              the longest, be it answered or not
//	reads                   those that were answered
//	reads on <node>         in the last phase; each run, until, and what takes a while is one
//	reads on replicas       a percentage of those of the last phase
//	acknowledged writes     and failed writes (certainly not done, by the error), unknown
//	                        writes (ErrOutcomeUnknown, or the time was up)
//	lost writes             acknowledged, and not on the primary
//	stray writes            sent to a former primary, by its own log, although they were
//	                        begun when the driver knew the new one
//	worst pause of writes   from when a new primary acknowledges a write of the bare driver
//	                        until it acknowledges one of the load
//	notices <kind>          how many the driver has given
//
// Of every script, whatever it does, it is expected besides that there are no wrong
// answers (rows that are missing), no stale reads (a session has missed its own write,
// which is there), no doubled writes and no phantom writes (said to have failed, and done).
//
// Upper bounds on times are three times as wide where the variable CI is set, as it is on
// machines that are slow at times.
//
// # The transcript
//
// It is logged at the end: each command with its time, what the driver told of (nodes
// taken out and back, notices), and for each phase how many reads and writes there were,
// their times, on which nodes, and what errors they got.
package scenarios
