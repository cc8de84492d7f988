package replicatedtest

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// layoutVersion is part of the name of every cached data directory. It is
// raised when what is put into one changes.
const layoutVersion = 2

// cacheDirs lists where cached things may be, the preferred place first. The
// second serves where the home directory cannot be written to.
func cacheDirs() []string {
	var dirs []string
	if dir, err := os.UserCacheDir(); err == nil {
		dirs = append(dirs, filepath.Join(dir, "replicated"))
	}
	// scripts/setup goes by XDG_CACHE_HOME and ~/.cache on every system.
	if home, err := os.UserHomeDir(); err == nil {
		dirs = append(dirs, filepath.Join(home, ".cache", "replicated"))
	}
	return append(dirs, filepath.Join(os.TempDir(), fmt.Sprintf("replicated-cache-%d", os.Getuid())))
}

// writableCacheDir returns the first of cacheDirs that can be written to.
func writableCacheDir() (string, error) {
	var first error
	for _, dir := range cacheDirs() {
		dir = filepath.Join(dir, "data")
		err := os.MkdirAll(dir, 0o700)
		if err == nil {
			var f *os.File
			if f, err = os.CreateTemp(dir, "try-*"); err == nil {
				f.Close()
				os.Remove(f.Name())
				return dir, nil
			}
		}
		if first == nil {
			first = err
		}
	}
	return "", fmt.Errorf("replicatedtest: no cache directory: %w", first)
}

var unsafeInName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// cached returns the directory kept for a server, built by build where it is
// not there yet. banner is what tells the server from others of its name. Processes that want it at once build it once: one
// builds while it holds a lock that ends with it, and the directory takes its
// name only when it is whole.
//
// build gets a scratch directory that the account can reach, which the cache
// directory need not be.
func cached(ctx context.Context, name, banner string, as *account, build func(ctx context.Context, scratch string) (string, error)) (string, error) {
	root, err := writableCacheDir()
	if err != nil {
		return "", err
	}
	key := fmt.Sprintf("%s-%08x-layout%d", unsafeInName.ReplaceAllString(name, "-"), crc32.ChecksumIEEE([]byte(banner)), layoutVersion)
	final := filepath.Join(root, key)
	if _, err := os.Stat(final); err == nil {
		return final, nil
	}

	lock, err := os.OpenFile(final+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", fmt.Errorf("replicatedtest: cache: %w", err)
	}
	defer lock.Close()
	if err := waitLock(ctx, lock); err != nil {
		return "", fmt.Errorf("replicatedtest: cache: %w", err)
	}
	if _, err := os.Stat(final); err == nil {
		return final, nil // built while we waited
	}

	scratch, err := scratchDir(as)
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	built, err := build(ctx, scratch)
	if err != nil {
		return "", err
	}
	// Only the holder of the lock writes this directory; one left by a process
	// that was killed is in the way of nobody else.
	partial := final + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return "", fmt.Errorf("replicatedtest: cache: %w", err)
	}
	if err := copyTree(partial, built, nil); err != nil {
		return "", fmt.Errorf("replicatedtest: cache: %w", err)
	}
	if err := os.Rename(partial, final); err != nil {
		return "", fmt.Errorf("replicatedtest: cache: %w", err)
	}
	return final, nil
}

func waitLock(ctx context.Context, f *os.File) error {
	for {
		ok, err := tryLock(f)
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// scratchPrefix begins the name of every directory with servers in it. The
// watchdog removes no directory without it.
const scratchPrefix = "replicatedtest-"

// scratchDir makes a directory for server files that the account can reach.
func scratchDir(as *account) (string, error) {
	var problem error
	for _, parent := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		parent, err := filepath.Abs(parent)
		if err != nil || !as.reaches(parent) {
			problem = errors.Join(problem, err, fmt.Errorf("%s cannot be reached by the servers' user", parent))
			continue
		}
		dir, err := os.MkdirTemp(parent, scratchPrefix)
		if err == nil {
			// MkdirTemp made it for this user alone; the servers' user passes
			// through it.
			if err = os.Chmod(dir, 0o755); err == nil {
				return dir, as.own(dir)
			}
		}
		problem = errors.Join(problem, err)
	}
	return "", fmt.Errorf("replicatedtest: no directory for server files: %w", problem)
}

// copyTree copies a directory of regular files and directories, modes
// included, and gives the copy to the account.
func copyTree(dst, src string, as *account) error {
	info, err := os.Stat(src)
	if err != nil {
		return err
	}
	if err := os.Mkdir(dst, info.Mode().Perm()); err != nil {
		return err
	}
	if err := as.own(dst); err != nil {
		return err
	}
	return copyInto(dst, src, as)
}

// copyInto is copyTree into a directory that there is, and which stays the same
// one.
func copyInto(dst, src string, as *account) error {
	return filepath.WalkDir(src, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(src, path)
		if err != nil {
			return err
		}
		if rel == "." {
			return nil
		}
		to := filepath.Join(dst, rel)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			err = os.Mkdir(to, info.Mode().Perm())
		case info.Mode().IsRegular():
			err = copyFile(to, path, info.Mode().Perm())
		default:
			return nil // a socket that a server left behind
		}
		if err != nil {
			return err
		}
		return as.own(to)
	})
}

// emptyDir removes what is in the directory. PostgreSQL finds the shared memory
// of a server that was killed, and gives it back, by the directory's number,
// which must stay for that.
func emptyDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies within the kernel where the system can (os.File.ReadFrom).
func copyFile(dst, src string, mode fs.FileMode) error {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
