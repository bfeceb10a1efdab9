package trace

import (
	"container/heap"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// lanes distributes slices that overlap over as few lanes as possible. The slices come in the order
// in which they begin.
type lanes struct {
	used int // number of lanes
	busy byEnd
	free byNumber
}

func newLanes() *lanes { return &lanes{} }

// take returns the lowest lane that is free at start, and whether it is a new one. The lane is busy
// until end.
func (l *lanes) take(start, end record.Time) (lane int, fresh bool) {
	for len(l.busy) > 0 && l.busy[0].until <= start {
		heap.Push(&l.free, heap.Pop(&l.busy).(busyLane).lane)
	}
	if len(l.free) > 0 {
		lane = heap.Pop(&l.free).(int)
	} else {
		lane, fresh = l.used, true
		l.used++
	}
	heap.Push(&l.busy, busyLane{end, lane})
	return lane, fresh
}

// busyLane is a lane and the time until which it is busy.
type busyLane struct {
	until record.Time
	lane  int
}

// byEnd is a heap of busy lanes: the lane that is free first is on top.
type byEnd []busyLane

func (h byEnd) Len() int           { return len(h) }
func (h byEnd) Less(i, j int) bool { return h[i].until < h[j].until }
func (h byEnd) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byEnd) Push(v any)        { *h = append(*h, v.(busyLane)) }
func (h *byEnd) Pop() any          { old := *h; v := old[len(old)-1]; *h = old[:len(old)-1]; return v }

// byNumber is a heap of free lanes, the lowest on top.
type byNumber []int

func (h byNumber) Len() int           { return len(h) }
func (h byNumber) Less(i, j int) bool { return h[i] < h[j] }
func (h byNumber) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byNumber) Push(v any)        { *h = append(*h, v.(int)) }
func (h *byNumber) Pop() any          { old := *h; v := old[len(old)-1]; *h = old[:len(old)-1]; return v }
