package replicated_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"
	"github.com/sqlreplicated/replicated/internal/faketime"
)

// catalogFake scripts a primary with one user function, f.
type catalogFake struct {
	*fakes
	readings atomic.Int64
	changes  atomic.Int64                                    // readings that found the catalog changed
	harmless atomic.Bool                                     // what the catalog says of f
	answer   atomic.Pointer[func(ctx context.Context) error] // what else happens when it is read
}

func newCatalogFake(t *testing.T, shape fakedb.Shape) *catalogFake {
	f := &catalogFake{fakes: newFakes(t, 2, shape)}
	f.harmless.Store(true)
	f.primary.ReplyContaining("pg_proc", func(ctx context.Context, call *fakedb.Call) (*fakedb.Reply, error) {
		switch {
		case strings.Contains(call.Text, "hashtext"):
			f.readings.Add(1)
			r := fakedb.Row(fmt.Sprint(f.harmless.Load()))
			if answer := f.answer.Load(); answer != nil {
				if err := (*answer)(ctx); err != nil {
					return nil, err
				}
			}
			return &r, nil
		case strings.Contains(call.Text, "bool_or(p.prokind"):
			f.changes.Add(1)
			r := fakedb.Row("app", "f", fmt.Sprint(f.harmless.Load()), "false", "false")
			return &r, nil
		case strings.Contains(call.Text, "prosrc ~*"): // whether anything turns synchronous_commit off
			r := fakedb.Row("false")
			return &r, nil
		case strings.Contains(call.Text, "pg_operator"):
			return &fakedb.Reply{Columns: make([]string, 4)}, nil
		default:
			return &fakedb.Reply{Columns: make([]string, 5)}, nil
		}
	})
	f.primary.ReplyContaining("c.relkind = 'f'", func(context.Context, *fakedb.Call) (*fakedb.Reply, error) {
		return &fakedb.Reply{Columns: make([]string, 2)}, nil
	})
	return f
}

func (f *catalogFake) onReading(answer func(ctx context.Context) error) { f.answer.Store(&answer) }

func (f *catalogFake) openPostgres(changes ...func(*replicated.Config)) *sql.DB {
	return f.open(append(changes, f.asPostgres(), func(c *replicated.Config) {
		c.Consistency, c.Sticky = replicated.ConsistencyEventual, -1
	})...)
}

const userFunction = "SELECT f(1)"

// wantUser runs a statement with the user function and fails the test unless it was
// served by the role.
func wantUser(t *testing.T, q querier, role string) {
	t.Helper()
	var node string
	if err := q.QueryRowContext(t.Context(), userFunction).Scan(&node); err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimRight(node, "0123456789"); got != role {
		t.Errorf("%s was served by %s, want %s", userFunction, node, role)
	}
}

func TestCatalogIsReadAndRefreshed(t *testing.T) {
	eachShape(t, func(t *testing.T, shape fakedb.Shape) {
		f := newCatalogFake(t, shape)
		db := f.openPostgres()
		wantUser(t, db, "replica")
		f.harmless.Store(false)
		time.Sleep(replicated.CatalogEvery + time.Second)
		synctest.Wait()
		wantUser(t, db, "primary")
		if n := f.readings.Load(); n != 2 {
			t.Errorf("the catalog was read %d times in %v", n, replicated.CatalogEvery)
		}
		time.Sleep(2 * replicated.CatalogEvery)
		wantUser(t, db, "primary")
		if n, changes := f.readings.Load(), f.changes.Load(); n != 4 || changes != 2 {
			t.Errorf("of %d readings %d looked at more than the version", n, changes)
		}
		if open := f.primary.Stats().OpenConns; open > 1 {
			t.Errorf("%d connections to the primary are open", open)
		}
	})
}

func TestCatalogNotKnownYet(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newCatalogFake(t, fakedb.Shapes()[0])
		release := make(chan struct{})
		f.onReading(func(context.Context) error { <-release; return nil })
		db := f.openPostgres()
		wantUser(t, db, "primary")
		close(release)
		synctest.Wait()
		wantUser(t, db, "replica")
	})
}

