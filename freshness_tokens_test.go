package replicated_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

func notFresh(err error) bool { return errors.Is(err, replicated.ErrNotFresh) }

// What one process has written another one sees with its token, or with WithFresh, on
// whatever node; without, it need not. Neither has replicas serve what they lack.
func TestTokenBetweenProcesses(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		r := newReadback(t, c)
		writer, cluster, _ := apart(t, c, lagless, locating)
		reader, readers, _ := apart(t, c, lagless, locating)
		ctx, _ := replicated.WithSession(t.Context())
		if token, err := cluster.Token(ctx); err != nil || token != "" {
			t.Errorf("the token of a session that wrote nothing is %q, %v", token, err)
		}
		r.until(t.Context(), reader, 0, c.Replicas()...)
		resume := pauseReplicas(t, c)
		r.mustWrite(ctx, writer, 0)
		token, err := cluster.Token(ctx)
		must(t, err)
		if limit := map[bool]int{true: 200, false: 4 << 10}[c.Engine() != replicatedtest.MySQL]; token == "" || len(token) > limit {
			t.Errorf("a token of %d bytes", len(token))
		}
		if got := queryInt(t, reader, "SELECT v FROM "+r.table+" WHERE id = 0"); got != 0 {
			t.Errorf("without the token: %d, where replicas have 0", got)
		}
		with, err := replicated.WithToken(t.Context(), token)
		must(t, err)
		r.only(with, reader, 0, c.Primary())
		r.only(replicated.WithFresh(t.Context()), reader, 0, c.Primary())

		// Passed on, together with what the reader has written.
		own, _ := replicated.WithSession(with)
		r.mustWrite(own, reader, 1)
		both, err := readers.Token(own)
		must(t, err)
		again, err := replicated.WithToken(t.Context(), both)
		must(t, err)
		third, _, _ := apart(t, c, lagless, locating)
		r.only(again, third, 0, c.Primary())
		r.only(again, third, 1, c.Primary())
		resume()
		for _, db := range []writing{reader, third} {
			r.until(again, db, 0, c.Replicas()...)
			r.until(again, db, 1, c.Replicas()...)
			r.until(with, db, 0, c.Replicas()...)
		}
		// With nothing in the way: what one has written, the next sees at once.
		for range 50 {
			ctx, _ := replicated.WithSession(t.Context())
			r.mustWrite(ctx, writer, 2)
			token, err := cluster.Token(ctx)
			must(t, err)
			with, err := replicated.WithToken(t.Context(), token)
			must(t, err)
			r.reads(with, reader, 2, 3)
			r.reads(replicated.WithFresh(t.Context()), third, 2, 3)
		}
	})
}

// A token costs one question to the primary, and none where one has been asked since the
// write.
func TestTokenRoundTrips(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		r := newReadback(t, c)
		db, cluster, _ := apart(t, c, "replicated.reads=off") // nobody else needs samples of it
		asked := map[replicatedtest.Engine]string{
			replicatedtest.Postgres: "pg_current_wal_flush_lsn", replicatedtest.MariaDB: "gtid_binlog_pos", replicatedtest.MySQL: "SHOW MASTER STATUS",
		}[c.Engine()]
		samples := func(since replicatedtest.Mark) (n int) {
			for _, s := range c.Primary().StatementsSince(since) {
				if s.Kind != replicatedtest.Prepare && strings.Contains(s.Text, asked) {
					n++
				}
			}
			return n
		}
		conn, err := db.Conn(t.Context())
		must(t, err)
		defer conn.Close()
		r.mustWrite(t.Context(), conn, 0)
		_, err = cluster.Token(t.Context()) // has the sampler connect
		must(t, err)
		for range 5 {
			mark := c.Primary().Mark()
			r.mustWrite(t.Context(), conn, 0)
			first, err := cluster.Token(t.Context())
			must(t, err)
			if got := samples(mark); got != 1 {
				t.Errorf("a token has cost %d questions, want 1", got)
			}
			second, err := cluster.Token(t.Context())
			must(t, err)
			if got := samples(mark); got != 1 || second != first {
				t.Errorf("the same token again has cost %d questions, want none", got-1)
			}
		}
	})
}

