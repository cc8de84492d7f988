package replicatedtest

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
)

// watchdogScript is a shell program that outlives this process however it
// ends.
//
//go:embed watchdog.sh
var watchdogScript string

// watchdog is a process in a session of its own whose standard input is a pipe
// from us. As long as we live it only takes notes of which servers run. When
// the pipe closes, and the kernel closes it whatever we die of, it kills those
// servers and removes their directory.
type watchdog struct {
	cmd *exec.Cmd

	mu   sync.Mutex
	pipe io.WriteCloser // nil once ended
}

// startWatchdog watches over servers with files in dir.
func startWatchdog(dir string) (*watchdog, error) {
	cmd := exec.Command("/bin/sh", "-c", watchdogScript, "replicatedtest-watchdog", dir)
	cmd.Dir = "/"
	cmd.Env = []string{"LC_ALL=C", "PATH=/usr/bin:/bin:/usr/sbin:/sbin:" + os.Getenv("PATH")}
	detach(cmd, nil)
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("replicatedtest: watchdog: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("replicatedtest: watchdog: %w", err)
	}
	return &watchdog{cmd: cmd, pipe: pipe}, nil
}

// runs tells of a server that was started.
func (w *watchdog) runs(pid int) { w.tell("run", pid) }

// gone tells of a server that has ended: its number may be another's soon.
func (w *watchdog) gone(pid int) { w.tell("gone", pid) }

func (w *watchdog) tell(what string, pid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pipe != nil {
		// A watchdog that somebody killed cannot be told anything; the cluster
		// works without it.
		_, _ = fmt.Fprintln(w.pipe, what, pid)
	}
}

// finish closes the pipe and waits until the watchdog has killed what still
// runs and has removed the directory.
func (w *watchdog) finish() {
	w.mu.Lock()
	pipe := w.pipe
	w.pipe = nil
	w.mu.Unlock()
	if pipe == nil {
		return
	}
	_ = pipe.Close()
	_ = w.cmd.Wait()
}
