package difftest_test

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

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// server is what the oracle knows of an engine.
type server struct {
	dialect classify.Dialect
	schema  []string
	// modes are settings of a session that change how texts are cut.
	modes [][]string
	// replicaAdmin: a read-only server refuses its superuser, too.
	replicaAdmin bool
	dsn          []string
	// shared are queries whose answers no read changes. own are such ones of the
	// session itself, between statements. held may return nothing inside a
	// transaction in which all reads ran.
	shared, own, held []string
	// filter drops what may change by itself.
	filter func(state) state
	// refused reports whether a replica refused what the primary ran.
	refused func(err error) bool
}

// oracle runs statements on the servers of a cluster and finds what changes.
type oracle struct {
	*server
	t       *testing.T
	c       *replicatedtest.Cluster
	admin   *sql.DB // on the primary
	primary *sql.DB
	replica *sql.DB
	dir     string

	mu       sync.Mutex
	findings []finding
	claimed  []string             // called reads against all reason, and not run
	errors   map[string]*failures // of the primary, by code
	run      int                  // statements that ran on both
	valid    int                  // of these, the primary liked
}

// failures are how often a server gave an error, and the first of the texts.
type failures struct {
	n             int
	text, message string
}

// finding is a statement that is no read.
type finding struct {
	text string
	what string
}

func (f finding) String() string { return fmt.Sprintf("%q: %s", f.text, f.what) }

