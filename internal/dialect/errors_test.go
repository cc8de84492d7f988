package dialect_test

import (
	"context"
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/dialect"
	"github.com/sqlreplicated/replicated/internal/socket"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

func pgError(code string) error {
	return pgErrorOf("FATAL", code)
}

func pgErrorOf(severity, code string) error {
	return &pq.Error{Severity: severity, Code: pqerror.Code(code), Message: "scripted"}
}

func myError(number uint16) error { return &mysql.MySQLError{Number: number, Message: "scripted"} }

// pgxError is what pgx's *pgconn.PgError looks like from here.
type pgxError string

func (e pgxError) Error() string    { return "ERROR: scripted (SQLSTATE " + string(e) + ")" }
func (e pgxError) SQLState() string { return string(e) }

var postgresClasses = map[dialect.ErrorClass]string{
	dialect.Lost:      "08000 08001 08003 08004 08006 08007 08P01 57P04 57P05 25P03 25P04",
	dialect.Down:      "57P01 57P02 57P03 58000 58030 58P01 XX001 XX002",
	dialect.Conflict:  "40001 40P01 55P03 72000",
	dialect.Missing:   "42P01 42703 42883 42704 3F000 3D000 42501 0A000 55000 XX000 26000 42P05",
	dialect.Fence:     "25006 25001",
	dialect.Busy:      "53000 53100 53200 53300",
	dialect.Auth:      "28000 28P01",
	dialect.Cancelled: "57014",
	dialect.Statement: "22001 22012 22P02 23505 23503 42601 42P18 21000 25P02 2F003 34000 40002 53400 54001 55006 P0001 HV000 99999",
}

// mysqlClasses are numbers that MySQL and MariaDB share, the others those of one.
var (
	mysqlClasses = map[dialect.ErrorClass][]uint16{
		dialect.Lost:      {1042, 1043, 1080, 1152, 1154, 1155, 1156, 1157, 1158, 1159, 1160, 1161, 1184, 2002, 2003, 2006, 2013, 2055},
		dialect.Down:      {1016, 1017, 1030, 1033, 1034, 1035, 1047, 1053, 1077, 1079, 1194, 1195, 1712, 1812, 1814, 1877, 3032, 9001},
		dialect.Conflict:  {1205, 1213, 1412, 1615},
		dialect.Missing:   {1049, 1054, 1109, 1114, 1115, 1128, 1142, 1143, 1146, 1176, 1193, 1227, 1235, 1273, 1286, 1289, 1298, 1305, 1356, 1370, 1449, 1630, 1735},
		dialect.Fence:     {1290, 1792, 1836, 1874},
		dialect.Busy:      {1021, 1037, 1040, 1041, 1129, 1135, 1203, 1226, 1461},
		dialect.Auth:      {1044, 1045, 1130, 1251, 1698, 1820, 1862},
		dialect.Cancelled: {1317},
		dialect.Statement: {1062, 1064, 1048, 1052, 1060, 1094, 1166, 1264, 1366, 1406, 1451, 1452, 1644, 1950, 3572, 3819, 4166, 9999},
	}
	mysqlOwnClasses = map[dialect.ErrorClass][]uint16{
		dialect.Lost:      {3169, 4031},
		dialect.Down:      {3100, 3168, 3796, 3797, 3798, 3799},
		dialect.Conflict:  {3101},
		dialect.Auth:      {3118, 3159, 3879, 3955},
		dialect.Cancelled: {3024},
	}
	mariadbOwnClasses = map[dialect.ErrorClass][]uint16{
		dialect.Lost:      {1927},
		dialect.Missing:   {4091},
		dialect.Auth:      {4150, 4151},
		dialect.Cancelled: {1969},
	}
)

func TestClassOfServerErrors(t *testing.T) {
	check := func(d classify.Dialect, err error, want dialect.ErrorClass) {
		t.Helper()
		for _, err := range []error{err, fmt.Errorf("wrapped: %w", err), errors.Join(errors.New("another"), err)} {
			if got := dialect.For(d).Class(err); got != want {
				t.Errorf("%v: Class(%v) = %v, want %v", d, err, got, want)
			}
		}
	}
	for want, codes := range postgresClasses {
		for code := range strings.FieldsSeq(codes) {
			check(classify.Postgres, pgError(code), want)
			check(classify.Postgres, pgxError(code), want)
			check(classify.Generic, pgxError(code), want)
		}
	}
	both := []classify.Dialect{classify.AnyMySQL, classify.Generic}
	for _, table := range []struct {
		classes map[dialect.ErrorClass][]uint16
		of      []classify.Dialect
		not     []classify.Dialect // where the numbers are other errors, or none
	}{
		{mysqlClasses, append(both, classify.MySQL, classify.MariaDB), nil},
		{mysqlOwnClasses, append(both, classify.MySQL), []classify.Dialect{classify.MariaDB}},
		{mariadbOwnClasses, append(both, classify.MariaDB), []classify.Dialect{classify.MySQL}},
	} {
		for want, numbers := range table.classes {
			for _, n := range numbers {
				for _, d := range table.of {
					check(d, myError(n), want)
				}
				for _, d := range table.not {
					check(d, myError(n), dialect.Statement)
				}
			}
		}
	}
}

// MySQL's number for a session that was idle for too long is MariaDB's for a trigger
// that is not there: taken for a lost connection, the outcome of its statement would
// be called unknown, and the connection dropped.
func TestNumberOfAnotherMeaning(t *testing.T) {
	c := replicatedtest.Start(t, replicatedtest.MariaDB, replicatedtest.Options{Replicas: -1, NoStatementLog: true})
	conn := open(t, c.DriverName(), c.Primary().AdminDSN())
	mustRun(t, conn, "USE "+replicatedtest.Database, "CREATE TABLE t (a int)")
	err := run(testContext(t), conn, "CREATE TRIGGER a BEFORE INSERT ON t FOR EACH ROW FOLLOWS b SET @x = 1")
	if !isNumber(err, 4031) {
		t.Fatal(err)
	}
	if d := dialect.For(classify.MariaDB); d.Class(err) != dialect.Statement || d.EndsConnection(err) {
		t.Errorf("%v is of class %v", err, d.Class(err))
	}
}

// A crashed table or an unready Galera node says nothing of the connection.
func TestMySQLErrorOfALivingSession(t *testing.T) {
	d := dialect.For(classify.MySQL)
	for number, ends := range map[uint16]bool{
		1016: false, 1017: false, 1030: false, 1033: false, 1034: false, 1035: false, 1047: false, 1194: false, 1195: false,
		1712: false, 1812: false, 1814: false, 1877: false, 3100: false, 3796: false, 3797: false, 3798: false, 3799: false,
		1053: true, 1077: true, 1079: true, 3032: true, 3168: true, 4031: true, 1062: false,
	} {
		if got := d.EndsConnection(myError(number)); got != ends {
			t.Errorf("EndsConnection(%d) = %v, want %v", number, got, ends)
		}
	}
}

// A session that answers ERROR goes on, whatever the code.
func TestErrorOfALivingSession(t *testing.T) {
	d := dialect.For(classify.Postgres)
	for _, tt := range []struct {
		severity, code string
		class          dialect.ErrorClass
		ends           bool
	}{
		{"FATAL", "08006", dialect.Lost, true},
		{"ERROR", "08P01", dialect.Statement, false}, // a wrong number of arguments
		{"ERROR", "08001", dialect.Statement, false}, // a foreign server's
		{"FATAL", "57P01", dialect.Down, true},
		{"ERROR", "58P01", dialect.Down, false}, // a file is missing
		{"PANIC", "XX001", dialect.Down, true},
		{"FATALE", "57P01", dialect.Down, true}, // in the words of lc_messages
		{"ERROR", "23505", dialect.Statement, false},
	} {
		err := pgErrorOf(tt.severity, tt.code)
		if got := d.Class(err); got != tt.class {
			t.Errorf("Class(%v %s) = %v, want %v", tt.severity, tt.code, got, tt.class)
		}
		if got := d.EndsConnection(err); got != tt.ends {
			t.Errorf("EndsConnection(%v %s) = %v, want %v", tt.severity, tt.code, got, tt.ends)
		}
	}
}

func TestClassOfDriverAndNetworkErrors(t *testing.T) {
	dialErr := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	readErr := func(err error) error { return &net.OpError{Op: "read", Net: "tcp", Err: err} }
	tests := []struct {
		name string
		err  error
		want dialect.ErrorClass
	}{
		{name: "none", err: nil, want: dialect.None},
		{name: "some error", err: errors.New("boom"), want: dialect.Statement},
		{name: "ErrSkip", err: driver.ErrSkip, want: dialect.Statement},
		{name: "pgx error without an answer", err: pgxError(""), want: dialect.Statement},
		{name: "failed transaction", err: pq.ErrInFailedTransaction, want: dialect.Statement},
		{name: "packet too large", err: mysql.ErrPktTooLarge, want: dialect.Statement},

		{name: "ErrBadConn", err: driver.ErrBadConn, want: dialect.Lost},
		{name: "ErrInvalidConn", err: mysql.ErrInvalidConn, want: dialect.Lost},
		{name: "out of sync", err: mysql.ErrPktSync, want: dialect.Lost},
		{name: "out of sync after many", err: mysql.ErrPktSyncMul, want: dialect.Lost},
		{name: "malformed packet", err: mysql.ErrMalformPkt, want: dialect.Lost},
		{name: "EOF", err: io.EOF, want: dialect.Lost},
		{name: "unexpected EOF", err: io.ErrUnexpectedEOF, want: dialect.Lost},
		{name: "closed", err: readErr(net.ErrClosed), want: dialect.Lost},
		{name: "reset", err: readErr(os.NewSyscallError("read", syscall.ECONNRESET)), want: dialect.Lost},
		{name: "bare errno", err: syscall.EPIPE, want: dialect.Lost},
		{name: "socket deadline", err: readErr(os.ErrDeadlineExceeded), want: dialect.Lost},
		{name: "refused", err: dialErr(os.NewSyscallError("connect", syscall.ECONNREFUSED)), want: dialect.Lost},
		{name: "no such host", err: dialErr(&net.DNSError{IsNotFound: true}), want: dialect.Lost},
		{name: "dial timeout", err: dialErr(context.DeadlineExceeded), want: dialect.Lost},
		{name: "stale", err: &net.OpError{Op: "write", Err: socket.ErrStale}, want: dialect.Lost},
		{name: "aborted", err: readErr(socket.ErrAborted), want: dialect.Lost},

		{name: "cancelled", err: context.Canceled, want: dialect.Cancelled},
		{name: "deadline", err: fmt.Errorf("query: %w", context.DeadlineExceeded), want: dialect.Cancelled},
		{name: "dial cancelled", err: dialErr(context.Canceled), want: dialect.Cancelled},

		{name: "no TLS (MySQL)", err: mysql.ErrNoTLS, want: dialect.Auth},
		{name: "cleartext password", err: mysql.ErrCleartextPassword, want: dialect.Auth},
		{name: "native password", err: mysql.ErrNativePassword, want: dialect.Auth},
		{name: "old password", err: mysql.ErrOldPassword, want: dialect.Auth},
		{name: "unknown plugin", err: mysql.ErrUnknownPlugin, want: dialect.Auth},
		{name: "no TLS (PostgreSQL)", err: pq.ErrSSLNotSupported, want: dialect.Auth},
		{name: "no user", err: pq.ErrCouldNotDetectUsername, want: dialect.Auth},
		{name: "certificate", err: &tls.CertificateVerificationError{Err: errors.New("expired")}, want: dialect.Auth},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, d := range []classify.Dialect{classify.Generic, classify.Postgres, classify.MySQL} {
				if got := dialect.For(d).Class(tt.err); got != tt.want {
					t.Errorf("%v: Class(%v) = %v, want %v", d, tt.err, got, tt.want)
				}
			}
		})
	}
}

