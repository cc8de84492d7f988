package replicated_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// eachMySQL runs a test on MariaDB, whose positions are GTIDs by domain, and on
// MySQL, which tells places in binary log files before 5.7.
func eachMySQL(t *testing.T, test func(t *testing.T, e replicatedtest.Engine)) {
	for _, e := range []replicatedtest.Engine{replicatedtest.MariaDB, replicatedtest.MySQL} {
		t.Run(e.String(), func(t *testing.T) { test(t, e) })
	}
}

// opened is a handle for a readback on all nodes, whose notices are collected, and
// of whose replicas something is known.
func (r *readback) opened(t *testing.T, keys ...string) (*sql.DB, *heard) {
	t.Helper()
	db, h := listening(t, r.c.DSN(append(keys, locating, lagless, ownFloors(t))...))
	measured(t, r.c, db)
	return db, h
}

// beside writes and reads back in sessions for as long as f runs, on rows of its own.
// Sessions have replicas serve while others write.
func (r *readback) beside(db *sql.DB, f func()) {
	r.t.Helper()
	var over atomic.Bool
	var wg sync.WaitGroup
	for row := 2; row < 5; row++ {
		wg.Go(func() {
			for last := false; !last; {
				last = over.Load()
				ctx, _ := replicated.WithSession(r.t.Context())
				r.round(ctx, db, row)
			}
		})
	}
	defer wg.Wait()
	defer over.Store(true)
	f()
}

// Replication that stands still, since nothing is applied or nothing is received.
//
// Verdict: the replicas are fresh, since they have all there is, until the primary
// writes; then the primary alone serves; when it goes on, so do they.
func TestStoppedReplicationIsFreshUntilThePrimaryWrites(t *testing.T) {
	eachMySQL(t, func(t *testing.T, e replicatedtest.Engine) {
		c := sharedCluster(t, e)
		r := newReadback(t, c)
		db, _ := r.opened(t)
		ctx, _ := replicated.WithSession(t.Context())
		for _, how := range []struct {
			name       string
			stop, goOn func(*replicatedtest.Node) error
		}{
			{"applying", (*replicatedtest.Node).PauseReplication, (*replicatedtest.Node).ResumeReplication},
			{"receiving", (*replicatedtest.Node).StopReceiving, (*replicatedtest.Node).ResumeReceiving},
		} {
			t.Run(how.name, func(t *testing.T) {
				each := func(f func(*replicatedtest.Node) error) {
					for _, n := range c.Replicas() {
						must(t, f(n))
					}
				}
				caughtUp(t, c)
				each(how.stop)
				goOn := sync.OnceFunc(func() { each(how.goOn) })
				defer goOn()
				proven(t, db)
				r.until(ctx, db, 0, c.Replicas()...)

				r.mustWrite(ctx, db, 0)
				r.only(ctx, db, 0, c.Primary())
				r.beside(db, func() { r.only(ctx, db, 0, c.Primary()) })

				goOn()
				r.until(ctx, db, 0, c.Replicas()...)
			})
		}
	})
}

// The primary forgets its binary log (RESET MASTER) and numbers its transactions
// from one again, so that a replica that has followed before is past the number of
// each new one.
//
// Verdict: a new epoch, in which replicas that are where they were have applied
// what the primary lacks: they are unknown, until they have been made anew.
func TestBinaryLogReset(t *testing.T) {
	eachMySQL(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{NoStatementLog: true})
		r := newReadback(t, c)
		db, heard := r.opened(t)
		first, second := c.Nodes()[1], c.Nodes()[2]
		ctx, _ := replicated.WithSession(t.Context())
		r.beside(db, func() { r.until(ctx, db, 0, first, second) })
		// They would be at numbers that the new log gets to between two samples.
		for range 300 {
			r.mustWrite(ctx, db, 1)
		}
		caughtUp(t, c)
		r.until(ctx, db, 1, first, second)

		must(t, c.Primary().ResetBinaryLog())
		r.mustWrite(ctx, db, 0)
		r.only(ctx, db, 0, c.Primary())
		r.beside(db, func() { heard.hears(t, replicated.NoticePrimaryWentBack) })
		heard.hears(t, replicated.NoticeDiverged)
		for _, n := range c.Replicas() {
			unknown(t, db, n.Addr())
		}
		r.beside(db, func() { r.only(ctx, db, 0, c.Primary()) })

		must(t, first.Rebuild())
		r.beside(db, func() { r.until(ctx, db, 0, first) })
		unknown(t, db, second.Addr())
		must(t, second.Rebuild())
		r.beside(db, func() { r.until(ctx, db, 0, first, second) })
		if n := heard.count(replicated.NoticePrimaryWentBack); n != 1 {
			t.Errorf("%d times it was told that the primary went back, once was due", n)
		}
	})
}

