package classify_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/internal/classify"
)

func cutAll(d classify.Dialect, text string) (parts []string, rest string) {
	for {
		n, ok := classify.Cut(d, text)
		if !ok {
			return parts, text[:n]
		}
		parts = append(parts, text[:n])
		text = text[n:]
	}
}

func TestCut(t *testing.T) {
	tests := []struct {
		name    string
		dialect classify.Dialect
		text    string
		want    []string
		rest    string
	}{
		{"nothing", classify.Postgres, "", nil, ""},
		{"no semicolon", classify.Postgres, "SELECT 1", nil, "SELECT 1"},
		{"two", classify.Generic, "SELECT 1;SELECT 2;", []string{"SELECT 1;", "SELECT 2;"}, ""},
		{"in quotes and names", classify.Postgres, `SELECT ';', ";" ;x`, []string{`SELECT ';', ";" ;`}, "x"},
		{"in comments", classify.Postgres, "SELECT /* ; /* ; */ ; */ 1 -- ;\n;x", []string{"SELECT /* ; /* ; */ ; */ 1 -- ;\n;"}, "x"},
		{"in dollar quotes", classify.Postgres, "DO $a$ x; $$ y; $a$;x", []string{"DO $a$ x; $$ y; $a$;"}, "x"},
		{"behind a backslash", classify.MySQL, `SELECT 'it\'s; fine';x`, []string{`SELECT 'it\'s; fine';`}, "x"},
		{"in backticks", classify.MariaDB, "SELECT `;`;x", []string{"SELECT `;`;"}, "x"},
		{"behind a hash", classify.MySQL, "SELECT 1 # ;\n;x", []string{"SELECT 1 # ;\n;"}, "x"},
		{"in parentheses", classify.Postgres, "CREATE RULE r AS ON UPDATE TO t DO (DELETE FROM a; DELETE FROM b);x", []string{"CREATE RULE r AS ON UPDATE TO t DO (DELETE FROM a; DELETE FROM b);"}, "x"},
		{"in parentheses of MySQL", classify.MySQL, "SELECT (1;x", []string{"SELECT (1;"}, "x"},
		{
			"SQL function", classify.Postgres,
			"CREATE OR REPLACE FUNCTION f(a int) RETURNS int BEGIN ATOMIC SELECT CASE WHEN a > 1 THEN 2 END; SELECT 3; END; SELECT 4;",
			[]string{"CREATE OR REPLACE FUNCTION f(a int) RETURNS int BEGIN ATOMIC SELECT CASE WHEN a > 1 THEN 2 END; SELECT 3; END;", " SELECT 4;"}, "",
		},
		{
			"stored procedure", classify.MariaDB,
			"CREATE DEFINER=`a`@`%` PROCEDURE p() BEGIN IF x THEN SELECT 1; END IF; CASE y WHEN 1 THEN SELECT 2; END CASE; l: LOOP LEAVE l; END LOOP l; BEGIN END; END; SELECT 4;",
			[]string{"CREATE DEFINER=`a`@`%` PROCEDURE p() BEGIN IF x THEN SELECT 1; END IF; CASE y WHEN 1 THEN SELECT 2; END CASE; l: LOOP LEAVE l; END LOOP l; BEGIN END; END;", " SELECT 4;"}, "",
		},
		{"a transaction is no block", classify.Postgres, "BEGIN;SELECT 1;END;", []string{"BEGIN;", "SELECT 1;", "END;"}, ""},
		{"a table called event", classify.MySQL, "CREATE TABLE event (begin int);x", []string{"CREATE TABLE event (begin int);"}, "x"},
		{"open quote", classify.Postgres, "SELECT 'a; b;", nil, "SELECT 'a; b;"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			parts, rest := cutAll(tt.dialect, tt.text)
			if !slices.Equal(parts, tt.want) || rest != tt.rest {
				t.Errorf("got %q and %q, want %q and %q", parts, rest, tt.want, tt.rest)
			}
		})
	}
}

// A reader that has only a part of a script never gets a statement that more of
// the script would have gone on.
func TestCutOfAPartIsCutOfTheWhole(t *testing.T) {
	scripts := map[classify.Dialect]string{
		classify.Postgres: "SELECT E'a\\';'\n 'b;' /* ; */;DO $x$ ; $x$; -- ;\nSELECT U&';' \"a;\"; CREATE RULE r DO (a; b); SELECT 1;",
		classify.MySQL:    "SELECT 'a\\';', `;`, \"\\\";\" /*!50000 , 1 */ ; -- ;\n# ;\nCREATE PROCEDURE p() BEGIN SELECT 1; END IF; END; SELECT @`;`, @';' ;",
	}
	for d, script := range scripts {
		want, ok := classify.Cut(d, script)
		if !ok {
			t.Fatalf("%v: no statement in %q", d, script)
		}
		for rest := script; ok; want, ok = classify.Cut(d, rest) {
			for i := range rest {
				if n, ok := classify.Cut(d, rest[:i]); ok && n != want {
					t.Errorf("%v: of %q the first %d bytes are cut at %d, and the whole at %d", d, rest, i, n, want)
				}
			}
			rest = rest[want:]
		}
	}
}

func FuzzCutKeepsEveryByte(f *testing.F) {
	f.Add(uint8(1), "SELECT 1; SELECT ';'")
	f.Add(uint8(2), "CREATE PROCEDURE p() BEGIN SELECT 1; END; x")
	f.Fuzz(func(t *testing.T, dialect uint8, text string) {
		parts, rest := cutAll(classify.Dialect(dialect%5), text)
		if got := strings.Join(parts, "") + rest; got != text {
			t.Errorf("%q became %q", text, got)
		}
	})
}
