package replicated_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// shadowStep is what one statement of a script is told of under shadow.
type shadowStep struct {
	text string
	want string // "class reason"
}

// shadowScript is run on one connection. Its table has one row (1, 0).
type shadowScript struct {
	name     string
	engines  []replicatedtest.Engine // none: all
	setup    []string                // by the table's owner, before the catalog is read
	drop     []string
	lagging  bool // the replicas apply nothing while it runs
	tx       bool // in a transaction of BeginTx
	readOnly bool // … that is read-only
	ctx      func(context.Context) context.Context
	steps    []shadowStep
}

func shadowScripts(table string) []shadowScript {
	postgres := []replicatedtest.Engine{replicatedtest.Postgres}
	mysql := []replicatedtest.Engine{replicatedtest.MariaDB, replicatedtest.MySQL}
	read := "SELECT n FROM " + table + " WHERE id = 1"
	bump := "UPDATE " + table + " SET n = n + 1"
	lock := read + " FOR UPDATE"
	session := func(ctx context.Context) context.Context { ctx, _ = replicated.WithSession(ctx); return ctx }
	return []shadowScript{
		{name: "reads", steps: []shadowStep{{read, "read shadow"}, {"SELECT count(*) FROM " + table, "read shadow"}}},
		{name: "its own writes", lagging: true, steps: []shadowStep{{bump, "write write"}, {read, "read own-write"}}},
		{name: "in a session", lagging: true, ctx: session, steps: []shadowStep{{bump, "write write"}, {read, "read own-write"}}},
		{name: "fresh", lagging: true, ctx: replicated.WithFresh, steps: []shadowStep{{read, "read fresh"}}},
		{name: "asked for the primary", ctx: replicated.WithPrimary, steps: []shadowStep{{read, "read asked"}}},
		{name: "locks", steps: []shadowStep{{lock, "lock lock"}, {read, "read shadow"}}},
		{name: "temporary tables", steps: []shadowStep{
			{"CREATE TEMPORARY TABLE sh_temp (n int)", "ddl ddl"}, {"SELECT n FROM sh_temp", "read pinned"}, {read, "read pinned"}, {"DROP TABLE sh_temp", "ddl ddl"},
		}},
		{name: "a read-write transaction", tx: true, steps: []shadowStep{{"BEGIN", "transaction tx-control"}, {read, "read transaction"}, {bump, "write transaction"}, {lock, "lock transaction"}}},
		{name: "a read-only transaction", tx: true, readOnly: true, steps: []shadowStep{{"BEGIN", "read shadow"}, {read, "read shadow"}, {read, "read shadow"}}},
		{name: "a lagging read-only transaction", lagging: true, tx: true, readOnly: true, ctx: replicated.WithFresh, steps: []shadowStep{{"BEGIN", "read fresh"}, {read, "read transaction"}}},

		{name: "advisory locks of PostgreSQL", engines: postgres, steps: []shadowStep{
			{"SELECT pg_advisory_lock(4711)", "lock lock"}, {read, "read pinned"}, {"SELECT pg_advisory_unlock(4711)", "lock lock"},
		}},
		{
			name: "functions of PostgreSQL", engines: postgres,
			setup: []string{"CREATE FUNCTION sh_writes() RETURNS int LANGUAGE sql AS 'UPDATE " + table + " SET n = n + 1 RETURNING n'"},
			drop:  []string{"DROP FUNCTION sh_writes()"},
			steps: []shadowStep{{"SELECT sh_writes()", "unknown unproven"}},
		},
		{name: "sequences", engines: postgres, setup: []string{"CREATE SEQUENCE sh_seq"}, drop: []string{"DROP SEQUENCE sh_seq"}, steps: []shadowStep{{"SELECT nextval('sh_seq')", "write write"}}},
		{name: "CTEs that write", engines: postgres, steps: []shadowStep{{"WITH w AS (" + bump + " RETURNING n) SELECT n FROM w", "write write"}}},
		{name: "SELECT INTO of PostgreSQL", engines: postgres, drop: []string{"DROP TABLE sh_into"}, steps: []shadowStep{{"SELECT n INTO sh_into FROM " + table, "write write"}}},
		{name: "custom settings", engines: postgres, steps: []shadowStep{{"SET app.tenant = '7'", "session session"}, {read, "read pinned"}, {"RESET ALL", "session session"}}},
		{name: "locks in a read-only transaction of PostgreSQL", engines: postgres, tx: true, readOnly: true, steps: []shadowStep{
			{"BEGIN", "read shadow"}, {read, "read shadow"}, {"SELECT pg_advisory_xact_lock(1)", "lock shadow-refused"},
		}},

		{name: "locks by name of MySQL", engines: mysql, steps: []shadowStep{
			{"SELECT GET_LOCK('sh', 1)", "lock lock"}, {read, "read pinned"}, {"SELECT RELEASE_LOCK('sh')", "lock lock"},
		}},
		{name: "user variables", engines: mysql, steps: []shadowStep{{"SELECT @sh := 5", "session session"}, {"SELECT @sh", "session session"}, {read, "read pinned"}}},
		{name: "SELECT INTO of MySQL", engines: mysql, steps: []shadowStep{{"SELECT n INTO @sh FROM " + table + " WHERE id = 1", "session session"}, {read, "read pinned"}}},
		{
			name: "functions of MySQL", engines: mysql,
			setup: []string{"CREATE FUNCTION sh_writes() RETURNS int DETERMINISTIC MODIFIES SQL DATA BEGIN UPDATE " + table + " SET n = n + 1; RETURN 1; END"},
			drop:  []string{"DROP FUNCTION sh_writes"},
			steps: []shadowStep{{"SELECT sh_writes()", "unknown unproven"}},
		},
		{name: "locks in a read-only transaction of MySQL", engines: mysql, tx: true, readOnly: true, steps: []shadowStep{
			{"BEGIN", "read shadow"}, {read, "read shadow"}, {"SELECT GET_LOCK('sh', 1)", "lock shadow-refused"}, {"SELECT RELEASE_LOCK('sh')", "lock shadow-refused"},
		}},
	}
}

