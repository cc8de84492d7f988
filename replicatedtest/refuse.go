package replicatedtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/lib/pq"
)

// RefuseLogin makes new logins of [AppUser] fail on this node alone, as after a
// change of the password that the application has not heard of, and false
// undoes it. Connections that there are stay. It holds when RefuseLogin
// returns, outlives restarts of the server, and ends with [Node.Rebuild], where
// on MariaDB and MySQL the node becomes as its source is in this too.
//
// The error is 28P01 on PostgreSQL (28000 since version 18), 1045 on MariaDB
// and MySQL.
func (n *Node) RefuseLogin(refuse bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
	defer cancel()
	op := map[bool]string{true: "refuse logins", false: "take logins"}[refuse]
	if err := n.usable(false); err != nil {
		return n.wrap(op, err)
	}
	err := n.c.db.refuseLogin(ctx, n, refuse)
	if err == nil {
		err = poll(ctx, 2*time.Millisecond, func() (bool, error) {
			conn, err := n.connectApp(ctx)
			switch {
			case err == nil:
				return !refuse, conn.Close()
			case n.c.db.refused(err):
				return refuse, nil
			}
			return false, err
		})
	}
	if err != nil {
		return n.wrap(op, err)
	}
	n.c.logf("%s: %s", n.name, op)
	return nil
}

func (p *postgres) refuseLogin(ctx context.Context, n *Node, refuse bool) error {
	if err := p.writeLogins(n, refuse); err != nil {
		return err
	}
	return n.exec(ctx, "SELECT pg_reload_conf()")
}

// refuseLogin changes the password, of which replicas hear nothing.
func (m *mysqlFamily) refuseLogin(ctx context.Context, n *Node, refuse bool) error {
	password := AppPassword
	if refuse {
		password = "not-the-" + AppPassword
	}
	change := fmt.Sprintf("SET PASSWORD FOR '%s'@'%%' = PASSWORD('%s')", AppUser, password)
	if m.atLeast(5, 7) {
		change = fmt.Sprintf("ALTER USER '%s'@'%%' IDENTIFIED BY '%s'", AppUser, password)
	}
	return n.exec(ctx, "SET SESSION sql_log_bin = 0", change)
}

func (p *postgres) refused(err error) bool {
	e := (*pq.Error)(nil)
	return errors.As(err, &e) && (e.Code == "28P01" || e.Code == "28000")
}

func (p *postgres) tooMany(err error) bool {
	e := (*pq.Error)(nil)
	return errors.As(err, &e) && e.Code == "53300"
}

func (m *mysqlFamily) refused(err error) bool {
	e := (*mysql.MySQLError)(nil)
	return errors.As(err, &e) && e.Number == 1045
}

func (m *mysqlFamily) tooMany(err error) bool {
	e := (*mysql.MySQLError)(nil)
	return errors.As(err, &e) && e.Number == 1040
}
