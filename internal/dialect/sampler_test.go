package dialect_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/lib/pq"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/dialect"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// preparing counts what is prepared, and what of that is closed.
type preparing struct {
	counted
	prepared []string
	closed   int
	fail     error // of preparing
}

func (c *preparing) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	c.prepared = append(c.prepared, text)
	if c.fail != nil {
		return nil, c.fail
	}
	stmt, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, text)
	return &closing{stmt, &c.closed}, err
}

type closing struct {
	driver.Stmt
	closed *int
}

func (s *closing) Close() error { *s.closed++; return s.Stmt.Close() }

func samplerSample(tb testing.TB, s *dialect.Sampler) dialect.Identity {
	tb.Helper()
	id, err := s.Sample(testContext(tb))
	if err != nil {
		tb.Fatal(err)
	}
	return id
}

func TestSamplerTellsWhatSampleTells(t *testing.T) {
	eachEngine(t, func(t *testing.T, c *replicatedtest.Cluster, d *dialect.Dialect) {
		// Two questions have one answer only where nothing is on its way between them.
		if err := c.WaitCaughtUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, n := range c.Nodes() {
			conn := &preparing{counted: counted{Conn: sampler(t, c, n)}}
			s := d.Sampler(conn)
			for range 3 {
				want := sample(t, d, conn.Conn)
				got := samplerSample(t, s)
				if got.Written.Kind() != want.Written.Kind() || got.Applied.Kind() != want.Applied.Kind() || got.Inserted.Kind() != want.Inserted.Kind() {
					t.Errorf("%s: positions of %+v, want those of %+v", n.Name(), got, want)
				}
				got.Written, got.Inserted, got.Applied = want.Written, want.Inserted, want.Applied
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s: %+v, want %+v", n.Name(), got, want)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			wantPrepared := 0
			if d.Kind == classify.Postgres {
				wantPrepared = 1
			}
			if len(conn.prepared) != wantPrepared || conn.closed != wantPrepared || (len(conn.texts) > 0) != (wantPrepared == 0) {
				t.Errorf("%s: prepared %d, closed %d, sent %d texts", n.Name(), len(conn.prepared), conn.closed, len(conn.texts))
			}
		}
	})
}

func TestSamplerGoesOnWithoutItsStatement(t *testing.T) {
	c := replicatedtest.Start(t, replicatedtest.Postgres, replicatedtest.Options{Replicas: -1, NoStatementLog: true})
	d := dialect.For(classify.Postgres)
	start := func() (*preparing, *dialect.Sampler) {
		conn := &preparing{counted: counted{Conn: open(t, "postgres", c.Primary().DSN())}}
		return conn, d.Sampler(conn)
	}
	conn, s := start()
	samplerSample(t, s)
	mustRun(t, conn.Conn, "DEALLOCATE ALL") // as behind a pooler
	for range 2 {
		if id := samplerSample(t, s); id.Written.IsZero() || id.NoPosition != "" {
			t.Errorf("%+v", id)
		}
	}
	if len(conn.texts) != 2 || len(conn.prepared) != 1 || conn.closed != 1 {
		t.Errorf("sent %d texts, prepared %d, closed %d", len(conn.texts), len(conn.prepared), conn.closed)
	}

	conn, s = start()
	conn.fail = &pq.Error{Code: "42P05", Message: "prepared statement exists"}
	if id := samplerSample(t, s); id.Written.IsZero() || len(conn.texts) != 1 {
		t.Errorf("%+v", id)
	}

	conn, s = start()
	conn.fail = driver.ErrBadConn
	if _, err := s.Sample(t.Context()); !errors.Is(err, driver.ErrBadConn) || len(conn.texts) != 0 {
		t.Errorf("on a broken connection: %v, %d texts", err, len(conn.texts))
	}

	_, s = start()
	samplerSample(t, s)
	mustRun(t, open(t, "postgres", c.Primary().AdminDSN()), "REVOKE EXECUTE ON FUNCTION pg_control_checkpoint() FROM public")
	if id := samplerSample(t, s); !strings.Contains(id.NoPosition, "permission denied for function pg_control_checkpoint") {
		t.Errorf("%+v", id)
	}
}
