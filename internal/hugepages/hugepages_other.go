//go:build !linux

package hugepages

// Other systems have no way to ask for huge pages.
func mayMap(int64) bool { return false }

func advise([]byte) bool { return false }
