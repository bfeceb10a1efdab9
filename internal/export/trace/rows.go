package trace

import (
	"container/heap"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// rows distributes slices that overlap over as few rows as possible. The slices come in the order
// in which they begin.
type rows struct {
	used int // number of rows
	busy byEnd
	free byNumber
}

// take returns the lowest row that is free at start, and whether it is a new one. The row is busy
// until end.
func (l *rows) take(start, end record.Time) (row int, fresh bool) {
	for len(l.busy) > 0 && l.busy[0].until <= start {
		heap.Push(&l.free, heap.Pop(&l.busy).(busyRow).row)
	}
	if len(l.free) > 0 {
		row = heap.Pop(&l.free).(int)
	} else {
		row, fresh = l.used, true
		l.used++
	}
	heap.Push(&l.busy, busyRow{end, row})
	return row, fresh
}

// busyRow is a row and the time until which it is busy.
type busyRow struct {
	until record.Time
	row   int
}

// byEnd is a heap of busy rows: the row that is free first is on top.
type byEnd []busyRow

func (h byEnd) Len() int           { return len(h) }
func (h byEnd) Less(i, j int) bool { return h[i].until < h[j].until }
func (h byEnd) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byEnd) Push(v any)        { *h = append(*h, v.(busyRow)) }
func (h *byEnd) Pop() any          { old := *h; v := old[len(old)-1]; *h = old[:len(old)-1]; return v }

// byNumber is a heap of free rows, the lowest on top.
type byNumber []int

func (h byNumber) Len() int           { return len(h) }
func (h byNumber) Less(i, j int) bool { return h[i] < h[j] }
func (h byNumber) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byNumber) Push(v any)        { *h = append(*h, v.(int)) }
func (h *byNumber) Pop() any          { old := *h; v := old[len(old)-1]; *h = old[:len(old)-1]; return v }
