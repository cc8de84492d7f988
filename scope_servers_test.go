package replicated_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

const byTable = "replicated.scope=table"

// scopeCase is a write, and what of three tables, sc_a, sc_b and sc_c, each with a
// row (1, 0), and of what is made besides, it holds on the primary.
type scopeCase struct {
	name    string
	engines []replicatedtest.Engine
	setup   []string // before the catalog is read
	unseen  []string // after that, by somebody else
	drop    []string
	writes  []string // one transaction if there are several
	held    []string // reads that must see it
	free    []string // reads that replicas may serve, which stand still
}

func scopeCases() []scopeCase {
	postgres := []replicatedtest.Engine{replicatedtest.Postgres}
	mysql := []replicatedtest.Engine{replicatedtest.MariaDB, replicatedtest.MySQL}
	const (
		a, b, c = "SELECT max(n) FROM sc_a", "SELECT max(n) FROM sc_b", "SELECT max(n) FROM sc_c"
		writeA  = "UPDATE sc_a SET n = n + 1"
		writeB  = "UPDATE sc_b SET n = n + 1"
	)
	views := []string{"CREATE VIEW sc_v AS SELECT id, n FROM sc_a", "CREATE VIEW sc_vv AS SELECT n FROM sc_v", "CREATE VIEW sc_w AS SELECT n FROM sc_b"}
	noViews := []string{"DROP VIEW sc_w", "DROP VIEW sc_vv", "DROP VIEW sc_v"}
	partitions := []string{"CREATE TABLE sc_p (id int, n int) PARTITION BY RANGE (id)", "CREATE TABLE sc_p1 PARTITION OF sc_p FOR VALUES FROM (0) TO (10)"}
	plpgsql := func(name, returns, body string) string {
		return "CREATE FUNCTION " + name + "() RETURNS " + returns + " LANGUAGE plpgsql AS $$ BEGIN " + body + " END $$"
	}
	return []scopeCase{
		{
			name: "a table", writes: []string{writeA},
			held: []string{a, "SELECT sc_a.n + sc_b.n FROM sc_a JOIN sc_b ON sc_a.id = sc_b.id", "SELECT count(*) FROM sc_b WHERE n < (SELECT max(n) FROM sc_a)"},
			free: []string{b, "SELECT count(*) FROM sc_b, sc_c"},
		},
		{name: "one table by another", writes: []string{"INSERT INTO sc_a SELECT id + 1, n FROM sc_b"}, held: []string{"SELECT count(*) FROM sc_a"}, free: []string{b, c}},
		{name: "two in a transaction", writes: []string{writeA, writeB}, held: []string{a, b}, free: []string{c}},
		{name: "a view's table", setup: views, drop: noViews, writes: []string{writeA}, held: []string{"SELECT max(n) FROM sc_v", "SELECT max(n) FROM sc_vv"}, free: []string{b, "SELECT max(n) FROM sc_w"}},
		{name: "a view", setup: views, drop: noViews, writes: []string{"UPDATE sc_v SET n = n + 1"}, held: []string{a, "SELECT max(n) FROM sc_vv"}, free: []string{b}},
		{
			name:   "what cascades",
			setup:  []string{"CREATE TABLE sc_child (id int PRIMARY KEY, a int, FOREIGN KEY (a) REFERENCES sc_a (id) ON DELETE CASCADE)", "INSERT INTO sc_child VALUES (1, 1)"},
			drop:   []string{"DROP TABLE sc_child"},
			writes: []string{"DELETE FROM sc_a"}, held: []string{"SELECT count(*) FROM sc_a", "SELECT count(*) FROM sc_child"}, free: []string{b},
		},
		{name: "a definition", writes: []string{"CREATE TABLE sc_new (n int)"}, drop: []string{"DROP TABLE sc_new"}, held: []string{a, b, c}},
		{name: "a table that is not known", unseen: []string{"CREATE TABLE sc_late (n int)"}, drop: []string{"DROP TABLE sc_late"}, writes: []string{"INSERT INTO sc_late VALUES (1)"}, held: []string{a, b, c}},
		// Functions, triggers and procedures may touch anything.
		{
			name: "a function that writes", engines: postgres,
			setup: []string{plpgsql("sc_f", "int", writeB+"; RETURN 7;")}, drop: []string{"DROP FUNCTION sc_f()"},
			writes: []string{"UPDATE sc_a SET n = sc_f()"}, held: []string{a, b, c},
		},
		{
			name: "a function that writes", engines: mysql,
			setup: []string{"CREATE FUNCTION sc_f() RETURNS int MODIFIES SQL DATA BEGIN " + writeB + "; RETURN 7; END"}, drop: []string{"DROP FUNCTION sc_f"},
			writes: []string{"UPDATE sc_a SET n = sc_f()"}, held: []string{a, b, c},
		},
		{
			name: "a function that reads", engines: postgres,
			setup: []string{"CREATE FUNCTION sc_g() RETURNS int LANGUAGE sql STABLE AS 'SELECT max(n) FROM sc_a'"}, drop: []string{"DROP FUNCTION sc_g()"},
			writes: []string{writeA}, held: []string{"SELECT sc_g()", "SELECT sc_g() + max(n) FROM sc_b"}, free: []string{b},
		},
		{
			name: "a function that reads", engines: mysql,
			setup: []string{"CREATE FUNCTION sc_g() RETURNS int READS SQL DATA RETURN (SELECT max(n) FROM sc_a)"}, drop: []string{"DROP FUNCTION sc_g"},
			writes: []string{writeA}, held: []string{"SELECT sc_g()", "SELECT sc_g() + max(n) FROM sc_b"}, free: []string{b},
		},
		{
			name: "a trigger", engines: mysql,
			setup:  []string{"CREATE TRIGGER sc_t AFTER UPDATE ON sc_a FOR EACH ROW " + writeB}, // goes with its table
			writes: []string{writeA}, held: []string{a, b, c},
		},
		{
			name: "a trigger", engines: postgres,
			setup:  []string{plpgsql("sc_t", "trigger", writeB+"; RETURN NEW;"), "CREATE TRIGGER sc_t AFTER UPDATE ON sc_a FOR EACH ROW EXECUTE FUNCTION sc_t()"},
			drop:   []string{"DROP FUNCTION sc_t() CASCADE"},
			writes: []string{writeA}, held: []string{a, b, c},
		},
		{name: "a procedure", engines: mysql, setup: []string{"CREATE PROCEDURE sc_call() " + writeB}, drop: []string{"DROP PROCEDURE sc_call"}, writes: []string{"CALL sc_call()"}, held: []string{a, b, c}},
		{name: "a block", engines: postgres, writes: []string{"DO $$ BEGIN " + writeB + "; END $$"}, held: []string{a, b, c}},
		{name: "several statements", engines: postgres, writes: []string{writeA + "; " + writeB}, held: []string{a, b, c}},
		{name: "a rule", engines: postgres, setup: []string{"CREATE RULE sc_r AS ON UPDATE TO sc_a DO ALSO " + writeB}, drop: []string{"DROP RULE sc_r ON sc_a"}, writes: []string{writeA}, held: []string{a, b, c}},
		{name: "a partitioned table", engines: postgres, setup: partitions, drop: []string{"DROP TABLE sc_p"}, writes: []string{"INSERT INTO sc_p VALUES (1, 1)"}, held: []string{"SELECT count(*) FROM sc_p", "SELECT count(*) FROM sc_p1"}, free: []string{a}},
		{name: "a partition", engines: postgres, setup: partitions, drop: []string{"DROP TABLE sc_p"}, writes: []string{"INSERT INTO sc_p1 VALUES (1, 1)"}, held: []string{"SELECT count(*) FROM sc_p", "SELECT count(*) FROM sc_p1"}, free: []string{a}},
		{name: "a child", engines: postgres, setup: []string{"CREATE TABLE sc_heir () INHERITS (sc_a)"}, drop: []string{"DROP TABLE sc_heir"}, writes: []string{"INSERT INTO sc_heir VALUES (2, 2)"}, held: []string{a, "SELECT count(*) FROM sc_heir"}, free: []string{b}},
		{
			name: "what a policy looks at", engines: postgres,
			setup: []string{"ALTER TABLE sc_b ENABLE ROW LEVEL SECURITY", "ALTER TABLE sc_b FORCE ROW LEVEL SECURITY",
				"CREATE POLICY sc_y ON sc_b USING (EXISTS (SELECT 1 FROM sc_a WHERE sc_a.id = sc_b.id AND sc_a.n > 0))"},
			writes: []string{writeA}, held: []string{a, "SELECT count(*) FROM sc_b"}, free: []string{c},
		},
		{
			name: "TRUNCATE CASCADE", engines: postgres,
			setup: []string{"CREATE TABLE sc_child (id int PRIMARY KEY, a int REFERENCES sc_a (id))", "INSERT INTO sc_child VALUES (1, 1)"}, drop: []string{"DROP TABLE sc_child"},
			writes: []string{"TRUNCATE sc_a CASCADE"}, held: []string{"SELECT count(*) FROM sc_a", "SELECT count(*) FROM sc_child", b},
		},
	}
}

