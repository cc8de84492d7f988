package dialect_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/dialect"
	"github.com/sqlreplicated/replicated/internal/position"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// TestFilePositionsThroughARotation: files follow each other, by number.
func TestFilePositionsThroughARotation(t *testing.T) {
	c := replicatedtest.Start(t, replicatedtest.MySQL, replicatedtest.Options{Replicas: 1, NoStatementLog: true})
	d := dialect.For(classify.MySQL)
	admin, r := open(t, c.DriverName(), c.Primary().AdminDSN()), open(t, c.DriverName(), c.Replicas()[0].AdminDSN())
	if !identify(t, d, admin).FilePositions {
		t.Skip("this MySQL has GTID positions")
	}
	mustRun(t, admin, "USE "+replicatedtest.Database, "CREATE TABLE t (a int)")
	caughtUp(t, c)
	var last dialect.Identity
	for i := range 12 { // through binlog.000009 to binlog.000010
		old := sample(t, d, r)
		mustRun(t, admin, "FLUSH LOGS")
		if i%2 == 0 {
			mustRun(t, admin, "INSERT INTO t VALUES (1)")
		}
		id := sample(t, d, admin)
		if i > 0 && !id.Written.Includes(last.Written) || id.Written.Equal(last.Written) {
			t.Errorf("after FLUSH LOGS: %v, before %v", id.Written, last.Written)
		}
		if old.AppliedFrom(id.Server).Contains(id.Written) {
			t.Errorf("replica at %v contains %v before it was written", old.AppliedFrom(id.Server), id.Written)
		}
		caughtUp(t, c)
		if now := sample(t, d, r); !now.AppliedFrom(id.Server).Contains(id.Written) {
			t.Errorf("replica at %v does not contain %v", now.AppliedFrom(id.Server), id.Written)
		}
		last = id
	}
	now := sample(t, d, r)
	other := "00000000-0000-0000-0000-000000000000"
	if p := now.AppliedFrom(other); !p.IsZero() || !strings.Contains(now.NoApplied(other), "another source") {
		t.Errorf("applied from another source: %v, %q", p, now.NoApplied(other))
	}
	if !now.Written.IsZero() || now.NoWritten() == "" {
		t.Errorf("a read-only server has written %v", now.Written)
	}
	if primary := sample(t, d, admin); primary.NoApplied(other) != "the server replicates from no other one" {
		t.Errorf("the primary: %q", primary.NoApplied(other))
	}
}

func TestFilePositionsTakeAPrivilege(t *testing.T) {
	c := replicatedtest.Start(t, replicatedtest.MySQL, replicatedtest.Options{Replicas: 1, NoStatementLog: true})
	d := dialect.For(classify.MySQL)
	admin := open(t, c.DriverName(), c.Primary().AdminDSN())
	if !identify(t, d, admin).FilePositions {
		t.Skip("this MySQL has GTID positions")
	}
	mustRun(t, admin, "CREATE USER nobody IDENTIFIED BY 'nothing'")
	caughtUp(t, c)
	nobody := func(n *replicatedtest.Node) dialect.Identity {
		return sample(t, d, open(t, c.DriverName(), "nobody:nothing@tcp("+n.Addr()+")/"))
	}
	for _, n := range c.Nodes() {
		id := nobody(n)
		if !strings.Contains(id.NoPosition, "GRANT REPLICATION CLIENT") || !id.Written.IsZero() || id.NoApplied("x") != id.NoPosition || id.Server == "" {
			t.Errorf("%s: %+v", n.Name(), id)
		}
	}
	mustRun(t, admin, "GRANT REPLICATION CLIENT ON *.* TO nobody")
	caughtUp(t, c)
	primary, replica := nobody(c.Primary()), nobody(c.Replicas()[0])
	if primary.NoPosition != "" || !replica.AppliedFrom(primary.Server).Contains(primary.Written) {
		t.Errorf("primary %+v, replica %+v", primary, replica)
	}
}

// canned answers texts by what stands in them, the first that fits.
type canned struct {
	driver.Conn
	texts   []string
	answers []answer
}

