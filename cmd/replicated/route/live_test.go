package route

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

// runAll runs statements; those that return rows may, since Exec reads them away.
func runAll(t *testing.T, db *sql.DB, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if _, err := db.ExecContext(context.Background(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}

func TestLiveServers(t *testing.T) {
	tests := []struct {
		engine   replicatedtest.Engine
		settings map[string]string
		before   []string
		source   string
	}{
		{replicatedtest.Postgres, map[string]string{"shared_preload_libraries": "pg_stat_statements"}, []string{"CREATE EXTENSION pg_stat_statements"}, "pg_stat_statements, read as postgres"},
		{replicatedtest.MariaDB, map[string]string{"performance-schema": "ON", "performance-schema-consumer-statements-digest": "ON"}, nil, "performance_schema digests, read as mariadb"},
		{replicatedtest.MySQL, map[string]string{"performance-schema": "ON"}, nil, "performance_schema digests, read as mysql"},
	}
	for _, tt := range tests {
		t.Run(tt.engine.String(), func(t *testing.T) {
			c := replicatedtest.Start(t, tt.engine, replicatedtest.Options{Replicas: -1, Settings: tt.settings})
			db := c.Primary().AdminDB(t)
			runAll(t, db, tt.before...)
			runAll(t, db, "CREATE TABLE orders (id int, total int)",
				"INSERT INTO orders VALUES (1, 4242), (2, 4343)",
				"SELECT total FROM orders WHERE id = 4242",
				"SELECT total FROM orders WHERE id = 4343",
				"SELECT total FROM orders WHERE id IN (4242, 4343) FOR UPDATE")
			text := output(t, "", "-dsn", c.Primary().AdminDSN(), "-top", "50")
			for _, want := range []string{tt.source, "locking clause", "writes rows", "SELECT"} {
				if !strings.Contains(strings.ReplaceAll(text, "`", ""), want) {
					t.Errorf("there is no %q in\n%s", want, text)
				}
			}
			for _, no := range []string{"4242", replicatedtest.AdminPassword} {
				if strings.Contains(text, no) {
					t.Errorf("%q stands in\n%s", no, text)
				}
			}
			json := output(t, "", "-dsn", c.Primary().AdminDSN(), "-format", "json")
			if !strings.Contains(json, `"route":"replica","class":"read"`) || !strings.Contains(json, `"class":"lock"`) {
				t.Errorf("got %s", json)
			}
		})
	}
}

func TestLiveServerThatDoesNotCount(t *testing.T) {
	for engine, want := range map[replicatedtest.Engine]string{
		replicatedtest.Postgres: "CREATE EXTENSION pg_stat_statements",
		replicatedtest.MariaDB:  "performance_schema is off",
	} {
		t.Run(engine.String(), func(t *testing.T) {
			c := replicatedtest.Start(t, engine, replicatedtest.Options{Replicas: -1})
			_, stderr, status := command(t, "", "-dsn", c.Primary().AdminDSN())
			if status != exitFault || !strings.Contains(stderr, want) {
				t.Errorf("exit status %d, %s", status, stderr)
			}
		})
	}
}

func TestPostgresDSNsAreKnown(t *testing.T) {
	for dsn, want := range map[string]bool{
		"postgres://a@b/c":             true,
		"postgresql://a@b/c":           true,
		"host=a dbname=b":              true,
		" user = a":                    true,
		"app:pw@tcp(db1:3306)/shop":    false,
		"app@unix(/run/x)/shop?tls=no": false,
		"/shop":                        false,
	} {
		if got := isPostgresDSN(dsn); got != want {
			t.Errorf("%q: %t", dsn, got)
		}
	}
}
