package replicated_test

import (
	"context"
	"database/sql"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"
	"github.com/sqlreplicated/replicated/internal/faketime"
)

func TestNothingRunsBeforeTheFirstConnect(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 2, fakedb.Full)
		connector := f.connector()
		db := sql.OpenDB(connector)
		connector.Cluster().Stats()
		time.Sleep(time.Hour)
		synctest.Wait()
		for _, s := range f.servers() {
			if ops := s.Ops(); len(ops) > 0 {
				t.Errorf("%s got %v", s.Name(), ops)
			}
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Some wrappers swallow Close: what runs in the background ends by itself when
// nobody has been connected for a while, and starts again with the next.
func TestBackgroundWorkRestsAndStartsAgain(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.PQLike)
		connector := f.connector(f.asPostgres())
		t.Cleanup(func() { _ = connector.Close() })
		r := f.replicas[0]
		asked := func(during time.Duration) int {
			before := len(r.Ops())
			time.Sleep(during)
			synctest.Wait()
			return len(r.Ops()) - before
		}
		for range 3 {
			conn, err := connector.Connect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if n := asked(10 * time.Second); n < 9 {
				t.Errorf("while connected, a replica is probed %d times in 10 s", n)
			}
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
			if n := asked(replicated.IdleLife - time.Second); n < 9 {
				t.Errorf("it has stopped before its time: %d probes", n)
			}
			time.Sleep(2 * time.Second)
			if n := asked(time.Hour); n != 0 {
				t.Errorf("it goes on: %d calls in an hour", n)
			}
			if n := r.Stats().OpenConns; n != 0 {
				t.Errorf("%d connections are left", n)
			}
		}
	})
}

// A Conn that comes before the time is over keeps it going.
func TestBackgroundWorkGoesOnForTheNextConn(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		connector := f.connector()
		for range 5 {
			conn := f.conn(connector)
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(replicated.IdleLife - time.Second)
		}
		synctest.Wait()
		if n := f.replicas[0].Stats().Connects; n != 1 {
			t.Errorf("the prober has connected %d times", n)
		}
	})
}

// Close waits for what runs in the background.
func TestCloseAwaitsBackgroundWork(t *testing.T) {
	for name, resting := range map[string]bool{"at work": false, "while it comes to rest": true} {
		t.Run(name, func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) {
				f := newFakes(t, 1, fakedb.Full)
				proceed := make(chan struct{})
				f.replicas[0].OnConnect(func(context.Context) error { <-proceed; return nil }) // heeds no context
				connector := f.connector()
				conn, err := connector.Connect(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if err := conn.Close(); err != nil {
					t.Fatal(err)
				}
				if resting {
					time.Sleep(replicated.IdleLife + time.Millisecond)
				}
				closed := make(chan struct{})
				go func() {
					defer close(closed)
					_ = connector.Close()
				}()
				synctest.Wait()
				select {
				case <-closed:
					t.Error("Close has returned while a prober was at work")
				default:
				}
				close(proceed)
				<-closed
				if n := f.replicas[0].Stats().OpenConns; n != 0 {
					t.Errorf("%d connections are left", n)
				}
			})
		})
	}
}

func TestCloseWaitsForNoRows(t *testing.T) {
	eachShape(t, func(t *testing.T, shape fakedb.Shape) {
		f := newFakes(t, 1, shape)
		connector := f.connector()
		db := sql.OpenDB(connector)
		f.everywhere("SELECT n FROM many", lines(5))
		rows, err := db.QueryContext(t.Context(), "SELECT n FROM many")
		if err != nil || !rows.Next() {
			t.Fatal(err)
		}
		started := time.Now()
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(started); took != 0 {
			t.Errorf("Close took %v", took)
		}
		n := 1
		for rows.Next() {
			n++
		}
		if err := rows.Close(); err != nil || n != 5 {
			t.Errorf("%d rows, then %v", n, err)
		}
		if open := f.replicas[0].Stats().OpenConns; open != 0 {
			t.Errorf("the replica has %d connections after the rows' end", open)
		}
	})
}
