package hugepages

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// mayMap reports whether the process may map that many bytes more. If it may not, the
// runtime would terminate the program.
func mayMap(bytes int64) bool {
	b, err := unix.Mmap(-1, 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return false
	}
	return unix.Munmap(b) == nil
}

// advise asks for huge pages for the pages that are completely within b.
func advise(b []byte) bool {
	page := unix.Getpagesize()
	from := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (page - 1)
	if from >= len(b) {
		return false
	}
	b = b[from:]
	return unix.Madvise(b[:len(b)&^(page-1)], unix.MADV_HUGEPAGE) == nil
}
