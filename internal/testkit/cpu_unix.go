//go:build unix

package testkit

import (
	"syscall"
	"time"
)

// CPU returns the processor time of the process. Other processes that use the machine do not change it much.
func CPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
