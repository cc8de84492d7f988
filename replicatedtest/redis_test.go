package replicatedtest_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

func redisDo(t testing.TB, r *replicatedtest.Redis, command ...string) any {
	t.Helper()
	answer, err := r.Do(command...)
	if err != nil {
		t.Fatalf("%s: %v", command[0], err)
	}
	return answer
}

// What comes back is what the way of ending left on disk.
func TestRedisRestarts(t *testing.T) {
	r := replicatedtest.StartRedis(t, replicatedtest.RedisConfig{})
	pid := r.Pid()
	redisDo(t, r, "SET", "a", "1")
	must(t, r.Save())
	redisDo(t, r, "SET", "a", "2")
	must(t, r.Kill())
	if _, err := r.Do("PING"); err == nil {
		t.Error("it answers although it was killed")
	}
	must(t, r.Start())
	if got := redisDo(t, r, "GET", "a"); got != "1" {
		t.Errorf("after a crash %v, want what was saved", got)
	}
	redisDo(t, r, "SET", "a", "3")
	must(t, r.Restart())
	if got := redisDo(t, r, "GET", "a"); got != "3" {
		t.Errorf("after a restart %v", got)
	}
	must(t, r.RestartEmpty())
	if got := redisDo(t, r, "GET", "a"); got != nil {
		t.Errorf("after a restart without data %v", got)
	}
	if r.Pid() == pid || r.Pid() == 0 {
		t.Errorf("process %d was %d before", r.Pid(), pid)
	}
}

// A server that hangs answers nobody until it goes on.
func TestRedisHangsAndPauses(t *testing.T) {
	r := replicatedtest.StartRedis(t, replicatedtest.RedisConfig{})
	must(t, r.Hang())
	answered := make(chan error, 1)
	go func() {
		_, err := r.Do("PING")
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Errorf("answered although it hangs: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	must(t, r.Resume())
	must(t, <-answered)

	begin := time.Now()
	must(t, r.Pause(80*time.Millisecond))
	redisDo(t, r, "PING")
	if took := time.Since(begin); took < 80*time.Millisecond {
		t.Errorf("answered after %v of a pause of 80 ms", took)
	}
}

// A replica behind a proxy that stalls lacks what its primary has, also after
// it was promoted, and gets it when it follows again.
func TestRedisLaggingReplica(t *testing.T) {
	primary := replicatedtest.StartRedis(t, replicatedtest.RedisConfig{})
	redisDo(t, primary, "SET", "a", "1")
	proxy, err := replicatedtest.NewProxy(primary.Addr())
	must(t, err)
	t.Cleanup(proxy.Close)
	replica := replicatedtest.StartRedis(t, replicatedtest.RedisConfig{Follow: proxy.Addr()})
	if got := redisDo(t, replica, "GET", "a"); got != "1" {
		t.Errorf("the replica has %v", got)
	}
	if _, err := replica.Do("SET", "a", "9"); err == nil {
		t.Error("the replica can be written to")
	}
	proxy.Stall(replicatedtest.ToClient)
	redisDo(t, primary, "SET", "a", "2")
	must(t, replica.Promote())
	if got := redisDo(t, replica, "GET", "a"); got != "1" {
		t.Errorf("the lagging replica has %v", got)
	}
	redisDo(t, replica, "SET", "b", "1")
	must(t, replica.Follow(primary.Addr()))
	if got := redisDo(t, replica, "MGET", "a", "b"); fmt.Sprint(got) != "[2 <nil>]" {
		t.Errorf("the replica that follows again has %v", got)
	}
}

// Each member has its part of the keys, and names the others for the rest.
func TestRedisCluster(t *testing.T) {
	members := replicatedtest.StartRedisCluster(t, 3, replicatedtest.RedisConfig{})
	slot := redisDo(t, members[0], "CLUSTER", "KEYSLOT", "a").(int64)
	owners := 0
	for i, r := range members {
		_, err := r.Do("SET", "a", "1")
		owns := slot >= int64(i*16384/3) && slot < int64((i+1)*16384/3)
		switch {
		case owns && err != nil:
			t.Errorf("member %d, which has slot %d: %v", i, slot, err)
		case owns:
			owners++
		case err == nil || !strings.HasPrefix(err.Error(), "MOVED "+strconv.FormatInt(slot, 10)+" 127.0.0.1:"):
			t.Errorf("member %d, which has not slot %d: %v", i, slot, err)
		}
	}
	if owners != 1 {
		t.Errorf("%d owners", owners)
	}
}

// Without the program a test is skipped, or fails where it is required.
func TestRedisMissing(t *testing.T) {
	replicatedtest.RequireRedis(t)
	for list, want := range map[string]string{"": "--- SKIP", "redis": "--- FAIL"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestRedisRestarts$", "-test.v")
		cmd.Env = append(os.Environ(), "REPLICATED_TEST_REDIS=/nonexistent/redis-server", "REPLICATED_TEST_REQUIRE="+list)
		out, _ := cmd.CombinedOutput()
		if !strings.Contains(string(out), want) || !strings.Contains(string(out), "/nonexistent/redis-server") {
			t.Errorf("required %q: %s", list, out)
		}
	}
}

// A test process that dies takes its Redis with it, one that hangs included.
func TestRedisEndsWithItsTest(t *testing.T) {
	const variable = "REPLICATEDTEST_REDIS_VICTIM"
	if os.Getenv(variable) != "" {
		r := replicatedtest.StartRedis(t, replicatedtest.RedisConfig{})
		pid := r.Pid()
		must(t, r.Hang())
		fmt.Println("pid", pid)
		select {} // until killed
	}
	replicatedtest.RequireRedis(t)
	tmp := t.TempDir()
	must(t, os.Chmod(tmp, 0o755))
	must(t, os.Chmod(tmp+"/..", 0o755))
	cmd := exec.Command(os.Args[0], "-test.run=^TestRedisEndsWithItsTest$", "-test.v")
	cmd.Env = append(os.Environ(), variable+"=1", "TMPDIR="+tmp)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	pid := 0
	for lines := bufio.NewScanner(out); pid == 0 && lines.Scan(); {
		_, _ = fmt.Sscanf(lines.Text(), "pid %d", &pid)
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	if pid == 0 {
		t.Fatal("no server")
	}
	deadline := time.Now().Add(20 * time.Second)
	for syscall.Kill(pid, 0) == nil && !zombie(pid) || len(serverDirs(t, tmp)) > 0 {
		if time.Now().After(deadline) {
			t.Fatalf("process %d still runs, or left %v", pid, serverDirs(t, tmp))
		}
		time.Sleep(10 * time.Millisecond)
	}
}
