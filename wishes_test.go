package replicated_test

import (
	"testing"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"
	"github.com/sqlreplicated/replicated/internal/faketime"
)

func TestReadsModes(t *testing.T) {
	const hinted = "SELECT /* replicated:replica */ a FROM t"
	for _, tt := range []struct {
		mode             replicated.ReadsMode
		plain, opted     string
		plainWhy, optWhy replicated.Reason
	}{
		{replicated.ReadsAuto, "replica", "replica", replicated.ReasonRead, replicated.ReasonRead},
		{replicated.ReadsOptIn, "primary", "replica", replicated.ReasonNotOptedIn, replicated.ReasonRead},
		{replicated.ReadsShadow, "primary", "primary", replicated.ReasonShadow, replicated.ReasonShadow},
		{replicated.ReadsOff, "primary", "primary", replicated.ReasonReadsOff, replicated.ReasonReadsOff},
	} {
		t.Run(tt.mode.String(), func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) {
				f := newFakes(t, 2, fakedb.Full)
				db := f.open(func(c *replicated.Config) { c.Reads = tt.mode })
				wantOn(t.Context(), t, db, tt.plain)
				f.wantRoutes(tt.plain + " " + tt.plainWhy.String())
				wantOn(replicated.WithReplica(t.Context()), t, db, tt.opted)
				f.wantRoutes(tt.opted + " " + tt.optWhy.String())
				if err := db.QueryRowContext(t.Context(), hinted).Scan(new(string)); err != nil {
					t.Fatal(err)
				}
				f.wantRoutes(tt.opted + " " + tt.optWhy.String())
			})
		})
	}
}

func TestHints(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		db := f.open()
		if err := db.QueryRowContext(t.Context(), "SELECT /* replicated:primary */ a FROM t").Scan(new(string)); err != nil {
			t.Fatal(err)
		}
		f.wantRoutes("primary asked")
		wantOn(t.Context(), t, db, "replica") // for that one statement
		f.routes()
		if _, err := db.ExecContext(t.Context(), "INSERT /* replicated:replica */ INTO t VALUES (1)"); err == nil {
			t.Error("a hint sent a write to a replica")
		}
		f.wantRoutes()
		if n := len(f.primary.Texts()); n != 1 {
			t.Errorf("the primary got %q", f.primary.Texts())
		}
	})
}

func TestWithReadOnly(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		db := f.open()
		ctx := replicated.WithReadOnly(t.Context())
		wantOn(ctx, t, db, "replica")
		wantOn(replicated.WithPrimary(ctx), t, db, "primary")
		f.primary.Forget()
		for _, text := range []string{"INSERT INTO t VALUES (1)", "CREATE TABLE x (a int)", "SELECT f(a) FROM t", "SELECT a FROM t FOR UPDATE", "CALL p()"} {
			if _, err := db.ExecContext(ctx, text); !readOnlyErr(err) {
				t.Errorf("%s: %v, want ErrReadOnly", text, err)
			}
		}
		if _, err := db.BeginTx(ctx, nil); !readOnlyErr(err) {
			t.Errorf("a read-write transaction: %v, want ErrReadOnly", err)
		}
		stmt, err := db.PrepareContext(ctx, "INSERT INTO t VALUES (1)")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stmt.ExecContext(ctx); !readOnlyErr(err) {
			t.Errorf("a prepared write: %v, want ErrReadOnly", err)
		}
		if err := stmt.Close(); err != nil {
			t.Error(err)
		}
		if got := f.primary.Texts(); len(got) != 0 {
			t.Errorf("%q has left the process", got)
		}
	})
}
