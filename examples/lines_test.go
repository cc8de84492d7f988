package examples

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// An example is one file that fits on a screen or two. Package lagging is what their
// tests run on.
func TestExamplesAreShort(t *testing.T) {
	const most = 60
	var found []string
	files, err := filepath.Glob("*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || filepath.Dir(file) == "lagging" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(text, []byte("\n")); n > most {
			t.Errorf("%s has %d lines, which is more than %d", file, n, most)
		}
		found = append(found, filepath.Dir(file))
	}
	if want := []string{"cacherefill", "chi", "grpc", "nethttp", "worker"}; !slices.Equal(found, want) {
		t.Errorf("examples with one file each: %v, want %v", found, want)
	}
}