// With replicated.scope=table a read waits for writes to what it touches, by its text
// and by what the catalog adds, and for no others. The replicas stand still since
// just before the write: what is not held although it should be shows an old value.
func TestScopeOfWrites(t *testing.T) {
	eachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		for _, s := range scopeCases() {
			if len(s.engines) == 0 || slices.Contains(s.engines, e) {
				t.Run(s.name, func(t *testing.T) { s.test(t, sharedCluster(t, e)) })
			}
		}
	})
}

// threeTables makes sc_a, sc_b and sc_c.
func threeTables(t *testing.T, c *replicatedtest.Cluster) (setup *sql.DB) {
	t.Helper()
	setup = bare(t, c.Primary())
	for _, name := range []string{"sc_a", "sc_b", "sc_c"} {
		mustExec(t, setup, "CREATE TABLE "+name+" (id int PRIMARY KEY, n int NOT NULL)")
		t.Cleanup(func() { _, _ = setup.ExecContext(context.WithoutCancel(t.Context()), "DROP TABLE "+name) })
		mustExec(t, setup, "INSERT INTO "+name+" VALUES (1, 0)")
	}
	return setup
}

// scoped opens a handle that keeps floors by table and has read the catalog.
func scoped(t *testing.T, c *replicatedtest.Cluster, keys ...string) *sql.DB {
	t.Helper()
	caughtUp(t, c)
	db := open(t, c, append(keys, byTable, lagless)...)
	cluster, err := replicated.ClusterOf(t.Context(), db)
	must(t, err)
	must(t, cluster.ReadCatalog(t.Context()))
	return db
}

