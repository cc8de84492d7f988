package classify_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// corpusRow is one row of a file of routing cases.
type corpusRow struct {
	id, label, class, sql, why string
	dialect                    classify.Dialect
}

var unescapeSQL = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\r`, "\r", `\0`, "\x00", `\\`, `\`)

func readCorpus(tb testing.TB, path string) []corpusRow {
	tb.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	var rows []corpusRow
	for i, line := range strings.Split(strings.TrimRight(string(data), "\n"), "\n") {
		f := strings.Split(line, "\t")
		if i == 0 {
			continue // the names of the columns
		}
		if len(f) != 6 {
			tb.Fatalf("%s:%d: %d fields", path, i+1, len(f))
		}
		d, ok := classify.ParseDialect(f[1])
		if !ok {
			tb.Fatalf("%s:%d: dialect %q", path, i+1, f[1])
		}
		rows = append(rows, corpusRow{id: f[0], dialect: d, label: f[2], class: f[3], sql: unescapeSQL.Replace(f[4]), why: f[5]})
	}
	return rows
}

// readCorpora reads the public corpus and what the differential test has found
// (testdata/found.tsv).
func readCorpora(tb testing.TB) []corpusRow {
	tb.Helper()
	files, err := filepath.Glob("testdata/*.tsv")
	if err != nil || len(files) < 2 {
		tb.Fatalf("found %v, %v", files, err)
	}
	var rows []corpusRow
	for _, f := range files {
		rows = append(rows, readCorpus(tb, f)...)
	}
	return rows
}

// TestRoutingCorpus holds the verdicts against a corpus whose labels were checked
// on real servers: nothing labelled primary may go to a replica, and what is
// labelled replica has to.
func TestRoutingCorpus(t *testing.T) {
	rows := readCorpora(t)
	if len(rows) < 160 {
		t.Fatalf("only %d rows", len(rows))
	}
	for _, r := range rows {
		v := classify.Classify(r.dialect, r.sql)
		switch r.label {
		case "primary":
			if v.Replica() {
				t.Errorf("%s: UNSAFE: %q: %s: %s", r.id, r.sql, r.why, describe(v))
			}
		case "replica":
			if !v.Replica() {
				t.Errorf("%s: too timid: %q: %s: %s", r.id, r.sql, r.why, describe(v))
			}
		}
		if v.Class == classify.Read || v.Class == classify.Empty {
			continue
		}
		if v.Reason == "" && v.Class != classify.Show {
			t.Errorf("%s: no reason: %q: %s", r.id, r.sql, describe(v))
		}
	}
}

// TestRoutingCorpusOnEitherMySQL: what is not known to be MySQL or MariaDB is safe
// on both, and so is what is not known at all.
func TestRoutingCorpusOnEitherMySQL(t *testing.T) {
	for _, r := range readCorpora(t) {
		if r.label != "primary" {
			continue
		}
		for _, d := range []classify.Dialect{classify.AnyMySQL, classify.Generic} {
			if d == classify.AnyMySQL && r.dialect == classify.Postgres {
				continue
			}
			if v := classify.Classify(d, r.sql); v.Replica() {
				t.Errorf("%s under %v: UNSAFE: %q: %s", r.id, d, r.sql, describe(v))
			}
		}
	}
}
