package transaction

import (
	"slices"
	"sort"

	"github.com/rdmadump/rdmadump/dissect/internal/pending"
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
	txn          *txn
	prev, next   *segment       // segments exposed under the same handle, later and earlier
	transfer     *transferState // nil if nothing moved; see [segment.transferred]
	total        int64          // bytes that the Call exposes under the handle, up to this segment
	reached      uint64         // offset after the last byte that moved
	at           int64          // offset of its first byte in its chunk
	offset       uint64
	handle       uint32
	length       uint32
	chunk, index int32
	number       int32  // index in the segments of the transaction
	position     uint32 // of a Read chunk
	returned     record.Opt[uint32]
	kind         chunkKind
	handleSeen   bool // an earlier segment of the Call has the same handle
	listed       bool // it is in byStart
	keep         bool // the data that moves has to be kept
	persistent   bool // an earlier Call exposed the handle, and nobody has invalidated it since
	invalidated  bool // the Reply to another RPC invalidated the handle
}

// target is the range of memory that an operation names.
type target = pending.Memory

// holds reports whether the whole target is in the segment.
func (s *segment) holds(m target) bool {
	return m.Offset >= s.offset && m.Offset-s.offset <= uint64(s.length) && uint64(m.Length) <= uint64(s.length)-(m.Offset-s.offset)
}

// exposure is the memory that a side exposes.
type exposure struct {
	byHandle map[uint32]*segment // the latest segment of each handle; the others are linked to it
	byStart  map[start]*segment  // segments of handles that very many segments share, after the first look-up of such a handle: by their first offset, and by the offset that they have reached
	most     int                 // maximum size that byHandle had
}

type start struct {
	handle uint32
	offset uint64
}

// lookAt is the maximum number of segments of one handle that are searched. If more segments share
// a handle, they are found by the offset at which an operation starts, which is the start of the
// segment or the end of the operation before it. The cost of that does not depend on their number.
const lookAt = 16

// expect allocates space for n more segments, if there are enough of them.
func (e *exposure) expect(n int) {
	if n > 8 && len(e.byHandle) == 0 && n > e.most {
		e.byHandle = make(map[uint32]*segment, n)
	}
}

// add exposes a segment.
func (e *exposure) add(s *segment) {
	if e.byHandle == nil {
		e.byHandle = map[uint32]*segment{}
	}
	s.prev, s.next, s.listed, s.reached = nil, nil, false, s.offset
	if under := e.byHandle[s.handle]; under != nil {
		s.next, under.prev = under, s
	}
	e.byHandle[s.handle] = s
	e.most = max(e.most, len(e.byHandle))
}

// list adds the segments of a handle to byStart, oldest first, except those that were added before.
func (e *exposure) list(latest *segment) {
	if e.byStart == nil {
		e.byStart = map[start]*segment{}
	}
	if latest.listed {
		return
	}
	s := latest
	for s.next != nil && !s.next.listed {
		s = s.next
	}
	for ; s != nil; s = s.prev {
		e.byStart[start{s.handle, s.offset}] = s
		s.listed = true
		e.moves(s, s.reached)
	}
}

// unlist removes a segment from one of its offsets in byStart.
func (e *exposure) unlist(s *segment, at uint64) {
	if at := (start{s.handle, at}); e.byStart[at] == s {
		delete(e.byStart, at)
	}
}

// reaches records the offset at which the next operation on a segment is likely to begin, because a
// segment that moves in parts usually moves in order.
func (e *exposure) reaches(s *segment, at uint64) {
	if s.listed {
		if s.reached != s.offset {
			e.unlist(s, s.reached)
		}
		e.moves(s, at)
	}
	s.reached = at
}

// moves adds a segment to byStart under the offset that it has reached.
func (e *exposure) moves(s *segment, at uint64) {
	if at-s.offset < uint64(s.length) {
		e.byStart[start{s.handle, at}] = s
	}
}

// remove ends the exposure of a segment.
func (e *exposure) remove(s *segment) {
	switch {
	case s.prev != nil:
		s.prev.next = s.next
	case e.byHandle[s.handle] != s:
		return
	case s.next != nil:
		e.byHandle[s.handle] = s.next
	default:
		delete(e.byHandle, s.handle)
	}
	if s.next != nil {
		s.next.prev = s.prev
	}
	s.prev, s.next = nil, nil
	if s.listed {
		e.unlist(s, s.offset)
		e.unlist(s, s.reached)
		s.listed = false
	}
	if len(e.byHandle) == 0 && e.most > 1<<10 { // maps do not shrink
		*e = exposure{}
	}
}

