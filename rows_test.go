package replicated

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/internal/fakedb"
)

// twoSets is a reply with every kind of value and column type, in two result
// sets of different width.
func twoSets() fakedb.Reply {
	return fakedb.Reply{
		Columns: []string{"id", "name", "price"},
		Rows: [][]driver.Value{
			{int64(1), []byte("one"), 1.5},
			{int64(2), nil, nil},
			{int64(3), []byte{}, time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)},
		},
		Types: []fakedb.ColumnType{
			{DatabaseType: "BIGINT", ScanType: reflect.TypeFor[int64](), HasNullable: true},
			{DatabaseType: "VARCHAR", ScanType: reflect.TypeFor[sql.NullString](), Length: 80, HasLength: true, Nullable: true, HasNullable: true},
			{DatabaseType: "DECIMAL", ScanType: reflect.TypeFor[float64](), Precision: 10, Scale: 2, HasPrecisionScale: true},
		},
		More: []fakedb.Reply{
			{
				Columns: []string{"total"},
				Rows:    [][]driver.Value{{"three"}},
				Types:   []fakedb.ColumnType{{DatabaseType: "TEXT"}},
			},
			{Columns: []string{"a", "b"}},
		},
	}
}

func eagerly(onError, onClose func(error) error) func(driver.Rows) (driver.Rows, error) {
	return func(inner driver.Rows) (driver.Rows, error) {
		first, err := fetchFirst(inner)
		if err != nil {
			inner.Close()
			return nil, err
		}
		return wrapRows(inner, first, onError, onClose), nil
	}
}

func lazily(onError, onClose func(error) error) func(driver.Rows) (driver.Rows, error) {
	return func(inner driver.Rows) (driver.Rows, error) {
		return wrapRows(inner, nil, onError, onClose), nil
	}
}

// describeRows reads everything that database/sql can tell of a query's rows.
func describeRows(db *sql.DB, query string) (log []string) {
	rows, err := db.Query(query)
	if err != nil {
		return []string{"query: " + err.Error()}
	}
	defer rows.Close()
	for set := 0; ; set++ {
		columns, err := rows.Columns()
		log = append(log, fmt.Sprintf("set %d: %q %v", set, columns, err))
		types, err := rows.ColumnTypes()
		log = append(log, fmt.Sprintf("types %v", err))
		for _, ct := range types {
			length, hasLength := ct.Length()
			nullable, hasNullable := ct.Nullable()
			precision, scale, hasDecimal := ct.DecimalSize()
			log = append(log, fmt.Sprint(ct.Name(), ct.DatabaseTypeName(), ct.ScanType(), length, hasLength, nullable, hasNullable, precision, scale, hasDecimal))
		}
		for rows.Next() {
			values := make([]any, len(columns))
			dest := make([]any, len(columns))
			for i := range values {
				dest[i] = &values[i]
			}
			err := rows.Scan(dest...)
			log = append(log, fmt.Sprintf("%#v %v", values, err))
		}
		log = append(log, fmt.Sprint("err ", rows.Err()))
		if !rows.NextResultSet() {
			break
		}
	}
	return append(log, fmt.Sprint("end ", rows.Err(), " close ", rows.Close()))
}

func TestRowsAreTransparent(t *testing.T) {
	errNext, errClose := errors.New("next failed"), errors.New("close failed")
	replies := map[string]fakedb.Reply{
		"two sets":        twoSets(),
		"no rows":         {Columns: []string{"a"}},
		"no columns":      {},
		"next fails":      {Columns: []string{"a"}, Rows: [][]driver.Value{{int64(1)}}, NextErr: errNext},
		"close fails":     {Columns: []string{"a"}, Rows: [][]driver.Value{{"v"}}, CloseErr: errClose},
		"second set ends": {Columns: []string{"a"}, More: []fakedb.Reply{{Columns: []string{"b"}, NextErr: errNext}}},
		"statement fails": {Err: errors.New("no such table")},
	}
	for _, shape := range fakedb.Shapes() {
		for name, reply := range replies {
			server := fakedb.New("node")
			server.Reply("q", reply)
			bare := sql.OpenDB(server.Connector(shape))
			want := describeRows(bare, "q")
			bare.Close()
			for wrapper, wrap := range map[string]func(driver.Rows) (driver.Rows, error){
				"lazily":  lazily(nil, nil),
				"eagerly": eagerly(nil, nil),
			} {
				t.Run(fmt.Sprintf("%v/%s/%s", shape, name, wrapper), func(t *testing.T) {
					ours := sql.OpenDB(passConnector{server.Connector(shape), wrap})
					got := describeRows(ours, "q")
					ours.Close()
					if !slices.Equal(got, want) {
						t.Errorf("\ngot  %q\nwant %q", got, want)
					}
					if open, misuse := server.Open(), server.Misuse(); len(open)+len(misuse) > 0 {
						t.Errorf("open %q, misused %q", open, misuse)
					}
				})
			}
		}
	}
}

