package replicated_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"
	"github.com/sqlreplicated/replicated/internal/faketime"
)

func pgError(code string) error      { return &pq.Error{Code: pqerror.Code(code), Message: code} }
func mysqlError(number uint16) error { return &mysql.MySQLError{Number: number, Message: "no"} }
func readOnlyErr(err error) bool     { return errors.Is(err, replicated.ErrReadOnly) }
func isBadConn(err error) bool       { return errors.Is(err, driver.ErrBadConn) }
func limit(n int) func(*replicated.Config) {
	return func(c *replicated.Config) { c.PrimaryReadLimit = n }
}

var closedBreakers = []replicated.BreakerState{replicated.BreakerClosed, replicated.BreakerClosed}

func TestReadsAreSpreadOverTheReplicas(t *testing.T) {
	eachShape(t, func(t *testing.T, shape fakedb.Shape) {
		f := newFakes(t, 2, shape)
		db := f.open()
		served := make(map[string]int)
		for range 10 {
			served[servedBy(t.Context(), t, db)]++
		}
		if served["replica1"] != 5 || served["replica2"] != 5 {
			t.Errorf("ten reads in turn were served by %v", served)
		}
	})
}

func TestReadGoesOnWhereNoConnectionIsToBeHad(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 2, fakedb.Full)
		db := f.open()
		refused := errors.New("refused")

		f.replicas[0].Down(refused)
		for range 2 { // in turn: one of the two begins with the dead one
			wantOn(t.Context(), t, db, "replica")
		}
		failed := 0
		for _, r := range f.routes() {
			if r == "replica1 read failed" {
				failed++
			}
		}
		if failed != 1 {
			t.Errorf("%d reads were tried on the dead replica, want 1", failed)
		}

		f.replicas[1].Down(refused)
		wantOn(t.Context(), t, db, "primary")
		f.wantRoutes("replica read failed", "replica read failed", "primary no-replica")
	})
}

// Each node is tried once, the error of the first row included, and a node's
// fault never shows as the caller's error while another node can serve.
func TestReadGoesOnAfterAFaultOfTheNode(t *testing.T) {
	faults := map[string]error{
		"bad connection": driver.ErrBadConn,
		"broken stream":  io.ErrUnexpectedEOF,
		"invalid":        mysql.ErrInvalidConn,
		"57P01":          pgError("57P01"),
		"57P02":          pgError("57P02"),
		"57P03":          pgError("57P03"),
		"08006":          pgError("08006"),
		"53300":          pgError("53300"),
		"1040":           mysqlError(1040),
		"1053":           mysqlError(1053),
	}
	for name, fault := range faults {
		for where, reply := range map[string]fakedb.Reply{
			"statement": {Err: fault},
			"first row": {Columns: []string{"a"}, NextErr: fault},
		} {
			t.Run(name+"/"+where, func(t *testing.T) {
				faketime.Test(t, func(t *testing.T) {
					f := newFakes(t, 2, fakedb.Full)
					db := f.open()
					f.everywhere(plainSelect, reply)
					wantOn(t.Context(), t, db, "primary")
					f.wantRoutes("replica read failed", "replica read failed", "primary no-replica")
					for _, r := range f.replicas {
						if n := sent(r, plainSelect); n != 1 {
							t.Errorf("%s was asked %d times", r.Name(), n)
						}
					}
				})
			})
		}
	}
}

func TestConflictWithRecoveryGoesToThePrimaryAtOnce(t *testing.T) {
	for _, code := range []string{"40001", "40P01"} {
		t.Run(code, func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) {
				f := newFakes(t, 2, fakedb.Full)
				db := f.open()
				f.everywhere(plainSelect, fakedb.Error(pgError(code)))
				for range 10 {
					f.routes()
					wantOn(t.Context(), t, db, "primary")
					f.wantRoutes("replica read failed", "primary conflict")
				}
				if got := f.breakers(db); !slices.Equal(got, closedBreakers) {
					t.Errorf("conflicts have left the breakers %v", got)
				}
			})
		})
	}
}

