package replicated_test

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"
	"github.com/sqlreplicated/replicated/internal/faketime"
)

// What nodes and drivers answer, and what is made of it. See reports_faults_test.go.

// The application was told that replication had got in the way of its read. Before the
// first row the primary runs it, once; afterwards the error is the application's. A
// replica that works is not taken out for that.
func TestReportA27ConflictWithRecovery(t *testing.T) {
	for _, code := range []string{"40001", "40P01"} {
		conflict := pgError(code)
		for name, tt := range map[string]struct {
			reply     fakedb.Reply
			delivered int // rows; -1: all of the primary's one
		}{
			"statement":  {fakedb.Error(conflict), -1},
			"first row":  {fakedb.Reply{Columns: []string{"a"}, NextErr: conflict}, -1},
			"second row": {fakedb.Reply{Columns: []string{"a"}, Rows: fakedb.Row("x").Rows, NextErr: conflict}, 1},
		} {
			t.Run(code+"/"+name, func(t *testing.T) {
				faketime.Test(t, func(t *testing.T) {
					f := newFakes(t, 2, fakedb.PQLike)
					db := f.open(func(c *replicated.Config) { c.BreakerFailures = 1 })
					f.everywhere(plainSelect, tt.reply)
					f.everywhere(selectOne, tt.reply)
					stmt := prepare(t, db, selectOne)
					defer stmt.Close()
					for _, read := range []func() (*sql.Rows, error){
						func() (*sql.Rows, error) { return db.QueryContext(t.Context(), plainSelect) },
						func() (*sql.Rows, error) { return db.QueryContext(t.Context(), selectOne, 1) },
						func() (*sql.Rows, error) { return stmt.QueryContext(t.Context(), 1) },
					} {
						for _, s := range f.servers() {
							s.Forget()
						}
						n, err := count(read())
						asked := 0
						for _, r := range f.replicas {
							asked += sent(r, plainSelect) + sent(r, selectOne)
						}
						again := sent(f.primary, plainSelect) + sent(f.primary, selectOne)
						switch {
						case tt.delivered < 0 && (err != nil || n != 1 || again != 1):
							t.Errorf("%d rows, error %v, run %d times by the primary", n, err, again)
						case tt.delivered >= 0 && (!errors.Is(err, conflict) || n != tt.delivered || again != 0):
							t.Errorf("%d rows, error %v, run %d times by the primary, want the server's error after %d rows", n, err, again, tt.delivered)
						case asked != 1:
							t.Errorf("replicas were asked %d times", asked)
						}
					}
					if got := f.breakers(db); !slices.Equal(got, closedBreakers) {
						t.Errorf("the breakers are %v", got)
					}
					if n := f.primary.Stats().Connects; n > 2 {
						t.Errorf("the primary was connected to %d times", n)
					}
				})
			})
		}
	}
}

// count reads all rows.
func count(rows *sql.Rows, err error) (n int, _ error) {
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		n++
	}
	return n, rows.Err()
}

// Clients that went away opened the breaker of a sound node. Whatever drivers make of
// it, the end of the caller's context is no failure of a node.
func TestReportA33CancelledReadsAreNobodysFault(t *testing.T) {
	for name, answer := range map[string]func(context.Context) error{
		"the context's error": context.Cause,
		"57014":               func(context.Context) error { return pgError("57014") },
		"invalid connection":  func(context.Context) error { return mysql.ErrInvalidConn },
		"closed socket":       func(context.Context) error { return net.ErrClosed },
		"57P01":               func(context.Context) error { return pgError("57P01") },
	} {
		for _, op := range []string{"query", "connect", "row"} {
			for _, deadline := range []bool{false, true} {
				t.Run(name+"/"+op+map[bool]string{false: "/cancelled", true: "/deadline"}[deadline], func(t *testing.T) {
					faketime.Test(t, func(t *testing.T) { cancelSixty(t, op, deadline, answer) })
				})
			}
		}
	}
}

