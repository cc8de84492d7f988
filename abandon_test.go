package replicated_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"
	"github.com/sqlreplicated/replicated/internal/faketime"
)

const slowInsert = "INSERT INTO t (a) VALUES (1)"

// asMySQL has the servers taken for MySQL, and answer like it. An INSERT never
// ends; kill answers KILL.
func (f *fakes) asMySQL(kill fakedb.Handler) func(*replicated.Config) {
	for _, s := range f.servers() {
		common := []driver.Value{"8.4.2", "fake", s.Name(), "3306", "7", "1", "NO_CHAIN", "5", fmt.Sprint(s.Name() != "primary")}
		s.ReplyContaining("CONNECTION_ID()", func(_ context.Context, call *fakedb.Call) (*fakedb.Reply, error) {
			row := common
			if strings.Contains(call.Text, "@@server_uuid") {
				row = append(row[:len(row):len(row)], "0", "1", s.Name()+"-uuid", "ON", "", "/usr/")
			}
			r := fakedb.Row(row...)
			return &r, nil
		})
		s.ReplyContaining("Uptime", func(context.Context, *fakedb.Call) (*fakedb.Reply, error) {
			r := fakedb.Row("Uptime", "1000000")
			return &r, nil
		})
		s.ReplyContaining("KILL", kill)
		s.ReplyContaining("INSERT", func(ctx context.Context, _ *fakedb.Call) (*fakedb.Reply, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
	}
	return func(c *replicated.Config) { c.Driver = "mysql" }
}

// abandonedBy returns what was told of abandoned writes, and forgets it.
func (f *fakes) abandonedBy() (told []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.notices {
		if n.Kind == replicated.NoticeWriteAbandoned {
			told = append(told, n.Node+": "+n.Err.Error())
		}
	}
	f.notices = nil
	return told
}

// abandonInsert runs a write until its context ends.
func abandonInsert(t *testing.T, db execer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Second)
	defer cancel()
	if _, err := db.ExecContext(ctx, slowInsert); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the write ended in %v", err)
	}
}

// answering returns a handler of KILL that says errs, one after the other.
func answering(errs ...error) fakedb.Handler {
	var mu sync.Mutex
	return func(context.Context, *fakedb.Call) (*fakedb.Reply, error) {
		mu.Lock()
		defer mu.Unlock()
		err := errs[0]
		if len(errs) > 1 {
			errs = errs[1:]
		}
		return &fakedb.Reply{Err: err}, nil
	}
}

var errGone = &mysql.MySQLError{Number: 1094, Message: "Unknown thread id"}

func TestWhatIsToldOfAnAbandonedWrite(t *testing.T) {
	tests := []struct {
		name string
		kill fakedb.Handler
		want string
	}{
		{name: "stopped", kill: answering(nil, nil, errGone), want: "primary: the server has ended the connection"},
		{name: "ended before", kill: answering(errGone), want: "primary: the write had ended before"},
		{name: "refused", kill: answering(mysqlError(1095)), want: "primary: the server could not be made to end the write"},
		{name: "goes on", kill: answering(nil), want: "primary: the server could not be made to end the write"},
		{name: "no answer", kill: func(ctx context.Context, _ *fakedb.Call) (*fakedb.Reply, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, want: "primary: the server could not be made to end the write"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) {
				f := newFakes(t, 1, fakedb.MySQLLike)
				db := f.open(f.asMySQL(tt.kill))
				abandonInsert(t, db)
				began := time.Now()
				if err := db.Close(); err != nil { // waits for it
					t.Error(err)
				}
				if took := time.Since(began); took > 3*time.Second {
					t.Errorf("closing took %v", took)
				}
				if told := f.abandonedBy(); len(told) != 1 || !strings.HasPrefix(told[0], tt.want) {
					t.Errorf("told %q, want %q", told, tt.want)
				}
			})
		})
	}
}

// A server that cannot be reached, or whose node may not be dialled in time.
func TestAbandonedWriteOfAServerThatIsGone(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 0, fakedb.MySQLLike)
		db := f.open(f.asMySQL(answering(errGone)))
		abandonInsert(t, db)
		synctest.Wait()
		f.abandonedBy()
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.PingContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.primary.OnConnect(func(context.Context) error { return errors.New("refused") })
		abandonInsert(t, conn)
		synctest.Wait()
		if told := f.abandonedBy(); len(told) != 1 || !strings.Contains(told[0], "at any later time: refused") {
			t.Errorf("told %q", told)
		}
	})
}

