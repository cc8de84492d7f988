package replicatedtest_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/lib/pq"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

// hasCode reports whether the error is the server's of that code.
func hasCode(err error, state string, number uint16) bool {
	p, m := (*pq.Error)(nil), (*mysql.MySQLError)(nil)
	return errors.As(err, &p) && string(p.Code) == state || errors.As(err, &m) && m.Number == number
}

// tryConn opens a connection of the application's user and returns what closes
// it.
func tryConn(t *testing.T, n *replicatedtest.Node) (func(), error) {
	t.Helper()
	db := n.DB(t)
	db.SetMaxIdleConns(0)
	conn, err := db.Conn(context.Background())
	if err != nil {
		return nil, err
	}
	return func() { conn.Close() }, nil
}

func TestOccupiedServerRefusesConnections(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1, MaxConnections: 20, Log: testLog{t}})
		n := c.Primary()
		other := openConn(t, n.DB(t))
		id, err := strconv.ParseInt(queryConn(t, other, sessionID[e]), 10, 64)
		must(t, err)

		release, err := n.Occupy(0)
		must(t, err)
		if _, err := tryConn(t, n); !hasCode(err, "53300", 1040) {
			t.Errorf("error %v", err)
		}
		full, err := n.Connections() // the package's own account still gets in
		must(t, err)
		if full < 10 || full > 20 {
			t.Errorf("%d connections", full)
		}
		// What is given back is taken.
		must(t, n.KillBackend(id))
		for begin := time.Now(); ; {
			count, err := n.Connections()
			must(t, err)
			if count == full {
				break
			}
			if time.Since(begin) > 10*time.Second {
				t.Fatalf("%d connections, and %d before one was given back", count, full)
			}
		}
		release()
		release()
		closeConn, err := tryConn(t, n)
		must(t, err)
		closeConn()

		release, err = n.Occupy(2)
		must(t, err)
		for range 2 {
			_, err := tryConn(t, n)
			must(t, err)
		}
		if _, err := tryConn(t, n); !hasCode(err, "53300", 1040) {
			t.Errorf("beyond the reserve: %v", err)
		}
		// It ends with the server.
		must(t, n.Kill())
		must(t, n.Start())
		release()
		if _, err := n.Occupy(100); err == nil {
			t.Error("100 of 20 connections can stay free")
		}
		if _, err := tryConn(t, n); err != nil {
			t.Errorf("after Occupy has failed: %v", err)
		}
	})
}
