package classify_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/internal/classify"
)

var update = flag.Bool("update", false, "rewrite the verdicts in testdata/statements.txt")

// TestStatements holds the verdict on each statement of testdata/statements.txt
// against the one written there. A line that begins with a dialect and a colon is
// a case; the indented line behind it is its verdict, which -update writes. All
// else is comment. Read the diff before keeping it.
func TestStatements(t *testing.T) {
	const path = "testdata/statements.txt"
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	var want string
	cases := 0
	lines := strings.Split(strings.TrimSuffix(string(old), "\n"), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "\t") {
			continue
		}
		fmt.Fprintln(&out, line)
		name, sql, ok := strings.Cut(line, ": ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		d, ok := classify.ParseDialect(name)
		if !ok {
			t.Fatalf("%s:%d: dialect %q", path, i+1, name)
		}
		cases++
		got := describe(classify.Classify(d, unescapeSQL.Replace(sql)))
		fmt.Fprintf(&out, "\t%s\n", got)
		want = ""
		if i+1 < len(lines) {
			want = strings.TrimPrefix(lines[i+1], "\t")
		}
		if !*update && got != want {
			t.Errorf("%s:%d: %s\n got %s\nwant %s", path, i+1, line, got, want)
		}
	}
	if cases < 300 {
		t.Errorf("only %d cases", cases)
	}
	if *update {
		if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// describe writes a verdict the way testdata/statements.txt has it.
func describe(v classify.Verdict) string {
	var b strings.Builder
	route := "primary"
	if v.Replica() {
		route = "REPLICA"
	}
	fmt.Fprintf(&b, "%s %s", route, v.Class)
	if v.Effect != 0 {
		fmt.Fprintf(&b, " +%s", strings.ReplaceAll(v.Effect.String(), " ", " +"))
	}
	if v.Vars != 0 {
		fmt.Fprintf(&b, " vars=%s", strings.ReplaceAll(v.Vars.String(), " ", ","))
	}
	if v.Hint != classify.NoHint {
		fmt.Fprintf(&b, " hint=%s", v.Hint)
	}
	if v.Cacheable {
		b.WriteString(" cacheable")
	}
	if v.Params != 0 {
		fmt.Fprintf(&b, " params=%d", v.Params)
	}
	fmt.Fprintf(&b, " [%s]", v.Keyword)
	if v.Reason != "" {
		fmt.Fprintf(&b, " %s", v.Reason)
	}
	return b.String()
}
