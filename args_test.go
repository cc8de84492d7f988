package replicated

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/internal/fakedb"
)

// passConnector is the least driver that does what ours does with arguments,
// fall-backs and Rows, without any routing: it accepts every argument as it is
// and lets the inner connection convert them late. wrap, if not nil, is applied
// to the Rows.
type passConnector struct {
	inner driver.Connector
	wrap  func(driver.Rows) (driver.Rows, error)
}

func (c passConnector) Driver() driver.Driver { return c.inner.Driver() }

func (c passConnector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := c.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &passConn{inner, c.wrap}, nil
}

type passConn struct {
	inner driver.Conn
	wrap  func(driver.Rows) (driver.Rows, error)
}

func (c *passConn) CheckNamedValue(*driver.NamedValue) error { return nil }
func (c *passConn) Close() error                             { return c.inner.Close() }

func (c *passConn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

func (c *passConn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

func (c *passConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	return ctxDriverBegin(ctx, c.inner, opts)
}

func (c *passConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	stmt, err := ctxDriverPrepare(ctx, c.inner, query)
	if err != nil {
		return nil, err
	}
	return &passStmt{c, stmt}, nil
}

func (c *passConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if !hasExecer(c.inner) {
		return nil, driver.ErrSkip
	}
	args, err := convertArgs(c.inner, nil, -1, args)
	if err != nil {
		return nil, err
	}
	return ctxDriverExec(ctx, c.inner, query, args)
}

func (c *passConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if !hasQueryer(c.inner) {
		return nil, driver.ErrSkip
	}
	args, err := convertArgs(c.inner, nil, -1, args)
	if err != nil {
		return nil, err
	}
	rows, err := ctxDriverQuery(ctx, c.inner, query, args)
	if err != nil || c.wrap == nil {
		return rows, err
	}
	return c.wrap(rows)
}

type passStmt struct {
	c     *passConn
	inner driver.Stmt
}

func (st *passStmt) CheckNamedValue(*driver.NamedValue) error { return nil }
func (st *passStmt) Close() error                             { return st.inner.Close() }
func (st *passStmt) NumInput() int                            { return -1 }

func (st *passStmt) Exec([]driver.Value) (driver.Result, error) { return nil, errors.New("not called") }
func (st *passStmt) Query([]driver.Value) (driver.Rows, error)  { return nil, errors.New("not called") }

func (st *passStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	args, err := convertArgs(st.c.inner, st.inner, st.inner.NumInput(), args)
	if err != nil {
		return nil, err
	}
	return ctxDriverStmtExec(ctx, st.inner, args)
}

func (st *passStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	args, err := convertArgs(st.c.inner, st.inner, st.inner.NumInput(), args)
	if err != nil {
		return nil, err
	}
	rows, err := ctxDriverStmtQuery(ctx, st.inner, args)
	if err != nil || st.c.wrap == nil {
		return rows, err
	}
	return st.c.wrap(rows)
}

// Kinds of values that arguments are made of.
type (
	namedInt    int
	namedUint   uint64
	namedString string
	namedBytes  []byte
	namedBool   bool
	namedFloat  float64

	valueByValue   struct{ v driver.Value } // nil *valueByValue counts as NULL
	valueByPointer struct{ v driver.Value } // nil *valueByPointer reaches its method
	valueFails     struct{ err error }
	valuePanics    struct{}

	removedArg struct{} // an option, not an argument
	decimalArg struct{ coefficient []byte }
)

var errValuer = errors.New("cannot convert itself")

func (v valueByValue) Value() (driver.Value, error) { return v.v, nil }

func (v *valueByPointer) Value() (driver.Value, error) {
	if v == nil {
		return "nil receiver", nil
	}
	return v.v, nil
}

func (v valueFails) Value() (driver.Value, error) { return nil, v.err }

func (v *valuePanics) Value() (driver.Value, error) { panic("nil receiver not expected") }

func (d decimalArg) Decompose([]byte) (form byte, negative bool, coefficient []byte, exponent int32) {
	return 0, false, d.coefficient, 0
}

func ptrTo[T any](v T) *T { return &v }

// argLists are the arguments of one call each.
var argLists = []struct {
	name string
	args func() []any
}{
	{"none", func() []any { return nil }},
	{"nil", func() []any { return []any{nil} }},
	{"two nils", func() []any { return []any{nil, nil} }},
	{"int", func() []any { return []any{7} }},
	{"int8", func() []any { return []any{int8(-7)} }},
	{"int16", func() []any { return []any{int16(-7)} }},
	{"int32", func() []any { return []any{int32(-7)} }},
	{"int64", func() []any { return []any{int64(math.MinInt64)} }},
	{"uint", func() []any { return []any{uint(7)} }},
	{"uint8", func() []any { return []any{uint8(255)} }},
	{"uint16", func() []any { return []any{uint16(7)} }},
	{"uint32", func() []any { return []any{uint32(math.MaxUint32)} }},
	{"uint64", func() []any { return []any{uint64(7)} }},
	{"uint64 largest int64", func() []any { return []any{uint64(math.MaxInt64)} }},
	{"uint64 high bit", func() []any { return []any{uint64(1) << 63} }},
	{"uint64 max", func() []any { return []any{uint64(math.MaxUint64)} }},
	{"uint64 max pointer", func() []any { return []any{ptrTo(uint64(math.MaxUint64))} }},
	{"float32", func() []any { return []any{float32(0.1)} }},
	{"float64", func() []any { return []any{math.Inf(1)} }},
	{"bool", func() []any { return []any{true} }},
	{"string", func() []any { return []any{"text"} }},
	{"empty string", func() []any { return []any{""} }},
	{"bytes", func() []any { return []any{[]byte("bytes")} }},
	{"empty bytes", func() []any { return []any{[]byte{}} }},
	{"nil bytes", func() []any { return []any{[]byte(nil)} }},
	{"bytes pointer", func() []any { return []any{ptrTo([]byte("b"))} }},
	{"raw message", func() []any { return []any{json.RawMessage(`{"a":1}`)} }},
	{"nil raw message", func() []any { return []any{json.RawMessage(nil)} }},
	{"raw bytes", func() []any { return []any{sql.RawBytes("raw")} }},
	{"time", func() []any { return []any{time.Date(2024, 2, 29, 1, 2, 3, 4, time.UTC)} }},
	{"time pointer", func() []any { return []any{ptrTo(time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC))} }},
	{"duration", func() []any { return []any{time.Second} }},
	{"named types", func() []any {
		return []any{namedInt(1), namedUint(2), namedString("3"), namedBytes("4"), namedBool(true), namedFloat(6)}
	}},
	{"named uint high bit", func() []any { return []any{namedUint(math.MaxUint64)} }},
	{"nil *int", func() []any { return []any{(*int)(nil)} }},
	{"nil *string", func() []any { return []any{(*string)(nil)} }},
	{"nil *[]byte", func() []any { return []any{(*[]byte)(nil)} }},
	{"nil *time", func() []any { return []any{(*time.Time)(nil)} }},
	{"pointer", func() []any { return []any{ptrTo(7)} }},
	{"pointer to pointer", func() []any { return []any{ptrTo(ptrTo("deep"))} }},
	{"pointer to nil pointer", func() []any { return []any{ptrTo((*int)(nil))} }},
	{"pointer to named type", func() []any { return []any{ptrTo(namedInt(7))} }},
	{"valuer", func() []any { return []any{valueByValue{int64(7)}} }},
	{"pointer to valuer", func() []any { return []any{&valueByValue{"v"}} }},
	{"pointer valuer", func() []any { return []any{&valueByPointer{[]byte("v")}} }},
	{"nil pointer to valuer", func() []any { return []any{(*valueByValue)(nil)} }},
	{"nil pointer valuer", func() []any { return []any{(*valueByPointer)(nil)} }},
	{"pointer to nil pointer to valuer", func() []any { return []any{ptrTo((*valueByValue)(nil))} }},
	{"valuer of nil", func() []any { return []any{valueByValue{nil}} }},
	{"valuer of int", func() []any { return []any{valueByValue{7}} }},
	{"valuer of uint64", func() []any { return []any{valueByValue{uint64(math.MaxUint64)}} }},
	{"valuer of slice", func() []any { return []any{valueByValue{[]int64{1}}} }},
	{"valuer of valuer", func() []any { return []any{valueByValue{valueByValue{int64(1)}}} }},
	{"valuer that fails", func() []any { return []any{1, valueFails{errValuer}} }},
	{"valuer that fails under a name", func() []any { return []any{sql.Named("bad", valueFails{errValuer})} }},
	{"valuer that removes itself", func() []any { return []any{1, valueFails{driver.ErrRemoveArgument}, 3} }},
	{"valuer that panics", func() []any { return []any{(*valuePanics)(nil)} }},
	{"decimal", func() []any { return []any{decimalArg{[]byte{7}}} }},
	{"NullString", func() []any { return []any{sql.NullString{String: "s", Valid: true}, sql.NullString{}} }},
	{"NullInt64", func() []any { return []any{sql.NullInt64{Int64: 7, Valid: true}, sql.NullInt64{}} }},
	{"NullInt16, NullByte", func() []any { return []any{sql.NullInt16{Int16: 7, Valid: true}, sql.NullByte{Byte: 7, Valid: true}} }},
	{"NullTime", func() []any { return []any{sql.NullTime{Time: time.Unix(7, 0).UTC(), Valid: true}, sql.NullTime{}} }},
	{"Null of uint64", func() []any { return []any{sql.Null[uint64]{V: math.MaxUint64, Valid: true}} }},
	{"Null of slice", func() []any { return []any{sql.Null[[]string]{V: []string{"a"}, Valid: true}} }},
	{"[]int64", func() []any { return []any{[]int64{1, 2}} }},
	{"[]string", func() []any { return []any{[]string{"a", "b"}} }},
	{"nil []int64", func() []any { return []any{[]int64(nil)} }},
	{"pointer to slice", func() []any { return []any{&[]int64{1}} }},
	{"[]any", func() []any { return []any{[]any{1, "a"}} }},
	{"[3]int", func() []any { return []any{[3]int{1, 2, 3}} }},
	{"map", func() []any { return []any{map[string]int{"a": 1}} }},
	{"struct", func() []any { return []any{struct{ A int }{1}} }},
	{"complex", func() []any { return []any{complex(1, 2)} }},
	{"channel", func() []any { return []any{(chan int)(nil)} }},
	{"nil after two", func() []any { return []any{1, "two", nil} }},
	{"bad after good", func() []any { return []any{1, "two", struct{}{}} }},
	{"named", func() []any { return []any{sql.Named("a", 1)} }},
	{"named and not", func() []any { return []any{sql.Named("a", 1), 2, sql.Named("c", "3")} }},
	{"named valuer", func() []any { return []any{sql.Named("a", valueByValue{"v"})} }},
	{"named without name", func() []any { return []any{sql.Named("", 1)} }},
	{"named badly", func() []any { return []any{sql.Named("1a", 1)} }},
	{"named in named", func() []any { return []any{sql.Named("a", sql.Named("b", 1))} }},
	{"pointer to named", func() []any { return []any{ptrTo(sql.Named("a", 1))} }},
	{"named bad value", func() []any { return []any{sql.Named("ä", struct{}{})} }},
	{"out", func() []any { return []any{sql.Out{Dest: ptrTo(7)}} }},
	{"named out", func() []any { return []any{sql.Named("o", sql.Out{Dest: ptrTo("x"), In: true})} }},
	{"removed alone", func() []any { return []any{removedArg{}} }},
	{"removed first", func() []any { return []any{removedArg{}, 1, 2} }},
	{"removed between", func() []any { return []any{1, removedArg{}, 2, removedArg{}, 3} }},
	{"removed last", func() []any { return []any{1, 2, removedArg{}} }},
	{"removed under a name, then none", func() []any { return []any{sql.Named("a", removedArg{}), 1, 2} }},
	{"removed, then a name, then none", func() []any { return []any{removedArg{}, sql.Named("a", 1), 2} }},
	{"removed under a name, then bad", func() []any { return []any{sql.Named("a", removedArg{}), struct{}{}} }},
}

// removing wraps a checker with one that removes the options.
func removing(check func(*driver.NamedValue) error) func(*driver.NamedValue) error {
	return func(nv *driver.NamedValue) error {
		if _, ok := nv.Value.(removedArg); ok {
			return driver.ErrRemoveArgument
		}
		return check(nv)
	}
}

// strictColumns converts as a database with typed columns does: the first is an
// int32, the second refuses NULL, others may turn into what is no Value.
func strictColumns(index int) driver.ValueConverter {
	switch index {
	case 0:
		return driver.Int32
	case 1:
		return driver.NotNull{Converter: driver.DefaultParameterConverter}
	}
	return converterFunc(func(v any) (driver.Value, error) {
		if v == nil {
			return []int{index}, nil
		}
		return fmt.Sprintf("column %d: %v", index, v), nil
	})
}

type converterFunc func(any) (driver.Value, error)

func (f converterFunc) ConvertValue(v any) (driver.Value, error) { return f(v) }

func skipAll(*driver.NamedValue) error { return driver.ErrSkip }

// argOutcome is what the driver saw and what the caller got.
type argOutcome struct {
	calls []fakedb.Call
	err   string
	panic any
}

func (o argOutcome) String() string {
	var b strings.Builder
	for _, call := range o.calls {
		fmt.Fprintf(&b, "%s %q prepared=%v", call.Op, call.Text, call.Prepared)
		for _, arg := range call.Args {
			fmt.Fprintf(&b, " [%q %d %T %#v]", arg.Name, arg.Ordinal, arg.Value, arg.Value)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "error %s\npanic %v", o.err, o.panic)
	return b.String()
}

func (o argOutcome) equal(p argOutcome) bool {
	return o.err == p.err && o.panic == p.panic && slices.EqualFunc(o.calls, p.calls, func(a, b fakedb.Call) bool {
		return a.Op == b.Op && a.Text == b.Text && a.Prepared == b.Prepared && reflect.DeepEqual(a.Args, b.Args)
	})
}

// observeArgs runs f and reports what reached the server of it. Preparing is left
// out: where the bare driver has no ExecContext, database/sql refuses a badly
// named argument after that, and before it with ours.
func observeArgs(server *fakedb.Server, f func() error) (o argOutcome) {
	server.Forget()
	defer func() {
		o.panic = recover()
		for _, call := range server.Calls() {
			if call.Op == fakedb.OpExec || call.Op == fakedb.OpQuery {
				o.calls = append(o.calls, call)
			}
		}
	}()
	if err := f(); err != nil {
		o.err = err.Error()
	}
	return o
}

func TestConvertArgsAsDatabaseSQL(t *testing.T) {
	kinds := []struct {
		name      string
		shape     fakedb.Shape
		check     func(*driver.NamedValue) error
		converter func(int) driver.ValueConverter
	}{
		{name: "full: checker skips, columns, default", shape: fakedb.Full, check: removing(skipAll), converter: strictColumns},
		{name: "full: checker skips all", shape: fakedb.Full, check: removing(skipAll)},
		{name: "mysql-like, real checker", shape: fakedb.MySQLLike, check: removing(mysqlChecker(t))},
		{name: "pq-like, real checker", shape: fakedb.PQLike, check: removing(pqChecker(t, ""))},
		{name: "pq-like, real checker, binary_parameters", shape: fakedb.PQLike, check: removing(pqChecker(t, "binary_parameters=yes"))},
		{name: "pq-like, fake checker", shape: fakedb.PQLike},
		{name: "pgx-like: everything accepted", shape: fakedb.PgxLike},
		{name: "legacy: typed columns", shape: fakedb.Legacy, converter: strictColumns},
		{name: "legacy: default converter", shape: fakedb.Legacy},
		{name: "minimal", shape: fakedb.Minimal},
	}
	compared, failed := 0, 0
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			server := fakedb.New("node")
			server.OnCheck(kind.check)
			server.OnConvert(kind.converter)
			connector := server.Connector(kind.shape)
			bare := sql.OpenDB(connector)
			defer bare.Close()
			ours := sql.OpenDB(passConnector{inner: connector})
			defer ours.Close()

			for _, list := range argLists {
				args := list.args() // the same for both: errors print pointers
				for _, parameters := range []int{len(args), len(args) + 1, max(len(args)-1, 0)} {
					query := "put " + strings.TrimSuffix(strings.Repeat("?,", parameters), ",")
					for _, path := range []struct {
						name string
						run  func(*sql.DB) error
					}{
						{"conn", func(db *sql.DB) error {
							_, err := db.Exec(query, args...)
							return err
						}},
						{"stmt", func(db *sql.DB) error {
							stmt, err := db.Prepare(query)
							if err != nil {
								return err
							}
							defer stmt.Close()
							_, err = stmt.Exec(args...)
							return err
						}},
					} {
						want := observeArgs(server, func() error { return path.run(bare) })
						got := observeArgs(server, func() error { return path.run(ours) })
						compared++
						if want.err != "" {
							failed++
						}
						if !got.equal(want) {
							t.Errorf("%s, %d parameters, by %s:\ngot  %v\nwant %v", list.name, parameters, path.name, got, want)
						}
					}
				}
			}
		})
	}
	// A comparison of errors with errors alone would prove little.
	t.Logf("%d comparisons, %d of them of errors", compared, failed)
	if compared < 2*10*60 || failed < compared/10 || failed > compared*3/4 {
		t.Errorf("%d comparisons, %d of them of errors", compared, failed)
	}
}

