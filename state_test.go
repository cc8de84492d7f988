package replicated_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// oneConn returns a handle whose pool holds one connection, so that each use of
// it is a new check-out of the same one.
func oneConn(t *testing.T, c *replicatedtest.Cluster, keys ...string) *sql.DB {
	t.Helper()
	db := open(t, c, append([]string{"replicated.consistency=eventual"}, keys...)...)
	db.SetMaxOpenConns(1)
	return db
}

// checkOut takes the handle's connection for the length of the test, or until
// give is called.
func checkOut(t *testing.T, db *sql.DB) (conn *sql.Conn, give func()) {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return conn, func() {
		if err := conn.Close(); err != nil && !errors.Is(err, sql.ErrConnDone) {
			t.Error(err)
		}
	}
}

// texts for one engine; an engine that lacks the feature has none.
type byEngine map[replicatedtest.Engine]string

func mysqls(text string) byEngine {
	return byEngine{replicatedtest.MariaDB: text, replicatedtest.MySQL: text}
}

func postgresOnly(text string) byEngine { return byEngine{replicatedtest.Postgres: text} }

func everywhere(text string) byEngine {
	m := mysqls(text)
	m[replicatedtest.Postgres] = text
	return m
}

// State that replicas lack holds the connection on the primary, and is forgotten
// with the check-out: a pin that outlives it would send its next user's reads to
// the primary for ever.
func TestPinsEndWithTheCheckOut(t *testing.T) {
	for _, tt := range []struct {
		name  string
		set   byEngine
		unset byEngine // before the connection goes back; nil: it is left behind
	}{
		{"temporary table", everywhere("CREATE TEMPORARY TABLE pin_tmp (id int)"), everywhere("DROP TABLE pin_tmp")},
		{"advisory lock", postgresOnly("SELECT pg_try_advisory_lock(7)"), postgresOnly("SELECT pg_advisory_unlock(7)")},
		{"named lock", mysqls("SELECT GET_LOCK('pin', 0)"), mysqls("SELECT RELEASE_LOCK('pin')")},
		{"prepared by SQL", postgresOnly("PREPARE pin_p AS SELECT 1"), postgresOnly("DEALLOCATE pin_p")},
		{"prepared by SQL", mysqls("PREPARE pin_p FROM 'SELECT 1'"), mysqls("DEALLOCATE PREPARE pin_p")},
		{"LISTEN", postgresOnly("LISTEN pin_channel"), postgresOnly("UNLISTEN pin_channel")},
		{"user variable", mysqls("SET @pin := 5"), nil},
		{"another setting", postgresOnly("SET work_mem = '5MB'"), postgresOnly("RESET work_mem")},
		{"another setting", mysqls("SET SESSION sort_buffer_size = 262144"), nil},
		{"anonymous block", postgresOnly("DO $$ BEGIN PERFORM 1; END $$"), nil},
		{"table lock", mysqls("LOCK TABLES %s READ"), mysqls("UNLOCK TABLES")},
		{"cursor", postgresOnly("DECLARE pin_c CURSOR WITH HOLD FOR SELECT 1"), postgresOnly("CLOSE pin_c")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
				set, ok := tt.set[c.Engine()]
				if !ok {
					return
				}
				name := table(t, c, "id int")
				c.ResetStatements()
				db := oneConn(t, c)
				conn, give := checkOut(t, db)
				queryInt(t, conn, "SELECT 10 + count(*) FROM "+name)
				mustExec(t, conn, strings.ReplaceAll(set, "%s", name))
				queryInt(t, conn, "SELECT 20 + count(*) FROM "+name)
				if unset, ok := tt.unset[c.Engine()]; ok {
					mustExec(t, conn, unset)
					queryInt(t, conn, "SELECT 30 + count(*) FROM "+name)
					onlyPrimary(t, c, "SELECT 30")
				}
				give()
				queryInt(t, db, "SELECT 40 + count(*) FROM "+name)
				onlyReplicas(t, c, "SELECT 10")
				onlyPrimary(t, c, "SELECT 20")
				onlyReplicas(t, c, "SELECT 40")
			})
		})
	}
}

