// Package hugepages makes the kernel back the growing heap of a program with huge pages.
//
// The kernel allocates memory page by page. In a virtual machine, the first access to a
// page costs 1 to 2 µs, and a flood of new connections spends a third of its time on
// that. A huge page of 2 MiB replaces 512 pages, but if transparent huge pages are
// set to "madvise", as in most distributions, a program has to ask for them. Go does not
// ask, and accesses the memory for its heap as soon as it has mapped it, 4 MiB at a time.
// So this package allocates a block without accessing it, asks the kernel for huge pages
// there, and frees the block. The heap then grows into its addresses.
//
// This affects only speed: everything works as before if the runtime unmaps the block,
// or if the kernel has no huge pages.
package hugepages

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

const (
	// enough is the heap size, in bytes, from which on the heap is expected to grow
	// further. Captures of few connections need half of it.
	enough = 18 << 20

	// most is the maximum number of bytes to ask for. Analysis state within a budget of
	// 256 MiB fills that much.
	most = 192 << 20

	// extra is the number of bytes that the runtime may map in addition to the block:
	// heap, 64 MiB at a time, and its metadata.
	extra = 160 << 20
)

// asked is set once the process has asked for huge pages for its heap.
var asked atomic.Bool

// Look asks for huge pages once in the life of a process, when the heap has become large
// enough. limit is the maximum number of bytes to ask for; 0 disables asking. The memory
// limit of the runtime must allow limit bytes more. Callers call Look from time to time.
// It returns quickly, because another goroutine does the slow part.
func Look(limit int64) {
	if limit == 0 || asked.Load() {
		return
	}
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(heap)
	if v := heap[0].Value; v.Kind() == metrics.KindUint64 && v.Uint64() > enough && asked.CompareAndSwap(false, true) {
		go ask(min(limit, most))
	}
}

// ask asks for huge pages for the next bytes of the heap, and reports whether the kernel
// granted them. It does not ask if the process may not map that much memory.
func ask(bytes int64) bool {
	if !mayMap(bytes + extra) {
		return false
	}
	// With a distant heap goal, no goroutine has to assist this collection.
	percent := debug.SetGCPercent(-1)
	defer debug.SetGCPercent(percent)
	ok := advise(make([]byte, bytes)) // the kernel returns zeroed memory, so the runtime does not access it
	runtime.GC()
	return ok
}
