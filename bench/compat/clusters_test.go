package compat_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// One cluster of each engine serves all tests that leave it as they found it.
var shared struct {
	sync.Mutex
	clusters map[replicatedtest.Engine]*replicatedtest.Cluster
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, c := range shared.clusters {
		if err := c.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// sharedCluster returns the engine's cluster, without the program's table.
func sharedCluster(t *testing.T, e replicatedtest.Engine) *replicatedtest.Cluster {
	t.Helper()
	replicatedtest.Require(t, e)
	shared.Lock()
	defer shared.Unlock()
	c := shared.clusters[e]
	if c == nil {
		var err error
		if c, err = replicatedtest.StartContext(t.Context(), e, replicatedtest.Options{}); err != nil {
			t.Fatal(err)
		}
		if shared.clusters == nil {
			shared.clusters = make(map[replicatedtest.Engine]*replicatedtest.Cluster)
		}
		shared.clusters[e] = c
	}
	if _, err := c.Primary().DB(t).ExecContext(t.Context(), "DROP TABLE IF EXISTS items"); err != nil {
		t.Fatal(err)
	}
	caughtUp(t, c)
	return c
}

func caughtUp(t *testing.T, c *replicatedtest.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := c.WaitCaughtUp(ctx); err != nil {
		t.Fatal(err)
	}
}

// dsn returns the cluster's DSN as an application would write it. Replicas take
// turns, so that a few reads reach both.
func dsn(c *replicatedtest.Cluster) string {
	keys := []string{"replicated.balance=round-robin"}
	if c.Engine() != replicatedtest.Postgres {
		keys = append(keys, "parseTime=true")
	}
	return c.DSN(keys...)
}

// prefixedName returns the name of our driver that tells its dialect.
func prefixedName(c *replicatedtest.Cluster) string {
	if c.Engine() == replicatedtest.Postgres {
		return replicated.DriverNamePostgres
	}
	return replicated.DriverNameMySQL
}

// open opens a handle that is closed when the test ends, and from which replicas
// are known well enough to serve reads.
func open(t *testing.T, name, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(name, dsn)
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, db)
	measured(t, db)
	return db
}

// measured waits until the driver knows of each replica how far it has got, or that
// nobody measures it: reads run on replicas from the first one on.
func measured(t *testing.T, db *sql.DB) {
	t.Helper()
	cluster, err := replicated.ClusterOf(t.Context(), db)
	check(t, err)
	conn, err := db.Conn(t.Context()) // nothing is asked before the first one
	check(t, err)
	defer conn.Close()
	deadline := time.Now().Add(20 * time.Second)
	for slices.ContainsFunc(cluster.Stats().Nodes[1:], func(n replicated.NodeStats) bool { return n.Freshness == replicated.FreshnessUnknown }) {
		if time.Now().After(deadline) {
			t.Fatalf("not enough is known of the replicas: %+v", cluster.Stats().Nodes)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// pauseReplicas has the replicas apply nothing more, until resume is called or the
// test ends.
func pauseReplicas(t *testing.T, c *replicatedtest.Cluster) (resume func()) {
	t.Helper()
	resume = sync.OnceFunc(func() {
		for _, n := range c.Replicas() {
			if err := n.ResumeReplication(); err != nil {
				t.Error(err)
			}
		}
	})
	t.Cleanup(resume)
	for _, n := range c.Replicas() {
		check(t, n.PauseReplication())
	}
	return resume
}

func closeAtEnd(t *testing.T, db interface{ Close() error }) {
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("closing the handle: %v", err)
		}
	})
}

// request returns the context of one more request to the application: a session
// of its own. What other sessions have written holds no read of it back.
func request(t *testing.T) context.Context {
	ctx, _ := replicated.WithSession(t.Context())
	return ctx
}

// log reads what the servers were asked to run since it was begun, by their own
// statement logs.
type log struct {
	cluster *replicatedtest.Cluster
	marks   map[*replicatedtest.Node]replicatedtest.Mark
}

func beginLog(c *replicatedtest.Cluster) *log {
	l := &log{cluster: c, marks: make(map[*replicatedtest.Node]replicatedtest.Mark)}
	for _, n := range c.Nodes() {
		l.marks[n] = n.Mark()
	}
	return l
}

// of returns what a node was asked on the application's behalf.
func (l *log) of(n *replicatedtest.Node) []replicatedtest.Statement {
	return slices.DeleteFunc(n.StatementsSince(l.marks[n]), func(s replicatedtest.Statement) bool {
		return s.User != replicatedtest.AppUser || housekeeping(s)
	})
}

// housekeeping tells whether a statement is our driver's own (it asks every server
// who it is and how far it has got, makes a replica's session read-only, and reads
// the primary's catalog), or one with which pgx takes up a connection that was idle
// for a second.
func housekeeping(s replicatedtest.Statement) bool {
	return s.Text == "-- ping" || strings.HasPrefix(s.Text, "/* replicated */")
}

// onPrimary fails the test unless a statement with each of the words in it was
// executed on the primary, and nothing whatever reached a replica.
func (l *log) onPrimary(t *testing.T, words ...string) {
	t.Helper()
	ran := l.of(l.cluster.Primary())
	for _, w := range words {
		if !executed(ran, w) {
			t.Errorf("no %q ran on the primary; there ran:%s", w, lines(ran))
		}
	}
	for _, n := range l.cluster.Replicas() {
		if ran := l.of(n); len(ran) > 0 {
			t.Errorf("all of this belongs on the primary, and on replica %s there ran:%s", n.Name(), lines(ran))
		}
	}
}

// onReplicas fails the test unless a statement with the words in it was executed
// on every replica, and nothing reached the primary.
func (l *log) onReplicas(t *testing.T, words string) {
	t.Helper()
	for _, n := range l.cluster.Replicas() {
		if ran := l.of(n); !executed(ran, words) {
			t.Errorf("no %q ran on replica %s; there ran:%s", words, n.Name(), lines(ran))
		}
	}
	if ran := l.of(l.cluster.Primary()); len(ran) > 0 {
		t.Errorf("replicas can serve all of this, and on the primary there ran:%s", lines(ran))
	}
}

// executed tells whether one of the statements was executed and has the words in
// it, in this order.
func executed(ran []replicatedtest.Statement, words string) bool {
	return slices.ContainsFunc(ran, func(s replicatedtest.Statement) bool {
		if s.Kind != replicatedtest.Query && s.Kind != replicatedtest.Execute {
			return false
		}
		text := strings.ToUpper(s.Text)
		for word := range strings.FieldsSeq(words) {
			_, after, found := strings.Cut(text, word)
			if !found {
				return false
			}
			text = after
		}
		return true
	})
}

func lines(ran []replicatedtest.Statement) string {
	var b strings.Builder
	for _, s := range ran {
		fmt.Fprintf(&b, "\n\t%s in session %d: %s %s", s.Kind, s.Session, s.Text, s.Code)
	}
	if b.Len() == 0 {
		return " nothing"
	}
	return b.String()
}
