//go:build !unix

package main

import "os"

// residentMost returns 0, because the resident memory is unknown on this system.
func residentMost(*os.ProcessState) int64 { return 0 }
