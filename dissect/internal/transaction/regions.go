package transaction

import (
	"cmp"
	"slices"
	"sort"

	"github.com/rdmadump/rdmadump/dissect/internal/memory"
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
)

// chunkKind is the list of a Call that contains a segment.
type chunkKind uint8

const (
	readChunk chunkKind = iota
	writeChunk
	replyChunk
)

var chunkNames = [...]record.Chunk{record.ReadList, record.WriteList, record.ReplyList}

// target is the range of memory that an operation names.
type target = memory.Target

// exposure is the memory that a side exposes.
type exposure = memory.Exposure[*segment]

// lookAt is the maximum number of objects of one kind that are searched.
const lookAt = memory.LookAt

// segment is a range of memory that a Call exposes until its Reply. It is small, because a Call may
// have very many segments of which few are used.
type segment struct {
	memory.Region[*segment]
	txn          *txn
	total        int64 // bytes that the Call exposes under the handle, up to this segment
	at           int64 // offset of its first byte in its chunk
	chunk, index int32
	number       int32  // index in the segments of the transaction
	position     uint32 // of a Read chunk
	returned     record.Opt[uint32]
	kind         chunkKind
	handleSeen   bool // an earlier segment of the Call has the same handle
	persistent   bool // an earlier Call exposed the handle, and nobody has invalidated it since
	invalidated  bool // the Reply to another RPC invalidated the handle
}

// end returns the offset in its chunk at which a segment ends.
func (s *segment) end() int64 { return s.at + int64(s.Length) }

// carries returns the number of bytes of the Payload stream in a segment: its length if it is for
// Reads, and otherwise the length that the Reply returns.
func (s *segment) carries() int64 {
	if s.kind == readChunk {
		return int64(s.Length)
	}
	return int64(min(s.returned.Or(0), s.Length))
}

// persist notes that the handle is registered persistently.
func (s *segment) persist() { s.persistent = true }

// invalidate notes that the Reply to another RPC invalidated the handle, and reports whether it is the first that did.
func (s *segment) invalidate() bool {
	before := s.invalidated
	s.invalidated = true
	return !before
}

// regions is the memory that a Call exposes: the segments of its chunk lists, in the order of the lists, with the
// bytes that moved in them.
type regions struct {
	segments   []segment
	kept       int64 // bytes of data that moved and are kept
	writes     int   // number of Write chunks, with or without segments
	replyChunk bool  // the Call offers a Reply chunk, with or without segments
	incomplete bool  // the chunk lists are not completely known
}

// list fills in the segments that the header of a Call lists. incomplete means that it may list more.
func (r *regions) list(owner *txn, h *rpcrdma.Header, incomplete bool) {
	r.segments = slices.Grow(r.segments[:0], len(h.Reads)+len(h.Writes)+len(h.Reply))
	r.writes, r.replyChunk, r.incomplete = len(h.WriteEnds), h.HasReply, incomplete
	chunk, index := int32(-1), int32(0)
	position := uint32(0)
	for _, i := range h.ReadOrder {
		read := &h.Reads[i]
		if chunk < 0 || read.Position != position {
			chunk, index, position = chunk+1, 0, read.Position
		}
		r.add(owner, readChunk, chunk, index, read.Segment)
		r.segments[len(r.segments)-1].position = position
		index++
	}
	for i := range h.WriteEnds {
		for j, s := range h.WriteChunk(i) {
			r.add(owner, writeChunk, int32(i), int32(j), s)
		}
	}
	for j, s := range h.Reply {
		r.add(owner, replyChunk, 0, int32(j), s)
	}
}

// add appends a segment.
func (r *regions) add(owner *txn, kind chunkKind, chunk, index int32, from rpcrdma.Segment) {
	n := len(r.segments)
	r.segments = r.segments[:n+1] // list has grown it
	s := &r.segments[n]
	*s = segment{} // a statement of its own, so that the compiler clears it in place
	s.txn, s.kind, s.chunk, s.index, s.number = owner, kind, chunk, index, int32(n)
	s.Target = target{Handle: from.Handle, Offset: from.Offset, Length: from.Length}
	if index > 0 {
		s.at = r.segments[n-1].end()
	}
}

// expose adds the segments to the memory that a side exposes.
func (r *regions) expose(to *exposure) {
	to.Expect(len(r.segments))
	for i := range r.segments {
		s := &r.segments[i]
		to.Add(s)
		s.total = int64(s.Length)
		if earlier := s.Earlier(); earlier != nil && earlier.txn == s.txn {
			s.handleSeen = true
			s.total += earlier.total
		}
	}
}

// hide ends the exposure.
func (r *regions) hide(from *exposure) {
	for i := range r.segments {
		from.Remove(&r.segments[i])
	}
}