// Copies: the primary is brought back to an older one, under the same identity, and
// a replica too; another replica is made anew.
//
// Verdict: a primary that lacks what it had begins a new epoch; replicas that have
// what it lost are unknown until they are made anew. A replica that was brought back
// is behind by what it lost, and serves when it has it again. One that was made anew
// is another server, and serves as soon as a sample has confirmed it.
func TestOlderCopies(t *testing.T) {
	eachMySQL(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{NoStatementLog: true})
		r := newReadback(t, c)
		primary, restored, anew := c.Nodes()[0], c.Nodes()[1], c.Nodes()[2]
		copyOf := func(n *replicatedtest.Node) *replicatedtest.Snapshot {
			t.Helper()
			must(t, n.Stop())
			s, err := n.Snapshot()
			must(t, err)
			must(t, n.Start())
			return s
		}
		back := func(n *replicatedtest.Node, s *replicatedtest.Snapshot) {
			t.Helper()
			must(t, n.Kill())
			must(t, n.Restore(s))
			must(t, n.Start())
		}
		ofPrimary, ofReplica := copyOf(primary), copyOf(restored)
		caughtUp(t, c)
		db, heard := r.opened(t)
		ctx, _ := replicated.WithSession(t.Context())
		r.beside(db, func() { r.until(ctx, db, 0, restored, anew) })

		r.beside(db, func() {
			back(restored, ofReplica)
			r.until(ctx, db, 0, restored, anew)
			must(t, anew.Rebuild())
			r.until(ctx, db, 0, restored, anew)
		})
		if n := heard.count(replicated.NoticePrimaryWentBack) + heard.count(replicated.NoticeDiverged); n != 0 {
			t.Errorf("it was told that the primary or a replica is not what it was: %v", heard.all())
		}

		caughtUp(t, c)
		back(primary, ofPrimary)
		r.forget()
		heard.hears(t, replicated.NoticePrimaryWentBack)
		r.beside(db, func() { heard.hears(t, replicated.NoticeDiverged) })
		for _, n := range c.Replicas() {
			unknown(t, db, n.Addr())
		}
		must(t, anew.Rebuild())
		r.beside(db, func() { r.until(ctx, db, 0, anew) })
		unknown(t, db, restored.Addr())
	})
}

// An administrator writes to a replica, which then has rows of its own.
//
// Verdict, on MariaDB and MySQL alike: what a replica has applied of the primary's
// log does not tell of it. It has everything that was written through the primary,
// so it serves, with its rows: a cluster with two writers, of which nothing more is
// promised.
func TestLocalWritesOnAReplica(t *testing.T) {
	eachMySQL(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1, NoStatementLog: true})
		r := newReadback(t, c)
		db, heard := r.opened(t)
		replica := c.Nodes()[1]
		ctx, _ := replicated.WithSession(t.Context())
		admin := replica.AdminDB(t)
		mustExec(t, admin, "CREATE TABLE app.own (n int)")
		r.beside(db, func() {
			for range 50 {
				mustExec(t, admin, "INSERT INTO app.own VALUES (1)")
				r.mustWrite(ctx, db, 0)
				r.reads(ctx, db, 0, 5)
			}
			r.until(ctx, db, 0, replica)
		})
		caughtUp(t, c)
		proven(t, db)
		if n := heard.count(replicated.NoticeDiverged); n != 0 {
			t.Errorf("notices %v", heard.all())
		}
	})
}

