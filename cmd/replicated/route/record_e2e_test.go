package route

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/record"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// The secrets of the application: none may get into a record, or into a report.
const (
	secretValue   = "4111-1111-1111-1111"
	secretLiteral = "hunter2"
	secretComment = "tracer-77aa"
	secretTable   = "merger_with_acme"
)

// app is an application under reads=shadow: one process of it.
type app struct {
	t   *testing.T
	db  *sql.DB
	rec *record.Recorder
	e   replicatedtest.Engine
}

func startApp(t *testing.T, c *replicatedtest.Cluster, file string) *app {
	t.Helper()
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	rec := record.New(f, record.Options{})
	cfg, err := replicated.ParseDSN(c.DSN("replicated.max_lag=1m", "replicated.reads=shadow", "replicated.consistency=session", "replicated.cluster="+filepath.Base(file)))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Observe = rec.Observer(nil)
	connector, err := replicated.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	a := &app{t: t, db: sql.OpenDB(connector), rec: rec, e: c.Engine()}
	t.Cleanup(func() {
		if err := a.db.Close(); err != nil {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	// Reads count once something is known of the replicas.
	if err := a.db.PingContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	cluster := connector.Cluster()
	deadline := time.Now().Add(20 * time.Second)
	for known := false; !known; time.Sleep(10 * time.Millisecond) {
		known = true
		for _, n := range cluster.Stats().Nodes[1:] {
			known = known && n.Freshness == replicated.FreshnessProven
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing is known of a replica: %+v", cluster.Stats().Nodes)
		}
	}
	return a
}

// request runs f as a caller, in a session of its own.
func (a *app) request(caller string, f func(ctx context.Context)) {
	ctx, _ := replicated.WithSession(replicated.WithCaller(a.t.Context(), caller))
	f(ctx)
}

type runner interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}

func (a *app) exec(ctx context.Context, on runner, text string, args ...any) {
	a.t.Helper()
	if a.e == replicatedtest.Postgres {
		text = strings.ReplaceAll(text, "?", "$1")
	}
	if _, err := on.ExecContext(ctx, text, args...); err != nil {
		a.t.Fatalf("%s: %v", text, err)
	}
}

func (a *app) read(ctx context.Context, on runner, text string, args ...any) {
	a.t.Helper()
	if a.e == replicatedtest.Postgres {
		text = strings.ReplaceAll(text, "?", "$1")
	}
	rows, err := on.QueryContext(ctx, text, args...)
	if err != nil {
		a.t.Fatalf("%s: %v", text, err)
	}
	defer rows.Close()
	for rows.Next() {
	}
	if err := rows.Err(); err != nil {
		a.t.Fatalf("%s: %v", text, err)
	}
}

func (a *app) tx(ctx context.Context, opts *sql.TxOptions, f func(tx *sql.Tx)) {
	a.t.Helper()
	tx, err := a.db.BeginTx(ctx, opts)
	if err != nil {
		a.t.Fatal(err)
	}
	f(tx)
	if err := tx.Commit(); err != nil {
		a.t.Fatal(err)
	}
}

const (
	ownRead = "SELECT n FROM " + secretTable + " WHERE name = '" + secretLiteral + "' /* " + secretComment + " */"
	byValue = "SELECT n FROM " + secretTable + " WHERE name = ?"
	insert  = "INSERT INTO " + secretTable + " (name) VALUES (?)"
)

// run runs the requests: 300 that only read, and one of each other kind. The replicas
// stand still while somebody reads what he has written.
func (a *app) run(c *replicatedtest.Cluster) {
	for range 300 {
		a.request("GET /books", func(ctx context.Context) { a.read(ctx, a.db, byValue, secretValue) })
	}
	for _, n := range c.Replicas() {
		if err := n.PauseReplication(); err != nil {
			a.t.Fatal(err)
		}
	}
	a.request("POST /orders", func(ctx context.Context) {
		a.exec(ctx, a.db, insert, secretValue)
		a.read(ctx, a.db, ownRead)
		a.read(ctx, a.db, byValue, secretValue)
	})
	for _, n := range c.Replicas() {
		if err := n.ResumeReplication(); err != nil {
			a.t.Fatal(err)
		}
	}
	a.request("GET /visits/{id}", func(ctx context.Context) {
		a.exec(ctx, a.db, "UPDATE "+secretTable+" SET n = n + 1 WHERE name = ?", secretValue)
	})
	a.request("GET /seats", func(ctx context.Context) {
		a.tx(ctx, nil, func(tx *sql.Tx) {
			a.read(ctx, tx, ownRead+" FOR UPDATE")
			a.read(ctx, tx, byValue, secretValue)
		})
		a.read(ctx, a.db, ownRead+" FOR UPDATE")
	})
	a.request("job:export", func(ctx context.Context) {
		a.tx(ctx, &sql.TxOptions{ReadOnly: true}, func(tx *sql.Tx) {
			a.read(ctx, tx, ownRead)
			a.read(ctx, tx, byValue, secretValue)
			if a.e == replicatedtest.Postgres {
				a.read(ctx, tx, "SELECT pg_advisory_xact_lock(1)")
			} else {
				a.read(ctx, tx, "SELECT GET_LOCK('"+secretLiteral+"', 1)")
			}
		})
	})
	a.request("GET /broken", func(ctx context.Context) {
		if _, err := a.db.QueryContext(ctx, "SELECT "+secretLiteral+" FROM "+secretTable); err == nil {
			a.t.Error("no error")
		}
	})
	// Nobody has named this one.
	a.read(a.t.Context(), a.db, ownRead)
}

// An application runs under reads=shadow in two processes; the report on its records
// tells, caller by caller, what has happened in it, and no secret of it.
func TestRecordOfAnApplication(t *testing.T) {
	for _, e := range replicatedtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			c := replicatedtest.Start(t, e, replicatedtest.Options{})
			owner := c.Primary().DB(t)
			for _, text := range []string{
				"CREATE TABLE " + secretTable + " (name varchar(100), n int DEFAULT 0)",
				"INSERT INTO " + secretTable + " (name) VALUES ('" + secretLiteral + "')",
			} {
				if _, err := owner.ExecContext(t.Context(), text); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.WaitCaughtUp(t.Context()); err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			var files []string
			for i := range 2 {
				file := filepath.Join(dir, fmt.Sprintf("routes-%d.jsonl", i))
				files = append(files, file)
				a := startApp(t, c, file)
				a.run(c)
				if err := a.rec.Close(); err != nil {
					t.Fatal(err)
				}
			}
			wantCallers(t, output(t, "", append([]string{"-input", "record", "-format", "json"}, files...)...), map[string]string{
				"GET /books":       "600 statements: 600 replicas; first",
				"POST /orders":     "6 statements: 2 stays, 4 stale; few; writes INSERT 2",
				"GET /visits/{id}": "2 statements: 2 stays; few; writes UPDATE 2 in GET",
				"GET /seats":       "6 statements: 6 breaks; few",
				"job:export":       "6 statements: 4 replicas, 2 refused; fix",
				"GET /broken":      "2 statements: 2 replicas; few; 2 failed",
				"":                 "2 statements: 2 replicas; few",
				"total":            "624 statements: 4 stays, 608 replicas, 4 stale, 6 breaks, 2 refused; 2 failed; writes INSERT 2, UPDATE 2",
			})
			told := map[string]string{}
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				told[file] = string(text)
			}
			for _, format := range []string{"text", "html", "json"} {
				told[format] = output(t, "", append([]string{"-input", "log", "-top", "100", "-values", "-format", format}, files...)...)
			}
			for where, text := range told {
				for _, secret := range []string{secretValue, secretLiteral, secretComment, secretTable, c.Primary().Addr(), replicatedtest.AppPassword} {
					if strings.Contains(text, secret) {
						t.Errorf("%s has %q in it:\n%s", where, secret, text)
					}
				}
				if !strings.Contains(text, "GET /books") {
					t.Errorf("%s does not tell of GET /books:\n%s", where, text)
				}
			}
		})
	}
}

