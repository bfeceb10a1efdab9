package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// openPipe opens a file for reading. If it is a FIFO, it does not wait for a process that writes to it.
func openPipe(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
		return os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	}
	return os.Open(path)
}

// pollTime is the time in milliseconds for which arrived waits.
const pollTime = 100

// arrived waits a short time and reports whether a process has written to a pipe, or has opened and closed it. Reading a FIFO
// that no process has opened for writing would show its end.
func arrived(f *os.File) (is bool) {
	raw, err := f.SyscallConn()
	if err != nil {
		return true // Reading shows the error.
	}
	err = raw.Control(func(fd uintptr) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, pollTime)
		is = n > 0 || err != nil && err != unix.EINTR
	})
	return is || err != nil
}
