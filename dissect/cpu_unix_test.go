//go:build unix

package dissect_test

import (
	"syscall"
	"time"
)

// cpu is how much processor time the process has used: the machine may be busy
// with something else.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
