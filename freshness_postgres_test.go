package replicated_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// What may happen to a PostgreSQL primary with one standby, each with its verdict. No
// read is stale in any of them.
//
// The primary's WAL writer is told to flush once in ten seconds, so that what is
// acknowledged before it is durable stays so.
func TestPostgresFreshness(t *testing.T) {
	c := replicatedtest.Start(t, replicatedtest.Postgres, replicatedtest.Options{Replicas: 1, Settings: map[string]string{
		"wal_writer_delay": "10s", "autovacuum": "off",
	}})
	for _, test := range []struct {
		name string
		run  func(p *pgPair)
	}{
		// No name here may have that of the setting in it, as the table's name has it.
		{"commits that wait", testSynchronousCommits},
		{"commits that do not wait", testAsynchronousCommits},
		{"end of a page and of a segment", testEndOfPage},
		{"idle primary", testIdlePrimary},
		{"crashed backend", testCrashedBackend},
		{"killed receiver", testKilledReceiver},
		{"restored primary", testRestoredPrimary},
		{"diverged replica", testDivergedReplica},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.run(&pgPair{T: t, c: c, primary: c.Nodes()[0], replica: c.Nodes()[1], admin: c.Nodes()[0].AdminDB(t)})
		})
	}
}

// pgPair is a primary and its only replica.
type pgPair struct {
	*testing.T
	c                *replicatedtest.Cluster
	primary, replica *replicatedtest.Node
	admin            *sql.DB // of the primary
}

// lagless keeps lag out of what is tested: with the WAL writer asleep it is not known
// for seconds that nothing but asynchronous commits is missing.
const lagless = "replicated.max_lag=10m"

// wal returns how far the primary's log reaches, and how far it is durable.
func (p *pgPair) wal() (inserted, flushed int64) {
	p.Helper()
	const text = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint, (pg_current_wal_flush_lsn() - '0/0')::bigint"
	if err := p.admin.QueryRowContext(p.Context(), text).Scan(&inserted, &flushed); err != nil {
		p.Fatal(err)
	}
	return inserted, flushed
}

// flush makes the log durable as far as it reaches.
func (p *pgPair) flush() {
	p.Helper()
	mustExec(p.T, p.admin, "SELECT pg_logical_emit_message(true, 'test', '')")
}

// What waits for the disk is proven by how far the log is durable: the replica has it
// at once, and serves reads that must see it, though the log goes on beyond that (a
// read on the primary that prunes a page is enough for it) and nobody flushes it.
func testSynchronousCommits(p *pgPair) {
	r := newReadback(p.T, p.c)
	db := open(p.T, p.c, lagless)
	cluster, err := replicated.ClusterOf(p.Context(), db)
	must(p.T, err)
	knowsCatalog(p.T, cluster)
	// What goes on being logged and is not flushed: there is more of it at each sample.
	over := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(over)
	wg.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
				_, _ = p.admin.ExecContext(p.Context(), "SELECT pg_logical_emit_message(false, 'test', '')")
			}
		}
	})
	proven := 0
	for range 5 {
		r.mustWrite(p.Context(), db, 0)
		before, _ := p.wal()
		r.until(p.Context(), db, 0, p.replica)
		if _, flushed := p.wal(); flushed < before {
			proven++
		}
	}
	if proven == 0 {
		p.Error("no read ran on the replica before the log was flushed as far as it reached")
	}
}

