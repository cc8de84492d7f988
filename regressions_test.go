package replicated_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"
	"github.com/sqlreplicated/replicated/internal/faketime"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// A transaction that is ended twice, as deferred rollbacks do with driver.Tx, must
// not give its replica's connection back twice: it would get two users.
func TestTransactionEndedTwice(t *testing.T) {
	for _, readOnly := range []bool{true, false} {
		faketime.Test(t, func(t *testing.T) {
			f := newFakes(t, 1, fakedb.Full)
			connector := f.connector()
			c := f.conn(connector)
			tx, err := c.BeginTx(t.Context(), driver.TxOptions{ReadOnly: readOnly})
			if err != nil {
				t.Fatal(err)
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			if err := tx.Rollback(); !errors.Is(err, sql.ErrTxDone) {
				t.Errorf("the second end returns %v", err)
			}
			n := connector.Cluster().Stats().Nodes[1]
			if n.InFlight != 0 || n.Idle > 1 {
				t.Errorf("after one transaction: %d in flight, %d idle", n.InFlight, n.Idle)
			}
		})
	}
}

// A lost answer of a raw COMMIT is a commit for all who wrote in the transaction.
func TestLostAnswerOfARawCommitStamps(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		db := f.open()
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ctx, _ := replicated.WithSession(t.Context())
		run(t.Context(), t, conn, "BEGIN")
		run(ctx, t, conn, "INSERT INTO t VALUES (1)")
		time.Sleep(time.Minute)
		f.primary.Reply("COMMIT", fakedb.Error(io.ErrUnexpectedEOF))
		if _, err := conn.ExecContext(t.Context(), "COMMIT"); !errors.Is(err, replicated.ErrOutcomeUnknown) {
			t.Errorf("COMMIT: %v", err)
		}
		wantOn(ctx, t, db, "primary")
	})
}

// That nobody has to read a write does not make the loss of its commit harmless.
func TestLostAnswerOfAnUntrackedCommit(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		db := f.open()
		tx := begin(t, db, nil)
		run(replicated.WithUntracked(t.Context()), t, tx, "INSERT INTO t VALUES (1)")
		f.primary.Fail(fakedb.OpCommit, 1, io.ErrUnexpectedEOF)
		if err := tx.Commit(); !errors.Is(err, replicated.ErrOutcomeUnknown) {
			t.Errorf("error %v, want ErrOutcomeUnknown", err)
		}
	})
}

// What a statement left on a replica before the fence stopped it is not known.
func TestFenceInAReadOnlyTransactionClosesTheConnection(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		db := f.open(f.asPostgres())
		f.everywhere(plainSelect, fakedb.Error(pgError("25006")))
		tx := begin(t, db, readOnlyTx)
		before := f.replicas[0].Stats().OpenConns
		if err := tx.QueryRowContext(t.Context(), plainSelect).Scan(new(string)); err == nil {
			t.Error("the read succeeds")
		}
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
		if n := f.replicas[0].Stats().OpenConns; n != before-1 {
			t.Errorf("%d connections before, %d after", before, n)
		}
	})
}

// A driver may cancel late: what follows on the connection would be hit.
func TestCancelledStatementInAReadOnlyTransactionClosesTheConnection(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		db := f.open()
		tx := begin(t, db, readOnlyTx)
		before := f.replicas[0].Stats().OpenConns
		hold := f.replicas[0].Hold(fakedb.OpQuery)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := tx.QueryRowContext(ctx, plainSelect).Scan(new(string)); err == nil {
			t.Error("the read succeeds")
		}
		hold.Release()
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
		if n := f.replicas[0].Stats().OpenConns; n != before-1 {
			t.Errorf("%d connections before, %d after", before, n)
		}
	})
}

// An error with which a session goes on says nothing against its node.
func TestAnswersOfAStatementTakeNoReplicaOut(t *testing.T) {
	for _, code := range []string{"28000", "28P01", "58P01", "XX001"} {
		t.Run(code, func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) {
				f := newFakes(t, 2, fakedb.Full)
				db := f.open(f.asPostgres())
				answer := answered(code)
				f.everywhere(plainSelect, fakedb.Error(answer))
				f.primary.Reply(plainSelect, fakedb.Error(answer))
				err := db.QueryRowContext(t.Context(), plainSelect).Scan(new(string))
				if err != answer {
					t.Errorf("error %v", err)
				}
				for _, n := range stats(t, db).Nodes[1:] {
					if n.Breaker != replicated.BreakerClosed || n.TurnedAway {
						t.Errorf("%s: breaker %v, turned away: %v", n.Name, n.Breaker, n.TurnedAway)
					}
				}
			})
		})
	}
}

