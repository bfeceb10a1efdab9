package memory

import (
	"cmp"
	"slices"
	"sort"

	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
)

// Kind is the list of a Call that contains a segment.
type Kind uint8

// The lists.
const (
	ReadChunk Kind = iota
	WriteChunk
	ReplyChunk
)

// Name returns the name that a record has for the list.
func (k Kind) Name() record.Chunk {
	return [...]record.Chunk{record.ReadList, record.WriteList, record.ReplyList}[k]
}

// end returns the offset in its chunk at which a segment ends.
func (s *Segment[T]) end() int64 { return s.at + int64(s.Length) }

// Carries returns the number of bytes of the Payload stream in a segment: its length if it is for
// Reads, and otherwise the length that the Reply returns.
func (s *Segment[T]) Carries() int64 {
	if s.Kind == ReadChunk {
		return int64(s.Length)
	}
	return int64(min(s.Returned.Or(0), s.Length))
}

// Persist notes that the handle is registered persistently.
func (s *Segment[T]) Persist() { s.Persistent = true }

// Invalidate notes that the Reply to another RPC invalidated the handle, and reports whether it is the first that did.
func (s *Segment[T]) Invalidate() bool {
	before := s.Invalidated
	s.Invalidated = true
	return !before
}

// Regions is the memory that a Call exposes: the segments of its chunk lists, in the order of the lists, with the
// bytes that moved in them.
type Regions[T any] struct {
	Segments   []Segment[T]
	kept       int64 // bytes of data that moved and are kept
	Writes     int   // number of Write chunks, with or without segments
	ReplyChunk bool  // the Call offers a Reply chunk, with or without segments
	Incomplete bool  // the chunk lists are not completely known
}

// List fills in the segments that the header of a Call lists. incomplete means that it may list more.
func (r *Regions[T]) List(owner *T, h *rpcrdma.Header, incomplete bool) {
	r.Segments = slices.Grow(r.Segments[:0], len(h.Reads)+len(h.Writes)+len(h.Reply))
	r.Writes, r.ReplyChunk, r.Incomplete = len(h.WriteEnds), h.HasReply, incomplete
	chunk, index := int32(-1), int32(0)
	position := uint32(0)
	for _, i := range h.ReadOrder {
		read := &h.Reads[i]
		if chunk < 0 || read.Position != position {
			chunk, index, position = chunk+1, 0, read.Position
		}
		r.add(owner, ReadChunk, chunk, index, read.Segment)
		r.Segments[len(r.Segments)-1].Position = position
		index++
	}
	for i := range h.WriteEnds {
		for j, s := range h.WriteChunk(i) {
			r.add(owner, WriteChunk, int32(i), int32(j), s)
		}
	}
	for j, s := range h.Reply {
		r.add(owner, ReplyChunk, 0, int32(j), s)
	}
}

// add appends a segment.
func (r *Regions[T]) add(owner *T, kind Kind, chunk, index int32, from rpcrdma.Segment) {
	n := len(r.Segments)
	r.Segments = r.Segments[:n+1] // List has grown it
	s := &r.Segments[n]
	*s = Segment[T]{} // a statement of its own, so that the compiler clears it in place
	s.Owner, s.Kind, s.Chunk, s.Index, s.Number = owner, kind, chunk, index, int32(n)
	s.Target = Target{Handle: from.Handle, Offset: from.Offset, Length: from.Length}
	if index > 0 {
		s.at = r.Segments[n-1].end()
	}
}

// Expose adds the segments to the memory that a side exposes.
func (r *Regions[T]) Expose(to *Exposure[T]) {
	to.Expect(len(r.Segments))
	for i := range r.Segments {
		s := &r.Segments[i]
		to.Add(s)
		s.Total = int64(s.Length)
		if earlier := s.Earlier(); earlier != nil && earlier.Owner == s.Owner {
			s.HandleSeen = true
			s.Total += earlier.Total
		}
	}
}

// Hide ends the exposure.
func (r *Regions[T]) Hide(from *Exposure[T]) {
	for i := range r.Segments {
		from.Remove(&r.Segments[i])
	}
}

// Chunk returns the segments of one chunk, which are adjacent and in the order of the lists.
func (r *Regions[T]) Chunk(kind Kind, chunk int) []Segment[T] {
	from := sort.Search(len(r.Segments), func(i int) bool {
		s := &r.Segments[i]
		return s.Kind > kind || s.Kind == kind && int(s.Chunk) >= chunk
	})
	to := from
	for to < len(r.Segments) && r.Segments[to].Kind == kind && int(r.Segments[to].Chunk) == chunk {
		to++
	}
	return r.Segments[from:to]
}

// last returns the last segment of the chunk that contains s.
func (r *Regions[T]) last(s *Segment[T]) *Segment[T] {
	rest := r.Segments[s.Number+1:]
	n := sort.Search(len(rest), func(i int) bool { return rest[i].Kind != s.Kind || rest[i].Chunk != s.Chunk })
	return &r.Segments[int(s.Number)+n]
}

