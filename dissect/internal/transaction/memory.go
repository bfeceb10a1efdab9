package transaction

import (
	"slices"
	"sort"

	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
)

// Memory: what Calls expose, and what moves there.

// chunkKind says in which list of a Call a segment stands.
type chunkKind uint8

const (
	readChunk chunkKind = iota
	writeChunk
	replyChunk
)

var chunkNames = [...]record.Chunk{record.ReadList, record.WriteList, record.ReplyList}

// segment is a piece of memory that a Call exposes, for as long as it does. A Call
// may have very many, of which little moves: they are kept small.
type segment struct {
	txn          *txn
	prev, next   *segment       // exposed under the same handle, later and earlier
	transfer     *transferState // what moved, nil for nothing; see [segment.went]
	total        int64          // bytes that the Call exposes under the handle, up to this one
	reached      uint64         // where what moved last ended
	at           int64          // where in its chunk it begins, bytes
	offset       uint64
	handle       uint32
	length       uint32
	chunk, index int32
	number       int32  // of all that the transaction has
	position     uint32 // Read chunks
	returned     record.Opt[uint32]
	kind         chunkKind
	handleSeen   bool // the Call has the handle in a segment before this
	listed       bool // in byStart
	keep         bool // somebody wants what moves
}

// target is the memory that an operation names.
type target struct {
	handle uint32
	offset uint64
	length uint32
}

// holds says that all of the target lies in the segment.
func (s *segment) holds(m target) bool {
	return m.offset >= s.offset && m.offset-s.offset <= uint64(s.length) && uint64(m.length) <= uint64(s.length)-(m.offset-s.offset)
}

// exposure is the memory that one side exposes.
type exposure struct {
	byHandle map[uint32]*segment // the latest; the others hang on it
	byStart  map[start]*segment  // those under handles that very many share, once one was looked for: where they begin, and have got to
	most     int                 // as many were in byHandle at once
}

type start struct {
	handle uint32
	offset uint64
}

// lookAt bounds how many segments of one handle are looked at. A handle that more
// share is looked up by where an operation starts, which is where the segment
// does, or where the operation before it ended: what that costs does not depend on
// how many there are.
const lookAt = 16

// expect makes room for n segments more, where that is worth it.
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

// list enters the segments of a handle in byStart, the latest last, those that are
// not there yet: they stand before all that are.
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

// unlist takes it out from where it is listed.
func (e *exposure) unlist(s *segment, at uint64) {
	if at := (start{s.handle, at}); e.byStart[at] == s {
		delete(e.byStart, at)
	}
}

// reaches notes where the next operation on a segment is likely to begin: who
// moves it in parts does so in order.
func (e *exposure) reaches(s *segment, at uint64) {
	if s.listed {
		if s.reached != s.offset {
			e.unlist(s, s.reached)
		}
		e.moves(s, at)
	}
	s.reached = at
}

// moves enters a segment where it has got to.
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

// join takes over what another exposes.
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

// find finds exposed memory: exact says that all of the target lies in it, or
// that nobody can say: where not all that have the handle were looked at. One that
// is not exact has the right handle.
func (e *exposure) find(m target) (found *segment, exact bool) {
	n := 0
	for s := e.byHandle[m.handle]; s != nil; s, n = s.next, n+1 {
		if s.holds(m) {
			return s, true
		}
		if found == nil || m.offset >= s.offset && m.offset-s.offset < uint64(s.length) {
			found = s // at least it begins there
		}
		if n == lookAt {
			e.list(e.byHandle[m.handle])
			return e.byStart[start{m.handle, m.offset}], true
		}
	}
	return found, false
}

