package replicated

import (
	"database/sql/driver"
	"fmt"
	"reflect"
)

// database/sql converts arguments by asking the connection it holds, before it
// calls Exec or Query. The connection it holds is ours, and which node's
// connection will run the statement is not known then. So ours accepts every
// value as it is (CheckNamedValue answers nil), and the conversion is made here,
// late, by the connection that will run the statement.
//
// The functions below mirror driverArgsConnLocked, ccChecker and
// callValuerValue of database/sql/convert.go (Go 1.26), texts of errors
// included. TestConvertArgsAsDatabaseSQL compares them with the original.

// columnConverter is driver.ColumnConverter, which is deprecated for drivers and
// in use by some of them.
type columnConverter interface {
	ColumnConverter(index int) driver.ValueConverter
}

// convertArgs brings args to what conn (and stmt, nil if none) accepts, exactly
// as database/sql would have.
//
// The values must be those that database/sql handed to a CheckNamedValue which
// changed nothing: raw, sql.NamedArg taken apart into Name and Value. want is
// the number of parameters of stmt (its NumInput), or -1 where that is not
// known or stmt is nil.
//
// The conversion happens in place and the result shares its memory with args;
// it is shorter where the driver answered driver.ErrRemoveArgument. Convert once
// and use the result for every further attempt on a node of the same driver: a
// Valuer may have effects. After an error the values of args are undefined.
func convertArgs(conn driver.Conn, stmt driver.Stmt, want int, args []driver.NamedValue) ([]driver.NamedValue, error) {
	checker, ok := stmt.(driver.NamedValueChecker)
	if !ok {
		checker, _ = conn.(driver.NamedValueChecker)
	}
	columns, _ := stmt.(columnConverter)

	n := 0     // arguments kept
	left := "" // name that a removed argument has left in the slot
	for i := range args {
		// database/sql hands the slot of a removed argument to the next one
		// and leaves the name in it, unless that has a name of its own.
		name, value := args[i].Name, args[i].Value
		if name == "" {
			name = left
		}
		nv := &args[n]
		*nv = driver.NamedValue{Name: name, Ordinal: n + 1, Value: value}

		switch err := checkNamedValue(checker, columns, want, nv); err {
		case nil:
			n++
			left = ""
		case driver.ErrRemoveArgument: //nolint:errorlint // by identity, as database/sql
			left = nv.Name
		default:
			return nil, fmt.Errorf("sql: converting argument %s type: %w", describeNamedValue(nv), err)
		}
	}

	// The number is checked after the conversion, which may have removed some.
	if want != -1 && n != want {
		return nil, fmt.Errorf("sql: expected %d arguments, got %d", want, n)
	}
	return args[:n], nil
}

// checkNamedValue sends one argument down the chain: checker, then the column
// converter, then the default converter. Either of the first two may be nil; a
// driver.ErrSkip from one hands the argument to the next. A Valuer that answers
// driver.ErrSkip to the last of them is an error here; database/sql asks it
// again without end.
func checkNamedValue(checker driver.NamedValueChecker, columns columnConverter, want int, nv *driver.NamedValue) error {
	if checker != nil {
		if err := checker.CheckNamedValue(nv); err != driver.ErrSkip {
			return err
		}
	}
	if columns != nil {
		if err := convertColumn(columns, want, nv); err != driver.ErrSkip {
			return err
		}
	}
	return defaultCheckNamedValue(nv)
}

// defaultCheckNamedValue converts as database/sql does where the driver has no
// say.
func defaultCheckNamedValue(nv *driver.NamedValue) (err error) {
	nv.Value, err = driver.DefaultParameterConverter.ConvertValue(nv.Value)
	return err
}

// convertColumn converts one argument as the statement's ColumnConverter asks.
func convertColumn(columns columnConverter, want int, nv *driver.NamedValue) error {
	// The converter must not be asked about a parameter the statement does
	// not have: the count is refused once all arguments are through.
	index := nv.Ordinal - 1
	if want >= 0 && want <= index {
		return nil
	}

	// First the value converts itself, then the column checks the result, for
	// example that an int64 fits into a 16-bit column.
	if valuer, ok := nv.Value.(driver.Valuer); ok {
		value, err := callValuerValue(valuer)
		if err != nil {
			return err
		}
		if !driver.IsValue(value) {
			return fmt.Errorf("non-subset type %T returned from Value", value)
		}
		nv.Value = value
	}

	var err error
	arg := nv.Value
	nv.Value, err = columns.ColumnConverter(index).ConvertValue(arg)
	if err != nil {
		return err
	}
	if !driver.IsValue(nv.Value) {
		return fmt.Errorf("driver ColumnConverter error converted %T to unsupported type %T", arg, nv.Value)
	}
	return nil
}

var valuerType = reflect.TypeFor[driver.Valuer]()

// callValuerValue calls Value, except on a nil pointer whose method belongs to
// the value it points to: that would panic, and counts as NULL instead.
func callValuerValue(valuer driver.Valuer) (driver.Value, error) {
	if v := reflect.ValueOf(valuer); v.Kind() == reflect.Pointer && v.IsNil() && v.Type().Elem().Implements(valuerType) {
		return nil, nil
	}
	return valuer.Value()
}

// describeNamedValue names an argument in an error.
func describeNamedValue(nv *driver.NamedValue) string {
	if nv.Name == "" {
		return fmt.Sprintf("$%d", nv.Ordinal)
	}
	return fmt.Sprintf("with name %q", nv.Name)
}