// A chain, first to middle to last, with writes on the middle, whose numbers grow
// beside those of the first: the last may be past the number of a transaction that
// it does not have, with gtid_strict_mode off as it is by default.
//
// Verdict: the middle is judged by what it has applied. The last has diverged as
// soon as a write of the middle is what it applied last, and serves again when that
// is one of the first's.
func TestChainWithLocalWritesInTheMiddle(t *testing.T) {
	c := replicatedtest.Start(t, replicatedtest.MariaDB, replicatedtest.Options{NoStatementLog: true})
	r := newReadback(t, c)
	middle, last := c.Nodes()[1], c.Nodes()[2]
	must(t, last.Follow(middle))
	admin := middle.AdminDB(t)
	mustExec(t, admin, "CREATE TABLE app.own (n int)")
	ctx, _ := replicated.WithSession(t.Context())
	apply := func(n *replicatedtest.Node) {
		t.Helper()
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		must(t, n.WaitCaughtUp(ctx))
	}
	apply(middle)
	r.mustWrite(ctx, bare(t, c.Primary()), 0) // what the last has applied last
	apply(middle)
	apply(last)
	db, heard := r.opened(t)
	r.beside(db, func() { r.until(ctx, db, 0, middle, last) })
	apply(middle)
	apply(last)

	// What the first writes stops at the middle; what that writes does not.
	must(t, middle.PauseReplication())
	for range 20 {
		mustExec(t, admin, "INSERT INTO app.own VALUES (1)")
	}
	apply(last)
	r.mustWrite(ctx, db, 0)
	r.only(ctx, db, 0, c.Primary())
	heard.hears(t, replicated.NoticeDiverged)
	unknown(t, db, last.Addr())
	r.beside(db, func() { r.only(ctx, db, 0, c.Primary()) })

	must(t, middle.ResumeReplication())
	r.until(ctx, db, 0, middle, last)
	r.beside(db, func() {
		for range 50 {
			mustExec(t, admin, "INSERT INTO app.own VALUES (1)")
			r.mustWrite(ctx, db, 0)
			r.reads(ctx, db, 0, 5)
		}
		r.until(ctx, db, 0, middle)
	})
	r.mustWrite(ctx, db, 0)
	r.until(ctx, db, 0, middle, last)
}

// A switchover behind one name, as with DNS, a virtual address or a proxy: new
// connections lead to the new primary, while those that there are go on leading to
// the old one, which is read-only now, follows the new one, and answers.
//
// Verdict: the first connection that meets the new primary begins a new epoch; no
// connection from before is used for anything after that, whether it was idle or
// somebody held it. What lives of them is the pool's, and goes when it is next
// looked at. The sampler has one session on each node again.
func TestSwitchoverBehindOneName(t *testing.T) {
	eachMySQL(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{NoStatementLog: true, Settings: attributes})
		r := newReadback(t, c)
		old, next, third := c.Nodes()[0], c.Nodes()[1], c.Nodes()[2]
		name := old.Proxy(t)
		db, heard := listening(t, c.DSNAt([]string{name.Addr(), next.Addr(), third.Addr()}, locating, lagless, ownFloors(t)))
		ctx, _ := replicated.WithSession(t.Context())
		measured(t, c, db)
		db.SetMaxIdleConns(8)

		// Six connections to the old primary, that four of them be held by somebody.
		primary := replicated.WithPrimary(ctx)
		held := make([]*sql.Conn, 6)
		for i := range held {
			conn, err := db.Conn(ctx)
			must(t, err)
			defer conn.Close()
			if got := r.reads(primary, conn, 0, 1); got[0] != old.Name() {
				t.Fatalf("a primary connection leads to %v", got)
			}
			held[i] = conn
		}
		must(t, held[4].Close())
		must(t, held[5].Close())
		r.mustWrite(ctx, db, 0)
		caughtUp(t, c)

		mustExec(t, old.AdminDB(t), "SET GLOBAL read_only = ON")
		must(t, next.Promote())
		name.Redirect(next.Addr())
		// The old one stands still, so that what it answers is old.
		must(t, old.Repoint(next))
		must(t, old.PauseReplication())
		must(t, third.Repoint(next))

		// One who writes, as soon as that is possible again.
		eventually(t, 20*time.Second, func() string {
			if err := r.write(ctx, db, 0); err != nil {
				return err.Error()
			}
			return ""
		})
		for _, conn := range held[:4] {
			for range 3 {
				// It fails for good, since it was in use, or serves what is new.
				if node, err := r.read(ctx, conn, 0); err == nil && node == old.Name() {
					t.Error("the old primary has served a read")
				}
			}
			_ = conn.Close()
		}
		r.beside(db, func() { r.until(ctx, db, 0, third) })
		if nodes := r.reads(primary, db, 0, 20); len(nodes) != 1 || nodes[0] != next.Name() {
			t.Errorf("reads on the primary were served by %v", nodes)
		}
		heard.hears(t, replicated.NoticePrimaryChanged)
		if n := heard.count(replicated.NoticePrimaryChanged); n != 1 {
			t.Errorf("it was told %d times that there is another primary", n)
		}
		// The one that was promoted is a replica by its own address, with nothing of
		// its own log applied.
		for n, want := range map[*replicatedtest.Node]int{old: 0, next: 2, third: 1} {
			sampling(t, n, want)
		}
	})
}

