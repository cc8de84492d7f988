package dialect_test

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/dialect"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

func sourcesOf(t *testing.T, d *dialect.Dialect, conn driver.Conn) (sources []dialect.Source, known bool) {
	t.Helper()
	sources, known, err := d.Sources(testContext(t), conn)
	if err != nil {
		t.Fatal(err)
	}
	return sources, known
}

func TestSourcesOfServers(t *testing.T) {
	eachMySQL(t, func(t *testing.T, c *replicatedtest.Cluster, d *dialect.Dialect) {
		replica := c.Replicas()[0]
		primary, r := open(t, c.DriverName(), c.Primary().DSN()), open(t, c.DriverName(), replica.DSN())
		if got, known := sourcesOf(t, d, primary); len(got) > 0 || !known {
			t.Errorf("the primary: %+v, %v", got, known)
		}
		id := identify(t, d, primary)
		want := dialect.Source{ServerID: id.ServerID, Live: true}
		if c.Engine() == replicatedtest.MySQL {
			want.Server = id.Server
		}
		says := func(kind *dialect.Dialect, when string) {
			t.Helper()
			soon(t, func() string {
				if got, known := sourcesOf(t, kind, r); !known || !slices.Equal(got, []dialect.Source{want}) {
					return fmt.Sprintf("%s: %+v, %v; want %+v", when, got, known, want)
				}
				return ""
			})
		}
		is := func(when string) { t.Helper(); says(d, when) }
		is("as it began") // a moment after that MySQL knows whom it has reached
		says(dialect.For(classify.AnyMySQL), "asked as either")

		want.Live = false
		if err := replica.StopReceiving(); err != nil {
			t.Fatal(err)
		}
		is("its receiver stopped")
		want.Live = true
		if err := replica.ResumeReceiving(); err != nil {
			t.Fatal(err)
		}
		is("its receiver running again")
		if err := replica.PauseReplication(); err != nil {
			t.Fatal(err)
		}
		is("its applier stopped")
		want.Live = false
		if err := c.Primary().Kill(); err != nil {
			t.Fatal(err)
		}
		is("its source dead")
	})
}

func TestSourcesTakeAPrivilege(t *testing.T) {
	eachMySQL(t, func(t *testing.T, c *replicatedtest.Cluster, d *dialect.Dialect) {
		admin := open(t, c.DriverName(), c.Primary().AdminDSN())
		mustRun(t, admin, "CREATE USER nobody IDENTIFIED BY 'nothing'")
		caughtUp(t, c)
		dsn := "nobody:nothing@tcp(" + c.Replicas()[0].Addr() + ")/"
		if got, known := sourcesOf(t, d, open(t, c.DriverName(), dsn)); len(got) > 0 || known {
			t.Errorf("without a privilege: %+v, %v", got, known)
		}
		grant := "REPLICATION CLIENT"
		if c.Engine() == replicatedtest.MariaDB {
			grant = "SLAVE MONITOR"
		}
		mustRun(t, admin, "GRANT "+grant+" ON *.* TO nobody")
		caughtUp(t, c)
		if got, known := sourcesOf(t, d, open(t, c.DriverName(), dsn)); len(got) != 1 || !known {
			t.Errorf("with %s: %+v, %v", grant, got, known)
		}
	})
}

func TestSourcesByVersion(t *testing.T) {
	replica := func(uuid, id, io string) map[string]string {
		return map[string]string{"Source_UUID": uuid, "Source_Server_Id": id, "Replica_IO_Running": io, "Replica_SQL_Running": "Yes", "Channel_Name": "c"}
	}
	slave := func(uuid, id, io string) map[string]string {
		return map[string]string{"Master_UUID": uuid, "Master_Server_Id": id, "Slave_IO_Running": io, "Slave_SQL_Running": "Yes"}
	}
	maria := func(id, io string) map[string]string {
		return map[string]string{"Connection_name": "", "Master_Server_Id": id, "Slave_IO_Running": io, "Slave_SQL_Running": "No"}
	}
	tests := []struct {
		name    string
		kind    classify.Dialect
		version string
		comment string
		text    string
		rows    []map[string]string
		err     error
		want    []dialect.Source
		unknown bool
		fails   bool
	}{
		{name: "MySQL 8.4", version: "8.4.2", text: "SHOW REPLICA STATUS",
			rows: []map[string]string{replica(uuid, "7", "Yes"), replica(otherUUID, "8", "Connecting"), replica("", "0", "No")},
			want: []dialect.Source{{Server: uuid, ServerID: 7, Live: true}, {Server: otherUUID, ServerID: 8}, {}}},
		{name: "MySQL 8.0.22", version: "8.0.22", text: "SHOW REPLICA STATUS", rows: []map[string]string{replica(uuid, "4294967295", "Yes")},
			want: []dialect.Source{{Server: uuid, ServerID: 4294967295, Live: true}}},
		{name: "MySQL 8.0.21", version: "8.0.21-log", text: "SHOW SLAVE STATUS", rows: []map[string]string{slave(uuid, "7", "Yes")},
			want: []dialect.Source{{Server: uuid, ServerID: 7, Live: true}}},
		{name: "MySQL that follows none", version: "9.1.0", text: "SHOW REPLICA STATUS"},
		{name: "MariaDB", kind: classify.MariaDB, version: "11.8.3-MariaDB-log", text: "SHOW ALL SLAVES STATUS",
			rows: []map[string]string{maria("3", "Preparing"), maria("4", "Yes"), maria("5", "No")},
			want: []dialect.Source{{ServerID: 3}, {ServerID: 4, Live: true}, {ServerID: 5, Stopped: true}}},
		{name: "MariaDB by its comment", version: "10.11.19", comment: "mariadb.org binary distribution", text: "SHOW ALL SLAVES STATUS",
			rows: []map[string]string{maria("3", "Yes")}, want: []dialect.Source{{ServerID: 3, Live: true}}},
		{name: "no privilege", version: "8.4.2", text: "SHOW REPLICA STATUS", err: &mysql.MySQLError{Number: 1227}, unknown: true},
		{name: "no privilege, a fork's words", version: "5.7.44", text: "SHOW SLAVE STATUS", err: &mysql.MySQLError{Number: 1142}, unknown: true},
		{name: "another error", version: "8.4.2", text: "SHOW REPLICA STATUS", err: driver.ErrBadConn, fails: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.kind == classify.Generic {
				tt.kind = classify.MySQL
			}
			conn := &canned{answers: []answer{
				{part: "@@version", row: []driver.Value{tt.version, tt.comment}},
				{part: "SHOW", rows: tt.rows, err: tt.err},
			}}
			got, known, err := dialect.For(tt.kind).Sources(testContext(t), conn)
			if !slices.Equal(got, tt.want) || known == (tt.unknown || tt.fails) || (err != nil) != tt.fails || tt.fails && !errors.Is(err, tt.err) {
				t.Errorf("Sources: %+v, %v, %v; want %+v", got, known, err, tt.want)
			}
			if last := conn.texts[len(conn.texts)-1]; last != tt.text {
				t.Errorf("asked %q, want %q", last, tt.text)
			}
		})
	}
	for _, kind := range []classify.Dialect{classify.Postgres, classify.Generic} {
		conn := &canned{}
		if got, known, err := dialect.For(kind).Sources(testContext(t), conn); got != nil || known || err != nil || len(conn.texts) > 0 {
			t.Errorf("%v: %v, %v, %v after %q", kind, got, known, err, conn.texts)
		}
	}
}
