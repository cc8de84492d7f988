package replicatedtest_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

const postgresLog = "1764456803.500|10|||LOG:  database system is ready\n" +
	"ld.so: something that is not from the log\n" +
	"1764456803.500|11|app||LOG:  statement: SELECT 1,\n\t\n\t\t'x'\n" +
	"1764456803.501|12|harness||LOG:  statement: SELECT 'internal'\n" +
	"1764456803.502|11|app||LOG:  execute <unnamed>: SELECT $1: x\n" +
	"1764456803.503|11|app||LOG:  execute s1/portal: SELECT 2\n" +
	"1764456803.504|11|app||LOG:  duration: 0.012 ms  parse s2: SELECT 3\n" +
	"1764456803.504|11|app||LOG:  duration: 0.012 ms  bind s2: SELECT 3\n" +
	"1764456803.504|11|app||LOG:  duration: 0.012 ms\n" +
	"1764456803.505|11|app||LOG:  statement: INSERT\n" +
	"1764456803.506|13|app||LOG:  statement: SELECT 4\n" +
	"1764456803.507|11|app|25006|ERROR:  cannot execute INSERT\n" +
	"1764456803.507|11|app|25006|DETAIL:  a detail\n" +
	"1764456803.507|11|app|25006|STATEMENT:  INSERT\n" +
	"1764456803.508|13|app|42601|ERROR:  syntax error at or near \"x\" at character 1\n" +
	"1764456803.508|13|app|42601|STATEMENT:  x\n\ty\n" +
	"1764456803.508|13|app||LOG:  statement: a\n\tb\n" +
	"1764456803.508|13|app|22012|ERROR:  division by zero\n" +
	"1764456803.508|13|app|22012|STATEMENT:  a\n\tb\n" +
	"1764456803.509|14|app|57P01|FATAL:  terminating connection\n"

var postgresWant = []string{
	"11 query \"SELECT 1,\\n\\n\\t'x'\" ",
	"11 execute \"SELECT $1: x\" ",
	"11 execute \"SELECT 2\" ",
	"11 prepare \"SELECT 3\" ",
	"11 query \"INSERT\" 25006",
	"13 query \"SELECT 4\" ",
	"13 refused \"x\\ny\" 42601",
	"13 query \"a\\nb\" 22012",
}

const mysqlLogText = "/usr/sbin/mariadbd, Version: 10.11.19-MariaDB. started with:\nTcp port: 20001  Unix socket: /tmp/x\nTime\t\t    Id Command\tArgument\n" +
	"251129 22:53:14\t     5 Connect\tapp@127.0.0.1 on app using TCP/IP\n" +
	"\t\t     6 Connect\tharness@127.0.0.1 on  using TCP/IP\n" +
	"\t\t     5 Query\tSELECT 1,\n\n\t\t'x'\n" +
	"\t\t     6 Query\tSELECT 'internal'\n" +
	"\t\t     7 Query\tINSERT of the applier\n" +
	"251129  2:53:15\t     5 Prepare\tSELECT ?\n" +
	"\t\t     5 Execute\tSELECT 2\n" +
	"\t\t     5 Close stmt\t\n" +
	"\t\t     5 Quit\t\n" +
	"\t\t     5 Query\tby nobody\n" +
	"\t\t     8 Connect\tapp@127.0.0.1 on app using TCP/IP\n" +
	"\t\t     8 Query\tlast\n" +
	"/opt/server/mysqld, Version: 5.7.1-log (x). started with:\nTcp port: 20001  Unix socket: /tmp/x\nTime                 Id Command    Argument\n" +
	"\t\t     8 Query\tby somebody else\n" +
	"2025-11-29T22:53:16.123456Z\t    3 Connect\tadmin@127.0.0.1 on app using TCP/IP\n" +
	"2025-11-29T22:53:16.123457Z\t    3 Query\tSELECT 5\n"

var mysqlWant = []string{
	"5 query \"SELECT 1,\\n\\n\\t\\t'x'\" ",
	"5 prepare \"SELECT ?\" ",
	"5 execute \"SELECT 2\" ",
	"8 query \"last\" ",
	"3 query \"SELECT 5\" ",
}

func short(list []replicatedtest.Statement) []string {
	var words []string
	for _, s := range list {
		words = append(words, fmt.Sprintf("%d %v %q %s", s.Session, s.Kind, s.Text, s.Code))
	}
	return words
}

// The file may have been read at any moment: wherever it is cut in two, and
// byte by byte, the entries are the same.
func TestLogsAreReadInPieces(t *testing.T) {
	for name, c := range map[string]struct {
		parser func() func([]byte, []replicatedtest.Statement) []replicatedtest.Statement
		text   string
		want   []string
	}{
		"postgres": {replicatedtest.NewPostgresLog, postgresLog, postgresWant},
		"mysql":    {replicatedtest.NewMySQLLog, mysqlLogText, mysqlWant},
	} {
		t.Run(name, func(t *testing.T) {
			for cut := range len(c.text) {
				add := c.parser()
				list := add([]byte(c.text[:cut]), nil)
				list = add([]byte(c.text[cut:]), list)
				if got := short(list); !slices.Equal(got, c.want) {
					t.Fatalf("cut at %d (%q):\n%q\nwant\n%q", cut, c.text[max(0, cut-20):cut], got, c.want)
				}
			}
			add := c.parser()
			var list []replicatedtest.Statement
			for i := range len(c.text) {
				list = add([]byte{c.text[i]}, list)
			}
			if got := short(list); !slices.Equal(got, c.want) {
				t.Errorf("byte by byte:\n%q\nwant\n%q", got, c.want)
			}
		})
	}
}

func TestLogTimes(t *testing.T) {
	list := replicatedtest.NewPostgresLog()([]byte(postgresLog), nil)
	if got, want := list[0].Time, time.UnixMilli(1764456803500).UTC(); !got.Equal(want) {
		t.Errorf("%v, want %v", got, want)
	}
	list = replicatedtest.NewMySQLLog()([]byte(mysqlLogText), nil)
	for i, want := range []time.Time{
		time.Date(2025, 11, 29, 22, 53, 14, 0, time.UTC),
		time.Date(2025, 11, 29, 2, 53, 15, 0, time.UTC),
	} {
		if got := list[i].Time; !got.Equal(want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	if got, want := list[4].Time, time.Date(2025, 11, 29, 22, 53, 16, 123457000, time.UTC); !got.Equal(want) {
		t.Errorf("%v, want %v", got, want)
	}
}
