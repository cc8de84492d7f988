package graphql_test

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"sync"
	"testing"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"

	. "github.com/sqlreplicated/replicated/httpsticky/graphql"
)

var clusterName = regexp.MustCompile(`[^A-Za-z0-9]+`)

// cluster is a primary and a replica, and where the last statement ran.
func cluster(t *testing.T, reads replicated.ReadsMode) (db *sql.DB, last func() replicated.RouteEvent) {
	t.Helper()
	var mu sync.Mutex
	var event replicated.RouteEvent
	primary, replica := fakedb.New("primary"), fakedb.New("replica")
	replica.SetRole(fakedb.Replica)
	c, err := replicated.NewConnector(replicated.Config{
		ClusterName: clusterName.ReplaceAllString(t.Name(), "-"), // no other test's writes raise its floors
		Reads:       reads,
		Tracker:     replicated.TrackerOff,
		Nodes: []replicated.Node{
			{Name: "primary", Connector: primary.Connector(fakedb.PQLike)},
			{Name: "replica", Connector: replica.Connector(fakedb.PQLike)},
		},
		Observe: &replicated.Observer{Routed: func(e replicated.RouteEvent) { mu.Lock(); defer mu.Unlock(); event = e }},
	})
	if err != nil {
		t.Fatal(err)
	}
	db = sql.OpenDB(c)
	t.Cleanup(func() { _ = db.Close() })
	if err := db.PingContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db, func() replicated.RouteEvent { mu.Lock(); defer mu.Unlock(); return event }
}

func TestWhereReadsRun(t *testing.T) {
	both := func(ctx context.Context) context.Context { return replicated.WithReadOnly(replicated.WithReplica(ctx)) }
	asItIs := func(ctx context.Context) context.Context { return ctx }
	for _, tt := range []struct {
		name  string
		reads replicated.ReadsMode
		rule  Rule
		want  map[string]replicated.Role // by document
	}{
		{"auto", replicated.ReadsAuto, Rule{}, map[string]replicated.Role{
			"{a}": replicated.RoleReplica, "mutation{a}": replicated.RolePrimary, "subscription{a}": replicated.RolePrimary, "{": replicated.RolePrimary}},
		{"opt-in, nothing allowed", replicated.ReadsOptIn, Rule{}, map[string]replicated.Role{
			"{a}": replicated.RolePrimary, "mutation{a}": replicated.RolePrimary}},
		{"opt-in, queries allowed", replicated.ReadsOptIn, Rule{Query: both}, map[string]replicated.Role{
			"{a}": replicated.RoleReplica, "mutation{a}": replicated.RolePrimary, "subscription{a}": replicated.RolePrimary, "{": replicated.RolePrimary}},
		{"others left as they are", replicated.ReadsAuto, Rule{Mutation: asItIs, Subscription: asItIs, Unknown: asItIs}, map[string]replicated.Role{
			"mutation{a}": replicated.RoleReplica, "subscription{a}": replicated.RoleReplica, "{": replicated.RoleReplica}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db, last := cluster(t, tt.reads)
			for doc, want := range tt.want {
				rows, err := db.QueryContext(tt.rule.With(t.Context(), document(doc)), "SELECT 1")
				if err != nil {
					t.Fatal(err)
				}
				_ = rows.Close()
				if got := last().Role; got != want {
					t.Errorf("%s: read on the %v, want %v", doc, got, want)
				}
			}
		})
	}
}

func TestAFenceForQueries(t *testing.T) {
	db, _ := cluster(t, replicated.ReadsAuto)
	rule := Rule{Query: replicated.WithReadOnly}
	write := func(doc string) error {
		_, err := db.ExecContext(rule.With(t.Context(), document(doc)), "UPDATE t SET a = 1")
		return err
	}
	if err := write("{a}"); !errors.Is(err, replicated.ErrReadOnly) {
		t.Errorf("a query writes: %v", err)
	}
	if err := write("mutation{a}"); err != nil {
		t.Errorf("a mutation writes: %v", err)
	}
}

func TestOperationsAreCallers(t *testing.T) {
	db, last := cluster(t, replicated.ReadsAuto)
	rule := Rule{Then: func(ctx context.Context, v Verdict) context.Context {
		return replicated.WithCaller(ctx, "graphql "+v.String())
	}}
	if _, err := db.ExecContext(rule.With(t.Context(), document("mutation Save{a}")), "UPDATE t SET a = 1"); err != nil {
		t.Fatal(err)
	}
	if got, want := last().Caller, "graphql mutation Save"; got != want {
		t.Errorf("caller %q, want %q", got, want)
	}
}
