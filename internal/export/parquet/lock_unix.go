//go:build unix && !solaris && !aix

package parquet

import (
	"os"
	"syscall"
)

// lock locks a file for this process, and reports whether it could. The lock ends with the process.
func lock(f *os.File) bool { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil }
