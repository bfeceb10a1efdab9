package rdma

import (
	"slices"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Both transports number what they send on a circle, of 24 bits (PSNs) or of 32
// (TCP's bytes). A packet is an item of length 1 on the first, a segment one of
// its length on the second.

// circle is how many bits a sequence number has.
type circle uint8

const (
	psns   circle = 24
	octets circle = 32
)

// delta is how far a is ahead of b, negative when it is behind.
func (c circle) delta(a, b uint32) int32 {
	return int32((a-b)<<(32-c)) >> (32 - c)
}

// add is n further.
func (c circle) add(a, n uint32) uint32 { return (a + n) << (32 - c) >> (32 - c) }

// The limits of what one direction may hold. They also bound what it costs to put
// an item in its place.
const (
	maxHeld      = 1024
	maxHeldBytes = 4 << 20
)

// held is a copy of an item that waits for those before it.
type held struct {
	stamp   record.Stamp
	data    []byte // what was captured
	length  int    // on the wire
	repeats int32  // how often it came again, meanwhile
	again   record.Stamp
	burst   Burst // that the first of these copies began; Number 0 for none
}

// window holds what came early, in order.
type window struct {
	order []place // by sequence number
	items []held  // at the places
	free  []int32
	bytes int
}

type place struct {
	seq  uint32
	item int32
}

// empty says that nothing is held; so does a window that was never made.
func (w *window) empty() bool { return w == nil || len(w.order) == 0 }

// held is the window of a half, to be added to.
func (f *flow) held() *window {
	if f.window == nil {
		f.window = new(window)
	}
	return f.window
}

// first is the sequence number of the earliest item.
func (w *window) first() uint32 { return w.order[0].seq }

// earliest is that item.
func (w *window) earliest() *held { return &w.items[w.order[0].item] }

// find is where an item is, or would be.
func (w *window) find(c circle, seq uint32) (i int, found bool) {
	if n := len(w.order); n > 0 && c.delta(seq, w.order[n-1].seq) > 0 {
		return n, false
	}
	return slices.BinarySearchFunc(w.order, seq, func(p place, seq uint32) int { return int(c.delta(p.seq, seq)) })
}

// insert puts a copy of an item at place i, in a buffer that is given.
func (w *window) insert(i int, seq uint32, h held) {
	var n int32
	if last := len(w.free); last > 0 {
		n, w.free = w.free[last-1], w.free[:last-1]
		w.items[n] = h
	} else {
		n = int32(len(w.items))
		w.items = append(w.items, h)
	}
	w.order = slices.Insert(w.order, i, place{seq, n})
	w.bytes += len(h.data)
}

// remove takes the earliest n items out. Their buffers are the caller's.
func (w *window) remove(n int) {
	for _, p := range w.order[:n] {
		w.bytes -= len(w.items[p.item].data)
		w.items[p.item] = held{}
		w.free = append(w.free, p.item)
	}
	w.order = slices.Delete(w.order, 0, n)
	if cap(w.items) > 64 && len(w.order)*8 < cap(w.items) { // do not hoard what one burst needed
		kept := window{bytes: w.bytes}
		for i, p := range w.order {
			kept.order, kept.items = append(kept.order, place{p.seq, int32(i)}), append(kept.items, w.items[p.item])
		}
		*w = kept
	}
}

// full says that it holds as much as it may.
func (w *window) full() bool { return len(w.order) > maxHeld || w.bytes > maxHeldBytes }