func TestConvertArgsConvertsInPlace(t *testing.T) {
	server := fakedb.New("node")
	server.OnCheck(removing(skipAll))
	conn, err := server.Connector(fakedb.Full).Connect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	args := []driver.NamedValue{{Ordinal: 1, Value: removedArg{}}, {Ordinal: 2, Value: 7}, {Ordinal: 3, Name: "c", Value: ptrTo("x")}}
	got, err := convertArgs(conn, nil, -1, args)
	if err != nil {
		t.Fatal(err)
	}
	want := []driver.NamedValue{{Ordinal: 1, Value: int64(7)}, {Ordinal: 2, Name: "c", Value: "x"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if &got[0] != &args[0] {
		t.Error("the result does not share the memory of the arguments")
	}
}

// A converted list goes unchanged through the conversion for the next node.
func TestConvertArgsTwiceIsOnce(t *testing.T) {
	for _, check := range []func(*driver.NamedValue) error{skipAll, mysqlChecker(t), pqChecker(t, "")} {
		server := fakedb.New("node")
		server.OnCheck(check)
		conn, err := server.Connector(fakedb.PQLike).Connect(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, list := range argLists {
			if list.name == "valuer that panics" {
				continue
			}
			var raw []driver.NamedValue
			for i, v := range list.args() {
				raw = append(raw, driver.NamedValue{Ordinal: i + 1, Value: v})
			}
			once, err := convertArgs(conn, nil, -1, raw)
			if err != nil {
				continue
			}
			want := slices.Clone(once)
			twice, err := convertArgs(conn, nil, -1, once)
			if err != nil {
				t.Errorf("%s: second conversion: %v", list.name, err)
			}
			if !slices.EqualFunc(twice, want, func(a, b driver.NamedValue) bool { return reflect.DeepEqual(a, b) }) {
				t.Errorf("%s: got %v, want %v", list.name, twice, want)
			}
		}
		conn.Close()
	}
}

func TestConvertArgsAllocatesNothingForValues(t *testing.T) {
	server := fakedb.New("node")
	server.OnCheck(func(*driver.NamedValue) error { return driver.ErrSkip })
	conn, err := server.Connector(fakedb.Minimal).Connect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	args := []driver.NamedValue{{Ordinal: 1, Value: int64(7)}, {Ordinal: 2, Value: "x"}}
	if n := testing.AllocsPerRun(100, func() {
		if _, err := convertArgs(conn, nil, -1, args); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
