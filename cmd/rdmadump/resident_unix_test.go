//go:build unix

package main

import (
	"os"
	"runtime"
	"syscall"
)

// residentMost is how many bytes of memory a process had at most.
func residentMost(p *os.ProcessState) int64 {
	usage, _ := p.SysUsage().(*syscall.Rusage)
	if runtime.GOOS == "darwin" {
		return int64(usage.Maxrss) // bytes there, KiB elsewhere
	}
	return int64(usage.Maxrss) << 10
}
