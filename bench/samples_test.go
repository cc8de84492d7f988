package bench_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// What a process may ask of each node, in samples a second.
const (
	idleRate = 2
	busyRate = 50
)

// TestSampleRate counts, by the servers' own logs, how often a process has its nodes
// tell how far they have got. The counts have room for twice the rate.
// REPLICATED_MEASURE asks for all cases, and says for how long they are counted, from
// five seconds.
func TestSampleRate(t *testing.T) {
	d, thorough := measureFor(t)
	d = max(d, 5*time.Second)
	eachEngine(t, replicatedtest.Options{}, func(t *testing.T, c *replicatedtest.Cluster) {
		makeRows(t, c, "notes", 1)
		h := openHandle(t, c, 8)
		h.ready(t)
		update := fmt.Sprintf("UPDATE notes SET v = %s WHERE id = 0", placeholder(c, 1))
		write := func(ctx context.Context) error {
			_, err := h.ExecContext(ctx, update, time.Now().UnixNano())
			return err
		}
		read := func(ctx context.Context) error {
			var v int64
			return h.QueryRowContext(ctx, "SELECT v FROM notes WHERE id = 0").Scan(&v)
		}
		stale := func(ctx context.Context) error { return read(replicated.WithStaleReads(ctx, 0)) }
		nobody := func(context.Context) error { return nil }
		first := c.Replicas()[0]
		for _, x := range []struct {
			name        string
			write, read func(context.Context) error
			most        [3]int // for the primary and the two replicas
			settle      time.Duration
			paused      []*replicatedtest.Node
			always      bool
		}{
			{name: "idle", write: nobody, read: nobody, most: [3]int{idleRate, idleRate, idleRate}, settle: 2 * time.Second, always: true},
			{name: "only reads", write: nobody, read: read, most: [3]int{idleRate, idleRate, idleRate}, settle: 2 * time.Second},
			{name: "writes and reads", write: write, read: read, most: [3]int{busyRate, busyRate, busyRate}},
			{name: "one replica stopped", write: write, read: read, most: [3]int{busyRate, idleRate, busyRate}, settle: 6 * time.Second, paused: []*replicatedtest.Node{first}, always: true},
			{name: "all replicas stopped", write: write, read: read, most: [3]int{idleRate, idleRate, idleRate}, settle: 6 * time.Second, paused: c.Replicas()},
			{name: "writes only", write: write, read: nobody, most: [3]int{idleRate, idleRate, idleRate}, settle: 8 * time.Second, always: true},
			{name: "writes, reads that may be stale", write: write, read: stale, most: [3]int{idleRate, idleRate, idleRate}, settle: 8 * time.Second},
		} {
			if !thorough && !x.always {
				continue
			}
			t.Run(x.name, func(t *testing.T) {
				for _, n := range x.paused {
					if err := n.PauseReplication(); err != nil {
						t.Fatal(err)
					}
				}
				defer func() {
					for _, n := range x.paused {
						if err := n.ResumeReplication(); err != nil {
							t.Fatal(err)
						}
					}
					caughtUp(t, c)
				}()
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				writer, reader := every(ctx, t, 100, x.write), every(ctx, t, readRate, x.read)
				pause(ctx, x.settle)
				begun := time.Now()
				c.ResetStatements()
				pause(ctx, d)
				var counts []int
				for _, n := range c.Nodes() {
					counts = append(counts, samples(n))
				}
				took := time.Since(begun).Seconds()
				stop()
				writer.Wait()
				reader.Wait()
				for i, n := range counts {
					t.Logf("%s: %.1f samples/s", c.Nodes()[i].Name(), float64(n)/took)
					if most := 2 * took * float64(x.most[i]); float64(n) > most {
						t.Errorf("%s: %d samples in %.1f s, want about %d a second", c.Nodes()[i].Name(), n, took, x.most[i])
					}
				}
			})
		}
	})
}

// samples counts what the sampler has asked a node: the text that was sent most often
// over one connection. Other connections ask who a server is once, when they are
// opened. A sample of MySQL without usable GTIDs is several texts, of which SHOW SLAVE
// STATUS, or SHOW REPLICA STATUS, is sent once.
func samples(n *replicatedtest.Node) int {
	type asked struct {
		session int64
		text    string
	}
	times, most, status := make(map[asked]int), 0, 0
	for _, s := range n.Statements() {
		if s.Kind == replicatedtest.Prepare || !strings.HasPrefix(s.Text, "/* replicated */") {
			continue
		}
		a := asked{s.Session, s.Text}
		times[a]++
		if strings.HasSuffix(s.Text, " SLAVE STATUS") || strings.HasSuffix(s.Text, " REPLICA STATUS") {
			status = max(status, times[a])
		}
		most = max(most, times[a])
	}
	if status > 0 {
		return status
	}
	return most
}
