package status

import (
	"database/sql/driver"
	"reflect"
)

// txStatuser is implemented by pgx's *pgconn.PgConn, and by any driver
// connection that wants to be read here. The byte is that of PostgreSQL's
// ReadyForQuery message: 'I', 'T' or 'E'.
type txStatuser interface{ TxStatus() byte }

// Reader reads the status of one connection. The zero Reader reads Unknown.
// Read may be called whenever the driver is not at work on the connection;
// there is no other rule on goroutines.
type Reader struct {
	field reflect.Value // what the driver keeps
	form  form          // of field
	asked txStatuser    // instead of field
}

// Known reports whether the reader has found where the driver keeps the status.
func (r Reader) Known() bool { return r.asked != nil || r.form != none }

// AfterErrors reports whether the status is told with errors too. MySQL's is not: after
// one, Read returns what was told with the last success before it.
func (r Reader) AfterErrors() bool { return r.asked != nil || r.form == readyForQuery }

// Read returns the present status. It does not allocate.
func (r Reader) Read() Status {
	switch r.form { // not a function kept in Reader, which costs as much again
	case readyForQuery:
		return fromPostgres(byte(r.field.Uint()))
	case serverStatus:
		return fromMySQL(uint16(r.field.Uint()))
	}
	if r.asked != nil {
		return fromPostgres(r.asked.TxStatus())
	}
	return Status{}
}

// ReaderFor finds where the driver of conn keeps the status. It knows, in this
// order: a connection with a method TxStatus() byte; lib/pq; go-sql-driver;
// pgx's stdlib. Wrappers are not unwrapped.
func ReaderFor(conn driver.Conn) Reader {
	if asked, ok := conn.(txStatuser); ok {
		return Reader{asked: asked}
	}
	for _, k := range kept {
		if f := k.find(conn); f.IsValid() {
			return Reader{field: f, form: k.form}
		}
	}
	if asked, ok := pgxConn(conn).(txStatuser); ok {
		return Reader{asked: asked}
	}
	return Reader{}
}

// BackendPID returns the process id that the server gave for the connection in
// its BackendKeyData message, if the driver is lib/pq or pgx, or its connection
// has a method PID() uint32. A pooler that multiplexes gives its own, so that
// pg_backend_pid() then differs.
func BackendPID(conn driver.Conn) (pid int64, ok bool) {
	if f := pqPID.find(conn); f.IsValid() {
		return f.Int(), f.Int() != 0
	}
	asked, ok := conn.(pider)
	if !ok {
		asked, ok = pgxConn(conn).(pider)
	}
	if !ok {
		return 0, false
	}
	return int64(asked.PID()), asked.PID() != 0
}

// pider is implemented by pgx's *pgconn.PgConn, and by any driver connection that
// wants to be read here.
type pider interface{ PID() uint32 }

// keptField says in which field of its connection a driver keeps a number.
type keptField struct {
	pkg, typ, field string
	kind            reflect.Kind
	form            form
}

// kept names the fields as they are in lib/pq v1.12.3 (conn.go, type conn) and
// go-sql-driver v1.10.1 (connection.go, type mysqlConn).
var kept = [...]keptField{
	{pkg: "github.com/lib/pq", typ: "conn", field: "txnStatus", kind: reflect.Uint8, form: readyForQuery},
	{pkg: "github.com/go-sql-driver/mysql", typ: "mysqlConn", field: "status", kind: reflect.Uint16, form: serverStatus},
}

var pqPID = keptField{pkg: "github.com/lib/pq", typ: "conn", field: "pid", kind: reflect.Int}

// find returns the field in conn, or the zero Value. A field of another kind is
// not the one that is meant, and is not taken.
func (k keptField) find(conn driver.Conn) reflect.Value {
	v := reflect.ValueOf(conn)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return reflect.Value{}
	}
	v = v.Elem()
	if t := v.Type(); t.Name() != k.typ || t.PkgPath() != k.pkg {
		return reflect.Value{}
	}
	if f := v.FieldByName(k.field); f.IsValid() && f.Kind() == k.kind {
		return f
	}
	return reflect.Value{}
}

// pgxConn returns conn.Conn().PgConn() of a pgx stdlib connection, without
// importing pgx: it is found by the methods' names. Both results stay the same
// for the life of the connection.
func pgxConn(conn driver.Conn) any {
	v := reflect.ValueOf(conn)
	for _, method := range [...]func(reflect.Value) reflect.Value{
		// The names are constants so that the linker keeps these methods and
		// still drops others.
		func(v reflect.Value) reflect.Value { return v.MethodByName("Conn") },
		func(v reflect.Value) reflect.Value { return v.MethodByName("PgConn") },
	} {
		if !v.IsValid() || v.Kind() != reflect.Pointer || v.IsNil() {
			return nil
		}
		m := method(v)
		if !m.IsValid() || m.Type().NumIn() != 0 || m.Type().NumOut() != 1 {
			return nil
		}
		v = m.Call(nil)[0]
	}
	if v.Kind() != reflect.Pointer || v.IsNil() || !v.CanInterface() {
		return nil
	}
	return v.Interface()
}
