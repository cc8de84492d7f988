package dialect_test

import (
	"database/sql/driver"
	"strings"
	"testing"
	"time"

	"github.com/lib/pq"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/dialect"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// postgresRow is what a PostgreSQL says about itself.
func postgresRow(standby bool, written, inserted, applied driver.Value) answer {
	return answer{part: "pg_control_system", row: []driver.Value{standby, "4711", nil, nil, "3", written, inserted, applied,
		"20260101000000000000", "5432", "9", "16.1", "160001", "read committed", "on", "off"}}
}

func TestSampleOfPostgres(t *testing.T) {
	tests := []struct {
		name                       string
		standby                    bool
		written, inserted, applied driver.Value
		want, wantInserted         string // Written or Applied, and Inserted
		none                       string
	}{
		{name: "primary", written: "0/3000100", inserted: "0/3000148 8192 16MB", want: "0/3000100", wantInserted: "0/3000148"},
		{name: "page", written: "0/3000100", inserted: "0/3002018 8192 16MB", want: "0/3000100", wantInserted: "0/3002000"},
		{name: "no page of that size", written: "0/3000100", inserted: "0/3002018 16384 16MB", want: "0/3000100", wantInserted: "0/3002018"},
		{name: "segment", written: "0/3000100", inserted: "0/3000028 8192 16MB", want: "0/3000100", wantInserted: "0/3000000"},
		{name: "small segment", written: "0/3000100", inserted: "0/3100028 8192 1MB", want: "0/3000100", wantInserted: "0/3100000"},
		{name: "no segment of that size", written: "0/3000100", inserted: "0/3100028 8192 1GB", want: "0/3000100", wantInserted: "0/3100028"},
		{name: "segment in kB", written: "0/3000100", inserted: "0/3100028 8192 1024kB", want: "0/3000100", wantInserted: "0/3100000"},
		{name: "standby", standby: true, applied: "1/A", want: "1/A"},
		{name: "size unknown", written: "0/3000100", inserted: "0/3000148 8192 16XB", none: "pg_current_wal_insert_lsn"},
		{name: "size missing", written: "0/3000100", inserted: "0/3000148", none: "pg_current_wal_insert_lsn"},
		{name: "nothing", none: "pg_current_wal_flush_lsn"},
		{name: "standby, nothing", standby: true, none: "pg_last_wal_replay_lsn"},
		{name: "Aurora", written: "aurora", none: "Aurora"},
		{name: "Aurora's replica", standby: true, written: "aurora", none: "Aurora"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			conn := &canned{answers: []answer{postgresRow(tt.standby, tt.written, tt.inserted, tt.applied)}}
			id := sample(t, dialect.For(classify.Postgres), conn)
			got := id.Written
			if tt.standby {
				got = id.Applied
			}
			if got.String() != tt.want || id.Inserted.String() != tt.wantInserted || !says(id.NoPosition, tt.none) || id.ReadOnly != tt.standby {
				t.Errorf("position %v, Inserted %v, NoPosition %q; want %q, %q", got, id.Inserted, id.NoPosition, tt.want, tt.wantInserted)
			}
			if id.Written.IsZero() == (id.NoWritten() == "") || id.Applied.IsZero() == (id.NoApplied("") == "") {
				t.Errorf("a reason and a position, or neither: %+v", id)
			}
			if len(conn.texts) != 1 {
				t.Errorf("%d queries", len(conn.texts))
			}
		})
	}
}

