//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd)

package socket

// peerClosed is never known on this system.
func peerClosed(int) bool { return false }
