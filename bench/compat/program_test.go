package compat_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

// item is the row that the program works on. Times are whole seconds, which is
// what the oldest server and every library's column type can hold.
type item struct {
	ID      int64
	Name    string
	Qty     int
	Note    *string
	Created time.Time
}

func (i item) String() string {
	note := "NULL"
	if i.Note != nil {
		note = *i.Note
	}
	return fmt.Sprintf("%d %s %d %s %s", i.ID, i.Name, i.Qty, note, i.Created.UTC().Format(time.DateTime))
}

// store is the program's work, done the way that one library's documentation
// shows. Every method leaves the context as it gets it.
type store interface {
	// CreateTable makes the table items.
	CreateTable(ctx context.Context) error
	Insert(ctx context.Context, items []item) error
	Get(ctx context.Context, id int64) (item, error)
	SetQty(ctx context.Context, id int64, qty int) error
	// Transfer moves an amount from one row to another, in one transaction that
	// reads both rows before it writes them. It returns the first row as it reads
	// after its write and before the commit.
	Transfer(ctx context.Context, from, to int64, amount int) (item, error)
	// Lock reads with FOR UPDATE outside any transaction.
	Lock(ctx context.Context, id int64) (item, error)
	// Upsert inserts a row or, if its id is there, replaces the others of its columns.
	Upsert(ctx context.Context, i item) error
	Delete(ctx context.Context, id int64) error
	// List returns all rows by id.
	List(ctx context.Context) ([]item, error)
}

// libraries is who runs the program.
var libraries = []struct {
	name string
	only replicatedtest.Engine // zero: on all of them
	open func(*testing.T, *replicatedtest.Cluster) store
}{
	{name: "gorm", open: openGORM},
	{name: "gorm by prefixed name, prepared", open: openGORMPrepared},
	{name: "ent", open: openEnt},
	{name: "ent by prefixed name", open: openEntByName},
	{name: "sqlx", open: openSQLX},
	{name: "sqlx by prefixed name", open: openSQLXByName},
	{name: "sqlx over otelsql", open: openSQLXOverOTel},
	{name: "sqlx over pgx", only: replicatedtest.Postgres, open: openSQLXOverPGX},
	{name: "bun", open: openBun},
}

func TestProgramRunsOnThePrimaryAndItsReadsOnReplicas(t *testing.T) {
	for _, e := range replicatedtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			replicatedtest.Require(t, e)
			for _, l := range libraries {
				if l.only != 0 && l.only != e {
					continue
				}
				t.Run(l.name, func(t *testing.T) {
					c := sharedCluster(t, e)
					runProgram(t, c, l.open(t, c))
				})
			}
		})
	}
}

