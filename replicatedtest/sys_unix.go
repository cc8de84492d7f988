//go:build unix

package replicatedtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the user whom servers run as; nil means the user of this process.
type account struct {
	name     string
	uid, gid int
}

// unprivileged returns whom a server should run as: PostgreSQL refuses to run
// as root, and no server needs to.
func unprivileged(names ...string) (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range append(names, "nobody") {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		if err1 == nil && err2 == nil && uid > 0 {
			return &account{name: name, uid: uid, gid: gid}, nil
		}
	}
	return nil, fmt.Errorf("replicatedtest: started by root, and there is no user to run servers as (looked for %v and nobody)", names)
}

// detach makes cmd run as the account, in a session of its own: an interrupt
// typed at the terminal reaches the test, whose end ends the servers in order.
func detach(cmd *exec.Cmd, as *account) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if as != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(as.uid), Gid: uint32(as.gid)}
	}
}

// reaches reports whether the account may open the path, as far as the
// permissions for everybody go.
func (a *account) reaches(path string) bool {
	if a == nil {
		return true
	}
	for dir := path; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return false
		}
		if info.IsDir() && info.Mode()&0o001 == 0 || !info.IsDir() && info.Mode()&0o004 == 0 {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	return os.Lchown(path, a.uid, a.gid)
}

// tryLock takes an exclusive lock on the file, which ends with the process at
// the latest. It reports false if another process, or another open file of
// this one, has it.
func tryLock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

func stopProcess(pid int) error      { return syscall.Kill(pid, syscall.SIGSTOP) }
func continueProcess(pid int) error  { return syscall.Kill(pid, syscall.SIGCONT) }
func terminateProcess(pid int) error { return syscall.Kill(pid, syscall.SIGTERM) }
func killProcess(pid int) error      { return syscall.Kill(pid, syscall.SIGKILL) }

var (
	signalInterrupt os.Signal = syscall.SIGINT
	signalTerminate os.Signal = syscall.SIGTERM
	signalQuit      os.Signal = syscall.SIGQUIT
)

func processExists(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