// The contexts of many writes end at once. The node has others to serve.
func TestAbandonedWritesAreEndedAFewAtATime(t *testing.T) {
	const writes = 40
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 0, fakedb.MySQLLike)
		var mu sync.Mutex
		busy, most := 0, 0
		db := f.open(f.asMySQL(func(context.Context, *fakedb.Call) (*fakedb.Reply, error) {
			count := func(n int) {
				mu.Lock()
				defer mu.Unlock()
				busy += n
				most = max(most, busy)
			}
			count(1)
			time.Sleep(10 * time.Millisecond) // of the bubble: it orders nothing
			count(-1)
			return &fakedb.Reply{Err: errGone}, nil
		}))
		before := f.primary.Stats().Connects
		var wg sync.WaitGroup
		for range writes {
			wg.Go(func() { abandonInsert(t, db) })
		}
		wg.Wait()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		if told := f.abandonedBy(); len(told) != writes {
			t.Errorf("%d writes were told of, want %d", len(told), writes)
		}
		if most != replicated.MaxKillers {
			t.Errorf("%d were ended at a time, want %d", most, replicated.MaxKillers)
		}
		if dials := f.primary.Stats().Connects - before; dials > writes+replicated.MaxKillers {
			t.Errorf("%d connections were opened", dials)
		}
	})
}

// Nothing is ended that has not been sent, has been answered, writes nothing, or
// cancels itself; nor after Close.
func TestWhatIsNotAbandoned(t *testing.T) {
	killed := func(context.Context, *fakedb.Call) (*fakedb.Reply, error) {
		return nil, errors.New("KILL was sent")
	}
	tests := []struct {
		name     string
		survives bool // the connection, the end of a context
		run      func(t *testing.T, f *fakes, db *sql.DB)
	}{
		{name: "answered", run: func(t *testing.T, f *fakes, db *sql.DB) {
			ctx, cancel := context.WithCancel(t.Context())
			f.primary.OnExec(func(context.Context, *fakedb.Call) (*fakedb.Reply, error) {
				cancel()
				return &fakedb.Reply{Err: mysqlError(1062)}, nil
			})
			if _, err := db.ExecContext(ctx, "DELETE FROM t"); err == nil {
				t.Error("the write was answered with no error")
			}
		}},
		{name: "ended before it was sent", run: func(t *testing.T, _ *fakes, db *sql.DB) {
			conn, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := conn.ExecContext(ctx, slowInsert); err == nil {
				t.Error("no error")
			}
		}},
		{name: "a read", run: func(t *testing.T, f *fakes, db *sql.DB) {
			f.primary.ReplyContaining("SELECT b", func(ctx context.Context, _ *fakedb.Call) (*fakedb.Reply, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			})
			ctx, cancel := context.WithTimeout(replicated.WithPrimary(t.Context()), time.Second)
			defer cancel()
			if _, err := db.QueryContext(ctx, "SELECT b FROM t"); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}},
		{name: "the connection lives on", survives: true, run: func(t *testing.T, _ *fakes, db *sql.DB) { abandonInsert(t, db) }},
		{name: "the handle is closed", run: func(t *testing.T, _ *fakes, db *sql.DB) {
			conn, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				abandonInsert(t, conn)
				_ = conn.Close()
			}()
			synctest.Wait()
			if err := db.Close(); err != nil {
				t.Error(err)
			}
			<-ended
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) {
				shape := fakedb.MySQLLike
				if tt.survives {
					shape = fakedb.Full
				}
				f := newFakes(t, 0, shape)
				db := f.open(f.asMySQL(killed))
				tt.run(t, f, db)
				synctest.Wait()
				if told := f.abandonedBy(); len(told) > 0 {
					t.Errorf("told %q", told)
				}
			})
		})
	}
	t.Run("PostgreSQL", func(t *testing.T) {
		faketime.Test(t, func(t *testing.T) {
			f := newFakes(t, 0, fakedb.MySQLLike)
			f.asMySQL(killed)
			db := f.open(f.asPostgres())
			abandonInsert(t, db)
			synctest.Wait()
			if told := f.abandonedBy(); len(told) > 0 {
				t.Errorf("told %q", told)
			}
		})
	})
}