// With WithMonotonicReads a session's reads do not go back, however unequal the replicas
// are; without, they do.
func TestMonotonicReadsOnUnequalReplicas(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		name := table(t, c, "id int PRIMARY KEY, v bigint NOT NULL")
		primary := bare(t, c.Primary())
		mustExec(t, primary, fmt.Sprintf("INSERT INTO %s VALUES (1, 0)", name))
		caughtUp(t, c)
		db := open(t, c, lagless, "replicated.consistency=eventual", "replicated.balance=round-robin")
		pauseReplica(t, c.Replicas()[0], func() {
			for v := 1; v <= 5; v++ {
				mustExec(t, primary, fmt.Sprintf("UPDATE %s SET v = %d WHERE id = 1", name, v))
				must(t, c.Replicas()[1].WaitCaughtUp(t.Context()))
				back := func(ctx context.Context) (times int) {
					last := 0
					for range 20 {
						var got int
						must(t, db.QueryRowContext(ctx, "SELECT v FROM "+name+" WHERE id = 1").Scan(&got))
						if got < last {
							times++
						}
						last = max(last, got)
					}
					return times
				}
				if got := back(replicated.WithMonotonicReads(t.Context())); got != 0 {
					t.Errorf("monotonic reads went back %d times", got)
				}
				if got := back(t.Context()); got == 0 {
					t.Error("reads never went back: nothing was tested")
				}
			}
		})
	})
}

// With replicated.wait a read waits for a replica to have what it needs, and runs there.
func TestWaitForAReplica(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		r := newReadback(t, c)
		db := open(t, c, lagless, locating, "replicated.wait=1m")
		resume := pauseReplicas(t, c)
		ctx, _ := replicated.WithSession(t.Context())
		r.mustWrite(ctx, db, 0)
		served := make(chan string, 3)
		for range cap(served) {
			go func() {
				node, err := r.read(ctx, db, 0)
				if err != nil {
					t.Error(err)
				}
				served <- node
			}()
		}
		// One that may not wait as long as that goes to the primary, or fails by its own
		// context; the others wait on.
		short, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := r.read(short, db, 0); !errors.Is(err, context.Canceled) {
			t.Errorf("a read that was cancelled: %v", err)
		}
		select {
		case node := <-served:
			t.Errorf("%s has served a read though no replica has what it needs", node)
		default:
		}
		resume()
		for range cap(served) {
			if node := <-served; !slices.ContainsFunc(c.Replicas(), func(n *replicatedtest.Node) bool { return n.Name() == node }) {
				t.Errorf("a read was served by %s, want a replica", node)
			}
		}
	})
}

// Bounds on lag: WithMaxLag tightens the cluster's, WithStaleReads sets one of its own and
// waives what the session has written.
func TestBoundsOnLag(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		r := newReadback(t, c)
		db := open(t, c, lagless, locating)
		early, _ := replicated.WithSession(t.Context())
		r.mustWrite(early, db, 0)
		r.until(early, db, 0, c.Replicas()...)
		pauseReplicas(t, c)
		late, _ := replicated.WithSession(t.Context())
		r.mustWrite(late, db, 1)
		if got := r.reads(early, db, 0, 20); slices.Contains(got, c.Primary().Name()) {
			t.Errorf("reads within the cluster's bound were served by %v", got)
		}
		tight := replicated.WithMaxLag(early, 100*time.Millisecond)
		eventually(t, 20*time.Second, func() string {
			if node, err := r.read(tight, db, 0); err != nil || node != c.Primary().Name() {
				return fmt.Sprintf("a read within 100 ms of lag was served by %s, %v", node, err)
			}
			return ""
		})
		r.only(tight, db, 0, c.Primary())
		r.only(replicated.WithStaleReads(late, 100*time.Millisecond), db, 1, c.Primary())
		r.only(replicated.WithMaxLag(late, time.Hour), db, 1, c.Primary()) // loosens nothing
		var got int
		must(t, db.QueryRowContext(replicated.WithStaleReads(late, time.Hour), "SELECT v FROM "+r.table+" WHERE id = 1").Scan(&got))
		if got != 0 {
			t.Errorf("a read that waives what was written shows %d, where replicas have 0", got)
		}
	})
}
