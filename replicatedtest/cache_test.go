package replicatedtest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

// isolateCache gives the test a cache of its own.
func isolateCache(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
}

func TestCacheBuildsOnce(t *testing.T) {
	isolateCache(t)
	var built atomic.Int32
	build := func(_ context.Context, scratch string) (string, error) {
		built.Add(1)
		dir := filepath.Join(scratch, "data")
		return dir, errors.Join(os.MkdirAll(filepath.Join(dir, "sub"), 0o700), os.WriteFile(filepath.Join(dir, "sub", "file"), []byte("text"), 0o640))
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			dir, err := replicatedtest.Cached(context.Background(), "Server 1/2", "banner", nil, build)
			if err != nil {
				t.Error(err)
				return
			}
			if text, err := os.ReadFile(filepath.Join(dir, "sub", "file")); err != nil || string(text) != "text" {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
	wg.Wait()
	if got := built.Load(); got != 1 {
		t.Errorf("built %d times", got)
	}
	if _, err := replicatedtest.Cached(context.Background(), "Server 1/2", "another banner", nil, build); err != nil || built.Load() != 2 {
		t.Errorf("another server shares the directory (%v)", err)
	}
}

func TestCacheKeepsNothingThatFailed(t *testing.T) {
	isolateCache(t)
	fails := errors.New("fails")
	if _, err := replicatedtest.Cached(context.Background(), "s", "b", nil, func(context.Context, string) (string, error) { return "", fails }); !errors.Is(err, fails) {
		t.Errorf("error %v", err)
	}
	dir, err := replicatedtest.Cached(context.Background(), "s", "b", nil, func(_ context.Context, scratch string) (string, error) {
		return filepath.Join(scratch, "d"), os.Mkdir(filepath.Join(scratch, "d"), 0o700)
	})
	if _, e := os.Stat(dir); err != nil || e != nil {
		t.Errorf("%v, %v", err, e)
	}
}

func TestPortsAreDistinct(t *testing.T) {
	seen := map[int]bool{}
	for range 200 {
		port, release, err := replicatedtest.LeasePort()
		must(t, err)
		defer release()
		if seen[port] {
			t.Fatalf("port %d twice", port)
		}
		seen[port] = true
	}
}