// attributes have the servers tell what clients call themselves.
var attributes = map[string]string{"performance-schema": "ON"}

// sampling waits until so many sessions on the node call themselves a sampler.
func sampling(t *testing.T, n *replicatedtest.Node, want int) {
	t.Helper()
	admin := n.AdminDB(t)
	eventually(t, 20*time.Second, func() string {
		var got int
		err := admin.QueryRowContext(t.Context(), `SELECT count(*) FROM performance_schema.session_connect_attrs AS a
			JOIN information_schema.processlist AS p ON p.id = a.processlist_id
			WHERE attr_name = 'program_name' AND attr_value = 'replicated sampler' AND p.user = ?`, replicatedtest.AppUser).Scan(&got)
		if err != nil {
			return err.Error()
		}
		if got != want {
			return fmt.Sprintf("%s has %d sessions of a sampler, want %d", n, got, want)
		}
		return ""
	})
}

// The sampler's sessions: recognisable, one on each node for each handle, whatever
// happens to the nodes, and none when the handle is closed.
func TestSamplerSessions(t *testing.T) {
	eachMySQL(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1, NoStatementLog: true, Settings: attributes})
		r := newReadback(t, c)
		primary, replica := c.Nodes()[0], c.Nodes()[1]
		ctx, _ := replicated.WithSession(t.Context())
		db, _ := r.opened(t, "replicated.breaker_open=50ms")
		other, _ := r.opened(t, "replicated.breaker_open=50ms")
		everywhere := func(want int) {
			t.Helper()
			for _, n := range c.Nodes() {
				sampling(t, n, want)
			}
		}
		for _, h := range []*sql.DB{db, other} {
			r.until(ctx, h, 0, replica)
		}
		everywhere(2)
		for _, n := range []*replicatedtest.Node{primary, replica} {
			r.beside(db, func() {
				must(t, n.Kill())
				must(t, n.Start())
			})
			caughtUp(t, c)
			r.beside(db, func() { r.until(ctx, other, 0, replica) })
			everywhere(2)
			if _, err := n.KillBackends(); err != nil {
				t.Fatal(err)
			}
			r.beside(db, func() { r.until(ctx, db, 0, replica) })
			everywhere(2)
		}
		must(t, other.Close())
		everywhere(1)
		must(t, db.Close())
		everywhere(0)
		for _, n := range c.Nodes() {
			noConnections(t, n)
		}
	})
}

// One address that leads to two replicas, of which one has stopped, as a balancer
// or a reader endpoint does.
//
// Verdict: evidence goes by the server that a connection has reached. The stopped
// one serves nothing that it lacks, and the other one serves.
func TestBalancerBeforeUnequalReplicas(t *testing.T) {
	eachMySQL(t, func(t *testing.T, e replicatedtest.Engine) {
		c := sharedCluster(t, e)
		r := newReadback(t, c)
		slow, quick := c.Replicas()[0], c.Replicas()[1]
		balancer := c.Balancer(t, slow, quick)
		db, _ := listening(t, c.DSNAt([]string{c.Primary().Addr(), balancer.Addr()}, locating, lagless, ownFloors(t)))
		ctx, _ := replicated.WithSession(t.Context())
		measured(t, c, db)
		// One read after another uses one connection; several at once use several.
		several := func(nodes ...*replicatedtest.Node) {
			t.Helper()
			r.beside(db, func() { r.until(ctx, db, 0, nodes...) })
		}
		several(quick, slow)
		for range 3 {
			must(t, slow.PauseReplication())
			resume := sync.OnceFunc(func() { must(t, slow.ResumeReplication()) })
			defer resume()
			r.mustWrite(ctx, db, 0)
			several(quick)
			for range 20 {
				r.mustWrite(ctx, db, 0)
				if got := r.reads(ctx, db, 0, 10); strings.Contains(fmt.Sprint(got), slow.Name()) {
					t.Errorf("reads were served by %v", got)
				}
			}
			resume()
			several(quick, slow)
		}
	})
}
