package replicatedtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

func TestRefusedLogin(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1, Log: testLog{t}})
		n := c.Replicas()[0]
		old := openConn(t, n.DB(t))
		refused := func() {
			t.Helper()
			if _, err := tryConn(t, n); !hasCode(err, "28P01", 1045) && !hasCode(err, "28000", 1045) {
				t.Errorf("error %v", err)
			}
		}
		must(t, n.RefuseLogin(true))
		refused()
		must(t, old.PingContext(context.Background()))
		must(t, n.AdminDB(t).Ping())
		must(t, n.WaitCaughtUp(within(t, 10*time.Second)))
		if _, err := tryConn(t, c.Primary()); err != nil {
			t.Errorf("the other node refuses too: %v", err)
		}
		must(t, n.Stop())
		must(t, n.Start())
		refused()
		must(t, n.RefuseLogin(false))
		_, err := tryConn(t, n)
		must(t, err)
		// On a primary its replicas hear nothing of it.
		must(t, c.Primary().RefuseLogin(true))
		execSQL(t, c.Primary().AdminDB(t), map[bool]string{true: "CREATE TABLE t (id int)", false: "CREATE TABLE app.t (id int)"}[e == replicatedtest.Postgres])
		caughtUp(t, c)
		_, err = tryConn(t, n)
		must(t, err)
		must(t, n.Rebuild())
		if _, err := tryConn(t, n); e == replicatedtest.Postgres && err != nil {
			t.Errorf("after the rebuilding: %v", err)
		}
	})
}
