package replicatedtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// Ports are taken from below the ranges from which systems draw ports for
// outgoing connections (32768 on Linux, 49152 elsewhere): no client can sit on
// a server's port while that server is down.
const (
	firstPort = 20000
	lastPort  = 32000
)

// port is a TCP port of 127.0.0.1 that no other cluster on this machine uses,
// also while nothing listens on it. It is held by a lock on a file, which ends
// with the process at the latest.
type port struct {
	number int
	lock   *os.File
}

func leasePort() (*port, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("replicated-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("replicatedtest: port: %w", err)
	}
	var problem error
	for range 500 {
		number := firstPort + rand.IntN(lastPort-firstPort)
		lock, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(number)), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("replicatedtest: port: %w", err)
		}
		ok, err := tryLock(lock)
		if ok {
			// Something else than a cluster may listen there.
			var l net.Listener
			if l, err = net.Listen("tcp", loopback(number)); err == nil {
				l.Close()
				return &port{number: number, lock: lock}, nil
			}
		}
		problem = err
		lock.Close()
	}
	return nil, fmt.Errorf("replicatedtest: no free port: %w", errors.Join(problem, errors.New("500 ports tried")))
}

func (p *port) release() { p.lock.Close() }

func (p *port) addr() string { return loopback(p.number) }

func loopback(number int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(number)) }
