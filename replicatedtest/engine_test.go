package replicatedtest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

func TestEngineString(t *testing.T) {
	for e, want := range map[replicatedtest.Engine]string{
		replicatedtest.Postgres: "postgres", replicatedtest.MariaDB: "mariadb", replicatedtest.MySQL: "mysql", 0: "engine(0)", 77: "engine(77)",
	} {
		if got := e.String(); got != want {
			t.Errorf("%d is %q, want %q", uint8(e), got, want)
		}
	}
}

func TestKindString(t *testing.T) {
	for k, want := range map[replicatedtest.Kind]string{
		replicatedtest.Query: "query", replicatedtest.Prepare: "prepare", replicatedtest.Execute: "execute", replicatedtest.Refused: "refused", 0: "kind(0)",
	} {
		if got := k.String(); got != want {
			t.Errorf("%d is %q, want %q", uint8(k), got, want)
		}
	}
}

// programVariables name a server program that is not there.
var programVariables = map[replicatedtest.Engine]string{
	replicatedtest.Postgres: "REPLICATED_TEST_POSTGRES",
	replicatedtest.MariaDB:  "REPLICATED_TEST_MARIADBD",
	replicatedtest.MySQL:    "REPLICATED_TEST_MYSQLD",
}

func TestAvailableNamesWhatIsMissing(t *testing.T) {
	if err := replicatedtest.Available(0); err == nil {
		t.Error("engine 0 is available")
	}
	for _, e := range replicatedtest.Engines() {
		t.Setenv(programVariables[e], "/nowhere/server")
		err := replicatedtest.Available(e)
		if err == nil || !strings.Contains(err.Error(), "/nowhere/server") || !strings.Contains(err.Error(), e.String()) {
			t.Errorf("%v: %v", e, err)
		}
	}
}

// A MariaDB is no MySQL, whatever its program is called.
func TestMySQLIsNotMariaDB(t *testing.T) {
	program, err := exec.LookPath("mariadbd")
	if err != nil {
		program = "/usr/sbin/mariadbd"
	}
	replicatedtest.Require(t, replicatedtest.MariaDB)
	t.Setenv("REPLICATED_TEST_MYSQLD", program)
	if err := replicatedtest.Available(replicatedtest.MySQL); err == nil || !strings.Contains(err.Error(), "MariaDB") {
		t.Errorf("error %v", err)
	}
}

// TestRequireInAnotherProcess is what the next test runs.
func TestRequireInAnotherProcess(t *testing.T) {
	if os.Getenv("REPLICATED_TEST_MYSQLD") != "/nowhere/mysqld" {
		return
	}
	replicatedtest.Start(t, replicatedtest.MySQL, replicatedtest.Options{})
}

func TestMissingServersSkipOrFail(t *testing.T) {
	for require, want := range map[string]string{
		"":                  "--- SKIP",
		"postgres,mariadb":  "--- SKIP",
		"mysql":             "--- FAIL",
		"postgres , mysql ": "--- FAIL",
	} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestRequireInAnotherProcess$", "-test.v")
		cmd.Env = append(os.Environ(), "REPLICATED_TEST_MYSQLD=/nowhere/mysqld", "REPLICATED_TEST_REQUIRE="+require)
		out, err := cmd.CombinedOutput()
		if !strings.Contains(string(out), want) || !strings.Contains(string(out), "/nowhere/mysqld") {
			t.Errorf("REPLICATED_TEST_REQUIRE=%q: %v\n%s", require, err, out)
		}
	}
}
