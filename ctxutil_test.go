package replicated

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"reflect"
	"testing"

	"github.com/sqlreplicated/replicated/internal/fakedb"
)

func openFake(t *testing.T, shape fakedb.Shape) (*fakedb.Server, driver.Conn) {
	t.Helper()
	server := fakedb.New("node")
	conn, err := server.Connector(shape).Connect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		if open := server.Open(); len(open) > 0 {
			t.Errorf("left open: %v", open)
		}
		if misuse := server.Misuse(); len(misuse) > 0 {
			t.Errorf("misused: %v", misuse)
		}
	})
	return server, conn
}

func endedContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func TestExecAndQueryWithoutPreparing(t *testing.T) {
	direct := map[fakedb.Shape]bool{
		fakedb.Full: true, fakedb.MySQLLike: true, fakedb.PQLike: true, fakedb.PgxLike: true,
		fakedb.Legacy: true, fakedb.Minimal: false,
	}
	for _, shape := range fakedb.Shapes() {
		t.Run(shape.String(), func(t *testing.T) {
			server, conn := openFake(t, shape)
			ctx := context.Background()
			if got := hasExecer(conn); got != direct[shape] {
				t.Errorf("hasExecer = %v", got)
			}
			if got := hasQueryer(conn); got != direct[shape] {
				t.Errorf("hasQueryer = %v", got)
			}
			_, execErr := ctxDriverExec(ctx, conn, "put", nil)
			rows, queryErr := ctxDriverQuery(ctx, conn, "get", nil)
			var texts []string
			if direct[shape] {
				texts = []string{"put", "get"}
				if execErr != nil || queryErr != nil {
					t.Fatalf("exec %v, query %v", execErr, queryErr)
				}
				rows.Close()
			} else if execErr != driver.ErrSkip || queryErr != driver.ErrSkip {
				t.Errorf("exec %v, query %v; want ErrSkip", execErr, queryErr)
			}
			if got := server.Texts(); !reflect.DeepEqual(got, texts) {
				t.Errorf("server ran %q, want %q", got, texts)
			}
		})
	}
}

func TestNamedArgumentsNeedAContextMethod(t *testing.T) {
	const text = "sql: driver does not support the use of Named Parameters"
	named := []driver.NamedValue{{Ordinal: 1, Value: int64(1)}, {Ordinal: 2, Name: "a", Value: int64(2)}}
	for _, shape := range []fakedb.Shape{fakedb.Legacy, fakedb.Minimal} {
		server, conn := openFake(t, shape)
		stmt, err := ctxDriverPrepare(context.Background(), conn, "put ?, ?")
		if err != nil {
			t.Fatal(err)
		}
		// The names are refused before the context is looked at.
		var errs []error
		if shape == fakedb.Legacy {
			_, execErr := ctxDriverExec(endedContext(), conn, "put ?, ?", named)
			_, queryErr := ctxDriverQuery(endedContext(), conn, "get ?, ?", named)
			errs = append(errs, execErr, queryErr)
		}
		_, execErr := ctxDriverStmtExec(endedContext(), stmt, named)
		_, queryErr := ctxDriverStmtQuery(endedContext(), stmt, named)
		for _, err := range append(errs, execErr, queryErr) {
			if err == nil || err.Error() != text {
				t.Errorf("%v: error %v, want %s", shape, err, text)
			}
		}
		stmt.Close()
		if got := server.Texts(); got != nil {
			t.Errorf("%v: server ran %q", shape, got)
		}
	}
}

// A context that has ended stops a legacy method before the call, and a
// statement prepared without regard to it is closed again.
func TestLegacyMethodsLookAtTheContext(t *testing.T) {
	for _, shape := range []fakedb.Shape{fakedb.Legacy, fakedb.Minimal} {
		server, conn := openFake(t, shape)
		stmt, err := ctxDriverPrepare(context.Background(), conn, "put")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ctxDriverStmtExec(endedContext(), stmt, nil); err != context.Canceled {
			t.Errorf("%v: stmt exec: %v", shape, err)
		}
		if _, err := ctxDriverStmtQuery(endedContext(), stmt, nil); err != context.Canceled {
			t.Errorf("%v: stmt query: %v", shape, err)
		}
		stmt.Close()
		if shape == fakedb.Legacy {
			if _, err := ctxDriverExec(endedContext(), conn, "put", nil); err != context.Canceled {
				t.Errorf("%v: exec: %v", shape, err)
			}
			if _, err := ctxDriverQuery(endedContext(), conn, "get", nil); err != context.Canceled {
				t.Errorf("%v: query: %v", shape, err)
			}
		}
		if got := server.Texts(); got != nil {
			t.Errorf("%v: server ran %q", shape, got)
		}

		server.Forget()
		if _, err := ctxDriverPrepare(endedContext(), conn, "late"); err != context.Canceled {
			t.Errorf("%v: prepare: %v", shape, err)
		}
		if want := []fakedb.Op{fakedb.OpPrepare, fakedb.OpStmtClose}; !reflect.DeepEqual(server.Ops(), want) {
			t.Errorf("%v: prepare did %v, want %v", shape, server.Ops(), want)
		}

		server.Forget()
		if _, err := ctxDriverBegin(endedContext(), conn, driver.TxOptions{}); err != context.Canceled {
			t.Errorf("%v: begin: %v", shape, err)
		}
		if want := []fakedb.Op{fakedb.OpBegin, fakedb.OpRollback}; !reflect.DeepEqual(server.Ops(), want) {
			t.Errorf("%v: begin did %v, want %v", shape, server.Ops(), want)
		}
	}
}