// runProgram runs the ten steps. Each is checked for its result, and by the
// servers' own word for where it ran.
func runProgram(t *testing.T, c *replicatedtest.Cluster, s store) {
	created := time.Date(2024, 2, 29, 12, 34, 56, 0, time.UTC)
	note := "it's 100% \\ \"quoted\" — ünïcode"
	bolt := item{ID: 1, Name: "bolt", Qty: 10, Note: &note, Created: created}
	nut := item{ID: 2, Name: "nut", Qty: 20, Created: created}
	screw := item{ID: 3, Name: "screw", Qty: 30, Created: created}

	// One request does all the writing. Reads of its own are held on the primary
	// by what it wrote, until replicas are proven to have it; reads of other
	// requests are not, and once the replicas have caught up they have to see it.
	writer := request(t)

	step(t, "create table", func(t *testing.T) {
		l := beginLog(c)
		check(t, s.CreateTable(writer))
		l.createdTable(t)
	})
	step(t, "create rows", func(t *testing.T) {
		l := beginLog(c)
		check(t, s.Insert(writer, []item{bolt, nut, screw}))
		l.onPrimary(t, "INSERT INTO ITEMS")
	})
	step(t, "read", func(t *testing.T) {
		caughtUp(t, c)
		l := beginLog(c)
		for range 4 {
			for _, want := range []item{bolt, nut, screw} {
				got, err := s.Get(request(t), want.ID)
				check(t, err)
				same(t, want, got)
			}
		}
		l.onReplicas(t, "SELECT FROM ITEMS")
	})
	resume := pauseReplicas(t, c)
	step(t, "update", func(t *testing.T) {
		l := beginLog(c)
		check(t, s.SetQty(writer, bolt.ID, 11))
		l.onPrimary(t, "UPDATE ITEMS")
		bolt.Qty = 11
	})
	step(t, "read back", func(t *testing.T) {
		l := beginLog(c)
		got, err := s.Get(writer, bolt.ID)
		check(t, err)
		same(t, bolt, got)
		l.onPrimary(t, "SELECT FROM ITEMS")
	})
	resume()
	step(t, "transaction with a read inside", func(t *testing.T) {
		// Begun in a request that has written nothing: what holds its reads on
		// the primary is the transaction alone.
		l := beginLog(c)
		got, err := s.Transfer(request(t), bolt.ID, nut.ID, 5)
		check(t, err)
		bolt.Qty, nut.Qty = bolt.Qty-5, nut.Qty+5
		same(t, bolt, got)
		l.onPrimary(t, "SELECT FROM ITEMS", "UPDATE ITEMS", "COMMIT")
		l.oneTransaction(t)
	})
	step(t, "lock", func(t *testing.T) {
		// Neither a transaction nor an earlier write sends it to the primary.
		l := beginLog(c)
		got, err := s.Lock(request(t), nut.ID)
		check(t, err)
		same(t, nut, got)
		l.onPrimary(t, "SELECT FROM ITEMS FOR UPDATE")
	})
	step(t, "upsert", func(t *testing.T) {
		l := beginLog(c)
		screw.Qty, screw.Note = 33, &note
		check(t, s.Upsert(writer, screw))
		washer := item{ID: 4, Name: "washer", Qty: 40, Created: created}
		check(t, s.Upsert(writer, washer))
		check(t, s.Upsert(writer, washer))
		words := "INSERT INTO ITEMS ON DUPLICATE KEY UPDATE"
		if c.Engine() == replicatedtest.Postgres {
			words = "INSERT INTO ITEMS ON CONFLICT DO UPDATE"
		}
		l.onPrimary(t, words)
	})
	step(t, "delete", func(t *testing.T) {
		l := beginLog(c)
		check(t, s.Delete(writer, 4))
		l.onPrimary(t, "DELETE FROM ITEMS")
	})
	step(t, "list", func(t *testing.T) {
		caughtUp(t, c)
		l := beginLog(c)
		for range 2 * len(c.Replicas()) {
			got, err := s.List(request(t))
			check(t, err)
			if len(got) != 3 {
				t.Fatalf("%d rows %v, want 3", len(got), got)
			}
			same(t, bolt, got[0])
			same(t, nut, got[1])
			same(t, screw, got[2])
		}
		l.onReplicas(t, "SELECT FROM ITEMS")
	})
}

// step runs a step of the program. The later ones build on it: if it fails, they
// are left out.
func step(t *testing.T, name string, run func(*testing.T)) {
	t.Helper()
	if !t.Run(name, run) {
		t.FailNow()
	}
}

// createdTable fails the test unless the table was made on the primary. Whether
// it has to be made may be asked of replicas, which is a read.
func (l *log) createdTable(t *testing.T) {
	t.Helper()
	if ran := l.of(l.cluster.Primary()); !executed(ran, "CREATE TABLE ITEMS") {
		t.Errorf("no CREATE TABLE ran on the primary; there ran:%s", lines(ran))
	}
	for _, n := range l.cluster.Replicas() {
		if ran := l.of(n); slices.ContainsFunc(ran, func(s replicatedtest.Statement) bool {
			return !strings.HasPrefix(strings.ToUpper(strings.TrimSpace(s.Text)), "SELECT")
		}) {
			t.Errorf("more than questions reached replica %s:%s", n.Name(), lines(ran))
		}
	}
}

// oneTransaction fails the test unless the primary ran everything in one session,
// from the transaction's beginning to its end.
func (l *log) oneTransaction(t *testing.T) {
	t.Helper()
	ran := l.of(l.cluster.Primary())
	first, last := strings.ToUpper(ran[0].Text), strings.ToUpper(ran[len(ran)-1].Text)
	if !strings.HasPrefix(first, "BEGIN") && !strings.HasPrefix(first, "START TRANSACTION") || !strings.HasPrefix(last, "COMMIT") {
		t.Errorf("not one transaction:%s", lines(ran))
	}
	for _, s := range ran {
		if s.Session != ran[0].Session {
			t.Errorf("more than one session:%s", lines(ran))
			break
		}
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, want, got item) {
	t.Helper()
	if got.String() != want.String() {
		t.Errorf("the row is %q, want %q", got, want)
	}
}
