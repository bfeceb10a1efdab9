package transaction

import (
	"slices"
	"sort"

	"github.com/rdmadump/rdmadump/dissect/internal/memory"
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
)

// Memory: the segments that Calls expose, and the bytes that move into and out of them.

// chunkKind is the list of a Call that contains a segment.
type chunkKind uint8

const (
	readChunk chunkKind = iota
	writeChunk
	replyChunk
)

var chunkNames = [...]record.Chunk{record.ReadList, record.WriteList, record.ReplyList}

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

// target is the range of memory that an operation names.
type target = memory.Target

// exposure is the memory that a side exposes.
type exposure = memory.Exposure[*segment]

// lookAt is the maximum number of objects of one kind that are searched.
const lookAt = memory.LookAt

// expose records the memory that a Call exposes.
func (cs *connState) expose(x *txn, h *rpcrdma.Header) {
	total := len(h.Reads) + len(h.Writes) + len(h.Reply)
	x.segments = slices.Grow(x.segments[:0], total)
	chunk, index := int32(-1), int32(0)
	position := uint32(0)
	for _, i := range h.ReadOrder {
		r := &h.Reads[i]
		if chunk < 0 || r.Position != position {
			chunk, index, position = chunk+1, 0, r.Position
		}
		x.addSegment(readChunk, chunk, index, r.Segment).position = r.Position
		index++
	}
	for i := range h.WriteEnds {
		for j, s := range h.WriteChunk(i) {
			x.addSegment(writeChunk, int32(i), int32(j), s)
		}
	}
	for j, s := range h.Reply {
		x.addSegment(replyChunk, 0, int32(j), s)
	}
	x.writes, x.offersReplyChunk = len(h.WriteEnds), h.HasReply
	if total > 0 {
		x.charge(segmentCost * int64(total))
	}
	noteExposed(cs, x)
	cs.exposed[x.side].Expect(total)
	keep := x.isRebuilt()
	for i := range x.segments {
		s := &x.segments[i]
		if keep || s.kind == replyChunk || s.kind == readChunk && s.position == 0 {
			s.Keep(mostKept(x))
		}
		cs.exposed[x.side].Add(s)
		earlier := s.Earlier()
		s.handleSeen = earlier != nil && earlier.txn == x
	}
}

// addSegment appends a segment. The capacity of x.segments suffices for it.
func (x *txn) addSegment(kind chunkKind, chunk, index int32, from rpcrdma.Segment) *segment {
	n := len(x.segments)
	x.segments = x.segments[:n+1]
	s := &x.segments[n]
	*s = segment{} // a statement of its own, so that the compiler clears it in place
	s.txn, s.kind, s.chunk, s.index, s.number = x, kind, chunk, index, int32(n)
	s.Target = target{Handle: from.Handle, Offset: from.Offset, Length: from.Length}
	if index > 0 {
		s.at = x.segments[n-1].end()
	}
	return s
}

// chunk returns the segments of one chunk, which are adjacent and in the order of the lists.
func (x *txn) chunk(kind chunkKind, chunk int) []segment {
	from := sort.Search(len(x.segments), func(i int) bool {
		s := &x.segments[i]
		return s.kind > kind || s.kind == kind && int(s.chunk) >= chunk
	})
	to := from
	for to < len(x.segments) && x.segments[to].kind == kind && int(x.segments[to].chunk) == chunk {
		to++
	}
	return x.segments[from:to]
}

// last returns the last segment of the chunk that contains s.
func (x *txn) last(s *segment) *segment {
	rest := x.segments[s.number+1:]
	n := sort.Search(len(rest), func(i int) bool { return rest[i].kind != s.kind || rest[i].chunk != s.chunk })
	return &x.segments[int(s.number)+n]
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

// unexpose ends the exposure of the memory of a Call.
func unexpose(cs *connState, x *txn) {
	for i := range x.segments {
		cs.exposed[x.side].Remove(&x.segments[i])
	}
}

// began finds the memory that an RDMA operation names.
func (cs *connState) began(o *rdma.Operation) {
	if !cs.upper.IsRPC() || o.Length == 0 {
		return
	}
	owner := o.Side.Other()
	m := target{Handle: o.Handle, Offset: o.Offset, Length: uint32(o.Length)}
	s, exact := cs.exposed[owner].Find(m)
	if s = checkTarget(cs, o, m, s, exact); s == nil || o.Kind == rdma.Atomic {
		return
	}
	x := s.txn
	o.Tag = x.tag(int(s.number))
	noteActivity(cs, x, o.Side, o.First, false)
	x.noteServed(o)
	notePath(x, o)
	what := record.EventWriteFirst
	if o.Kind == rdma.Read {
		what = record.EventRead
		x.checks.memory.readBegins()
	}
	e := x.event(o.First, what, x.role(o.Side))
	e.Handle, e.Offset = record.Some(record.Hex32(o.Handle)), record.Some(record.Hex64(o.Offset))
	e.Bytes = record.SomeIf(o.Length, o.Announced)
}

// after returns the segment that follows s in memory: the next of its list, if it has the same
// handle and begins where s ends. One RDMA operation may cover both. Empty segments do not connect
// their neighbors, because an operation must not visit many segments without moving bytes.
func (s *segment) after() *segment {
	all := s.txn.segments
	if int(s.number)+1 == len(all) {
		return nil
	}
	next := &all[s.number+1]
	if next.Length == 0 || next.kind != s.kind || next.Handle != s.Handle || next.Offset != s.Offset+uint64(s.Length) {
		return nil
	}
	return next
}

// before returns the segment that s follows in memory.
func (s *segment) before() *segment {
	if s.number == 0 {
		return nil
	}
	if before := &s.txn.segments[s.number-1]; before.after() == s {
		return before
	}
	return nil
}

// reaches reports whether the target is in a segment and the segments that follow it.
func (s *segment) reaches(m target) bool {
	if m.Offset < s.Offset || m.Offset-s.Offset > uint64(s.Length) {
		return false
	}
	left := int64(m.Length) - int64(uint64(s.Length)-(m.Offset-s.Offset))
	for s = s.after(); left > 0 && s != nil; s = s.after() {
		left -= int64(s.Length)
	}
	return left <= 0
}

// Moved records that n bytes, of which data was captured, moved into or out of exposed memory.
func (cs *connState) Moved(o *rdma.Operation, offset uint64, data []byte, n int) {
	x, part := cs.table.tagged(o.Tag)
	if x == nil || part >= len(x.segments) {
		return
	}
	from := o.Side
	if o.Kind == rdma.Read {
		from = from.Other()
	}
	first := o.Bytes == int64(n)
	noteActivity(cs, x, from, o.Last, !first)
	if o.Kind == rdma.Read && first {
		x.turn.Answered(o.First.Time, o.Last.Time)
	}
	checkLateRead(cs, o, x)
	s := &x.segments[part]
	for range lookAt { // a response may follow a response to a later segment
		before := s.before()
		if offset >= s.Offset || before == nil {
			break
		}
		s = before
	}
	for n > 0 {
		at := offset - s.Offset
		if offset < s.Offset { // after the end of the address space
			checkExceeds(cs, x, s, o)
			return
		}
		if at >= uint64(s.Length) {
			next := s.after()
			if next == nil {
				checkExceeds(cs, x, s, o)
				return
			}
			s = next
			o.Tag = x.tag(int(s.number))
			continue
		}
		fit := int(min(uint64(n), uint64(s.Length)-at))
		noteTransfer(cs, s, offset, data[:min(len(data), fit)], fit)
		offset, n, data = offset+uint64(fit), n-fit, data[min(len(data), fit):]
	}
}