func TestWhatAReplicaLacksIsAskedOnceOfThePrimary(t *testing.T) {
	for name, lacks := range map[string]error{
		"42P01": pgError("42P01"), "42703": pgError("42703"), "42883": pgError("42883"), "3F000": pgError("3F000"),
		"0A000": pgError("0A000"), "55000": pgError("55000"), "XX000": pgError("XX000"),
		"1146": mysqlError(1146), "1054": mysqlError(1054), "1305": mysqlError(1305), "1049": mysqlError(1049),
	} {
		t.Run(name, func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) {
				f := newFakes(t, 2, fakedb.Full)
				db := f.open()
				f.everywhere(plainSelect, fakedb.Error(lacks))
				wantOn(t.Context(), t, db, "primary")
				f.wantRoutes("replica read failed", "primary missing")

				f.primary.Reply(plainSelect, fakedb.Error(lacks))
				err := db.QueryRowContext(t.Context(), plainSelect).Scan(new(string))
				if err != lacks {
					t.Errorf("error %v, want the primary's as it is", err)
				}
				f.wantRoutes("replica read failed", "primary missing failed")
				if got := f.breakers(db); !slices.Equal(got, closedBreakers) {
					t.Errorf("the breakers are %v", got)
				}
			})
		})
	}
}

func TestErrorsOfTextAndDataComeStraightBack(t *testing.T) {
	for name, fault := range map[string]error{
		"42601": pgError("42601"), "22012": pgError("22012"), "1064": mysqlError(1064), "1365": mysqlError(1365),
		"57014": pgError("57014"), "unknown": errors.New("no such thing"),
	} {
		t.Run(name, func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) {
				f := newFakes(t, 2, fakedb.Full)
				db := f.open()
				f.everywhere(plainSelect, fakedb.Error(fault))
				err := db.QueryRowContext(t.Context(), plainSelect).Scan(new(string))
				if err != fault {
					t.Errorf("error %v, want the replica's as it is", err)
				}
				f.wantRoutes("replica read failed")
				if got := f.breakers(db); !slices.Equal(got, closedBreakers) {
					t.Errorf("the breakers are %v", got)
				}
			})
		})
	}
}

// What a replica's fence refuses is a write, whatever the text looks like: it
// runs on the primary, raises floors, and is known from then on. The connection
// that refused it is closed, for a lock that it took is still held.
func TestRefusalByTheFence(t *testing.T) {
	for name, refusal := range map[string]error{
		"25006": pgError("25006"), "25001": pgError("25001"),
		"1290": mysqlError(1290), "1792": mysqlError(1792), "1836": mysqlError(1836),
	} {
		t.Run(name, func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) {
				const hidden = "SELECT hidden FROM view_that_writes"
				f := newFakes(t, 2, fakedb.Full)
				db := f.open()
				f.everywhere(hidden, fakedb.Error(refusal))
				before := f.replicas[0].Stats().OpenConns + f.replicas[1].Stats().OpenConns

				if err := db.QueryRowContext(t.Context(), hidden).Scan(new(string)); err != nil {
					t.Fatal(err)
				}
				f.wantRoutes("replica read failed", "primary refused")
				if after := f.replicas[0].Stats().OpenConns + f.replicas[1].Stats().OpenConns; after != before {
					t.Errorf("replicas have %d connections, %d before the refusal", after, before)
				}
				wantOn(t.Context(), t, db, "primary")
				f.wantRoutes("primary process-write")

				time.Sleep(time.Minute)
				if err := db.QueryRowContext(t.Context(), hidden).Scan(new(string)); err != nil {
					t.Fatal(err)
				}
				f.wantRoutes("primary learned")
				wantOn(t.Context(), t, db, "primary") // for it counted as a write again
				if n := sent(f.primary, hidden); n != 2 {
					t.Errorf("the primary ran it %d times for two calls", n)
				}
			})
		})
	}
}