// With synchronous_commit off a write is acknowledged before it is durable, and the
// log that is durable proves nothing of it: how far the log reaches does. Reads stay
// on the primary until the replica is past that, however the setting came about.
func testAsynchronousCommits(p *pgPair) {
	const off = "synchronous_commit = off"
	function := func(name, body, clause string) string {
		return "CREATE OR REPLACE FUNCTION " + name + " RETURNS " + body + " LANGUAGE plpgsql " + clause
	}
	for _, tt := range []struct {
		name  string
		setup []string // as an administrator
		undo  []string
		keys  []string
		first func(t *testing.T, conn *sql.Conn) // on the connection
	}{
		{name: "in the DSN", keys: []string{"synchronous_commit=off"}},
		{name: "of the role", setup: []string{"ALTER ROLE app SET " + off}, undo: []string{"ALTER ROLE app RESET synchronous_commit"}},
		{name: "by SET", first: func(t *testing.T, conn *sql.Conn) { mustExec(t, conn, "SET "+off) }},
		{name: "by its function", first: func(t *testing.T, conn *sql.Conn) {
			mustExec(t, conn, "SELECT set_config($1, $2, false)", "synchronous_commit", "off")
		}},
		{
			name:  "in a function",
			setup: []string{function("unsync()", "void", "AS $$ BEGIN PERFORM set_config('synchronous_commit', 'off', false); END $$")},
			undo:  []string{"DROP FUNCTION unsync()"},
			first: func(t *testing.T, conn *sql.Conn) { mustExec(t, conn, "SELECT unsync()") },
		},
		{
			name: "of a function",
			// The setting of a function ends with it, unless it sets it itself. It is enough
			// to be named.
			setup: []string{
				function("unsync(name text)", "void", "AS $$ BEGIN PERFORM set_config(name, 'off', false); END $$"),
				function("named()", "text", "SET "+off+" AS $$ BEGIN RETURN replace('synchronous-commit', '-', '_'); END $$"),
			},
			undo:  []string{"DROP FUNCTION unsync(text)", "DROP FUNCTION named()"},
			first: func(t *testing.T, conn *sql.Conn) { mustExec(t, conn, "SELECT unsync(named())") },
		},
		{
			name: "in a trigger",
			setup: []string{
				function("unsync()", "trigger", "AS $$ BEGIN SET LOCAL "+off+"; RETURN NEW; END $$"),
				"CREATE TRIGGER unsync BEFORE UPDATE ON @table FOR EACH ROW EXECUTE FUNCTION unsync()",
			},
			undo: []string{"DROP TRIGGER unsync ON @table", "DROP FUNCTION unsync()"},
		},
	} {
		p.Run(tt.name, func(t *testing.T) {
			p := &pgPair{t, p.c, p.primary, p.replica, p.admin}
			r := newReadback(t, p.c)
			run := func(texts []string) {
				for _, text := range texts {
					if _, err := p.admin.ExecContext(context.WithoutCancel(t.Context()), strings.ReplaceAll(text, "@table", r.table)); err != nil {
						t.Error(err)
					}
				}
			}
			run(tt.setup)
			t.Cleanup(func() { run(tt.undo) })
			db := open(t, p.c, append(tt.keys, lagless)...)
			db.SetMaxOpenConns(1)
			cluster, err := replicated.ClusterOf(t.Context(), db)
			must(t, err)
			knowsCatalog(t, cluster)
			if tt.first != nil {
				conn, give := checkOut(t, db)
				tt.first(t, conn)
				p.unflushed(t.Context(), r, cluster, conn, conn) // here, where what it has set may keep its reads
				give()
			}
			p.unflushed(t.Context(), r, cluster, db, db) // the next user meets what was left in the connection
			ctx, _ := replicated.WithSession(t.Context())
			p.unflushed(ctx, r, cluster, db, db)
			db.SetMaxOpenConns(0)
			conn, give := checkOut(t, db)
			defer give()
			p.unflushed(t.Context(), r, cluster, conn, db)
			p.durable(t.Context(), r, db)
		})
	}
}

// unflushed writes and reads back while the log is not durable.
func (p *pgPair) unflushed(ctx context.Context, r *readback, c *replicated.Cluster, writer, reader writing) {
	p.Helper()
	provoked := 0
	for range 3 {
		r.mustWrite(ctx, writer, 0)
		if inserted, flushed := p.wal(); flushed < inserted {
			provoked++
		}
		for range 3 {
			r.reads(ctx, reader, 0, 30)
			// The primary has been sampled after the write, so that a replica seems to be
			// past it by the log that is durable.
			if _, err := c.Token(p.Context()); err != nil {
				p.Error(err)
			}
		}
		r.reads(ctx, reader, 0, 60)
	}
	if provoked == 0 {
		p.Error("all was durable at once: nothing was tested")
	}
}

