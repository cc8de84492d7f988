package route

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestLogReaders(t *testing.T) {
	tests := []struct {
		name, format, prefix string
		in                   string
		want                 []string // session, text and time of each entry
		skipped              int64
	}{
		{
			name: "the default prefix", format: "pglog",
			in:   "2025-11-29 22:53:14.123 UTC [77] LOG:  statement: SELECT 1\n",
			want: []string{`77 "SELECT 1" ?`},
		},
		{
			name: "pgbadger's prefix", format: "pglog",
			in:   "2025-11-29 22:53:14 UTC [77]: user=app,db=shop,app=[a],client=127.0.0.1 LOG:  duration: 1500.000 ms  statement: SELECT 1\n",
			want: []string{`77 "SELECT 1" 1.5s`},
		},
		{
			name: "a hosted server's prefix", format: "pglog",
			in:   "2025-11-29 22:53:14 UTC:10.0.0.1(5000):app@shop:[77]:LOG:  statement: SELECT 1\n",
			want: []string{`77 "SELECT 1" ?`},
		},
		{
			name: "pid=", format: "pglog",
			in:   "pid=77 LOG:  statement: SELECT 1\n",
			want: []string{`77 "SELECT 1" ?`},
		},
		{
			name: "session identifiers", format: "pglog",
			in:   "app 692b4ed1.1f3 LOG:  statement: SELECT 1\n",
			want: []string{`692b4ed1.1f3 "SELECT 1" ?`},
		},
		{
			name: "no prefix", format: "pglog",
			in:   "LOG:  statement: SELECT 1\n",
			want: []string{` "SELECT 1" ?`},
		},
		{
			name: "a prefix that has to be told", format: "pglog", prefix: "%n|%-6p|%u|%e|",
			in:   "1764456794.123|77    |app|00000|LOG:  statement: SELECT 1\n",
			want: []string{`77 "SELECT 1" ?`},
		},
		{
			name: "many lines", format: "pglog",
			in:   "[1] LOG:  statement: SELECT 'LOG:  x'\n\t, 2\n\t\n\t\t-- LOG:  statement: no\n[1] DETAIL:  parameters: $1 = 'a\n\tb'\n[2] LOG:  execute a/b: SELECT $1\r\n",
			want: []string{`1 "SELECT 'LOG:  x'\n, 2\n\n\t-- LOG:  statement: no" ?`, `2 "SELECT $1" ?`},
		},
		{
			name: "times in lines of their own, and what is no statement", format: "pglog",
			in: "[1] LOG:  checkpoint starting: time\n[1] ERROR:  no\n[1] STATEMENT:  SELECT no\n[1] LOG:  duration: 0.500 ms  parse a: SELECT 1\n" +
				"[1] LOG:  execute fetch from a: SELECT 1\n[1] LOG:  duration: 2 ms  plan:\n\tQuery Text: SELECT 1\n[1] LOG:  statement: SELECT 2\n[1] LOG:  duration: 2.000 ms\n[1] LOG:  disconnection: session time: 0:00:01\n",
			want: []string{`1 "SELECT 2" ?`, "1 took 2ms", "1 ended"},
		},
		{
			name: "lines that are not the server's", format: "pglog",
			in:   "ld.so: warning\n\tand more\n[1] LOG:  statement: SELECT 1\nkilled\n",
			want: []string{`1 "SELECT 1" ?`}, skipped: 3,
		},
		{
			name: "damaged CSV", format: "pgcsv",
			in: "a,b\n" + `2025-11-29 22:53:14.123 UTC,"app","shop",77,"127.0.0.1:5000",692b4ed1.1f3,1,"idle",2025-11-29 22:53:14 UTC,3/2,0,LOG,00000,"statement: SELECT '""',
2",,,,,,,,,"psql","client backend",,0` + "\n",
			want: []string{`692b4ed1.1f3 "SELECT '\"',\n2" ?`}, skipped: 1,
		},
		{
			name: "damaged JSON", format: "pgjson",
			in:   "{\n\n" + `{"pid":77,"session_id":"a.b","error_severity":"LOG","message":"duration: 3.000 ms  execute x: SELECT '\u003c'"}` + "\n" + `{"error_severity":"ERROR","message":"statement: no"}`,
			want: []string{`a.b "SELECT '<'" 3ms`}, skipped: 1,
		},
		{
			name: "times that are left out", format: "mysqlgeneral",
			in:   "251129  2:53:14\t    5 Query\tSELECT 1\n\t\t    6 Query\tSELECT 2\n\n\t\t    5 Prepare\tSELECT ?\n\t\t    5 Reset stmt\t\n\t\t    5 Execute\tSELECT 3\n",
			want: []string{`5 "SELECT 1" ?`, `6 "SELECT 2\n" ?`, `5 "SELECT 3" ?`},
		},
		{
			name: "a restart", format: "mysqlgeneral",
			in:   "251129 12:53:14\t    5 Query\tBEGIN\nmysqld, Version: 5.6.24 (MySQL). started with:\nTcp port: 0  Unix socket: (null)\nTime                 Id Command    Argument\n251129 12:53:15\t    5 Quit\t\n",
			want: []string{`5 "BEGIN" ?`, " ended", "5 ended"},
		},
		{
			name: "slow with what the server adds", format: "mysqlslow",
			in: "junk\n# User@Host: a[a] @ b []\n# Thread_id: 9  Schema: x  QC_hit: No\n# Query_time: 2.5  Lock_time: 0\n# Full_scan: Yes\n#\n# explain: id select_type\n" +
				"use `x`;\nSET last_insert_id=3,insert_id=4,timestamp=5;\n# of mine\nINSERT INTO t\n\nVALUES (1);\n# User@Host: a[a] @ b []\n# Query_time: 1  Lock_time: 0\nSET timestamp=1;\n# administrator command: Ping;\n",
			want: []string{`9 "# of mine\nINSERT INTO t\n\nVALUES (1)" 2.5s`}, skipped: 1,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := &options{}
			if tt.prefix != "" {
				p, err := parsePrefix(tt.prefix)
				if err != nil {
					t.Fatal(err)
				}
				o.prefix = p
			}
			f, err := formatNamed(tt.format)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			r := f.reader(o)
			err = r.read(strings.NewReader(tt.in), func(e *entry) error {
				switch e.note {
				case noteEnded:
					got = append(got, e.session+" ended")
				case noteTook:
					got = append(got, fmt.Sprintf("%s took %v", e.session, e.took))
				default:
					took := "?"
					if e.took >= 0 {
						took = e.took.Round(time.Microsecond).String()
					}
					got = append(got, fmt.Sprintf("%s %q %s", e.session, e.text, took))
				}
				return nil
			})
			if err != nil || r.skipped() != tt.skipped || !slices.Equal(got, tt.want) {
				t.Errorf("got %q and %d left out (%v), want %q and %d", got, r.skipped(), err, tt.want, tt.skipped)
			}
		})
	}
}

