package hugepages

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// mayMap says whether a process may map so many bytes more. The runtime ends a
// program that may not.
func mayMap(bytes int64) bool {
	b, err := unix.Mmap(-1, 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return false
	}
	return unix.Munmap(b) == nil
}

// advise asks for huge pages for the pages that lie in b as a whole.
func advise(b []byte) bool {
	page := unix.Getpagesize()
	from := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (page - 1)
	if from >= len(b) {
		return false
	}
	b = b[from:]
	return unix.Madvise(b[:len(b)&^(page-1)], unix.MADV_HUGEPAGE) == nil
}