func (s *scopeCase) test(t *testing.T, c *replicatedtest.Cluster) {
	setup := threeTables(t, c)
	t.Cleanup(func() {
		for _, text := range s.drop {
			_, _ = setup.ExecContext(context.WithoutCancel(t.Context()), text)
		}
	})
	for _, text := range s.setup {
		mustExec(t, setup, text)
	}
	db := scoped(t, c)
	for _, text := range s.unseen {
		mustExec(t, setup, text)
	}
	written := s.begin(t, db)
	if c.Engine() == replicatedtest.Postgres {
		mustExec(t, setup, "SELECT pg_current_xact_id()") // flushes what an open transaction has written
	}
	proven(t, db)
	c.ResetStatements()
	pauseReplicas(t, c)
	written()
	read := func(kind string, texts []string, where func(*testing.T, *replicatedtest.Cluster, string)) {
		for i, text := range texts {
			mark := fmt.Sprintf("/* %s %d */", kind, i)
			if got, want := queryInt(t, db, text+" "+mark), queryInt(t, setup, text); got != want {
				t.Errorf("%q yields %d, on the primary %d", text, got, want)
			}
			where(t, c, mark)
		}
	}
	read("held", s.held, onlyPrimary)
	read("free", s.free, onlyReplicas)
}

// begin does what can be done before the replicas stand still, and returns what
// does the rest.
func (s *scopeCase) begin(t *testing.T, db *sql.DB) (rest func()) {
	t.Helper()
	if len(s.writes) == 1 {
		return func() { mustExec(t, db, s.writes[0]) }
	}
	tx, err := db.BeginTx(t.Context(), nil)
	must(t, err)
	for _, text := range s.writes {
		mustExec(t, tx, text)
	}
	return func() { must(t, tx.Commit()) }
}