// Roles and custom settings decide what a read may see. They pin for as long as
// the connection has them, whoever uses it.
func TestRolesAndCustomSettingsOutliveTheCheckOut(t *testing.T) {
	c := sharedCluster(t, replicatedtest.Postgres)
	name := table(t, c, "id int")
	admin := c.Primary().AdminDB(t)
	mustExec(t, admin, "DROP ROLE IF EXISTS pin_role")
	mustExec(t, admin, "CREATE ROLE pin_role")
	mustExec(t, admin, "GRANT pin_role TO "+replicatedtest.AppUser)
	mustExec(t, admin, "GRANT SELECT ON "+name+" TO pin_role")
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_, _ = admin.ExecContext(ctx, "DROP OWNED BY pin_role")
		_, _ = admin.ExecContext(ctx, "DROP ROLE pin_role")
	})
	caughtUp(t, c)

	for _, tt := range []struct{ name, set, reset string }{
		{"role", "SET ROLE pin_role", "RESET ROLE"},
		{"role and all", "SET ROLE pin_role", "DISCARD ALL"},
		{"authorization", "SET SESSION AUTHORIZATION " + replicatedtest.AppUser, "RESET SESSION AUTHORIZATION"},
		{"custom setting", "SET app.tenant = '42'", "RESET ALL"},
		{"custom setting and all", "SET app.tenant = '42'", "DISCARD ALL"},
		{"custom setting by function", "SELECT set_config('app.tenant', '42', false)", "RESET ALL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c.ResetStatements()
			db := oneConn(t, c)
			mustExec(t, db, tt.set)
			queryInt(t, db, "SELECT 10 + count(*) FROM "+name)
			mustExec(t, db, "SELECT 1")
			queryInt(t, db, "SELECT 20 + count(*) FROM "+name)
			mustExec(t, db, tt.reset)
			queryInt(t, db, "SELECT 30 + count(*) FROM "+name)
			onlyPrimary(t, c, "SELECT 10")
			onlyPrimary(t, c, "SELECT 20")
			onlyReplicas(t, c, "SELECT 30")
		})
	}
}

// Session variables of the closed list go with the connection's reads to the
// replicas, and stay with the connection, as they do without us.
func TestSessionVariablesReachReplicas(t *testing.T) {
	for _, tt := range []struct {
		name      string
		set, read byEngine
		want      string
		other     string // what another connection has, if that is known
	}{
		{"time zone", postgresOnly("SET TIME ZONE 'Asia/Tokyo'"), postgresOnly("SELECT current_setting('TimeZone')"), "Asia/Tokyo", ""},
		{"time zone as SET has it", postgresOnly("SET TimeZone TO 'Asia/Tokyo'"), postgresOnly("SELECT to_char(timestamptz '2026-01-01 00:00Z', 'HH24')"), "09", ""},
		{"date style", postgresOnly("SET DateStyle = 'German'"), postgresOnly("SELECT (date '2026-02-01')::text"), "01.02.2026", "2026-02-01"},
		{"interval style", postgresOnly("SET IntervalStyle = 'iso_8601'"), postgresOnly("SELECT (interval '1 day')::text"), "P1D", "1 day"},
		{"search path", postgresOnly("SET search_path = pg_catalog, public"), postgresOnly("SELECT current_setting('search_path')"), "pg_catalog, public", `"$user", public`},
		{"statement timeout", postgresOnly("SET statement_timeout = '17s'"), postgresOnly("SELECT current_setting('statement_timeout')"), "17s", "0"},
		{"lock timeout", postgresOnly("SET lock_timeout = '18s'"), postgresOnly("SELECT current_setting('lock_timeout')"), "18s", "0"},
		{"time zone", mysqls("SET time_zone = '+09:00'"), mysqls("SELECT HOUR(FROM_UNIXTIME(0))"), "9", "0"},
		{"computed sql_mode", mysqls("SET sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES')"), mysqls(`SELECT 'x' AS "quoted"`), "x", ""},
		{"names", mysqls("SET NAMES latin1"), mysqls("SELECT CHARSET('x')"), "latin1", "utf8mb4"},
		{"database", mysqls("USE mysql"), mysqls("SELECT CONCAT(DATABASE(), '')"), "mysql", replicatedtest.Database},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
				set, ok := tt.set[c.Engine()]
				if !ok {
					return
				}
				if tt.name == "database" {
					mustExec(t, c.Primary().AdminDB(t), "GRANT SELECT ON mysql.* TO '"+replicatedtest.AppUser+"'@'%'")
					caughtUp(t, c)
				}
				read := tt.read[c.Engine()]
				c.ResetStatements()
				db, other := oneConn(t, c), oneConn(t, c)
				text := func(db *sql.DB) (s string) {
					if err := db.QueryRowContext(t.Context(), read).Scan(&s); err != nil {
						t.Fatalf("%s: %v", read, err)
					}
					return s
				}
				mustExec(t, db, set)
				for range 10 { // on either replica, by either connection in turn
					if got := text(db); got != tt.want {
						t.Errorf("after %s, %s = %q, want %q", set, read, got, tt.want)
					}
					if tt.other == "" {
						continue
					}
					if got := text(other); got != tt.other {
						t.Errorf("on another connection %s = %q, want %q", read, got, tt.other)
					}
				}
				onlyReplicas(t, c, read)
			})
		})
	}
}

