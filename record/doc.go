// Package record keeps a record of where statements ran, or would have run, by who
// ran them, while an application is moved to replicas step by step:
//
//	f, err := os.OpenFile("routes.jsonl", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
//	…
//	rec := record.New(f, record.Options{})
//	defer rec.Close()
//	connector, err := replicated.NewConnector(replicated.Config{
//		Reads:   replicated.ReadsShadow,
//		Observe: rec.Observer(nil),
//		…
//	})
//
// The command "replicated route -input record" makes a report of the records of any
// number of processes: for each caller, which share of its statements would go to
// replicas, which of its reads would have been stale or would have failed behind a
// split that looks at the first word, and which callers to begin with. The page
// docs/rollout.md of the repository tells how the steps follow each other.
//
// Callers are what [replicated.WithCaller] and the middleware of package httpsticky
// say: "GET /orders/{id}", "job:mail". Statements that nobody has named count
// together.
//
// # What is in a record
//
// No SQL text and no value of one, no error text, no host name: the caller, the class
// and the leading keyword of a statement, the reason and the role of the node. Callers
// are the application's words: they should be patterns and no paths, for a path has
// values in it.
//
// Statements are not written one by one. They are counted, and every
// [Options.Interval] there is one line for each combination that has occurred, of some
// 150 bytes: a process with 50 of them writes 45 kB a minute, and an eighth of that
// packed with gzip, however many statements it runs.
//
// # Format
//
// A record has a JSON object on each line. [Line] names their keys, and [Read] reads
// them. Version 1 may get further keys, which programs that do not know them skip; if
// the meaning of a key changes, the version does. Records may be cut and joined at
// line ends, and several processes may append to one file.
package record
