package route

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/record"
)

var recordFiles = []string{"testdata/record-1.jsonl", "testdata/record-2.jsonl"}

func TestReportsOnRecords(t *testing.T) {
	for format, file := range map[string]string{"text": "record.txt", "html": "record.html", "json": "record.jsonl"} {
		t.Run(format, func(t *testing.T) {
			got := output(t, "", append([]string{"-input", "record", "-format", format}, recordFiles...)...)
			golden(t, file, got)
			if again := output(t, "", append([]string{"-input", "log", "-format", format}, recordFiles...)...); again != got {
				t.Errorf("found out, the format makes another report:\n%s", again)
			}
		})
	}
}

// One record in two files, one of them packed, tells what it tells in one.
func TestRecordsAreMerged(t *testing.T) {
	whole, err := os.ReadFile(recordFiles[0])
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := func(name string, text []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	cut := bytes.LastIndexByte(whole[:len(whole)/2], '\n') + 1
	if _, err := z.Write(whole[:cut]); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	want := output(t, "", "-input", "record", "-format", "json", recordFiles[0])
	got := output(t, "", "-input", "record", "-format", "json", file("b", whole[cut:]), file("a.gz", packed.Bytes()))
	if got != want || !strings.Contains(want, `"processes":1`) {
		t.Errorf("in two files\n%s\nin one\n%s", got, want)
	}
}

func TestRecordsAndStatementsAreNotMixed(t *testing.T) {
	for _, files := range [][]string{{recordFiles[0], "testdata/pg-statement.log"}, {"testdata/pg-statement.log", recordFiles[0]}} {
		if _, stderr, status := command(t, "", append([]string{"-input", "log"}, files...)...); status != exitUsage || !strings.Contains(stderr, "one after the other") {
			t.Errorf("%v: exit status %d, %s", files, status, stderr)
		}
	}
}

func TestRecordsThatCannotBeRead(t *testing.T) {
	if _, stderr, status := command(t, `{"v":2,"class":"read","n":1}`, "-input", "record"); status != exitFault || !strings.Contains(stderr, "version 2") {
		t.Errorf("a later version: exit status %d, %s", status, stderr)
	}
	if got := output(t, "", "-input", "record"); !strings.Contains(got, "no statement in it") {
		t.Errorf("of nothing: %s", got)
	}
	if got := output(t, "", "-input", "record", "-format", "html"); !strings.Contains(got, "no statement in it") {
		t.Errorf("of nothing: %s", got)
	}
}

// Whatever the driver may say of a read is known here.
func TestEveryReasonHasAFate(t *testing.T) {
	known := map[string]bool{ // by the class of the statement, or none of a primary's
		"unknown": true, "read": true, "read-only-tx": true, "stale": true, "empty": true, "write": true, "ddl": true, "lock": true,
		"session": true, "tx-control": true, "call": true, "admin": true, "show": true, "multi": true, "unproven": true,
	}
	n := 0
	for r := replicated.ReasonUnknown + 1; r.String() != "unknown"; r++ {
		n++
		_, reason := byReason[r.String()]
		_, other := undecided[r.String()]
		if !reason && !other && !known[r.String()] {
			t.Errorf("the reason %q is not known", r)
		}
	}
	if n < 30 {
		t.Errorf("there are %d reasons", n)
	}
}

func TestFates(t *testing.T) {
	for _, tt := range []struct {
		class, keyword, reason, role string
		want                         fate
	}{
		{"read", "SELECT", "shadow", "primary", fateMoves},
		{"read", "SELECT", "read", "replica", fateMoves},
		{"read", "SELECT", "read-only-tx", "replica", fateMoves},
		{"unknown", "SELECT", "shadow", "primary", fateMoves}, // in a read-only transaction
		{"lock", "SELECT", "shadow-refused", "primary", fateRefused},
		{"session", "SET", "shadow-refused", "primary", fateRefused},
		{"read", "SELECT", "own-write", "primary", fateStale},
		{"read", "SELECT", "miss", "primary", fateStale},
		{"read", "SELECT", "lag", "primary", fateStale},
		{"read", "SELECT", "transaction", "primary", fateBreaks},
		{"read", "SELECT", "pinned", "primary", fateBreaks},
		{"read", "SELECT", "missing", "primary", fateBreaks},
		{"lock", "SELECT", "lock", "primary", fateBreaks},
		{"lock", "SELECT", "transaction", "primary", fateBreaks},
		{"write", "WITH", "write", "primary", fateBreaks},
		{"unknown", "SELECT", "unproven", "primary", fateBreaks},
		{"session", "SELECT", "session", "primary", fateBreaks},
		{"write", "INSERT", "write", "primary", fateStays},
		{"write", "INSERT", "transaction", "primary", fateStays},
		{"lock", "LOCK", "lock", "primary", fateStays},
		{"session", "SET", "session", "primary", fateStays},
		{"show", "SHOW", "show", "primary", fateStays},
		{"read", "SELECT", "asked", "primary", fateUndecided},
		{"read", "SELECT", "no-replica", "primary", fateUndecided},
		{"read", "SELECT", "of-a-later-version", "primary", fateUndecided},
	} {
		l := &record.Line{Class: tt.class, Keyword: tt.keyword, Reason: tt.reason, Role: tt.role}
		if got, why := fateOf(l); got != tt.want || why == "" {
			t.Errorf("%s %s, %s, on the %s: %s (%s), want %s", tt.class, tt.keyword, tt.reason, tt.role, fateNames[got], why, fateNames[tt.want])
		}
	}
}

func TestAdvice(t *testing.T) {
	line := func(class, keyword, reason string, n, failed int64) *record.Line {
		return &record.Line{Class: class, Keyword: keyword, Reason: reason, Role: "primary", N: n, Failed: failed, Write: class == "write"}
	}
	reads := line("read", "SELECT", "shadow", enough, 0)
	for _, tt := range []struct {
		name  string
		lines []*record.Line
		want  advice
	}{
		{"reads only", []*record.Line{reads}, adviceFirst},
		{"asked for the primary too", []*record.Line{reads, line("read", "SELECT", "asked", 10, 0)}, adviceFirst},
		{"one read less", []*record.Line{line("read", "SELECT", "shadow", enough-1, 0)}, adviceFew},
		{"a write", []*record.Line{reads, line("write", "INSERT", "write", 1, 0)}, adviceThen},
		{"a read of its own write", []*record.Line{reads, line("read", "SELECT", "session-write", 1, 0)}, adviceThen},
		{"a lock", []*record.Line{reads, line("lock", "SELECT", "lock", 1, 0)}, adviceThen},
		{"one that would be refused", []*record.Line{line("lock", "SELECT", "shadow-refused", 1, 0)}, adviceFix},
		{"one that fails in any case", []*record.Line{reads, line("lock", "SELECT", "shadow-refused", 1, 1)}, adviceFirst},
		{"not opted in", []*record.Line{line("read", "SELECT", "not-opted-in", enough, 0)}, adviceUnknown},
		{"writes only", []*record.Line{line("write", "INSERT", "write", enough, 0)}, adviceNothing},
		{"only what frames", []*record.Line{line("transaction", "BEGIN", "tx-control", enough, 0), line("read", "BEGIN", "shadow", enough, 0)}, adviceFew},
	} {
		s := newRecordSummary()
		for _, l := range tt.lines {
			s.add(l)
		}
		if got, why := s.caller("").advise(); got != tt.want || why == "" {
			t.Errorf("%s: %s (%s), want %s", tt.name, adviceNames[got], why, adviceNames[tt.want])
		}
	}
}

// Names of callers may come from anywhere: they do nothing to a terminal or a page.
func TestCallersAreShownAsTheyAre(t *testing.T) {
	in := `{"v":1,"caller":"GET /\u001b[31m<script>","class":"write","keyword":"INSERT","reason":"write","role":"primary","write":true,"n":600}`
	for _, format := range []string{"text", "html"} {
		if got := output(t, in, "-input", "record", "-format", format); strings.Contains(got, "\x1b") || format == "html" && strings.Contains(got, "<script>") || !strings.Contains(got, "GET /") {
			t.Errorf("%s: %q", format, got)
		}
	}
}

func TestCallersAreBounded(t *testing.T) {
	s := newRecordSummary()
	for i := range maxCallers + 100 {
		s.add(&record.Line{Caller: fmt.Sprint("GET /", i), Class: "read", Keyword: "SELECT", Reason: "shadow", Role: "primary", N: 1})
	}
	if n := s.callers[otherCallers].statements; n != 100 || len(s.callers) != maxCallers+1 || s.total.statements != maxCallers+100 {
		t.Errorf("%d callers, %d statements of others", len(s.callers), n)
	}
	if notes := strings.Join(s.notes(), "\n"); !strings.Contains(notes, "10,000 callers") {
		t.Errorf("notes %s", notes)
	}
}