// A SET inside a transaction counts once that is over, for what it then is.
func TestSessionVariableInATransaction(t *testing.T) {
	c := sharedCluster(t, replicatedtest.Postgres)
	db := oneConn(t, c)
	zone := func() (s string) {
		if err := db.QueryRowContext(t.Context(), "SELECT current_setting('TimeZone')").Scan(&s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := zone()
	for _, commit := range []bool{false, true} {
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		mustExec(t, tx, "SET TIME ZONE 'Asia/Tokyo'")
		end, want := tx.Rollback, before
		if commit {
			end, want = tx.Commit, "Asia/Tokyo"
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if got := zone(); got != want {
			t.Errorf("commit=%v: afterwards the time zone is %q, want %q", commit, got, want)
		}
	}
	onlyReplicas(t, c, "SELECT current_setting")
}

// The connection itself is asked whether it is in a transaction: the texts do not
// tell.
func TestTransactionsThatTextsDoNotShow(t *testing.T) {
	for _, tt := range []struct {
		name  string
		begin byEngine
		end   byEngine
	}{
		{"raw", everywhere("BEGIN"), everywhere("COMMIT")},
		{"executable comment", mysqls("/*!50000 begin */"), mysqls("/*!50000 commit */")},
		{"a procedure that begins", mysqls("CALL begin_it()"), mysqls("ROLLBACK")},
		{"autocommit off", mysqls("SET autocommit = 0"), mysqls("SET autocommit = 1")},
		{"dynamic", byEngine{replicatedtest.MariaDB: "EXECUTE IMMEDIATE 'START TRANSACTION'"}, mysqls("COMMIT")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
				begin, ok := tt.begin[c.Engine()]
				if !ok {
					return
				}
				name := table(t, c, "id int PRIMARY KEY")
				if strings.HasPrefix(begin, "CALL") {
					db := bare(t, c.Primary())
					mustExec(t, db, "DROP PROCEDURE IF EXISTS begin_it")
					mustExec(t, db, "CREATE PROCEDURE begin_it() START TRANSACTION")
				}
				caughtUp(t, c)
				c.ResetStatements()
				db := oneConn(t, c)
				mustExec(t, db, begin)
				// Each is a check-out of its own, on the same connection.
				mustExec(t, db, "INSERT INTO "+name+" (id) VALUES (1)")
				if n := queryInt(t, db, "SELECT 10 + count(*) FROM "+name); n != 11 {
					t.Errorf("inside the transaction its own row is not seen: %d", n)
				}
				mustExec(t, db, tt.end[c.Engine()])
				queryInt(t, db, "SELECT 20 + count(*) FROM "+name)
				onlyPrimary(t, c, "SELECT 10")
				onlyReplicas(t, c, "SELECT 20")
			})
		})
	}
}

// Every statement of a read-write transaction runs on the primary, whatever else
// is asked for.
func TestTransactionsRunOnThePrimary(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		name := table(t, c, "id int PRIMARY KEY")
		c.ResetStatements()
		db := open(t, c, "replicated.consistency=eventual")
		stmt, err := db.PrepareContext(t.Context(), "SELECT 30 + count(*) FROM "+name)
		if err != nil {
			t.Fatal(err)
		}
		defer stmt.Close()
		c.ResetStatements()
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		mustExec(t, tx, "INSERT INTO "+name+" (id) VALUES (1)")
		queryInt(t, tx, "SELECT 10 + count(*) FROM "+name)
		if err := tx.QueryRowContext(replicated.WithReplica(t.Context()), "SELECT /* replicated:replica */ 20 + count(*) FROM "+name).Scan(new(int)); err != nil {
			t.Error(err)
		}
		if err := tx.StmtContext(t.Context(), stmt).QueryRowContext(t.Context()).Scan(new(int)); err != nil {
			t.Error(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"SELECT 10", "20 + count", "SELECT 30", "INSERT INTO"} {
			onlyPrimary(t, c, part)
		}
	})
}