// durable makes the log durable until a replica has served a read.
func (p *pgPair) durable(ctx context.Context, r *readback, db writing) {
	p.Helper()
	eventually(p.T, 30*time.Second, func() string {
		p.flush()
		for range 10 {
			if node, err := r.read(ctx, db, 0); err == nil && node == p.replica.Name() {
				return ""
			}
		}
		return "no read ran on the replica when the log was durable"
	})
}

// The position where a page of the log ends, and where a segment does, reads 24 and 40
// bytes past what any replica reaches, as long as nothing is written there. A floor that
// is proven by how far the log reaches is proven there all the same.
func testEndOfPage(p *pgPair) {
	const page = 8192
	r := newReadback(p.T, p.c)
	db := open(p.T, p.c, lagless)
	message := func(size int64) {
		mustExec(p.T, p.admin, "SELECT pg_logical_emit_message(true, 'test', repeat('x', $1))", size)
	}
	for _, end := range []struct {
		name  string
		at    func(inserted int64) bool
		bring func()
	}{
		{"page", func(at int64) bool { return at%page == 24 }, func() {
			// A message, with the commit that makes it durable, that ends where the page does.
			// What it takes besides its text is learned from a first one.
			before, _ := p.wal()
			message(800)
			after, _ := p.wal()
			left := page - after%page
			if rest := left - (after - before) + 800; after/page == before/page && rest >= 256 {
				message(rest)
			}
		}},
		{"segment", func(at int64) bool { return at%(16<<20) == 40 }, func() {
			mustExec(p.T, p.admin, "SELECT pg_switch_wal()")
		}},
	} {
		proven, missed := 0, 0
		for try := 0; try < 40 && proven < 2 && missed < 3; try++ {
			r.mustWrite(p.Context(), db, 0)
			r.reads(p.Context(), db, 0, 1) // prunes the page now, not later
			end.bring()
			at, _ := p.wal()
			if !end.at(at) {
				continue
			}
			ctx, _ := replicated.WithSession(p.Context())
			replicated.Wrote(ctx) // what is there needs a proof of a sample that is taken there
			if p.served(ctx, r, db, at) {
				proven++
			} else {
				missed++
			}
		}
		if proven < 2 {
			p.Errorf("the replica was proven to be at the end of a %s %d times", end.name, proven)
		}
	}
}

// served tells whether the replica serves a read before the log moves on from the
// position, as the server's own processes have it do once in a while.
func (p *pgPair) served(ctx context.Context, r *readback, db *sql.DB, at int64) bool {
	p.Helper()
	for {
		node, err := r.read(ctx, db, 0)
		if now, _ := p.wal(); now != at || err != nil {
			return false
		}
		if node == p.replica.Name() {
			return true
		}
	}
}

