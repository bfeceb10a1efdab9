//go:build !linux

package hugepages

// Elsewhere there is nothing to ask for.
func mayMap(int64) bool { return false }

func advise([]byte) bool { return false }