// Offered returns the number of bytes that a chunk has in the Call.
func (r *Regions[T]) Offered(kind Kind, chunk int) (n int64) {
	segments := r.Chunk(kind, chunk)
	for i := range segments {
		n += int64(segments[i].Length)
	}
	return n
}

// Handle returns the first segment that has a handle, or nil.
func (r *Regions[T]) Handle(handle uint32) *Segment[T] {
	if i := slices.IndexFunc(r.Segments, func(s Segment[T]) bool { return s.Handle == handle }); i >= 0 {
		return &r.Segments[i]
	}
	return nil
}

// Exposes reports whether a handle is among those of the first 64 segments, and Reads whether a Read chunk has it there.
func (r *Regions[T]) Exposes(handle uint32) bool {
	return slices.ContainsFunc(r.Segments[:min(len(r.Segments), 64)], func(s Segment[T]) bool { return s.Handle == handle })
}

func (r *Regions[T]) Reads(handle uint32) bool {
	return slices.ContainsFunc(r.Segments[:min(len(r.Segments), 64)], func(s Segment[T]) bool { return s.Kind == ReadChunk && s.Handle == handle })
}

// ReadBytes returns the number of bytes of the Payload stream in Read chunks, including the XDR pads
// of reduced items.
func (r *Regions[T]) ReadBytes() (total int64) {
	size, chunk := int64(0), int32(-1)
	position := uint32(0)
	round := func() {
		if position != 0 {
			size = (size + 3) &^ 3
		}
		total += size
	}
	for i := range r.Segments {
		s := &r.Segments[i]
		if s.Kind != ReadChunk {
			break
		}
		if s.Chunk != chunk {
			round()
			size, chunk, position = 0, s.Chunk, s.Position
		}
		size += int64(s.Length)
	}
	round()
	return total
}

// Holes appends the holes that the Read chunks leave in the Payload stream of the Call, in the order
// of the stream.
func (r *Regions[T]) Holes(to []nfs.Hole) []nfs.Hole {
	for i := range r.Segments {
		s := &r.Segments[i]
		if s.Kind != ReadChunk || s.Position == 0 {
			continue
		}
		if n := len(to); n > 0 && to[n-1].Position == int64(s.Position) {
			to[n-1].Length += int64(s.Length)
		} else {
			to = append(to, nfs.Hole{Position: int64(s.Position), Length: int64(s.Length)})
		}
	}
	slices.SortStableFunc(to, func(p, q nfs.Hole) int { return cmp.Compare(p.Position, q.Position) })
	return to
}

// after returns the segment that follows s in memory: the next of its list, if it has the same
// Handle and begins where s ends. One RDMA operation may cover both. Empty segments do not connect
// their neighbors, because an operation must not visit many segments without moving bytes.
func (r *Regions[T]) after(s *Segment[T]) *Segment[T] {
	if int(s.Number)+1 == len(r.Segments) {
		return nil
	}
	next := &r.Segments[s.Number+1]
	if next.Length == 0 || next.Kind != s.Kind || next.Handle != s.Handle || next.Offset != s.Offset+uint64(s.Length) {
		return nil
	}
	return next
}

// before returns the segment that s follows in memory.
func (r *Regions[T]) before(s *Segment[T]) *Segment[T] {
	if s.Number == 0 {
		return nil
	}
	if before := &r.Segments[s.Number-1]; r.after(before) == s {
		return before
	}
	return nil
}

// Reaches reports whether the target is in a segment and the segments that follow it.
func (r *Regions[T]) Reaches(s *Segment[T], m Target) bool {
	if m.Offset < s.Offset || m.Offset-s.Offset > uint64(s.Length) {
		return false
	}
	left := int64(m.Length) - int64(uint64(s.Length)-(m.Offset-s.Offset))
	for s = r.after(s); left > 0 && s != nil; s = r.after(s) {
		left -= int64(s.Length)
	}
	return left <= 0
}

// Start returns the segment from which on an offset is searched, for an operation that was last in s: s, or a
// segment that it follows in memory, because a response may follow a response to a later segment.
func (r *Regions[T]) Start(s *Segment[T], offset uint64) *Segment[T] {
	for range LookAt {
		before := r.before(s)
		if offset >= s.Offset || before == nil {
			break
		}
		s = before
	}
	return s
}

// Find returns the segment that contains the byte at an offset, which is s or follows it in memory, and how many of n
// bytes are in it. At the end of the memory, Find returns its last segment, and 0.
func (r *Regions[T]) Find(s *Segment[T], offset uint64, n int) (in *Segment[T], fit int) {
	for offset >= s.Offset { // otherwise the memory continues after the end of the address space
		if at := offset - s.Offset; at < uint64(s.Length) {
			return s, int(min(uint64(n), uint64(s.Length)-at))
		}
		next := r.after(s)
		if next == nil {
			break
		}
		s = next
	}
	return s, 0
}

