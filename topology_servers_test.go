package replicated_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

const discover = "replicated.topology=discover"

// reversed lists the cluster's nodes with the primary last: with TopologyDiscover their
// order means nothing.
func reversed(c *replicatedtest.Cluster, keys ...string) string {
	var addrs []string
	for _, n := range slices.Backward(c.Nodes()) {
		addrs = append(addrs, n.Addr())
	}
	return c.DSNAt(addrs, append(keys, discover)...)
}

// roles waits until the handle knows these roles.
func roles(t *testing.T, db *sql.DB, primary *replicatedtest.Node, replicas ...*replicatedtest.Node) {
	t.Helper()
	eventually(t, 20*time.Second, func() string {
		for _, n := range stats(t, db).Nodes {
			var want replicated.Role
			switch {
			case n.Address == primary.Addr():
				want = replicated.RolePrimary
			case slices.ContainsFunc(replicas, func(x *replicatedtest.Node) bool { return x.Addr() == n.Address }):
				want = replicated.RoleReplica
			default:
				continue
			}
			if n.Role != want {
				return fmt.Sprintf("%s counts as %v, want %v", n.Name, n.Role, want)
			}
		}
		return ""
	})
}

// A cluster whose hosts stand in any order is found out, and followed through a
// failover, a former primary that comes back as it was, and its return as a replica. No
// read is stale in any of it, and nothing is written on the former primary once the new
// one is known.
func TestDiscoverFollowsAFailover(t *testing.T) {
	eachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{})
		ctx := t.Context()
		if e == replicatedtest.Postgres { // so that the user sees a standby's timeline at once
			mustExec(t, c.Primary().AdminDB(t), "GRANT pg_read_all_stats TO "+replicatedtest.AppUser)
		}
		r := newReadback(t, c)
		db, told := listening(t, reversed(c, lagless, evenly, locating))
		a, b, other := c.Nodes()[0], c.Nodes()[1], c.Nodes()[2]
		r.mustWrite(ctx, db, 0)
		roles(t, db, a, b, other)
		r.until(ctx, db, 0, b, other)

		caughtUp(t, c)
		must(t, a.Kill())
		r.while(db, func() {
			must(t, b.Promote())
			r.primary.Store(b)
			began := time.Now()
			r.written(ctx, db)
			t.Logf("the first write succeeded %v after the new primary took writes", time.Since(began).Round(time.Millisecond))
			must(t, other.Follow(b))
		})
		told.hears(t, replicated.NoticePrimaryChanged)
		roles(t, db, b, other)
		r.mustWrite(ctx, db, 0)
		r.until(ctx, db, 0, other)

		// It knows nothing of its successor, and takes writes. For lack of a follower it
		// gets none.
		must(t, a.Start())
		mark := a.Mark()
		r.while(db, func() {
			for range 20 {
				r.mustWrite(ctx, db, 1)
			}
		})
		roles(t, db, b, other)
		for _, s := range a.StatementsSince(mark) {
			if strings.HasPrefix(s.Text, "UPDATE") || strings.HasPrefix(s.Text, "INSERT") {
				t.Errorf("the former primary was written to: %v", s)
			}
		}
		must(t, a.Follow(b))
		roles(t, db, b, other, a)
		r.mustWrite(ctx, db, 0)
		r.until(ctx, db, 0, a, other)
	})
}

// written waits until a write succeeds.
func (r *readback) written(ctx context.Context, db *sql.DB) {
	r.t.Helper()
	eventually(r.t, 20*time.Second, func() string {
		if err := r.write(ctx, db, 0); err != nil {
			return err.Error()
		}
		return ""
	})
}

// A primary that is made read-only while another is made writable refuses what is sent
// to it, without an effect: a single statement then runs on the new one, and the
// application notices nothing. One in a transaction fails.
func TestRefusedWriteRunsOnTheNewPrimary(t *testing.T) {
	for _, e := range []replicatedtest.Engine{replicatedtest.MariaDB, replicatedtest.MySQL} {
		t.Run(e.String(), func(t *testing.T) {
			c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1})
			ctx := t.Context()
			name := table(t, c, "id int PRIMARY KEY")
			db := openDSN(t, reversed(c))
			mustExec(t, db, "INSERT INTO "+name+" VALUES (1)")
			mustExec(t, db, "INSERT INTO "+name+" VALUES (2)")
			tx, err := db.BeginTx(ctx, nil)
			must(t, err)
			mustExec(t, tx, "UPDATE "+name+" SET id = id")
			caughtUp(t, c)

			a, b := c.Nodes()[0], c.Nodes()[1]
			must(t, b.Promote())
			mustExec(t, a.AdminDB(t), "SET GLOBAL read_only = ON")
			mustExec(t, db, "INSERT INTO "+name+" VALUES (3)")
			mustExec(t, db, "INSERT INTO "+name+" VALUES (4)")
			if _, err := tx.ExecContext(ctx, "INSERT INTO "+name+" VALUES (5)"); err == nil {
				t.Error("a statement of a transaction ran on another server than its others")
			}
			_ = tx.Rollback()
			if n := queryInt(t, bare(t, b), "SELECT count(*) FROM "+name); n != 4 {
				t.Errorf("the new primary has %d rows, want 4", n)
			}
			if n := queryInt(t, bare(t, a), "SELECT count(*) FROM "+name); n != 2 {
				t.Errorf("the former primary has %d rows, want 2", n)
			}
		})
	}
}

// With static topology a primary that has become a replica is told of, and not written
// to, even by a user whom it would let.
func TestStaticPrimaryThatIsReadOnlyGetsNoWrites(t *testing.T) {
	for _, e := range []replicatedtest.Engine{replicatedtest.MariaDB, replicatedtest.MySQL} {
		t.Run(e.String(), func(t *testing.T) {
			c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1})
			name := table(t, c, "id int PRIMARY KEY")
			db, told := listening(t, c.AdminDSN())
			mustExec(t, db, "INSERT INTO "+name+" VALUES (1)")
			mustExec(t, c.Primary().AdminDB(t), "SET GLOBAL read_only = ON")
			told.hears(t, replicated.NoticeReadOnlyPrimary)
			if _, err := db.ExecContext(t.Context(), "INSERT INTO "+name+" VALUES (2)"); !errors.Is(err, replicated.ErrNoPrimary) {
				t.Errorf("a write on a read-only primary: %v, want ErrNoPrimary", err)
			}
			mustExec(t, db, "SET GLOBAL read_only = OFF")
			mustExec(t, db, "INSERT INTO "+name+" VALUES (3)")
			if n := queryInt(t, bare(t, c.Primary()), "SELECT count(*) FROM "+name); n != 2 {
				t.Errorf("%d rows, want 2", n)
			}
		})
	}
}

// Who asks while nobody is the primary is told why, within the time that the probes have.
func TestNoPrimaryIsSaidSo(t *testing.T) {
	eachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{})
		name := table(t, c, "id int PRIMARY KEY")
		must(t, c.Primary().Kill())
		db := openDSN(t, reversed(c, "replicated.primary_wait=200ms"))
		if _, err := db.ExecContext(t.Context(), "INSERT INTO "+name+" VALUES (1)"); !errors.Is(err, replicated.ErrNoPrimary) {
			t.Errorf("without a primary: %v, want ErrNoPrimary", err)
		}
		must(t, c.Nodes()[1].Promote())
		eventually(t, 20*time.Second, func() string {
			if _, err := db.ExecContext(t.Context(), "INSERT INTO "+name+" VALUES (1)"); err != nil {
				return err.Error()
			}
			return ""
		})
	})
}