// rowHooks record what a wrapper calls.
type rowHooks struct {
	mapped []error // what onError was given
	closed []error // what onClose was given
	result error   // what onClose answers
}

func (h *rowHooks) onError(err error) error {
	h.mapped = append(h.mapped, err)
	return fmt.Errorf("mapped %v", err)
}

func (h *rowHooks) onClose(err error) error {
	h.closed = append(h.closed, err)
	return h.result
}

func queryFake(t *testing.T, server *fakedb.Server, shape fakedb.Shape, wrap func(driver.Rows) (driver.Rows, error)) driver.Rows {
	t.Helper()
	conn, err := passConnector{server.Connector(shape), wrap}.Connect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	rows, err := conn.(driver.QueryerContext).QueryContext(context.Background(), "q", nil)
	if err == driver.ErrSkip {
		stmt, prepareErr := conn.Prepare("q")
		if prepareErr != nil {
			t.Fatal(prepareErr)
		}
		rows, err = stmt.(driver.StmtQueryContext).QueryContext(context.Background(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		if misuse := server.Misuse(); len(misuse) > 0 {
			t.Errorf("misused: %q", misuse)
		}
	})
	return rows
}

func TestRowsCloseRunsOnce(t *testing.T) {
	result := errors.New("from onClose")
	for _, shape := range fakedb.Shapes() {
		for _, read := range []int{0, 1, 3, 4} { // rows read before Close; 4 meets the end
			server := fakedb.New("node")
			server.Reply("q", twoSets())
			h := &rowHooks{result: result}
			rows := queryFake(t, server, shape, lazily(h.onError, h.onClose))
			dest := make([]driver.Value, 3)
			for i := range read {
				if err := rows.Next(dest); (err == io.EOF) != (i == 3) || err != nil && err != io.EOF {
					t.Fatalf("%v: row %d: %v", shape, i, err)
				}
			}
			if len(h.closed) != 0 {
				t.Errorf("%v: onClose before Close", shape)
			}
			if err := rows.Close(); err != result {
				t.Errorf("%v: Close = %v", shape, err)
			}
			if err := rows.Close(); err != nil {
				t.Errorf("%v: second Close = %v", shape, err)
			}
			if !slices.Equal(h.closed, []error{nil}) || h.mapped != nil {
				t.Errorf("%v: onClose got %v, onError %v", shape, h.closed, h.mapped)
			}
			if stats := server.Stats(); stats.RowsCloses != 1 || stats.OpenRows != 0 {
				t.Errorf("%v: %+v", shape, stats)
			}
		}
	}
}

// onClose runs when the node's Rows are closed, so that the connection it gives
// back is free.
func TestRowsCloseInnerBeforeTheHook(t *testing.T) {
	server := fakedb.New("node")
	open := -1
	rows := queryFake(t, server, fakedb.Full, lazily(nil, func(err error) error {
		open = server.Stats().OpenRows
		return err
	}))
	if err := rows.Close(); err != nil || open != 0 {
		t.Errorf("Close = %v, %d rows were open", err, open)
	}
}

func TestRowsErrorsAreMappedAndRemembered(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	for _, shape := range fakedb.Shapes() {
		server := fakedb.New("node")
		server.Reply("q", fakedb.Reply{Columns: []string{"a"}, CloseErr: errors.New("close")})
		h := &rowHooks{}
		rows := queryFake(t, server, shape, lazily(h.onError, h.onClose))
		server.Fail(fakedb.OpNext, 1, first)
		server.Fail(fakedb.OpNext, 1, second)
		dest := make([]driver.Value, 1)
		if err := rows.Next(dest); err == nil || err.Error() != "mapped first" {
			t.Errorf("%v: Next = %v", shape, err)
		}
		if err := rows.Next(dest); err == nil || err.Error() != "mapped second" {
			t.Errorf("%v: second Next = %v", shape, err)
		}
		if err := rows.Next(dest); err != io.EOF {
			t.Errorf("%v: third Next = %v", shape, err)
		}
		if err := rows.Close(); err != nil {
			t.Errorf("%v: Close = %v", shape, err)
		}
		if !slices.Equal(h.mapped, []error{first, second}) || !slices.Equal(h.closed, []error{first}) {
			t.Errorf("%v: onError got %v, onClose %v", shape, h.mapped, h.closed)
		}
	}
}

func TestRowsNextResultSetErrorsAreMapped(t *testing.T) {
	failure := errors.New("failure")
	server := fakedb.New("node")
	server.Reply("q", twoSets())
	h := &rowHooks{}
	rows := queryFake(t, server, fakedb.Full, lazily(h.onError, h.onClose)).(driver.RowsNextResultSet)
	server.Fail(fakedb.OpNextResultSet, 1, failure)
	if err := rows.NextResultSet(); err == nil || err.Error() != "mapped failure" {
		t.Errorf("NextResultSet = %v", err)
	}
	rows.Close()
	if !slices.Equal(h.closed, []error{failure}) {
		t.Errorf("onClose got %v", h.closed)
	}
}

func TestRowsCloseErrorReachesTheHook(t *testing.T) {
	failure := errors.New("failure")
	server := fakedb.New("node")
	server.Reply("q", fakedb.Reply{CloseErr: failure})
	h := &rowHooks{}
	if err := queryFake(t, server, fakedb.Full, lazily(nil, h.onClose)).Close(); err != nil || !slices.Equal(h.closed, []error{failure}) {
		t.Errorf("Close = %v, onClose got %v", err, h.closed)
	}
	if err := queryFake(t, server, fakedb.Full, lazily(nil, nil)).Close(); err != failure {
		t.Errorf("Close without hook = %v", err)
	}
}

// A lost connection ends the rows with driver.ErrBadConn, and lib/pq's Close
// repeats it: database/sql then gives up the whole connection, which is the
// primary's, too. Mapped, it does not. The unmapped half shows that it would.
func TestRowsKeepErrBadConnFromDatabaseSQL(t *testing.T) {
	lost := errors.New("connection of the replica lost")
	mapped := lazily(
		func(err error) error { return lost },
		func(err error) error {
			if errors.Is(err, driver.ErrBadConn) {
				return nil
			}
			return err
		})
	for _, test := range []struct {
		name   string
		wrap   func(driver.Rows) (driver.Rows, error)
		err    error
		closes int
	}{
		{"unmapped", lazily(nil, nil), driver.ErrBadConn, 1},
		{"mapped", mapped, lost, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := fakedb.New("replica")
			server.Reply("q", twoSets())
			db := sql.OpenDB(passConnector{server.Connector(fakedb.PQLike), test.wrap})
			defer db.Close()
			rows, err := db.Query("q")
			if err != nil {
				t.Fatal(err)
			}
			if !rows.Next() {
				t.Fatal(rows.Err())
			}
			server.Kill()
			if rows.Next() {
				t.Fatal("a row of a dead connection")
			}
			if !errors.Is(rows.Err(), test.err) {
				t.Errorf("Err = %v, want %v", rows.Err(), test.err)
			}
			if got := server.Stats().Closes; got != test.closes {
				t.Errorf("%d connections closed, want %d", got, test.closes)
			}
		})
	}
}

