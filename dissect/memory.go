package dissect

import (
	"slices"

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

var chunkNames = [...]string{"read", "write", "reply"}

// segment is a piece of memory that a Call exposes, for as long as it does.
type segment struct {
	txn          *txn
	next         *segment // exposed under the same handle, earlier
	kind         chunkKind
	chunk, index int
	handle       uint32
	length       uint32
	offset       uint64
	position     uint32 // Read chunks
	returned     uint32
	moved        spans
	data         []byte // what moved, when somebody wants it
	keep         bool
}

// segmentRef refers to a segment that may be gone by the time it is used.
type segmentRef struct {
	segment *segment
	id      int64
}

func (s *segment) ref() segmentRef {
	if s == nil {
		return segmentRef{}
	}
	return segmentRef{s, s.txn.rec.ID}
}

// get is the segment, nil when its transaction has ended.
func (r segmentRef) get() *segment {
	if r.segment == nil || r.segment.txn.rec.ID != r.id {
		return nil
	}
	return r.segment
}

// The limits of what is kept of one transaction.
const (
	maxLong   = 1 << 20 // bytes of one chunk's data
	maxEvents = 4096
)

// maxKept bounds the chunk data kept of all transactions together.
const maxKept = 24 << 20

// expose notes the memory that a Call exposes.
func (d *Dissector) expose(t *txn, h *rpcrdma.Header) {
	chunk, index := -1, 0
	total := len(h.Reads) + len(h.Writes) + len(h.Reply)
	if cap(t.segments) < total {
		t.segments = make([]segment, 0, total)
	}
	for i, r := range h.Reads {
		if i == 0 || r.Position != h.Reads[i-1].Position {
			chunk, index = chunk+1, 0
		}
		d.addSegment(t, readChunk, chunk, index, r.Segment).position = r.Position
		index++
	}
	for i := range h.WriteEnds {
		for j, s := range h.WriteChunk(i) {
			d.addSegment(t, writeChunk, i, j, s)
		}
	}
	for j, s := range h.Reply {
		d.addSegment(t, replyChunk, 0, j, s)
	}
	t.writes, t.hasReply = len(h.WriteEnds), h.HasReply
	for i := range t.segments {
		s := &t.segments[i]
		s.keep = d.options.Rebuild || s.kind == replyChunk || s.kind == readChunk && s.position == 0
		s.next = t.conn.exposed[t.side][s.handle]
		t.conn.exposed[t.side][s.handle] = s
	}
}

// addSegment appends a segment; t.segments has room for it.
func (d *Dissector) addSegment(t *txn, kind chunkKind, chunk, index int, from rpcrdma.Segment) *segment {
	n := len(t.segments)
	t.segments = t.segments[:n+1]
	s := &t.segments[n]
	*s = segment{
		txn: t, kind: kind, chunk: chunk, index: index, handle: from.Handle, length: from.Length, offset: from.Offset,
		moved: s.moved[:0], data: s.data[:0],
	}
	return s
}

// unexpose forgets the memory that a Call exposed.
func (t *txn) unexpose() {
	table := t.conn.exposed[t.side]
	for i := range t.segments {
		s := &t.segments[i]
		head := table[s.handle]
		if head == s {
			if s.next == nil {
				delete(table, s.handle)
			} else {
				table[s.handle] = s.next
			}
			continue
		}
		for ; head != nil; head = head.next {
			if head.next == s {
				head.next = s.next
				break
			}
		}
	}
}

// find exposed memory of a side by handle; the range picks one where several
// are exposed under the same handle.
func (c *conn) memory(side int, handle uint32, offset uint64, length uint32) *segment {
	var near *segment
	for s := c.exposed[side][handle]; s != nil; s = s.next {
		if offset >= s.offset && offset-s.offset <= uint64(s.length) && uint64(length) <= uint64(s.length)-(offset-s.offset) {
			return s
		}
		near = s
	}
	return near
}

// moved notes that n bytes, of which data was captured, went to or came from a
// segment.
func (d *Dissector) moved(s *segment, offset uint64, data []byte, n int) {
	if offset < s.offset || offset-s.offset > uint64(s.length) {
		return
	}
	at := int64(offset - s.offset)
	end := min(at+int64(n), int64(s.length))
	s.moved.add(at, end)
	if !s.keep || len(data) < n || end > maxLong {
		return
	}
	if need := int(end) - len(s.data); need > 0 {
		if d.kept+need > maxKept {
			d.limit("chunk data kept")
			s.keep = false
			return
		}
		d.kept += need
		s.txn.kept += need
		s.data = slices.Grow(s.data, need)[:end]
	}
	copy(s.data[at:end], data)
}

// gather appends the data of one chunk, as far as it is there without a hole.
func (t *txn) gather(to []byte, kind chunkKind, chunk int, returned bool) []byte {
	for i := range t.segments {
		s := &t.segments[i]
		if s.kind != kind || s.chunk != chunk {
			continue
		}
		want := int64(s.length)
		if returned {
			want = min(want, int64(s.returned))
		}
		have := min(want, s.moved.prefix(), int64(len(s.data)))
		to = append(to, s.data[:have]...)
		if have < want {
			break
		}
	}
	return to
}

// rdma notes a step of an RDMA operation that a side does on exposed memory;
// bytes is -1 where the wire does not tell yet.
func (d *Dissector) rdma(f *flow, s *segment, event string, at stamp, handle uint32, offset uint64, bytes, packets int64) {
	d.event(s.txn, Event{Time: at.time, Packet: at.packet, Event: event, From: s.txn.role(f.side)},
		eventNumbers{handle: Hex32(handle), offset: Hex64(offset), bytes: bytes, packets: packets})
}
