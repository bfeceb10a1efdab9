//go:build unix

package main

import (
	"os"
	"runtime"
	"syscall"
)

// residentMost returns the maximum resident memory of a process, in bytes.
func residentMost(p *os.ProcessState) int64 {
	usage, _ := p.SysUsage().(*syscall.Rusage)
	if runtime.GOOS == "darwin" {
		return int64(usage.Maxrss) // Darwin counts bytes, other systems KiB.
	}
	return int64(usage.Maxrss) << 10
}
