//go:build pgquery

package parsers_test

import (
	"testing"

	pgquery "github.com/pganalyze/pg_query_go/v6"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// PostgreSQL's parser three times, since most of the time goes into handing the
// tree over from C: with the tree, and with less and less of it.
func init() {
	for _, c := range []struct {
		name  string
		parse func(sql string) error
	}{
		{"pg_query", func(sql string) error {
			_, err := pgquery.Parse(sql)
			return err
		}},
		// The statements' kinds, the tables and the functions. A clause that locks
		// rows does not show, nor an operator.
		{"pg_query-summary", func(sql string) error {
			_, err := pgquery.Summary(sql, -1)
			return err
		}},
		// One bit of the tree's root: what parsing alone costs. SELECT, INSERT and
		// UPDATE are the same to it.
		{"pg_query-bit", func(sql string) error {
			_, err := pgquery.IsUtilityStmt(sql)
			return err
		}},
	} {
		competitors = append(competitors, competitor{c.name, classify.Postgres, func(testing.TB) sqlParser {
			return pgqueryParser(c.parse)
		}})
	}
}

// pgqueryParser is what is measured of pg_query. It reads the tree in each case,
// because nothing less has the answer.
type pgqueryParser func(sql string) error

func (p pgqueryParser) parse(sql string) error { return p(sql) }

func (pgqueryParser) reads(sql string) (bool, error) {
	tree, err := pgquery.Parse(sql)
	if err != nil || len(tree.Stmts) != 1 {
		return false, err
	}
	s := tree.Stmts[0].Stmt.GetSelectStmt()
	return s != nil && len(s.LockingClause) == 0 && s.IntoClause == nil, nil
}
