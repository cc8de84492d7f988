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

// A PostgreSQL cluster whose primary is reached by a name, changes it twice: in order,
// with a former primary that goes on answering, and by a failover that loses writes and
// leaves a standby behind. Each step has its verdict; no read is stale in any.
func TestPostgresPrimaryChanges(t *testing.T) {
	c := replicatedtest.Start(t, replicatedtest.Postgres, replicatedtest.Options{})
	f := &pgChanges{T: t, c: c, nodes: [3]*replicatedtest.Node(c.Nodes())}
	// Two users: one who may not see pg_stat_wal_receiver, and one who may.
	f.poor, f.poorTold = f.open(lagless)
	f.rich, _ = f.open(lagless, asAdmin)
	f.rows = newReadback(t, c)
	f.rows.until(t.Context(), f.poor, 0, c.Replicas()...)
	f.rows.until(t.Context(), f.rich, 0, c.Replicas()...)
	for _, step := range []struct {
		name string
		run  func(*pgChanges)
	}{
		{"one sampler for each node", func(f *pgChanges) { f.samplers(f.nodes[0], f.nodes[1:]...) }},
		{"switchover behind one name", stepSwitchover},
		{"timeline of an unprivileged user", stepTimeline},
		{"restarts", stepRestarts},
		{"standby left behind", stepLeftBehind},
		{"closing", stepClosing},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			g := *f
			g.T = t
			g.rows.t = t
			step.run(&g)
		}) {
			break // the next one goes on from here
		}
	}
	f.rows.t = t
}

// pgChanges is a cluster of three, and two handles on it that know its primary by a
// name, each by one of its own, so that they share no floors, and list all three as
// replicas.
type pgChanges struct {
	*testing.T
	c          *replicatedtest.Cluster
	nodes      [3]*replicatedtest.Node
	names      []*replicatedtest.NodeProxy
	poor, rich *sql.DB
	poorTold   *heard
	rows       *readback
}

const asAdmin = "as admin"

// open opens a handle with a name of its own for the first node.
func (f *pgChanges) open(keys ...string) (*sql.DB, *heard) {
	f.Helper()
	name := f.nodes[0].Proxy(f.T)
	f.names = append(f.names, name)
	addrs := []string{name.Addr()}
	for _, n := range f.nodes {
		addrs = append(addrs, n.Addr())
	}
	keys = append(keys, evenly)
	admin := slices.Contains(keys, asAdmin)
	dsn := f.c.DSNAt(addrs, slices.DeleteFunc(keys, func(k string) bool { return k == asAdmin })...)
	if admin {
		dsn = strings.Replace(dsn, replicatedtest.AppUser+":"+replicatedtest.AppPassword, replicatedtest.AdminUser+":"+replicatedtest.AdminPassword, 1)
	}
	return listening(f.T, dsn)
}

// redirect has the names lead to another server.
func (f *pgChanges) redirect(to *replicatedtest.Node) {
	for _, name := range f.names {
		name.Redirect(to.Addr())
	}
	f.rows.primary.Store(to)
}

// samplers waits until each handle has the sessions on the servers that sample: one on
// each replica, and two on the primary, which is reached under two names.
func (f *pgChanges) samplers(primary *replicatedtest.Node, replicas ...*replicatedtest.Node) {
	f.Helper()
	for _, user := range []string{replicatedtest.AppUser, replicatedtest.AdminUser} {
		for i, n := range append([]*replicatedtest.Node{primary}, replicas...) {
			want := 1
			if i == 0 {
				want = 2
			}
			f.sessions(n, user, want)
		}
	}
}

func (f *pgChanges) sessions(n *replicatedtest.Node, user string, want int) {
	f.Helper()
	admin := n.AdminDB(f.T)
	admin.SetMaxIdleConns(-1)
	const text = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'replicated sampler' AND usename = $1"
	eventually(f.T, 20*time.Second, func() string {
		if got := queryInt(f.T, admin, text, user); got != want {
			return fmt.Sprintf("%d sessions of %s sample %s, want %d", got, user, n.Name(), want)
		}
		return ""
	})
}

