//go:build !linux

package main

// dropPrivileges does nothing, because capturing on an interface needs Linux.
func dropPrivileges() error { return nil }
