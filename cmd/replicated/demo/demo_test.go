package demo

import (
	"bytes"
	"context"
	"database/sql"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

// played runs the demo of an engine on a plain screen.
func played(t *testing.T, ctx context.Context, engine string, ours func(*demo, *sql.DB) teller) (output string, err error) {
	t.Helper()
	candidates, err := enginesFor(engine)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	d := &demo{screen: newScreen(&out, true), engines: candidates, pace: shortPace, ours: ours}
	began := time.Now()
	err = d.run(ctx)
	if took := time.Since(began); took > 45*time.Second {
		t.Errorf("the demo took %v", took)
	}
	return out.String(), err
}

// wholeDemo checks the demo of an engine that holds its promises.
func wholeDemo(t *testing.T, engine string) {
	output, err := played(t, t.Context(), engine, nil)
	if err != nil {
		t.Errorf("the demo ends with: %v", err)
	}
	for _, want := range []string{
		"1  Where each statement goes", "2  Reading what one has just written", "3  A replica is killed", "4  The primary is killed",
		"5  What was promised", "ok   One reads what one has written", "ok   A killed replica costs nobody a read",
		"ok   It is taken out, and taken back", "ok   Close leaves no connection behind", "promises held.",
	} {
		if !strings.Contains(output, want) {
			t.Errorf("%q is not shown", want)
		}
	}
	for _, bad := range []string{"FAIL", replicatedtest.AppPassword, "\x1b"} {
		if strings.Contains(output, bad) {
			t.Errorf("%q is shown", bad)
		}
	}
	for line := range strings.Lines(output) {
		if n := width(strings.TrimSuffix(line, "\n")); n > screenWidth {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if t.Failed() {
		t.Log(output)
	}
}

func TestDemoWithoutServers(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	wholeDemo(t, "sqlite")
	nothingLeft(t)
}

func TestDemoPostgres(t *testing.T) {
	replicatedtest.Require(t, replicatedtest.Postgres)
	wholeDemo(t, "postgres")
}

func TestDemoMariaDB(t *testing.T) {
	replicatedtest.Require(t, replicatedtest.MariaDB)
	wholeDemo(t, "mariadb")
}

// nothingLeft checks that the directory for temporary files is empty.
func nothingLeft(t *testing.T) {
	t.Helper()
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		t.Errorf("%s was left behind", f.Name())
	}
}

func TestBrokenPromiseGivesItsExitStatus(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	output, err := played(t, t.Context(), "sqlite", func(d *demo, _ *sql.DB) teller {
		naive, done, err := d.naive()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(done)
		return naive
	})
	var stderr bytes.Buffer
	if got := status(t.Context(), err, &stderr); got != exitBroken {
		t.Errorf("exit status %d, want %d (%v)", got, exitBroken, err)
	}
	if !strings.Contains(stderr.String(), "promises did not hold") {
		t.Errorf("stderr: %q", stderr.String())
	}
	if !strings.Contains(output, "FAIL One reads what one has written") {
		t.Errorf("the summary does not show it:\n%s", output)
	}
}

func TestInterruptCleansUp(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	_, err := played(t, ctx, "sqlite", func(d *demo, db *sql.DB) teller {
		interrupt() // in the middle of it
		return driverTeller{db, d.bank}
	})
	var stderr bytes.Buffer
	if got := status(ctx, err, &stderr); got != exitInterrupted {
		t.Errorf("exit status %d, want %d (%v)", got, exitInterrupted, err)
	}
	nothingLeft(t)
}

func TestDefaultIsTheFirstEngineThatStarts(t *testing.T) {
	var out bytes.Buffer
	missing := engine{name: "Oracle", start: func(context.Context) (servers, error) { return nil, os.ErrNotExist }}
	d := &demo{screen: newScreen(&out, true), engines: []engine{missing, {name: "SQLite", start: startSQLite}}}
	s, err := d.start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"no Oracle: file does not exist", "SQLite 3"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not said in %q", want, out.String())
		}
	}

	d.engines = []engine{missing}
	if _, err := d.start(t.Context()); err == nil || !strings.Contains(err.Error(), "Oracle: file does not exist") {
		t.Errorf("without any engine: %v", err)
	}
}

func TestOccurrencesInALog(t *testing.T) {
	log := []string{
		"UPDATE accounts SET balance = balance + 1 WHERE id = 7",
		"SELECT owner FROM accounts WHERE id = $1",
		"SELECT owner FROM accounts WHERE id = 3",
		"BEGIN",
	}
	tests := []struct {
		text string
		want int
	}{
		{text: "SELECT owner FROM accounts WHERE id = ?", want: 2},
		{text: "UPDATE accounts SET balance = balance + $1 WHERE id = $2", want: 1},
		{text: "BEGIN", want: 1},
		{text: "SELECT balance FROM accounts WHERE id = ?", want: 0},
	}
	for _, tt := range tests {
		if got := occurrences(log, tt.text); got != tt.want {
			t.Errorf("%q: %d, want %d", tt.text, got, tt.want)
		}
	}
}
