// Package memory has the memory that Calls expose: the segments of their chunks, and which bytes of them moved. It finds the
// segment that an RDMA operation names, among the memory that a host exposes. It knows neither transactions nor operations.
package memory

import "github.com/rdmadump/rdmadump/dissect/record"

// Target is the range of memory that an operation names.
type Target struct {
	Handle uint32
	Offset uint64
	Length uint32
}

// Segment is a range of memory that a Call exposes until its Reply. T is what has the Call. A segment is small, because a Call
// may have very many of which few are used. Only methods of Segment and [Regions] change its fields.
type Segment[T any] struct {
	Target
	Owner        *T
	prev, next   *Segment[T] // exposed under the same handle, later and earlier
	transfer     *Transfer   // nil if nothing moved; see [Segment.Transferred]
	reached      uint64      // offset after the last byte that moved
	keep         int64       // offset up to which the data that moves is kept
	Total        int64       // bytes that the Call exposes under the handle, up to this segment
	at           int64       // offset of its first byte in its chunk
	Chunk, Index int32
	Number       int32  // index in the segments of the Call
	Position     uint32 // of a Read chunk
	Returned     record.Opt[uint32]
	Kind         Kind
	listed       bool // it is in byStart
	HandleSeen   bool // an earlier segment of the Call has the same handle
	Persistent   bool // an earlier Call exposed the handle, and nobody has invalidated it since
	Invalidated  bool // the Reply to another RPC invalidated the handle
}

// Earlier returns the segment that was exposed under the same handle before this one, or nil.
func (s *Segment[T]) Earlier() *Segment[T] { return s.next }

// Holds reports whether the whole target is in the segment.
func (s *Segment[T]) Holds(m Target) bool {
	return m.Offset >= s.Offset && m.Offset-s.Offset <= uint64(s.Length) && uint64(m.Length) <= uint64(s.Length)-(m.Offset-s.Offset)
}

// begins reports whether the first byte at an offset is in the segment.
func (s *Segment[T]) begins(offset uint64) bool {
	return offset >= s.Offset && offset-s.Offset < uint64(s.Length)
}

// Overlaps reports whether two segments of one handle have a byte in common.
func (s *Segment[T]) Overlaps(o *Segment[T]) bool {
	return s.Length > 0 && o.Length > 0 && (o.Offset-s.Offset < uint64(s.Length) || s.Offset-o.Offset < uint64(o.Length))
}

// Exposure is the memory that a side exposes.
type Exposure[T any] struct {
	byHandle map[uint32]*Segment[T] // the latest segment of each handle; the others are linked to it
	byStart  map[start]*Segment[T]  // segments of handles that very many segments share, after the first look-up of such a handle: by their first offset, and by the offset that they have reached
	most     int                    // maximum size that byHandle had
}

type start struct {
	handle uint32
	offset uint64
}

// LookAt is the maximum number of segments of one handle that are searched. If more segments share
// a handle, they are found by the offset at which an operation starts, which is the start of the
// segment or the end of the operation before it. The cost of that does not depend on their number.
const LookAt = 16

// Expect allocates space for n more segments, if there are enough of them.
func (e *Exposure[T]) Expect(n int) {
	if n > 8 && len(e.byHandle) == 0 && n > e.most {
		e.byHandle = make(map[uint32]*Segment[T], n)
	}
}

// Latest returns the latest segment that is exposed under a handle, or nil. [Segment.Earlier]
// returns the others.
func (e *Exposure[T]) Latest(handle uint32) *Segment[T] { return e.byHandle[handle] }

// Add exposes a segment.
func (e *Exposure[T]) Add(s *Segment[T]) {
	if e.byHandle == nil {
		e.byHandle = map[uint32]*Segment[T]{}
	}
	s.prev, s.next, s.listed, s.reached = nil, nil, false, s.Offset
	if under := e.byHandle[s.Handle]; under != nil {
		s.next, under.prev = under, s
	}
	e.byHandle[s.Handle] = s
	e.most = max(e.most, len(e.byHandle))
}

// list adds the segments of a handle to byStart, oldest first, except those that were added before.
func (e *Exposure[T]) list(latest *Segment[T]) {
	if e.byStart == nil {
		e.byStart = map[start]*Segment[T]{}
	}
	if latest.listed {
		return
	}
	s := latest
	for next := s.next; next != nil && !next.listed; next = s.next {
		s = next
	}
	for ; s != nil; s = s.prev {
		e.byStart[start{s.Handle, s.Offset}] = s
		s.listed = true
		e.moves(s, s.reached)
	}
}

// unlist removes a segment from one of its offsets in byStart.
func (e *Exposure[T]) unlist(s *Segment[T], offset uint64) {
	if at := (start{s.Handle, offset}); e.byStart[at] == s {
		delete(e.byStart, at)
	}
}

// Reaches records the offset at which the next operation on a segment is likely to begin, because a
// segment that moves in parts usually moves in order.
func (e *Exposure[T]) Reaches(s *Segment[T], offset uint64) {
	if s.listed {
		if s.reached != s.Offset {
			e.unlist(s, s.reached)
		}
		e.moves(s, offset)
	}
	s.reached = offset
}

// moves adds a segment to byStart under the offset that it has reached.
func (e *Exposure[T]) moves(s *Segment[T], offset uint64) {
	if offset-s.Offset < uint64(s.Length) {
		e.byStart[start{s.Handle, offset}] = s
	}
}

// Remove ends the exposure of a segment.
func (e *Exposure[T]) Remove(s *Segment[T]) {
	switch {
	case s.prev != nil:
		s.prev.next = s.next
	case e.byHandle[s.Handle] != s:
		return
	case s.next != nil:
		e.byHandle[s.Handle] = s.next
	default:
		delete(e.byHandle, s.Handle)
	}
	if s.next != nil {
		s.next.prev = s.prev
	}
	s.prev, s.next = nil, nil
	if s.listed {
		e.unlist(s, s.Offset)
		e.unlist(s, s.reached)
		s.listed = false
	}
	if len(e.byHandle) == 0 && e.most > 1<<10 { // maps do not shrink
		*e = Exposure[T]{}
	}
}

// Join adds the memory that another side exposes.
func (e *Exposure[T]) Join(o *Exposure[T]) {
	if len(e.byHandle) == 0 {
		*e, *o = *o, Exposure[T]{}
		return
	}
	for _, s := range o.byHandle {
		for s != nil {
			next := s.next
			e.Add(s)
			s = next
		}
	}
}

// Find returns a segment with the handle of the target. exact is true if the whole target is in it,
// and also if too many segments share the handle to search them all.
func (e *Exposure[T]) Find(m Target) (found *Segment[T], exact bool) {
	n := 0
	for s := e.byHandle[m.Handle]; s != nil; s, n = s.next, n+1 {
		if s.Holds(m) {
			return s, true
		}
		if found == nil || s.begins(m.Offset) {
			found = s // at least it begins in this segment
		}
		if n == LookAt {
			e.list(e.byHandle[m.Handle])
			return e.byStart[start{m.Handle, m.Offset}], true
		}
	}
	return found, false
}
