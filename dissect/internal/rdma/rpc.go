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
// header of a Call, or of a Reply if its port is known or if the other direction is
// followed. Nothing is stored about other streams, except for a limited number of
// handshakes (handshakes.go): a few words of each of their segments are inspected.

// recordStreams takes the segments of TCP streams that carry RPC without RDMA.
type recordStreams struct {
	tracker     *Tracker
	connections *connections
	tcp         *tcpStreams

	opened openings   // handshakes of connections that may carry RPC
	shown  []RecordAt // record marks of the current segment
}

// records is the record marking of one direction of a connection.
type records struct {
	mark     [oncrpc.RecordMarkLen]byte
	marked   int          // bytes of mark that were captured so far
	left     int          // bytes of the current fragment that follow
	last     bool         // the current fragment is the last one of its record
	inside   bool         // the record has a fragment already, or its beginning is unknown
	from     uint32       // sequence number of the first byte that belongs to no operation yet
	begun    record.Stamp // the segment in which the record begins
	searched int64        // bytes since the last record, if the start of a record has to be found
	given    bool         // the stream does not carry RPC any more
}

// giveUpAfter is the number of bytes in which no record begins, after which a stream is
// taken to carry something else, such as TLS. It is more than two of the longest records.
const giveUpAfter = 2*oncrpc.MaxFragment + 1

// maxShownRecords is the maximum number of record marks of one segment that are shown.
const maxShownRecords = 64

// mayCarry reports whether a segment of an unknown stream may begin with a record. It
// rejects most segments of other protocols quickly.
func (rs *recordStreams) mayCarry(key streamKey, s *TCP) bool {
	if rs.tracker.OnlyRDMA || len(s.Payload) < 16 {
		return false
	}
	t, ok := oncrpc.PlausibleRecord(s.Payload)
	if !ok {
		return false
	}
	ports := rs.tracker.portOf(false, key)
	return ports != OtherPort && (t == oncrpc.Call || ports == RPCPort || rs.tcp.streams[key.reversed()] != nil)
}

// recognize starts to follow a stream whose segment begins with a record, or attaches it
// to the connection of its other direction.
func (rs *recordStreams) recognize(key streamKey, s *TCP) *flow {
	if back := rs.tcp.streams[key.reversed()]; back != nil {
		if back.stream.records == nil || back.conn.closing && s.Flags&link.TCPSYN != 0 || back.conn.flows[back.side.Other()] != nil {
			return nil
		}
		f := rs.tcp.attachStream(back.conn, back.side.Other(), key)
		rs.follow(f, s)
		return f
	}
	t, ok := oncrpc.PlausibleRecord(s.Payload)
	if !ok {
		return nil
	}
	opened, side, shown := rs.opened.take(key)
	if !shown {
		side = rs.tracker.sideOf(key, false, t)
	}
	asks := key
	if side == 1 {
		asks = key.reversed()
	}
	c := rs.connections.open(asks.setup(TCPTransport, shown))
	c.identify()
	if shown {
		c.opens(&opened)
	}
	f := rs.tcp.attachStream(c, side, key)
	f.stream.handshake = false
	rs.follow(f, s)
	if shown {
		opened.setKey(c)
		f.stream.expect(&opened, s.Seq)
		back := rs.tcp.attachStream(c, side.Other(), key.reversed())
		back.stream.records, back.stream.resync = new(records), true
		back.stream.expect(&opened, s.Ack)
	}
	return f
}

// follow makes a stream one of records.
func (rs *recordStreams) follow(f *flow, s *TCP) {
	w := f.stream
	w.handshake, w.records = false, new(records)
	_, ok := oncrpc.PlausibleRecord(s.Payload)
	w.resync = !ok
	f.conn.share.Charge(recordsCost)
}

// recordsCost is the cost of the record marking of a stream in bytes of the budget.
const recordsCost = 96

// expect sets the sequence number of the first byte of the stream, if the handshake shows
// it. A segment with the sequence number seq was captured.
func (w *stream) expect(h *opening, seq uint32) {
	if first, known := h.first(w.flow.side); known && order.Octets.Delta(seq, first) >= 0 {
		w.known, w.next, w.resync = true, first, false
		w.gaps.Begin(first)
	}
}

// feed takes the next bytes of a stream of records: length bytes were sent, and data
// was captured of them. offset is their position in the frame, or -1.
func (rs *recordStreams) feed(f *flow, data []byte, offset, length int, cur *currentPacket) {
	w, r := f.stream, f.stream.records
	at, end := w.next, w.next+uint32(length)
	w.next = end
	if w.resync {
		if _, ok := oncrpc.PlausibleRecord(data); !ok {
			rs.search(f, length)
			return
		}
		*r, w.resync = records{from: at}, false
	}
	for left := length; left > 0; {
		take, ok := 0, false
		if r.left == 0 {
			take, ok = rs.takeMark(f, data, offset, at, cur)
		} else {
			take, ok = rs.takeFragment(f, data, left, at, cur)
		}
		left, at = left-take, at+uint32(take)
		if !ok { // what was taken for a record mark is none
			w.resync = true
			f.breakSend()
			rs.search(f, left)
			return
		}
		data, offset = data[min(take, len(data)):], within(offset, take)
	}
}

// takeFragment takes bytes of the current fragment, up to its end: size bytes follow in the
// segment, and data was captured of them. It returns how many bytes it took. It returns false
// if they cannot be those of a message.
func (rs *recordStreams) takeFragment(f *flow, data []byte, size int, at uint32, cur *currentPacket) (took int, ok bool) {
	r := f.stream.records
	took = min(r.left, size)
	data = data[:min(took, len(data))]
	if !r.inside && !startsMessage(data) {
		return 0, false
	}
	rs.addToRecord(f, data, took, at+uint32(took), cur)
	return took, true
}

