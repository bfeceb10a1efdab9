package rdma

import (
	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/internal/link"
)

// RPC over TCP: records in a TCP stream (RFC 5531 s.11). Each record is a Send, so that
// acknowledgements, retransmissions and missing segments are events of it, as they are of
// an iWARP Send. stream.go puts the segments in order.
//
// A stream is followed from the first segment that begins with a record mark and the
// header of a Call, or of a Reply if its port is known, if it accepts TLS, or if the other direction is
// followed. Nothing is stored about other streams, except for a limited number of
// handshakes (opened.go): a few words of each of their segments are inspected.

// records is the record marking of one direction of a connection.
type records struct {
	stream *stream
	shared *decoders
	resync bool // the start of a record has to be found
	opened bool // the handshake was captured before all data, so that the first segment is taken for the beginning
	marks
}

// marks is what the record marks say about the bytes that follow.
type marks struct {
	mark     [oncrpc.RecordMarkLen]byte
	marked   int          // bytes of mark that were captured so far
	left     int          // bytes of the current fragment that follow
	last     bool         // the current fragment is the last one of its record
	inside   bool         // the record has a fragment already, or its beginning is unknown
	from     uint32       // sequence number of the first byte that belongs to no operation yet
	begun    record.Stamp // the segment in which the record begins
	class    uint8        // its traffic class
	searched int64        // bytes since the last record, if the start of a record has to be found
	gone     bool         // the stream does not carry RPC any more
}

// giveUpAfter is the number of bytes in which no record begins, after which a stream is
// taken to carry something else, such as TLS. It is more than two of the longest records.
const giveUpAfter = 2*oncrpc.MaxFragment + 1

// maxShownRecords is the maximum number of record marks of one segment that are shown.
const maxShownRecords = 64

// mayCarryRPC reports whether a segment of an unknown stream may begin with a record. It
// rejects most segments of other protocols quickly.
func (ts *tcpStreams) mayCarryRPC(key streamKey, s *TCP) bool {
	if len(s.Payload) < 16 {
		return false
	}
	t, ok := oncrpc.PlausibleRecord(s.Payload)
	if !ok {
		return false
	}
	_, startsTLS := oncrpc.TLSRecord(s.Payload)
	ports := ts.tracker.portOf(false, key)
	return ports != OtherPort && (t == oncrpc.Call || ports == RPCPort || ts.streams[key.reversed()] != nil || startsTLS)
}

// recognizeRPC starts to follow a stream whose segment begins with a record, or attaches it
// to the connection of its other direction.
func (ts *tcpStreams) recognizeRPC(key streamKey, s *TCP) *flow {
	if back := ts.streams[key.reversed()]; back != nil {
		if _, rpc := back.stream.frames.(*records); !rpc || back.conn.closing && s.Flags&link.TCPSYN != 0 || back.conn.flows[back.side.Other()] != nil {
			return nil
		}
		f := ts.attachStream(back.conn, back.side.Other(), key, nil)
		f.stream.followRecords(&ts.shared, false).begin(s)
		return f
	}
	t, ok := oncrpc.PlausibleRecord(s.Payload)
	if !ok {
		return nil
	}
	opened, side, shown := ts.opened.take(key)
	if !shown {
		side = ts.tracker.sideOf(key, false, t)
	}
	asks := key
	if side == 1 {
		asks = key.reversed()
	}
	c := ts.connections.open(asks.setup(TCPTransport, shown))
	c.identify()
	if shown {
		c.opens(&opened)
	}
	f := ts.attachStream(c, side, key, nil)
	r := f.stream.followRecords(&ts.shared, false)
	r.begin(s)
	if shown {
		opened.setKey(c)
		f.stream.expect(&opened, s.Seq, r)
		back := ts.attachStream(c, side.Other(), key.reversed(), nil)
		back.stream.expect(&opened, s.Ack, back.stream.followRecords(&ts.shared, true))
	}
	return f
}

// followRecords makes the stream one of records. Opened is set if its handshake was captured, and none of its data yet.
func (w *stream) followRecords(d *decoders, opened bool) *records {
	r := &records{stream: w, shared: d, resync: true, opened: opened}
	w.frames = r
	return r
}