func TestRefusalByTheFenceWhereOnlyReadsAreAllowed(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		db := f.open()
		f.everywhere(plainSelect, fakedb.Error(pgError("25006")))
		ctx := replicated.WithReadOnly(t.Context())
		for range 2 { // the second time it is learned
			if err := db.QueryRowContext(ctx, plainSelect).Scan(new(string)); !readOnlyErr(err) {
				t.Errorf("error %v, want ErrReadOnly", err)
			}
		}
		if n := sent(f.primary, plainSelect); n != 0 {
			t.Errorf("the primary ran what a replica has refused as a write, %d times", n)
		}
	})
}

// driver.ErrBadConn of a replica would have database/sql close the Conn, with its
// primary connection.
func TestReplicasKilledAmidRowsCostNoPrimary(t *testing.T) {
	eachShape(t, func(t *testing.T, shape fakedb.Shape) {
		f := newFakes(t, 1, shape)
		db := f.open(func(c *replicated.Config) { c.BreakerFailures = 100 })
		db.SetMaxOpenConns(1)
		f.everywhere("SELECT n FROM many", lines(5))
		for range 5 {
			rows, err := db.QueryContext(t.Context(), "SELECT n FROM many")
			if err != nil {
				t.Fatal(err)
			}
			if !rows.Next() {
				t.Fatalf("no row: %v", rows.Err())
			}
			f.replicas[0].Kill()
			for rows.Next() {
			}
			var ne *replicated.NodeError
			if err := rows.Err(); !errors.As(err, &ne) || isBadConn(err) || ne.Node != "replica1" || ne.Role != replicated.RoleReplica {
				t.Errorf("error %v, want a NodeError of replica1 without driver.ErrBadConn", err)
			}
			if err := rows.Close(); isBadConn(err) {
				t.Errorf("Close: %v", err)
			}
		}
		run(t.Context(), t, db, "INSERT INTO t VALUES (1)")
		if n := f.primary.Stats().Connects; n != 1 {
			t.Errorf("the primary was connected to %d times", n)
		}
	})
}

// … nor when the caller closes early, without having seen an error.
func TestReplicaKilledBeforeAnEarlyClose(t *testing.T) {
	eachShape(t, func(t *testing.T, shape fakedb.Shape) {
		f := newFakes(t, 1, shape)
		db := f.open()
		f.everywhere("SELECT n FROM many", lines(5))
		rows, err := db.QueryContext(t.Context(), "SELECT n FROM many")
		if err != nil || !rows.Next() {
			t.Fatal(err)
		}
		f.replicas[0].Kill()
		if err := rows.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		wantOn(t.Context(), t, db, "replica")
		run(t.Context(), t, db, "INSERT INTO t VALUES (1)")
		if n := f.primary.Stats().Connects; n != 1 {
			t.Errorf("the primary was connected to %d times", n)
		}
	})
}

func TestCancelledReadGoesNowhereElse(t *testing.T) {
	for _, shape := range []fakedb.Shape{fakedb.Full, fakedb.MySQLLike, fakedb.PQLike, fakedb.PgxLike} {
		t.Run(shape.String(), func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) {
				f := newFakes(t, 2, shape)
				db := f.open()
				holds := []*fakedb.Hold{f.replicas[0].Hold(fakedb.OpQuery), f.replicas[1].Hold(fakedb.OpQuery)}
				ctx, cancel := context.WithCancel(t.Context())
				got := make(chan error)
				go func() { got <- db.QueryRowContext(ctx, plainSelect).Scan(new(string)) }()
				select {
				case <-holds[0].Entered():
				case <-holds[1].Entered():
				}
				cancel()
				if err := <-got; !errors.Is(err, context.Canceled) {
					t.Errorf("error %v, want the context's", err)
				}
				holds[0].Release()
				holds[1].Release()
				f.wantRoutes("replica read failed")
				if got := f.breakers(db); !slices.Equal(got, closedBreakers) {
					t.Errorf("a cancelled read has left the breakers %v", got)
				}
				if n := f.replicas[0].Stats().OpenConns + f.replicas[1].Stats().OpenConns; n != 2 {
					t.Errorf("replicas have %d connections, want the probers' 2: a cancelled one is not pooled", n)
				}
			})
		})
	}
}