// A primary on which nothing happens makes no replica look late: lag is the time since
// the last sample that the replica contains, not since the last change.
func testIdlePrimary(p *pgPair) {
	const maxLag = time.Second
	idle := 3 * time.Second
	if os.Getenv("REPLICATED_SOAK") != "" {
		idle = time.Minute
	}
	reload := func(text string) {
		for _, q := range []string{text, "SELECT pg_reload_conf()"} {
			if _, err := p.admin.ExecContext(context.WithoutCancel(p.Context()), q); err != nil {
				p.Error(err)
			}
		}
	}
	reload("ALTER SYSTEM SET wal_writer_delay = '200ms'") // as usual
	p.Cleanup(func() { reload("ALTER SYSTEM RESET wal_writer_delay") })
	r := newReadback(p.T, p.c)
	db := open(p.T, p.c, "replicated.max_lag="+maxLag.String())
	r.until(p.Context(), db, 0, p.replica)
	late, began := 0, time.Now() // reads that the replica served when the last change was long ago
	before, _ := p.wal()
	for time.Since(began) < idle {
		at := time.Since(began)
		if r.reads(p.Context(), db, 0, 1)[0] == p.replica.Name() && at > maxLag {
			late++
		}
	}
	if late == 0 {
		p.Errorf("the replica served no read later than %v after the last change", maxLag)
	}
	eventually(p.T, 20*time.Second, func() string {
		node, err := r.read(p.Context(), db, 0)
		if n := stats(p.T, db).Nodes[1]; err != nil || node != p.replica.Name() || n.Freshness != replicated.FreshnessProven || n.Lag >= maxLag {
			return fmt.Sprintf("after %v without a change %s (%v) served, and of the replica is known: %+v", idle, node, err, n)
		}
		return ""
	})
	after, _ := p.wal()
	p.Logf("%d reads on the replica later than %v after the last change; the log went on by %d bytes", late, maxLag, after-before)
}

// A standby one of whose backends dies comes back under the same start time and address
// with older data, and answers before it is where it was. What had been proven of it
// is not: reads that it served a moment ago run on the primary.
func testCrashedBackend(p *pgPair) {
	r := newReadback(p.T, p.c)
	standby := p.replica.AdminDB(p.T)
	standby.SetMaxIdleConns(-1)
	mustExec(p.T, p.admin, "CHECKPOINT")
	caughtUp(p.T, p.c)
	mustExec(p.T, standby, "CHECKPOINT") // it will go back to here
	db := open(p.T, p.c, lagless)
	ctx, _ := replicated.WithSession(p.Context())
	r.mustWrite(ctx, db, 0)
	r.until(ctx, db, 0, p.replica)
	var started, again string
	const start = "SELECT pg_postmaster_start_time()::text"
	must(p.T, standby.QueryRowContext(p.Context(), start).Scan(&started))
	must(p.T, p.replica.Delay(time.Hour))
	p.Cleanup(func() { _ = p.replica.Delay(0) })
	r.reading(ctx, db, 0, func() {
		victim, err := p.replica.DB(p.T).Conn(p.Context())
		must(p.T, err)
		defer victim.Close()
		must(p.T, p.replica.CrashBackend(int64(queryInt(p.T, victim, "SELECT pg_backend_pid()"))))
	})
	if got := queryInt(p.T, bare(p.T, p.replica), "SELECT v FROM "+r.table+" WHERE id = 0"); got != 0 {
		p.Fatalf("the standby has %d: its data did not go back", got)
	}
	if must(p.T, standby.QueryRowContext(p.Context(), start).Scan(&again)); again != started {
		p.Errorf("start time %s, before %s", again, started)
	}
	r.only(ctx, db, 0, p.primary)
	eventually(p.T, 30*time.Second, func() string { // it is asked again, and might serve
		n := stats(p.T, db).Nodes[1]
		if n.Breaker != replicated.BreakerClosed || queryInt(p.T, standby, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'replicated sampler'") == 0 {
			return fmt.Sprintf("nobody asks the standby that is back: %+v", n)
		}
		return ""
	})
	r.only(ctx, db, 0, p.primary) // nothing newer is asked than what had been proven before
	r.while(db, func() { r.only(ctx, db, 0, p.primary) })
	must(p.T, p.replica.Delay(0))
	r.until(ctx, db, 0, p.replica)
}

