package route

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/internal/classify"
)

var update = flag.Bool("update", false, "write the golden files anew")

// command runs the command on an input.
func command(t *testing.T, stdin string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, fault bytes.Buffer
	status = run(args, strings.NewReader(stdin), &out, &fault)
	return out.String(), fault.String(), status
}

// output runs the command, which has to succeed.
func output(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	stdout, stderr, status := command(t, stdin, args...)
	if status != exitOK || stderr != "" {
		t.Fatalf("%q: exit status %d, %s", args, status, stderr)
	}
	return stdout
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("not what %s has (go test -update writes it anew, for review):\n%s", file, got)
	}
}

// samples are logs with the format that they have. Those without a number in the
// name were written by PostgreSQL 15 and MariaDB 10.11; those with 56 by MySQL 5.6.
var samples = []struct{ file, format string }{
	{"pg-statement.log", "pglog"},
	{"pg-duration.log", "pglog"},
	{"pg-statement.csv", "pgcsv"},
	{"pg-statement.json", "pgjson"},
	{"general-mariadb.log", "mysqlgeneral"},
	{"general-mysql56.log", "mysqlgeneral"},
	{"general-mysql8.log", "mysqlgeneral"},
	{"slow-mariadb.log", "mysqlslow"},
	{"slow-mysql56.log", "mysqlslow"},
	{"slow-mysql8.log", "mysqlslow"},
}

func TestSamples(t *testing.T) {
	for _, s := range samples {
		t.Run(s.file, func(t *testing.T) {
			file := filepath.Join("testdata", s.file)
			golden(t, s.file+".jsonl", output(t, "", "-input", s.format, "-format", "json", file))
			text := output(t, "", "-input", s.format, file)
			golden(t, s.file+".txt", text)
			if got := output(t, "", "-input", "log", file); got != text {
				t.Errorf("detected, the format makes another report:\n%s", got)
			}
		})
	}
}

