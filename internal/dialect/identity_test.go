package dialect_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/dialect"
	"github.com/sqlreplicated/replicated/internal/status"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// counted counts the texts that a driver connection is given.
type counted struct {
	driver.Conn
	texts []string
}

func (c *counted) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	c.texts = append(c.texts, text)
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, text, args)
}

func (c *counted) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	c.texts = append(c.texts, text)
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, text, args)
}

func identify(tb testing.TB, d *dialect.Dialect, conn driver.Conn) dialect.Identity {
	tb.Helper()
	id, err := d.Identify(testContext(tb), conn)
	if err != nil {
		tb.Fatalf("Identify: %v", err)
	}
	return id
}

func TestIdentifyTellsServersAndRoles(t *testing.T) {
	eachEngine(t, func(t *testing.T, c *replicatedtest.Cluster, d *dialect.Dialect) {
		admin := c.Primary().AdminDB(t)
		if _, err := admin.ExecContext(testContext(t), "CREATE TABLE t (a int)"); err != nil {
			t.Fatal(err)
		}
		if err := c.WaitCaughtUp(testContext(t)); err != nil {
			t.Fatal(err)
		}
		ids := map[bool]dialect.Identity{}
		for _, n := range c.Nodes() {
			// The application's user has no privilege on the server.
			conn := &counted{Conn: open(t, c.DriverName(), n.DSN())}
			id := identify(t, d, conn)
			if len(conn.texts) != 1 {
				t.Errorf("%s: %d queries, want 1: %q", n.Name(), len(conn.texts), conn.texts)
			}
			again := identify(t, d, open(t, c.DriverName(), n.AdminDSN()))
			if id.Server == "" || id.Server != again.Server {
				t.Errorf("%s: Server %q and %q on two connections", n.Name(), id.Server, again.Server)
			}
			if id.Flavor != d.Kind || id.ReadOnly != n.IsReplica() {
				t.Errorf("%s: Flavor %v, ReadOnly %v", n.Name(), id.Flavor, id.ReadOnly)
			}
			_, number, _ := strings.Cut(c.Version(), " ") // "MariaDB 10.11.19"
			if !strings.HasPrefix(id.Version, number) || id.VersionNum < 50600 {
				t.Errorf("%s: Version %q, %d; the cluster's is %q", n.Name(), id.Version, id.VersionNum, c.Version())
			}
			if id.AutocommitOff || id.Chains || id.Serializable || id.AsyncCommit || id.Fenced {
				t.Errorf("%s: a plain session has flags: %+v", n.Name(), id)
			}
			if pid := backendPID(t, conn, d.Kind); id.BackendPID != pid {
				t.Errorf("%s: BackendPID %d, want %d", n.Name(), id.BackendPID, pid)
			}
			ids[n.IsReplica()] = id
		}
		primary, replica := ids[false], ids[true]
		if primary.Server == replica.Server {
			t.Errorf("two servers have the same Server %q", primary.Server)
		}
		if d.Kind == classify.Postgres {
			if primary.Cluster == "" || primary.Cluster != replica.Cluster || primary.Lineage != primary.Cluster+"/1" || replica.Lineage != primary.Lineage {
				t.Errorf("lineage: primary %+v, replica %+v", primary, replica)
			}
			if !primary.LineageExact || replica.LineageExact {
				t.Errorf("LineageExact: primary %v, replica without pg_read_all_stats %v", primary.LineageExact, replica.LineageExact)
			}
		} else if primary.ServerID == 0 || primary.ServerID == replica.ServerID || strconv.Itoa(int(primary.ServerID)) != ask(t, open(t, c.DriverName(), c.Primary().DSN()), "SELECT @@server_id") {
			t.Errorf("ServerID: primary %d, replica %d", primary.ServerID, replica.ServerID)
		}
	})
}

func TestIdentifyNeedsNoPrivilege(t *testing.T) {
	eachEngine(t, func(t *testing.T, c *replicatedtest.Cluster, d *dialect.Dialect) {
		create := []string{"CREATE USER nobody IDENTIFIED BY 'nothing'"}
		dsn := func(n *replicatedtest.Node) string { return "nobody:nothing@tcp(" + n.Addr() + ")/" }
		if d.Kind == classify.Postgres {
			create = []string{"CREATE ROLE nobody LOGIN PASSWORD 'nothing'"}
			dsn = func(n *replicatedtest.Node) string {
				return "postgres://nobody:nothing@" + n.Addr() + "/" + replicatedtest.Database + "?sslmode=disable"
			}
		}
		mustRun(t, open(t, c.DriverName(), c.Primary().AdminDSN()), create...)
		if err := c.WaitCaughtUp(testContext(t)); err != nil {
			t.Fatal(err)
		}
		for _, n := range c.Nodes() {
			got := identify(t, d, open(t, c.DriverName(), dsn(n)))
			want := identify(t, d, open(t, c.DriverName(), n.DSN()))
			got.BackendPID = want.BackendPID
			// Between the two questions a server may write on its own account.
			if got.Written.Kind() != want.Written.Kind() || got.Applied.Kind() != want.Applied.Kind() {
				t.Errorf("%s: positions %v and %v, want %v and %v", n.Name(), got.Written, got.Applied, want.Written, want.Applied)
			}
			got.Written, got.Inserted, got.Applied = want.Written, want.Inserted, want.Applied
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %+v, want %+v", n.Name(), got, want)
			}
		}
	})
}