type answer struct {
	part string
	row  []driver.Value // one row, or
	rows []map[string]string
	err  error
}

func (c *canned) QueryContext(_ context.Context, text string, _ []driver.NamedValue) (driver.Rows, error) {
	text = strings.TrimPrefix(text, "/* replicated */ ")
	c.texts = append(c.texts, text)
	for _, a := range c.answers {
		if !strings.Contains(text, a.part) {
			continue
		}
		if a.err != nil {
			return nil, a.err
		}
		if a.row != nil {
			return &namedRows{columns: make([]string, len(a.row)), rows: [][]driver.Value{a.row}}, nil
		}
		r := &namedRows{}
		for i, row := range a.rows {
			if i == 0 {
				for name := range row {
					r.columns = append(r.columns, name)
				}
				slices.Sort(r.columns)
			}
			var values []driver.Value
			for _, name := range r.columns {
				values = append(values, []byte(row[name]))
			}
			r.rows = append(r.rows, values)
		}
		return r, nil
	}
	return nil, errors.New("not expected: " + text)
}

type namedRows struct {
	columns []string
	rows    [][]driver.Value
}

func (r *namedRows) Columns() []string { return r.columns }
func (r *namedRows) Close() error      { return nil }
func (r *namedRows) Next(dest []driver.Value) error {
	again := catalogRows{rows: r.rows}
	err := again.Next(dest)
	r.rows = again.rows
	return err
}

const uuid, otherUUID = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"

// server is what a MySQL of a version says about itself.
type server struct {
	version, comment, base, mode, executed string
	readOnly, noLog                        bool
	noUUID                                 string // another server_uuid
}

func (s server) identity() answer {
	bit := map[bool]int64{true: 1}
	if s.base == "" {
		s.base = "/usr/"
	}
	id := uuid
	if s.noUUID != "" {
		id = s.noUUID
	}
	return answer{part: "@@server_uuid", row: []driver.Value{s.version, s.comment, "host", int64(3306), int64(7), int64(1), "NO_CHAIN", int64(9),
		bit[s.readOnly], bit[s.readOnly], bit[!s.noLog], id, s.mode, s.executed, s.base}}
}