func TestClassOfAnAbortedSocketFollowsTheCause(t *testing.T) {
	d := dialect.For(classify.MySQL)
	for cause, want := range map[error]dialect.ErrorClass{
		errors.New("node given up"): dialect.Lost,
		context.DeadlineExceeded:    dialect.Cancelled,
		context.Canceled:            dialect.Cancelled,
	} {
		inner, peer := net.Pipe()
		c := socket.Wrap(inner)
		c.Abort(cause)
		_, err := c.Read(make([]byte, 1))
		if got := d.Class(err); got != want {
			t.Errorf("Class(%v) = %v, want %v", err, got, want)
		}
		_ = peer.Close()
	}
}

func TestReadOnlyRefusal(t *testing.T) {
	for err, want := range map[error]bool{
		pgError("25006"): true, pgError("25001"): false, pgError("0A000"): false, pgError("42501"): false,
		myError(1290): true, myError(1792): true, myError(1836): true, myError(1874): true, myError(1142): false,
		driver.ErrBadConn: false, io.EOF: false,
	} {
		if got := dialect.For(classify.Generic).ReadOnlyRefusal(err); got != want {
			t.Errorf("ReadOnlyRefusal(%v) = %v", err, got)
		}
	}
	if dialect.For(classify.Postgres).ReadOnlyRefusal(nil) {
		t.Error("ReadOnlyRefusal(nil) = true")
	}
}

func TestErrorClassString(t *testing.T) {
	want := "none statement lost down conflict missing fence busy auth cancelled invalid"
	var got []string
	for c := dialect.None; c <= dialect.Cancelled+1; c++ {
		got = append(got, c.String())
	}
	if strings.Join(got, " ") != want {
		t.Errorf("classes are called %q", got)
	}
}
