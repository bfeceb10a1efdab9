//go:build !linux

package main

import "os"

// openPipe opens a file for reading. To open a FIFO that no process writes to takes until one does.
func openPipe(path string) (*os.File, error) { return os.Open(path) }

// arrived reports whether a pipe can be read without missing what a process writes to it later.
func arrived(*os.File) bool { return true }
