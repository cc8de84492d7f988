package replicated_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"
	"github.com/sqlreplicated/replicated/internal/faketime"
)

// Five hundred readers meet a replica that takes two seconds to refuse: few dial
// it, and the breaker sends the others elsewhere without asking.
func TestDialsOfADeadReplicaAreBounded(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		db := f.open()
		r := f.replicas[0]
		var dialling, most atomic.Int64
		r.OnConnect(func(ctx context.Context) error {
			n := dialling.Add(1)
			defer dialling.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(time.Second)
			return errors.New("refused")
		})
		before := r.Stats().Connects
		started := time.Now()
		var readers sync.WaitGroup
		for range 500 {
			readers.Go(func() { wantOn(t.Context(), t, db, "primary") })
		}
		readers.Wait()
		if n := most.Load(); n > replicated.MaxDials {
			t.Errorf("%d dials at a time, want at most %d", n, replicated.MaxDials)
		}
		// Those that were dialling when the breaker opened, and those that got their
		// places before the failures were reported.
		if n := r.Stats().Connects - before; n > 4*replicated.MaxDials {
			t.Errorf("500 reads have dialled the dead replica %d times", n)
		}
		if took := time.Since(started); took > 5*time.Second {
			t.Errorf("the reads took %v", took)
		}
	})
}

// A server that answers, but not to us now, is left alone for a moment. It is not
// down, and its breaker stays closed.
func TestReplicaThatTurnsUsAwayIsLeftAlone(t *testing.T) {
	for name, refusal := range map[string]error{
		"too many": pgError("53300"), "1040": mysqlError(1040), "password": pgError("28P01"), "1045": mysqlError(1045),
	} {
		t.Run(name, func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) {
				f := newFakes(t, 1, fakedb.Full)
				db := f.open()
				f.replicas[0].OnConnect(func(context.Context) error { return refusal })
				before := f.replicas[0].Stats().Connects
				for range 20 {
					wantOn(t.Context(), t, db, "primary")
				}
				if n := f.replicas[0].Stats().Connects - before; n != 1 {
					t.Errorf("twenty reads have dialled it %d times", n)
				}
				cluster, err := replicated.ClusterOf(t.Context(), db)
				if err != nil {
					t.Fatal(err)
				}
				n := cluster.Stats().Nodes[1]
				if !n.TurnedAway || n.Breaker != replicated.BreakerClosed {
					t.Errorf("turned away: %v, breaker %v", n.TurnedAway, n.Breaker)
				}
				f.mu.Lock()
				notices := slices.DeleteFunc(slices.Clone(f.notices), func(n replicated.Notice) bool { return n.Kind != replicated.NoticeTurnedAway })
				f.mu.Unlock()
				if len(notices) != 1 || notices[0].Node != "replica1" || !errors.Is(notices[0].Err, refusal) {
					t.Errorf("notices %v", notices)
				}
				f.replicas[0].OnConnect(nil)
				time.Sleep(10 * time.Second)
				wantOn(t.Context(), t, db, "replica")
			})
		})
	}
}

func TestConnectTimeout(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		db := f.open(func(c *replicated.Config) { c.ConnectTimeout = 300 * time.Millisecond })
		hold := f.replicas[0].Hold(fakedb.OpConnect)
		defer hold.Release()
		started := time.Now()
		wantOn(t.Context(), t, db, "primary")
		if took := time.Since(started); took != 300*time.Millisecond {
			t.Errorf("the read took %v, want the time allowed for a dial", took)
		}
		f.wantRoutes("replica read failed", "primary no-replica")
	})
}

// The caller's own deadline ends a dial, and is nobody's fault.
func TestCallersDeadlineEndsADial(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		db := f.open(func(c *replicated.Config) { c.BreakerFailures = 1 })
		hold := f.replicas[0].Hold(fakedb.OpConnect)
		defer hold.Release()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := db.QueryRowContext(ctx, plainSelect).Scan(new(string)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if got := f.breakers(db); got[0] != replicated.BreakerClosed {
			t.Errorf("the breaker is %v", got[0])
		}
	})
}

func TestIdleLimit(t *testing.T) {
	for maxIdle, want := range map[int]int{-1: 0, 1: 1, 3: 3} {
		faketime.Test(t, func(t *testing.T) {
			f := newFakes(t, 1, fakedb.Full)
			db := f.open(func(c *replicated.Config) { c.ReplicaMaxIdle = maxIdle })
			var readers sync.WaitGroup
			hold := f.replicas[0].Hold(fakedb.OpQuery)
			for range 10 {
				readers.Go(func() { wantOn(t.Context(), t, db, "replica") })
			}
			synctest.Wait()
			hold.Release()
			readers.Wait()
			if n := f.replicas[0].Stats().OpenConns; n != want {
				t.Errorf("limit %d: %d connections are left, the prober's included, want %d", maxIdle, n, want)
			}
		})
	}
}

// Connections end when they have been idle or alive for long, used or not, and the
// prober's own when it has been alive for long.
func TestLifetimesOfReplicaConnections(t *testing.T) {
	for _, tt := range []struct {
		name   string
		config func(*replicated.Config)
		every  time.Duration // between reads, for ten minutes
		fewest int           // connections that are opened, the prober's included
		most   int
	}{
		{"idle", func(c *replicated.Config) { c.ReplicaMaxIdleTime = 30 * time.Second }, 40 * time.Second, 17, 19},
		{"not idle", func(c *replicated.Config) { c.ReplicaMaxIdleTime, c.ReplicaMaxLifetime = 30*time.Second, -1 }, 20 * time.Second, 2, 2},
		{"old", func(c *replicated.Config) { c.ReplicaMaxLifetime = 2 * time.Minute }, 10 * time.Second, 10, 14},
		{"for ever", func(c *replicated.Config) { c.ReplicaMaxIdleTime, c.ReplicaMaxLifetime = -1, -1 }, 4 * time.Minute, 2, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) {
				f := newFakes(t, 1, fakedb.Full)
				db := f.open(tt.config)
				for start := time.Now(); time.Since(start) < 10*time.Minute; time.Sleep(tt.every) {
					wantOn(t.Context(), t, db, "replica")
				}
				if n := f.replicas[0].Stats().Connects; n < tt.fewest || n > tt.most {
					t.Errorf("%d connections in ten minutes, want %d to %d", n, tt.fewest, tt.most)
				}
			})
		})
	}
}

