package replicatedtest_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

// Commits wait as long as no replica receives, whoever is the primary.
func TestSynchronousCommitWaitsForAReplica(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		replicatedtest.Require(t, e)
		options := replicatedtest.Options{Synchronous: true, Log: testLog{t}}
		if err := options.Available(e); err != nil {
			if e != replicatedtest.MySQL || !errors.Is(err, errors.ErrUnsupported) {
				t.Fatal(err)
			}
			if _, err := replicatedtest.StartContext(within(t, time.Minute), e, options); !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("started without what it takes: %v", err)
			}
			return
		}
		c := replicatedtest.Start(t, e, options)
		first, second, third := c.Nodes()[0], c.Nodes()[1], c.Nodes()[2]
		execSQL(t, first.DB(t), "CREATE TABLE t (id int PRIMARY KEY)")
		id := 0
		waits := func(n *replicatedtest.Node, release func() error) {
			t.Helper()
			id++
			done := make(chan error, 1)
			db := n.DB(t)
			go func() {
				_, err := db.Exec(fmt.Sprintf("INSERT INTO t VALUES (%d)", id))
				done <- err
			}()
			select {
			case err := <-done:
				t.Fatalf("%s has acknowledged a commit that no replica has (%v)", n, err)
			case <-time.After(200 * time.Millisecond):
			}
			must(t, release())
			select {
			case err := <-done:
				must(t, err)
			case <-time.After(20 * time.Second):
				t.Fatalf("%s does not acknowledge what a replica has", n)
			}
		}
		must(t, second.StopReceiving())
		execSQL(t, first.DB(t), "INSERT INTO t VALUES (1000)") // one is enough
		must(t, third.StopReceiving())
		waits(first, second.ResumeReceiving)
		must(t, second.WaitCaughtUp(within(t, 20*time.Second)))
		if got, err := c.MostAdvanced(within(t, 5*time.Second)); err != nil || got != second {
			t.Errorf("%v (%v) is the most advanced, want %s", got, err, second)
		}

		must(t, first.Kill())
		must(t, second.Promote())
		waits(second, func() error { return third.Follow(second) })
		must(t, first.Rejoin(second))
		execSQL(t, second.DB(t), "INSERT INTO t VALUES (1001)")

		must(t, c.Switchover(within(t, 30*time.Second), first))
		execSQL(t, first.DB(t), "INSERT INTO t VALUES (1002)")
		must(t, second.StopReceiving())
		must(t, third.StopReceiving())
		waits(first, third.ResumeReceiving)
		must(t, first.Stop())
		must(t, first.Start())
		must(t, third.StopReceiving())
		waits(first, third.ResumeReceiving)
		must(t, second.ResumeReceiving())
		caughtUp(t, c)
		for _, n := range c.Nodes() {
			if got := query(t, n.DB(t), "SELECT count(*) FROM t"); got != "7" {
				t.Errorf("%s has %s rows", n, got)
			}
		}
	})
}

// What waits when the server is stopped is not acknowledged.
func TestSynchronousCommitIsNotAcknowledgedByAStop(t *testing.T) {
	for _, e := range []replicatedtest.Engine{replicatedtest.Postgres, replicatedtest.MariaDB} {
		t.Run(e.String(), func(t *testing.T) {
			c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1, Synchronous: true, Log: testLog{t}})
			n := c.Primary()
			execSQL(t, n.DB(t), "CREATE TABLE t (id int PRIMARY KEY)")
			must(t, c.Replicas()[0].StopReceiving())
			done := make(chan error, 1)
			conn := openConn(t, n.DB(t))
			go func() {
				_, err := conn.ExecContext(within(t, time.Minute), "INSERT INTO t VALUES (1)")
				done <- err
			}()
			select {
			case err := <-done:
				t.Fatalf("acknowledged: %v", err)
			case <-time.After(100 * time.Millisecond):
			}
			must(t, n.Stop())
			if err := <-done; err == nil {
				t.Error("acknowledged by the stop")
			}
		})
	}
}

func TestSynchronousNeedsAReplica(t *testing.T) {
	replicatedtest.Require(t, replicatedtest.Postgres)
	if err := (replicatedtest.Options{Replicas: -1, Synchronous: true}).Available(replicatedtest.Postgres); err == nil {
		t.Error("available, and no commit would end")
	}
}