// The prober's own connection that died while idle is no failure of the node.
func TestProbersConnectionThatDiedWhileIdle(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		db := f.open(func(c *replicated.Config) { c.BreakerFailures = 1 })
		f.replicas[0].Kill()
		time.Sleep(3 * time.Second)
		if len(f.states) != 0 {
			t.Errorf("states: %v", f.states)
		}
		_ = db
	})
}

// A failed SET ROLE has set none.
func TestFailedSetRolePinsNothing(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		db := f.open(f.asPostgres())
		db.SetMaxOpenConns(1)
		f.primary.Reply("SET ROLE nobody", fakedb.Error(pgError("22023")))
		_, _ = db.ExecContext(t.Context(), "SET ROLE nobody")
		wantOn(t.Context(), t, db, "replica")
	})
}

// A RESET that was rolled back, or did not run, leaves the role in force.
func TestRolledBackResetKeepsThePin(t *testing.T) {
	for name, body := range map[string][]string{
		"rolled back": {"BEGIN", "RESET ROLE", "ROLLBACK"},
		"one string":  {"BEGIN; RESET ROLE; ROLLBACK"},
		"failed":      {"BEGIN", "RESET ROLE fails", "ROLLBACK"},
	} {
		t.Run(name, func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) {
				f := newFakes(t, 1, fakedb.Full)
				db := f.open(f.asPostgres())
				conn, err := db.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				run(t.Context(), t, conn, "SET ROLE r")
				for _, text := range body {
					text, fails := strings.CutSuffix(text, " fails")
					if fails {
						f.primary.Reply(text, fakedb.Error(pgError("25P02")))
					}
					_, _ = conn.ExecContext(t.Context(), text)
				}
				wantOn(t.Context(), t, conn, "primary")
			})
		})
	}
}

// The text of a function does not show what it leaves in the session.
func TestUnknownFunctionPinsUntilCheckIn(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		db := f.open(f.asPostgres())
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		run(t.Context(), t, conn, "SELECT set_tenant(5)")
		time.Sleep(time.Minute)
		wantOn(t.Context(), t, conn, "primary")
		conn.Close()
		wantOn(t.Context(), t, db, "replica")
	})
}

// A function that panics has run nonetheless.
func TestPrimaryThatPanicsStamps(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		db := f.open()
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() { _ = recover() }()
			_ = conn.Raw(func(dc any) error {
				return dc.(*replicated.Conn).Primary(t.Context(), func(any) error { panic("late") })
			})
		}()
		conn.Close()
		wantOn(t.Context(), t, db, "primary")
	})
}

// A COMMIT by the driver's own means is the end of a transaction, too.
func TestPrimaryThatCommitsStampsForAll(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		db := f.open()
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ctx, _ := replicated.WithSession(t.Context())
		other, _ := replicated.WithSession(t.Context())
		run(other, t, conn, "BEGIN")
		run(ctx, t, conn, "INSERT INTO t VALUES (1)")
		time.Sleep(time.Minute)
		err = conn.Raw(func(dc any) error {
			return dc.(*replicated.Conn).Primary(other, func(dc any) error {
				_, err := dc.(driver.ExecerContext).ExecContext(other, "COMMIT", nil)
				return err
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		wantOn(ctx, t, db, "primary")
	})
}

// WithReadOnly lets nothing through that is not a proven read.
func TestPrimaryWhereOnlyReadsAreAllowed(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		c := f.conn(f.connector())
		err := c.Primary(replicated.WithReadOnly(t.Context()), func(any) error { t.Error("it was called"); return nil })
		if !readOnlyErr(err) {
			t.Errorf("error %v", err)
		}
	})
}

// Closing a connection twice must not take it for two.
func TestConnClosedTwice(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		connector := f.connector()
		c := f.conn(connector)
		other := f.conn(connector)
		_ = c.Close()
		_ = c.Close()
		time.Sleep(replicated.IdleLife + time.Second)
		synctest.Wait()
		f.replicas[0].Forget()
		time.Sleep(3 * replicated.ProbeEvery)
		if len(f.replicas[0].Calls()) == 0 {
			t.Error("the background work has ended with a connection still open")
		}
		_ = other
	})
}

