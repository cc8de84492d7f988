package replicated_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"
	"github.com/sqlreplicated/replicated/internal/faketime"
)

// voters is a cluster of scripted MySQL servers whose roles are followed: a primary and
// two replicas of it, listed with the primary last.
type voters struct {
	*fakes

	mu      sync.Mutex // guards what follows
	servers [3]voter
	mute    bool // the user may not ask whom a server replicates from
}

type voter struct {
	readOnly bool
	follows  int // the server that it receives from; -1: it follows none
	writes   int // it has executed
}

func newVoters(t *testing.T) *voters {
	f := &voters{fakes: newFakes(t, 2, fakedb.Full)}
	f.servers = [3]voter{{follows: -1}, {readOnly: true}, {readOnly: true}}
	for i, s := range f.fakes.servers() {
		v := &f.servers[i]
		s.ReplyContaining("@@version_comment", func(context.Context, *fakedb.Call) (*fakedb.Reply, error) {
			r := fakedb.Row("8.4.2", "fake")
			return &r, nil
		})
		s.ReplyContaining("CONNECTION_ID()", func(_ context.Context, call *fakedb.Call) (*fakedb.Reply, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			row := []driver.Value{"8.4.2", "fake", s.Name(), "3306", fmt.Sprint(i + 1), "1", "NO_CHAIN", "5", fmt.Sprint(v.readOnly)}
			if strings.Contains(call.Text, "@@server_uuid") {
				row = append(row, "0", "1", s.Name()+"-uuid", "ON", "", "/usr/")
			}
			r := fakedb.Row(row...)
			return &r, nil
		})
		s.ReplyContaining("SHOW REPLICA STATUS", func(context.Context, *fakedb.Call) (*fakedb.Reply, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.mute {
				return nil, mysqlError(1227)
			}
			r := fakedb.Reply{Columns: []string{"Source_UUID", "Source_Server_Id", "Replica_IO_Running", "Replica_SQL_Running"}}
			if v.follows >= 0 {
				r.Rows = [][]driver.Value{{f.fakes.servers()[v.follows].Name() + "-uuid", fmt.Sprint(v.follows + 1), "Yes", "Yes"}}
			}
			return &r, nil
		})
		write := func(context.Context, *fakedb.Call) (*fakedb.Reply, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if v.readOnly {
				return nil, mysqlError(1290)
			}
			v.writes++
			return &fakedb.Reply{Affected: 1}, nil
		}
		s.ReplyContaining("INSERT INTO", write)
		s.ReplyContaining("CALL ", write)
	}
	return f
}

func (f *voters) set(change func(s []voter)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f.servers[:])
}

func (f *voters) handle(changes ...func(*replicated.Config)) *sql.DB {
	f.t.Helper()
	db := sql.OpenDB(f.connector(slices.Concat([]func(*replicated.Config){func(c *replicated.Config) {
		c.Driver, c.Topology = "mysql", replicated.TopologyDiscover
		slices.Reverse(c.Nodes)
	}}, changes)...))
	f.t.Cleanup(func() { _ = db.Close() })
	return db
}

func (f *voters) wantWrites(want ...int) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	var got []int
	for i := range f.servers {
		got = append(got, f.servers[i].writes)
	}
	if !slices.Equal(got, want) {
		f.t.Errorf("the servers have executed %v writes, want %v", got, want)
	}
}

// slowly has a server take its time for each new connection.
func slowly(s *fakedb.Server) {
	s.OnConnect(func(context.Context) error { time.Sleep(50 * time.Millisecond); return nil })
}

// The server wins that others follow, in whatever order they answer to a process that
// has only just begun.
func TestVotesAreCountedBeforeTheFirstElection(t *testing.T) {
	for last := range 3 {
		faketime.Test(t, func(t *testing.T) {
			f := newVoters(t)
			f.set(func(s []voter) { s[1], s[2].follows = voter{follows: -1}, 1 }) // and nobody has told the first
			for i, s := range f.fakes.servers() {
				if i != last && i != 0 {
					slowly(s)
				}
			}
			h := f.fakes.servers()[last].Hold(fakedb.OpQuery)
			time.AfterFunc(200*time.Millisecond, h.Release)
			db := f.handle()
			run(t.Context(), t, db, "INSERT INTO t VALUES (1)")
			f.wantWrites(0, 1, 0)
		})
	}
}

// A switchover: nothing fails, nothing runs twice. What has been refused after it had an
// effect, perhaps, fails.
func TestSwitchoverOfMySQL(t *testing.T) {
	for text, runs := range map[string]int{"INSERT INTO t VALUES (1)": 1, "CALL p()": 0} {
		faketime.Test(t, func(t *testing.T) {
			f := newVoters(t)
			db := f.handle()
			ctx := t.Context()
			run(ctx, t, db, "INSERT INTO t VALUES (1)")
			pass(time.Second)
			f.set(func(s []voter) { s[0].readOnly = true })
			time.AfterFunc(200*time.Millisecond, func() {
				f.set(func(s []voter) { s[1].readOnly, s[1].follows, s[0].follows, s[2].follows = false, -1, 1, 1 })
			})
			if _, err := db.ExecContext(ctx, text); (err == nil) != (runs > 0) {
				t.Errorf("%s: %v", text, err)
			}
			f.wantWrites(1, runs, 0)
			pass(time.Second)
			run(ctx, t, db, "INSERT INTO t VALUES (1)")
			f.wantWrites(1, runs+1, 0)
		})
	}
}

// Where the user may not ask whom servers replicate from, two that take writes are not
// told apart, and the notice tells what would help.
func TestVotesThatMayNotBeSeen(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newVoters(t)
		f.mute = true
		db := f.handle()
		ctx := t.Context()
		run(ctx, t, db, "INSERT INTO t VALUES (1)") // all others are read-only
		f.set(func(s []voter) { s[1].readOnly = false })
		pass(2 * time.Second)
		_, err := db.ExecContext(ctx, "INSERT INTO t VALUES (1)")
		if !errors.Is(err, replicated.ErrNoPrimary) {
			t.Errorf("error %v", err)
		}
		f.wantWrites(1, 0, 0)

		other := f.handle() // which knows nothing of the past
		if _, err := other.ExecContext(ctx, "INSERT INTO t VALUES (1)"); !errors.Is(err, replicated.ErrNoPrimary) || !strings.Contains(fmt.Sprint(err), "GRANT REPLICATION CLIENT") {
			t.Errorf("error %v", err)
		}
		f.wantWrites(1, 0, 0)
	})
}

// A server that does not understand the question whom it replicates from is one that does
// not tell.
func TestServersWithoutReplicaStatus(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newVoters(t)
		for _, s := range f.fakes.servers() {
			s.ReplyContaining("SHOW REPLICA STATUS", func(context.Context, *fakedb.Call) (*fakedb.Reply, error) {
				return nil, mysqlError(1064)
			})
		}
		db := f.handle()
		run(t.Context(), t, db, "INSERT INTO t VALUES (1)")
		f.wantWrites(1, 0, 0)
	})
}
