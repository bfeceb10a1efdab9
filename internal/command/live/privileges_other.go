//go:build !linux

package live

// dropPrivileges does nothing, because capturing on an interface needs Linux.
func dropPrivileges() error { return nil }