func TestParsePrefix(t *testing.T) {
	for prefix, want := range map[string]string{
		"%m [%p] %q%u@%d ":  "",
		"%t %%p=%5p ":       "",
		"%c %p ":            "",
		"%m ":               "neither",
		"%p %":              "ends in",
		"%p %!":             "%!",
		"%a,%b,%e,%i %p %Q": "",
	} {
		_, err := parsePrefix(prefix)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", prefix, err, want)
		}
	}
}

func TestFigures(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{percent(0), "0 %"}, {percent(1), "100 %"}, {percent(0.0004), "< 0.1 %"}, {percent(0.9999), "> 99.9 %"}, {percent(0.4217), "42.2 %"},
		{thousands(0), "0"}, {thousands(999), "999"}, {thousands(1234567), "1,234,567"},
		{duration(0), "0 s"}, {duration(12 * time.Microsecond), "12 µs"}, {duration(1500 * time.Microsecond), "1.5 ms"}, {duration(250 * time.Millisecond), "250 ms"},
		{duration(3 * time.Second), "3.0 s"}, {duration(61 * time.Second), "1 min 01 s"}, {duration(3661 * time.Second), "1 h 01 min"}, {duration(72 * time.Hour), "3.0 days"},
		{clip("a\x1b[31mb", 80), "a\ufffd[31mb"}, {clip(strings.Repeat("é", 30), 20), strings.Repeat("é", 19) + "…"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}