func TestContextMethodsGetTheContext(t *testing.T) {
	for _, shape := range []fakedb.Shape{fakedb.Full, fakedb.MySQLLike, fakedb.PQLike, fakedb.PgxLike} {
		server, conn := openFake(t, shape)
		for _, op := range []fakedb.Op{fakedb.OpExec, fakedb.OpQuery, fakedb.OpPrepare, fakedb.OpBegin} {
			server.Fail(op, 1, errors.New("reached the server"))
		}
		_, execErr := ctxDriverExec(endedContext(), conn, "put", nil)
		_, queryErr := ctxDriverQuery(endedContext(), conn, "get", nil)
		_, prepareErr := ctxDriverPrepare(endedContext(), conn, "put")
		_, beginErr := ctxDriverBegin(endedContext(), conn, driver.TxOptions{})
		for i, err := range []error{execErr, queryErr, prepareErr, beginErr} {
			if err != context.Canceled {
				t.Errorf("%v: call %d: %v", shape, i, err)
			}
		}
	}
}

// What cannot be passed on is refused with the words of database/sql, which are
// taken from database/sql itself.
func TestBeginRefusesWhatItCannotPassOn(t *testing.T) {
	options := []sql.TxOptions{
		{},
		{ReadOnly: true},
		{Isolation: sql.LevelSerializable},
		{Isolation: sql.LevelReadCommitted, ReadOnly: true},
	}
	for _, shape := range fakedb.Shapes() {
		server, conn := openFake(t, shape)
		bare := sql.OpenDB(server.Connector(shape))
		for _, opts := range options {
			want := ""
			if tx, err := bare.BeginTx(context.Background(), &opts); err != nil {
				want = err.Error()
			} else {
				_ = tx.Rollback()
			}
			if shape == fakedb.Minimal && opts != (sql.TxOptions{}) && want == "" {
				t.Fatalf("database/sql lets %v pass %+v", shape, opts)
			}
			server.Forget()
			driverOpts := driver.TxOptions{Isolation: driver.IsolationLevel(opts.Isolation), ReadOnly: opts.ReadOnly}
			tx, err := ctxDriverBegin(context.Background(), conn, driverOpts)
			if err != nil {
				if err.Error() != want {
					t.Errorf("%v, %+v: error %v, want %q", shape, opts, err, want)
				}
				continue
			}
			if want != "" {
				t.Errorf("%v, %+v: no error, want %q", shape, opts, want)
			}
			if calls := server.Calls(); len(calls) != 1 || calls[0].TxOpts != driverOpts {
				t.Errorf("%v, %+v: server saw %+v", shape, opts, calls)
			}
			_ = tx.Rollback()
		}
		bare.Close()
	}
}

// The whole of it through database/sql: every shape answers as if it were bare.
func TestFallBacksAreTransparent(t *testing.T) {
	program := func(db *sql.DB) (log []string) {
		note := func(what string, err error) {
			if err != nil {
				what += ": " + err.Error()
			}
			log = append(log, what)
		}
		ctx := context.Background()
		_, err := db.ExecContext(ctx, "put ?", 1)
		note("exec", err)
		var node string
		note("query", db.QueryRowContext(ctx, "get ?", 1).Scan(&node))
		note("node "+node, nil)
		_, err = db.ExecContext(ctx, "put @a", sql.Named("a", 1))
		note("named", err)
		stmt, err := db.PrepareContext(ctx, "put ?")
		note("prepare", err)
		_, err = stmt.ExecContext(ctx, 1)
		note("stmt exec", err)
		_, err = stmt.ExecContext(ctx, 1, 2)
		note("stmt exec of too many", err)
		note("stmt query", stmt.QueryRowContext(ctx, uint64(1)<<63).Scan(&node))
		note("stmt close", stmt.Close())
		tx, err := db.BeginTx(ctx, nil)
		note("begin", err)
		_, err = tx.Exec("put")
		note("tx exec", err)
		note("commit", tx.Commit())
		return log
	}
	for _, shape := range fakedb.Shapes() {
		t.Run(shape.String(), func(t *testing.T) {
			server := fakedb.New("node")
			bare := sql.OpenDB(server.Connector(shape))
			want := program(bare)
			bare.Close()
			wantTexts := server.Texts()
			server.Forget()
			ours := sql.OpenDB(passConnector{inner: server.Connector(shape)})
			got := program(ours)
			ours.Close()
			if !reflect.DeepEqual(got, want) {
				t.Errorf("\ngot  %q\nwant %q", got, want)
			}
			if texts := server.Texts(); !reflect.DeepEqual(texts, wantTexts) {
				t.Errorf("server ran\n%q\nwant\n%q", texts, wantTexts)
			}
			if open, misuse := server.Open(), server.Misuse(); len(open)+len(misuse) > 0 {
				t.Errorf("open %q, misused %q", open, misuse)
			}
		})
	}
}