// backendPID asks what Identify should have found, in another way if there is one.
func backendPID(tb testing.TB, conn *counted, kind classify.Dialect) int64 {
	tb.Helper()
	if kind == classify.Postgres {
		pid, ok := status.BackendPID(conn.Conn)
		if !ok {
			tb.Fatal("no BackendKeyData")
		}
		return pid
	}
	var pid int64
	for _, digit := range ask(tb, conn, "SELECT CONNECTION_ID()") {
		pid = pid*10 + int64(digit-'0')
	}
	return pid
}

func TestIdentifyFindsTheFlavor(t *testing.T) {
	for engine, kind := range engines {
		if kind == classify.Postgres {
			continue
		}
		t.Run(engine.String(), func(t *testing.T) {
			c := replicatedtest.Start(t, engine, replicatedtest.Options{Replicas: -1, NoStatementLog: true})
			want := identify(t, dialect.For(kind), open(t, c.DriverName(), c.Primary().DSN()))
			for _, asked := range []classify.Dialect{classify.AnyMySQL, classify.MySQL, classify.MariaDB} {
				conn := &counted{Conn: open(t, c.DriverName(), c.Primary().DSN())}
				got := identify(t, dialect.For(asked), conn)
				got.BackendPID = want.BackendPID
				if !reflect.DeepEqual(got, want) {
					t.Errorf("asked for %v: %+v, want %+v", asked, got, want)
				}
				// MariaDB's question is asked twice, for not all of these know wsrep_on.
				if most := 4; len(conn.texts) > most || asked == kind && len(conn.texts) != 1 {
					t.Errorf("asked for %v: %d queries", asked, len(conn.texts))
				}
			}
		})
	}
}

func TestIdentifyPostgresSessions(t *testing.T) {
	c := replicatedtest.Start(t, replicatedtest.Postgres, replicatedtest.Options{Replicas: 1, NoStatementLog: true})
	d := dialect.For(classify.Postgres)
	plain := identify(t, d, open(t, "postgres", c.Primary().DSN()))
	with := func(tb testing.TB, key string) dialect.Identity {
		id := identify(tb, d, open(tb, "postgres", c.Primary().DSN(key)))
		if id.Server != plain.Server {
			tb.Errorf("%s: Server %q, else %q", key, id.Server, plain.Server)
		}
		return id
	}
	if id := with(t, "default_transaction_isolation=serializable"); !id.Serializable {
		t.Error("serializable default not seen")
	}
	if id := with(t, "synchronous_commit=off"); !id.AsyncCommit {
		t.Error("synchronous_commit=off not seen")
	}
	if id := with(t, "default_transaction_read_only=on"); !id.Fenced {
		t.Error("start-up parameter not seen")
	}
	with(t, "TimeZone=Asia/Tokyo")

	t.Run("functions of the same names in front", func(t *testing.T) {
		mustRun(t, open(t, "postgres", c.Primary().AdminDSN()),
			"CREATE SCHEMA evil",
			"CREATE FUNCTION evil.pg_is_in_recovery() RETURNS bool LANGUAGE sql AS 'SELECT true'",
			"CREATE FUNCTION evil.current_setting(text) RETURNS text LANGUAGE sql AS $$SELECT 'off'$$",
			"CREATE DOMAIN evil.text AS pg_catalog.text CHECK (false)",
			"GRANT USAGE ON SCHEMA evil TO public")
		if id := with(t, "search_path=evil,pg_catalog"); id.ReadOnly || id.AsyncCommit {
			t.Errorf("the search_path has changed the answer: %+v", id)
		}
	})

	t.Run("exact timeline with pg_read_all_stats", func(t *testing.T) {
		conn := open(t, "postgres", c.Replicas()[0].AdminDSN())
		// The receiver reports when it has connected, which may be later than
		// the standby's first answer.
		for end := time.Now().Add(10 * time.Second); !identify(t, d, conn).LineageExact; {
			if time.Now().After(end) {
				t.Fatal("not exact within 10 s")
			}
		}
	})

	t.Run("without the control file functions", func(t *testing.T) {
		mustRun(t, open(t, "postgres", c.Primary().AdminDSN()), "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM public")
		id := identify(t, d, open(t, "postgres", c.Primary().DSN()))
		if id.Lineage != "" || id.Cluster != "" || id.Server == "" || id.VersionNum != plain.VersionNum || id.ReadOnly {
			t.Errorf("%+v", id)
		}
		if !id.Written.IsZero() || !id.Inserted.IsZero() || !strings.Contains(id.NoPosition, "permission denied for function pg_control_system") ||
			!strings.Contains(id.NoPosition, "GRANT EXECUTE ON FUNCTION pg_control_system(), pg_control_checkpoint()") {
			t.Errorf("Written %v, NoPosition %q", id.Written, id.NoPosition)
		}
	})
}

