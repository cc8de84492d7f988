package replicated_test

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"
	"github.com/sqlreplicated/replicated/internal/faketime"
)

const selectOne = "SELECT a FROM t WHERE a = ?"

func prepare(t *testing.T, db *sql.DB, text string) *sql.Stmt {
	t.Helper()
	stmt, err := db.PrepareContext(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	return stmt
}

func (f *fakes) prepares() (n int) {
	for _, s := range f.servers() {
		n += s.Stats().Prepares
	}
	return n
}

// A server is asked once for each text: its errors show at Prepare, and what it
// said of the parameters holds for all connections.
func TestPrepareAsksAServerOnceForEachText(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 2, fakedb.Full)
		db := f.open()
		first := prepare(t, db, selectOne)
		if n := f.prepares(); n != 1 {
			t.Errorf("the first Prepare has asked %d servers", n)
		}
		for range 5 {
			conn, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			stmt, err := conn.PrepareContext(t.Context(), selectOne)
			if err != nil {
				t.Fatal(err)
			}
			defer stmt.Close()
		}
		if n := f.prepares(); n != 1 {
			t.Errorf("six Prepares of one text on six connections have asked %d times", n)
		}
		if err := first.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestPrepareReportsTheServersError(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		db := f.open()
		bad := pgError("42601")
		f.replicas[0].Fail(fakedb.OpPrepare, 1, bad)
		if _, err := db.PrepareContext(t.Context(), selectOne); !errors.Is(err, bad) {
			t.Errorf("error %v, want the server's", err)
		}
		stmt := prepare(t, db, selectOne) // it is not remembered as bad
		if err := stmt.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Each physical connection prepares a live statement once, however often it runs.
func TestLiveStatementIsPreparedOnceOnAConnection(t *testing.T) {
	eachShape(t, func(t *testing.T, shape fakedb.Shape) {
		f := newFakes(t, 2, shape)
		db := f.open()
		db.SetMaxOpenConns(1)
		read, write := prepare(t, db, selectOne), prepare(t, db, "INSERT INTO t VALUES (?)")
		served := make(map[string]bool)
		for range 10 {
			var node string
			if err := read.QueryRowContext(t.Context(), 1).Scan(&node); err != nil {
				t.Fatal(err)
			}
			served[node] = true
			if _, err := write.ExecContext(replicated.WithUntracked(t.Context()), 1); err != nil {
				t.Fatal(err)
			}
		}
		if !served["replica1"] || !served["replica2"] || served["primary"] {
			t.Errorf("the reads ran on %v", served)
		}
		if n := f.prepares(); n != 3 && shape != fakedb.Minimal { // which does not tell its parameters
			t.Errorf("prepared %d times, want once on each replica and once on the primary", n)
		}
		if err := errors.Join(read.Close(), write.Close()); err != nil {
			t.Error(err)
		}
		for _, s := range f.servers() {
			if n := s.Stats().OpenStmts; n != 0 {
				t.Errorf("%s: %d statements are left", s.Name(), n)
			}
		}
	})
}

func TestReplicasCloseAStatementWithItsLastUser(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		db := f.open()
		a, b := prepare(t, db, selectOne), prepare(t, db, selectOne)
		for _, stmt := range []*sql.Stmt{a, b} {
			if err := stmt.QueryRowContext(t.Context(), 1).Scan(new(string)); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		if n := f.replicas[0].Stats().OpenStmts; n != 1 {
			t.Errorf("while one user is left, %d are open", n)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if n := f.replicas[0].Stats().OpenStmts; n != 0 {
			t.Errorf("after the last, %d are open", n)
		}
	})
}

func TestBusyReplicasCloseAStatementWhenTheyComeBack(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		db := f.open()
		stmt := prepare(t, db, selectOne)
		rows, err := stmt.QueryContext(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		// The same connection is busy with another text when the last user goes.
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
		busy, err := db.QueryContext(t.Context(), plainSelect)
		if err != nil {
			t.Fatal(err)
		}
		if err := stmt.Close(); err != nil {
			t.Error(err)
		}
		if n := f.replicas[0].Stats().OpenStmts; n != 1 {
			t.Errorf("while the connection is in use, %d are open, want the one", n)
		}
		if err := busy.Close(); err != nil {
			t.Error(err)
		}
		if n := f.replicas[0].Stats().OpenStmts; n != 0 {
			t.Errorf("when it came back, %d are open", n)
		}
	})
}

// A statement that drivers prepare behind a text with arguments is closed with it.
func TestImplicitStatementsAreClosed(t *testing.T) {
	eachShape(t, func(t *testing.T, shape fakedb.Shape) {
		f := newFakes(t, 1, shape)
		db := f.open()
		for range 3 {
			if err := db.QueryRowContext(t.Context(), selectOne, 1).Scan(new(string)); err != nil {
				t.Fatal(err)
			}
			run(t.Context(), t, db, "INSERT INTO t VALUES (?)", 1)
			if err := db.QueryRowContext(t.Context(), selectOne, 1).Scan(new(string)); err != nil {
				t.Fatal(err) // now on the primary
			}
		}
		for _, s := range f.servers() {
			if n := s.Stats().OpenStmts; n != 0 {
				t.Errorf("%s: %d statements are left", s.Name(), n)
			}
		}
	})
}

// A statement survives the connections that it was prepared on.
func TestStatementSurvivesItsConnections(t *testing.T) {
	eachShape(t, func(t *testing.T, shape fakedb.Shape) {
		f := newFakes(t, 1, shape)
		db := f.open()
		read, write := prepare(t, db, selectOne), prepare(t, db, "INSERT INTO t VALUES (?)")
		for range 3 {
			if err := read.QueryRowContext(t.Context(), 1).Scan(new(string)); err != nil {
				t.Fatal(err)
			}
			if _, err := write.ExecContext(replicated.WithUntracked(t.Context()), 1); err != nil {
				t.Fatal(err)
			}
			f.primary.Kill()
			f.replicas[0].Kill()
		}
		if n := f.primary.Stats().Execs; n != 3 {
			t.Errorf("three writes have run %d times", n)
		}
		if err := errors.Join(read.Close(), write.Close()); err != nil {
			t.Error(err)
		}
	})
}

func TestWrongNumberOfArguments(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		db := f.open()
		bare := sql.OpenDB(f.primary.Connector(fakedb.Full))
		defer bare.Close()
		theirs, ours := prepare(t, bare, selectOne), prepare(t, db, selectOne)
		defer theirs.Close()
		defer ours.Close()
		_, want := theirs.ExecContext(t.Context(), 1, 2)
		_, got := ours.ExecContext(t.Context(), 1, 2)
		if got == nil || got.Error() != want.Error() {
			t.Errorf("error %v, the bare driver's %v", got, want)
		}
	})
}