// join adds the memory that another side exposes.
func (e *exposure) join(o *exposure) {
	if len(e.byHandle) == 0 {
		*e, *o = *o, exposure{}
		return
	}
	for _, s := range o.byHandle {
		for s != nil {
			next := s.next
			e.add(s)
			s = next
		}
	}
}

// find returns a segment with the handle of the target. exact is true if the whole target is in it,
// and also if too many segments share the handle to search them all.
func (e *exposure) find(m target) (found *segment, exact bool) {
	n := 0
	for s := e.byHandle[m.Handle]; s != nil; s, n = s.next, n+1 {
		if s.holds(m) {
			return s, true
		}
		if found == nil || m.Offset >= s.offset && m.Offset-s.offset < uint64(s.length) {
			found = s // at least it begins in this segment
		}
		if n == lookAt {
			e.list(e.byHandle[m.Handle])
			return e.byStart[start{m.Handle, m.Offset}], true
		}
	}
	return found, false
}

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
	cs.exposed[x.side].expect(total)
	keep := x.isRebuilt()
	for i := range x.segments {
		s := &x.segments[i]
		s.keep = keep || s.kind == replyChunk || s.kind == readChunk && s.position == 0
		cs.exposed[x.side].add(s)
		s.handleSeen = s.next != nil && s.next.txn == x
	}
}

// addSegment appends a segment. The capacity of x.segments suffices for it.
func (x *txn) addSegment(kind chunkKind, chunk, index int32, from rpcrdma.Segment) *segment {
	n := len(x.segments)
	x.segments = x.segments[:n+1]
	s := &x.segments[n]
	*s = segment{} // a statement of its own, so that the compiler clears it in place
	s.txn, s.kind, s.chunk, s.index, s.number = x, kind, chunk, index, int32(n)
	s.handle, s.length, s.offset = from.Handle, from.Length, from.Offset
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
func (s *segment) end() int64 { return s.at + int64(s.length) }

// carries returns the number of bytes of the Payload stream in a segment: its length if it is for
// Reads, and otherwise the length that the Reply returns.
func (s *segment) carries() int64 {
	if s.kind == readChunk {
		return int64(s.length)
	}
	return int64(min(s.returned.Or(0), s.length))
}

// unexpose ends the exposure of the memory of a Call.
func unexpose(cs *connState, x *txn) {
	for i := range x.segments {
		cs.exposed[x.side].remove(&x.segments[i])
	}
}

// began finds the memory that an RDMA operation names.
func (cs *connState) began(o *rdma.Operation) {
	if !cs.isRPC || o.Length == 0 || o.Kind == rdma.Atomic {
		return
	}
	owner := o.Side.Other()
	m := target{Handle: o.Handle, Offset: o.Offset, Length: uint32(o.Length)}
	s, exact := cs.exposed[owner].find(m)
	if s = checkTarget(cs, o, m, s, exact); s == nil {
		return
	}
	x := s.txn
	o.Tag = x.tag(int(s.number))
	noteActivity(cs, x, o.Side, o.First)
	notePath(x, o)
	what := record.EventWriteFirst
	if o.Kind == rdma.Read {
		what = record.EventRead
		x.checks.openReads++
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
	if next.length == 0 || next.kind != s.kind || next.handle != s.handle || next.offset != s.offset+uint64(s.length) {
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
	if m.Offset < s.offset || m.Offset-s.offset > uint64(s.length) {
		return false
	}
	left := int64(m.Length) - int64(uint64(s.length)-(m.Offset-s.offset))
	for s = s.after(); left > 0 && s != nil; s = s.after() {
		left -= int64(s.length)
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
	noteActivity(cs, x, from, o.Last)
	if o.Kind == rdma.Read { // its requester can hardly do anything else meanwhile
		cs.wireActivity().noteSend(o.Side, x, o.Last)
	}
	checkLateRead(cs, o, x)
	s := &x.segments[part]
	for range lookAt { // a response may follow a response to a later segment
		before := s.before()
		if offset >= s.offset || before == nil {
			break
		}
		s = before
	}
	for n > 0 {
		at := offset - s.offset
		if offset < s.offset { // after the end of the address space
			checkExceeds(cs, x, s, o)
			return
		}
		if at >= uint64(s.length) {
			next := s.after()
			if next == nil {
				checkExceeds(cs, x, s, o)
				return
			}
			s = next
			o.Tag = x.tag(int(s.number))
			continue
		}
		fit := int(min(uint64(n), uint64(s.length)-at))
		noteTransfer(cs, s, offset, data[:min(len(data), fit)], fit)
		offset, n, data = offset+uint64(fit), n-fit, data[min(len(data), fit):]
	}
}