// Sessions keep what they wrote by table too. Another session is held by nothing of
// that; who has none, by all.
func TestScopeInSessions(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		threeTables(t, c)
		db := scoped(t, c)
		proven(t, db)
		defer pauseReplicas(t, c)()
		own, _ := replicated.WithSession(t.Context())
		nested, _ := replicated.WithSession(own)
		other, _ := replicated.WithSession(t.Context())
		if _, err := db.ExecContext(nested, "UPDATE sc_a SET n = 1"); err != nil {
			t.Fatal(err)
		}
		for i, read := range []struct {
			ctx   context.Context
			table string
			want  int
			where func(*testing.T, *replicatedtest.Cluster, string)
		}{
			{nested, "sc_a", 1, onlyPrimary},
			{nested, "sc_b", 0, onlyReplicas},
			{own, "sc_a", 1, onlyPrimary},
			{own, "sc_b", 0, onlyReplicas},
			{other, "sc_a", 0, onlyReplicas}, // of what nobody has told it
			{t.Context(), "sc_a", 1, onlyPrimary},
			{t.Context(), "sc_b", 0, onlyReplicas},
		} {
			mark := fmt.Sprintf("/* session %d */", i)
			var n int
			must(t, db.QueryRowContext(read.ctx, "SELECT n FROM "+read.table+" "+mark).Scan(&n))
			if n != read.want {
				t.Errorf("%s yields %d, want %d", mark, n, read.want)
			}
			read.where(t, c, mark)
		}
	})
}

// A schema that is read again and has not changed is the same one: what is written
// meanwhile still counts for what it touches.
func TestScopeWhileTheSchemaIsReadAgain(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		setup := threeTables(t, c)
		cluster, err := replicated.ClusterOf(t.Context(), scoped(t, c))
		must(t, err)
		before := cluster.SchemaReading()
		must(t, cluster.ReadCatalog(t.Context()))
		if cluster.SchemaReading() != before {
			t.Error("it is another one, and nothing has changed")
		}
		mustExec(t, setup, "CREATE VIEW sc_v AS SELECT n FROM sc_a")
		defer mustExec(t, setup, "DROP VIEW sc_v")
		must(t, cluster.ReadCatalog(t.Context()))
		if cluster.SchemaReading() == before {
			t.Error("it is the same one, and there is a view more")
		}
	})
}

// A definition that this process has sent, which has its effect already while its
// answer is on its way: a write that returns before that may have run by it.
func TestScopeWhileTheSchemaChanges(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		setup := threeTables(t, c)
		define := triggerFromAToB(c.Engine())
		trigger := define[len(define)-1]
		for _, text := range define[:len(define)-1] {
			mustExec(t, setup, text)
			t.Cleanup(func() { _, _ = setup.ExecContext(context.WithoutCancel(t.Context()), "DROP FUNCTION sc_t() CASCADE") })
		}
		db := scoped(t, c)
		late := c.Primary().Proxy(t)
		addrs := []string{late.Addr()}
		for _, n := range c.Replicas() {
			addrs = append(addrs, n.Addr())
		}
		definer := openDSN(t, c.DSNAt(addrs, byTable, lagless, ownFloors(t)))
		must(t, definer.PingContext(t.Context()))
		proven(t, db)
		pauseReplicas(t, c)

		late.Stall(replicatedtest.ToClient)
		defined := make(chan error, 1)
		go func() {
			_, err := definer.ExecContext(t.Context(), trigger)
			defined <- err
		}()
		eventually(t, 20*time.Second, func() string {
			if queryInt(t, setup, "SELECT count(*) FROM information_schema.triggers WHERE trigger_name = 'sc_t'") == 0 {
				return "there is no trigger"
			}
			return ""
		})
		mustExec(t, db, "UPDATE sc_a SET n = 1")
		if n := queryInt(t, db, "SELECT n FROM sc_b"); n != 1 {
			t.Errorf("sc_b has %d, which the trigger has set to 1", n)
		}
		late.Pass()
		must(t, <-defined)
	})
}