// A read-only transaction runs wholly on one replica.
func TestReadOnlyTransactions(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		name := table(t, c, "id int PRIMARY KEY")
		begin := func(db *sql.DB, level sql.IsolationLevel) *sql.Tx {
			tx, err := db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true, Isolation: level})
			if err != nil {
				t.Fatal(err)
			}
			return tx
		}
		run := func(db *sql.DB, level sql.IsolationLevel) {
			tx := begin(db, level)
			queryInt(t, tx, "SELECT 10 + count(*) FROM "+name)
			queryInt(t, tx, "SELECT 20 + count(*) FROM "+name)
			if err := tx.Commit(); err != nil {
				t.Error(err)
			}
		}
		db := open(t, c, "replicated.consistency=eventual")

		c.ResetStatements()
		run(db, sql.LevelDefault)
		onlyReplicas(t, c, "SELECT 10")
		if a, b := ranOn(c, "SELECT 10"), ranOn(c, "SELECT 20"); len(a) != 1 || !slices.Equal(a, b) {
			t.Errorf("one transaction ran on %v and on %v", a, b)
		}

		c.ResetStatements()
		run(db, sql.LevelSerializable)
		onlyPrimary(t, c, "SELECT 10")

		c.ResetStatements()
		run(open(t, c, "replicated.consistency=eventual", "replicated.readonly_tx=primary"), sql.LevelDefault)
		onlyPrimary(t, c, "SELECT 10")

		c.ResetStatements()
		tx := begin(db, sql.LevelDefault)
		_, err := tx.ExecContext(t.Context(), "INSERT INTO "+name+" (id) VALUES (1)")
		if !errors.Is(err, replicated.ErrReadOnly) || !strings.Contains(err.Error(), "replicated.readonly_tx") {
			t.Errorf("a write in it: %v, want ErrReadOnly, naming replicated.readonly_tx", err)
		}
		queryInt(t, tx, "SELECT 30 + count(*) FROM "+name)
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
		if got := ranOn(c, "INSERT INTO "+name); len(got) != 0 {
			t.Errorf("the refused write ran on %v", got)
		}
	})
}

// A replica connection with autocommit off would open a snapshot at its first read
// and show it to everybody, for ever.
func TestAutocommitOffServesNoOldSnapshot(t *testing.T) {
	for _, byServer := range []bool{false, true} {
		t.Run(fmt.Sprintf("server=%v", byServer), func(t *testing.T) {
			for _, e := range []replicatedtest.Engine{replicatedtest.MariaDB, replicatedtest.MySQL} {
				t.Run(e.String(), func(t *testing.T) {
					options, keys := replicatedtest.Options{}, []string{"autocommit=0"}
					if byServer {
						options.Settings, keys = map[string]string{"autocommit": "0"}, nil
					}
					c := replicatedtest.Start(t, e, options)
					writer := c.Primary().AdminDB(t)
					writer.SetMaxOpenConns(1)
					mustExec(t, writer, "SET autocommit = 1")
					mustExec(t, writer, "CREATE TABLE counter (n int)")
					caughtUp(t, c)
					db := open(t, c, keys...)
					for want := range 5 {
						for range 6 {
							if n := queryInt(t, db, "SELECT count(*) FROM counter"); n != want {
								t.Errorf("read %d rows of %d", n, want)
							}
						}
						mustExec(t, writer, "INSERT INTO counter VALUES (1)")
						caughtUp(t, c)
					}
				})
			}
		})
	}
}

// heldBack runs a test of reads that are held on the primary after a write, in the
// two ways in which they are: until the time is over, and until replicas, which
// apply nothing, are proven to have it. keys are for the handles that it opens,
// fresh has them read from replicas, and hold comes before the write.
func heldBack(t *testing.T, test func(t *testing.T, c *replicatedtest.Cluster, keys []string, fresh func(*sql.DB), hold func())) {
	eachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{})
		t.Run("for a time", func(t *testing.T) {
			test(t, c, []string{"replicated.tracker=off", "replicated.sticky=1m"}, func(*sql.DB) {}, func() {})
		})
		t.Run("until proven", func(t *testing.T) {
			test(t, c, []string{"replicated.max_lag=1m"}, func(db *sql.DB) { measured(t, c, db); proven(t, db) }, func() { pauseReplicas(t, c) })
		})
	})
}