// begin takes the first segment.
func (r *records) begin(s *TCP) {
	_, ok := oncrpc.PlausibleRecord(s.Payload)
	r.resync = !ok
}

func (r *records) flow() *flow              { return r.stream.flow }
func (r *records) opening() bool            { return r.opened }
func (r *records) given() bool              { return r.gone }
func (r *records) early(s *TCP) order.Run   { return order.Run{From: s.Seq, To: s.Seq} }
func (r *records) attribute(*currentPacket) {}
func (r *records) flush()                   {}
func (r *records) evict() bool              { return false }
func (r *records) release()                 {}

// feed takes the next bytes of a stream of records, which have the sequence numbers sent; data was captured of them.
// offset is their position in the frame, or -1.
func (r *records) feed(data []byte, offset int, sent order.Run, cur *currentPacket) {
	at, length := sent.From, int(sent.To-sent.From)
	r.stream.reach(sent.To)
	r.flow().offsets.advance(order.Octets, at)
	if r.resync {
		if _, ok := oncrpc.PlausibleRecord(data); !ok {
			if len(data) < length { // the part that was not captured may contain whole records
				r.flow().missing = true
			}
			r.search(length)
			return
		}
		r.marks, r.resync = marks{from: at}, false
	}
	for left := length; left > 0; {
		take, ok := 0, false
		if r.left == 0 {
			take, ok = r.takeMark(data, offset, at, cur)
		} else {
			take, ok = r.takeFragment(data, left, at, cur)
		}
		left, at = left-take, at+uint32(take)
		if !ok { // what was taken for a record mark is none
			r.resync = true
			r.flow().breakSend()
			r.search(left)
			return
		}
		data, offset = data[min(take, len(data)):], within(offset, take)
	}
}

// takeFragment takes bytes of the current fragment, up to its end: size bytes follow in the
// segment, and data was captured of them. It returns how many bytes it took. It returns false
// if they cannot be those of a message.
func (r *records) takeFragment(data []byte, size int, at uint32, cur *currentPacket) (took int, ok bool) {
	took = min(r.left, size)
	data = data[:min(took, len(data))]
	if !r.inside && !startsMessage(data, r.last && r.left == size) {
		return 0, false
	}
	if r.left == oncrpc.RecordMark(be.Uint32(r.mark[:])).Length() { // the fragment begins
		r.reportMark(at)
	}
	r.addToRecord(data, took, at+uint32(took), cur)
	return took, true
}

// startsMessage reports whether the first bytes of a record can begin a message, as far as they were captured. If not, what was
// taken for a record mark is none. One that names the end of its segment is one, so that the third word may be wrong.
func startsMessage(data []byte, endsSegment bool) bool {
	if len(data) < 12 {
		return true
	}
	third := be.Uint32(data[8:])
	switch oncrpc.MessageType(be.Uint32(data[4:])) {
	case oncrpc.Call:
		return third == 2 || endsSegment // the RPC version
	case oncrpc.Reply:
		return third <= 1 || endsSegment // accepted or denied
	}
	return false
}

// search counts bytes in which no record begins.
func (r *records) search(n int) {
	if r.searched += int64(n); r.searched >= giveUpAfter {
		r.gone = true
	}
}

// takeMark takes the bytes of a record mark. It returns how many bytes it took. It returns false if
// they were not captured, or are no record mark.
func (r *records) takeMark(data []byte, offset int, at uint32, cur *currentPacket) (took int, ok bool) {
	if len(data) == 0 { // The capture truncated the segment, and the missing part may contain whole records.
		r.flow().missing = true
		return 0, false
	}
	if r.marked == 0 && !r.inside {
		r.from, r.begun, r.class = at, cur.at, cur.class
	}
	took = copy(r.mark[r.marked:], data)
	if r.marked += took; r.marked < len(r.mark) {
		return took, true
	}
	r.marked = 0
	m := oncrpc.RecordMark(be.Uint32(r.mark[:]))
	if m.Length() > oncrpc.MaxFragment || m.Length() == 0 && m.Last() && !r.inside {
		return took, false
	}
	r.left, r.last = m.Length(), m.Last()
	if r.flow().conn.tracker.KeepFPDUs && took == len(r.mark) && offset >= 0 {
		r.shared.show(RecordAt{Offset: offset, Continues: r.inside})
	}
	if r.left == 0 { // it has no bytes
		r.reportMark(at + uint32(took))
	}
	if r.left == 0 && r.last { // an empty fragment ends the record
		r.addToRecord(nil, 0, at+uint32(took), cur)
	}
	return took, true
}