// A catalog that cannot be read leaves the functions on the primary, and is told of
// once; when it can, all is well.
func TestCatalogFails(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newCatalogFake(t, fakedb.Shapes()[0])
		f.onReading(func(context.Context) error { return errors.New("permission denied for table pg_proc") })
		db := f.openPostgres()
		time.Sleep(3 * replicated.CatalogEvery)
		wantUser(t, db, "primary")
		if n := f.readings.Load(); n > 20 {
			t.Errorf("a catalog that cannot be read was asked for %d times", n)
		}
		told := 0
		f.mu.Lock()
		for _, n := range f.notices {
			if n.Kind == replicated.NoticeCatalogUnread {
				told++
			}
		}
		f.mu.Unlock()
		if told != 1 {
			t.Errorf("told %d times", told)
		}
		f.onReading(func(context.Context) error { return nil })
		time.Sleep(replicated.CatalogEvery + time.Second)
		wantUser(t, db, "replica")

		// What was known counts for a while, and not for ever.
		f.onReading(func(context.Context) error { return driver.ErrBadConn })
		time.Sleep(2 * replicated.CatalogEvery)
		wantUser(t, db, "replica")
		time.Sleep(10 * time.Minute)
		wantUser(t, db, "primary")
	})
}

func TestCatalogHangs(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newCatalogFake(t, fakedb.Shapes()[0])
		f.onReading(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		db := f.openPostgres()
		wantUser(t, db, "primary")
		f.onReading(func(context.Context) error { return nil })
		time.Sleep(replicated.CatalogTimeout + time.Second)
		synctest.Wait()
		wantUser(t, db, "replica")

		// Close does not wait for a reading that hangs.
		f.onReading(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		time.Sleep(replicated.CatalogEvery + time.Second)
		began := time.Now()
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("Close took %v", took)
		}
	})
}

// DDL makes everything unknown until the catalog has been read again, and a reading
// that was under way does not count.
func TestCatalogAfterDDL(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newCatalogFake(t, fakedb.Shapes()[0])
		db := f.openPostgres()
		entered, release := make(chan struct{}), make(chan struct{})
		f.onReading(func(context.Context) error { entered <- struct{}{}; <-release; return nil })
		run(t.Context(), t, db, "ALTER FUNCTION f(int) STABLE")
		wantUser(t, db, "primary")
		<-entered
		run(t.Context(), t, db, "ALTER FUNCTION f(int) VOLATILE")
		release <- struct{}{}
		synctest.Wait()
		wantUser(t, db, "primary")
		f.harmless.Store(false)
		<-entered
		release <- struct{}{}
		synctest.Wait()
		wantUser(t, db, "primary")
		f.onReading(func(context.Context) error { return nil })
		f.harmless.Store(true)
		time.Sleep(replicated.CatalogEvery + time.Second)
		wantUser(t, db, "replica")
	})
}

// A migration of many statements has the catalog read now and then, not each time.
func TestCatalogIsNotReadTooOften(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newCatalogFake(t, fakedb.Shapes()[0])
		db := f.openPostgres()
		for range 1000 {
			run(t.Context(), t, db, "CREATE FUNCTION g() RETURNS int LANGUAGE sql AS 'SELECT 1'")
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		if n := f.readings.Load(); n > 10 {
			t.Errorf("the catalog was read %d times in two seconds", n)
		}
		wantUser(t, db, "replica")
	})
}

// Nobody reads a catalog that makes no difference.
func TestCatalogIsNotReadInVain(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newCatalogFake(t, fakedb.Shapes()[0])
		db := f.openPostgres(func(c *replicated.Config) { c.Reads = replicated.ReadsOff })
		wantUser(t, db, "primary")
		if n := f.readings.Load(); n != 0 {
			t.Errorf("the catalog was read %d times", n)
		}
	})
}

func TestFunctionsKeys(t *testing.T) {
	const dsn = "app@tcp(db1:3306,db2:3306)/shop?replicated.read_functions=price%2C+shop.total&replicated.write_functions=book"
	cfg, err := replicated.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(cfg.ReadFunctions, cfg.WriteFunctions); got != "[price shop.total] [book]" {
		t.Errorf("read %s", got)
	}
	text, err := replicated.FormatDSN(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := replicated.ParseDSN(text); err != nil || fmt.Sprint(again.ReadFunctions, again.WriteFunctions) != "[price shop.total] [book]" {
		t.Errorf("%s: %v, %v", text, again, err)
	}
	if _, err := replicated.ParseDSN("app@tcp(db1)/?replicated.read_functions=a(b)"); err == nil {
		t.Error("a bad name is accepted")
	}
	if _, err := replicated.NewConnector(replicated.Config{Nodes: cfg.Nodes, WriteFunctions: []string{""}}); err == nil {
		t.Error("an empty name is accepted")
	}
}
