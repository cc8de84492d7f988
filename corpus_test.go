package replicated_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// corpusRow is a line of the labelled statements.
type corpusRow struct{ id, dialect, label, class, sql, why string }

func corpus(t *testing.T) []corpusRow {
	t.Helper()
	f, err := os.Open("internal/classify/testdata/routing-public.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unescape := strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\r`, "\r", `\0`, "\x00")
	var rows []corpusRow
	for lines := bufio.NewScanner(f); lines.Scan(); {
		field := strings.Split(lines.Text(), "\t")
		if len(field) != 6 {
			t.Fatalf("%d fields in the line %q", len(field), lines.Text())
		}
		rows = append(rows, corpusRow{field[0], field[1], field[2], field[3], unescape.Replace(field[4]), field[5]})
	}
	return rows[1:]
}

// library makes what the statements of the corpus speak of.
func library(t *testing.T, c *replicatedtest.Cluster) {
	t.Helper()
	db := c.Primary().AdminDB(t)
	texts := []string{
		"CREATE TABLE books (id int PRIMARY KEY, title varchar(100), copies int, late int, returned_at date)",
		"CREATE TABLE members (id int PRIMARY KEY, name varchar(100))",
		"CREATE TABLE loans (id int PRIMARY KEY, book_id int, member_id int, late int, due date, returned_at date)",
		"INSERT INTO books (id, title, copies) VALUES (1, 'Kokoro', 2), (4, 'Botchan', 1)",
		"INSERT INTO members VALUES (1, 'Aiko')",
		"INSERT INTO loans (id, book_id, member_id, late) VALUES (1, 1, 1, 0), (2, 4, 1, 1)",
		"CREATE VIEW overdue AS SELECT id FROM loans WHERE late = 1",
	}
	if c.Engine() == replicatedtest.Postgres {
		texts = append(texts, "CREATE EXTENSION pg_trgm", "CREATE SEQUENCE fine_seq",
			`CREATE TABLE odd ("nextval(1)" int, b$y$ int)`, "ALTER TABLE books ADD meta jsonb",
			"GRANT ALL ON ALL TABLES IN SCHEMA public TO "+replicatedtest.AppUser,
			"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO "+replicatedtest.AppUser)
	} else {
		texts = append(texts, "CREATE TABLE book_audit (`update` int, `lock` int)", "CREATE TABLE `lock` (`select` int, `into` int)",
			"CREATE TABLE counters (nextval int, lastval int)", "ALTER TABLE books ADD INDEX i_title (title)")
	}
	if c.Engine() == replicatedtest.MariaDB {
		texts = append(texts, "CREATE SEQUENCE s_fine", "CREATE TABLE books_v (title varchar(100)) WITH SYSTEM VERSIONING")
	}
	for _, text := range texts {
		mustExec(t, db, text)
	}
	caughtUp(t, c)
}

// By the servers' own logs, no statement of the corpus that has to run on the
// primary comes near a replica, and what may run on a replica does.
func TestCorpusRunsWhereItsLabelsSay(t *testing.T) {
	eachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{})
		library(t, c)
		for _, row := range corpus(t) {
			if row.label == "either" || !speaks(e, row) {
				continue
			}
			marks := make(map[*replicatedtest.Node]replicatedtest.Mark)
			for _, n := range c.Nodes() {
				marks[n] = n.Mark()
			}
			err := runAlone(t, c, row)
			seen := func(n *replicatedtest.Node) bool {
				return slices.ContainsFunc(n.StatementsSince(marks[n]), func(s replicatedtest.Statement) bool {
					return likely(s.Text, row.sql)
				})
			}
			onReplica := slices.ContainsFunc(c.Replicas(), seen)
			switch {
			case row.label == "primary" && onReplica:
				t.Errorf("%s reached a replica (%s): %q", row.id, row.why, row.sql)
			case row.label == "replica" && !onReplica && !syntaxError(err):
				// MySQL 5.6 logs no text that it can't parse.
				t.Errorf("%s did not reach a replica (%s): %q", row.id, row.why, row.sql)
			}
		}
	})
}

func speaks(e replicatedtest.Engine, row corpusRow) bool {
	switch e {
	case replicatedtest.Postgres:
		return row.dialect == "postgres"
	case replicatedtest.MariaDB:
		// What stands in a comment of a version that only MySQL has, it does not run.
		return row.dialect == "mariadb" || row.dialect == "mysql" && !strings.Contains(row.sql, "/*!50700")
	default:
		return row.dialect == "mysql"
	}
}

// runAlone runs a statement on a handle of its own, so that what it leaves behind
// meets no other. Whether the server likes it does not matter here.
func runAlone(t *testing.T, c *replicatedtest.Cluster, row corpusRow) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	db := open(t, c, "replicated.consistency=eventual")
	defer db.Close()
	var args []any
	if c.Engine() == replicatedtest.Postgres && strings.Contains(row.sql, "$1") || c.Engine() != replicatedtest.Postgres && strings.Contains(row.sql, "?") {
		args = append(args, 1)
	}
	rows, err := db.QueryContext(ctx, row.sql, args...)
	if err != nil {
		return err
	}
	for rows.Next() {
		continue
	}
	return rows.Close()
}

func syntaxError(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && e.Number == 1064
}

// likely tells whether a line of a server's log is the statement: logs cut blanks
// and semicolons off its ends, and put arguments in.
func likely(logged, text string) bool {
	text = strings.Trim(text, "; \n")
	if i := strings.IndexAny(text, "?$"); i > 10 {
		text = text[:i]
	}
	return text != "" && strings.Contains(logged, text)
}

// Texts that are no SQL, or hardly, go to the primary, and what the server says
// of them comes back.
func TestStrangeTexts(t *testing.T) {
	const mib = 1 << 20
	texts := map[string]string{
		"empty":          "",
		"blanks":         " \t\r\n ",
		"a semicolon":    ";",
		"a comment":      "-- nothing",
		"NUL":            "SELECT 1\x00",
		"NUL first":      "\x00SELECT 1",
		"invalid UTF-8":  "SELECT '\xff\xfe' \xc3\x28",
		"open quote":     "SELECT 'never ends",
		"open comment":   "SELECT 1 /* never ends",
		"parentheses":    strings.Repeat("(", 10*mib),
		"open comments":  strings.Repeat("/*", 5*mib),
		"dollar quotes":  strings.Repeat("$a$", 3*mib),
		"a long literal": "SELECT '" + strings.Repeat("x", 10*mib) + "'",
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			for _, d := range []classify.Dialect{classify.Generic, classify.Postgres, classify.MySQL, classify.MariaDB, classify.AnyMySQL} {
				v := classify.Classify(d, text)
				if v.Replica() && v.Class != classify.Empty && name != "a long literal" {
					t.Errorf("%v: taken for a read", d)
				}
			}
		})
	}
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		db := open(t, c)
		for name, text := range texts {
			switch name {
			case "a long literal":
				continue // a read like any other
			case "open comments":
				text = text[:10_000] // PostgreSQL takes minutes over all of it, and can't be stopped
			}
			t.Run(name, func(t *testing.T) {
				before := stats(t, db).Replica
				_, _ = db.ExecContext(t.Context(), text)
				after := stats(t, db).Replica
				if fmt.Sprint(before) != fmt.Sprint(after) {
					t.Errorf("it ran on a replica: %v, then %v", before, after)
				}
			})
		}
		if n := queryInt(t, db, "SELECT 1"); n != 1 {
			t.Errorf("afterwards SELECT 1 returned %d", n)
		}
	})
}