// What SHOW answers in a read-only transaction is asked of the node that runs it.
func TestShowInAReadOnlyTransaction(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		db := f.open(f.asPostgres())
		tx := begin(t, db, readOnlyTx)
		defer tx.Rollback() //nolint:errcheck // the test is over
		if err := tx.QueryRowContext(t.Context(), "SHOW transaction_read_only").Scan(new(string)); err != nil {
			t.Error(err)
		}
	})
}

func answered(code string) error {
	return &pq.Error{Code: pqerror.Code(code), Severity: "ERROR", Message: code}
}

// lib/pq answers driver.ErrBadConn after it has sent a statement, too. Where the
// caller's connector hides its socket from us, that word is no proof.
func TestLostAnswerOfAWriteThroughACallersConnector(t *testing.T) {
	c := sharedCluster(t, replicatedtest.Postgres)
	name := table(t, c, "id int")
	proxy := c.Primary().Proxy(t)
	connector, err := pq.NewConnector(proxy.DSN())
	if err != nil {
		t.Fatal(err)
	}
	db := openConfig(t, replicated.Config{Nodes: []replicated.Node{{Connector: connector}}})
	mustExec(t, db, "DELETE FROM "+name) // opens the primary connection
	lost := proxy.SwallowAnswer("INSERT INTO "+name, 0)
	if _, err := db.ExecContext(t.Context(), "INSERT INTO "+name+" (id) VALUES (1)"); !errors.Is(err, replicated.ErrOutcomeUnknown) {
		t.Errorf("error %v, want ErrOutcomeUnknown", err)
	}
	<-lost
	if n := queryInt(t, bare(t, c.Primary()), "SELECT count(*) FROM "+name); n != 1 {
		t.Errorf("%d rows after one INSERT", n)
	}
}

// Closing a statement has no context, and a hung replica must not keep it.
func TestClosingAStatementThatAHungReplicaHolds(t *testing.T) {
	c := replicatedtest.Start(t, replicatedtest.Postgres, replicatedtest.Options{Replicas: 1})
	db := open(t, c, "replicated.breaker_failures=1000")
	stmt, err := db.PrepareContext(t.Context(), "SELECT 1")
	if err != nil {
		t.Fatal(err)
	}
	if err := stmt.QueryRowContext(t.Context()).Scan(new(int)); err != nil {
		t.Fatal(err)
	}
	if err := c.Replicas()[0].Hang(); err != nil {
		t.Fatal(err)
	}
	defer c.Replicas()[0].Resume() //nolint:errcheck // the cluster is closed next
	closed := make(chan error, 1)
	began := time.Now()
	go func() { closed <- stmt.Close() }()
	select {
	case <-closed: //nolint:errcheck // a hung server may fail it
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
	case <-time.After(8 * time.Second):
		t.Error("it hangs")
	}
}

type quotingDriver struct{}

func (quotingDriver) Open(dsn string) (driver.Conn, error) {
	return nil, errors.New("cannot parse " + dsn)
}

// A driver that quotes its DSN must not betray the password.
func TestDriverThatQuotesItsDSN(t *testing.T) {
	sql.Register("quoting-driver", quotingDriver{})
	db := openConfig(t, replicated.Config{Driver: "quoting-driver", Nodes: []replicated.Node{{DSN: "quoting://app:geheimnis@db1/shop"}}})
	err := db.PingContext(t.Context())
	if err == nil || strings.Contains(err.Error(), "geheimnis") {
		t.Errorf("error %v", err)
	}
}

// A driver whose socket is hidden from us may hang for ever in a probe: its replica
// is taken out all the same, and Close does not wait for it.
func TestHungReplicaThroughACallersConnector(t *testing.T) {
	c := replicatedtest.Start(t, replicatedtest.Postgres, replicatedtest.Options{Replicas: 1})
	var cfg replicated.Config
	for _, n := range c.Nodes() {
		connector, err := pq.NewConnector(n.DSN())
		if err != nil {
			t.Fatal(err)
		}
		cfg.Nodes = append(cfg.Nodes, replicated.Node{Connector: connector})
	}
	connector, err := replicated.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	queryInt(t, db, "SELECT 1")
	if err := c.Replicas()[0].Hang(); err != nil {
		t.Fatal(err)
	}
	defer c.Replicas()[0].Resume() //nolint:errcheck // the cluster is closed next
	eventually(t, 10*time.Second, func() string {
		if state := connector.Cluster().Stats().Nodes[1].Breaker; state == replicated.BreakerClosed {
			return "the hung replica is not taken out"
		}
		return ""
	})
	queryInt(t, db, "SELECT 1")
	closed := make(chan error, 1)
	go func() { closed <- db.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("Close hangs")
	}
}