// The aim of it: a process that writes a thousand rows a second to one table, with
// replicas that lag, serves reads of other tables from replicas all the same. What
// it writes to those, and to what a view or a trigger leads to, it reads back.
func TestScopeUnderLag(t *testing.T) {
	eachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		c := replicatedtest.Start(t, e, replicatedtest.Options{Replicas: 1, NoStatementLog: true})
		setup := threeTables(t, c)
		mustExec(t, setup, "CREATE TABLE sc_log (id int PRIMARY KEY, n int NOT NULL)")
		mustExec(t, setup, "CREATE VIEW sc_v AS SELECT n FROM sc_a")
		caughtUp(t, c)
		must(t, c.Replicas()[0].Delay(100*time.Millisecond))
		db := scoped(t, c)
		readers, checker := openedLike(t, c), openedLike(t, c)

		ctx, stop := context.WithCancel(t.Context())
		var writer sync.WaitGroup
		defer writer.Wait()
		defer stop()
		rows := 0
		writer.Go(func() {
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for ; ctx.Err() == nil; rows++ {
				<-tick.C
				if _, err := db.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO sc_log VALUES (%d, 0)", rows)); err != nil {
					t.Error(err)
					return
				}
			}
		})

		readBackBy := func(ctx context.Context, n int, write, read string) {
			t.Helper()
			if _, err := checker.ExecContext(ctx, fmt.Sprintf(write, n)); err != nil {
				t.Fatal(err)
			}
			for before := onReplicas(t, checker); onReplicas(t, checker) == before; {
				var got int
				must(t, checker.QueryRowContext(ctx, read).Scan(&got))
				if got != n {
					t.Fatalf("%q yields %d after %d was written", read, got, n)
				}
			}
		}
		n := 0
		for range 4 {
			for range 500 {
				if got := queryInt(t, readers, "SELECT n FROM sc_c"); got != 0 {
					t.Fatalf("sc_c has %d", got)
				}
			}
			session, _ := replicated.WithSession(t.Context())
			n++
			readBackBy(session, n, "UPDATE sc_a SET n = %d", "SELECT max(n) FROM sc_v")
			n++
			readBackBy(session, n, "UPDATE sc_a SET n = %d", "SELECT sc_a.n FROM sc_a JOIN sc_c ON sc_a.id = sc_c.id")
		}
		on, all := onReplicas(t, readers), 4*500
		stop()
		writer.Wait()
		t.Logf("%d rows written, %d of %d reads on the replica", rows, on, all)
		if on < uint64(all*90/100) {
			t.Errorf("the replica has served %d of %d reads of a table that nobody writes to: %v", on, all, stats(t, readers).Primary)
		}

		// What is defined through the driver counts from then on.
		for _, text := range triggerFromAToB(e) {
			mustExec(t, db, text)
		}
		for range 3 {
			n++
			readBackBy(t.Context(), n, "UPDATE sc_a SET n = %d", "SELECT n FROM sc_b")
		}
	})
}

// openedLike opens another handle with the floors of [scoped].
func openedLike(t *testing.T, c *replicatedtest.Cluster) *sql.DB {
	t.Helper()
	db := open(t, c, byTable, lagless)
	cluster, err := replicated.ClusterOf(t.Context(), db)
	must(t, err)
	knowsCatalog(t, cluster)
	return db
}

// onReplicas tells how many reads of the handle replicas have served.
func onReplicas(t *testing.T, db *sql.DB) (n uint64) {
	t.Helper()
	for _, m := range stats(t, db).Replica {
		n += m
	}
	return n
}

func triggerFromAToB(e replicatedtest.Engine) []string {
	if e != replicatedtest.Postgres {
		return []string{"CREATE TRIGGER sc_t AFTER UPDATE ON sc_a FOR EACH ROW UPDATE sc_b SET n = NEW.n"}
	}
	return []string{
		"CREATE FUNCTION sc_t() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE sc_b SET n = NEW.n; RETURN NEW; END $$",
		"CREATE TRIGGER sc_t AFTER UPDATE ON sc_a FOR EACH ROW EXECUTE FUNCTION sc_t()",
	}
}
