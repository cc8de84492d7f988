package scenarios

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

const (
	// opTime bounds each operation of the load, so that one that hangs shows as one
	// that fails.
	opTime = 30 * time.Second
	// nap is how long the slow reads sleep in the server, so that some are always
	// under way.
	nap = 300 * time.Millisecond
	// items is how many rows there are to be read, and longRows how many a long
	// result has.
	items    = 500
	longRows = 400
)

// load is many goroutines that read and write by one handle, each with a pause
// between its operations.
type load struct {
	db     *sql.DB
	text   texts
	tally  *tally
	ledger *ledger
	pause  time.Duration // on average

	ctx  context.Context
	stop chan struct{} // closed when it is to end
	once sync.Once
	wg   sync.WaitGroup

	mu    sync.Mutex
	stmts []*sql.Stmt
}

// texts are the load's statements in an engine's SQL.
type texts struct{ engine replicatedtest.Engine }

// arg is the n-th placeholder.
func (x texts) arg(n int) string {
	if x.engine == replicatedtest.Postgres {
		return fmt.Sprintf("$%d", n)
	}
	return "?"
}

// sleeping is a read that takes a nap in the server.
func (x texts) sleeping() string {
	function := "SLEEP"
	if x.engine == replicatedtest.Postgres {
		function = "pg_sleep"
	}
	return fmt.Sprintf("SELECT v, %s(%g) FROM items WHERE id = 1", function, nap.Seconds())
}

// ledgerMark begins what tells an operation's number in the text of its statement,
// for the eyes of who reads the servers' logs.
const ledgerMark = "/* write "

// insert is the write with the number, as text or with arguments for id and writer.
func (x texts) insert(id int64, writer int, withArgs bool) string {
	values := fmt.Sprintf("%d, %d", id, writer)
	if withArgs {
		values = x.arg(1) + ", " + x.arg(2)
	}
	return fmt.Sprintf("INSERT INTO ledger (id, writer) VALUES (%s) %s%d */", values, ledgerMark, id)
}

// tables are what the load reads and writes. The ledger lets a number in twice,
// since that is what is looked for.
func (x texts) tables(writers int) []string {
	number := "n bigint AUTO_INCREMENT PRIMARY KEY"
	if x.engine == replicatedtest.Postgres {
		number = "n bigserial PRIMARY KEY"
	}
	rows := func(from, to int, format string) string {
		var all []string
		for i := from; i < to; i++ {
			all = append(all, fmt.Sprintf(format, i))
		}
		return strings.Join(all, ", ")
	}
	return []string{
		"DROP TABLE IF EXISTS items", "DROP TABLE IF EXISTS ledger", "DROP TABLE IF EXISTS counters", "DROP TABLE IF EXISTS trials",
		"CREATE TABLE trials (n int)",
		"CREATE TABLE items (id int PRIMARY KEY, v int NOT NULL, pad varchar(200) NOT NULL)",
		"INSERT INTO items (id, v, pad) VALUES " + rows(0, items, "(%d, 0, '"+strings.Repeat("x", 200)+"')"),
		"CREATE TABLE ledger (" + number + ", id bigint NOT NULL, writer int NOT NULL)",
		"CREATE TABLE counters (id int PRIMARY KEY, n bigint NOT NULL)",
		"INSERT INTO counters (id, n) VALUES " + rows(0, writers, "(%d, 0)"),
	}
}

// start lets the goroutines loose.
func (l *load) start(readers, writers int) {
	for i := range readers {
		l.goroutine(l.reader(i))
	}
	for i := range writers {
		l.goroutine(l.writer(i))
	}
}

// goroutine does it again and again until the load ends, each time in a session of
// its own, as a request has one.
func (l *load) goroutine(do func(context.Context)) {
	l.wg.Go(func() {
		for l.rest() {
			ctx, cancel := context.WithTimeout(l.ctx, opTime)
			session, _ := replicated.WithSession(ctx)
			do(session)
			cancel()
		}
	})
}

// rest waits for the pause, and reports whether the load goes on.
func (l *load) rest() bool {
	select {
	case <-l.stop:
		return false
	case <-time.After(l.pause/2 + rand.N(l.pause)):
		return true
	}
}

// end lets each operation come to its end, and waits for that. Further calls do
// nothing.
func (l *load) end() {
	l.once.Do(func() { close(l.stop) })
	l.wg.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, st := range l.stmts {
		st.Close()
	}
	l.stmts = nil
}

// outcomeOf tells what an error says of a write: by the driver's word it has
// certainly not been done unless the error says that this is not known.
func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return acknowledged
	case errors.Is(err, replicated.ErrOutcomeUnknown), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return unknown
	default:
		return failed
	}
}