// startsMessage reports whether the first bytes of a record can begin a message, as far as they were
// captured. If not, what was taken for a record mark is none.
func startsMessage(data []byte) bool {
	if len(data) < 12 {
		return true
	}
	third := be.Uint32(data[8:])
	switch oncrpc.MessageType(be.Uint32(data[4:])) {
	case oncrpc.Call:
		return third == 2 // the RPC version
	case oncrpc.Reply:
		return third <= 1 // accepted or denied
	}
	return false
}

// search counts bytes in which no record begins.
func (rs *recordStreams) search(f *flow, n int) {
	r := f.stream.records
	if r.searched += int64(n); r.searched >= giveUpAfter {
		r.given = true
	}
}

// takeMark takes the bytes of a record mark. It returns how many bytes it took. It returns false if
// they were not captured, or are no record mark.
func (rs *recordStreams) takeMark(f *flow, data []byte, offset int, at uint32, cur *currentPacket) (took int, ok bool) {
	r := f.stream.records
	if len(data) == 0 { // The capture truncated the segment, and the missing part may contain whole records.
		f.missing = true
		return 0, false
	}
	if r.marked == 0 && !r.inside {
		r.from, r.begun = at, cur.at
	}
	took = copy(r.mark[r.marked:], data)
	if r.marked += took; r.marked < len(r.mark) {
		return took, true
	}
	r.marked = 0
	m := oncrpc.RecordMark(be.Uint32(r.mark[:]))
	if m.Length() > oncrpc.MaxFragment || m.Length() == 0 && !r.inside {
		return took, false
	}
	r.left, r.last = m.Length(), m.Last()
	if n := len(rs.shown); rs.tracker.KeepFPDUs && took == len(r.mark) && offset >= 0 && n < maxShownRecords {
		rs.shown = append(rs.shown, RecordAt{Offset: offset, Continues: r.inside})
	}
	if r.left == 0 && r.last { // an empty fragment ends the record
		rs.addToRecord(f, nil, 0, at+uint32(took), cur)
	}
	return took, true
}

// RecordAt is a record mark in a segment.
type RecordAt struct {
	Offset    int  // of the mark, in the frame
	Continues bool // an earlier fragment of the record has its beginning
}

// addToRecord adds bytes of a fragment to its record, up to the sequence number to: size bytes were sent,
// and data was captured of them.
func (rs *recordStreams) addToRecord(f *flow, data []byte, size int, to uint32, cur *currentPacket) {
	r := f.stream.records
	first := !r.inside
	r.inside, r.left = true, r.left-size
	ends := r.left == 0 && r.last
	p := part{first: first, last: ends, data: data, size: size, cut: len(data) < size, Run: order.Run{From: r.from, To: to}}
	if first && r.begun != cur.at { // the mark, or a part of it, was in an earlier segment
		f.sendPart(part{first: true, Run: order.Run{From: r.from, To: to - uint32(size)}}, &currentPacket{at: r.begun})
		p.first, p.From = false, to-uint32(size)
	}
	if p.first || f.parts.send != nil {
		f.sendPart(p, cur)
		if e := f.ops.last(); e != nil && e.op.Kind == Send {
			cur.mark(e.op, 0)
		}
	}
	r.from = to
	if ends {
		r.inside, r.searched = false, 0
	}
}

// skip moves a stream past missing bytes. If they are in one fragment, the record is Broken and goes
// on after them, so that its end is known.
func (rs *recordStreams) skip(f *flow, next uint32, missing int) {
	w, r := f.stream, f.stream.records
	w.next = next
	if w.resync || r.marked > 0 || missing > r.left || !r.inside || missing == r.left && r.last {
		f.breakSend()
		w.resync = !(missing == r.left && r.left > 0 && r.marked == 0 && !w.resync)
		*r = records{from: next, searched: r.searched}
		return
	}
	r.left -= missing
	if o := f.parts.send; o != nil {
		o.lack(missing)
		f.parts.truncate()
		f.enter(order.Run{From: r.from, To: next}, o)
	}
	r.from = next
}

// noteCut reports that a side ended its stream inside a record.
func (rs *recordStreams) noteCut(f *flow, s *TCP) {
	w := f.stream
	r := w.records
	if r == nil || r.given || w.resync || !w.known || w.next != s.Seq+uint32(s.Length) || !w.window.Empty() {
		return
	}
	if !r.inside && r.marked == 0 && r.left == 0 || f.parts.send != nil && f.parts.send.Broken || f.lateStart && f.seq < 2 {
		return
	}
	f.conn.Report(rule.RPCRecordUnfinished, Where{At: s.At, AtFault: record.Some(f.side)}, "the %s ended its stream inside an RPC record, of which %d bytes are missing", f.conn.setup.End(f.side), r.left)
}

// deliver passes the next bytes of a stream to its framing; see feed and feedRecords.
func (ts *tcpStreams) deliver(f *flow, data []byte, offset, length int, cur *currentPacket) {
	f.takes(cur.at)
	if f.stream.records != nil {
		ts.records.feed(f, data, offset, length, cur)
		return
	}
	ts.feed(f, data, offset, length, cur)
}

// outlived reports whether a segment with SYN begins another connection between the ports
// of a followed one, and ends the followed one. A retransmitted SYN does not.
func (rs *recordStreams) outlived(f *flow, s *TCP) bool {
	if s.Flags&link.TCPSYN == 0 {
		return false
	}
	if h := f.conn.opened; h != nil {
		if first, known := h.first(f.side); !known || first == s.Seq+1 {
			return false
		}
	}
	f.conn.reuse()
	return true
}