// newOracle starts a cluster of its own.
func newOracle(t *testing.T, e replicatedtest.Engine) *oracle {
	t.Helper()
	s := servers[e]
	settings := map[string]string{}
	if e == replicatedtest.Postgres {
		settings = map[string]string{"autovacuum": "off", "checkpoint_timeout": "1h", "log_min_messages": "fatal", "max_prepared_transactions": "5"}
	}
	c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1, NoStatementLog: true, Settings: settings})
	dir, err := os.MkdirTemp("", "difftest")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil { // the server runs as another user
		t.Fatal(err)
	}
	o := &oracle{server: s, t: t, c: c, dir: dir, errors: make(map[string]*failures)}
	open := func(dsn string) *sql.DB {
		db, err := sql.Open(c.DriverName(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	o.admin = c.Primary().AdminDB(t)
	o.admin.SetMaxOpenConns(1)
	o.primary = open(c.Primary().AdminDSN(s.dsn...))
	if s.replicaAdmin {
		o.replica = open(c.Replicas()[0].AdminDSN(s.dsn...))
	} else {
		o.replica = open(c.Replicas()[0].DSN(s.dsn...))
	}
	for _, text := range s.schema {
		if _, err := o.admin.ExecContext(t.Context(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := c.WaitCaughtUp(ctx); err != nil {
		t.Fatal(err)
	}
	return o
}

// sharedState is what every session sees, and the files in the directory that
// the statements name.
func (o *oracle) sharedState() state {
	s, err := look(o.t.Context(), o.admin, o.shared...)
	if err != nil {
		o.t.Fatalf("the primary's state: %v", err)
	}
	entries, err := os.ReadDir(o.dir)
	if err != nil {
		o.t.Fatal(err)
	}
	for _, e := range entries {
		s = append(s, "file "+e.Name())
	}
	return o.filter(s)
}

func (o *oracle) ownState(s *session) state {
	if err := s.open(o.t.Context()); err != nil {
		o.t.Fatal(err)
	}
	lines, err := look(o.t.Context(), s.conn, o.own...)
	if err != nil {
		return state{"the session: " + err.Error()}
	}
	return o.filter(lines)
}

// round runs one batch per mode given, side by side, and returns what has changed,
// "" if nothing has.
func (o *oracle) round(modes [][]string, batches [][]string) string {
	ctx := o.t.Context()
	before := o.sharedState()
	found := make([]string, len(batches))
	open := make([]*session, len(batches))
	var wg sync.WaitGroup
	for i, batch := range batches {
		wg.Go(func() { found[i], open[i] = o.batch(ctx, modes[i], batch) })
	}
	wg.Wait()
	for i, s := range open {
		if s.conn == nil {
			continue
		}
		lines, err := look(ctx, s.conn, o.held...)
		if err != nil {
			lines = state{"the transaction: " + err.Error()}
		}
		if lines = o.filter(lines); len(lines) > 0 {
			found[i] += "\n\theld: " + strings.Join(lines, "\n\theld: ")
		}
	}
	for _, s := range open {
		if s.conn != nil {
			_ = s.run(ctx, "COMMIT")
		}
		s.close()
	}
	what := strings.Join(found, "")
	return what + changes(before, o.sharedState())
}

// batch runs statements on both servers, then again on the primary in one
// transaction. It returns what changed in the session, and the session, still in
// the transaction.
func (o *oracle) batch(ctx context.Context, mode, batch []string) (what string, open *session) {
	var wg sync.WaitGroup
	onReplica := make([]error, len(batch))
	wg.Go(func() {
		s := &session{db: o.replica, setup: mode}
		defer s.close()
		for i, text := range batch {
			onReplica[i] = s.run(ctx, text)
		}
	})
	s := &session{db: o.primary, setup: mode}
	before := o.ownState(s)
	onPrimary := make([]error, len(batch))
	broke := make([]bool, len(batch))
	for i, text := range batch {
		onPrimary[i] = s.run(ctx, text)
		broke[i] = s.conn == nil
	}
	what = changes(before, o.ownState(s))
	wg.Wait()
	o.mu.Lock()
	for i, text := range batch {
		err := onPrimary[i]
		o.run++
		if err == nil || broke[i] {
			o.valid++
		} else {
			f := o.errors[code(err)]
			if f == nil {
				f = &failures{text: text, message: err.Error()}
				o.errors[code(err)] = f
			}
			f.n++
		}
		if err == nil && o.refused(onReplica[i]) {
			o.addLocked(finding{text, "a replica refused it: " + onReplica[i].Error()})
		}
	}
	o.mu.Unlock()

	_ = s.run(ctx, "BEGIN")
	for i, text := range batch {
		if onPrimary[i] == nil && s.run(ctx, text) != nil {
			_ = s.run(ctx, "ROLLBACK")
			_ = s.run(ctx, "BEGIN")
		}
	}
	return what, s
}

// check runs a round, and if something has changed, finds the statements that did
// it by halves.
func (o *oracle) check(modes [][]string, batches [][]string) {
	what := o.round(modes, batches)
	if what == "" {
		return
	}
	o.t.Logf("something has changed: %s", what)
	found := false
	for i, batch := range batches {
		found = o.halve(modes[i], batch) || found
	}
	if !found && !o.background(what) {
		// Perhaps what did it can only be done once.
		o.findings = append(o.findings, finding{strings.Join(batches[0], "\n"), "one of these, but not again:" + what})
	}
}

// halve runs a batch again, and reports whether it has found who changes something.
func (o *oracle) halve(mode, batch []string) (found bool) {
	if len(o.findings) > maxFindings {
		return true
	}
	o.settle()
	what := o.round([][]string{mode}, [][]string{batch})
	if what == "" {
		return false
	}
	if len(batch) > 1 {
		first := o.halve(mode, batch[:len(batch)/2])
		return o.halve(mode, batch[len(batch)/2:]) || first
	}
	if o.background(what) && o.round([][]string{mode}, [][]string{batch}) == "" {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.addLocked(finding{batch[0], strings.Join(append(mode[:len(mode):len(mode)], "changed:"), "; ") + what})
	return true
}

// maxFindings is when to stop looking for more.
const maxFindings = 30

// inAllModes runs statements in each mode of a session, but for those that have
// been found in one before.
func (o *oracle) inAllModes(texts []string) {
	texts = slices.Clone(texts)
	for _, mode := range o.modes {
		o.check([][]string{mode}, [][]string{texts})
		texts = slices.DeleteFunc(texts, func(text string) bool {
			return slices.ContainsFunc(o.findings, func(f finding) bool { return f.text == text })
		})
	}
}

// addLocked keeps one finding of a kind for each text. The caller holds mu.
func (o *oracle) addLocked(f finding) {
	for _, g := range o.findings {
		if g.text == f.text && strings.Contains(g.what, "refused") == strings.Contains(f.what, "refused") {
			return
		}
	}
	o.findings = append(o.findings, f)
}

// background reports whether all that has changed is the position in the log of
// changes, where PostgreSQL itself writes now and then.
func (o *oracle) background(what string) bool {
	for line := range strings.Lines(strings.TrimSpace(what)) {
		if !strings.Contains(line, "log position") {
			return false
		}
	}
	return true
}

// settle waits until the traces of ended sessions are gone, and removes files.
func (o *oracle) settle() {
	if entries, err := os.ReadDir(o.dir); err == nil {
		for _, e := range entries {
			_ = os.Remove(o.dir + "/" + e.Name())
		}
	}
	same := 0
	for before := o.sharedState(); same < 3; {
		time.Sleep(5 * time.Millisecond) // between two looks, nothing waits for it
		after := o.sharedState()
		if changes(before, after) == "" {
			same++
		} else {
			same = 0
		}
		before = after
	}
}