// lib/pq sends COPY when it prepares it: such a statement stays on the connection
// that prepared it, and is never prepared a second time.
func TestCopyStaysWhereItWasPrepared(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.PQLike)
		db := f.open(f.asPostgres())
		tx := begin(t, db, nil)
		stmt, err := tx.PrepareContext(t.Context(), "COPY t (a) FROM STDIN")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if _, err := stmt.ExecContext(t.Context(), i); err == nil {
				t.Fatal("the fake has no parameters in COPY, so that this must fail as it does bare")
			}
		}
		if _, err := stmt.ExecContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := stmt.Close(); err != nil {
			t.Error(err)
		}
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
		if got := f.prepares(); got != 1 {
			t.Errorf("prepared %d times", got)
		}
		if n := f.primary.Stats().Execs; n != 1 {
			t.Errorf("executed %d times", n)
		}
		wantOn(t.Context(), t, db, "primary") // it has written
	})
}

func TestCopyWhoseConnectionIsLost(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.PQLike)
		db := f.open(f.asPostgres())
		tx := begin(t, db, nil)
		stmt, err := tx.PrepareContext(t.Context(), "COPY t (a) FROM STDIN")
		if err != nil {
			t.Fatal(err)
		}
		f.primary.Kill()
		for range 2 {
			if _, err := stmt.ExecContext(t.Context()); err == nil {
				t.Error("it went on elsewhere")
			}
		}
		_ = stmt.Close()
		_ = tx.Rollback()
		if n := f.prepares(); n != 1 {
			t.Errorf("prepared %d times", n)
		}
	})
}

func TestTxStmt(t *testing.T) {
	eachShape(t, func(t *testing.T, shape fakedb.Shape) {
		f := newFakes(t, 1, shape)
		db := f.open()
		stmt := prepare(t, db, selectOne)
		defer stmt.Close()
		tx := begin(t, db, nil)
		var node string
		if err := tx.StmtContext(t.Context(), stmt).QueryRowContext(t.Context(), 1).Scan(&node); err != nil || node != "primary" {
			t.Errorf("in a transaction it ran on %s, %v", node, err)
		}
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
		if err := stmt.QueryRowContext(t.Context(), 1).Scan(&node); err != nil || node != "replica1" {
			t.Errorf("outside it ran on %s, %v", node, err)
		}
	})
}

// A statement means what the settings meant when it was prepared: a connection
// that is brought to others prepares it again.
func TestStatementsArePreparedAgainUnderOtherSettings(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.PQLike)
		db := f.open(f.asPostgres())
		db.SetMaxOpenConns(1)
		stmt := prepare(t, db, "SELECT a FROM t WHERE a = $1")
		for i := range 2 {
			for range 2 {
				if err := stmt.QueryRowContext(t.Context(), 1).Scan(new(string)); err != nil {
					t.Fatal(err)
				}
			}
			if n := f.replicas[0].Stats().Prepares; n != i+1 {
				t.Errorf("after %d changes of the settings it was prepared %d times", i, n)
			}
			run(t.Context(), t, db, "SET TIME ZONE 'Asia/Tokyo'")
		}
		if err := stmt.Close(); err != nil {
			t.Error(err)
		}
		if n := f.replicas[0].Stats().OpenStmts; n != 0 {
			t.Errorf("%d statements are left", n)
		}
	})
}
