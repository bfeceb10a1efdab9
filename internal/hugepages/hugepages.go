// Package hugepages makes the heap of a program that keeps much grow into huge pages.
//
// The kernel gives memory away page by page, and a page that is touched for the first
// time costs 1 to 2 µs in a virtual machine. A flood of new connections is a third
// of its time waiting for that. Where transparent huge pages are for who asks
// ("madvise", as most distributions have it) one of 2 MiB stands for 512 of those; but
// Go does not ask for its heap, and touches what it takes from the kernel at once, 4
// MiB at a time. So a block is taken that nobody touches, the kernel is asked for
// huge pages there, and the block is let go: what the heap grows into next is it.
//
// Nothing depends on that but time: a runtime that would give the block back, or a
// kernel that has no huge pages to give, leaves everything as it was.
package hugepages

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

const (
	// enough is a heap, in bytes, that will grow: what captures of few connections
	// take is half of it.
	enough = 18 << 20

	// most is how many bytes are asked for at most: what is kept within a budget of
	// 256 MiB fills that.
	most = 192 << 20

	// room is what the runtime may want beside the block, while it stands: heap,
	// for which it maps 64 MiB at a time, and what it notes about that.
	room = 160 << 20
)

// asked says that the heap, of which a process has one, was asked for.
var asked atomic.Bool

// Look asks for huge pages when the heap has become large, once in the life of a
// process, for so many bytes at most, none of them where that is zero: the runtime's
// memory limit has to leave room for as much. It is to be called now and then; what takes long it leaves to another
// goroutine.
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

// ask asks for huge pages for the next so many bytes of the heap. It says whether they
// were to be had at all: there may be limits to what a process maps, and then the
// heap had better not ask.
func ask(bytes int64) bool {
	if !mayMap(bytes + room) {
		return false
	}
	// With a limit that is far away nobody has to stop and help this collection.
	percent := debug.SetGCPercent(-1)
	defer debug.SetGCPercent(percent)
	ok := advise(make([]byte, bytes)) // fresh from the kernel, which makes it of zeros: nobody touches it
	runtime.GC()
	return ok
}
