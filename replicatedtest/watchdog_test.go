package replicatedtest_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

// victimVariable makes the test binary play a process that dies with a cluster
// running: "engine manner".
const victimVariable = "REPLICATEDTEST_VICTIM"

// TestMain lets the process be the victim instead of running tests.
func TestMain(m *testing.M) {
	if role := os.Getenv(victimVariable); role != "" {
		playVictim(role)
	}
	os.Exit(m.Run())
}

func playVictim(role string) {
	name, manner, _ := strings.Cut(role, " ")
	for _, e := range replicatedtest.Engines() {
		if e.String() != name {
			continue
		}
		c, err := replicatedtest.StartContext(context.Background(), e, replicatedtest.Options{Replicas: 1})
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		for _, n := range c.Nodes() {
			fmt.Println("pid", n.Pid())
		}
		if manner == "hung" {
			if err := c.Primary().Hang(); err != nil {
				fmt.Println("error", err)
			}
		}
		fmt.Println("ready")
		if manner == "panic" {
			go func() { panic("as arranged") }()
		}
	}
	select {} // until killed
}

// However a process ends, its servers and their files are gone soon after.
func TestWatchdogCleansUp(t *testing.T) {
	signals := map[string]syscall.Signal{"kill": syscall.SIGKILL, "interrupt": syscall.SIGINT, "quit": syscall.SIGQUIT, "hung": syscall.SIGKILL, "panic": 0}
	onEachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		replicatedtest.Require(t, e)
		for manner, signal := range signals {
			t.Run(manner, func(t *testing.T) {
				tmp := t.TempDir()
				must(t, os.Chmod(tmp, 0o755))
				must(t, os.Chmod(tmp+"/..", 0o755))
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), victimVariable+"="+e.String()+" "+manner, "TMPDIR="+tmp)
				// A group of its own, so that signals reach it as a terminal's would.
				cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
				out, err := cmd.StdoutPipe()
				must(t, err)
				must(t, cmd.Start())
				var pids []int
				lines := bufio.NewScanner(out)
				for lines.Scan() && lines.Text() != "ready" {
					var pid int
					if n, _ := fmt.Sscanf(lines.Text(), "pid %d", &pid); n == 1 {
						pids = append(pids, pid)
					} else if strings.HasPrefix(lines.Text(), "error") {
						t.Error(lines.Text())
					}
				}
				if len(pids) != 2 {
					t.Fatalf("processes %v", pids)
				}
				dirs := serverDirs(t, tmp)
				if len(dirs) != 1 {
					t.Errorf("directories %v", dirs)
				}
				if signal != 0 {
					must(t, syscall.Kill(-cmd.Process.Pid, signal))
				}
				if err := cmd.Wait(); err == nil {
					t.Error("the victim ended well")
				}
				deadline := time.Now().Add(20 * time.Second)
				for {
					running := 0
					for _, pid := range pids {
						if syscall.Kill(pid, 0) == nil && !zombie(pid) {
							running++
						}
					}
					if running == 0 && len(serverDirs(t, tmp)) == 0 {
						break
					}
					if time.Now().After(deadline) {
						t.Fatalf("%d of %v still run, directories %v", running, pids, serverDirs(t, tmp))
					}
					time.Sleep(10 * time.Millisecond)
				}
			})
		}
	})
}

func serverDirs(t *testing.T, tmp string) []string {
	t.Helper()
	entries, err := os.ReadDir(tmp)
	must(t, err)
	var list []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "replicatedtest-") {
			list = append(list, e.Name())
		}
	}
	return list
}

// zombie reports whether the process has ended and waits for a parent that
// does not look: the first process of a container may not.
func zombie(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(data), ") Z ")
}

// A cluster that was closed leaves nothing behind either.
func TestCloseLeavesNothing(t *testing.T) {
	for _, e := range replicatedtest.Engines() { // one after the other, by their environment
		t.Run(e.String(), func(t *testing.T) { closeLeavesNothing(t, e) })
	}
}

func closeLeavesNothing(t *testing.T, e replicatedtest.Engine) {
	replicatedtest.Require(t, e)
	tmp := t.TempDir()
	must(t, os.Chmod(tmp, 0o755))
	must(t, os.Chmod(tmp+"/..", 0o755))
	t.Setenv("TMPDIR", tmp)
	c, err := replicatedtest.StartContext(context.Background(), e, replicatedtest.Options{Replicas: 1})
	must(t, err)
	pid := c.Primary().Pid()
	if len(serverDirs(t, tmp)) != 1 {
		t.Errorf("directories %v", serverDirs(t, tmp))
	}
	must(t, c.Close())
	if syscall.Kill(pid, 0) == nil {
		t.Errorf("process %d still runs", pid)
	}
	if len(serverDirs(t, tmp)) != 0 {
		t.Errorf("directories %v", serverDirs(t, tmp))
	}
}