func TestRowsAreNotTouchedAfterClose(t *testing.T) {
	for _, shape := range fakedb.Shapes() {
		server := fakedb.New("node")
		server.Reply("q", twoSets())
		// The cleanup of queryFake finds what reached the closed inner Rows.
		rows := queryFake(t, server, shape, eagerly(nil, nil)).(driver.RowsNextResultSet)
		rows.Close()
		if err := rows.Next(make([]driver.Value, 3)); err != io.EOF {
			t.Errorf("%v: Next = %v", shape, err)
		}
		if rows.HasNextResultSet() {
			t.Errorf("%v: HasNextResultSet", shape)
		}
		if err := rows.NextResultSet(); err != io.EOF {
			t.Errorf("%v: NextResultSet = %v", shape, err)
		}
	}
}

func TestFetchFirstReportsTheErrorOfTheFirstRow(t *testing.T) {
	failure := errors.New("conflict with recovery")
	for _, shape := range fakedb.Shapes() {
		server := fakedb.New("node")
		server.Reply("q", fakedb.Reply{Columns: []string{"a"}, NextErr: failure})
		rows := queryFake(t, server, shape, nil)
		if first, err := fetchFirst(rows); err != failure || first != nil {
			t.Errorf("%v: fetchFirst = %v, %v", shape, first, err)
		}
		if server.Stats().OpenRows != 1 {
			t.Errorf("%v: the rows were closed", shape)
		}
		rows.Close()
	}
}

// The row read ahead is handed out once, and what follows it follows it.
func TestFetchFirstHandsTheRowOut(t *testing.T) {
	for _, shape := range fakedb.Shapes() {
		server := fakedb.New("node")
		server.Reply("q", twoSets())
		rows := queryFake(t, server, shape, eagerly(nil, nil))
		if got := rows.Columns(); !slices.Equal(got, []string{"id", "name", "price"}) {
			t.Errorf("%v: columns %q", shape, got)
		}
		dest := make([]driver.Value, 3)
		for id := int64(1); id <= 3; id++ {
			if err := rows.Next(dest); err != nil || dest[0] != id {
				t.Errorf("%v: row %d: %v %v", shape, id, dest, err)
			}
		}
		if err := rows.Next(dest); err != io.EOF {
			t.Errorf("%v: end: %v", shape, err)
		}
		rows.Close()
	}
}

