package bench_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// manners are the ways in which a process may write and read.
var manners = []struct {
	name  string
	keys  []string
	table string                                // to which the writes go; reads are of notes
	write func(context.Context) context.Context // the context of each write
	read  func(context.Context) context.Context // and of each read
	goal  float64                               // share of reads on replicas, at any rate of writes; 0: none
}{
	{name: "plain", table: "notes"},
	{name: "sessions", table: "notes", write: ownSession, read: ownSession},
	{name: "untracked", table: "notes", write: replicated.WithUntracked},
	{name: "plain, another table", table: "journal"},
	{name: "scope=table", table: "journal", keys: []string{"replicated.scope=table"}, goal: 0.95},
}

// ownSession opens a session for one request.
func ownSession(ctx context.Context) context.Context {
	ctx, _ = replicated.WithSession(ctx)
	return ctx
}

const readRate = 200

// TestProcessLevel measures what it costs to read one's writes where nothing tells
// who wants to see which: a process that writes at several rates, and reads 200 rows
// a second, without a context; and what sessions, untracked writes and a scope by
// table make of that. REPLICATED_MEASURE makes a table of it, and asks for the goal.
func TestProcessLevel(t *testing.T) {
	d, thorough := measureFor(t)
	rates := []int{1, 10, 100, 1000}
	if !thorough {
		rates = []int{10}
	}
	eachEngine(t, replicatedtest.Options{NoStatementLog: true}, func(t *testing.T, c *replicatedtest.Cluster) {
		makeRows(t, c, "notes", 100)
		makeRows(t, c, "journal", 0)
		id := int64(1000)
		for _, rate := range rates {
			for _, m := range manners {
				t.Run(fmt.Sprintf("%d writes a second/%s", rate, m.name), func(t *testing.T) {
					h := openHandle(t, c, 16, m.keys...)
					h.ready(t)
					insert := fmt.Sprintf("INSERT INTO %s VALUES (%s, 1)", m.table, placeholder(c, 1))
					read := "SELECT v FROM notes WHERE id = " + placeholder(c, 1)
					ctx, stop := context.WithCancel(t.Context())
					defer stop()
					writer := every(ctx, t, rate, func(ctx context.Context) error {
						if m.write != nil {
							ctx = m.write(ctx)
						}
						_, err := h.ExecContext(ctx, insert, atomic.AddInt64(&id, 1))
						return err
					})
					reader := every(ctx, t, readRate, func(ctx context.Context) error {
						if m.read != nil {
							ctx = m.read(ctx)
						}
						var v int64
						return h.QueryRowContext(ctx, read, atomic.LoadInt64(&id)%100).Scan(&v)
					})
					pause(ctx, 2*time.Second) // connections are open, and the catalog has been read
					before, written, begun := h.where(), writer.done.Load(), time.Now()
					pause(ctx, d)
					w, wrote, took := h.where().since(before), writer.done.Load()-written, time.Since(begun).Seconds()
					stop()
					writer.Wait()
					reader.Wait()
					t.Logf("%5.1f %% on replicas of %3.0f reads/s beside %4.0f writes/s, primary: %v; load %s",
						100*w.share(), float64(w.reads())/took, float64(wrote)/took, w.primary, load())
					if thorough && w.share() < m.goal {
						t.Errorf("%.1f %% of the reads on replicas, want at least %.0f %%", 100*w.share(), 100*m.goal)
					}
				})
			}
		}
	})
}

// paced does something at a rate.
type paced struct {
	sync.WaitGroup
	done atomic.Int64
}

// every calls do so many times a second, on eight goroutines, until ctx ends. What
// falls behind is not made up for by more at once than these.
func every(ctx context.Context, t *testing.T, rate int, do func(context.Context) error) *paced {
	return everyOn(ctx, t, 8, rate, do)
}

// everyOn is every, on so many goroutines.
func everyOn(ctx context.Context, t *testing.T, workers, rate int, do func(context.Context) error) *paced {
	p, begin := new(paced), time.Now()
	var next atomic.Int64
	for range workers {
		p.Go(func() {
			for {
				pause(ctx, time.Until(begin.Add(time.Duration(next.Add(1))*time.Second/time.Duration(rate))))
				if ctx.Err() != nil {
					return
				}
				if err := do(ctx); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
				p.done.Add(1)
			}
		})
	}
	return p
}
