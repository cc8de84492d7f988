package replicated_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// MySQL sends its status with success only. A COMMIT that is refused ends its
// transaction, and the last that the driver has heard is that one is open. Nothing
// that follows may be taken to be inside of it: neither on the server that has refused,
// nor where another one has become the primary since.
func TestRefusedCommitLeavesNoTransactionBehind(t *testing.T) {
	eachMySQL(t, func(t *testing.T, e replicatedtest.Engine) {
		t.Parallel()
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1})
		name := table(t, c, "id int")
		caughtUp(t, c)
		for _, tt := range []struct {
			name   string
			commit func(db *sql.DB, insert string, before func()) error
		}{
			{"Tx", func(db *sql.DB, insert string, before func()) error {
				tx, err := db.BeginTx(t.Context(), nil)
				if err != nil {
					return err
				}
				defer tx.Rollback() //nolint:errcheck // it has been committed, or not
				if _, err := tx.ExecContext(t.Context(), insert); err != nil {
					return err
				}
				before()
				return tx.Commit()
			}},
			{"text", func(db *sql.DB, insert string, before func()) error {
				mustExec(t, db, "BEGIN")
				mustExec(t, db, insert)
				before()
				_, err := db.ExecContext(t.Context(), "COMMIT")
				return err
			}},
		} {
			for _, switchover := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s switchover=%t", tt.name, switchover), func(t *testing.T) {
					db := oneConn(t, c, "replicated.topology=discover")
					former, next := c.Primary(), c.Replicas()[0]
					err := tt.commit(db, "INSERT INTO "+name+" VALUES (1)", func() {
						if err := former.Demote(); err != nil {
							t.Fatal(err)
						}
					})
					if !isRefusedCommit(err) {
						t.Fatalf("COMMIT on a read-only server: %v, want a refusal", err)
					}
					if switchover {
						if err := c.Switchover(t.Context(), next); err != nil {
							t.Fatal(err)
						}
					} else {
						mustExec(t, former.AdminDB(t), "SET GLOBAL read_only = 0")
					}
					proveAround(t, c, db)
					c.ResetStatements()
					conn, give := checkOut(t, db)
					defer give()
					queryInt(t, conn, "SELECT 10 + count(*) FROM "+name)
					onlyReplicas(t, c, "SELECT 10")
					mustExec(t, conn, "INSERT INTO "+name+" VALUES (2)")
				})
			}
		}
		if n := queryInt(t, bare(t, c.Primary()), "SELECT count(*) FROM "+name+" WHERE id = 1"); n != 0 {
			t.Errorf("%d rows of refused transactions are there", n)
		}
		if n := queryInt(t, bare(t, c.Primary()), "SELECT count(*) FROM "+name+" WHERE id = 2"); n != 4 {
			t.Errorf("%d rows that were written by themselves are there, want 4", n)
		}
	})
}

// A transaction that a failure has not ended goes on, and one whose connection is lost
// is not gone on with elsewhere: not for the rest of the check-out. The next user of the
// connection has nothing to do with it.
func TestFailureInATextTransaction(t *testing.T) {
	eachMySQL(t, func(t *testing.T, e replicatedtest.Engine) {
		c := sharedCluster(t, e)
		name := table(t, c, "id int PRIMARY KEY")
		mustExec(t, bare(t, c.Primary()), "INSERT INTO "+name+" VALUES (1)")
		caughtUp(t, c)
		t.Run("goes on", func(t *testing.T) {
			db := oneConn(t, c)
			conn, give := checkOut(t, db)
			defer give()
			failInTransaction(t, conn, name, 2)
			if n := queryInt(t, conn, "SELECT count(*) FROM "+name); n != 2 {
				t.Errorf("the transaction sees %d rows, want 2", n)
			}
			mustExec(t, conn, "ROLLBACK")
			if n := queryInt(t, conn, "SELECT count(*) FROM "+name); n != 1 {
				t.Errorf("%d rows are there after it, want 1", n)
			}
		})
		for _, next := range []string{"INSERT INTO " + name + " VALUES (3)", "SELECT count(*) FROM " + name} {
			t.Run("lost before "+next[:6], func(t *testing.T) {
				db := oneConn(t, c)
				conn, give := checkOut(t, db)
				defer give()
				id := backend(t, c, conn)
				failInTransaction(t, conn, name, 2)
				kill(t, c, id)
				if _, err := conn.ExecContext(t.Context(), next); err == nil {
					t.Error("a statement of a transaction whose connection is lost has run")
				}
			})
		}
		t.Run("lost behind its user", func(t *testing.T) {
			db := oneConn(t, c)
			conn, give := checkOut(t, db)
			id := backend(t, c, conn)
			failInTransaction(t, conn, name, 2)
			give()
			kill(t, c, id)
			conn, give = checkOut(t, db)
			defer give()
			c.ResetStatements()
			queryInt(t, conn, "SELECT 10 + count(*) FROM "+name)
			onlyReplicas(t, c, "SELECT 10")
		})
	})
}