// Two handles of one process on one cluster see each other's writes, by default.
func TestHandlesShareFloors(t *testing.T) {
	heldBack(t, func(t *testing.T, c *replicatedtest.Cluster, keys []string, fresh func(*sql.DB), hold func()) {
		name := table(t, c, "id int PRIMARY KEY")
		a, b := openDSN(t, c.DSN(keys...)), openDSN(t, c.DSN(append(keys, "replicated.balance=round-robin")...))
		fresh(b)
		c.ResetStatements()
		queryInt(t, b, "SELECT 10 + count(*) FROM "+name)
		hold()
		mustExec(t, a, "INSERT INTO "+name+" (id) VALUES (1)")
		if n := queryInt(t, b, "SELECT 20 + count(*) FROM "+name); n != 21 {
			t.Errorf("the other handle counts %d", n)
		}
		onlyReplicas(t, c, "SELECT 10")
		onlyPrimary(t, c, "SELECT 20")
		// A session that wrote nothing is bound by writes outside any session.
		ctx, _ := replicated.WithSession(t.Context())
		if err := b.QueryRowContext(ctx, "SELECT 30 + count(*) FROM "+name).Scan(new(int)); err != nil {
			t.Fatal(err)
		}
		onlyPrimary(t, c, "SELECT 30")
	})
}

// Other sessions' reads stay on the replicas while one's own are held.
func TestSessionsAreHeldAlone(t *testing.T) {
	heldBack(t, func(t *testing.T, c *replicatedtest.Cluster, keys []string, fresh func(*sql.DB), hold func()) {
		name := table(t, c, "id int PRIMARY KEY")
		db := open(t, c, keys...)
		fresh(db)
		c.ResetStatements()
		hold()
		mine, _ := replicated.WithSession(t.Context())
		other, _ := replicated.WithSession(t.Context())
		if _, err := db.ExecContext(mine, "INSERT INTO "+name+" (id) VALUES (1)"); err != nil {
			t.Fatal(err)
		}
		read := func(ctx context.Context, text string) {
			t.Helper()
			if err := db.QueryRowContext(ctx, text+" + count(*) FROM "+name).Scan(new(int)); err != nil {
				t.Fatal(err)
			}
		}
		read(mine, "SELECT 10")
		read(other, "SELECT 20")
		read(t.Context(), "SELECT 30")
		read(replicated.WithStaleReads(mine, time.Minute), "SELECT 40")
		read(replicated.WithPrimary(other), "SELECT 50")
		read(other, "SELECT /* replicated:primary */ 60")
		read(replicated.WithFresh(other), "SELECT 70")
		onlyPrimary(t, c, "SELECT 10")
		onlyReplicas(t, c, "SELECT 20")
		onlyPrimary(t, c, "SELECT 30")
		onlyReplicas(t, c, "SELECT 40")
		onlyPrimary(t, c, "SELECT 50")
		onlyPrimary(t, c, "60 + count")
		onlyPrimary(t, c, "SELECT 70")
	})
}

// The connection can be asked for the primary, and for the primary's own driver
// connection, through Raw.
func TestRaw(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		name := table(t, c, "id int PRIMARY KEY")
		c.ResetStatements()
		db := oneConn(t, c)
		conn, give := checkOut(t, db)
		err := conn.Raw(func(dc any) error {
			dc.(*replicated.Conn).UsePrimary()
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		queryInt(t, conn, "SELECT 10 + count(*) FROM "+name)
		give()
		queryInt(t, db, "SELECT 20 + count(*) FROM "+name)
		onlyPrimary(t, c, "SELECT 10")
		onlyReplicas(t, c, "SELECT 20")

		ctx, session := replicated.WithSession(t.Context())
		conn, give = checkOut(t, db)
		defer give()
		err = conn.Raw(func(dc any) error {
			return dc.(*replicated.Conn).Primary(ctx, func(driverConn any) error {
				if got := fmt.Sprintf("%T", driverConn); got != "*pq.conn" && got != "*mysql.mysqlConn" {
					t.Errorf("the primary's connection is a %s", got)
				}
				return nil
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		if !session.Wrote() {
			t.Error("what was done to the primary's connection does not count as a write")
		}
	})
}