// The name leads to another server from now on, while the former primary lives and takes
// whatever comes over the connections that there are. Once a connection has met the new
// primary, none of the others is used any more: reads over them see what was written
// there. The standby that has not followed is not used.
func stepSwitchover(f *pgChanges) {
	ctx, r := f.Context(), f.rows
	former, next, other := f.nodes[0], f.nodes[1], f.nodes[2]
	f.poor.SetMaxIdleConns(10)
	var pooled []*sql.Conn
	take := func() *sql.Conn {
		f.Helper()
		conn, err := f.poor.Conn(ctx)
		must(f.T, err)
		f.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	for range 5 {
		conn := take()
		must(f.T, conn.PingContext(ctx))
		pooled = append(pooled, conn)
	}
	used := pooled[4] // has been used in the check-out that goes on
	for i := range 4 {
		must(f.T, pooled[i].Close())
	}
	caughtUp(f.T, f.c)
	must(f.T, other.StopReceiving()) // what the former primary logs from now on it could not follow the next one with
	must(f.T, next.Promote())
	f.redirect(next)
	for i := range 4 {
		pooled[i] = take()
	}
	r.mustWrite(ctx, take(), 0)
	for _, conn := range pooled[:4] {
		r.reads(ctx, conn, 0, 5)
		r.mustWrite(ctx, conn, 0)
		must(f.T, conn.Close())
	}
	if node, err := r.read(ctx, used, 0); err == nil && node == former.Name() {
		f.Error("a read ran on the former primary, over a connection that had been used before")
	}
	_ = used.Close() // it may be lost
	r.while(f.poor, func() {})
	r.only(ctx, f.poor, 0, next)
	f.poorTold.hears(f.T, replicated.NoticePrimaryChanged)
	unknown(f.T, f.poor, other.Addr())
	f.sessions(former, replicatedtest.AppUser, 1) // as what is listed as a replica
	admin := former.AdminDB(f.T)
	eventually(f.T, 20*time.Second, func() string {
		if n := queryInt(f.T, admin, "SELECT count(*) FROM pg_stat_activity WHERE application_name = '' AND usename = $1", replicatedtest.AppUser); n > 0 {
			return fmt.Sprintf("%d connections to the former primary are left", n)
		}
		return ""
	})

	// The other handle has met nobody else. When the former primary ends, it does.
	must(f.T, former.Stop())
	must(f.T, other.Follow(next))
	r.mustWrite(ctx, f.rich, 0)
	r.until(ctx, f.rich, 0, other)
	r.while(f.rich, func() {})
}

// Who may not see what a standby's receiver receives has its timeline from the control
// file, which tells the former one until the next restartpoint. So long the standby is
// unknown, and a notice says so.
func stepTimeline(f *pgChanges) {
	ctx, r := f.Context(), f.rows
	primary, other := f.nodes[1], f.nodes[2]
	f.poorTold.hears(f.T, replicated.NoticeOtherLineage)
	unknown(f.T, f.poor, other.Addr())
	r.mustWrite(ctx, f.poor, 0)
	r.only(ctx, f.poor, 0, primary)
	mustExec(f.T, primary.AdminDB(f.T), "CHECKPOINT")
	must(f.T, other.WaitCaughtUp(ctx))
	mustExec(f.T, other.AdminDB(f.T), "CHECKPOINT")
	r.until(ctx, f.poor, 0, other)
}

// Sampling survives the restart of the primary, and a replica's end and return, and
// leaves no session behind.
func stepRestarts(f *pgChanges) {
	ctx, r := f.Context(), f.rows
	primary, other := f.nodes[1], f.nodes[2]
	r.while(f.poor, func() {
		must(f.T, primary.Stop())
		must(f.T, primary.Start())
	})
	r.until(ctx, f.poor, 0, other)
	f.samplers(primary, other)
	r.while(f.poor, func() { must(f.T, other.Kill()) })
	r.only(ctx, f.poor, 0, primary)
	must(f.T, other.Start())
	r.until(ctx, f.poor, 0, other)
	f.samplers(primary, other)
}

// A failover loses what one standby had not received, and another had: that one stays
// behind on the former timeline, further than the new primary is. It is unknown for as
// long as it is not made anew.
//
// A token of what was lost cannot be honoured, and says so; one of what the new primary
// had, when it was a standby, can.
func stepLeftBehind(f *pgChanges) {
	ctx, r := f.Context(), f.rows
	former, next, left := f.nodes[1], f.nodes[0], f.nodes[2]
	must(f.T, next.Follow(former)) // anew
	stale, staleTold := f.open(lagless, "replicated.primary_down=stale")
	f.redirect(former)
	write := func(db *sql.DB) (token string) {
		ctx, _ := replicated.WithSession(ctx)
		r.mustWrite(ctx, db, 0)
		cluster, err := replicated.ClusterOf(ctx, db)
		must(f.T, err)
		token, err = cluster.Token(ctx)
		must(f.T, err)
		return token
	}
	kept := write(f.rich)
	for _, db := range []*sql.DB{f.poor, f.rich, stale} {
		withKept, err := replicated.WithToken(ctx, kept)
		must(f.T, err)
		r.until(withKept, db, 0, next)
	}
	must(f.T, next.StopReceiving())
	lost := write(f.poor)
	for id := range 50 {
		mustExec(f.T, f.rich, fmt.Sprintf("INSERT INTO %s VALUES (%d, 0)", r.table, 1000+id))
	}
	must(f.T, left.WaitCaughtUp(ctx))
	must(f.T, former.Kill())
	must(f.T, next.Promote())
	f.redirect(next)
	must(f.T, left.Repoint(next))
	r.forget()
	for _, db := range []*sql.DB{f.rich, f.poor} {
		eventually(f.T, 20*time.Second, func() string { // the first may find its connection dead
			if err := r.write(ctx, db, 0); err != nil {
				return err.Error()
			}
			return ""
		})
		r.while(db, func() {})
		r.only(ctx, db, 0, next)
		unknown(f.T, db, left.Addr())

		withLost, err := replicated.WithToken(ctx, lost)
		must(f.T, err)
		if _, err := r.read(withLost, db, 0); !errors.Is(err, replicated.ErrNotFresh) {
			f.Errorf("a read with a token of what was lost: %v, want ErrNotFresh", err)
		}
		withKept, err := replicated.WithToken(ctx, kept)
		must(f.T, err)
		r.only(withKept, db, 0, next)
	}
	withLost, err := replicated.WithToken(context.Background(), lost)
	must(f.T, err)
	if _, err := r.read(withLost, stale, 0); err != nil {
		f.Errorf("with primary_down=stale, a read with a token of what was lost: %v", err)
	}
	staleTold.hears(f.T, replicated.NoticeTokenUnmet)
	if got := staleTold.count(replicated.NoticeTokenUnmet); got != 1 {
		f.Errorf("it was told of %d times", got)
	}
	must(f.T, stale.Close())

	must(f.T, left.Rebuild())
	r.mustWrite(ctx, f.rich, 0)
	r.until(ctx, f.rich, 0, left)
	r.until(ctx, f.poor, 0, left)
	f.samplers(next, left)
}

// Nothing of a handle is left on the servers when it is closed.
func stepClosing(f *pgChanges) {
	must(f.T, f.poor.Close())
	must(f.T, f.rich.Close())
	for _, n := range []*replicatedtest.Node{f.nodes[0], f.nodes[2]} {
		f.sessions(n, replicatedtest.AppUser, 0)
		f.sessions(n, replicatedtest.AdminUser, 0)
		noConnections(f.T, n)
	}
}