// A Tx whose COMMIT was refused is over, for its user too: the loss of the connection
// that follows (who switches over ends connections) costs no read.
func TestConnectionLostAfterARefusedCommit(t *testing.T) {
	eachMySQL(t, func(t *testing.T, e replicatedtest.Engine) {
		c := sharedCluster(t, e)
		name := table(t, c, "id int")
		caughtUp(t, c)
		db := oneConn(t, c)
		proven(t, db)
		conn, give := checkOut(t, db)
		defer give()
		kill(t, c, refusedCommit(t, c, conn, name))
		var n int
		if err := conn.QueryRowContext(t.Context(), "SELECT count(*) FROM "+name).Scan(&n); err != nil || n != 0 {
			t.Errorf("%d rows, error %v; want none", n, err)
		}
		if _, err := conn.ExecContext(t.Context(), "INSERT INTO "+name+" VALUES (LAST_INSERT_ID())"); !isBadConn(err) {
			t.Errorf("a write on a lost connection: %v, want driver.ErrBadConn", err)
		}
	})
}

// A context that has ended before anything was sent costs a transaction nothing.
func TestContextThatHasEndedAfterAFailureInATransaction(t *testing.T) {
	eachMySQL(t, func(t *testing.T, e replicatedtest.Engine) {
		c := sharedCluster(t, e)
		name := table(t, c, "id int PRIMARY KEY")
		conn, give := checkOut(t, oneConn(t, c))
		defer give()
		failInTransaction(t, conn, name, 1)
		ended, end := context.WithCancel(t.Context())
		end()
		if _, err := conn.ExecContext(ended, "INSERT INTO "+name+" VALUES (2)"); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want context.Canceled", err)
		}
		mustExec(t, conn, "INSERT INTO "+name+" VALUES (3)")
		mustExec(t, conn, "COMMIT")
		if n := queryInt(t, bare(t, c.Primary()), "SELECT sum(id) FROM "+name); n != 4 {
			t.Errorf("the sum is %d, want 4", n)
		}
	})
}

// A COMMIT that a former primary has refused is not sent to the next one, where it would
// succeed, with nothing to commit.
func TestRefusedCommitIsNotRedirected(t *testing.T) {
	eachMySQL(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1})
		name := table(t, c, "id int")
		caughtUp(t, c)
		db := oneConn(t, c, "replicated.topology=discover")
		proveAround(t, c, db)
		mustExec(t, db, "BEGIN")
		mustExec(t, db, "INSERT INTO "+name+" VALUES (1)")
		former, next := c.Primary(), c.Replicas()[0]
		must(t, next.Promote())
		mustExec(t, former.AdminDB(t), "SET GLOBAL read_only = ON")
		for _, n := range stats(t, db).Nodes {
			if n.Name == next.Addr() && n.Role == replicated.RolePrimary {
				t.Log("the driver has heard of the next primary before the COMMIT: there is nothing to redirect")
				return
			}
		}
		if _, err := db.ExecContext(t.Context(), "COMMIT"); err == nil {
			t.Error("a transaction is committed on a server that has never had it")
		}
	})
}

