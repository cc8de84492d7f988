//go:build !unix

package replicatedtest

import (
	"errors"
	"os"
	"os/exec"
)

// errPlatform is what every start fails with here: the package is built on
// signals and sessions as Unix has them.
var errPlatform = errors.New("replicatedtest: clusters can be started on Unix systems only")

type account struct{ name string }

func unprivileged(...string) (*account, error) { return nil, errPlatform }
func detach(*exec.Cmd, *account)               {}
func (a *account) reaches(string) bool         { return true }
func (a *account) own(string) error            { return nil }
func tryLock(*os.File) (bool, error)           { return false, errPlatform }
func stopProcess(int) error                    { return errPlatform }
func continueProcess(int) error                { return errPlatform }
func terminateProcess(int) error               { return errPlatform }
func killProcess(int) error                    { return errPlatform }
func processExists(int) bool                   { return false }

var signalInterrupt, signalTerminate, signalQuit = os.Interrupt, os.Kill, os.Kill
