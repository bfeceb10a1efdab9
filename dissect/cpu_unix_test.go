//go:build unix

package dissect_test

import (
	"syscall"
	"time"
)

// cpu returns the processor time of the process, because other processes may use the machine,
// too.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