// wantCallers compares a report in JSON with what is wanted of each caller, in words.
func wantCallers(t *testing.T, report string, want map[string]string) {
	t.Helper()
	for line := range strings.Lines(report) {
		var c jsonCaller
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		name := "total"
		if c.Caller != nil {
			name = *c.Caller
		}
		if got := inWords(&c); got != want[name] {
			t.Errorf("%q: %s\nwant %s\n%s", name, got, want[name], line)
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("there is nothing of %q:\n%s", name, report)
	}
}

func inWords(c *jsonCaller) string {
	var parts []string
	for _, f := range fateNames {
		if n := c.By[f]; n > 0 {
			parts = append(parts, fmt.Sprint(n, " ", f))
		}
	}
	s := fmt.Sprintf("%d statements: %s", c.Statements, strings.Join(parts, ", "))
	if c.Advice != "" {
		s += "; " + c.Advice
	}
	if c.Failed > 0 {
		s += fmt.Sprintf("; %d failed", c.Failed)
	}
	parts = nil
	for _, w := range []string{"INSERT", "UPDATE", "SELECT (may write)"} {
		if n := c.Writes[w]; n > 0 {
			parts = append(parts, fmt.Sprint(w, " ", n))
		}
	}
	if len(parts) > 0 {
		s += "; writes " + strings.Join(parts, ", ")
	}
	if c.InGet {
		s += " in GET"
	}
	return s
}