func TestSampleOfPostgresThatRefuses(t *testing.T) {
	minimal := postgresRow(false, nil, nil, nil)
	minimal.part = "NULL, NULL, NULL, NULL"
	aurora := postgresRow(true, "aurora", nil, nil)
	aurora.part = minimal.part
	unsupported := &pq.Error{Code: "0A000", Message: "Function pg_current_wal_flush_lsn() is currently not supported for Aurora"}
	for _, tt := range []struct {
		name    string
		refused error
		minimal answer
		none    string
	}{
		{name: "privilege", refused: &pq.Error{Code: "42501", Message: "permission denied for function pg_control_checkpoint"}, minimal: minimal, none: "control functions not callable (pq: permission denied for function pg_control_checkpoint"},
		{name: "Aurora", refused: unsupported, minimal: aurora, none: "Aurora: its replicas"},
		{name: "a fork", refused: &pq.Error{Code: "42883", Message: "function pg_control_system() does not exist"}, minimal: minimal, none: "control functions not callable"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			id := sample(t, dialect.For(classify.Postgres), &canned{answers: []answer{{part: "pg_control_system", err: tt.refused}, tt.minimal}})
			if !strings.Contains(id.NoPosition, tt.none) || !id.Written.IsZero() || !id.Applied.IsZero() || id.Version != "16.1" {
				t.Errorf("%+v", id)
			}
		})
	}
}

// A server that offers Aurora's extensions is asked for no position.
func TestSampleRecognisesAurora(t *testing.T) {
	c := replicatedtest.Start(t, replicatedtest.Postgres, replicatedtest.Options{Replicas: 1, NoStatementLog: true})
	d := dialect.For(classify.Postgres)
	for _, n := range c.Nodes() {
		conn := &counted{Conn: open(t, c.DriverName(), n.DSN("rds.extensions=address_standardizer,aurora_stat_utils,pg_trgm"))}
		if id := sample(t, d, conn); !strings.Contains(id.NoPosition, "Aurora") || !id.Written.IsZero() || !id.Inserted.IsZero() || !id.Applied.IsZero() || id.ReadOnly != n.IsReplica() {
			t.Errorf("%s: %+v", n.Name(), id)
		}
		if len(conn.texts) != 1 {
			t.Errorf("%s: %d queries", n.Name(), len(conn.texts))
		}
		if id := sample(t, d, open(t, c.DriverName(), n.DSN("rds.extensions=pg_trgm"))); id.NoPosition != "" {
			t.Errorf("%s, of RDS: %q", n.Name(), id.NoPosition)
		}
	}
}

// What is sent can be told from the application's statements.
func TestTextsAreMarked(t *testing.T) {
	eachEngine(t, func(t *testing.T, c *replicatedtest.Cluster, d *dialect.Dialect) {
		conn := &counted{Conn: open(t, c.DriverName(), c.Primary().AdminDSN())}
		id := sample(t, d, conn)
		makeHeartbeat(t, d, conn.Conn, "public_beats")
		_ = beat(t, d.Beat, conn, "public_beats")
		if err := d.Fence(testContext(t), conn, id); err != nil {
			t.Fatal(err)
		}
		if _, _, err := d.InOrderApply(testContext(t), conn); err != nil {
			t.Fatal(err)
		}
		for _, text := range conn.texts {
			if !strings.HasPrefix(text, "/* replicated */ ") || strings.Count(text, "/* replicated") != 1 {
				t.Errorf("not marked: %s", text)
			}
			if v := classify.Classify(d.Kind, text); v.Hint != classify.NoHint {
				t.Errorf("a hint: %s", text)
			}
		}
	})
}

// An asynchronous commit is durable after three pauses of the WAL writer at most.
func TestSettlesOfPostgres(t *testing.T) {
	for delay, want := range map[string]time.Duration{
		"200ms": 600 * time.Millisecond, "10s": 30 * time.Second, "1min": 3 * time.Minute, "": 0, "200": 0, "soon": 0,
	} {
		conn := &canned{answers: []answer{postgresRow(false, "0/3000100", "0/3000148 8192 16MB "+delay, nil)}}
		if got := sample(t, dialect.For(classify.Postgres), conn).Settles; got != want {
			t.Errorf("wal_writer_delay %q: Settles is %v, want %v", delay, got, want)
		}
	}
}
