package route

import (
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/internal/classify"
)

func TestForm(t *testing.T) {
	tests := []struct {
		name    string
		dialect classify.Dialect
		text    string
		want    string
	}{
		{"numbers and strings", classify.Postgres, "SELECT a  FROM t\nWHERE b = 12.5e3 AND c='x''y' -- z", "SELECT a FROM t WHERE b = ? AND c=?"},
		{"placeholders", classify.Postgres, "SELECT a FROM t WHERE b = $1 LIMIT $2", "SELECT a FROM t WHERE b = ? LIMIT ?"},
		{"placeholders of nobody knows", classify.Generic, "SELECT a FROM t WHERE b IN (?, ?)", "SELECT a FROM t WHERE b IN (?, …)"},
		{"names", classify.Postgres, `SELECT "u"."name", u.* FROM "Users" AS u`, `SELECT "u"."name", u.* FROM "Users" AS u`},
		{"names of MySQL", classify.MySQL, "SELECT `u`.`name` FROM `shop` . `users` `u`", "SELECT `u`.`name` FROM `shop`.`users` `u`"},
		{"double quotes of MySQL", classify.MySQL, `SELECT a FROM t WHERE b = "secret"`, "SELECT a FROM t WHERE b = ?"},
		{"double quotes of nobody knows", classify.Generic, `SELECT a FROM t WHERE b = "secret"`, `SELECT a FROM t WHERE b = "?"`},
		{"a list", classify.Postgres, "SELECT a FROM t WHERE b IN (1, 2,3 , $4) AND c IN ('x')", "SELECT a FROM t WHERE b IN (?, …) AND c IN (?)"},
		{"rows", classify.MariaDB, "INSERT INTO t (a, b) VALUES (1, 'x'), (2, 'y'),(3,?)", "INSERT INTO t (a, b) VALUES (?, …), …"},
		{"rows and more", classify.Postgres, "INSERT INTO t VALUES (1, now()), (2, now()) ON CONFLICT DO NOTHING", "INSERT INTO t VALUES (?, now()), (?, now()) ON CONFLICT DO NOTHING"},
		{"rows of different shape", classify.Postgres, "VALUES (1), (2, a), (3, a)", "VALUES (?), (?, a), …"},
		{"calls are no rows", classify.Postgres, "SELECT f(1), f(1), g(1)", "SELECT f(?), f(?), g(?)"},
		{"dollar quotes", classify.Postgres, "DO $a$ DELETE FROM t $a$", "DO ?"},
		{"prefixed literals", classify.Postgres, `SELECT E'a\nb', U&'c', x'1F', B'01'`, "SELECT ?, …, x?, B?"},
		{"user variables", classify.MySQL, "SELECT @secret, @'secret', @@version", "SELECT @?, @?, @@version"},
		{"comments", classify.MySQL, "SELECT/* secret */1 # secret\n+ 1", "SELECT ? + ?"},
		{"digest of MySQL", classify.AnyMySQL, "SELECT `a` FROM `t` WHERE `b` IN (...) AND c = ? ;", "SELECT `a` FROM `t` WHERE `b` IN (…) AND c = ?"},
		{"semicolons", classify.Postgres, "SELECT 1 ; ", "SELECT ?"},
		{"casts", classify.Postgres, "SELECT '1'::int, a::text[]", "SELECT ?::int, a::text[]"},
		{"nothing", classify.Postgres, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, _, ok := newNormalizer(tt.dialect).form(tt.text)
			if !ok || string(got) != tt.want {
				t.Errorf("got %q (%t), want %q", got, ok, tt.want)
			}
		})
	}
}

// Literals that cannot be told from names for certain are not shown.
func TestUncertainTextsHaveNoForm(t *testing.T) {
	for _, tt := range []struct {
		dialect classify.Dialect
		text    string
	}{
		{classify.Postgres, `SELECT 'it\'s a secret', ''`},
		{classify.Generic, `SELECT 'it\'s a secret', ''`},
		{classify.Postgres, `SELECT 'secret`},
		{classify.MySQL, `SELECT "secret`},
	} {
		if form, _, ok := newNormalizer(tt.dialect).form(tt.text); ok {
			t.Errorf("%q has the form %q", tt.text, form)
		}
	}
}

func TestHashIsOfTheForm(t *testing.T) {
	n := newNormalizer(classify.Postgres)
	hash := func(text string) uint64 {
		_, h, ok := n.form(text)
		if !ok {
			t.Fatalf("%q has no form", text)
		}
		return h
	}
	want := hash("SELECT a FROM t WHERE b IN (1, 2)")
	for _, same := range []string{"select a from T where B in ($1,$2,3)", "SELECT a\n\tFROM t /* x */ WHERE b IN ('x', $1) ;"} {
		if hash(same) != want {
			t.Errorf("%q has another hash", same)
		}
	}
	if hash("SELECT a FROM t WHERE c IN (1, 2)") == want {
		t.Error("another column, the same hash")
	}
}

// The form of a form is the form, and no literal is in it.
func FuzzFormHasNoLiteral(f *testing.F) {
	f.Add(uint8(1), "SELECT a, ", "secret")
	f.Add(uint8(2), "INSERT INTO t VALUES (1, 'a', ", "b'; DROP")
	f.Fuzz(func(t *testing.T, dialect uint8, before, value string) {
		d := classify.Dialect(dialect % 5)
		if strings.ContainsAny(before, "'\"`\\$/-#") || strings.ContainsAny(value, "'\\") || len(value) < 4 || strings.Contains(before, value) {
			return
		}
		form, _, ok := newNormalizer(d).form(before + "'" + value + "'")
		if ok && strings.Contains(string(form), value) {
			t.Errorf("%q stands in %q", value, form)
		}
	})
}