func TestSampleOfMySQLByVersion(t *testing.T) {
	refused := &mysql.MySQLError{Number: 1227}
	master := map[string]string{"File": "binlog.000012", "Position": "345", "Executed_Gtid_Set": ""}
	slave := func(source, file, offset string) map[string]string {
		return map[string]string{"Master_UUID": source, "Relay_Master_Log_File": file, "Exec_Master_Log_Pos": offset, "Master_Log_File": "binlog.000099", "Relay_Log_Pos": "1"}
	}
	replica := func(source, file, offset string) map[string]string {
		return map[string]string{"Source_UUID": source, "Relay_Source_Log_File": file, "Exec_Source_Log_Pos": offset, "Source_Log_File": "binlog.000099"}
	}
	at := position.FilePosition
	tests := []struct {
		name    string
		server  server
		answers []answer
		asked   []string // after the identity, and without its repetition
		written position.Position
		applied position.Position // from otherUUID
		none    string            // part of NoPosition
		noWrite string            // part of NoWritten
	}{
		{name: "5.7 without GTID", server: server{version: "5.7.44-log", mode: "OFF"},
			answers: []answer{{part: "SHOW MASTER STATUS", rows: []map[string]string{master}}, {part: "SHOW SLAVE STATUS"}},
			asked:   []string{"SHOW MASTER STATUS", "SHOW SLAVE STATUS"}, written: at(uuid, "binlog.000012", 345)},
		{name: "8.0.21", server: server{version: "8.0.21", mode: "OFF_PERMISSIVE", readOnly: true},
			answers: []answer{{part: "SHOW SLAVE STATUS", rows: []map[string]string{slave(otherUUID, "bin.000003", "4")}}},
			asked:   []string{"SHOW SLAVE STATUS"}, applied: at(otherUUID, "bin.000003", 4), noWrite: "read-only"},
		{name: "8.0.22, several channels", server: server{version: "8.0.22", mode: "ON_PERMISSIVE", readOnly: true},
			answers: []answer{{part: "SHOW REPLICA STATUS", rows: []map[string]string{
				replica("", "", "0"), replica(uuid, "bin.000009", "9"), replica(otherUUID, "bin.1000000", "44")}}},
			asked: []string{"SHOW REPLICA STATUS"}, applied: at(otherUUID, "bin.1000000", 44), noWrite: "read-only"},
		{name: "8.2 writes and follows", server: server{version: "8.2.0", mode: "OFF"},
			answers: []answer{{part: "SHOW BINARY LOG STATUS", rows: []map[string]string{master}},
				{part: "SHOW REPLICA STATUS", rows: []map[string]string{replica(otherUUID, "bin.000001", "4")}}},
			asked: []string{"SHOW BINARY LOG STATUS", "SHOW REPLICA STATUS"}, written: at(uuid, "binlog.000012", 345), applied: at(otherUUID, "bin.000001", 4)},
		{name: "a replica that has applied nothing", server: server{version: "8.4.2", mode: "OFF", readOnly: true},
			answers: []answer{{part: "SHOW REPLICA STATUS", rows: []map[string]string{replica(otherUUID, "", "0")}}},
			asked:   []string{"SHOW REPLICA STATUS"}, noWrite: "read-only"},
		{name: "no privilege", server: server{version: "8.4.2", mode: "OFF"},
			answers: []answer{{part: "SHOW", err: refused}},
			asked:   []string{"SHOW BINARY LOG STATUS", "SHOW REPLICA STATUS"}, none: "GRANT REPLICATION CLIENT", noWrite: "GRANT REPLICATION CLIENT"},
		{name: "no privilege on a replica", server: server{version: "5.6.51", mode: "ON", readOnly: true},
			answers: []answer{{part: "SHOW", err: refused}},
			asked:   []string{"SHOW SLAVE STATUS"}, none: "GRANT REPLICATION CLIENT", noWrite: "read-only"},
		{name: "no log", server: server{version: "5.6.51", mode: "OFF"},
			answers: []answer{{part: "SHOW"}},
			asked:   []string{"SHOW MASTER STATUS", "SHOW SLAVE STATUS"}, none: "log_bin is OFF", noWrite: "log_bin is OFF"},
		{name: "GTID", server: server{version: "8.0.36", mode: "ON", executed: uuid + ":1-5,\n" + otherUUID + ":1-7"},
			written: set(t, uuid+":1-5,"+otherUUID+":1-7"), applied: set(t, uuid+":1-5,"+otherUUID+":1-7")},
		{name: "GTID, empty", server: server{version: "8.0.36", mode: "ON"}, written: set(t, ""), applied: set(t, "")},
		{name: "GTID, replica without a log", server: server{version: "8.0.36", mode: "ON", executed: uuid + ":1-5", noLog: true, readOnly: true},
			applied: set(t, uuid+":1-5"), noWrite: "log_bin is OFF"},
		{name: "GTID, primary without a log", server: server{version: "8.0.36", mode: "ON", noLog: true},
			applied: set(t, ""), none: "log_bin is OFF", noWrite: "log_bin is OFF"},
		{name: "tagged GTID", server: server{version: "9.1.0", mode: "ON", executed: uuid + ":1-5:tag:1-3"},
			written: set(t, uuid+":1-5:tag:1-3"), applied: set(t, uuid+":1-5:tag:1-3")},
		{name: "not a set", server: server{version: "8.0.36", mode: "ON", executed: "1-5"}, none: "gtid_executed: ", noWrite: "gtid_executed: "},
		{name: "XtraDB Cluster", server: server{version: "8.0.35-27.1", comment: "Percona XtraDB Cluster (GPL), Release rel27, Revision 84d9464, WSREP version 26.1.4.3", mode: "ON", executed: uuid + ":1-5"},
			none: "Galera", noWrite: "Galera"},
		{name: "Aurora", server: server{version: "8.0.32", comment: "Source distribution", base: "/rdsdbbin/oscar-8.0.mysql_aurora.3.05.2.0/", mode: "ON", executed: uuid + ":1-5"},
			none: "Aurora", noWrite: "Aurora"},
		{name: "RDS", server: server{version: "8.0.36", base: "/rdsdbbin/mysql-8.0.36.R1/", mode: "ON", executed: uuid + ":1-5"},
			written: set(t, uuid+":1-5"), applied: set(t, uuid+":1-5")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			conn := &canned{answers: append([]answer{tt.server.identity()}, tt.answers...)}
			id := sample(t, dialect.For(classify.MySQL), conn)
			if !id.Written.Equal(tt.written) || !id.AppliedFrom(otherUUID).Equal(tt.applied) {
				t.Errorf("Written %v, applied %v; want %v, %v", id.Written, id.AppliedFrom(otherUUID), tt.written, tt.applied)
			}
			if !says(id.NoPosition, tt.none) || !says(id.NoWritten(), tt.noWrite) {
				t.Errorf("NoPosition %q, NoWritten %q", id.NoPosition, id.NoWritten())
			}
			if id.Written.IsZero() == (id.NoWritten() == "") || id.AppliedFrom(otherUUID).IsZero() == (id.NoApplied(otherUUID) == "") {
				t.Errorf("a reason and a position, or neither: %+v", id)
			}
			asked := conn.texts[1:]
			if len(asked) > 1 { // a writable server's role is read after its position
				if last := asked[len(asked)-1]; !strings.Contains(last, "@@global.read_only") {
					t.Errorf("the last question is %q", last)
				}
				asked = asked[:len(asked)-1]
			}
			if !slices.Equal(asked, tt.asked) {
				t.Errorf("asked %q, want %q", asked, tt.asked)
			}
		})
	}
}