// What a procedure has begun before it failed is a transaction also where it has sent
// rows before: its COMMIT counts as that of a write.
func TestProcedureThatFailsAmidRows(t *testing.T) {
	eachMySQL(t, func(t *testing.T, e replicatedtest.Engine) {
		c := sharedCluster(t, e)
		name := table(t, c, "id int")
		mustExec(t, c.Primary().AdminDB(t), "DROP PROCEDURE IF EXISTS "+name+"_p")
		mustExec(t, c.Primary().AdminDB(t), "CREATE PROCEDURE "+name+"_p() BEGIN SELECT 1; START TRANSACTION; INSERT INTO "+name+" VALUES (1); SIGNAL SQLSTATE '45000'; END")
		caughtUp(t, c)
		db := open(t, c, ownFloors(t))
		db.SetMaxOpenConns(1)
		proven(t, db)
		conn, give := checkOut(t, db)
		defer give()
		rows, err := conn.QueryContext(t.Context(), "CALL "+name+"_p()")
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() || rows.NextResultSet() {
		}
		if err := rows.Err(); !hasNumber(err, 1644) {
			t.Fatalf("error %v, want 1644", err)
		}
		rows.Close()
		give()
		proven(t, db)
		caughtUp(t, c)
		defer pauseReplicas(t, c)()
		mustExec(t, db, "COMMIT")
		if n := queryInt(t, db, "SELECT count(*) FROM "+name); n != 1 {
			t.Errorf("%d rows after the COMMIT, want 1", n)
		}
	})
}

// A transaction that a deadlock has ended is not that of the connection's next user: the
// end of his says nothing of what it had written.
func TestNextUserAfterADeadlock(t *testing.T) {
	eachMySQL(t, func(t *testing.T, e replicatedtest.Engine) {
		c := sharedCluster(t, e)
		name := table(t, c, "id int PRIMARY KEY, n int")
		other, err := bare(t, c.Primary()).Conn(t.Context())
		must(t, err)
		defer other.Close()
		mustExec(t, other, "INSERT INTO "+name+" VALUES (1, 0), (2, 0), (3, 0), (4, 0), (5, 0)")
		db := open(t, c, ownFloors(t))
		db.SetMaxOpenConns(1)
		mustExec(t, db, "BEGIN")
		mustExec(t, db, "UPDATE "+name+" SET n = 1 WHERE id = 1")
		mustExec(t, other, "BEGIN")
		mustExec(t, other, "UPDATE "+name+" SET n = 1 WHERE id > 1") // more than the other one has
		failed := make(chan error, 1)
		go func() {
			_, err := db.ExecContext(t.Context(), "UPDATE "+name+" SET n = 1 WHERE id = 2")
			failed <- err
		}()
		eventually(t, 10*time.Second, func() string {
			if queryInt(t, c.Primary().AdminDB(t), "SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'") == 0 {
				return "nothing waits for a lock"
			}
			return ""
		})
		mustExec(t, other, "UPDATE "+name+" SET n = 1 WHERE id = 1")
		mustExec(t, other, "COMMIT")
		if err := <-failed; !hasNumber(err, 1213) {
			t.Fatalf("error %v, want 1213", err)
		}
		caughtUp(t, c)
		proven(t, db)
		defer pauseReplicas(t, c)()
		mustExec(t, other, "UPDATE "+name+" SET n = 2") // which nobody here has to see
		tx, err := db.BeginTx(t.Context(), nil)
		must(t, err)
		queryInt(t, tx, "SELECT count(*) FROM "+name)
		must(t, tx.Commit())
		c.ResetStatements()
		queryInt(t, db, "SELECT 10 + count(*) FROM "+name)
		onlyReplicas(t, c, "SELECT 10")
	})
}

// Nothing is sent between a failure in a transaction and what asks for its outcome.
func TestRowCountAfterAFailureInATransaction(t *testing.T) {
	eachMySQL(t, func(t *testing.T, e replicatedtest.Engine) {
		c := sharedCluster(t, e)
		name := table(t, c, "id int PRIMARY KEY")
		conn, give := checkOut(t, oneConn(t, c))
		defer give()
		failInTransaction(t, conn, name, 1)
		if n := queryInt(t, conn, "SELECT ROW_COUNT()"); n != -1 {
			t.Errorf("ROW_COUNT() is %d, want -1", n)
		}
	})
}

