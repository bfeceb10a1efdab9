// Package memory finds the segment that an RDMA operation names, among the memory that a host exposes, and records
// which bytes of a segment moved. It knows neither transactions nor operations.
package memory

// Target is the range of memory that an operation names.
type Target struct {
	Handle uint32
	Offset uint64
	Length uint32
}

// Region is a range of memory that may be exposed. A type S that embeds a Region[*S] is a segment that an
// [Exposure] of *S takes. It is small, because a Call may have very many segments of which few are used.
type Region[S any] struct {
	Target
	prev, next S         // segments exposed under the same handle, later and earlier
	transfer   *Transfer // nil if nothing moved; see [Region.Transferred]
	reached    uint64    // offset after the last byte that moved
	keep       int64     // offset up to which the data that moves is kept
	listed     bool      // it is in byStart
}

// Place returns the region itself, for [Exposure].
func (r *Region[S]) Place() *Region[S] { return r }

// Earlier returns the segment that was exposed under the same handle before this one, or the zero value.
func (r *Region[S]) Earlier() S { return r.next }

// Holds reports whether the whole target is in the region.
func (r *Region[S]) Holds(m Target) bool {
	return m.Offset >= r.Offset && m.Offset-r.Offset <= uint64(r.Length) && uint64(m.Length) <= uint64(r.Length)-(m.Offset-r.Offset)
}

// begins reports whether the first byte at an offset is in the region.
func (r *Region[S]) begins(offset uint64) bool {
	return offset >= r.Offset && offset-r.Offset < uint64(r.Length)
}

// Overlaps reports whether two regions of one handle have a byte in common.
func (r *Region[S]) Overlaps(o *Region[S]) bool {
	return r.Length > 0 && o.Length > 0 && (o.Offset-r.Offset < uint64(r.Length) || r.Offset-o.Offset < uint64(o.Length))
}

// segment is a pointer to a segment; its zero value is nil.
type segment[S any] interface {
	comparable
	Place() *Region[S]
}

// Exposure is the memory that a side exposes.
type Exposure[S segment[S]] struct {
	byHandle map[uint32]S // the latest segment of each handle; the others are linked to it
	byStart  map[start]S  // segments of handles that very many segments share, after the first look-up of such a handle: by their first offset, and by the offset that they have reached
	most     int          // maximum size that byHandle had
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
func (e *Exposure[S]) Expect(n int) {
	if n > 8 && len(e.byHandle) == 0 && n > e.most {
		e.byHandle = make(map[uint32]S, n)
	}
}

// Latest returns the latest segment that is exposed under a handle, or the zero value. [Region.Earlier]
// returns the others.
func (e *Exposure[S]) Latest(handle uint32) S { return e.byHandle[handle] }

// Add exposes a segment.
func (e *Exposure[S]) Add(s S) {
	if e.byHandle == nil {
		e.byHandle = map[uint32]S{}
	}
	var none S
	r := s.Place()
	r.prev, r.next, r.listed, r.reached = none, none, false, r.Offset
	if under := e.byHandle[r.Handle]; under != none {
		r.next, under.Place().prev = under, s
	}
	e.byHandle[r.Handle] = s
	e.most = max(e.most, len(e.byHandle))
}

// list adds the segments of a handle to byStart, oldest first, except those that were added before.
func (e *Exposure[S]) list(latest S) {
	var none S
	if e.byStart == nil {
		e.byStart = map[start]S{}
	}
	if latest.Place().listed {
		return
	}
	s := latest
	for next := s.Place().next; next != none && !next.Place().listed; next = s.Place().next {
		s = next
	}
	for ; s != none; s = s.Place().prev {
		r := s.Place()
		e.byStart[start{r.Handle, r.Offset}] = s
		r.listed = true
		e.moves(s, r.reached)
	}
}

// unlist removes a segment from one of its offsets in byStart.
func (e *Exposure[S]) unlist(s S, offset uint64) {
	if at := (start{s.Place().Handle, offset}); e.byStart[at] == s {
		delete(e.byStart, at)
	}
}

// Reaches records the offset at which the next operation on a segment is likely to begin, because a
// segment that moves in parts usually moves in order.
func (e *Exposure[S]) Reaches(s S, offset uint64) {
	r := s.Place()
	if r.listed {
		if r.reached != r.Offset {
			e.unlist(s, r.reached)
		}
		e.moves(s, offset)
	}
	r.reached = offset
}

// moves adds a segment to byStart under the offset that it has reached.
func (e *Exposure[S]) moves(s S, offset uint64) {
	if r := s.Place(); offset-r.Offset < uint64(r.Length) {
		e.byStart[start{r.Handle, offset}] = s
	}
}

// Remove ends the exposure of a segment.
func (e *Exposure[S]) Remove(s S) {
	var none S
	r := s.Place()
	switch {
	case r.prev != none:
		r.prev.Place().next = r.next
	case e.byHandle[r.Handle] != s:
		return
	case r.next != none:
		e.byHandle[r.Handle] = r.next
	default:
		delete(e.byHandle, r.Handle)
	}
	if r.next != none {
		r.next.Place().prev = r.prev
	}
	r.prev, r.next = none, none
	if r.listed {
		e.unlist(s, r.Offset)
		e.unlist(s, r.reached)
		r.listed = false
	}
	if len(e.byHandle) == 0 && e.most > 1<<10 { // maps do not shrink
		*e = Exposure[S]{}
	}
}

// Join adds the memory that another side exposes.
func (e *Exposure[S]) Join(o *Exposure[S]) {
	if len(e.byHandle) == 0 {
		*e, *o = *o, Exposure[S]{}
		return
	}
	var none S
	for _, s := range o.byHandle {
		for s != none {
			next := s.Place().next
			e.Add(s)
			s = next
		}
	}
}

// Find returns a segment with the handle of the target. exact is true if the whole target is in it,
// and also if too many segments share the handle to search them all.
func (e *Exposure[S]) Find(m Target) (found S, exact bool) {
	var none S
	n := 0
	for s := e.byHandle[m.Handle]; s != none; s, n = s.Place().next, n+1 {
		r := s.Place()
		if r.Holds(m) {
			return s, true
		}
		if found == none || r.begins(m.Offset) {
			found = s // at least it begins in this segment
		}
		if n == LookAt {
			e.list(e.byHandle[m.Handle])
			return e.byStart[start{m.Handle, m.Offset}], true
		}
	}
	return found, false
}
