package socket

import (
	"syscall"
	"unsafe"
)

// From <poll.h>; the same on all Linux platforms that Go knows.
const (
	pollERR   = 0x0008
	pollHUP   = 0x0010
	pollRDHUP = 0x2000
)

// pollFd is struct pollfd of poll(2).
type pollFd struct {
	fd      int32
	events  int16
	revents int16
}

// hungUp reports whether the peer of a socket with data to read has closed or
// reset it. A peek sees the data only, whatever follows it; POLLRDHUP does.
func hungUp(fd int) bool {
	p := pollFd{fd: int32(fd), events: pollRDHUP} // HUP and ERR are always reported
	var now syscall.Timespec                      // do not wait
	// ppoll, because poll(2) does not exist on arm64 and riscv64. The two
	// pointers are to locals that the call does not keep.
	_, _, errno := syscall.Syscall6(syscall.SYS_PPOLL,
		uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&now)), 0, 0, 0)
	return errno == 0 && p.revents&(pollRDHUP|pollHUP|pollERR) != 0
}