// A write that a former primary refuses runs on the next one, whatever its connection's
// last user has left in doubt.
func TestWriteIsRedirectedAfterARefusedCommit(t *testing.T) {
	eachMySQL(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1})
		name := table(t, c, "id int")
		caughtUp(t, c)
		db := oneConn(t, c, "replicated.topology=discover")
		proveAround(t, c, db)
		conn, give := checkOut(t, db)
		defer give()
		refusedCommit(t, c, conn, name)
		give()
		proveAround(t, c, db)
		must(t, c.Replicas()[0].Promote())
		mustExec(t, c.Nodes()[0].AdminDB(t), "SET GLOBAL read_only = ON")
		mustExec(t, db, "INSERT INTO "+name+" VALUES (2)")
		if n := queryInt(t, bare(t, c.Nodes()[1]), "SELECT sum(id) FROM "+name); n != 2 {
			t.Errorf("the sum is %d, want 2", n)
		}
	})
}

// failInTransaction begins a transaction by text, inserts a number in it, and fails to
// insert it once more, which ends nothing.
func failInTransaction(t *testing.T, conn *sql.Conn, name string, id int) {
	t.Helper()
	insert := fmt.Sprintf("INSERT INTO %s VALUES (%d)", name, id)
	mustExec(t, conn, "BEGIN")
	mustExec(t, conn, insert)
	if _, err := conn.ExecContext(t.Context(), insert); !hasNumber(err, 1062) {
		t.Fatalf("a number that is there already: %v, want error 1062", err)
	}
}

// isRefusedCommit tells whether the server has refused a COMMIT, or the driver has, which
// may have heard of the server's new role just before.
func isRefusedCommit(err error) bool {
	ne, ok := errors.AsType[*replicated.NodeError](err)
	return hasNumber(err, 1290) || errors.Is(err, replicated.ErrNoPrimary) ||
		ok && ne.Op == "commit" && !errors.Is(err, replicated.ErrOutcomeUnknown)
}

func hasNumber(err error, number uint16) bool {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && e.Number == number
}

// proveAround waits until the driver knows the cluster's primary and has proofs of all
// others.
func proveAround(t *testing.T, c *replicatedtest.Cluster, db *sql.DB) {
	t.Helper()
	caughtUp(t, c)
	eventually(t, 20*time.Second, func() string {
		for _, n := range stats(t, db).Nodes {
			if isPrimary := n.Role == replicated.RolePrimary; isPrimary != (n.Name == c.Primary().Addr()) || !isPrimary && n.Freshness != replicated.FreshnessProven {
				return fmt.Sprintf("%s is the primary, and the driver knows of %+v", c.Primary().Addr(), n)
			}
		}
		return ""
	})
}

// refusedCommit has the primary refuse to commit a transaction that has written to a
// table, and returns the number of the connection.
func refusedCommit(t *testing.T, c *replicatedtest.Cluster, conn *sql.Conn, name string) int {
	t.Helper()
	tx, err := conn.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	mustExec(t, tx, "INSERT INTO "+name+" VALUES (1)")
	id := queryInt(t, tx, "SELECT CONNECTION_ID()")
	if err := c.Primary().Demote(); err != nil {
		t.Fatal(err)
	}
	defer mustExec(t, c.Primary().AdminDB(t), "SET GLOBAL read_only = 0")
	if err := tx.Commit(); !isRefusedCommit(err) {
		t.Fatalf("COMMIT on a read-only server: %v, want a refusal", err)
	}
	return id
}

// kill ends a connection to the primary, and waits until it has ended. One that MySQL 5.6
// goes on to show, as it does now and then, has no socket any more.
func kill(t *testing.T, c *replicatedtest.Cluster, id int) {
	t.Helper()
	admin := c.Primary().AdminDB(t)
	mustExec(t, admin, fmt.Sprintf("KILL %d", id))
	eventually(t, 10*time.Second, func() string {
		if n := queryInt(t, admin, fmt.Sprintf("SELECT count(*) FROM information_schema.processlist WHERE id = %d AND NOT (command = 'Killed' AND time >= 2)", id)); n != 0 {
			return "the connection is still there"
		}
		return ""
	})
}