func TestFenceRefusesWrites(t *testing.T) {
	eachEngine(t, func(t *testing.T, c *replicatedtest.Cluster, d *dialect.Dialect) {
		// A user who bypasses read_only, on a server that has it not.
		dsn := c.Primary().AdminDSN()
		if d.Kind != classify.Postgres {
			dsn = c.Primary().AdminDSN("autocommit=0", "completion_type=1")
		}
		mustRun(t, open(t, c.DriverName(), c.Primary().AdminDSN()), "CREATE TABLE f (a int)")
		conn := &counted{Conn: open(t, c.DriverName(), dsn)}
		id := identify(t, d, conn)
		if isMySQL := d.Kind != classify.Postgres; id.AutocommitOff != isMySQL || id.Chains != isMySQL {
			t.Errorf("AutocommitOff %v, Chains %v", id.AutocommitOff, id.Chains)
		}
		if err := d.Fence(testContext(t), conn, id); err != nil {
			t.Fatal(err)
		}
		err := run(testContext(t), conn, "INSERT INTO f VALUES (1)")
		if class := d.Class(err); class != dialect.Fence || !d.ReadOnlyRefusal(err) {
			t.Errorf("INSERT after Fence: %v (class %v)", err, class)
		}
		mustRun(t, conn, "BEGIN", "COMMIT")
		if got := status.Of(conn.Conn); got != (status.Status{Tx: status.Idle}) {
			t.Errorf("status after Fence and COMMIT: %+v", got)
		}

		// The usual connection takes no more than it must.
		keys := []string{}
		want := 1
		if d.Kind == classify.Postgres {
			keys, want = append(keys, "default_transaction_read_only=on"), 0
		}
		conn = &counted{Conn: open(t, c.DriverName(), c.Primary().DSN(keys...))}
		id = identify(t, d, conn)
		conn.texts = nil
		if err := d.Fence(testContext(t), conn, id); err != nil || len(conn.texts) != want {
			t.Errorf("Fence: %v, %d statements, want %d", err, len(conn.texts), want)
		}
		if err := run(testContext(t), conn, "INSERT INTO f VALUES (1)"); d.Class(err) != dialect.Fence {
			t.Errorf("INSERT after Fence: %v", err)
		}
	})
}

func TestRefusesStartupParameter(t *testing.T) {
	c := replicatedtest.Start(t, replicatedtest.Postgres, replicatedtest.Options{Replicas: -1, NoStatementLog: true})
	_, err := openError(c.DriverName(), c.Primary().DSN("no_such_parameter=on"))
	if !dialect.RefusesStartupParameter(err) {
		t.Errorf("RefusesStartupParameter(%v) = false", err)
	}
	for _, err := range []error{nil, driver.ErrBadConn, pgError("28P01"), pgError("57P03")} {
		if dialect.RefusesStartupParameter(err) {
			t.Errorf("RefusesStartupParameter(%v) = true", err)
		}
	}
	if !dialect.RefusesStartupParameter(pgError("08P01")) { // PgBouncer
		t.Error("RefusesStartupParameter(08P01) = false")
	}
}

func TestGenericAsksNothing(t *testing.T) {
	d := dialect.For(classify.Generic)
	id, err := d.Identify(context.Background(), nil)
	if id.NoPosition == "" || id.Server != "" || id.Flavor != classify.Generic || err != nil {
		t.Errorf("Identify = %+v, %v", id, err)
	}
	if id, err := d.Sample(context.Background(), nil); id.NoWritten() == "" || id.NoApplied("") == "" || err != nil {
		t.Errorf("Sample = %+v, %v", id, err)
	}
	if ok, why, err := d.InOrderApply(context.Background(), nil); ok || why == "" || err != nil {
		t.Errorf("InOrderApply = %v, %q, %v", ok, why, err)
	}
	if _, err := d.HeartbeatDDL("beat"); !errors.Is(err, dialect.ErrNoHeartbeat) {
		t.Errorf("HeartbeatDDL: %v", err)
	}
	if err := d.Fence(context.Background(), nil, id); err != nil {
		t.Errorf("Fence: %v", err)
	}
	if d.Replays() != 0 {
		t.Errorf("Replays() = %v", d.Replays())
	}
	if dialect.For(99) != d {
		t.Error("For(99) is not the generic dialect")
	}
}

func TestMySQLVersion(t *testing.T) {
	for s, want := range map[string]int{
		"10.11.19-MariaDB-0+deb12u1-log": 101119,
		"5.6.24-log":                     50624,
		"8.0.36-28":                      80036,
		"9.1.0":                          90100,
		"8.4":                            80400,
		"":                               0,
		"TiDB":                           0,
	} {
		if got := dialect.MySQLVersion(s); got != want {
			t.Errorf("version %q = %d, want %d", s, got, want)
		}
	}
}
