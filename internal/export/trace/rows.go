package trace

import (
	"cmp"
	"container/heap"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// rows distributes slices that overlap over as few rows as possible. The slices come in the order
// in which they begin.
type rows struct {
	used int   // number of rows
	busy byEnd // the row that is free first is on top
	free byEnd // busy until 0, so that the lowest is on top
}

// take returns the lowest row that is free at start, and whether it is a new one. The row is busy
// until end.
func (l *rows) take(start, end record.Time) (number int, fresh bool) {
	for len(l.busy) > 0 && l.busy[0].until <= start {
		heap.Push(&l.free, row{number: heap.Pop(&l.busy).(row).number})
	}
	if len(l.free) > 0 {
		number = heap.Pop(&l.free).(row).number
	} else {
		number, fresh = l.used, true
		l.used++
	}
	heap.Push(&l.busy, row{end, number})
	return number, fresh
}

// row is a row and the time until which it is busy.
type row struct {
	until  record.Time
	number int
}

// byEnd is a heap of rows.
type byEnd []row

func (h byEnd) Len() int { return len(h) }
func (h byEnd) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].until, h[j].until), cmp.Compare(h[i].number, h[j].number)) < 0
}
func (h byEnd) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *byEnd) Push(v any)   { *h = append(*h, v.(row)) }
func (h *byEnd) Pop() any     { old := *h; v := old[len(old)-1]; *h = old[:len(old)-1]; return v }