// Part returns where in its chunk a segment is, and the range of the chunk at the memory [from, to).
func (r *Regions[T]) Part(s *Segment[T], from, to uint64) (p record.Part) {
	p.Chunk, p.Index = s.Kind.Name(), int(s.Chunk)
	p.Length = r.last(s).end()
	// One operation may continue into the following segments. Its tag names the last of them.
	for n := 0; from < s.Offset && s.Index > 0 && n < LookAt; n++ {
		before := r.before(s)
		if before == nil {
			break
		}
		s = before
	}
	p.Segment = int(s.Index)
	if from >= s.Offset && to > from && to-s.Offset <= uint64(p.Length-s.at) {
		p.From, p.To = s.at+int64(from-s.Offset), s.at+int64(to-s.Offset)
	}
	return p
}

// Keep has the data kept, up to an offset, that moves in the segments that contain a message of their own, or in all.
func (r *Regions[T]) Keep(upTo int64, all bool) {
	for i := range r.Segments {
		if s := &r.Segments[i]; all || s.Kind == ReplyChunk || s.Kind == ReadChunk && s.Position == 0 {
			s.Keep(upTo)
		}
	}
}

// Move records n bytes that moved in one segment, and returns what that costs, and whether they are the first whose
// data is kept.
func (r *Regions[T]) Move(storage *Transfers, s *Segment[T], offset uint64, data []byte, n int) (cost Cost, first bool) {
	cost = s.Move(storage, offset, data, n)
	first = r.kept == 0 && cost.Bytes > 0
	r.kept += cost.Bytes
	return cost, first
}

// Unwrite removes the bytes [from, to) of memory that a refused Write would have written from the bytes that moved.
func (r *Regions[T]) Unwrite(handle uint32, from, to uint64) {
	for i := range r.Segments {
		if s := &r.Segments[i]; s.Handle == handle && s.Kind != ReadChunk {
			s.Unmove(from, to)
		}
	}
}

// Read returns the length of a Read chunk, and how many of its bytes were read, if that is known: it is not if there
// are more ranges than can be remembered.
func (r *Regions[T]) Read(chunk int) (length, moved int64, known bool) {
	segments := r.Chunk(ReadChunk, chunk)
	for i := range segments {
		s := &segments[i]
		length += int64(s.Length)
		moved += s.Transferred().Moved()
		if s.Transferred().Full() {
			return 0, 0, false
		}
	}
	return length, moved, true
}

// Written returns the offset in a Write chunk or the Reply chunk after the last byte that was written, if its segments
// were filled one after the other.
func (r *Regions[T]) Written(kind Kind, chunk int) (end int64) {
	segments := r.Chunk(kind, chunk)
	for i := range segments {
		s := &segments[i]
		if last, known := s.Transferred().End(); known {
			end = s.at + last
		}
	}
	return end
}

// Returns records the lengths that the header of a Reply returns.
func (r *Regions[T]) Returns(h *rpcrdma.Header) {
	for i := range r.Segments {
		s := &r.Segments[i]
		var from []rpcrdma.Segment
		switch s.Kind {
		case WriteChunk:
			if int(s.Chunk) < len(h.WriteEnds) {
				from = h.WriteChunk(int(s.Chunk))
			}
		case ReplyChunk:
			from = h.Reply
		}
		if int(s.Index) < len(from) {
			s.Returned = record.Some(from[s.Index].Length)
		}
	}
}

// Missing returns how many bytes of the Payload streams of the Call and the Reply should have moved in the segments,
// but are missing from the capture.
func (r *Regions[T]) Missing() (call, reply int64) {
	for i := range r.Segments {
		s := &r.Segments[i]
		m := s.Transferred()
		if s.Kind == ReadChunk {
			call += int64(s.Length) - m.Moved() + m.Truncated()
		} else {
			reply += max(s.Carries()-m.Moved()+m.Truncated(), 0)
		}
	}
	return call, reply
}

// Gather appends the data of a chunk up to its first hole.
func (r *Regions[T]) Gather(to []byte, kind Kind, chunk int) []byte {
	segments := r.Chunk(kind, chunk)
	for i := range segments {
		s := &segments[i]
		want := s.Carries()
		have := s.Transferred().Prefix(want)
		if to = append(to, have...); int64(len(have)) < want {
			break
		}
	}
	return to
}

// Drop frees the data that is kept, if there is any, and returns its size. No more is kept from then on.
func (r *Regions[T]) Drop() (bytes int64) {
	if r.kept == 0 {
		return 0
	}
	r.Keep(0, true)
	bytes, r.kept = r.kept, 0
	return bytes
}

// Release frees what is known about the bytes that moved.
func (r *Regions[T]) Release(storage *Transfers) {
	for i := range r.Segments {
		r.Segments[i].Release(storage)
	}
	r.kept = 0
}

// Emptied returns regions without segments that use the same storage.
func (r *Regions[T]) Emptied() Regions[T] { return Regions[T]{Segments: r.Segments[:0]} }

// Trim frees the storage that only a large Call needs.
func (r *Regions[T]) Trim() {
	if cap(r.Segments) > 16 {
		r.Segments = nil
	}
}
