package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const packageDir = ".."

// TestCheckedInFileIsAsGenLeavesIt fails if the file was edited by hand, or if
// a hand-written group has got one of its names since: run gen again.
func TestCheckedInFileIsAsGenLeavesIt(t *testing.T) {
	path := filepath.Join(packageDir, postgresSource.file)
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	list, err := readList(path, postgresSource)
	if err != nil {
		t.Fatal(err)
	}
	byHand, err := handNames(packageDir, postgresSource.on)
	if err != nil {
		t.Fatal(err)
	}
	list.normalize(byHand)
	copied := filepath.Join(t.TempDir(), "copy.go")
	if err := list.write(copied, postgresSource, "postgres"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(copied)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not as gen would write it", path)
	}
}

func TestHandNames(t *testing.T) {
	tests := []struct {
		on        string
		with      []string
		without   []string
		wantError bool
	}{
		{on: "onPostgres", with: []string{"nextval", "random", "similarity"}, without: []string{"get_lock", "abs", "lower_inc"}},
		{on: "onMariaDB", with: []string{"nextval", "get_lock", "nvl"}, without: []string{"regexp_like", "random"}},
		{on: "onOracle", wantError: true},
	}
	for _, test := range tests {
		t.Run(test.on, func(t *testing.T) {
			names, err := handNames(packageDir, test.on)
			if (err != nil) != test.wantError {
				t.Fatal(err)
			}
			for _, n := range test.with {
				if !names[n] {
					t.Errorf("%s is missing", n)
				}
			}
			for _, n := range test.without {
				if names[n] {
					t.Errorf("%s is there", n)
				}
			}
		})
	}
}

// fakeSource is a server of two functions, of which a group has one.
func fakeSource(harmless, unjudged []string) source {
	return source{
		on:       "onPostgres",
		file:     "functions_fake_catalog.go",
		variable: "fakeCatalogGroups",
		sections: []string{"first", "second"},
		read: func(dsn string) (catalog, error) {
			return catalog{version: dsn, harmless: [][]string{harmless, {"zoo", "ape"}}, unjudged: unjudged}, nil
		},
	}
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	hand := "package classify\n\nvar g = []funcGroup{{fnWrite, onPostgres, \"why\", `nextval setval`}}\n"
	if err := os.WriteFile(filepath.Join(dir, "functions_fake.go"), []byte(hand), 0o644); err != nil {
		t.Fatal(err)
	}
	generate := func(src source, args ...string) string {
		t.Helper()
		sources["fake"] = src
		defer delete(sources, "fake")
		var out strings.Builder
		if err := run(append([]string{"fake", "-dir", dir}, args...), &out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	names := func() (versions, names []string) {
		t.Helper()
		l, err := readList(filepath.Join(dir, "functions_fake_catalog.go"), fakeSource(nil, nil))
		if err != nil {
			t.Fatal(err)
		}
		return l.versions, l.minus(nameList{})
	}

	out := generate(fakeSource([]string{"abs", "nextval", "zoo"}, []string{"setval", "odd"}), "-dsn", "Fake 1")
	if !strings.Contains(out, "1 in no group, unknown until judged\n   odd\n") ||
		!strings.Contains(out, "3 gained, harmless until judged otherwise\n   abs\n   ape\n   zoo\n") {
		t.Errorf("report of the first run:\n%s", out)
	}
	if v, n := names(); !slices.Equal(v, []string{"Fake 1"}) || !slices.Equal(n, []string{"abs", "ape", "zoo"}) {
		t.Errorf("after the first run: %v of %v", n, v)
	}

	// A newer server adds to the file, and what it has not stays.
	generate(fakeSource([]string{"bit"}, nil), "-dsn", "Fake 2", "-dsn", "Fake 3")
	if v, n := names(); !slices.Equal(v, []string{"Fake 1", "Fake 2", "Fake 3"}) ||
		!slices.Equal(n, []string{"abs", "ape", "bit", "zoo"}) {
		t.Errorf("after the second run: %v of %v", n, v)
	}

	out = generate(fakeSource([]string{"bit"}, nil), "-dsn", "Fake 4", "-fresh")
	if !strings.Contains(out, "1 lost\n   abs\n") {
		t.Errorf("report of the fresh run:\n%s", out)
	}
	if v, n := names(); !slices.Equal(v, []string{"Fake 4"}) || !slices.Equal(n, []string{"ape", "bit", "zoo"}) {
		t.Errorf("after the fresh run: %v of %v", n, v)
	}

	// A source without a file only reports.
	if err := os.Remove(filepath.Join(dir, "functions_fake_catalog.go")); err != nil {
		t.Fatal(err)
	}
	reporting := fakeSource([]string{"bit"}, []string{"odd"})
	reporting.file, reporting.sections = "", nil
	reporting.read = func(string) (catalog, error) { return catalog{unjudged: []string{"odd"}}, nil }
	if out := generate(reporting, "-dsn", "Fake 5"); out != "1 in no group, unknown until judged\n   odd\n" {
		t.Errorf("report without a file:\n%s", out)
	}
	if _, err := os.Stat(filepath.Join(dir, "functions_fake_catalog.go")); !os.IsNotExist(err) {
		t.Errorf("a source without a file has written one: %v", err)
	}
}

func TestRunRefuses(t *testing.T) {
	for _, args := range [][]string{nil, {"oracle"}, {"postgres"}, {"mariadb", "-dir", "."}} {
		if err := run(args, io.Discard); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