// chunk returns the segments of one chunk, which are adjacent and in the order of the lists.
func (r *regions) chunk(kind chunkKind, chunk int) []segment {
	from := sort.Search(len(r.segments), func(i int) bool {
		s := &r.segments[i]
		return s.kind > kind || s.kind == kind && int(s.chunk) >= chunk
	})
	to := from
	for to < len(r.segments) && r.segments[to].kind == kind && int(r.segments[to].chunk) == chunk {
		to++
	}
	return r.segments[from:to]
}

// last returns the last segment of the chunk that contains s.
func (r *regions) last(s *segment) *segment {
	rest := r.segments[s.number+1:]
	n := sort.Search(len(rest), func(i int) bool { return rest[i].kind != s.kind || rest[i].chunk != s.chunk })
	return &r.segments[int(s.number)+n]
}

// offered returns the number of bytes that a chunk has in the Call.
func (r *regions) offered(kind chunkKind, chunk int) (n int64) {
	segments := r.chunk(kind, chunk)
	for i := range segments {
		n += int64(segments[i].Length)
	}
	return n
}

// handle returns the first segment that has a handle, or nil.
func (r *regions) handle(handle uint32) *segment {
	if i := slices.IndexFunc(r.segments, func(s segment) bool { return s.Handle == handle }); i >= 0 {
		return &r.segments[i]
	}
	return nil
}

// exposes reports whether a handle is among those of the first 64 segments, and reads whether a Read chunk has it there.
func (r *regions) exposes(handle uint32) bool {
	return slices.ContainsFunc(r.segments[:min(len(r.segments), 64)], func(s segment) bool { return s.Handle == handle })
}

func (r *regions) reads(handle uint32) bool {
	return slices.ContainsFunc(r.segments[:min(len(r.segments), 64)], func(s segment) bool { return s.kind == readChunk && s.Handle == handle })
}

// readBytes returns the number of bytes of the Payload stream in Read chunks, including the XDR pads
// of reduced items.
func (r *regions) readBytes() (total int64) {
	size, chunk := int64(0), int32(-1)
	position := uint32(0)
	round := func() {
		if position != 0 {
			size = (size + 3) &^ 3
		}
		total += size
	}
	for i := range r.segments {
		s := &r.segments[i]
		if s.kind != readChunk {
			break
		}
		if s.chunk != chunk {
			round()
			size, chunk, position = 0, s.chunk, s.position
		}
		size += int64(s.Length)
	}
	round()
	return total
}

// holes appends the holes that the Read chunks leave in the Payload stream of the Call, in the order
// of the stream.
func (r *regions) holes(to []nfs.Hole) []nfs.Hole {
	for i := range r.segments {
		s := &r.segments[i]
		if s.kind != readChunk || s.position == 0 {
			continue
		}
		if n := len(to); n > 0 && to[n-1].Position == int64(s.position) {
			to[n-1].Length += int64(s.Length)
		} else {
			to = append(to, nfs.Hole{Position: int64(s.position), Length: int64(s.Length)})
		}
	}
	slices.SortStableFunc(to, func(p, q nfs.Hole) int { return cmp.Compare(p.Position, q.Position) })
	return to
}

// after returns the segment that follows s in memory: the next of its list, if it has the same
// handle and begins where s ends. One RDMA operation may cover both. Empty segments do not connect
// their neighbors, because an operation must not visit many segments without moving bytes.
func (r *regions) after(s *segment) *segment {
	if int(s.number)+1 == len(r.segments) {
		return nil
	}
	next := &r.segments[s.number+1]
	if next.Length == 0 || next.kind != s.kind || next.Handle != s.Handle || next.Offset != s.Offset+uint64(s.Length) {
		return nil
	}
	return next
}

// before returns the segment that s follows in memory.
func (r *regions) before(s *segment) *segment {
	if s.number == 0 {
		return nil
	}
	if before := &r.segments[s.number-1]; r.after(before) == s {
		return before
	}
	return nil
}

// reaches reports whether the target is in a segment and the segments that follow it.
func (r *regions) reaches(s *segment, m target) bool {
	if m.Offset < s.Offset || m.Offset-s.Offset > uint64(s.Length) {
		return false
	}
	left := int64(m.Length) - int64(uint64(s.Length)-(m.Offset-s.Offset))
	for s = r.after(s); left > 0 && s != nil; s = r.after(s) {
		left -= int64(s.Length)
	}
	return left <= 0
}

// start returns the segment from which on an offset is searched, for an operation that was last in s: s, or a
// segment that it follows in memory, because a response may follow a response to a later segment.
func (r *regions) start(s *segment, offset uint64) *segment {
	for range lookAt {
		before := r.before(s)
		if offset >= s.Offset || before == nil {
			break
		}
		s = before
	}
	return s
}