// A standby that receives nothing any more is as fresh as it was: it serves until the
// primary writes, and again when it receives.
func testKilledReceiver(p *pgPair) {
	r := newReadback(p.T, p.c)
	db := open(p.T, p.c, lagless)
	r.mustWrite(p.Context(), db, 0)
	r.until(p.Context(), db, 0, p.replica)
	must(p.T, p.replica.StopReceiving())
	r.only(p.Context(), db, 0, p.replica)
	r.mustWrite(p.Context(), db, 0)
	r.only(p.Context(), db, 0, p.primary)
	r.while(db, func() {})
	r.only(p.Context(), db, 0, p.primary)
	must(p.T, p.replica.ResumeReceiving())
	r.until(p.Context(), db, 0, p.replica)
}

// A primary that is put back to an older copy has forgotten what its replica has. The
// replica has diverged, and is not used: also not when the primary's log takes the same
// course with other contents and goes on beyond the replica's, so that the replica
// follows it without an error, and also not over new connections. Made anew, it serves.
func testRestoredPrimary(p *pgPair) {
	r := newReadback(p.T, p.c)
	must(p.T, p.primary.Stop())
	copied, err := p.primary.Snapshot()
	must(p.T, err)
	must(p.T, p.primary.Start())
	proxy := p.replica.Proxy(p.T)
	db, told := listening(p.T, p.c.DSNAt([]string{p.primary.Addr(), proxy.Addr()}, ownFloors(p.T), lagless))
	measured(p.T, p.c, db)
	r.mustWrite(p.Context(), db, 0)
	r.until(p.Context(), db, 0, p.replica)
	must(p.T, p.primary.Kill())
	must(p.T, p.primary.Restore(copied))
	must(p.T, p.primary.Start())
	told.hears(p.T, replicated.NoticePrimaryChanged)
	told.hears(p.T, replicated.NoticeDiverged)
	r.forget()
	r.mustWrite(p.Context(), db, 0) // where the one stood that the replica has
	for id := range 50 {
		mustExec(p.T, p.admin, fmt.Sprintf("INSERT INTO %s VALUES (%d, 0)", r.table, 1000+id))
	}
	follows := true
	ctx, cancel := context.WithTimeout(p.Context(), 5*time.Second)
	defer cancel()
	if err := p.replica.WaitCaughtUp(ctx); err != nil {
		follows = false
	}
	p.Logf("the replica follows: %t, with the value %d where the primary has %d", follows,
		queryInt(p.T, bare(p.T, p.replica), "SELECT v FROM "+r.table+" WHERE id = 0"),
		queryInt(p.T, bare(p.T, p.primary), "SELECT v FROM "+r.table+" WHERE id = 0"))
	r.only(p.Context(), db, 0, p.primary)
	connections := proxy.Traffic().Connections
	proxy.Cut()
	eventually(p.T, 20*time.Second, func() string {
		if proxy.Traffic().Connections == connections {
			return "the replica is not asked any more"
		}
		return ""
	})
	r.while(db, func() { r.only(p.Context(), db, 0, p.primary) })
	unknown(p.T, db, proxy.Addr())
	must(p.T, p.replica.Rebuild())
	r.until(p.Context(), db, 0, p.replica)
	r.while(db, func() {})
}

// A replica that was promoted, has written, and follows its former primary again has a
// history of its own. It is not used before it has been made anew.
func testDivergedReplica(p *pgPair) {
	r := newReadback(p.T, p.c)
	db, told := listening(p.T, p.c.DSNAt([]string{p.primary.Addr(), p.replica.Addr()}, ownFloors(p.T), lagless))
	measured(p.T, p.c, db)
	r.until(p.Context(), db, 0, p.replica)
	r.while(db, func() {
		must(p.T, p.replica.Promote())
		mustExec(p.T, bare(p.T, p.replica), fmt.Sprintf("INSERT INTO %s VALUES (-1, 0)", r.table))
		must(p.T, p.replica.Repoint(p.primary))
	})
	told.hears(p.T, replicated.NoticeOtherLineage)
	unknown(p.T, db, p.replica.Addr())
	r.only(p.Context(), db, 0, p.primary)
	must(p.T, p.replica.Rebuild())
	r.until(p.Context(), db, 0, p.replica)
	r.while(db, func() {})
}
