package rdma

import (
	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/iwarp"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// iWARP: MPA frames and FPDUs in a TCP stream, and the operations that their DDP
// segments make.

// fpduHead is the number of bytes that are copied of an FPDU: its headers, and
// RPC-over-RDMA and RPC headers of common length.
const fpduHead = 512

// noteFPDU keeps an FPDU of the current segment if KeepFPDUs is set.
func (ts *tcpStreams) noteFPDU(plain []byte, ulpdu, offset int, crc iwarp.CRCResult) {
	if !ts.tracker.KeepFPDUs {
		return
	}
	n := ts.iwarp.fpdus
	if len(n) < cap(n) {
		n = n[:len(n)+1]
	} else {
		n = append(n, iwarp.Noted{})
	}
	last := &n[len(n)-1]
	last.Head = append(last.Head[:0], plain[:min(len(plain), fpduHead)]...)
	last.Offset, last.ULPDU, last.CRC = offset, ulpdu, crc
	ts.iwarp.fpdus = n
}

// noteHeldFPDUs keeps the complete FPDUs of a segment that has to wait for earlier ones, if it begins
// with an FPDU. It returns their sequence numbers.
func (ts *tcpStreams) noteHeldFPDUs(f *flow, s *TCP) order.Run {
	shown, data, offset := order.Run{From: s.Seq, To: s.Seq}, s.Payload, s.Offset
	if !ts.tracker.KeepFPDUs || f.stream.records != nil || f.stream.markers || !plausibleFPDU(data, true) {
		return shown
	}
	for size := fpduSize(data, false, 0); size > 0 && size <= len(data); size = fpduSize(data, false, 0) {
		crc := iwarp.CheckCRC(data[:size])
		if crc == iwarp.CRCBad { // its start is uncertain
			break
		}
		ts.noteFPDU(data[:size], int(be.Uint16(data)), offset, crc)
		data, offset = data[size:], within(offset, size)
		shown.To += uint32(size)
	}
	return shown
}

// within returns the offset n bytes after an offset in the frame, and -1 for -1. Data
// that is not contiguous in the frame has the offset -1.
func within(offset, n int) int {
	if offset < 0 {
		return -1
	}
	return offset + n
}

// feed takes the next bytes of a stream: length bytes were sent, and data was captured
// of them. offset is their position in the frame, or -1.
func (ts *tcpStreams) feed(f *flow, data []byte, offset, length int, cur *currentPacket) {
	w := f.stream
	end := w.next + uint32(length)
	if w.handshake {
		n := ts.handshake(f, data, cur.at)
		if n < 0 { // the MPA frame is not complete
			w.next = end
			if len(data) < length {
				w.handshake = false
				ts.skipBytes(f, end, 0)
			}
			return
		}
		data = data[n:]
		w.next += uint32(n)
		length -= n
		offset = within(offset, n)
		if length <= 0 {
			w.next = end
			return
		}
	}
	start := w.next + uint32(w.rest) // the sequence number of data[0]
	if w.rest > 0 {                  // the rest of an FPDU that was truncated
		n := min(w.rest, length)
		w.rest -= n
		data = data[min(n, len(data)):]
		start = w.next + uint32(n)
		w.position = (w.position + n) % iwarp.MarkerEvery
		offset = within(offset, n)
	}
	cut := int(order.Octets.Delta(end, start)) > len(data)
	if w.resync && len(data) > 0 {
		if !plausibleFPDU(data, true) && !(cut && plausibleHeader(data)) {
			w.position = (w.position + int(order.Octets.Delta(end, start))) % iwarp.MarkerEvery
			w.next = end
			return
		}
		w.resync = false
	}
	for len(data) > 0 {
		if len(w.partial) == 0 {
			size := fpduSize(data, w.markers, w.position)
			if size > 0 && size <= len(data) { // complete in this segment: not copied
				ts.fpdu(f, data[:size], offset, start, cur)
				data, start = data[size:], start+uint32(size)
				offset = within(offset, size)
				w.position = (w.position + size) % iwarp.MarkerEvery
				continue
			}
			w.from = start
		}
		// An FPDU that spans segments is reassembled.
		size := fpduSize(w.partial, w.markers, w.position)
		take := len(data)
		if size > 0 {
			take = min(take, size-len(w.partial))
		} else { // byte by byte until its length is known
			take = 1
		}
		ts.keepPartial(f, data[:take])
		data, start = data[take:], start+uint32(take)
		offset = within(offset, take)
		if size = fpduSize(w.partial, w.markers, w.position); size > 0 && len(w.partial) >= size {
			ts.fpdu(f, w.partial[:size], -1, w.from, cur)
			w.position = (w.position + size) % iwarp.MarkerEvery
			w.partial = w.partial[:0]
		}
	}
	w.next = end
	if missing := int(order.Octets.Delta(end, start)); missing > 0 {
		ts.truncatedSegment(f, start, end, cur)
	}
}

// truncatedSegment handles a segment of which the capture has only the beginning, up to
// from. It decodes the captured part of an FPDU that begins in the segment, and
// continues the stream after that FPDU.
func (ts *tcpStreams) truncatedSegment(f *flow, from, end uint32, cur *currentPacket) {
	w := f.stream
	missing := int(order.Octets.Delta(end, from))
	size := fpduSize(w.partial, w.markers, w.position)
	rest := size - len(w.partial) - missing // bytes of the FPDU in further segments
	ts.contents.beginPayloadPartial(f, max(size, len(w.partial)))
	defer ts.contents.reportPayload()
	var s iwarp.Segment
	if size > 0 && !w.markers && s.Decode(w.partial[iwarp.LengthLen:]) == nil && s.Plausible() {
		ulpdu := int(be.Uint16(w.partial))
		ts.noteFPDU(w.partial, ulpdu, -1, iwarp.CRCOff)
		ts.ddp(f, fragment{&s, max(ulpdu-s.HeaderLength, 0), order.Run{From: w.from, To: w.from + uint32(size)}, true}, cur)
	} else {
		f.missing = true // the contents of this FPDU are unknown
	}
	w.position = (w.position + len(w.partial) + missing) % iwarp.MarkerEvery
	w.partial = w.partial[:0]
	w.rest, w.resync = max(rest, 0), size == 0 || rest < 0
	f.missing = f.missing || rest < 0 // the missing part contains whole FPDUs
}

// plausibleHeader reports whether data begins with the headers of an FPDU that was
// truncated.
func plausibleHeader(data []byte) bool {
	var s iwarp.Segment
	return len(data) > iwarp.LengthLen && s.Decode(data[iwarp.LengthLen:]) == nil && s.Plausible() && int(be.Uint16(data)) >= s.HeaderLength
}

// fpduSize returns the number of bytes that the FPDU at the start of data takes in the
// stream, with its markers, or 0 if its length field is incomplete. position is the
// offset of the FPDU, modulo the distance of markers.
func fpduSize(data []byte, markers bool, position int) int {
	head := 0
	if markers && position == 0 {
		head = iwarp.MarkerLen
	}
	if len(data) < head+iwarp.LengthLen {
		return 0
	}
	size := iwarp.FPDULen(int(be.Uint16(data[head:])))
	if !markers {
		return size
	}
	at := head
	for room := (iwarp.MarkerEvery - (position+head)%iwarp.MarkerEvery); size > room; room = iwarp.MarkerEvery - iwarp.MarkerLen {
		at += room + iwarp.MarkerLen
		size -= room
	}
	return at + size
}

// withoutMarkers appends a raw FPDU without its markers to to.
func withoutMarkers(to, raw []byte, position int) []byte {
	for len(raw) > 0 {
		if position == 0 {
			raw = raw[min(iwarp.MarkerLen, len(raw)):]
			position = iwarp.MarkerLen
			continue
		}
		n := min(iwarp.MarkerEvery-position, len(raw))
		to = append(to, raw[:n]...)
		raw, position = raw[n:], (position+n)%iwarp.MarkerEvery
	}
	return to
}

// handshake decodes an MPA request or reply at the start of a stream. It returns the
// number of bytes of data that it used, or -1 if the frame is incomplete.
func (ts *tcpStreams) handshake(f *flow, data []byte, at record.Stamp) int {
	c, w := f.conn, f.stream
	before := len(w.partial)
	if before > 0 {
		ts.keepPartial(f, data)
		data = w.partial
	}
	m := &ts.iwarp.mpa
	if err := m.Decode(data); err != nil {
		if len(data) < iwarp.MPALen+512 && iwarp.IsMPA(data) {
			if before == 0 {
				ts.keepPartial(f, data)
			}
			return -1
		}
		w.handshake, w.partial = false, w.partial[:0]
		w.resync = before > 0 // the earlier bytes were discarded
		return 0
	}
	w.handshake = false
	ts.contents.reportPayloadMPA(f, data[:m.Length], w.next-uint32(before))
	if f.side == 0 || !m.Reject { // a side that rejects agrees to nothing
		c.follower.Private(f.side, m.PrivateData, at, false)
	}
	if f.side == 0 {
		c.markers = m.Markers
	} else {
		w.markers = c.markers // a side that requests markers gets them
		if peer := f.peer(); peer != nil {
			peer.stream.markers = m.Markers
		}
		if m.Reject {
			c.Report(rule.ConnectionRejected, Where{At: at}, "the MPA reply rejected the connection")
			c.close(Ending{How: record.EndRejected, By: record.Some(f.side), At: at, Reason: "MPA reply"})
		} else {
			c.establish(at)
		}
	}
	w.partial = w.partial[:0]
	return max(m.Length-before, 0)
}

// reportMisframed reports invalid framing, unless the capture may have caused it. The
// start of an FPDU is uncertain after missing segments of a stream with markers, and in
// a stream whose handshake does not show whether it has markers. In these cases, the
// next start of an FPDU has to be found.
func (ts *tcpStreams) reportMisframed(f *flow, r *rule.Rule, at record.Stamp, format string, args ...any) {
	if c := f.conn; f.stream.markers && c.record.counts.NotCaptured > 0 || c.setup.Handshake && !c.record.established.Known() {
		f.stream.resync = true
		return
	}
	f.conn.Report(r, Where{At: at}, format, args...)
}

// fpdu takes one complete FPDU, with its markers; from is its sequence number.
func (ts *tcpStreams) fpdu(f *flow, raw []byte, offset int, from uint32, cur *currentPacket) {
	w, at := f.stream, cur.at
	plain := raw
	if w.markers {
		ts.iwarp.unmarked = withoutMarkers(ts.iwarp.unmarked[:0], raw, w.position)
		plain, offset = ts.iwarp.unmarked, -1
	}
	crc := iwarp.CheckCRC(raw)
	ts.contents.beginPayloadFPDU(f, raw, plain, from)
	defer ts.contents.reportPayload()
	size := int(be.Uint16(plain))
	if iwarp.LengthLen+size > len(plain) { // a marker is in place of its length, because bytes are missing
		ts.reportMisframed(f, rule.MPAFraming, at, "FPDU of %d bytes in %d", size, len(plain))
		w.resync = true
		return
	}
	ulpdu := plain[iwarp.LengthLen : iwarp.LengthLen+size]
	if order.Octets.Delta(from, cur.shown.From) < 0 || order.Octets.Delta(from, cur.shown.To) >= 0 {
		ts.noteFPDU(plain, len(ulpdu), offset, crc)
	}
	if crc == iwarp.CRCBad {
		ts.tracker.BadCRC++
		cur.mark(nil, record.BadICRC)
		ts.reportMisframed(f, rule.MPACRCBad, at, "FPDU of %d bytes has a bad CRC", len(raw))
		return
	}
	s := &ts.iwarp.segment
	if err := s.Decode(ulpdu); err != nil {
		ts.reportMisframed(f, rule.MPAFraming, at, "%v", err)
		return
	}
	ts.ddp(f, fragment{s, len(s.Payload), order.Run{From: from, To: from + uint32(len(raw))}, false}, cur)
}

// fragment is a DDP segment and its position in the stream.
type fragment struct {
	*iwarp.Segment
	size      int  // bytes of its payload on the wire
	order.Run      // sequence numbers of its FPDU
	cut       bool // the capture has only a part of it, or lacks its CRC
}

// ddp adds a DDP segment to its operation.
func (ts *tcpStreams) ddp(f *flow, s fragment, cur *currentPacket) {
	switch {
	case s.Tagged && s.Opcode == iwarp.Write:
		ts.taggedWrite(f, s, cur)
	case s.Tagged && s.Opcode == iwarp.ReadResponse:
		ts.taggedResponse(f, s, cur)
	case s.Opcode.IsSend():
		ts.untaggedSend(f, s, cur)
	case s.Opcode == iwarp.ReadRequest:
		var r iwarp.ReadRequestHeader
		if r.Decode(s.Payload) == nil {
			o := f.names(Read, target{r.SourceSTag, r.SourceOffset, r.Size}, true, s.Run, cur.at)
			o.response.into(r.SinkSTag, r.SinkOffset)
			cur.mark(o, 0)
			cur.noteBytes(o, o.Offset, o.Length)
		}
	case s.Opcode == iwarp.Terminate:
		ts.terminate(f, s.Payload, cur)
	}
}

// untaggedSend takes a DDP segment of a Send.
func (ts *tcpStreams) untaggedSend(f *flow, s fragment, cur *currentPacket) {
	if s.Offset != 0 && (f.parts.send == nil || s.Offset != uint64(f.parts.send.Length)) {
		return // its beginning was not captured
	}
	p := part{first: s.Offset == 0, last: s.Last, data: s.Payload, size: s.size, cut: s.cut, Run: s.Run}
	if s.Opcode.Invalidates() {
		p.invalidates = record.Some(s.STag)
	}
	f.sendPart(p, cur)
	if e := f.ops.last(); e != nil {
		if e.op.Kind == Send {
			e.op.numbered(s.Sequence)
		}
		cur.mark(e.op, 0)
	}
}

// taggedWrite takes a DDP segment of an RDMA Write: successive segments with the same
// STag, up to the last one.
func (ts *tcpStreams) taggedWrite(f *flow, s fragment, cur *currentPacket) {
	o := f.parts.write
	if o == nil || o.Handle != s.STag {
		o = f.names(Write, target{s.STag, s.Offset, uint32(s.size)}, false, s.Run, cur.at)
	} else {
		f.enter(s.Run, o)
	}
	cur.mark(o, 0)
	o.countPacket(cur)
	o.truncated(s.cut)
	cur.noteBytes(o, s.Offset, int64(s.size))
	f.writePart(s.Offset, s.Payload, s.size, s.Last)
}

// taggedResponse takes a DDP segment with data of a Read. Its destination is the sink
// that the Read Request named.
func (ts *tcpStreams) taggedResponse(f *flow, s fragment, cur *currentPacket) {
	asker := f.peer()
	if asker == nil {
		return
	}
	o := asker.readOfSink(s)
	if o == nil {
		return
	}
	f.enter(s.Run, o)
	cur.mark(o, 0)
	o.countPacket(cur)
	offset := int64(s.Offset - o.sinkAt)
	fresh := o.markSeen(offset, offset+int64(s.size))
	f.noteStreamResponse(o, s.From, cur.at)
	if fresh == int64(s.size) || fresh > 0 {
		cur.noteBytes(o, o.Offset+uint64(offset), int64(s.size))
		o.read(offset, s.Payload, s.size, fresh)
	}
}

// readOfSink returns the outstanding Read that a response belongs to, nil if there is
// none. Reads are answered in order, so it is one of the oldest.
func (f *flow) readOfSink(s fragment) *Operation {
	l := &f.ops
	for n, i := 0, max(l.head, l.reads); i < len(l.entries) && n < maxReadsAtOnce; i++ {
		o := l.entries[i].op
		if o.Kind != Read || o.done || o.Side != f.side {
			if n == 0 {
				l.reads = i + 1 // all earlier Reads are finished
			}
			continue
		}
		n++
		if o.sink == s.STag && s.Offset >= o.sinkAt && s.Offset-o.sinkAt <= uint64(o.Length) && uint64(s.size) <= uint64(o.Length)-(s.Offset-o.sinkAt) {
			return o
		}
	}
	return nil
}

// maxReadsAtOnce is the maximum number of Reads that are compared with one response.
const maxReadsAtOnce = 128

// terminate takes a Terminate: the connection has ended, and the operation that it
// names was not executed.
func (ts *tcpStreams) terminate(f *flow, payload []byte, cur *currentPacket) {
	c, at := f.conn, cur.at
	var m iwarp.TerminateHeader
	if m.Decode(payload) != nil {
		return
	}
	r := Refusal{By: f.side, At: at, Fatal: true, Reason: m.String(), Kind: Write, Text: "Terminate: " + m.String()}
	if m.HasDDP {
		switch {
		case m.HasRDMAP:
			r.Kind, r.Handle, r.Offset, r.Length = Read, record.Some(m.Read.SourceSTag), m.Read.SourceOffset, m.Read.Size
		case m.DDP.Tagged:
			r.Handle, r.Offset = record.Some(m.DDP.STag), m.DDP.Offset
		case m.DDP.Opcode.IsSend():
			r.Kind = Send
		}
	}
	if m.Layer == 1 && m.Type == 2 { // DDP, untagged buffer (RFC 5041 s.8.2)
		r.Kind = Send
		r.NotReady, r.TooLong = m.Code == 2, m.Code == 5
	}
	cur.mark(nil, record.Refused)
	asker := f.peer()
	if asker != nil {
		r.Op = asker.operationNamed(&r)
		if m.HasDDP && r.Kind == Send && m.DDP.Opcode.IsSend() {
			r.Op = asker.sendNumbered(m.DDP.Sequence)
		}
		cur.mark(r.Op, 0)
	}
	if m.Swapped {
		c.Report(rule.TerminateBitsReversed, Where{At: at, AtFault: record.Some(f.side)}, "the control word of the Terminate has the bits of each byte in reverse order, as Linux's siw writes it; it was decoded in the intended order")
	}
	c.ends(Ending{How: record.EndTerminate, By: record.Some(f.side), At: at, Reason: r.Reason})
	if asker == nil {
		c.follower.Refused(&r)
		return
	}
	from := uint32(0)
	if r.Op != nil {
		from = r.Op.from
	}
	asker.refuse(&r, from)
}

// operationNamed returns the operation of the flow that a Terminate names, nil if it is
// not known.
func (f *flow) operationNamed(r *Refusal) *Operation {
	handle, known := r.Handle.Get()
	if !known || f.refusals >= maxRefusals {
		return nil
	}
	for i := len(f.ops.entries) - 1; i >= f.ops.head; i-- {
		o := f.ops.entries[i].op
		if o.Side == f.side && o.Kind == r.Kind && o.Handle == handle && r.Offset-o.Offset <= uint64(o.Length) {
			return o
		}
	}
	return nil
}

// sendNumbered returns the Send of the flow with a message sequence number, nil if it
// is not known.
func (f *flow) sendNumbered(msn uint32) *Operation {
	for i := len(f.ops.entries) - 1; i >= f.ops.head; i-- {
		if o := f.ops.entries[i].op; o.Side == f.side && o.Kind == Send && o.msn == msn {
			return o
		}
	}
	return nil
}