// Idle connections are let go when nobody reads, too.
func TestIdleConnectionsAreLetGo(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		db := f.open()
		wantOn(t.Context(), t, db, "replica")
		time.Sleep(50 * time.Second)
		if n := f.replicas[0].Stats().OpenConns; n != 2 {
			t.Errorf("%d connections, want the idle one and the prober's", n)
		}
		time.Sleep(15 * time.Second)
		if n := f.replicas[0].Stats().OpenConns; n != 1 {
			t.Errorf("%d connections after a minute, want the prober's alone", n)
		}
	})
}

// Connections of the caller's connectors are fenced by a statement, those to the
// primary are not.
func TestReplicaConnectionsAreFenced(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.PQLike)
		db := f.open(f.asPostgres())
		wantOn(t.Context(), t, db, "replica")
		run(t.Context(), t, db, "INSERT INTO t VALUES (1)")
		fences := func(s *fakedb.Server) (n int) {
			for _, text := range s.Texts() {
				if strings.Contains(text, "READ ONLY") {
					n++
				}
			}
			return n
		}
		r := f.replicas[0]
		if n, conns := fences(r), r.Stats().Connects; n != conns {
			t.Errorf("%d of %d replica connections are fenced", n, conns)
		}
		if n := fences(f.primary); n != 0 {
			t.Errorf("%d connections to the primary are fenced", n)
		}
	})
}

// Where a driver does not tell which backend it was given, a pooler may sit
// between, and a SET would reach other applications.
func TestNoFenceWhereAPoolerCannotBeRuledOut(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Legacy)
		db := f.open(f.asPostgres())
		wantOn(t.Context(), t, db, "replica")
		for _, text := range f.replicas[0].Texts() {
			if strings.Contains(text, "READ ONLY") {
				t.Errorf("the fence was sent: %s", text)
			}
		}
	})
}

func TestReplicaWhoseFenceFailsServesNothing(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.PQLike)
		f.replicas[0].ReplyContaining("READ ONLY", func(context.Context, *fakedb.Call) (*fakedb.Reply, error) {
			return nil, pgError("42501")
		})
		db := f.open(f.asPostgres())
		wantOn(t.Context(), t, db, "primary")
		if n := sent(f.replicas[0], plainSelect); n != 0 {
			t.Errorf("it was asked %d times", n)
		}
		if n := f.replicas[0].Stats().OpenConns; n != 0 {
			t.Errorf("%d connections are left", n)
		}
	})
}

// A standby refuses serializable reads, which is the default of such a server.
func TestSerializableReplicaServesNothing(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.PQLike)
		asPostgres := f.asPostgres()
		f.replicas[0].ReplyContaining("pg_control_system", postgresIdentity(true, "serializable"))
		db := f.open(asPostgres)
		wantOn(t.Context(), t, db, "primary")
		if n := sent(f.replicas[0], plainSelect); n != 0 {
			t.Errorf("it was asked %d times", n)
		}
	})
}

func TestSerializablePrimaryKeepsItsReads(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.PQLike)
		asPostgres := f.asPostgres()
		f.primary.ReplyContaining("pg_control_system", postgresIdentity(false, "serializable"))
		db := f.open(asPostgres)
		f.routes()
		wantOn(t.Context(), t, db, "primary")
		f.wantRoutes("primary serializable")
	})
}

func TestReadOnlyPrimaryIsToldOf(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 0, fakedb.PQLike)
		asPostgres := f.asPostgres()
		f.primary.ReplyContaining("pg_control_system", postgresIdentity(true, "read committed"))
		f.open(asPostgres)
		if !slices.ContainsFunc(f.notices, func(n replicated.Notice) bool {
			return n.Kind == replicated.NoticeReadOnlyPrimary && n.Node == "primary"
		}) {
			t.Errorf("notices %v", f.notices)
		}
	})
}

// A context that ends just when the connection stands has set its abort going: the
// connection must not be kept, since a later user would be hit by it.
func TestConnectionIsNotKeptWhenItsContextEndsMeanwhile(t *testing.T) {
	for _, node := range []string{"primary", "replica"} {
		t.Run(node, func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) {
				f := newFakes(t, 1, fakedb.Full)
				db := f.open(func(c *replicated.Config) { c.ReplicaMaxIdle = 0 })
				server, query := f.primary, "INSERT INTO t VALUES (1)"
				if node == "replica" {
					server, query = f.replicas[0], "SELECT 1"
				}
				busy, err := db.Conn(t.Context()) // the one that is idle
				if err != nil {
					t.Fatal(err)
				}
				defer busy.Close()
				ctx, cancel := context.WithCancel(t.Context())
				server.OnConnect(func(context.Context) error { cancel(); return nil })
				before := len(server.Open())
				rows, err := db.QueryContext(ctx, query)
				if err == nil {
					_ = rows.Close()
				}
				if !errors.Is(err, context.Canceled) {
					t.Errorf("the error is %v", err)
				}
				if n := len(server.Open()); n != before {
					t.Errorf("%d connections are open, %d were before", n, before)
				}
			})
		})
	}
}
