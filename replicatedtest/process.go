package replicatedtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// process is a running server: its main process, and whatever that has
// forked.
type process struct {
	cmd  *exec.Cmd
	pid  int
	done chan struct{} // closed when the main process has been waited for
	err  error         // how it ended; valid once done is closed
}

// startProcess starts the command and sees to it that it is waited for.
func startProcess(cmd *exec.Cmd) (*process, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, pid: cmd.Process.Pid, done: make(chan struct{})}
	go func() { // ends with the server, which Close ends
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// waitEnd waits for the main process to end.
func (p *process) waitEnd(timeout time.Duration) bool {
	select {
	case <-p.done:
		return true
	case <-time.After(timeout):
		return false
	}
}

// hang stops the main process first, so that it forks no more, then the rest,
// and returns when no thread of them runs any more: a signal takes effect some
// time after it was sent.
func (p *process) hang() error {
	if err := stopProcess(p.pid); err != nil {
		return err
	}
	if err := waitStopped(p.pid); err != nil {
		return err
	}
	rest := children(p.pid)
	for _, pid := range rest {
		// One that has ended meanwhile needs no stopping.
		if err := stopProcess(pid); err != nil && processExists(pid) {
			return err
		}
	}
	for _, pid := range rest {
		if err := waitStopped(pid); err != nil {
			return err
		}
	}
	return nil
}

func waitStopped(pid int) error {
	deadline := time.Now().Add(stopTimeout)
	for processRuns(pid) && !allStopped(pid) {
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d does not stop", pid)
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// allStopped reports whether all threads of the process are stopped.
func allStopped(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/[0-9]*/stat", pid))
	if len(threads) == 0 {
		out, err := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(pid)).Output()
		return err == nil && strings.HasPrefix(strings.TrimSpace(string(out)), "T")
	}
	for _, path := range threads {
		if _, _, state, ok := readStat(path); ok && state != 'T' && state != 't' {
			return false
		}
	}
	return true
}

func (p *process) resume() error {
	var problem error
	for _, pid := range children(p.pid) {
		if err := continueProcess(pid); err != nil && processExists(pid) {
			problem = err
		}
	}
	return errors.Join(problem, continueProcess(p.pid))
}

// kill ends all processes of the server with SIGKILL and waits until they are
// gone.
func (p *process) kill() error {
	if p.ended() {
		return nil
	}
	// Stopped, the main process neither forks nor restarts what is killed; its
	// children are no longer its children once it is dead.
	_ = stopProcess(p.pid)
	rest := children(p.pid)
	for _, pid := range rest {
		_ = killProcess(pid)
	}
	if err := killProcess(p.pid); err != nil && !p.ended() {
		return err
	}
	if !p.waitEnd(stopTimeout) {
		return fmt.Errorf("process %d does not end", p.pid)
	}
	deadline := time.Now().Add(stopTimeout)
	for _, pid := range rest {
		for processRuns(pid) {
			if time.Now().After(deadline) {
				return fmt.Errorf("process %d does not end", pid)
			}
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}

// children lists the processes whose parent is pid.
func children(pid int) []int {
	parents := map[int]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	if len(stats) > 0 {
		for _, path := range stats {
			if child, parent, _, ok := readStat(path); ok {
				parents[child] = parent
			}
		}
	} else {
		out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=").Output()
		if err != nil {
			return nil
		}
		for line := range strings.Lines(string(out)) {
			var child, parent int
			if n, _ := fmt.Sscan(line, &child, &parent); n == 2 {
				parents[child] = parent
			}
		}
	}
	var list []int
	for child, parent := range parents {
		if parent == pid {
			list = append(list, child)
		}
	}
	return list
}

// processRuns reports whether the process is there and not merely waiting to
// be collected by a parent that is not us.
func processRuns(pid int) bool {
	if !processExists(pid) {
		return false
	}
	if _, _, state, ok := readStat(fmt.Sprintf("/proc/%d/stat", pid)); ok {
		return state != 'Z' && state != 'X'
	}
	return true
}

// readStat reads a Linux /proc/N/stat: "N (name) state parent …", where name
// may hold blanks and parentheses.
func readStat(path string) (pid, parent int, state byte, ok bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, 0, false
	}
	line := string(data)
	end := strings.LastIndexByte(line, ')')
	begin := strings.IndexByte(line, '(')
	if begin < 0 || end < begin {
		return 0, 0, 0, false
	}
	fields := strings.Fields(line[end+1:])
	if len(fields) < 2 {
		return 0, 0, 0, false
	}
	pid, err1 := strconv.Atoi(strings.TrimSpace(line[:begin]))
	parent, err2 := strconv.Atoi(fields[1])
	return pid, parent, fields[0][0], err1 == nil && err2 == nil
}

// runTool runs a helper program to its end. Its output becomes part of the
// error if it fails.
func runTool(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("replicatedtest: %s: %w: %s", filepath.Base(cmd.Path), err, lastLines(string(out), 20))
	}
	return nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
