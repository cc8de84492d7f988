//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package socket

// hungUp reports whether the peer of a socket with data to read has closed it.
// These systems tell only after the data has been read, so it is never known:
// a terminated PostgreSQL backend then shows after the statement was sent, as
// it does with the bare driver.
func hungUp(int) bool { return false }
