package fakedb_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/internal/fakedb"
)

var ctx = context.Background()

func connect(t *testing.T, s *fakedb.Server, shape fakedb.Shape) driver.Conn {
	t.Helper()
	conn, err := s.Connector(shape).Connect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func exec(t *testing.T, conn driver.Conn, text string) error {
	t.Helper()
	_, err := conn.(driver.ExecerContext).ExecContext(ctx, text, nil)
	return err
}

func has[T any](v any) byte {
	if _, ok := v.(T); ok {
		return 'x'
	}
	return '-'
}

// The table of Shape's comment, column by column.
func TestShapesHaveTheMethodsOfTheirTable(t *testing.T) {
	for shape, want := range map[fakedb.Shape]string{
		fakedb.Full:      "conn xxxxxxxxx-- stmt xxxx rows xxxxxx",
		fakedb.MySQLLike: "conn xxxxxxxxx-- stmt xxxx rows xxx-xx",
		fakedb.PQLike:    "conn xxxxxxxxxxx stmt xx-- rows xxxx-x",
		fakedb.PgxLike:   "conn xxxxxx-xx-- stmt xx-- rows -xxx-x",
		fakedb.Legacy:    "conn ---------xx stmt ---x rows x-----",
		fakedb.Minimal:   "conn ----------- stmt ---- rows ------",
	} {
		s := fakedb.New("node")
		conn := connect(t, s, shape)
		stmt, err := conn.Prepare("get")
		if err != nil {
			t.Fatal(err)
		}
		var rows driver.Rows
		if q, ok := stmt.(driver.StmtQueryContext); ok {
			rows, err = q.QueryContext(ctx, nil)
		} else {
			rows, err = stmt.Query(nil) //nolint:staticcheck // the shape has nothing else
		}
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join([]string{
			"conn", string([]byte{
				has[driver.ConnPrepareContext](conn), has[driver.ConnBeginTx](conn), has[driver.ExecerContext](conn),
				has[driver.QueryerContext](conn), has[driver.Pinger](conn), has[driver.SessionResetter](conn),
				has[driver.Validator](conn), has[driver.NamedValueChecker](conn), has[interface{ TxStatus() byte }](conn),
				has[driver.Execer](conn), has[driver.Queryer](conn), //nolint:staticcheck // of legacy drivers
			}),
			"stmt", string([]byte{
				has[driver.StmtExecContext](stmt), has[driver.StmtQueryContext](stmt),
				has[driver.NamedValueChecker](stmt), has[driver.ColumnConverter](stmt), //nolint:staticcheck // of legacy drivers
			}),
			"rows", string([]byte{
				has[driver.RowsNextResultSet](rows), has[driver.RowsColumnTypeScanType](rows),
				has[driver.RowsColumnTypeDatabaseTypeName](rows), has[driver.RowsColumnTypeLength](rows),
				has[driver.RowsColumnTypeNullable](rows), has[driver.RowsColumnTypePrecisionScale](rows),
			}),
		}, " ")
		if got != want {
			t.Errorf("%v:\ngot  %s\nwant %s", shape, got, want)
		}
	}
}

func TestEveryShapeWorksUnderDatabaseSQL(t *testing.T) {
	for _, shape := range fakedb.Shapes() {
		t.Run(shape.String(), func(t *testing.T) {
			s := fakedb.New("replica-1")
			db := sql.OpenDB(s.Connector(shape))
			var node string
			if err := db.QueryRow("get ?", 1).Scan(&node); err != nil || node != "replica-1" {
				t.Errorf("node %q, %v", node, err)
			}
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec("put ?", int64(2)); err != nil {
				t.Error(err)
			}
			if err := tx.Commit(); err != nil {
				t.Error(err)
			}
			if got := s.Stats(); got.OpenConns != 1 || got.Queries != 1 || got.Execs != 1 || got.Begins != 1 || got.Commits != 1 {
				t.Errorf("%+v", got)
			}
			if got := s.Texts(); !slices.Equal(got, []string{"get ?", "put ?"}) {
				t.Errorf("texts %q", got)
			}
			for _, call := range s.Calls() {
				if call.Text == "put ?" && call.Op == fakedb.OpExec && (call.Tx != 'T' || len(call.Args) != 1 || call.Args[0].Value != int64(2)) {
					t.Errorf("%+v", call)
				}
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
			if open, misuse := s.Open(), s.Misuse(); len(open)+len(misuse) > 0 {
				t.Errorf("open %q, misused %q", open, misuse)
			}
		})
	}
}

func TestTransactionState(t *testing.T) {
	failure := errors.New("no such table")
	s := fakedb.New("node")
	s.Reply("bad", fakedb.Error(failure))
	conns := map[fakedb.Shape]driver.Conn{ // one for all rows of the table
		fakedb.PQLike:    connect(t, s, fakedb.PQLike),
		fakedb.MySQLLike: connect(t, s, fakedb.MySQLLike),
	}
	for _, test := range []struct {
		shape fakedb.Shape
		text  string
		err   error
		state byte
	}{
		{fakedb.PQLike, "select 1", nil, 'I'},
		{fakedb.PQLike, "bad", failure, 'I'},
		{fakedb.PQLike, "begin;", nil, 'T'},
		{fakedb.PQLike, "commit", nil, 'I'},
		{fakedb.PQLike, "START TRANSACTION READ ONLY", nil, 'T'},
		{fakedb.PQLike, "savepoint a", nil, 'T'},
		{fakedb.PQLike, "bad", failure, 'E'},
		{fakedb.PQLike, "select 1", fakedb.ErrAborted, 'E'},
		{fakedb.PQLike, "rollback to a", nil, 'T'},
		{fakedb.PQLike, "bad", failure, 'E'},
		{fakedb.PQLike, "END", fakedb.ErrCommitFailed, 'I'},
		{fakedb.MySQLLike, "begin", nil, 'T'},
		{fakedb.MySQLLike, "bad", failure, 'T'},
		{fakedb.MySQLLike, "rollback", nil, 'I'},
		{fakedb.MySQLLike, "", nil, 'I'},
	} {
		conn := conns[test.shape]
		if err := exec(t, conn, test.text); err != test.err {
			t.Errorf("%v %q: %v, want %v", test.shape, test.text, err, test.err)
		}
		if got := conn.(interface{ TxStatus() byte }).TxStatus(); got != test.state {
			t.Errorf("%v after %q: %c, want %c", test.shape, test.text, got, test.state)
		}
	}
}

func TestRepliesAreFoundInOrder(t *testing.T) {
	s := fakedb.New("node")
	s.OnQuery(func(_ context.Context, call *fakedb.Call) (*fakedb.Reply, error) {
		if call.Text == "mine" {
			r := fakedb.Row("by OnQuery")
			return &r, nil
		}
		return nil, nil
	})
	s.ReplyContaining("PART", func(context.Context, *fakedb.Call) (*fakedb.Reply, error) {
		r := fakedb.Row("by part")
		return &r, nil
	})
	s.Reply("exact part", fakedb.Row("exact"))
	s.SetRole(fakedb.Replica)
	db := sql.OpenDB(s.Connector(fakedb.Full))
	defer db.Close()
	for text, want := range map[string]string{
		"mine":                           "by OnQuery",
		"select Part":                    "by part",
		"exact part":                     "exact",
		"select 1":                       "node",
		"select pg_is_in_recovery()":     "true",
		"select @@global.x, @@read_only": "1",
	} {
		var got string
		if err := db.QueryRow(text).Scan(&got); err != nil || got != want {
			t.Errorf("%q: %q %v, want %q", text, got, err, want)
		}
	}
}

func TestFailuresAreCounted(t *testing.T) {
	failure := errors.New("failure")
	s := fakedb.New("node")
	conn := connect(t, s, fakedb.Full)
	s.Fail(fakedb.OpExec, 2, failure)
	for i, want := range []error{failure, failure, nil} {
		if err := exec(t, conn, "put"); err != want {
			t.Errorf("call %d: %v, want %v", i, err, want)
		}
	}
	if calls := s.Calls(); len(calls) != 4 || calls[1].Err != failure || calls[3].Err != nil {
		t.Errorf("%+v", calls)
	}
	s.Fail(fakedb.OpConnect, -1, failure)
	for range 3 {
		if _, err := s.Connector(fakedb.Full).Connect(ctx); err != failure {
			t.Errorf("connect: %v", err)
		}
	}
	s.Heal()
	connect(t, s, fakedb.Full)
}

func TestDownCutsAndRefuses(t *testing.T) {
	refused := errors.New("connection refused")
	s := fakedb.New("node")
	conn := connect(t, s, fakedb.Full)
	s.Down(refused)
	s.Forget()
	if err := exec(t, conn, "put"); err != driver.ErrBadConn {
		t.Errorf("exec: %v", err)
	}
	if s.Texts() != nil {
		t.Error("the text reached a dead server")
	}
	if conn.(driver.Validator).IsValid() {
		t.Error("still valid")
	}
	if _, err := s.Connector(fakedb.Full).Connect(ctx); err != refused {
		t.Errorf("connect: %v", err)
	}
	if err := conn.Close(); err != nil || s.Stats().OpenConns != 0 {
		t.Errorf("close: %v, %+v", err, s.Stats())
	}
	s.Heal()
	connect(t, s, fakedb.Full)
}

func TestHoldWaitsForReleaseOrContext(t *testing.T) {
	for shape, broken := range map[fakedb.Shape]bool{fakedb.Full: false, fakedb.MySQLLike: true} {
		s := fakedb.New("node")
		conn := connect(t, s, shape)
		hold := s.Hold(fakedb.OpExec)
		done := make(chan error)
		go func() { done <- exec(t, conn, "put") }()
		if call := <-hold.Entered(); call.Text != "put" {
			t.Errorf("entered %+v", call)
		}
		select {
		case err := <-done:
			t.Errorf("went through: %v", err)
		default:
		}
		hold.Release()
		if err := <-done; err != nil {
			t.Error(err)
		}

		hold = s.Hold(fakedb.OpExec)
		limited, cancel := context.WithCancel(ctx)
		go func() {
			_, err := conn.(driver.ExecerContext).ExecContext(limited, "put", nil)
			done <- err
		}()
		<-hold.Entered()
		cancel()
		if err := <-done; err != context.Canceled {
			t.Error(err)
		}
		hold.Release()
		if got := !conn.(driver.Validator).IsValid(); got != broken {
			t.Errorf("%v: broken after cancellation = %v", shape, got)
		}
	}
}

func TestMisuseIsRecorded(t *testing.T) {
	for _, test := range []struct {
		want string
		do   func(s *fakedb.Server, conn driver.Conn)
	}{
		{"after Close of connection", func(s *fakedb.Server, conn driver.Conn) {
			conn.Close()
			_, _ = conn.Prepare("put")
		}},
		{"closed twice", func(s *fakedb.Server, conn driver.Conn) {
			conn.Close()
			conn.Close()
		}},
		{"while rows are open", func(s *fakedb.Server, conn driver.Conn) {
			_, _ = conn.(driver.QueryerContext).QueryContext(ctx, "get", nil)
			_, _ = conn.(driver.ExecerContext).ExecContext(ctx, "put", nil)
		}},
		{"statement \"put\" used after Close", func(s *fakedb.Server, conn driver.Conn) {
			stmt, _ := conn.Prepare("put")
			stmt.Close()
			_, _ = stmt.(driver.StmtExecContext).ExecContext(ctx, nil)
		}},
		{"rows of \"get\" closed twice", func(s *fakedb.Server, conn driver.Conn) {
			rows, _ := conn.(driver.QueryerContext).QueryContext(ctx, "get", nil)
			rows.Close()
			rows.Close()
		}},
		{"next of \"get\" after Close", func(s *fakedb.Server, conn driver.Conn) {
			rows, _ := conn.(driver.QueryerContext).QueryContext(ctx, "get", nil)
			rows.Close()
			_ = rows.Next(make([]driver.Value, 1))
		}},
		{"read into 2 values, it has 1", func(s *fakedb.Server, conn driver.Conn) {
			rows, _ := conn.(driver.QueryerContext).QueryContext(ctx, "get", nil)
			defer func() { _ = recover() }()
			_ = rows.Next(make([]driver.Value, 2))
		}},
	} {
		s := fakedb.New("node")
		test.do(s, connect(t, s, fakedb.Full))
		if got := s.Misuse(); len(got) != 1 || !strings.Contains(got[0], test.want) {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

func TestLeaksAreListed(t *testing.T) {
	s := fakedb.New("node")
	conn := connect(t, s, fakedb.Full)
	stmt, err := conn.Prepare("get")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stmt.(driver.StmtQueryContext).QueryContext(ctx, nil); err != nil {
		t.Fatal(err)
	}
	want := []string{"node: connection 1", "node: rows of \"get\" on connection 1", "node: statement \"get\" on connection 1"}
	if got := s.Open(); !slices.Equal(got, want) {
		t.Errorf("open %q, want %q", got, want)
	}
	conn.Close()
	if got := s.Open(); len(got) != 0 {
		t.Errorf("open after Close %q", got)
	}
}

func TestBytesAreLentUntilTheNextCall(t *testing.T) {
	s := fakedb.New("node")
	s.Reply("get", fakedb.Reply{Columns: []string{"a"}, Rows: [][]driver.Value{{[]byte("one")}, {[]byte("two")}}})
	conn := connect(t, s, fakedb.Full)
	for range 2 { // the script itself is not spoilt
		rows, err := conn.(driver.QueryerContext).QueryContext(ctx, "get", nil)
		if err != nil {
			t.Fatal(err)
		}
		dest := make([]driver.Value, 1)
		if err := rows.Next(dest); err != nil || string(dest[0].([]byte)) != "one" {
			t.Fatalf("%s %v", dest, err)
		}
		kept := dest[0].([]byte)
		if err := rows.Next(dest); err != nil || string(dest[0].([]byte)) != "two" || string(kept) != "###" {
			t.Errorf("%s %v, kept %s", dest, err, kept)
		}
		rows.Close()
	}
}

func TestRowsFailBreakAndEnd(t *testing.T) {
	lost := errors.New("lost")
	s := fakedb.New("node")
	s.Reply("get", fakedb.Reply{
		Columns: []string{"a"}, Rows: [][]driver.Value{{int64(1)}},
		More: []fakedb.Reply{{Columns: []string{"b"}, NextErr: lost}}, Break: true,
	})
	conn := connect(t, s, fakedb.Full)
	rows, err := conn.(driver.QueryerContext).QueryContext(ctx, "get", nil)
	if err != nil {
		t.Fatal(err)
	}
	sets := rows.(driver.RowsNextResultSet)
	dest := make([]driver.Value, 1)
	if err := sets.Next(dest); err != nil {
		t.Fatal(err)
	}
	if err := sets.Next(dest); err != io.EOF || !sets.HasNextResultSet() {
		t.Errorf("end of the first set: %v", err)
	}
	if err := sets.NextResultSet(); err != nil || sets.HasNextResultSet() || !reflect.DeepEqual(sets.Columns(), []string{"b"}) {
		t.Errorf("second set: %v %q", err, sets.Columns())
	}
	if err := sets.Next(dest); err != lost {
		t.Errorf("second set: %v", err)
	}
	if conn.(driver.Validator).IsValid() {
		t.Error("connection still valid")
	}
	sets.Close()
}

func TestRefuseWrites(t *testing.T) {
	readOnly := errors.New("read-only")
	s := fakedb.New("node")
	s.RefuseWrites(readOnly)
	conn := connect(t, s, fakedb.Full)
	for text, want := range map[string]error{"insert into t values (1)": readOnly, " select 1": nil, "begin": nil} {
		if err := exec(t, conn, text); err != want {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
}

func TestParametersAreCountedOutsideQuotes(t *testing.T) {
	s := fakedb.New("node")
	conn := connect(t, s, fakedb.Full)
	for text, want := range map[string]int{
		"get": 0, "put ?, ?": 2, "put $2, $1, $2": 2, "put '?', \"$3\", `?`, ?": 1, "put 'open ?": 0, "put $, $a, $12": 12,
	} {
		stmt, err := conn.Prepare(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := stmt.NumInput(); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestDriverOpensServersByName(t *testing.T) {
	s := fakedb.New("db1")
	d := fakedb.NewDriver(fakedb.Full, s)
	if conn, err := d.Open("db1"); err != nil || s.Stats().OpenConns != 1 {
		t.Errorf("%v %v", conn, err)
	}
	if _, err := d.Open("db2"); err == nil {
		t.Error("opened an unknown server")
	}
	s.OnConnect(func(context.Context) error { return io.ErrUnexpectedEOF })
	if _, err := d.Open("db1"); err != io.ErrUnexpectedEOF {
		t.Errorf("open: %v", err)
	}
}