// Rows of the sql.Conn that a read-only transaction runs on may outlive it. The
// replica's connection is theirs, then, and nobody else's.
func TestRowsThatOutliveTheirReadOnlyTransaction(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		f.replicas[0].AllowBusy()
		db := f.open()
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		f.everywhere(plainSelect, lines(3))
		tx := begin(t, conn, readOnlyTx)
		rows, err := conn.QueryContext(t.Context(), plainSelect)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
		if n := stats(t, db).Nodes[1]; n.Idle != 0 {
			t.Error("the connection is in the pool while its rows are being read")
		}
	})
}

// Where the driver shows no status, transactions are followed by text. SQLite's
// COMMIT may fail and leave its transaction open.
func TestCommitThatFailsAndIsRepeated(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Legacy)
		db := f.open()
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ctx, _ := replicated.WithSession(t.Context())
		run(ctx, t, conn, "BEGIN")
		run(ctx, t, conn, "INSERT INTO t VALUES (1)")
		f.primary.Fail(fakedb.OpExec, 1, errors.New("busy"))
		if _, err := conn.ExecContext(ctx, "COMMIT"); err == nil {
			t.Error("it is not busy")
		}
		time.Sleep(time.Minute)
		wantOn(ctx, t, conn, "primary")
		run(ctx, t, conn, "COMMIT")
		wantOn(ctx, t, db, "primary")
	})
}

// SQLite's SAVEPOINT opens a transaction where there is none, and RELEASE ends it.
func TestSavepointThatOpensATransaction(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Legacy)
		db := f.open()
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ctx, _ := replicated.WithSession(t.Context())
		run(ctx, t, conn, "SAVEPOINT a")
		run(ctx, t, conn, "INSERT INTO t VALUES (1)")
		time.Sleep(time.Minute)
		wantOn(ctx, t, conn, "primary")
		run(ctx, t, conn, "RELEASE a")
		wantOn(ctx, t, db, "primary")
	})
}

// A BEGIN that fails keeps no connection on the primary for ever.
func TestBeginThatFailsPinsUntilCheckIn(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Legacy)
		db := f.open()
		db.SetMaxOpenConns(1)
		f.primary.Fail(fakedb.OpExec, 1, errors.New("busy"))
		if _, err := db.ExecContext(t.Context(), "BEGIN"); err == nil {
			t.Error("it is not busy")
		}
		servedBy(t.Context(), t, db) // what answers shows that all is well
		wantOn(t.Context(), t, db, "replica")
	})
}

// lib/pq takes every spelling of true that strconv does. On the path in one trip its
// first write runs the statement.
func TestLostAnswerOfAWriteInOneTrip(t *testing.T) {
	c := sharedCluster(t, replicatedtest.Postgres)
	for _, spelled := range []string{"t", "yes"} {
		t.Run(spelled, func(t *testing.T) {
			name := table(t, c, "id int")
			proxy := c.Primary().Proxy(t)
			db := openDSN(t, c.DSNAt([]string{proxy.Addr()}, "binary_parameters="+spelled))
			mustExec(t, db, "DELETE FROM "+name) // opens the primary connection
			lost := proxy.SwallowAnswer("INSERT INTO "+name, 0)
			if _, err := db.ExecContext(t.Context(), "INSERT INTO "+name+" (id) VALUES ($1)", 1); !errors.Is(err, replicated.ErrOutcomeUnknown) {
				t.Errorf("error %v, want ErrOutcomeUnknown", err)
			}
			<-lost
			if n := queryInt(t, bare(t, c.Primary()), "SELECT count(*) FROM "+name); n != 1 {
				t.Errorf("%d rows after one INSERT", n)
			}
		})
	}
}

// A read that brings down whatever runs it (or takes longer than the DSN's
// readTimeout) is run once by each node, and not again by database/sql.
func TestReadThatBreaksEveryConnection(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 2, fakedb.Full)
		db := f.open()
		for _, s := range f.servers() {
			s.Reply(plainSelect, fakedb.Error(io.ErrUnexpectedEOF))
		}
		if err := db.QueryRowContext(t.Context(), plainSelect).Scan(new(string)); err == nil || isBadConn(err) {
			t.Errorf("error %v", err)
		}
		for _, s := range f.servers() {
			if n := sent(s, plainSelect); n != 1 {
				t.Errorf("%s ran it %d times", s.Name(), n)
			}
		}
	})
}
