package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sqlreplicated/replicated"
)

// routes fills the table of the chapter.
type routes struct {
	d   *demo
	ctx context.Context

	writes, reads tally
	both          bool // plain reads were seen on both replicas
	shown, agreed int
	before, after int // the balance around a bonus
}

// tally counts rows, and those that went where they had to.
type tally struct{ ok, all int }

func (t *tally) add(ok bool) {
	t.all++
	if ok {
		t.ok++
	}
}

// session is a context of its own: what others have written does not bind it.
func (t *routes) session() context.Context {
	ctx, _ := replicated.WithSession(t.ctx)
	return ctx
}

func (t *routes) head() {
	t.d.screen.dim(t.cells("statement", "ran on", plainText, "why", "log"))
}

// cells writes the columns of a row. where is painted.
func (t *routes) cells(text, where string, st style, why, log string) string {
	s := t.d.screen
	return "    " + s.left(text, 41) + "  " + s.paint(st, s.left(where, 12)) + "  " + s.left(why, 13) + "  " + log
}

// row runs a statement and writes its row. want is where it has to run.
func (t *routes) row(text string, want replicated.Role, run func() error) error {
	return t.times(text, text, want, run)
}

// times writes the row of a statement that run executes any number of times. text
// is what the servers get.
func (t *routes) times(shown, text string, want replicated.Role, run func() error) error {
	var logs [3]func() []string
	for i, n := range t.d.servers.nodes() {
		logs[i] = n.watch()
	}
	events, err := t.d.heard.during(run)
	if err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	var nodes []string
	ok := len(events) > 0
	told := [3]int{}
	var why replicated.Reason
	for _, e := range events {
		if e.Err != nil {
			continue
		}
		why = e.Reason
		ok = ok && e.Role == want
		told[slices.Index(nodeNames, e.Node)]++
	}
	for i, n := range told {
		if n > 0 {
			nodes = append(nodes, nodeNames[i])
		}
	}
	if want == replicated.RolePrimary {
		t.writes.add(ok)
	} else {
		t.reads.add(ok)
		t.both = t.both || len(nodes) == 2
	}
	agree := true
	for i, ran := range logs {
		agree = agree && occurrences(ran(), text) == told[i]
	}
	t.show(shown, placeName(nodes), why.String(), ok, agree)
	return pause(t.ctx, t.d.pace.row)
}

// show writes a row.
func (t *routes) show(text, where, why string, ok, agree bool) {
	s := t.d.screen
	t.shown++
	mark := s.paint(red, s.glyphs.bad)
	if agree {
		t.agreed++
		mark = s.paint(green, s.glyphs.ok)
	}
	st := cyan
	switch {
	case !ok:
		st = red
	case where == nodeNames[0]:
		st = yellow
	}
	s.line(t.cells(text, where, st, why, mark))
}

// placeName names the nodes of a row: "replica 1, 2".
func placeName(nodes []string) string {
	if len(nodes) == 0 {
		return "nowhere"
	}
	if len(nodes) == 2 {
		return nodes[0] + ", " + strings.TrimPrefix(nodes[1], "replica ")
	}
	return strings.Join(nodes, ", ")
}

// occurrences counts the entries of a log that are the statement. Some servers log
// it with its arguments in place, so that only what stands before the first of
// them is compared.
func occurrences(log []string, text string) int {
	if i := strings.IndexAny(text, "?$"); i >= 0 {
		text = text[:i]
	}
	text = strings.TrimSpace(text)
	n := 0
	for _, entry := range log {
		if strings.HasPrefix(strings.TrimSpace(entry), text) {
			n++
		}
	}
	return n
}

// Shorthands for running statements whose results are of no interest here.

func (t *routes) text(query string) string { return t.d.bank.text(query) }

func query(ctx context.Context, q interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}, text string, args ...any) error {
	rows, err := q.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}

func exec(ctx context.Context, q interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, text string, args ...any) error {
	_, err := q.ExecContext(ctx, text, args...)
	return err
}

// primaryBalance asks the primary itself.
func (t *routes) primaryBalance() (n int, err error) {
	db, err := t.d.servers.nodes()[0].bare()
	if err != nil {
		return 0, err
	}
	defer db.Close()
	err = db.QueryRowContext(t.ctx, t.text(balanceText), routingAcct).Scan(&n)
	return n, err
}

// refused writes the row of a statement that must not leave the process.
func (t *routes) refused(text string, run func(string) error) error {
	var logs []func() []string
	for _, n := range t.d.servers.nodes() {
		logs = append(logs, n.watch())
	}
	err := run(text)
	ok := errors.Is(err, replicated.ErrReadOnly)
	agree := true
	for _, ran := range logs {
		agree = agree && occurrences(ran(), text) == 0
	}
	t.writes.add(ok)
	t.show("WithReadOnly: "+text, "nowhere", "ErrReadOnly", ok, agree)
	if !ok && err != nil {
		return err
	}
	return nil
}
