package replicated_test

import (
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
					if !hasNumber(err, 1290) {
						t.Fatalf("COMMIT on a read-only server: %v, want error 1290", err)
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
		t.Run("lost", func(t *testing.T) {
			db := oneConn(t, c)
			conn, give := checkOut(t, db)
			defer give()
			id := backend(t, c, conn)
			failInTransaction(t, conn, name, 2)
			kill(t, c, id)
			if _, err := conn.ExecContext(t.Context(), "INSERT INTO "+name+" VALUES (3)"); err == nil {
				t.Error("a statement of a transaction whose connection is lost has run")
			}
		})
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
