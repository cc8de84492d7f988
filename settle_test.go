package replicated_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// A session is settled once every replica has what it wrote, and not before.
func TestSettle(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		db := f.openLogs()
		ctx, s := replicated.WithSession(t.Context())
		if err := s.Settle(ctx); err != nil {
			t.Errorf("a session that wrote nothing: %v", err)
		}
		write(ctx, t, db)
		settled := make(chan time.Duration, 1)
		go func() {
			began := time.Now()
			if err := s.Settle(ctx); err != nil {
				t.Error(err)
			}
			settled <- time.Since(began)
		}()
		pass(time.Second)
		f.apply(0)
		pass(time.Second)
		select {
		case d := <-settled:
			t.Fatalf("settled after %v, where one replica lacks the write", d)
		default:
		}
		f.apply()
		if d := <-settled; d > 2500*time.Millisecond {
			t.Errorf("settled after %v, where all had it after 2 s", d)
		}
	})
}

// A replica that is down holds it up until replicas without the write serve nobody.
func TestSettleWithAReplicaThatIsDown(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		db := f.openLogs(func(c *replicated.Config) { c.MaxLag = 3 * time.Second })
		f.replicas[1].Down(driver.ErrBadConn)
		ctx, s := replicated.WithSession(t.Context())
		write(ctx, t, db)
		f.apply()
		began := time.Now()
		if err := s.Settle(ctx); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d != 3*time.Second {
			t.Errorf("settled after %v, want max_lag, 3s", d)
		}
		write(ctx, t, db)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := s.Settle(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want the context's", err)
		}
	})
}

// Without a tracker it can't be told.
func TestSettleWithoutATracker(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		db := f.openLogs(func(c *replicated.Config) { c.Tracker = replicated.TrackerOff })
		ctx, s := replicated.WithSession(t.Context())
		write(ctx, t, db)
		if err := s.Settle(ctx); err == nil {
			t.Error("settled")
		}
	})
}

// Once a session is settled, another process reads its write without a token.
func TestSettledSessionsNeedNoToken(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		r := newReadback(t, c)
		writer, _, _ := apart(t, c, lagless, locating)
		reader, _, _ := apart(t, c, lagless, locating)
		r.until(t.Context(), reader, 0, c.Replicas()...)
		for range 30 {
			ctx, s := replicated.WithSession(t.Context())
			r.mustWrite(ctx, writer, 0)
			must(t, s.Settle(ctx))
			r.reads(t.Context(), reader, 0, 4)
		}
		resume := pauseReplicas(t, c)
		ctx, s := replicated.WithSession(t.Context())
		r.mustWrite(ctx, writer, 0)
		short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		if err := s.Settle(short); err == nil {
			t.Error("settled, where no replica has it")
		}
		resume()
		must(t, s.Settle(ctx))
		r.reads(t.Context(), reader, 0, 4)
	})
}

// A handle that was closed, and that the session has not used, keeps nobody waiting.
func TestSettleBesideAClosedHandle(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		db := f.openLogs()
		old, err := replicated.NewConnector(f.config())
		if err != nil {
			t.Fatal(err)
		}
		used, _ := replicated.WithSession(t.Context())
		gone := sql.OpenDB(old)
		write(used, t, gone)
		if err := gone.Close(); err != nil {
			t.Fatal(err)
		}
		if err := replicated.SessionFromContext(used).Settle(used); err == nil {
			t.Error("settled, where nobody can tell any more")
		}
		ctx, s := replicated.WithSession(t.Context())
		write(ctx, t, db)
		replicated.Wrote(ctx)
		f.apply()
		began := time.Now()
		if err := s.Settle(ctx); err != nil || time.Since(began) > 2500*time.Millisecond {
			t.Errorf("%v, after %v", err, time.Since(began))
		}
	})
}

// What was written before the cluster was given a name is the cluster's all the same.
func TestSettleWhatWasAdoptedFromBeforeTheName(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		unnamed := f.openLogs(func(c *replicated.Config) { c.ClusterName = "" })
		writer, _ := replicated.WithSession(t.Context())
		write(writer, t, unnamed)
		token, err := replicated.TokenOf(writer)
		if err != nil {
			t.Fatal(err)
		}
		if err := unnamed.Close(); err != nil {
			t.Fatal(err)
		}
		f.openLogs(func(c *replicated.Config) { c.ClusterName = "shop" })
		pass(time.Second)
		f.apply()
		ctx, s := replicated.WithSession(t.Context())
		if err := s.Adopt(token); err != nil {
			t.Fatal(err)
		}
		if err := s.Settle(ctx); err != nil {
			t.Error(err)
		}
	})
}

// A handle that has not been used yet does not know its cluster, and finds out.
func TestSettleOnAHandleThatWasNotUsed(t *testing.T) {
	inBubble(t, func(t *testing.T, f *logs) {
		unnamed := func(c *replicated.Config) {
			c.ClusterName, c.Driver, c.Tracker = "", "postgres", replicated.TrackerAuto
		}
		used := f.openLogs(unnamed)
		writer, _ := replicated.WithSession(t.Context())
		write(writer, t, used)
		token, err := replicated.TokenOf(writer)
		if err != nil {
			t.Fatal(err)
		}
		if err := used.Close(); err != nil {
			t.Fatal(err)
		}
		f.apply()
		cfg := f.config()
		unnamed(&cfg)
		connector, err := replicated.NewConnector(cfg)
		if err != nil {
			t.Fatal(err)
		}
		db := sql.OpenDB(connector)
		defer db.Close()
		ctx, s := replicated.WithSession(t.Context())
		if err := s.Adopt(token); err != nil {
			t.Fatal(err)
		}
		if err := s.Settle(ctx); err != nil {
			t.Error(err)
		}
	})
}
