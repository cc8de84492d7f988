package replicated_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"
	"github.com/sqlreplicated/replicated/internal/faketime"
)

// The functions of an observer may do what any client may: ask for Stats, and run
// statements.
func TestObserversAreCalledUnderNoLock(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.PQLike)
		var db *sql.DB
		var mu sync.Mutex
		called := make(map[string]int)
		depth := 0
		client := func(what string) {
			mu.Lock()
			called[what]++
			depth++
			deep := depth > 1
			mu.Unlock()
			defer func() { mu.Lock(); depth--; mu.Unlock() }()
			if deep {
				return // what it does itself is reported, too
			}
			c, err := replicated.ClusterOf(t.Context(), db)
			if err != nil {
				t.Error(err)
				return
			}
			c.Stats()
			if err := db.QueryRowContext(t.Context(), plainSelect).Scan(new(string)); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		connector := f.connector(f.asPostgres(), func(c *replicated.Config) {
			c.Observe = &replicated.Observer{
				Routed:    func(replicated.RouteEvent) { client("routed") },
				NodeState: func(replicated.NodeStateEvent) { client("node state") },
				Notice:    func(replicated.Notice) { client("notice") },
			}
		})
		db = sql.OpenDB(connector)
		defer db.Close()
		wantOn(t.Context(), t, db, "replica")
		f.replicas[0].Down(errors.New("refused"))
		time.Sleep(5 * time.Second)
		f.replicas[0].Heal()
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		for _, what := range []string{"routed", "node state", "notice"} {
			if called[what] == 0 {
				t.Errorf("%s was never called", what)
			}
		}
	})
}

// No event, error or log line shows SQL text or values.
func TestNothingShowsSQLText(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		var log bytes.Buffer
		db := f.open(func(c *replicated.Config) {
			c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
		const secret = "geheim"
		texts := []string{
			"SELECT a FROM t WHERE a = 'geheim'", "INSERT INTO t VALUES ('geheim')", "SELECT f('geheim')",
			"/* geheim */ DELETE FROM t", "geheim", "SELECT a FROM geheim FOR UPDATE",
		}
		for _, text := range texts {
			_, _ = db.ExecContext(t.Context(), text, secret)
			_, err := db.ExecContext(replicated.WithReadOnly(t.Context()), text)
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("error %q", err)
			}
		}
		f.replicas[0].Down(errors.New("refused"))
		for range 5 {
			_ = db.QueryRowContext(replicated.WithStaleReads(t.Context(), time.Hour), texts[0]).Scan(new(string))
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.events) == 0 || log.Len() == 0 {
			t.Fatal("nothing was told")
		}
		for _, e := range f.events {
			if s := strings.ToLower(fmt.Sprintf("%+v", e)); strings.Contains(s, secret) {
				t.Errorf("event %s", s)
			}
		}
		if strings.Contains(strings.ToLower(log.String()), secret) {
			t.Errorf("log %s", log.String())
		}
	})
}

func TestRouteEvents(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		db := f.open()
		wantOn(t.Context(), t, db, "replica")
		run(t.Context(), t, db, "INSERT INTO t VALUES (1)")
		want := []replicated.RouteEvent{
			{Class: "read", Keyword: "SELECT", Node: "replica1", Role: replicated.RoleReplica, Reason: replicated.ReasonRead},
			{Class: "write", Keyword: "INSERT", Node: "primary", Role: replicated.RolePrimary, Reason: replicated.ReasonWrite, Write: true},
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if fmt.Sprint(f.events) != fmt.Sprint(want) {
			t.Errorf("events %+v, want %+v", f.events, want)
		}
	})
}

// That lag is not measured is told once, not with each connection.
func TestLagUnmeasuredIsToldOnce(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		connector := f.connector()
		for range 3 {
			f.conn(connector)
		}
		if len(f.notices) != 1 || f.notices[0].Kind != replicated.NoticeLagUnmeasured {
			t.Errorf("notices %v", f.notices)
		}
	})
}

func TestNoticeNames(t *testing.T) {
	for kind, want := range map[replicated.NoticeKind]string{
		replicated.NoticeLagUnmeasured: "lag-unmeasured", replicated.NoticePooler: "pooler", replicated.NoticeTurnedAway: "turned-away",
		replicated.NoticeReadOnlyPrimary: "read-only-primary", replicated.NoticeCatalogUnread: "catalog-unread",
		replicated.NoticeWriteAbandoned: "write-abandoned",
		0:                               "unknown", 99: "unknown",
	} {
		if got := kind.String(); got != want {
			t.Errorf("notice %d is called %q, want %q", kind, got, want)
		}
	}
}