// A connection that died while idle costs nothing: it is opened anew, and the
// write runs once.
func TestWriteOnAConnectionThatDiedWhileIdle(t *testing.T) {
	eachShape(t, func(t *testing.T, shape fakedb.Shape) {
		f := newFakes(t, 1, shape)
		db := f.open()
		for i := range 20 {
			f.primary.Kill()
			run(t.Context(), t, db, "INSERT INTO t VALUES (1)")
			if n := sent(f.primary, "INSERT INTO t VALUES (1)"); n != i+1 {
				t.Fatalf("%d writes have reached the primary %d times", i+1, n)
			}
		}
	})
}

// Where we do not see the socket, the driver's driver.ErrBadConn means that
// nothing was sent: once the Conn helps itself, then database/sql takes another.
func TestDriversWordThatNothingWasSent(t *testing.T) {
	for failures := 1; failures <= 4; failures++ {
		faketime.Test(t, func(t *testing.T) {
			f := newFakes(t, 0, fakedb.Full)
			db := f.open()
			f.primary.Fail(fakedb.OpExec, failures, driver.ErrBadConn)
			run(t.Context(), t, db, "INSERT INTO t VALUES (1)")
			if n := f.primary.Stats().Execs; n != failures+1 {
				t.Errorf("after %d failures it was tried %d times, want once more", failures, n)
			}
		})
	}
}

func TestWriteWhoseAnswerIsLostIsSentOnce(t *testing.T) {
	for name, lost := range map[string]error{
		"invalid": mysql.ErrInvalidConn, "eof": io.ErrUnexpectedEOF, "57P01": pgError("57P01"), "1053": mysqlError(1053),
	} {
		t.Run(name, func(t *testing.T) {
			eachShape(t, func(t *testing.T, shape fakedb.Shape) {
				f := newFakes(t, 1, shape)
				db := f.open()
				f.primary.Reply("INSERT INTO t VALUES (1)", fakedb.Reply{Err: lost, Break: true})
				_, err := db.ExecContext(t.Context(), "INSERT INTO t VALUES (1)")
				if !errors.Is(err, replicated.ErrOutcomeUnknown) || isBadConn(err) || !errors.Is(err, lost) {
					t.Errorf("error %v, want ErrOutcomeUnknown around %v, and no driver.ErrBadConn", err, lost)
				}
				if n := sent(f.primary, "INSERT INTO t VALUES (1)"); n != 1 {
					t.Errorf("it was sent %d times", n)
				}
				wantOn(t.Context(), t, db, "primary") // it may have been written
				run(t.Context(), t, db, "INSERT INTO t VALUES (2)")
				if n := f.primary.Stats().Connects; n != 2 {
					t.Errorf("the primary was connected to %d times, want twice", n)
				}
			})
		})
	}
}

func TestCancelledWriteIsSentOnce(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.MySQLLike)
		db := f.open()
		hold := f.primary.Hold(fakedb.OpExec)
		defer hold.Release()
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan error)
		go func() {
			_, err := db.ExecContext(ctx, "INSERT INTO t VALUES (1)")
			got <- err
		}()
		<-hold.Entered()
		cancel()
		if err := <-got; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want the context's", err)
		}
		if n := sent(f.primary, "INSERT INTO t VALUES (1)"); n != 1 {
			t.Errorf("it was sent %d times", n)
		}
		wantOn(t.Context(), t, db, "primary") // it may commit yet
	})
}

