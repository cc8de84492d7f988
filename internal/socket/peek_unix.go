//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package socket

import "syscall"

// peerClosed reports whether the peer of the socket fd has closed or reset it.
// It neither waits nor takes anything from the receive buffer.
func peerClosed(fd int) bool {
	var b [1]byte
	n, _, err := syscall.Recvfrom(fd, b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	switch {
	case err == nil && n == 0:
		return true
	case err == nil:
		return hungUp(fd)
	case err == syscall.EAGAIN, err == syscall.EWOULDBLOCK, err == syscall.EINTR:
		return false // nothing to read, the usual case
	case err == syscall.ENOTSOCK, err == syscall.EOPNOTSUPP, err == syscall.EINVAL:
		return false // not the kind of descriptor that can be asked
	default:
		return true // ECONNRESET, ETIMEDOUT (keep-alive), …
	}
}