// cancelSixty has sixty callers go away in ten seconds, each while a replica is doing
// what op says.
func cancelSixty(t *testing.T, op string, deadline bool, answer func(context.Context) error) {
	f := newFakes(t, 2, fakedb.Full)
	db := f.open(func(c *replicated.Config) {
		c.BreakerFailures = 1
		if op == "connect" {
			c.ReplicaMaxIdle = 1 // the prober's, so that each read dials
		}
	})
	var gone context.Context // the caller's, whose end is waited for
	wait := func(ctx context.Context) error { <-gone.Done(); return answer(gone) }
	for _, r := range f.replicas {
		switch op {
		case "connect":
			r.OnConnect(wait)
		case "query":
			r.ReplyContaining(plainSelect, func(ctx context.Context, _ *fakedb.Call) (*fakedb.Reply, error) { return nil, wait(ctx) })
		default:
			r.ReplyContaining(plainSelect, func(ctx context.Context, _ *fakedb.Call) (*fakedb.Reply, error) {
				r := lines(2)
				<-gone.Done()
				r.NextErr = answer(gone)
				return &r, nil
			})
		}
	}
	for range 60 {
		var cancel context.CancelFunc
		if deadline {
			gone, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
		} else {
			gone, cancel = context.WithCancel(t.Context())
			time.AfterFunc(100*time.Millisecond, cancel)
		}
		began := time.Now()
		if _, err := count(db.QueryContext(gone, plainSelect)); err == nil {
			t.Error("a read whose caller has gone away has succeeded")
		}
		if took := time.Since(began); took > 150*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		cancel()
		time.Sleep(50 * time.Millisecond)
	}
	if got := f.breakers(db); !slices.Equal(got, closedBreakers) || len(f.states) > 0 {
		t.Errorf("the breakers are %v, after %v", got, f.states)
	}
	if n := sent(f.primary, plainSelect); n != 0 {
		t.Errorf("the primary was asked %d times for somebody who was no longer there", n)
	}
	for _, n := range stats(t, db).Nodes[1:] {
		if n.InFlight != 0 || n.TurnedAway {
			t.Errorf("%s: %+v", n.Name, n)
		}
	}
	for _, r := range f.replicas {
		r.OnConnect(nil)
		r.ReplyContaining(plainSelect, func(context.Context, *fakedb.Call) (*fakedb.Reply, error) { return nil, nil })
	}
	wantOn(t.Context(), t, db, "replica")
}

// A probe that is called off, since nobody uses the cluster any more, gives the
// breaker's one place back: the next user finds the node.
func TestReportA33ProbeThatIsCalledOff(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		for range 200 { // the time to the probe is random
			if calledOff(t) {
				return
			}
		}
		t.Error("no probe was under way when the background work ended")
	})
}

// calledOff reports whether a probe was under way when the background work ended.
func calledOff(t *testing.T) bool {
	f := newFakes(t, 1, fakedb.Full)
	connector := f.connector(func(c *replicated.Config) { c.BreakerFailures, c.BreakerOpen = 1, 10*time.Second })
	db := sql.OpenDB(connector)
	defer db.Close()
	db.SetMaxIdleConns(0)
	breaker := func() replicated.BreakerState { return connector.Cluster().Stats().Nodes[1].Breaker }
	wantOn(t.Context(), t, db, "replica")
	ended := time.Now().Add(replicated.IdleLife)

	time.Sleep(replicated.IdleLife - 11500*time.Millisecond)
	f.replicas[0].Down(errors.New("refused"))
	time.Sleep(2 * time.Second)
	if got := breaker(); got != replicated.BreakerOpen {
		t.Fatalf("the breaker is %v", got)
	}
	f.replicas[0].Heal()
	f.replicas[0].OnConnect(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	time.Sleep(time.Until(ended) - time.Millisecond)
	synctest.Wait()
	underWay := breaker() == replicated.BreakerHalfOpen
	time.Sleep(time.Minute)
	if !underWay {
		return false
	}
	f.replicas[0].OnConnect(nil)
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	time.Sleep(2 * time.Second)
	if got := breaker(); got != replicated.BreakerClosed {
		t.Errorf("two seconds after its next user came the breaker is %v", got)
	}
	wantOn(t.Context(), t, conn, "replica")
	return true
}