// reportMark reports the latest record mark, which ends before a sequence number.
func (r *records) reportMark(end uint32) {
	f := r.flow()
	f.conn.tracker.contents.reportMark(f.offsets.requests(order.Octets, end-uint32(len(r.mark))), r.mark[:])
}

// show keeps a record mark of the current segment.
func (d *decoders) show(at RecordAt) {
	if len(d.records) < maxShownRecords {
		d.records = append(d.records, at)
	}
}

// RecordAt is a record mark in a segment.
type RecordAt struct {
	Offset    int  // of the mark, in the frame
	Continues bool // an earlier fragment of the record has its beginning
}

// addToRecord adds bytes of a fragment to its record, up to the sequence number to: size bytes were sent,
// and data was captured of them.
func (r *records) addToRecord(data []byte, size int, to uint32, cur *currentPacket) {
	f := r.flow()
	first := !r.inside
	r.inside, r.left = true, r.left-size
	ends := r.left == 0 && r.last
	p := part{first: first, last: ends, data: data, size: size, cut: len(data) < size, Run: order.Run{From: r.from, To: to}}
	if first && r.begun != cur.at { // the mark, or a part of it, was in an earlier segment
		f.sendPart(part{first: true, Run: order.Run{From: r.from, To: to - uint32(size)}}, &currentPacket{at: r.begun, class: r.class})
		p.first, p.From = false, to-uint32(size)
	}
	if p.first || f.parts.send != nil {
		contents := f.conn.tracker.contents
		contents.beginPart(f.offsets.requests(order.Octets, to-uint32(size)), size)
		f.sendPart(p, cur)
		contents.reportPayload()
		if e := f.ops.last(); e != nil && e.op.Kind == Send {
			cur.mark(e.op, 0)
		}
	}
	r.from = to
	if ends {
		r.inside, r.searched = false, 0
	}
}

// skip moves past missing bytes. If they are in one fragment, the record is Broken and goes
// on after them, so that its end is known.
func (r *records) skip(lost order.Run) {
	f, missing := r.flow(), int(lost.To-lost.From)
	if r.resync || r.marked > 0 || missing > r.left || !r.inside || missing == r.left && r.last {
		f.breakSend()
		r.resync = !(missing == r.left && r.left > 0 && r.marked == 0 && !r.resync)
		r.marks = marks{from: lost.To, searched: r.searched}
		return
	}
	r.left -= missing
	if o := f.parts.send; o != nil {
		o.Broken = true
		o.Length += int64(missing)
		f.parts.truncated = true
		f.enter(order.Run{From: r.from, To: lost.To}, o)
	}
	r.from = lost.To
}

// end reports that a side ended its stream inside a record.
func (r *records) end(s *TCP) {
	f, w := r.flow(), r.stream
	if r.gone || r.resync || !w.flow.order.Known() || w.flow.order.Expected() != s.run().To || !f.waiting().Empty() {
		return
	}
	if !r.inside && r.marked == 0 && r.left == 0 || f.parts.send != nil && f.parts.send.Broken || f.seq < 2 && (f.lateStart || len(f.parts.buffer) < 12) { // startsMessage needs that many
		return
	}
	f.conn.Report(rule.RPCRecordUnfinished, Where{At: s.At, AtFault: record.Some(f.side)}, "the %s ended its stream inside an RPC record, of which %s %s missing", f.conn.setup.End(f.side), record.Plural(r.left, "byte"), record.Are(r.left))
}
