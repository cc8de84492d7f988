package difftest_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/classify/difftest"
	"github.com/sqlreplicated/replicated/internal/dialect"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// Whatever a server opens for a statement is among the relations that the
// classifier says the statement touches, once the schema has added its own; and
// what it opens to write, among those that are written.
func TestTouches(t *testing.T) {
	eachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		o := newOracle(t, e)
		conn, err := o.primary.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		s := o.relations(conn)

		var texts []string
		for _, c := range corpora(t) {
			texts = append(texts, c.text)
		}
		made := 1500
		if e == replicatedtest.MySQL {
			made = 300
		}
		g := difftest.NewGenerator(o.dialect, uint64(number(t, "REPLICATED_DIFF_SEED", 1)), o.dir)
		for i := range number(t, "REPLICATED_DIFF", made) {
			texts = append(texts, g.Statement(i).Text)
		}

		claimed, checked, opened := 0, 0, 0
		for _, text := range texts {
			r := s.Touches(text)
			if r.All {
				continue
			}
			claimed++
			found, err := o.opens(conn, text)
			if err != nil {
				continue // the server does not like it
			}
			checked++
			for _, f := range found {
				opened++
				if !within(r.Writes, f.name) && (f.written || !within(r.Reads, f.name)) {
					t.Errorf("%q\nopens %v, written: %v\nreads %v, writes %v", text, f.name, f.written, r.Reads, r.Writes)
				}
			}
		}
		t.Logf("%d texts, %d of them say what they touch; of %d the server told, %d relations in all", len(texts), claimed, checked, opened)
		if checked < 100 || opened < 100 {
			t.Errorf("only %d texts with %d relations were held against the server", checked, opened)
		}
	})
}

func within(list []classify.Name, n classify.Name) bool {
	for _, have := range list {
		if have == n {
			return true
		}
	}
	return false
}

// relations reads what the server tells of its functions and relations.
func (o *oracle) relations(conn *sql.Conn) (s *classify.Schema) {
	o.t.Helper()
	err := conn.Raw(func(c any) error {
		d, dc := dialect.For(o.dialect), c.(driver.Conn)
		rows, err := d.Relations(o.t.Context(), dc)
		if err != nil {
			return err
		}
		catalog, _, err := d.Catalog(o.t.Context(), dc, "")
		if err != nil {
			return err
		}
		s = classify.NewSchema(o.dialect, rows, classify.NewDefinitions(o.dialect, catalog, nil, nil))
		return nil
	})
	if err != nil {
		o.t.Fatal(err)
	}
	return s
}

// opening is a relation that a server has opened for a statement. written is known
// of PostgreSQL only.
type opening struct {
	name    classify.Name
	written bool
}

// opens has the server plan, and not run, the statement, and returns what it has
// opened for that.
func (o *oracle) opens(conn *sql.Conn, text string) (all []opening, err error) {
	if o.dialect == classify.Postgres {
		return o.locks(conn, text)
	}
	ctx := o.t.Context()
	if _, err := conn.ExecContext(ctx, "FLUSH TABLES"); err != nil {
		o.t.Fatal(err)
	}
	stmt, err := conn.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	defer func() { err = stmt.Close() }()
	return o.openings(ctx, conn, "SHOW OPEN TABLES", 4)
}

// locks looks at the locks that planning has taken: those that are more than
// AccessShareLock and RowShareLock (of SELECT … FOR UPDATE) are for writing.
func (o *oracle) locks(conn *sql.Conn, text string) ([]opening, error) {
	ctx := o.t.Context()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		o.t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, "EXPLAIN "+text); err != nil {
		return nil, err
	}
	return o.openings(ctx, tx, `SELECT n.nspname, c.relname, l.mode NOT IN ('AccessShareLock', 'RowShareLock')
		FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE l.pid = pg_backend_pid() AND c.relkind NOT IN ('i', 'I') AND n.nspname !~ '^pg_'`, 3)
}

func (o *oracle) openings(ctx context.Context, q interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}, query string, columns int) (all []opening, err error) {
	rows, err := q.QueryContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", query, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		cells := make([]string, columns)
		into := make([]any, columns)
		for i := range cells {
			into[i] = &cells[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		name := classify.CatalogName(o.dialect, cells[0], cells[1])
		switch strings.ToLower(name.Schema) {
		case "mysql", "sys", "information_schema", "performance_schema":
			continue // grants, time zones and help, which servers look up by themselves
		}
		all = append(all, opening{name: name, written: cells[2] == "true"})
	}
	return all, rows.Err()
}