// The primary fails reads that need it, and no others.
func TestPrimaryIsDown(t *testing.T) {
	down := errors.New("connection refused")
	for _, mode := range []replicated.PrimaryDownMode{replicated.PrimaryDownFail, replicated.PrimaryDownStale} {
		t.Run(mode.String(), func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) {
				f := newFakes(t, 2, fakedb.Full)
				db := f.open(func(c *replicated.Config) { c.PrimaryDown = mode })
				f.primary.Down(down)
				wantOn(t.Context(), t, db, "replica")
				f.wantRoutes("replica read")

				_, err := db.ExecContext(t.Context(), "INSERT INTO t VALUES (1)")
				var ne *replicated.NodeError
				if !errors.As(err, &ne) || ne.Role != replicated.RolePrimary || !errors.Is(err, down) || isBadConn(err) {
					t.Errorf("a write: %v, want a NodeError of the primary", err)
				}
				err = db.QueryRowContext(replicated.WithPrimary(t.Context()), plainSelect).Scan(new(string))
				if !errors.Is(err, down) || errors.Is(err, replicated.ErrNotFresh) {
					t.Errorf("a read that asks for the primary: %v", err)
				}

				f.routes()
				ctx := replicated.WithFresh(t.Context())
				if mode == replicated.PrimaryDownStale {
					wantOn(ctx, t, db, "replica")
					f.wantRoutes("primary fresh failed", "replica stale")
					f.everywhere(plainSelect, fakedb.Error(driver.ErrBadConn))
				}
				err = db.QueryRowContext(ctx, plainSelect).Scan(new(string))
				if !errors.Is(err, replicated.ErrNotFresh) || !errors.Is(err, down) || isBadConn(err) {
					t.Errorf("a read that no replica is fresh enough for: %v, want ErrNotFresh with the cause", err)
				}
			})
		})
	}
}

func TestPrimaryReadLimit(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		db := f.open(limit(2))
		cluster, err := replicated.ClusterOf(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		f.replicas[0].Down(errors.New("refused"))
		inFlight := func(want int64) {
			t.Helper()
			if got := cluster.Stats().FallbackReads; got != want {
				t.Errorf("%d reads in flight for want of a replica, want %d", got, want)
			}
		}

		var open []*sql.Rows
		for range 2 {
			rows, err := db.QueryContext(t.Context(), plainSelect)
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, rows)
		}
		inFlight(2)
		_, err = db.QueryContext(t.Context(), plainSelect)
		if !errors.Is(err, replicated.ErrNoReplica) || isBadConn(err) {
			t.Errorf("a third read: %v, want ErrNoReplica", err)
		}
		inFlight(2)
		run(replicated.WithUntracked(t.Context()), t, db, "INSERT INTO t VALUES (1)") // is no read
		wantOn(replicated.WithPrimary(t.Context()), t, db, "primary")                 // nor is this one there for want of a replica

		if err := open[0].Close(); err != nil {
			t.Fatal(err)
		}
		inFlight(1)
		rows, err := db.QueryContext(t.Context(), plainSelect)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() { // rows that end by themselves leave, too
		}
		inFlight(1)
		f.primary.Reply("SELECT bad", fakedb.Error(mysqlError(1064)))
		if _, err := db.QueryContext(t.Context(), "SELECT bad"); err == nil {
			t.Error("no error")
		}
		inFlight(1)
		if err := open[1].Close(); err != nil {
			t.Fatal(err)
		}
		inFlight(0)
	})
}

// A bounded pool would stand still here: each read holds a connection and waits
// for one more.
func TestBorrowerNeverWaitsForABorrower(t *testing.T) {
	eachShape(t, func(t *testing.T, shape fakedb.Shape) {
		f := newFakes(t, 1, shape)
		db := f.open(func(c *replicated.Config) { c.ReplicaMaxIdle = 2 }) // one is the prober's
		const depth = 20
		var open []*sql.Rows
		for range depth {
			rows, err := db.QueryContext(t.Context(), plainSelect)
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, rows)
		}
		r := f.replicas[0]
		if n := r.Stats().OpenConns; n != depth+1 {
			t.Errorf("%d reads in flight hold %d connections, want one each and the prober's", depth, n)
		}
		for _, rows := range open {
			if err := rows.Close(); err != nil {
				t.Error(err)
			}
		}
		if n := r.Stats().OpenConns; n != 2 {
			t.Errorf("%d connections are left, want 2 by the idle limit", n)
		}
	})
}

// A statement of the primary's own that is a proven read may be repeated.
func TestReadOnALostPrimaryIsRepeated(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 0, fakedb.Full)
		db := f.open()
		f.primary.Fail(fakedb.OpQuery, 1, io.ErrUnexpectedEOF)
		wantOn(t.Context(), t, db, "primary")
		if n := f.primary.Stats().Connects; n != 2 {
			t.Errorf("the primary was connected to %d times, want twice", n)
		}
	})
}
