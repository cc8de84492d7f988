package dialect_test

import (
	"context"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/dialect"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// settingCases are what a session may do to its variables, and how they show.
var settingCases = map[classify.Dialect][]struct {
	name string
	set  []string
	vars classify.Vars
	show string // one column
}{
	classify.Postgres: {
		{name: "time zone", set: []string{"SET TimeZone = 'Asia/Tokyo'"}, vars: classify.TimeZone, show: "SELECT now()::text ~ '[+]09$'"},
		{name: "time zone by interval", set: []string{"SET TIME ZONE INTERVAL '-08:30' HOUR TO MINUTE"}, vars: classify.TimeZone, show: "SHOW TimeZone"},
		{name: "search path", set: []string{`SET search_path = "we''ird\na""me", "it's", '$user', public`}, vars: classify.SearchPath, show: "SHOW search_path"},
		{
			name: "search path under old strings", set: []string{"SET standard_conforming_strings = off", "SET backslash_quote = on", `SET search_path = "a\b", "c'd"`},
			vars: classify.SearchPath, show: "SHOW search_path",
		},
		{
			name: "all together",
			set: []string{
				"SET IntervalStyle = iso_8601", "SET DateStyle = 'ISO, DMY'", "SET statement_timeout = '61s'", "SET lock_timeout = 1234",
				"SELECT set_config('search_path', 'pg_temp, public', false)", "SET TIME ZONE 'UTC'",
			},
			vars: classify.IntervalStyle | classify.DateStyle | classify.StatementTimeout | classify.LockTimeout | classify.SearchPath | classify.TimeZone,
			show: "SELECT string_agg(name || '=' || setting, ';' ORDER BY name) FROM pg_settings WHERE name IN ('IntervalStyle', 'DateStyle', 'statement_timeout', 'lock_timeout', 'search_path', 'TimeZone', 'client_encoding')",
		},
		{name: "client encoding", set: []string{"SET NAMES 'UTF8'"}, vars: classify.Names, show: "SHOW client_encoding"},
	},
	classify.AnyMySQL: {
		{name: "time zone", set: []string{"SET time_zone = '+05:30'"}, vars: classify.TimeZone, show: "SELECT @@session.time_zone"},
		{name: "sql_mode", set: []string{"SET sql_mode = CONCAT(@@sql_mode, ',NO_BACKSLASH_ESCAPES,ANSI_QUOTES,PIPES_AS_CONCAT')"}, vars: classify.SQLMode, show: "SELECT 'a\\b' || @@sql_mode"},
		{name: "no sql_mode", set: []string{"SET sql_mode = ''"}, vars: classify.SQLMode, show: "SELECT @@sql_mode"},
		{name: "names", set: []string{"SET NAMES latin1 COLLATE latin1_german2_ci"}, vars: classify.Names, show: mysqlNames},
		{name: "character set", set: []string{"SET CHARACTER SET cp850"}, vars: classify.Names, show: mysqlNames},
		{name: "database", set: []string{"USE `back``quote`"}, vars: classify.Database, show: "SELECT DATABASE()"},
		{
			name: "all together", set: []string{"SET NAMES gbk", "SET sql_mode = 'ANSI'", "SET time_zone = 'SYSTEM'", "USE `back``quote`"},
			vars: classify.Names | classify.SQLMode | classify.TimeZone | classify.Database,
			show: "SELECT CONCAT_WS(';', DATABASE(), @@sql_mode, @@time_zone, @@character_set_client, @@collation_connection)",
		},
	},
}

const mysqlNames = "SELECT CONCAT_WS(';', @@character_set_client, @@character_set_results, @@character_set_connection, @@collation_connection)"

func TestChangeBringsAReplicaToTheSettingsOfTheConn(t *testing.T) {
	eachEngine(t, func(t *testing.T, c *replicatedtest.Cluster, d *dialect.Dialect) {
		cases, keys := settingCases[classify.AnyMySQL], []string{"time_zone=%27-03%3A00%27", "sql_mode=%27STRICT_ALL_TABLES%27"}
		if d.Kind == classify.Postgres {
			cases, keys = settingCases[classify.Postgres], []string{"TimeZone=America/Lima", "search_path=pg_catalog"}
		} else {
			mustRun(t, open(t, c.DriverName(), c.Primary().AdminDSN()),
				"CREATE DATABASE `back``quote`", "GRANT ALL ON `back``quote`.* TO app")
		}
		if err := c.WaitCaughtUp(testContext(t)); err != nil {
			t.Fatal(err)
		}
		for _, tt := range cases {
			t.Run(tt.name, func(t *testing.T) {
				ctx := testContext(t)
				// The replica's connection was opened with values of its own.
				primary := open(t, c.DriverName(), c.Primary().DSN())
				replica := &counted{Conn: open(t, c.DriverName(), c.Replicas()[0].DSN(keys...))}
				opened := ask(t, replica, tt.show)
				mustRun(t, primary, tt.set...)
				for _, text := range tt.set { // what is not replayed, but changes how texts are read
					if strings.Contains(text, "standard_conforming") || strings.Contains(text, "backslash_quote") {
						mustRun(t, replica, text)
					}
				}
				before := ask(t, primary, tt.show)
				want, err := d.ReadSettings(ctx, primary, tt.vars)
				if err != nil {
					t.Fatal(err)
				}
				if want.Vars() != tt.vars || want.IsZero() || want.Signature() == "" {
					t.Errorf("ReadSettings(%v) = %v, signature %q", tt.vars, want.Vars(), want.Signature())
				}

				change := func(now, goal, base dialect.Settings, most int) (dialect.Settings, dialect.Settings) {
					t.Helper()
					if tt.vars&classify.Database != 0 && d.Kind != classify.Postgres {
						most++
					}
					replica.texts = nil
					now, base, err := d.Change(ctx, replica, now, goal, base)
					if err != nil {
						t.Fatal(err)
					}
					if len(replica.texts) > most {
						t.Errorf("%d round trips, want at most %d: %q", len(replica.texts), most, replica.texts)
					}
					if now != goal {
						t.Errorf("now = %q, want %q", now.Signature(), goal.Signature())
					}
					return now, base
				}
				zero := dialect.Settings{}
				now, base := change(zero, want, zero, 2)
				if got := ask(t, replica, tt.show); got != before {
					t.Errorf("replica has %q, the primary %q", got, before)
				}
				now, base = change(now, want, base, 0)
				now, base = change(now, zero, base, 1)
				if got := ask(t, replica, tt.show); got != opened {
					t.Errorf("replica is back at %q, was opened with %q", got, opened)
				}
				change(now, want, base, 1)
				if got := ask(t, replica, tt.show); got != before {
					t.Errorf("second time: replica has %q, the primary %q", got, before)
				}
				if again, err := d.ReadSettings(ctx, replica, tt.vars); err != nil || again != want {
					t.Errorf("read from the replica: %q, %v; from the primary %q", again.Signature(), err, want.Signature())
				}
			})
		}
	})
}

func TestChangeWorksOnFencedConnections(t *testing.T) {
	eachEngine(t, func(t *testing.T, c *replicatedtest.Cluster, d *dialect.Dialect) {
		conn := open(t, c.DriverName(), c.Replicas()[0].DSN())
		id := identify(t, d, conn)
		if err := d.Fence(testContext(t), conn, id); err != nil {
			t.Fatal(err)
		}
		primary := open(t, c.DriverName(), c.Primary().DSN())
		tt := settingCases[classify.AnyMySQL][0]
		if d.Kind == classify.Postgres {
			tt = settingCases[classify.Postgres][0]
		}
		mustRun(t, primary, tt.set...)
		want, err := d.ReadSettings(testContext(t), primary, tt.vars)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := d.Change(testContext(t), conn, dialect.Settings{}, want, dialect.Settings{}); err != nil {
			t.Error(err)
		}
	})
}

func TestChangeBetweenDifferentVariables(t *testing.T) {
	c := replicatedtest.Start(t, replicatedtest.Postgres, replicatedtest.Options{Replicas: -1, NoStatementLog: true})
	d := dialect.For(classify.Postgres)
	ctx := testContext(t)
	dsn := c.Primary().DSN("TimeZone=America/Lima", "lock_timeout=7")
	first, second := open(t, "postgres", dsn), open(t, "postgres", dsn)
	mustRun(t, first, "SET TimeZone = 'UTC'")
	mustRun(t, second, "SET lock_timeout = 99")
	a, err := d.ReadSettings(ctx, first, classify.TimeZone)
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.ReadSettings(ctx, second, classify.LockTimeout)
	if err != nil {
		t.Fatal(err)
	}
	conn := open(t, "postgres", dsn)
	now, base := dialect.Settings{}, dialect.Settings{}
	for _, step := range []struct {
		want dialect.Settings
		show string
	}{
		{a, "UTC 7ms"},
		{b, "America/Lima 99ms"},
		{a.With(b), "UTC 99ms"},
		{dialect.Settings{}, "America/Lima 7ms"},
	} {
		if now, base, err = d.Change(ctx, conn, now, step.want, base); err != nil {
			t.Fatal(err)
		}
		if got := ask(t, conn, "SELECT current_setting('TimeZone') || ' ' || current_setting('lock_timeout')"); got != step.show {
			t.Errorf("session has %q, want %q", got, step.show)
		}
	}
	if a.With(b) != b.With(a) || a.With(b).Signature() == a.Signature() || a == b {
		t.Error("settings do not compare as they should")
	}
}

func TestChangeHasNoWayBackToNoDatabase(t *testing.T) {
	c := replicatedtest.Start(t, replicatedtest.MariaDB, replicatedtest.Options{Replicas: -1, NoStatementLog: true})
	d := dialect.For(classify.MariaDB)
	ctx := testContext(t)
	dsn := c.Primary().DSN()
	head, tail, _ := strings.Cut(dsn, ")/")
	_, tail, _ = strings.Cut(tail, "?")
	conn := open(t, c.DriverName(), head+")/?"+tail)
	want, err := d.ReadSettings(ctx, open(t, c.DriverName(), dsn), classify.Database)
	if err != nil {
		t.Fatal(err)
	}
	now, base, err := d.Change(ctx, conn, dialect.Settings{}, want, dialect.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err = d.Change(ctx, conn, now, dialect.Settings{}, base); err == nil {
		t.Error("no error")
	}
}

func TestReadSettingsRefusesWhatIsNotReplayed(t *testing.T) {
	for kind, vars := range map[classify.Dialect]classify.Vars{
		classify.Generic:  classify.TimeZone,
		classify.Postgres: classify.SQLMode | classify.TimeZone,
		classify.MySQL:    classify.SearchPath,
	} {
		d := dialect.For(kind)
		if _, err := d.ReadSettings(context.Background(), nil, vars); err == nil {
			t.Errorf("%v: ReadSettings(%v) succeeded", kind, vars)
		}
		if d.Replays()&vars == vars {
			t.Errorf("%v: Replays() = %v", kind, d.Replays())
		}
		if s, err := d.ReadSettings(context.Background(), nil, 0); !s.IsZero() || err != nil {
			t.Errorf("%v: ReadSettings of nothing = %v, %v", kind, s, err)
		}
	}
}

func TestQuoting(t *testing.T) {
	tests := []struct {
		name    string
		quote   func(string) (string, error)
		in, out string // out == "": refused
	}{
		{name: "postgres", quote: dialect.QuotePostgres, in: `a'b\c`, out: `E'a''b\\c'`},
		{name: "postgres, backslash last", quote: dialect.QuotePostgres, in: `\'; DROP TABLE t --`, out: `E'\\''; DROP TABLE t --'`},
		{name: "postgres, not UTF-8", quote: dialect.QuotePostgres, in: "a\xff"},
		{name: "postgres, NUL", quote: dialect.QuotePostgres, in: "a\x00"},
		{name: "mysql", quote: dialect.QuoteMySQL, in: "Europe/Berlin", out: "'Europe/Berlin'"},
		{name: "mysql, NULL", quote: dialect.QuoteMySQL, in: "", out: "NULL"},
		{name: "mysql, quote", quote: dialect.QuoteMySQL, in: "a'b"},
		{name: "mysql, backslash", quote: dialect.QuoteMySQL, in: `a\`},
		{name: "mysql, beyond ASCII", quote: dialect.QuoteMySQL, in: "\xbf"},
		{name: "name", quote: dialect.QuoteMySQLName, in: "a`b'\\", out: "`a``b'\\`"},
		{name: "name beyond ASCII", quote: dialect.QuoteMySQLName, in: "größe", out: "`größe`"},
		{name: "name with a character that ends in a backquote", quote: dialect.QuoteMySQLName, in: "\x81`"},
		{name: "no name", quote: dialect.QuoteMySQLName, in: ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.quote(tt.in)
			if got != tt.out || (err != nil) != (tt.out == "") {
				t.Errorf("%q became %s, %v; want %s", tt.in, got, err, tt.out)
			}
			if err != nil && tt.in != "" && strings.Contains(err.Error(), tt.in) {
				t.Errorf("the error shows the value: %v", err)
			}
		})
	}
}