// expose notes the memory that a Call exposes.
func (cs *connState) expose(x *txn, h *rpcrdma.Header) {
	total := len(h.Reads) + len(h.Writes) + len(h.Reply)
	x.segments = slices.Grow(x.segments[:0], total)
	chunk, index := int32(-1), int32(0)
	for i, r := range h.Reads {
		if i == 0 || r.Position != h.Reads[i-1].Position {
			chunk, index = chunk+1, 0
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
	x.writes, x.hasReply = len(h.WriteEnds), h.HasReply
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

// addSegment appends a segment; x.segments has room for it.
func (x *txn) addSegment(kind chunkKind, chunk, index int32, from rpcrdma.Segment) *segment {
	n := len(x.segments)
	x.segments = x.segments[:n+1]
	s := &x.segments[n]
	*s = segment{} // in its place, and not made elsewhere and copied
	s.txn, s.kind, s.chunk, s.index, s.number = x, kind, chunk, index, int32(n)
	s.handle, s.length, s.offset = from.Handle, from.Length, from.Offset
	if index > 0 {
		s.at = x.segments[n-1].end()
	}
	return s
}

// chunk are the segments of one chunk: they stand side by side, in the order of the
// lists.
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

// last is the last segment of a segment's chunk.
func (x *txn) last(s *segment) *segment {
	behind := x.segments[s.number+1:]
	n := sort.Search(len(behind), func(i int) bool { return behind[i].kind != s.kind || behind[i].chunk != s.chunk })
	return &x.segments[int(s.number)+n]
}

// end is where in its chunk a segment ends.
func (s *segment) end() int64 { return s.at + int64(s.length) }

// carries is how much of the Payload stream a segment has: all of it is to be read,
// and of what was written to, what the Reply says.
func (s *segment) carries() int64 {
	if s.kind == readChunk {
		return int64(s.length)
	}
	return int64(min(s.returned.Or(0), s.length))
}

// unexpose forgets the memory that a Call exposed.
func unexpose(cs *connState, x *txn) {
	for i := range x.segments {
		cs.exposed[x.side].remove(&x.segments[i])
	}
}

// Began finds the memory that an RDMA operation names.
func (cs *connState) Began(o *rdma.Operation) {
	if !cs.isRPC || o.Length == 0 || o.Kind == rdma.Atomic {
		return
	}
	owner := o.Side.Other()
	m := target{o.Handle, o.Offset, uint32(o.Length)}
	s, exact := cs.exposed[owner].find(m)
	if s = checkTarget(cs, o, m, s, exact); s == nil {
		return
	}
	x := s.txn
	o.Tag = x.tag(int(s.number))
	noteActivity(cs, x, o.Side, o.First)
	what := record.EventWriteFirst
	if o.Kind == rdma.Read {
		what = record.EventRead
	}
	e := x.event(o.First, what, x.role(o.Side))
	e.Handle, e.Offset = record.Some(record.Hex32(o.Handle)), record.Some(record.Hex64(o.Offset))
	e.Bytes = record.SomeIf(o.Length, o.Announced)
}

// after is the segment that follows one in memory: the next of its list, when it
// has the same handle and begins where this one ends. One RDMA operation may
// cover both. Empty segments are no bridge: what is crossed has to have been paid
// for with bytes.
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

// before is the segment that this one follows in memory.
func (s *segment) before() *segment {
	if s.number == 0 {
		return nil
	}
	if before := &s.txn.segments[s.number-1]; before.after() == s {
		return before
	}
	return nil
}

// reaches says whether the target lies in a segment and those that follow it.
func (s *segment) reaches(m target) bool {
	if m.offset < s.offset || m.offset-s.offset > uint64(s.length) {
		return false
	}
	left := int64(m.length) - int64(uint64(s.length)-(m.offset-s.offset))
	for s = s.after(); left > 0 && s != nil; s = s.after() {
		left -= int64(s.length)
	}
	return left <= 0
}

// Moved notes that n bytes, of which data was captured, went to or came from
// exposed memory.
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
		noteSend(cs, o.Side, x.rec.ID, o.Last)
	}
	checkLateRead(cs, o, x)
	s := &x.segments[part]
	for range lookAt { // a response may come after one to a later segment
		before := s.before()
		if offset >= s.offset || before == nil {
			break
		}
		s = before
	}
	for n > 0 {
		at := offset - s.offset
		if offset < s.offset { // beyond the end of all memory
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
		room := int(min(uint64(n), uint64(s.length)-at))
		noteTransfer(cs, s, offset, data[:min(len(data), room)], room)
		offset, n, data = offset+uint64(room), n-room, data[min(len(data), room):]
	}
}