func TestFetchFirstIsDroppedByNextResultSet(t *testing.T) {
	server := fakedb.New("node")
	server.Reply("q", twoSets())
	rows := queryFake(t, server, fakedb.Full, eagerly(nil, nil)).(driver.RowsNextResultSet)
	defer rows.Close()
	if !rows.HasNextResultSet() {
		t.Error("no next result set")
	}
	if err := rows.NextResultSet(); err != nil {
		t.Fatal(err)
	}
	dest := make([]driver.Value, 1)
	if err := rows.Next(dest); err != nil || dest[0] != "three" || !slices.Equal(rows.Columns(), []string{"total"}) {
		t.Errorf("%q %v %v", rows.Columns(), dest, err)
	}
}

func TestFetchFirstAtTheEndIsNoError(t *testing.T) {
	for _, shape := range fakedb.Shapes() {
		server := fakedb.New("node")
		server.Reply("q", fakedb.Reply{Columns: []string{"a"}})
		h := &rowHooks{}
		rows := queryFake(t, server, shape, eagerly(h.onError, h.onClose))
		if err := rows.Next(make([]driver.Value, 1)); err != io.EOF {
			t.Errorf("%v: Next = %v", shape, err)
		}
		rows.Close()
		if h.mapped != nil || !slices.Equal(h.closed, []error{nil}) {
			t.Errorf("%v: onError got %v, onClose %v", shape, h.mapped, h.closed)
		}
	}
}

// forgetfulRows lend their memory for one call only, and forget their columns at
// the end.
type forgetfulRows struct {
	buf  []byte
	rows int
}

func (r *forgetfulRows) Columns() []string {
	copy(r.buf, "####")
	if r.rows == 0 {
		return nil
	}
	return []string{"a"}
}

func (r *forgetfulRows) ColumnTypeDatabaseTypeName(int) string {
	copy(r.buf, "####")
	return "TEXT"
}

func (r *forgetfulRows) Next(dest []driver.Value) error {
	if r.rows--; r.rows == 0 {
		return io.EOF
	}
	r.buf = append(r.buf[:0], "text"...)
	dest[0] = r.buf
	return nil
}

func (r *forgetfulRows) Close() error { return nil }

func TestFetchFirstKeepsWhatTheDriverLends(t *testing.T) {
	inner := &forgetfulRows{rows: 2}
	first, err := fetchFirst(inner)
	if err != nil {
		t.Fatal(err)
	}
	rows := wrapRows(inner, first, nil, nil)
	rows.(driver.RowsColumnTypeDatabaseTypeName).ColumnTypeDatabaseTypeName(0)
	dest := make([]driver.Value, len(rows.Columns()))
	if err := rows.Next(dest); err != nil || string(dest[0].([]byte)) != "text" {
		t.Errorf("%s %v", dest, err)
	}

	inner = &forgetfulRows{rows: 1}
	if first, err = fetchFirst(inner); err != nil {
		t.Fatal(err)
	}
	if got := wrapRows(inner, first, nil, nil).Columns(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("columns %q", got)
	}
}

// sql.RawBytes stay good until the next Next, of the first row as of the others.
func TestRawBytesOfTheFirstRow(t *testing.T) {
	for _, shape := range fakedb.Shapes() {
		server := fakedb.New("node")
		server.Reply("q", fakedb.Reply{Columns: []string{"a"}, Rows: [][]driver.Value{{[]byte("first")}, {[]byte("second")}}})
		db := sql.OpenDB(passConnector{server.Connector(shape), eagerly(nil, nil)})
		rows, err := db.Query("q")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"first", "second"} {
			var raw sql.RawBytes
			if !rows.Next() {
				t.Fatal(rows.Err())
			}
			if err := rows.Scan(&raw); err != nil || string(raw) != want {
				t.Errorf("%v: %q %v, want %q", shape, raw, err, want)
			}
		}
		rows.Close()
		db.Close()
	}
}

type endlessRows struct{ value driver.Value }

func (r *endlessRows) Columns() []string { return nil }
func (r *endlessRows) Close() error      { return nil }
func (r *endlessRows) Next(dest []driver.Value) error {
	dest[0] = r.value
	return nil
}

func TestRowsNextAllocatesNothing(t *testing.T) {
	keep := func(err error) error { return err }
	rows := wrapRows(&endlessRows{int64(1) << 40}, nil, keep, keep)
	dest := make([]driver.Value, 1)
	if n := testing.AllocsPerRun(100, func() {
		if err := rows.Next(dest); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