// find returns the segment that contains the byte at an offset, which is s or follows it in memory, and how many of n
// bytes are in it. At the end of the memory, find returns its last segment, and 0.
func (r *regions) find(s *segment, offset uint64, n int) (in *segment, fit int) {
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

// part returns where in its chunk a segment is, and the range of the chunk at the memory [from, to).
func (r *regions) part(s *segment, from, to uint64) (p record.Part) {
	p.Chunk, p.Index = chunkNames[s.kind], int(s.chunk)
	p.Length = r.last(s).end()
	// One operation may continue into the following segments. Its tag names the last of them.
	for n := 0; from < s.Offset && s.index > 0 && n < lookAt; n++ {
		before := r.before(s)
		if before == nil {
			break
		}
		s = before
	}
	p.Segment = int(s.index)
	if from >= s.Offset && to > from && to-s.Offset <= uint64(p.Length-s.at) {
		p.From, p.To = s.at+int64(from-s.Offset), s.at+int64(to-s.Offset)
	}
	return p
}

// keep has the data kept, up to an offset, that moves in the segments that contain a message of their own, or in all.
func (r *regions) keep(upTo int64, all bool) {
	for i := range r.segments {
		if s := &r.segments[i]; all || s.kind == replyChunk || s.kind == readChunk && s.position == 0 {
			s.Keep(upTo)
		}
	}
}

// move records n bytes that moved in one segment, and returns what that costs, and whether they are the first whose
// data is kept.
func (r *regions) move(storage *memory.Transfers, s *segment, offset uint64, data []byte, n int) (cost memory.Cost, first bool) {
	cost = s.Move(storage, offset, data, n)
	first = r.kept == 0 && cost.Bytes > 0
	r.kept += cost.Bytes
	return cost, first
}

// unwrite removes the bytes of a refused Write from the bytes that moved.
func (r *regions) unwrite(refused *rdma.Refusal) {
	o, taken := refused.Op, refused.Taken
	if refused.Later {
		taken = 0
	}
	for i := range r.segments {
		if s := &r.segments[i]; s.Handle == o.Handle && s.kind != readChunk {
			s.Unmove(o.Offset+uint64(taken), o.Offset+uint64(o.Length))
		}
	}
}

// read returns the length of a Read chunk, and how many of its bytes were read, if that is known: it is not if there
// are more ranges than can be remembered.
func (r *regions) read(chunk int) (length, moved int64, known bool) {
	segments := r.chunk(readChunk, chunk)
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

// written returns the offset in a Write chunk after the last byte that was written, if its segments
// were filled one after the other.
func (r *regions) written(chunk int) (end int64) {
	segments := r.chunk(writeChunk, chunk)
	for i := range segments {
		s := &segments[i]
		if last, any := s.Transferred().End(); any {
			end = s.at + last
		}
	}
	return end
}

// returns records the lengths that the header of a Reply returns.
func (r *regions) returns(h *rpcrdma.Header) {
	for i := range r.segments {
		s := &r.segments[i]
		var from []rpcrdma.Segment
		switch s.kind {
		case writeChunk:
			if int(s.chunk) < len(h.WriteEnds) {
				from = h.WriteChunk(int(s.chunk))
			}
		case replyChunk:
			from = h.Reply
		}
		if int(s.index) < len(from) {
			s.returned = record.Some(from[s.index].Length)
		}
	}
}

// missing returns how many bytes of the Payload streams of the Call and the Reply should have moved in the segments,
// but are missing from the capture.
func (r *regions) missing() (call, reply int64) {
	for i := range r.segments {
		s := &r.segments[i]
		m := s.Transferred()
		if s.kind == readChunk {
			call += int64(s.Length) - m.Moved() + m.Truncated()
		} else {
			reply += max(s.carries()-m.Moved()+m.Truncated(), 0)
		}
	}
	return call, reply
}

// gather appends the data of a chunk up to its first hole.
func (r *regions) gather(to []byte, kind chunkKind, chunk int) []byte {
	segments := r.chunk(kind, chunk)
	for i := range segments {
		s := &segments[i]
		want := s.carries()
		have := s.Transferred().Prefix(want)
		if to = append(to, have...); int64(len(have)) < want {
			break
		}
	}
	return to
}

// drop frees the data that is kept, and returns its size. No more is kept from then on.
func (r *regions) drop() (bytes int64) {
	r.keep(0, true)
	bytes, r.kept = r.kept, 0
	return bytes
}

// release frees what is known about the bytes that moved.
func (r *regions) release(storage *memory.Transfers) {
	for i := range r.segments {
		r.segments[i].Release(storage)
	}
	r.kept = 0
}

// emptied returns regions without segments that use the same storage.
func (r *regions) emptied() regions { return regions{segments: r.segments[:0]} }

// trim frees the storage that only a large Call needs.
func (r *regions) trim() {
	if cap(r.segments) > 16 {
		r.segments = nil
	}
}
