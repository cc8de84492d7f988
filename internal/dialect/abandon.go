package dialect

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// Abandons reports whether [Dialect.Abandon] can end statements: on MySQL and
// MariaDB, which run on what they have been sent when the connection is gone.
// PostgreSQL's drivers cancel by themselves.
func (d *Dialect) Abandons() bool {
	switch d.Kind {
	case classify.MySQL, classify.MariaDB, classify.AnyMySQL:
		return true
	default:
		return false
	}
}

// Why [Dialect.Abandon] has sent nothing, or is not sure.
var (
	errOtherServer = errors.New("another server answers than the one that ran the statement")
	errRestarted   = errors.New("the server may have been restarted since, and numbers its connections anew")
	errNotIdentity = errors.New("the server of the lost connection is not known")
	errStillThere  = errors.New("the server was told, and has not ended it yet")
)

// Abandon ends a lost connection, and the statement that it may still be running
// for a caller who has gone away, over another connection conn. id is what the lost
// connection had for its Identity, elapsed the time since it was opened. It takes
// no privilege where both connections have the same user, except while the statement
// is in a trigger or a procedure that runs as its definer, another user: without
// CONNECTION_ADMIN (or SUPER) the server then refuses.
//
// killed means that the connection was still there and is gone now; false without
// an error, that it was gone already. Either way nothing that was sent over it has
// an effect from here on; whether it had one before is not known. After an error it
// may have one at any later time: nothing was sent, or the server, though told, had
// not ended it before ctx did (it may be rolling back).
//
// Nothing is sent where conn has reached another server than id.Server, or where
// that one may have been restarted since, because the connection's number is then
// somebody else's. In the first two seconds of a server's life that cannot be told.
//
// It is KILL CONNECTION and not KILL QUERY: the latter does nothing to a statement
// that is still on its way, or unread in the server's buffer, and would let it run
// to its end.
func (d *Dialect) Abandon(ctx context.Context, conn driver.Conn, id Identity, elapsed time.Duration) (killed bool, err error) {
	if killed, err = d.abandon(ctx, conn, id, elapsed); err != nil {
		return false, fmt.Errorf("replicated: ending an abandoned statement: %w", err)
	}
	return killed, nil
}

func (d *Dialect) abandon(ctx context.Context, conn driver.Conn, id Identity, elapsed time.Duration) (killed bool, err error) {
	if !d.Abandons() || id.Server == "" || id.BackendPID <= 0 {
		return false, errNotIdentity
	}
	began := time.Now()
	is, err := d.identify(ctx, conn)
	switch {
	case err != nil:
		return false, err
	case is.Server != id.Server:
		return false, errOtherServer
	}
	row, err := queryRow(ctx, conn, "SHOW GLOBAL STATUS LIKE 'Uptime'", 2)
	if err != nil {
		return false, err
	}
	// The time that has passed between two moments and the difference of their whole
	// seconds differ by less than one. Rounded down, the connection's age is at most
	// the server's, if it is older; so it is two seconds below what the server says
	// only where it was not restarted.
	age := elapsed + time.Since(began)
	if row[1].integer() < int64(age/time.Second)+2 {
		return false, errRestarted
	}
	text := killText(id)
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		// Of a connection that is ending the server says the same, until that has
		// rolled back and is gone.
		err := exec(ctx, conn, text)
		switch {
		case isMySQL(err, noSuchThread):
			return killed, nil
		case isMySQL(err, killDenied): // for as long as a trigger or a procedure runs
		case err != nil:
			return false, err
		default:
			killed = true
		}
		select {
		case <-ctx.Done():
			if err == nil {
				err = errStillThere
			}
			return false, fmt.Errorf("%w: %w", err, context.Cause(ctx))
		case <-time.After(wait):
		}
	}
}

// killText names the connection by an expression that is none on another server: a
// proxy may send each statement to another one. The expression also keeps proxies
// that give connections numbers of their own from taking the number for one of
// theirs: ProxySQL and MaxScale look for digits.
func killText(id Identity) string {
	server := "@@server_uuid"
	if strings.Contains(id.Server, "/") { // see scanMySQL
		server = "CONCAT(@@hostname, ':', @@port, '/', @@global.server_id)"
	}
	return fmt.Sprintf("KILL CONNECTION IF(%s = X'%x', %d, 0)", server, id.Server, id.BackendPID)
}

// What the server says to KILL.
const (
	noSuchThread = 1094
	killDenied   = 1095 // not the thread's owner
)

func isMySQL(err error, number uint16) bool {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && e.Number == number
}
