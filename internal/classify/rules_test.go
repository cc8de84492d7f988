package classify

import (
	"os"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/internal/lex"
)

// A kind of statement that a table knows has at least one case in
// testdata/statements.txt, in the table's own dialect: whoever adds a row to a
// table is told here to add its case.
func TestEveryKindHasACase(t *testing.T) {
	data, err := os.ReadFile("testdata/statements.txt")
	if err != nil {
		t.Fatal(err)
	}
	type kind struct {
		mysql   bool
		keyword string
	}
	seen := make(map[kind]bool)
	for line := range strings.Lines(string(data)) {
		name, sql, ok := strings.Cut(line, ": ")
		d, known := ParseDialect(name)
		if !ok || !known || strings.HasPrefix(line, "\t") {
			continue
		}
		sql = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\r`, "\r", `\0`, "\x00").Replace(sql)
		seen[kind{d != Postgres, Classify(d, sql).Keyword}] = true
	}
	for _, tbl := range []struct {
		name  string
		mysql bool
		rules *table
	}{{"PostgreSQL", false, &postgresTable}, {"MySQL", true, &mysqlTable}} {
		for kw, ru := range tbl.rules {
			if ru.parse == parseNone {
				continue
			}
			if word := lex.Keyword(kw).String(); !seen[kind{tbl.mysql, word}] {
				t.Errorf("%s: no case in testdata/statements.txt begins with %s", tbl.name, word)
			}
		}
	}
}
