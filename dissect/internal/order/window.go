package order

import (
	"slices"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Limits of the items in a window. They also limit the cost of
// inserting an item.
const (
	maxHeld      = 1024
	maxHeldBytes = 4 << 20
)

// Window holds items that came early, in order. T is what its owner keeps of an item. The window is nil
// before the first item.
type Window[T any] struct {
	order []place // by sequence number
	items []T     // at the indexes in order
	free  []int32
	taken []int32 // indexes of items that are valid until reclaim
	bytes int
}

// place is an item of a window.
type place struct {
	Request
	item  int32
	bytes int32
}

// Empty reports whether no item is held.
func (w *Window[T]) Empty() bool { return w == nil || len(w.order) == 0 }

// Len returns the number of items.
func (w *Window[T]) Len() int { return len(w.order) }

// Bytes returns the bytes of all items.
func (w *Window[T]) Bytes() int { return w.bytes }

// At returns the item at an index of the order, and Seq its sequence number.
func (w *Window[T]) At(i int) *T { return &w.items[w.order[i].item] }

// Seq returns the sequence number of the item at an index of the order.
func (w *Window[T]) Seq(i int) uint32 { return w.order[i].PSN }

// EndsAfter reports whether a request with a higher sequence number waits.
func (w *Window[T]) EndsAfter(c Circle, seq uint32) bool {
	return !w.Empty() && c.Delta(w.Seq(w.Len()-1), seq) > 0
}

// Since returns the time of the item that came first.
func (w *Window[T]) Since() record.Time {
	first := w.order[0].At
	for _, p := range w.order[1:] {
		if p.At.Before(first) {
			first = p.At
		}
	}
	return first.Time
}

// find returns the index of an item, or the index at which it would be inserted.
func (w *Window[T]) find(c Circle, seq uint32) (i int, found bool) {
	if w == nil {
		return 0, false
	}
	if n := len(w.order); n > 0 && c.Delta(seq, w.order[n-1].PSN) > 0 {
		return n, false
	}
	return slices.BinarySearchFunc(w.order, seq, func(p place, seq uint32) int { return int(c.Delta(p.PSN, seq)) })
}

// Item returns the item with a sequence number, nil if there is none.
func (w *Window[T]) Item(c Circle, seq uint32) *T {
	if i, found := w.find(c, seq); found {
		return w.At(i)
	}
	return nil
}

// With returns the window with one more item, of a number of bytes.
func (w *Window[T]) With(c Circle, r Request, bytes int, item T) *Window[T] {
	if w == nil {
		w = new(Window[T])
	}
	var n int32
	if last := len(w.free); last > 0 {
		n, w.free = w.free[last-1], w.free[:last-1]
		w.items[n] = item
	} else {
		n = int32(len(w.items))
		w.items = append(w.items, item)
	}
	i, _ := w.find(c, r.PSN)
	w.order = slices.Insert(w.order, i, place{Request: r, item: n, bytes: int32(bytes)})
	w.bytes += bytes
	return w
}

// lengthen notes that an item is of a longer segment now, of which a number of bytes more are kept.
func (w *Window[T]) lengthen(c Circle, longer Request, bytes int) {
	if i, found := w.find(c, longer.PSN); found {
		p := w.order[i]
		w.order[i] = place{Request{PSN: p.PSN, Size: longer.Size, At: p.At}, p.item, p.bytes + int32(bytes)}
		w.bytes += bytes
	}
}

// Remove removes the earliest n items.
func (w *Window[T]) Remove(n int) {
	for range n {
		w.takeFirst()
	}
	w.reclaim()
}

// takeFirst takes the earliest item out of the window. It is valid until reclaim.
func (w *Window[T]) takeFirst() *T {
	p := w.order[0]
	w.order = slices.Delete(w.order, 0, 1)
	w.taken = append(w.taken, p.item)
	w.bytes -= int(p.bytes)
	return &w.items[p.item]
}

// reclaim gives back the storage of the items that were taken out.
func (w *Window[T]) reclaim() {
	if w == nil || len(w.taken) == 0 {
		return
	}
	var none T
	for _, i := range w.taken {
		w.items[i] = none
		w.free = append(w.free, i)
	}
	w.taken = w.taken[:0]
	if cap(w.items) > 64 && len(w.order)*8 < cap(w.items) { // free the memory that a burst needed
		kept := Window[T]{bytes: w.bytes}
		for i, p := range w.order {
			kept.items = append(kept.items, w.items[p.item])
			kept.order = append(kept.order, place{p.Request, int32(i), p.bytes})
		}
		*w = kept
	}
}

// Full reports whether the window has exceeded its limits.
func (w *Window[T]) Full() bool {
	return w != nil && (len(w.order) > maxHeld || w.bytes > maxHeldBytes)
}