// The three logs of PostgreSQL were written by one server at one time.
func TestPostgresLogsAgree(t *testing.T) {
	entries := func(file, format string) (list []string) {
		f, err := formatNamed(format)
		if err != nil {
			t.Fatal(err)
		}
		in, err := os.Open(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		r := f.reader(&options{})
		err = r.read(in, func(e *entry) error {
			if e.session == "" {
				t.Errorf("%s: no session for %q", file, e.text)
			}
			list = append(list, fmt.Sprintf("%d %q %v", e.note, e.text, e.took))
			return nil
		})
		if err != nil || r.skipped() > 0 {
			t.Errorf("%s: %d left out, %v", file, r.skipped(), err)
		}
		return list
	}
	want := entries("pg-statement.log", "pglog")
	if len(want) < 20 {
		t.Fatalf("there are %d entries", len(want))
	}
	for file, format := range map[string]string{"pg-statement.csv": "pgcsv", "pg-statement.json": "pgjson"} {
		if got := entries(file, format); !slices.Equal(got, want) {
			t.Errorf("%s has\n%s\nand standard error\n%s", file, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestReportsShowNoValues(t *testing.T) {
	values := []string{"Oslo", "Customer", "odd", "paid", "= 4", "two"}
	for _, s := range samples {
		for _, format := range []string{"text", "html"} {
			file := filepath.Join("testdata", s.file)
			for _, v := range values {
				if got := output(t, "", "-input", s.format, "-format", format, "-top", "100", file); strings.Contains(got, v) {
					t.Errorf("%s: the %s report has %q in it", s.file, format, v)
				}
			}
		}
	}
	if got := output(t, "", "-input", "log", "-values", "-top", "100", filepath.Join("testdata", "pg-statement.log")); !strings.Contains(got, "'paid'") {
		t.Errorf("with -values there are none:\n%s", got)
	}
}

func TestHTML(t *testing.T) {
	page := output(t, "", "-input", "log", "-format", "html", filepath.Join("testdata", "pg-statement.log"))
	golden(t, "pg-statement.log.html", page)
	for _, foreign := range []string{"<script", "http://", "https://", "@import", "url("} {
		if strings.Contains(page, foreign) {
			t.Errorf("the page has %q: it has to stand by itself", foreign)
		}
	}
	page = output(t, "SELECT 1 AS \"<script>alert(1)</script>\"", "-dialect", "postgres", "-format", "html")
	if strings.Contains(page, "<script") {
		t.Error("a statement brings a script")
	}
}

func TestJSON(t *testing.T) {
	tests := []struct{ name, stdin, args, want string }{
		{
			"scripts", "SELECT 1;\n\n-- nothing\n;INSERT INTO t VALUES (';') ; SELECT a FROM t FOR UPDATE",
			"-dialect postgres",
			`{"route":"replica","class":"read","reason":"proven read","pins":false,"write":false,"sql":"SELECT 1","reads":[],"writes":[]}
{"route":"primary","class":"write","reason":"writes rows","pins":false,"write":true,"sql":"INSERT INTO t VALUES (';')","reads":[],"writes":["t"]}
{"route":"primary","class":"lock","reason":"locking clause","pins":false,"write":false,"sql":"SELECT a FROM t FOR UPDATE","reads":["t"],"writes":[]}
`,
		},
		{
			"lines", "SELECT 1\n\nSELECT '\\\\\\n\\t\\r\\0<'\nSET ROLE x",
			"-input lines -dialect postgres",
			`{"route":"replica","class":"read","reason":"proven read","pins":false,"write":false,"sql":"SELECT 1","reads":[],"writes":[]}
{"route":"primary","class":"empty","reason":"nothing but blanks and comments","pins":false,"write":false,"sql":"","reads":[],"writes":[]}
{"route":"primary","class":"unknown","reason":"bytes or names that cannot be read for certain","pins":false,"write":true,"sql":"SELECT '\\\n\t\r\u0000<'"}
{"route":"primary","class":"session","reason":"sets the role","pins":true,"write":false,"sql":"SET ROLE x"}
`,
		},
		{"an empty line at the end", "\n", "-input lines", `{"route":"primary","class":"empty","reason":"nothing but blanks and comments","pins":false,"write":false,"sql":""}` + "\n"},
		{"no line", "", "-input lines", ""},
		{"no statement", " ; \n;", "-input sql", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := output(t, tt.stdin, append(strings.Fields(tt.args), "-format", "json")...)
			if got != tt.want {
				t.Errorf("got\n%s, want\n%s", got, tt.want)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.sql")
	tests := []struct {
		name   string
		stdin  string
		args   []string
		status int
		stderr string
	}{
		{"unknown dialect", "", []string{"-dialect", "oracle"}, 2, `"oracle"`},
		{"unknown input", "", []string{"-input", "syslog"}, 2, `"syslog"`},
		{"unknown format", "", []string{"-format", "xml"}, 2, `"xml"`},
		{"unknown flag", "", []string{"-loud"}, 2, "-loud"},
		{"negative top", "", []string{"-top", "-1"}, 2, "-top"},
		{"a prefix without sessions", "", []string{"-prefix", "%m "}, 2, "neither %p nor %c"},
		{"missing file", "", []string{missing}, 1, "missing.sql"},
		{"invalid escape", "SELECT 1\nSELECT '\\x'\n", []string{"-input", "lines"}, 1, `standard input: line 2: \x at column 9 is no escape`},
		{"lonely backslash", "SELECT 1\\", []string{"-input", "lines"}, 1, `line 1: a backslash ends the line`},
		{"no log", "hello\nworld\n", []string{"-input", "log"}, 2, "none of the logs"},
		{"files and a server", "", []string{"-dsn", "postgres://x", "a.sql"}, 2, "a.sql"},
		{"no DSN", "", []string{"-dsn", "user:se/cret@nowhere"}, 2, "-dsn"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, stderr, status := command(t, tt.stdin, tt.args...)
			if status != tt.status || !strings.Contains(stderr, tt.stderr) {
				t.Errorf("exit status %d, %q; want %d and %q", status, stderr, tt.status, tt.stderr)
			}
			if strings.Contains(stderr, "cret") {
				t.Errorf("a password is in %q", stderr)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	if stdout, _, status := command(t, "", "-h"); status != exitOK || !strings.Contains(stdout, "-dialect") {
		t.Errorf("exit status %d, %q", status, stdout)
	}
}

// What was answered before an error comes out.
func TestAnswersBeforeAnErrorAreWritten(t *testing.T) {
	stdout, _, status := command(t, "SELECT 1\n\\x", "-input", "lines", "-format", "json")
	if status != exitFault || strings.Count(stdout, "\n") != 1 {
		t.Errorf("exit status %d, %q", status, stdout)
	}
}

// closedPipe is an output whose reader has gone.
type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}
}

func TestClosedPipeIsNoError(t *testing.T) {
	var stderr bytes.Buffer
	in := &repeated{text: "SELECT 1\n", left: 1 << 30}
	if status := run([]string{"-input", "lines", "-format", "json"}, in, closedPipe{}, &stderr); status != exitOK || stderr.Len() > 0 {
		t.Errorf("exit status %d, %s", status, &stderr)
	}
	if in.left < 1<<29 {
		t.Error("it went on reading")
	}
}

type brokenDisk struct{}

func (brokenDisk) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestFailedOutputIsAnError(t *testing.T) {
	var stderr bytes.Buffer
	if status := run(nil, strings.NewReader("SELECT 1"), brokenDisk{}, &stderr); status != exitFault || !strings.Contains(stderr.String(), "disk full") {
		t.Errorf("exit status %d, %s", status, &stderr)
	}
}

// repeated is a text again and again, in reads of odd sizes.
type repeated struct {
	text string
	at   int
	left int64
}

func (r *repeated) Read(b []byte) (int, error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	b = b[:min(int64(len(b)), r.left, 4093)]
	n := 0
	for n < len(b) {
		c := copy(b[n:], r.text[r.at:])
		n += c
		r.at = (r.at + c) % len(r.text)
	}
	r.left -= int64(n)
	return n, nil
}

func TestLongStatements(t *testing.T) {
	long := "SELECT '" + strings.Repeat("x", 11<<20) + "'"
	for _, input := range []string{"lines", "sql"} {
		got := output(t, long+";\nSELECT 2", "-input", input, "-format", "json")
		if strings.Count(got, `"route":"replica"`) != 2 || len(got) < len(long) {
			t.Errorf("%s: %d bytes that begin with %.100s", input, len(got), got)
		}
	}
}

func TestGzipIsUnpacked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.sql.gz")
	if err := os.WriteFile(file, gzipped(t, "SELECT 1; SELECT 2"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := output(t, "", "-format", "json", file); strings.Count(got, "\n") != 2 {
		t.Errorf("got %s", got)
	}
}

// The rows of the public corpus, as a team would ask: none that has to run on the
// primary goes to a replica, and of those that may run on one 99 % do.
func TestCorpus(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "internal", "classify", "testdata", "routing-public.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	type row struct{ id, label, sql string }
	byDialect := map[string][]row{}
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n")[1:] {
		f := strings.Split(line, "\t")
		byDialect[f[1]] = append(byDialect[f[1]], row{f[0], f[2], f[4]})
	}
	rows, reads, found := 0, 0, 0
	for dialect, list := range byDialect {
		var in strings.Builder
		for _, r := range list {
			in.WriteString(r.sql + "\n")
		}
		answers := strings.Split(strings.TrimSuffix(output(t, in.String(), "-dialect", dialect, "-input", "lines", "-format", "json"), "\n"), "\n")
		if len(answers) != len(list) {
			t.Fatalf("%s: %d answers to %d rows", dialect, len(answers), len(list))
		}
		for i, r := range list {
			replica := strings.HasPrefix(answers[i], `{"route":"replica"`)
			rows++
			if r.label == "primary" && replica {
				t.Errorf("unsafe: %s %s", r.id, answers[i])
			}
			if r.label == "replica" {
				reads++
				if replica {
					found++
				}
			}
		}
	}
	t.Logf("%d rows; %d of %d reads go to a replica", rows, found, reads)
	if rows < 100 || found*100 < reads*99 {
		t.Errorf("%d of %d reads go to a replica", found, reads)
	}
}

func TestProgressLine(t *testing.T) {
	begun := time.Unix(0, 0)
	p := &progress{total: 100 << 20, read: 25 << 20, begun: begun}
	if got, want := p.line(begun.Add(time.Second)), "  [#######.......................]  25 %  25 of 100 MiB, 25 MiB/s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	p.total = 0
	if got, want := p.line(begun.Add(time.Second)), "  25 MiB read, 25 MiB/s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if newProgress(&bytes.Buffer{}, 1) != nil {
		t.Error("a buffer is no terminal")
	}
}

func TestProgressIsDrawnAtItsPace(t *testing.T) {
	var out bytes.Buffer
	begun := time.Unix(0, 0)
	p := &progress{w: &out, total: 1 << 20, begun: begun, next: begun.Add(progressDelay)}
	p.add(1, begun.Add(progressDelay-1))
	if out.Len() > 0 {
		t.Errorf("too early: %q", &out)
	}
	p.add(1, begun.Add(progressDelay))
	p.add(1, begun.Add(progressDelay+progressPace-1))
	if n := strings.Count(out.String(), "\r"); n != 1 {
		t.Errorf("drawn %d times: %q", n, &out)
	}
	p.end()
	if !strings.HasSuffix(out.String(), "\r\x1b[K") {
		t.Errorf("it stays: %q", &out)
	}
}

func TestFollowedSessions(t *testing.T) {
	type step struct{ session, text, want string }
	read := "SELECT a FROM t"
	tests := []struct {
		name    string
		dialect classify.Dialect
		steps   []step
	}{
		{"a transaction", classify.Postgres, []step{{"1", read, ""}, {"1", "BEGIN", "transaction control"}, {"1", read, whyInTx}, {"2", read, ""}, {"1", "COMMIT", "transaction control"}, {"1", read, ""}}},
		{"a read-only one", classify.Postgres, []step{{"1", "BEGIN READ ONLY", "transaction control"}, {"1", read, whyInReadOnlyTx}, {"1", "END", "transaction control"}, {"1", read, ""}}},
		{"ended by DDL", classify.MySQL, []step{{"1", "START TRANSACTION", "transaction control"}, {"1", "CREATE TABLE t (a int)", "changes definitions"}, {"1", read, ""}}},
		{"not ended by DDL", classify.Postgres, []step{{"1", "BEGIN", "transaction control"}, {"1", "CREATE TABLE t (a int)", "changes definitions"}, {"1", read, whyInTx}}},
		{"a role", classify.Postgres, []step{{"1", "SET ROLE x", "sets the role"}, {"1", read, whyHeld}, {"1", "RESET ROLE", "sets a session variable"}, {"1", read, ""}}},
		{"an end", classify.Postgres, []step{{"1", "BEGIN", "transaction control"}, {"1", "", "ended"}, {"1", read, ""}}},
		{"an end of all", classify.Postgres, []step{{"1", "BEGIN", "transaction control"}, {"", "", "ended"}, {"1", read, ""}}},
		{"no name", classify.Postgres, []step{{"", "BEGIN", "transaction control"}, {"", read, ""}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := newDecider(tt.dialect, true)
			for i, s := range tt.steps {
				if s.want == "ended" {
					x.ended(s.session)
					continue
				}
				e := statement(s.text)
				e.session = s.session
				d, err := x.decide(&e)
				if err != nil {
					t.Fatal(err)
				}
				if d.replica != (s.want == "") || !d.replica && d.why != s.want {
					t.Errorf("step %d, %q: replica %t, %q; want %q", i, s.text, d.replica, d.why, s.want)
				}
			}
		})
	}
}

func TestTextsThatWereCutOffStay(t *testing.T) {
	x := newDecider(classify.MySQL, false)
	e := statement("SELECT `a` FROM `t` WHERE `b` = ? AND `c` ...")
	e.cutOff = true
	if d, err := x.decide(&e); err != nil || d.replica {
		t.Errorf("replica %t, %v", d.replica, err)
	}
}

func TestSummaryIsBounded(t *testing.T) {
	s := newSummary(newNormalizer(classify.Postgres), false)
	x := newDecider(classify.Postgres, false)
	for i := range maxGroups + 1000 {
		e := statement(fmt.Sprintf("SELECT c%d FROM t", i))
		d, err := x.decide(&e)
		if err != nil {
			t.Fatal(err)
		}
		s.add(&e, &d)
	}
	if len(s.groups) > maxGroups+10 || s.overflow != 1000 || s.total.calls != maxGroups+1000 {
		t.Errorf("%d groups, %d over, %d calls", len(s.groups), s.overflow, s.total.calls)
	}
}
