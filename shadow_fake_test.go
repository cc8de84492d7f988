package replicated_test

import (
	"database/sql"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/fakedb"
	"github.com/sqlreplicated/replicated/internal/faketime"
)

func shadow(c *replicated.Config) { c.Reads = replicated.ReadsShadow }

// What is told of read-only transactions under shadow is what becomes of them
// without it.
func TestShadowOfReadOnlyTransactions(t *testing.T) {
	texts := []struct{ text, want string }{
		{plainSelect, "shadow"},
		{"SELECT unheard_of()", "shadow"}, // runs there, where the server lets it write nothing
		{"SHOW WARNINGS", "shadow"},
		{"SELECT a FROM t FOR UPDATE", "shadow-refused"},
		{"SET @x = 1", "shadow-refused"},
		{"INSERT INTO t VALUES (1)", "shadow-refused"},
	}
	for _, mode := range []replicated.ReadsMode{replicated.ReadsAuto, replicated.ReadsShadow} {
		t.Run(mode.String(), func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) {
				f := newFakes(t, 1, fakedb.Full)
				db := f.open(func(c *replicated.Config) { c.Reads = mode })
				tx, err := db.BeginTx(t.Context(), readOnlyTx)
				if err != nil {
					t.Fatal(err)
				}
				for _, tt := range texts {
					f.routes()
					_, err := tx.ExecContext(t.Context(), tt.text)
					refused := errors.Is(err, replicated.ErrReadOnly)
					if mode == replicated.ReadsAuto {
						if refused != (tt.want == "shadow-refused") {
							t.Errorf("%s on a replica: %v", tt.text, err)
						}
						continue
					}
					if refused {
						t.Errorf("%s: %v", tt.text, err)
					}
					f.wantRoutes("primary " + tt.want)
				}
				f.routes()
				if err := tx.Commit(); err != nil {
					t.Fatal(err)
				}
				if mode == replicated.ReadsShadow && slices.Contains(f.replicas[0].Texts(), plainSelect) {
					t.Errorf("a replica got %q", f.replicas[0].Texts())
				}
				role := "primary"
				if mode == replicated.ReadsAuto {
					role = "replica"
				}
				wantOn(t.Context(), t, db, role) // the transaction is over
			})
		})
	}
}

// Whatever transactions the primary would have run in any case are told of as such.
func TestShadowOfOtherTransactions(t *testing.T) {
	for _, tt := range []struct {
		name     string
		change   func(*replicated.Config)
		readOnly bool
	}{
		{"read-write", shadow, false},
		{"read-only, on the primary", func(c *replicated.Config) { shadow(c); c.ReadOnlyTx = replicated.ReadOnlyTxPrimary }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			faketime.Test(t, func(t *testing.T) {
				f := newFakes(t, 1, fakedb.Full)
				db := f.open(tt.change)
				tx, err := db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: tt.readOnly})
				if err != nil {
					t.Fatal(err)
				}
				wantOn(t.Context(), t, tx, "primary")
				if err := tx.Rollback(); err != nil {
					t.Fatal(err)
				}
				f.wantRoutes("primary tx-control", "primary transaction")
			})
		})
	}
}

// Under shadow the primary runs everything, whatever is configured for reads that
// replicas would have served: nothing is waited for, nothing is refused.
func TestShadowChangesNothing(t *testing.T) {
	t.Run("no read waits for a replica", func(t *testing.T) {
		inBubble(t, func(t *testing.T, f *logs) {
			db := f.openLogs(shadow, func(c *replicated.Config) { c.Wait = time.Second })
			write(t.Context(), t, db)
			f.routes()
			began := time.Now()
			wantOn(t.Context(), t, db, "primary")
			if took := time.Since(began); took != 0 {
				t.Errorf("the read took %v", took)
			}
			f.wantRoutes("primary process-write")
		})
	})
	t.Run("no read counts towards the limit", func(t *testing.T) {
		faketime.Test(t, func(t *testing.T) {
			f := newFakes(t, 1, fakedb.Full)
			f.replicas[0].Down(errors.New("refused"))
			db := f.open(shadow, limit(1), func(c *replicated.Config) { c.BreakerFailures = 1 })
			for range 5 {
				rows, err := db.QueryContext(t.Context(), plainSelect)
				if err != nil {
					t.Fatal(err)
				}
				defer rows.Close()
			}
		})
	})
	t.Run("no replica serves for a primary that is down", func(t *testing.T) {
		inBubble(t, func(t *testing.T, f *logs) {
			db := f.openLogs(shadow, func(c *replicated.Config) { c.PrimaryDown = replicated.PrimaryDownStale })
			down := errors.New("down")
			f.fakes.primary.Down(down)
			f.fakes.primary.Kill()
			for _, ctx := range []struct {
				name string
				of   func() error
			}{
				{"a read", func() error { return db.QueryRowContext(t.Context(), plainSelect).Scan(new(string)) }},
				{"a fresh read", func() error {
					return db.QueryRowContext(replicated.WithFresh(t.Context()), plainSelect).Scan(new(string))
				}},
			} {
				if err := ctx.of(); !errors.Is(err, down) || errors.Is(err, replicated.ErrNotFresh) {
					t.Errorf("%s: %v, want the primary's own fault", ctx.name, err)
				}
			}
		})
	})
}

// Freshness is sampled under shadow as it is without, so that as many reads are told
// to have had a replica as do have one.
func TestShadowIsAsFreshAsAuto(t *testing.T) {
	const rounds, chance = 1000, 10 // two timers that go off at once do so in either order
	counts := make(map[replicated.ReadsMode]uint64)
	for _, mode := range []replicated.ReadsMode{replicated.ReadsAuto, replicated.ReadsShadow} {
		t.Run(mode.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *logs) {
				db := f.openLogs(func(c *replicated.Config) { c.Reads = mode })
				for range rounds {
					write(t.Context(), t, db)
					f.apply()
					pass(30 * time.Millisecond)
					servedBy(t.Context(), t, db)
				}
				s := stats(t, db)
				counts[mode] = s.Replica[replicated.ReasonRead] + s.Primary[replicated.ReasonShadow]
			})
		})
	}
	auto, told := int(counts[replicated.ReadsAuto]), int(counts[replicated.ReadsShadow])
	if told < auto-chance || told > auto+chance || auto < rounds*9/10 {
		t.Errorf("of %d reads %d had a replica, and %d are told to", rounds, auto, told)
	}
}

func TestEventsOfWritesAndPreparations(t *testing.T) {
	faketime.Test(t, func(t *testing.T) {
		f := newFakes(t, 1, fakedb.Full)
		db := f.open(shadow)
		for _, tt := range []struct {
			text           string
			write, prepare bool
		}{
			{plainSelect, false, false},
			{"INSERT INTO t VALUES (1)", true, false},
			{"SELECT a FROM t FOR UPDATE", false, false},
			{"SELECT unheard_of()", true, false},
			{"SELECT b FROM t", false, true},
		} {
			f.routes()
			if tt.prepare {
				st, err := db.PrepareContext(t.Context(), tt.text)
				if err != nil {
					t.Fatal(err)
				}
				defer st.Close()
			} else {
				run(t.Context(), t, db, tt.text)
			}
			f.mu.Lock()
			if len(f.events) != 1 || f.events[0].Write != tt.write || f.events[0].Prepare != tt.prepare {
				t.Errorf("%s: %+v", tt.text, f.events)
			}
			f.mu.Unlock()
		}
		f.routes()
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if len(f.events) != 1 || f.events[0].Write || f.events[0].Prepare {
			t.Errorf("BEGIN: %+v", f.events)
		}
	})
}