// What is told under shadow is what becomes of the same script without it: where a
// replica is said to have served, one does; where a statement is said to be refused, it
// is; and where the primary is said to serve, it does for the same reason. Under shadow
// every statement runs on the primary.
func TestShadowTellsWhatAutoDoes(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		name := table(t, c, "id int PRIMARY KEY, n int")
		mustExec(t, bare(t, c.Primary()), "INSERT INTO "+name+" VALUES (1, 0)")
		for _, s := range shadowScripts(name) {
			if len(s.engines) > 0 && !slices.Contains(s.engines, c.Engine()) {
				continue
			}
			t.Run(s.name, func(t *testing.T) {
				for _, mode := range []replicated.ReadsMode{replicated.ReadsAuto, replicated.ReadsShadow} {
					t.Run(mode.String(), func(t *testing.T) { s.run(t, c, mode) })
				}
			})
		}
	})
}

func (s *shadowScript) run(t *testing.T, c *replicatedtest.Cluster, mode replicated.ReadsMode) {
	owner := bare(t, c.Primary())
	for _, text := range s.setup {
		mustExec(t, owner, text)
	}
	t.Cleanup(func() {
		for _, text := range s.drop {
			if _, err := owner.ExecContext(context.WithoutCancel(t.Context()), text); err != nil {
				t.Error(err)
			}
		}
	})
	caughtUp(t, c)
	cfg, err := replicated.ParseDSN(c.DSN("replicated.max_lag=1m", "replicated.reads="+mode.String(), ownFloors(t)))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var events []replicated.RouteEvent
	cfg.Observe = &replicated.Observer{Routed: func(e replicated.RouteEvent) { mu.Lock(); defer mu.Unlock(); events = append(events, e) }}
	db := openConfig(t, cfg)
	measured(t, c, db)
	proven(t, db)
	if s.lagging {
		defer pauseReplicas(t, c)()
	}
	ctx := t.Context()
	if s.ctx != nil {
		ctx = s.ctx(ctx)
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	taken := func() replicated.RouteEvent {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if len(events) == 0 {
			return replicated.RouteEvent{}
		}
		e := events[len(events)-1]
		events = nil
		return e
	}
	c.ResetStatements()
	taken()
	var q querier = conn
	for _, step := range s.steps {
		var err error
		if step.text == "BEGIN" {
			tx, begun := conn.BeginTx(ctx, &sql.TxOptions{ReadOnly: s.readOnly})
			if begun != nil {
				t.Fatal(begun)
			}
			defer func() { _ = tx.Rollback() }()
			q = tx
		} else {
			err = exhaust(q.QueryContext(ctx, step.text))
		}
		e := taken()
		got := e.Class + " " + e.Reason.String()
		class, why, _ := strings.Cut(step.want, " ")
		switch {
		case mode == replicated.ReadsShadow:
			if got != step.want || e.Role != replicated.RolePrimary {
				t.Errorf("%s: told of %q on the %v, %v, want %q", step.text, got, e.Role, err, step.want)
			}
			if err != nil {
				t.Errorf("%s: %v", step.text, err)
			}
		case why == "shadow-refused":
			if !errors.Is(err, replicated.ErrReadOnly) {
				t.Errorf("%s: %v, want ErrReadOnly", step.text, err)
			}
		case why == "shadow":
			if e.Role != replicated.RoleReplica || err != nil {
				t.Errorf("%s: ran on the %v (%s), %v, want a replica", step.text, e.Role, got, err)
			}
		default:
			if e.Role != replicated.RolePrimary || got != class+" "+why || err != nil {
				t.Errorf("%s: ran on the %v (%s), %v, want the primary, %s", step.text, e.Role, got, err, step.want)
			}
		}
		if mode == replicated.ReadsShadow && step.text != "BEGIN" {
			onlyPrimary(t, c, step.text)
		}
	}
}

// exhaust reads all rows, if there are any.
func exhaust(rows *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}

// Only what has opted in runs on replicas.
func TestOptInOnServers(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		name := table(t, c, "id int PRIMARY KEY, n int")
		db := open(t, c, "replicated.reads=opt-in", "replicated.max_lag=1m")
		proven(t, db)
		c.ResetStatements()
		opted := replicated.WithReplica(t.Context())
		for i, step := range []struct {
			ctx  context.Context
			text string
			on   func(*testing.T, *replicatedtest.Cluster, string)
		}{
			{t.Context(), "SELECT count(*) + %d FROM " + name, onlyPrimary},
			{opted, "SELECT count(*) + %d FROM " + name, onlyReplicas},
			{t.Context(), "SELECT /* replicated:replica */ count(*) + %d FROM " + name, onlyReplicas},
			{opted, "SELECT /* replicated:primary */ count(*) + %d FROM " + name, onlyPrimary},
			{opted, "INSERT INTO " + name + " VALUES (1, %d)", onlyPrimary},
			{opted, "SELECT n + %d FROM " + name + " FOR UPDATE", onlyPrimary},
		} {
			text := fmt.Sprintf(step.text, 1000+i)
			if err := exhaust(db.QueryContext(step.ctx, text)); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			step.on(t, c, fmt.Sprint(1000+i))
		}
		resume := pauseReplicas(t, c)
		mustExec(t, db, "UPDATE "+name+" SET n = 2000")
		if n := queryIntOf(opted, t, db, "SELECT n FROM "+name); n != 2000 {
			t.Errorf("who has opted in has read %d, and not what the process has written", n)
		}
		resume()
	})
}

func queryIntOf(ctx context.Context, t *testing.T, db *sql.DB, query string) (n int) {
	t.Helper()
	if err := db.QueryRowContext(ctx, query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}