// says reports that a reason has the part, or that neither is there.
func says(why, part string) bool { return strings.Contains(why, part) && (why == "") == (part == "") }

func set(tb testing.TB, s string) position.Position {
	tb.Helper()
	p, err := position.ParseGTIDSet(s)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// Behind a proxy the position may be one server's, and the role another's.
func TestSampleOfTwoServers(t *testing.T) {
	asked := 0
	conn := &changing{next: func() answer {
		asked++
		if asked == 1 {
			return server{version: "5.6.51", mode: "ON"}.identity()
		}
		return server{version: "5.6.51", mode: "ON", noUUID: otherUUID}.identity()
	}}
	id := sample(t, dialect.For(classify.MySQL), conn)
	if id.Server != otherUUID || !id.Written.IsZero() || !strings.Contains(id.NoPosition, "two servers") {
		t.Errorf("%+v", id)
	}
}

// changing is canned with another identity each time.
type changing struct {
	canned
	next func() answer
}

func (c *changing) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	c.answers = []answer{
		{part: "SHOW MASTER STATUS", rows: []map[string]string{{"File": "binlog.000012", "Position": "345"}}},
		{part: "SHOW SLAVE STATUS"},
	}
	if !strings.Contains(text, "SHOW") {
		c.answers = []answer{c.next()}
	}
	return c.canned.QueryContext(ctx, text, args)
}

func TestSampleReportsErrors(t *testing.T) {
	boom := errors.New("boom")
	legacy := server{version: "5.6.51", mode: "ON"}.identity()
	master := answer{part: "SHOW MASTER STATUS", rows: []map[string]string{{"File": "binlog.000012", "Position": "345"}}}
	for name, answers := range map[string][]answer{
		"identity":          {{part: "", err: boom}},
		"SHOW MASTER":       {legacy, {part: "SHOW MASTER", err: boom}},
		"SHOW SLAVE":        {legacy, master, {part: "SHOW SLAVE", err: boom}},
		"no number":         {legacy, {part: "SHOW MASTER STATUS", rows: []map[string]string{{"File": "binlog.000012", "Position": "many"}}}},
		"no column":         {legacy, {part: "SHOW MASTER STATUS", rows: []map[string]string{{"File": "binlog.000012"}}}},
		"channels no end":   {legacy, master, {part: "SHOW SLAVE", rows: slices.Repeat([]map[string]string{{"Master_UUID": uuid}}, 257)}},
		"number of columns": {{part: "@@server_uuid", row: []driver.Value{"5.6.51"}}},
	} {
		t.Run(name, func(t *testing.T) {
			id, err := dialect.For(classify.MySQL).Sample(t.Context(), &canned{answers: answers})
			if err == nil || id.Server != "" || answers[len(answers)-1].err != nil && !errors.Is(err, boom) {
				t.Errorf("%+v, %v", id, err)
			}
		})
	}
}

func TestSampleOfMariaDB(t *testing.T) {
	unknown := &mysql.MySQLError{Number: 1193}
	identity := func(part, version string, readOnly, log int64, applied string, more ...driver.Value) answer {
		return answer{part: part, row: append([]driver.Value{version, "MariaDB Server", "host", int64(3306), int64(7), int64(1), "NO_CHAIN", int64(9),
			readOnly, int64(0), log, "0-8-4,0-7-5", "0-7-5", applied}, more...)}
	}
	const version = "10.11.19-MariaDB"
	primary, err := position.MariaDBPrimary("0-7-5", "0-8-4,0-7-5", 7)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name    string
		answers []answer
		written position.Position
		none    string
		noWrite string
		queries int
	}{
		{name: "with the variable", answers: []answer{identity("wsrep_on", version, 0, 1, "", int64(0))}, written: primary, queries: 1},
		{name: "built without Galera", answers: []answer{{part: "wsrep_on", err: unknown}, identity("gtid_slave_pos", version, 0, 1, "")}, written: primary, queries: 2},
		{name: "a Galera node", answers: []answer{identity("wsrep_on", version, 0, 1, "", int64(1))}, none: "Galera", noWrite: "Galera", queries: 1},
		{name: "an old one's package", answers: []answer{{part: "wsrep_on", err: unknown}, identity("gtid_slave_pos", "10.0.38-MariaDB-wsrep", 0, 1, "")},
			none: "Galera", noWrite: "Galera", queries: 2},
		{name: "a primary without a log", answers: []answer{identity("wsrep_on", version, 0, 0, "", int64(0))}, none: "log_bin is OFF", noWrite: "log_bin is OFF", queries: 1},
		{name: "a replica without a log", answers: []answer{identity("wsrep_on", version, 1, 0, "0-7-5", int64(0))}, noWrite: "log_bin is OFF", queries: 1},
		{name: "not a list", answers: []answer{identity("wsrep_on", version, 1, 0, "0-7", int64(0))}, none: "gtid_slave_pos", noWrite: "gtid_slave_pos", queries: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			conn := &canned{answers: tt.answers}
			id := sample(t, dialect.For(classify.MariaDB), conn)
			if !id.Written.Equal(tt.written) || !says(id.NoPosition, tt.none) || !says(id.NoWritten(), tt.noWrite) || len(conn.texts) != tt.queries {
				t.Errorf("Written %v, NoPosition %q, NoWritten %q, %d queries", id.Written, id.NoPosition, id.NoWritten(), len(conn.texts))
			}
			if id.Applied.IsZero() != (tt.none == "" == false && tt.noWrite != "log_bin is OFF") {
				t.Errorf("Applied %v", id.Applied)
			}
			if id.Flavor != classify.MariaDB || id.ServerID != 7 {
				t.Errorf("Flavor %v, ServerID %d", id.Flavor, id.ServerID)
			}
		})
	}
}

// A server that calls itself MySQL and knows little of it.
func TestSampleOfAFork(t *testing.T) {
	unknown := &mysql.MySQLError{Number: 1193}
	conn := &canned{answers: []answer{
		{part: "gtid", err: unknown},
		{part: "@@version", row: []driver.Value{"5.7.25-Fork", "", "host", int64(3306), int64(0), int64(1), "NO_CHAIN", int64(9), int64(0)}},
	}}
	id := sample(t, dialect.For(classify.AnyMySQL), conn)
	if id.Server == "" || !strings.Contains(id.NoPosition, "system variables") || id.NoWritten() == "" || id.NoApplied("") == "" {
		t.Errorf("%+v", id)
	}
	_ = fmt.Sprint(id) // what is logged of it must not fail on zero positions
}
